"""Where the time of each request went: rows of ``gold.request_phases`` from rows of silver. Pure."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import first_of, look_up, shaped, when
from pipelines.kafka.waits import KIND_OF, OTHER
from schemas import silver
from schemas.gold import REQUEST_PHASES
from schemas.table import TableSpec

#: Parts of ``totalTimeMs``, as ``RequestChannel.Request.updateRequestMetrics`` measures them.
_PHASES = (
    "request_queue_time_ms",
    "local_time_ms",
    "remote_time_ms",
    "throttle_time_ms",
    "response_queue_time_ms",
    "send_time_ms",
)
#: Columns of silver that are those of gold.
_SAME = (
    *("cluster_id", "arrival_time", "api", "connection", "correlation_id", "client_id", "total_time_ms"),
    *_PHASES,
)
#: A remote time below this is the handler's own.
_WAITED_MS = 1.0
_ONLY = {silver.PRODUCE_REQUESTS.name: "acks", silver.FETCH_REQUESTS.name: "replica_id"}
#: Tables of requests.
TABLES = (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS)


def columns_of(spec: TableSpec) -> tuple[str, ...]:
    """Columns that `phases` takes of a table of requests."""
    only = _ONLY.get(spec.name)
    return (*_SAME, "broker_id", "time", *([only] if only else []))


def phases(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of ``gold.request_phases``, one for each request; milliseconds."""
    whole = reduce(pc.add, [rows[name] for name in _PHASES])
    # In whole microseconds, of which the nearest number of milliseconds is taken; a zero is never negative.
    rest_us = pc.round(pc.multiply(pc.subtract(rows["total_time_ms"], whole), 1000))
    rest = pc.add(pc.divide(rest_us, 1000), 0.0)
    values = {name: rows[name] for name in rows.schema.names if name not in ("broker_id", "time")}
    values |= {"broker_id": first_of(rows["broker_id"], -1), "line_time": rows["time"], "unaccounted_ms": rest}
    kinds = pc.fill_null(look_up(KIND_OF, rows["api"], pa.string()), OTHER)
    values["waited_for"] = when(
        pc.greater_equal(rows["remote_time_ms"], _WAITED_MS), kinds, pa.scalar(None, pa.string())
    )
    return shaped(REQUEST_PHASES.arrow_schema, rows.num_rows, values)
