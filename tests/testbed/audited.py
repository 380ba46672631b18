"""What an audit says of one cluster: the tables that its report is made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from highwater.jobs.lakes import list_tables
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.metrics.export import name_request
from highwater.schemas.metrics import BROKER_METRICS, GAUGE, HISTOGRAM, REQUEST_TIMES, REQUESTS
from highwater.schemas.views import VIEW_BY_NAME

Row = dict[str, Any]

_TABLES = {
    "coverage": ("gold/coverage", ("logger", "outcome", "line_count")),
    "findings": ("gold/violations", None),
    "lives": ("silver/broker_lifecycle", ("broker_id", "time", "event", "kafka_version", "mode")),
    "isr": ("gold/isr_timeline", ("change_time", "replica_id", "change", "class")),
    "failovers": (
        "gold/failovers",
        (
            *("failed_broker_id", "reason", "strategy", "topic", "partition"),
            *("detected_time", "elected_time", "taken_up_time", "serving_time"),
        ),
    ),
    "controller_events": (
        "silver/controller_events",
        ("time", "event", "subject_broker_id", "topic", "partition"),
    ),
    "configs": ("silver/broker_configs", ("time", "scope", "entity", "key", "value")),
    "operations": (
        "gold/delayed_operations",
        (
            *("broker_id", "arrival_time", "completed_time", "operation", "api", "succeeded", "parked", "class"),
            "residual_ms",
        ),
    ),
}


@dataclass(frozen=True)
class Audited:
    """Rows of one cluster; instants are Unix seconds."""

    brokers: frozenset[int | None]  #: whose logs were read; None where files are nobody's
    coverage: tuple[Row, ...] = ()  #: records by logger and outcome
    findings: tuple[Row, ...] = ()  #: violations, observations and open cases
    lives: tuple[Row, ...] = ()  #: what brokers and controllers said of themselves
    isr: tuple[Row, ...] = ()  #: replicas that left or joined an ISR
    failovers: tuple[Row, ...] = ()  #: leaderships that ended
    controller_events: tuple[Row, ...] = ()  #: elections, deletions, reassignments and more
    configs: tuple[Row, ...] = ()  #: settings as brokers logged them
    operations: tuple[Row, ...] = ()  #: produces and fetches with their classes


def read_audit(lake: Path, corpus: Path) -> Audited:
    """What a lake, which may hold several clusters, says of the one in a corpus.

    Raises:
        ValueError: the files of the corpus are of no cluster, or of several.
    """
    files = _rows(lake, "bronze/log_files", ("path", "cluster_id", "broker_id"))
    files = [row for row in files if Path(row["path"]).is_relative_to(corpus.absolute())]
    clusters = {row["cluster_id"] for row in files}
    if len(clusters) != 1:
        raise ValueError(f"{corpus}: files of {len(clusters)} clusters: {sorted(clusters)}")
    (cluster,) = clusters
    rows: dict[str, Any] = {}
    for name, (table, columns) in _TABLES.items():
        wanted = None if columns is None else (*columns, "cluster_id")
        rows[name] = tuple(row for row in _rows(lake, table, wanted) if row["cluster_id"] == cluster)
    return Audited(frozenset(row["broker_id"] for row in files), **rows)


def read_metrics(lake: Path, interval_s: int) -> list[Row]:
    """Return the metrics of a lake that holds one cluster, a row per interval and MBean.

    Args:
        interval_s: length of the intervals, instead of the views' minutes.
    """
    return [*_metric_rows(lake, "broker_metrics", interval_s), *_metric_rows(lake, "request_metrics", interval_s)]


def _metric_rows(lake: Path, name: str, interval_s: int) -> Iterator[Row]:
    reader = LakeReader(lake, list_tables(lake))
    # DuckDB alone has intervals of other lengths.
    sql = VIEW_BY_NAME[name].sql.replace("date_trunc('minute',", f"time_bucket(interval {interval_s} second,")
    reader.make_view(VIEW_BY_NAME[name])
    for row in reader.rows(sql.replace("interval 1 minute", f"interval {interval_s} second")):
        request = row.get("request")
        metrics = BROKER_METRICS if request is None else (REQUESTS, *REQUEST_TIMES)
        for metric in metrics:
            column = metric.column.removesuffix("_time_ms") + "_ms_sum" if metric.kind == HISTOGRAM else metric.column
            if (value := row[column]) is None:
                continue
            count = row["requests"] if metric.kind == HISTOGRAM else value
            yield {
                "broker_id": row["broker_id"],
                "interval_start": row["minute"] / 1e6,
                "mbean": metric.mbean(None if request is None else name_request(request)),
                "name": metric.name,
                "kind": metric.kind,
                "measured": "at_most" if metric.name.startswith("Isr") else "exact",
                "value": value if metric.kind == GAUGE else None,
                "value_max": None,
                "event_count": None if metric.kind == GAUGE else count,
                "mean_ms": value / count if metric.kind == HISTOGRAM else None,
            }


def _rows(lake: Path, name: str, columns: Sequence[str] | None) -> list[Row]:
    table = DeltaTable(lake / name).to_pyarrow_table(columns=None if columns is None else list(columns))
    return [{key: _plain(value) for key, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
