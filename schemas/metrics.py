"""Gold: what brokers would have exposed as JMX metrics, per interval."""

from __future__ import annotations

from typing import Final

from schemas import columns as c
from schemas.table import DOUBLE, INT, LONG, STRING, TIMESTAMP, TableSpec, column, required

# Values of `BROKER_METRICS.kind`: the four kinds of Yammer's metrics that Kafka's brokers use.
GAUGE: Final = "gauge"
METER: Final = "meter"
HISTOGRAM: Final = "histogram"
TIMER: Final = "timer"

# Values of `BROKER_METRICS.measured`.
EXACT: Final = "exact"
AT_LEAST: Final = "at_least"
AT_MOST: Final = "at_most"

#: Percentiles that Yammer's histograms expose through JMX, by column.
PERCENTILES: Final = {
    "p50_ms": 0.5,
    "p75_ms": 0.75,
    "p95_ms": 0.95,
    "p98_ms": 0.98,
    "p99_ms": 0.99,
    "p999_ms": 0.999,
}

BROKER_METRICS = TableSpec(
    layer="gold",
    name="broker_metrics",
    comment="One row per broker, interval and MBean: what the broker would have exposed through JMX, from its logs. "
    "What no log measures has no row: no row is not zero.",
    columns=(
        c.CLUSTER,
        required("broker_id", INT, "Broker whose metric it is"),
        required("interval_start", TIMESTAMP, "Start of the interval, on that broker's clock (MaxLag: its leaders')"),
        required("interval_s", INT, "Its length, seconds"),
        required("mbean", STRING, "JMX object name: kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Fetch"),
        required("name", STRING, "Its key `name`"),
        required("kind", STRING, "gauge, meter, histogram, timer"),
        required(
            "measured",
            STRING,
            "exact: as the broker counted; at_least, at_most: a bound of it, since lines may be missing or say less",
        ),
        column("measured_reason", STRING, "Why it is a bound: log_begins, not_all_logged, requests_in_flight, ..."),
        column("value", DOUBLE, "Of a gauge: its value at the end of the interval, or when the broker ended within it"),
        column("value_max", DOUBLE, "Of a gauge: the highest within the interval; null where only ends are known"),
        column("event_count", LONG, "Of all others: events within the interval"),
        column("mean_ms", DOUBLE, "Of a histogram or timer, exact"),
        column("min_ms", DOUBLE, "The same"),
        column("max_ms", DOUBLE, "The same"),
        column("stddev_ms", DOUBLE, "Standard deviation of the sample, as Yammer has it"),
        column("p50_ms", DOUBLE, "Median of the interval, within 2%; so are the other percentiles"),
        column("p75_ms", DOUBLE, "75th percentile"),
        column("p95_ms", DOUBLE, "95th percentile"),
        column("p98_ms", DOUBLE, "98th percentile"),
        column("p99_ms", DOUBLE, "99th percentile"),
        column("p999_ms", DOUBLE, "99.9th percentile"),
    ),
    keys=("cluster_id", "broker_id", "interval_start", "mbean"),
    ordered_by="interval_start",
    checks={
        "kind_known": "kind IN ('gauge', 'meter', 'histogram', 'timer')",
        "measured_known": "measured IN ('exact', 'at_least', 'at_most')",
        "bound_says_why": "measured = 'exact' OR measured_reason IS NOT NULL",
        "gauge_has_value": "CASE WHEN value IS NULL THEN kind <> 'gauge' ELSE kind = 'gauge' END",
    },
    dated_by=("interval_start",),
)

TABLES = (BROKER_METRICS,)
