"""Reads the lake for the page: tables that the driver can hold, and larger ones batch by batch. No query of Spark's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.config import Config
from pipelines.lake import Lake
from pipelines.parquet import columns_schema
from pipelines.report import small_tables as small
from pipelines.report.cluster import clocks, events, lives, settings, stories
from pipelines.report.cluster.parts import Cluster
from pipelines.report.cubes import operations as of_operations
from pipelines.report.cubes import requests as of_requests
from pipelines.report.cubes.assemble import cubes
from pipelines.report.cubes.intervals import Intervals, intervals_of
from pipelines.report.cubes.operations import OperationFold
from pipelines.report.cubes.parts import Cubes
from pipelines.report.cubes.requests import RequestFold
from pipelines.report.detail import Cost, Detail, RuleText
from pipelines.report.figures import Rows
from pipelines.report.lake_reads import is_searchable
from pipelines.rules.registry import RULES
from pipelines.storage.store import store_of
from schemas import bronze, silver
from schemas.clocks import CLOCK_BOUNDS
from schemas.controllers import AVAILABILITY, FAILOVERS
from schemas.gold import DELAYED_OPERATIONS, REQUEST_PHASES
from schemas.isr import ISR_TIMELINE
from schemas.table import TableSpec

#: Rows of a batch: some tens of megabytes.
BATCH_ROWS = 200_000

_OF_FILES = ("file_id", "path", "cluster_id", "broker_id", "size_bytes", "line_count", "first_time", "last_time")
_OF_OPERATIONS = DELAYED_OPERATIONS.column_names
_OF_REQUESTS = ("time", "broker_id", "connection", "correlation_id", "file_id", "byte_offset", "line_no")
_OF_FETCHES = (
    *("broker_id", "topic", "partition", "replica_id", "fetch_offset", "dequeued_time", "handled_time"),
    *("completed_time", "response_bytes", "file_id", "byte_offset", "line_no"),
)
_OF_EVENTS = ("time", "cluster_id", "broker_id", "event")
_CONTROLLER_EVENTS = (
    *("controller_elected", "controller_resigned"),
    *("broker_fenced", "broker_failed", "broker_unfenced", "broker_registered"),
)
_OF_FAILOVERS = (
    *("cluster_id", "topic", "partition", "sequence", "reason", "strategy", "old_leader", "new_leader", "outcome"),
    *("detected_time", "elected_time", "taken_up_time", "detected_to_taken_up_ms", "detected_to_serving_ms"),
    "approximate",
)


def collect_detail(
    lake: Lake, config: Config, since: datetime | None, until: datetime | None, started: datetime | None
) -> Detail:
    """What the page shows of a window of time, and of the cluster.

    Args:
        since, until: of operations and requests, by their arrival, as of the report.
        started: when the verb was; its cost is told by it.
    """
    bounds = small.bounds(since, until)
    files = _rows(lake, bronze.LOG_FILES, *_OF_FILES)
    intervals = _intervals(lake, files, bounds)
    found = worst = None
    if intervals is not None:
        found, worst = _cubes(lake, config, intervals, bounds)
    return Detail(
        cluster=_cluster(lake, worst or {}, files),
        cubes=found,
        rules=tuple(RuleText(**{name: getattr(rule, name) for name in RuleText.model_fields}) for rule in RULES),
        cost=Cost(
            bytes=sum(row["size_bytes"] or 0 for row in files),
            lines=sum(row["line_count"] or 0 for row in files),
            seconds=None if started is None else round((datetime.now(UTC) - started).total_seconds(), 1),
        ),
    )


def _rows(lake: Lake, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> Rows:
    return small.plain_rows(lake.rows(spec, *columns, where=where))


# --------------------------------------------------------------------- aggregates


def _intervals(lake: Lake, files: Rows, bounds: small.Bounds) -> Intervals | None:
    """Of all that the logs tell of, within the window; None where there is no time at all."""
    times = [row[name] for row in files for name in ("first_time", "last_time") if row[name] is not None]
    for spec in (DELAYED_OPERATIONS, REQUEST_PHASES):
        for batch in _batches(lake, spec, ("arrival_time",), small.Bounds(None, None)):
            if batch.num_rows:
                least = pc.min_max(batch["arrival_time"].cast(pa.int64())).as_py()
                times += [least["min"], least["max"]]
    first = max(min(times, default=0), bounds.since_us or 0)
    last = max(times, default=0) if bounds.until_us is None else min(max(times, default=0), bounds.until_us - 1)
    return intervals_of(first, last, len({row["broker_id"] for row in files})) if times else None


def _cubes(lake: Lake, config: Config, intervals: Intervals, bounds: small.Bounds) -> tuple[Cubes, dict[str, int]]:
    operations = OperationFold(intervals, config.latency.slow_ms)
    requests = RequestFold(intervals)
    for batch in _batches(lake, DELAYED_OPERATIONS, of_operations.COLUMNS, bounds):
        operations.add(batch)
    for batch in _batches(lake, REQUEST_PHASES, of_requests.COLUMNS, bounds):
        requests.add(batch)
    return cubes(operations, requests), operations.worst()


def _batches(lake: Lake, spec: TableSpec, columns: tuple[str, ...], bounds: small.Bounds) -> Iterator[pa.Table]:
    """Rows that arrived within the window, some at a time."""
    files = lake.files(spec) if lake.has_rows(spec) else []
    where = _arrived(bounds)
    if files is None:
        # Only Delta can read them: the one case in which this costs a query.
        table = lake.rows(spec, *columns)
        yield table if where is None else table.filter(where)
        return
    # Importing it takes a quarter of a second.
    import pyarrow.parquet as pq

    for file in files:
        with pq.ParquetFile(store_of(file.place).arrow_source(file.place), coerce_int96_timestamp_unit="us") as source:
            for batch in source.iter_batches(BATCH_ROWS, columns=list(columns)):
                table = pa.Table.from_batches([batch]).cast(columns_schema(spec, columns))
                yield table if where is None else table.filter(where)


def _arrived(bounds: small.Bounds) -> pc.Expression | None:
    arrival = pc.field("arrival_time").cast(pa.int64())
    conditions = []
    if bounds.since_us is not None:
        conditions.append(arrival >= bounds.since_us)
    if bounds.until_us is not None:
        conditions.append(arrival < bounds.until_us)
    return _all(conditions)


def _all(conditions: list[pc.Expression]) -> pc.Expression | None:
    if not conditions:
        return None
    first, *others = conditions
    for other in others:
        first = first & other
    return first


# ------------------------------------------------------------------------ cluster


def _cluster(lake: Lake, worst: dict[str, int], files: Rows) -> Cluster:
    lifecycle = _rows(lake, silver.BROKER_LIFECYCLE, *_OF_EVENTS)
    controller = _rows(
        lake,
        silver.CONTROLLER_EVENTS,
        *(*_OF_EVENTS, "subject_broker_id", "brokers"),
        where=pc.field("event").isin(_CONTROLLER_EVENTS),
    )
    isr = _rows(
        lake,
        ISR_TIMELINE,
        *("cluster_id", "topic", "partition", "replica_id", "change", "change_time", "made_by"),
    )
    moved = _rows(lake, FAILOVERS, *_OF_FAILOVERS)
    led = _rows(
        lake,
        silver.LEADER_AND_ISR,
        *("time", "cluster_id", "topic", "partition", "leader", "leader_epoch"),
    )
    said = (*silver.BROKER_CONFIGS.keys, "time", "cluster_id", "broker_id")
    configs = _rows(lake, silver.BROKER_CONFIGS, *said, "key", "value", where=pc.field("scope") == "broker")
    runs = lives.runs(lifecycle, controller, files)
    happened, events_left_out = events.events(lifecycle, controller, isr, moved)
    windows, windows_left_out = events.unavailable(_rows(lake, AVAILABILITY, *AVAILABILITY.column_names))
    failovers, failovers_left_out = events.failovers(moved)
    differing, settings_left_out = settings.settings(small.configs(configs))
    pairs, pairs_left_out = clocks.clocks(_rows(lake, CLOCK_BOUNDS, *CLOCK_BOUNDS.column_names))
    return Cluster(
        lives=lives.lives(runs),
        leaders=events.leaders(led),
        events=happened,
        unavailable=windows,
        failovers=failovers,
        restarts=lives.restarts(runs, isr),
        settings=differing,
        clocks=pairs,
        stories=stories.stories(_story_rows(lake, worst, {row["file_id"]: row["path"] for row in files})),
        left_out={
            "events": events_left_out,
            "unavailable": windows_left_out,
            "failovers": failovers_left_out,
            "settings": settings_left_out,
            "clocks": pairs_left_out,
        },
    )


def _story_rows(lake: Lake, worst: dict[str, int], paths: dict[str, str]) -> stories.StoryRows:
    if not worst:
        return stories.StoryRows()
    ids = pa.array(list(worst), pa.string())
    operations = _rows(lake, DELAYED_OPERATIONS, *_OF_OPERATIONS, where=pc.field("operation_id").isin(ids))
    for row in operations:
        row["partitions"] = [_plain(part) for part in row["partitions"]]
    operations.sort(key=lambda row: worst[row["operation_id"]])
    bare = stories.StoryRows(
        operations=operations,
        requests=_requests_of(lake, operations),
        fetches=_fetches_of(lake, operations),
        paths=paths,
    )
    return stories.StoryRows(
        operations=operations,
        requests=bare.requests,
        fetches=bare.fetches,
        texts=_texts(lake, stories.lines_of(bare)),
        paths=paths,
    )


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """A partition of an operation; its times are not looked at."""
    return {name: value for name, value in part.items() if not isinstance(value, datetime)}


def _requests_of(lake: Lake, operations: Rows) -> Rows:
    numbers = pc.field("correlation_id").isin(_values(operations, "correlation_id", pa.int32()))
    where = numbers & pc.field("connection").isin(_values(operations, "connection", pa.string()))
    tables = [spec for spec in (silver.PRODUCE_REQUESTS, silver.REQUESTS) if is_searchable(lake, spec)]
    return [row for spec in tables for row in _rows(lake, spec, *_OF_REQUESTS, where=where)]


def _fetches_of(lake: Lake, operations: Rows) -> Rows:
    waited = [row for row in operations if row["closing_replica"] is not None and row["closing_topic"] is not None]
    if not waited or not is_searchable(lake, silver.REPLICA_FETCHES):
        return []
    where = (
        pc.field("topic").isin(_values(waited, "closing_topic", pa.string()))
        & pc.field("replica_id").isin(_values(waited, "closing_replica", pa.int32()))
        & (pc.field("dequeued_time") >= _instant(min(row["handled_time"] for row in waited) - stories.BEFORE_US))
        & (pc.field("dequeued_time") <= _instant(max(row["completed_time"] for row in waited) + stories.AFTER_US))
    )
    fetches = lake.rows(silver.REPLICA_FETCHES, *_OF_FETCHES, where=where)
    return small.plain_rows(fetches.filter(stories.near(fetches, waited)))


def _texts(lake: Lake, lines: set[tuple[str, int]]) -> dict[tuple[str, int], str]:
    if not lines or not is_searchable(lake, bronze.LOG_LINES):
        return {}
    where = pc.field("file_id").isin(pa.array(sorted({file_id for file_id, _ in lines}), pa.string()))
    where &= pc.field("byte_offset").isin(pa.array(sorted({offset for _, offset in lines}), pa.int64()))
    rows = _rows(lake, bronze.LOG_LINES, "file_id", "byte_offset", "message", where=where)
    keyed = (((row["file_id"], row["byte_offset"]), row["message"]) for row in rows)
    return {place: text for place, text in keyed if place in lines and text is not None}


def _values(rows: Iterable[dict[str, Any]], name: str, kind: pa.DataType) -> pa.Array:
    return pa.array(sorted({row[name] for row in rows if row[name] is not None}), kind)


def _instant(time_us: int) -> pa.Scalar:
    return pa.scalar(time_us, pa.timestamp("us", "UTC"))
