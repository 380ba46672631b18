"""The views of `schemas.metrics` as OpenMetrics text. Pure.

A counter starts at the first minute of the lake. A summary of request times covers its minute, whereas Kafka's decays
over all requests since the start.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from highwater.pipelines.base.instants import SECOND_US
from highwater.schemas.metrics import (
    BROKER_METRICS,
    GAUGE,
    HISTOGRAM,
    METER,
    QUANTILES,
    REQUEST_TIMES,
    REQUESTS,
    Metric,
)

#: Row of a view; times in microseconds since the epoch.
Row = Mapping[str, Any]

_TYPES: Final = {GAUGE: "gauge", METER: "counter", HISTOGRAM: "summary"}
_MINUTE_S: Final = 60


def export_openmetrics(
    brokers: Iterable[Row], requests: Iterable[Row], since_us: int | None = None, until_us: int | None = None
) -> Iterator[str]:
    """Yield lines of OpenMetrics text with timestamps, for ``promtool tsdb create-blocks-from openmetrics``.

    Names follow jmx_exporter's example for Kafka (``kafka-2_0_0.yml``): ``kafka_<domain>_<type>_<name>`` in lower
    case, ``PerSec`` counters as ``_total``.

    Args:
        brokers: all rows of ``broker_metrics``, by minute.
        requests: all rows of ``request_metrics``, by minute.
        since_us, until_us: start times of the minutes to write, `until_us` exclusive. Counters include earlier minutes.
    """
    for rows, metrics in ((list(brokers), BROKER_METRICS), (list(requests), (REQUESTS, *REQUEST_TIMES))):
        for metric in metrics:
            family = name_family(metric)
            samples = [
                line
                for row, lines in _build_samples(family, metric, rows)
                if (since_us is None or row["minute"] >= since_us) and (until_us is None or row["minute"] < until_us)
                for line in lines
            ]
            if samples:
                yield f"# TYPE {family} {_TYPES[metric.kind]}"
                yield f"# HELP {family} {metric.mbean()}, rebuilt from logs"
                yield from samples
    yield "# EOF"


def name_family(metric: Metric) -> str:
    """Return the name of a metric family, without the suffixes of its samples."""
    return f"{metric.domain.replace('.', '_')}_{metric.type}_{metric.name.removesuffix('PerSec')}".lower()


def name_request(api: str) -> str:
    """Return an API as Kafka's metrics name it (``ApiKeys.name``): LIST_OFFSETS is ListOffsets."""
    return "".join(word.capitalize() for word in api.split("_"))


def _build_samples(family: str, metric: Metric, rows: Iterable[Row]) -> Iterator[tuple[Row, list[str]]]:
    totals: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0, 0.0])
    # Samples of one series have to follow each other.
    for row in sorted(rows, key=lambda row: (row["cluster_id"], row["broker_id"], row.get("request"), row["minute"])):
        labels = {"cluster": row["cluster_id"], "instance": str(row["broker_id"]), "job": "kafka"}
        if "request" in row:
            labels["request"] = name_request(row["request"])
        time = f"{row['minute'] // SECOND_US + _MINUTE_S}"
        total = totals[tuple(labels.values())]
        if metric.kind == GAUGE:
            if row[metric.column] is not None:
                yield row, [_sample(family, labels, row[metric.column], time)]
        elif metric.kind == METER:
            total[0] += row[metric.column]
            yield row, [_sample(f"{family}_total", labels, total[0], time)]
        else:
            column = metric.column.removesuffix("_time_ms") + "_ms_"
            total[0] += row["requests"]
            total[1] += row[f"{column}sum"]
            quantiles = [
                _sample(family, labels | {"quantile": share}, row[column + suffix], time)
                for suffix, share in QUANTILES.items()
            ]
            count = _sample(f"{family}_count", labels, total[0], time)
            yield row, [*quantiles, count, _sample(f"{family}_sum", labels, total[1], time)]


def _sample(name: str, labels: Mapping[str, str], value: float, time: str) -> str:
    text = ",".join(f'{re.sub("[^A-Za-z0-9_]", "_", key)}="{escape_label(label)}"' for key, label in labels.items())
    number = str(int(value)) if float(value).is_integer() else repr(round(float(value), 6))
    return f"{name}{{{text}}} {number} {time}"


def escape_label(text: str) -> str:
    """Return a label's value with special characters escaped."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
