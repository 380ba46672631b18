"""Latency stage: phases of every request, and replicas that acks=all appends waited for."""

from __future__ import annotations

from datetime import datetime
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from highwater.pipelines.base.arrow_rows import first_of, look_up, shaped, when
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.base.config import LatencyConfig
from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.base.values import instant
from highwater.pipelines.kafka.waits import KIND_OF, OTHER
from highwater.pipelines.lake.folds import Fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, map_batches
from highwater.pipelines.lake.staged import Beside, Staged
from highwater.pipelines.timing.latency import blame
from highwater.schemas import flow, gold, silver
from highwater.schemas.gold import REQUEST_PHASES
from highwater.schemas.table import TableSpec

#: Parts of ``totalTimeMs``, as ``RequestChannel.Request.updateRequestMetrics`` measures them.
_PHASES = (
    "request_queue_time_ms",
    "local_time_ms",
    "remote_time_ms",
    "throttle_time_ms",
    "response_queue_time_ms",
    "send_time_ms",
)
#: Columns that silver and gold share.
_SAME = (
    *("cluster_id", "arrival_time", "api", "connection", "correlation_id", "client_id", "total_time_ms"),
    *_PHASES,
)
#: A remote time below this is the handler's own.
_WAITED_MS = 1.0
_ONLY = {silver.PRODUCE_REQUESTS.name: "acks", silver.FETCH_REQUESTS.name: "replica_id"}
#: Tables of requests.
TABLES = (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS)


def list_columns(spec: TableSpec) -> tuple[str, ...]:
    """Return the columns of a table of requests that `make_phases` needs."""
    only = _ONLY.get(spec.name)
    return (*_SAME, "broker_id", "time", *([only] if only else []))


def make_phases(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of ``gold.request_phases``, one per request. Durations are milliseconds."""
    whole = reduce(pc.add, [rows[name] for name in _PHASES])
    # Rounded to whole microseconds; a zero is never negative.
    rest_us = pc.round(pc.multiply(pc.subtract(rows["total_time_ms"], whole), 1000))
    rest = pc.add(pc.divide(rest_us, 1000), 0.0)
    values = {name: rows[name] for name in rows.schema.names if name not in ("broker_id", "time")}
    values |= {"broker_id": first_of(rows["broker_id"], -1), "line_time": rows["time"], "unaccounted_ms": rest}
    kinds = pc.fill_null(look_up(KIND_OF, rows["api"], pa.string()), OTHER)
    values["waited_for"] = when(
        pc.greater_equal(rows["remote_time_ms"], _WAITED_MS), kinds, pa.scalar(None, pa.string())
    )
    return shaped(REQUEST_PHASES.arrow_schema, rows.num_rows, values)


def list_request_scans() -> list[Reading]:
    """Return the scans that make ``gold.request_phases``: every completed request in silver."""
    return [Reading(spec, list_columns(spec), map_batches(make_phases)) for spec in TABLES]


def deduplicate_requests(rows: DataFrame) -> DataFrame:
    """Drop duplicate rows: a line in two files gives two equal rows."""
    return rows.dropDuplicates(list(gold.REQUEST_PHASES.keys))


def has_requests(lake: Lake) -> bool:
    """Return True if a request log was parsed."""
    return any(lake.has_rows(spec) for spec in TABLES)


def make_blame_fold(lake: Lake, config: LatencyConfig, since: datetime | None, run_id: str) -> Beside:
    """Return the stage that replaces ``gold.replica_blame`` from the interval of `since` on. None replaces all."""
    first = None
    if since is not None:
        length_us = config.interval_s * SECOND_US
        since_us = int(since.timestamp() * SECOND_US)
        first = pa.scalar(instant(since_us // length_us * length_us), pa.timestamp("us", "UTC"))
    where = None if first is None else pc.field("arrival_time") >= first
    rows_of = map_batches(blame.select_appends, config.interval_s)
    reading = Reading(gold.DELAYED_OPERATIONS, blame.OPERATION_COLUMNS, rows_of, where)
    rows = Keyed(shape(blame.ROW_TYPES), flow.key("blame"), blame.ORDER, blame.ORDER)
    spec = gold.REPLICA_BLAME

    def commit(made: Staged) -> None:
        files = made.files(spec.name)
        if first is None:
            lake.replace_files(spec, files, run_id)
        else:
            lake.replace_part(spec, files, pc.field("interval_start") >= first, run_id)

    return Beside(Fold([reading], rows, blame.BlameWorker(config.interval_s, config.slow_ms)), [spec], commit)
