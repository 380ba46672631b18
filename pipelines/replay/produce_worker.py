"""One worker's part of the judgement of delayed produces, on plain Arrow data: a key is a request. Pure.

A request comes first, then the outcomes of its partitions, which the replay of partitions gave one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import arrow_schema, both, first_of, micros, shaped
from pipelines.base.blobs import Batches, Tables
from pipelines.base.groups import groups, named
from pipelines.kafka.context import History, Spans, value_at
from pipelines.lake.bounds import Bounds
from pipelines.replay import coordinators
from pipelines.replay.coarse import blurred, is_coarse
from pipelines.replay.judge import Tolerances
from pipelines.replay.late import OPERATION_SHAPES, table_of
from pipelines.replay.operations import produce_operation
from pipelines.replay.partition_events import operation_ids
from pipelines.replay.partition_worker import OUTCOME_TYPES

KEY_TYPES: Final = {"cluster_id": "string", "broker_id": "int", "operation_id": "string"}
_INSTANTS: Final = ("arrival_us", "handled_us", "completed_us", "line_us")
#: Columns of a request that gold repeats as they are.
_SAME: Final = {
    "api": "string",
    "client_id": "string",
    "connection": "string",
    "correlation_id": "int",
    "timeout_ms": "int",
    "transactional_id": "string",
}
REQUEST_TYPES: Final = {
    **_SAME,
    **dict.fromkeys(_INSTANTS, "long"),
    "wait_ms": "double",
    "topics": "array<string>",
    "partitions": "array<int>",
    "error_codes": "array<int>",
}
_OUTCOME_TYPES: Final = {
    "topic": "string",
    "partition": "int",
    **{f"outcome_{name}": data_type for name, data_type in OUTCOME_TYPES.items()},
}
COLUMNS: Final = (*REQUEST_TYPES, *_OUTCOME_TYPES)
ROW_TYPES: Final = {**KEY_TYPES, "rank": "int", **REQUEST_TYPES, **_OUTCOME_TYPES}
SCHEMA: Final = arrow_schema(ROW_TYPES)
#: A request before its outcomes; the last columns only make it total.
ORDER: Final = ("rank", "topic", "partition", "outcome_base_offset", "outcome_lowest_us")

_READ: Final = ("cluster_id", "broker_id", "connection", "correlation_id", "client_id", "time", "arrival_time")
_READ_MORE: Final = ("handled_time", "completed_time", "remote_time_ms", "partitions", "api", "transactional_id")
PRODUCE_COLUMNS: Final = (*_READ, *_READ_MORE, "acks", "timeout_ms")
COORDINATOR_COLUMNS: Final = (
    *(*_READ, *_READ_MORE, "error_codes", "group_id", "records", "assignments", "verify_only"),
)
#: As gold names what it repeats.
_INSTANT_NAMES: Final = {"arrival_us": "arrival_time", "line_us": "line_time"}


@dataclass(frozen=True)
class ProduceReader:
    """Makes rows; goes to the tasks that read them.

    Args:
        bounds: which requests are wanted.
        counts: partitions of the coordinators' topics.
    """

    bounds: Bounds
    counts: coordinators.Counts

    def produces(self, rows: pa.RecordBatch) -> Batches:
        """Produces that wait for their replicas, of ``silver.produce_requests``."""
        yield self._requests(rows.filter(pc.equal(rows.column("acks"), -1)))

    def requests(self, rows: pa.RecordBatch) -> Batches:
        """Requests of ``silver.requests`` whose answer waits for an append."""
        yield self._requests(coordinators.records(rows, self.counts))
        marks = both(
            pc.equal(rows.column("api"), "WRITE_TXN_MARKERS"),
            pc.is_valid(rows.column("broker_id")),
            pc.greater(pc.list_value_length(rows.column("partitions")), 0),
        )
        yield self._requests(rows.filter(marks))

    def _requests(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = self.bounds.of_rows(rows, micros(rows.column("handled_time")))
        names = rows.schema.names
        parts = rows.column("partitions")
        items = pc.list_flatten(parts)
        offsets = pc.subtract(parts.offsets, parts.offsets[0])
        lists = {
            column: pa.ListArray.from_arrays(offsets, pc.struct_field(items, name))
            for column, name in (("topics", "topic"), ("partitions", "partition"), ("error_codes", "error_code"))
        }
        values = {name: rows.column(name) for name in _SAME if name in names} | lists
        values |= {name: micros(rows.column(f"{name.removesuffix('_us')}_time")) for name in _INSTANTS[:-1]}
        values |= {"line_us": micros(rows.column("time")), "wait_ms": rows.column("remote_time_ms")}
        key = {
            "cluster_id": rows.column("cluster_id"),
            "broker_id": first_of(rows.column("broker_id"), pa.scalar(-1, pa.int32())),
            "operation_id": operation_ids(rows),
        }
        return shaped(SCHEMA, rows.num_rows, {**key, "rank": 0, **values})


def outcomes(rows: pa.RecordBatch) -> Batches:
    """Outcomes, as the fold of partitions gives them (`pipelines.replay.partition_worker.OUTCOMES`)."""
    values = {f"outcome_{name}": rows.column(name) for name in OUTCOME_TYPES}
    place = {name: rows.column(name) for name in ("cluster_id", "broker_id", "topic", "partition")}
    yield shaped(SCHEMA, rows.num_rows, {**place, "operation_id": rows.column("request_id"), "rank": 1, **values})


class ProduceWorker:
    """Puts each request together with its outcomes, and judges it.

    Args:
        limits: how requests are judged.
        eras: the versions that each (cluster, broker) ran, by when it began to.
        coarse: spans in which times are whole seconds.
    """

    def __init__(self, limits: Tolerances, eras: Mapping[tuple[str, int], History], coarse: Spans) -> None:
        self._limits = limits
        self._eras = eras
        self._coarse = coarse

    def __call__(self, batches: Batches) -> Batches:
        """For ``mapInArrow``: `KEY_TYPES` and `COLUMNS`; gives blobs of `OPERATION_SHAPES`."""
        tables = Tables(OPERATION_SHAPES)
        for (cluster_id, broker_id, operation_id), rows in groups(batches, len(KEY_TYPES), named(COLUMNS)):
            request: dict[str, Any] | None = None
            outcomes: list[dict[str, Any]] = []
            for values in rows:
                if values["topics"] is not None:
                    request = request or values  # a line can stand in two overlapping files
                else:
                    outcome = {name: values[f"outcome_{name}"] for name in OUTCOME_TYPES}
                    outcomes.append({"topic": values["topic"], "partition": values["partition"], **outcome})
            if request is None:
                continue
            row = {"cluster_id": cluster_id, "broker_id": broker_id, "operation_id": operation_id}
            row |= {name: request[name] for name in (*_SAME, "wait_ms")}
            row |= {name: request[at] for at, name in _INSTANT_NAMES.items()}
            row |= {f"{name}_time": request[f"{name}_us"] for name in ("handled", "completed")}
            parts = zip(request["topics"], request["partitions"], request["error_codes"], strict=True)
            asked = [{"topic": topic, "partition": number, "error_code": error} for topic, number, error in parts]
            if is_coarse(self._coarse, (cluster_id, broker_id), request["handled_us"], request["line_us"]):
                outcomes = [blurred(outcome) for outcome in outcomes]
            version = value_at(self._eras.get((cluster_id, broker_id), ()), request["line_us"])
            row |= produce_operation(row | {"partitions": asked}, outcomes, self._limits, version)
            tables.add_named(table_of(row), row)
            if tables.full:
                yield from tables.take()
        yield from tables.rest()
