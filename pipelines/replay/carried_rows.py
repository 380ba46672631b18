"""Rows of ``state.folds`` converted to replay input, and replay output converted to rows of ``state.folds``. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.base.arrow_rows import arrow_schema, is_in, shaped
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import FROZEN
from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import connection_rows, produce_worker
from highwater.pipelines.replay.connections import GONE_US
from highwater.pipelines.replay.partition_events import ROW_TYPES as EVENT_TYPES
from highwater.pipelines.replay.partition_worker import CARRIED_WAKE, KEY_TYPES, OUTCOME_TYPES, RANK, WAKE_TYPES
from highwater.pipelines.replay.session_worker import KEY_TYPES as SESSION_KEY_TYPES
from highwater.pipelines.replay.wakes import LOCAL_START, ROLL, STABLE
from highwater.schemas import connection_rows as c
from highwater.schemas.state import FOLDS

#: As Spark has them between two steps: every column may be null.
FOLDS_SCHEMA: Final = to_arrow_schema(FOLDS.worker_schema, timezone="UTC")
_EVENTS: Final = arrow_schema(EVENT_TYPES)
_PARTITION_STATES: Final = arrow_schema(KEY_TYPES | {FROZEN: "binary"})
_SESSION_STATES: Final = arrow_schema(SESSION_KEY_TYPES | {FROZEN: "binary"})
_OUTCOMES: Final = arrow_schema(KEY_TYPES | OUTCOME_TYPES)
#: A wake, and whether a fetch that is not final may wait for it.
LEFT_WAKE_TYPES: Final = KEY_TYPES | WAKE_TYPES | {"awaited": "boolean"}
LEFT_WAKES: Final = shape(LEFT_WAKE_TYPES)
_LEFT_WAKES: Final = arrow_schema(LEFT_WAKE_TYPES)
_FETCHES: Final = arrow_schema(
    {"cluster_id": "string", "broker_id": "int", "connection": "string", "replica_id": "int", "correlation_id": "int"}
    | dict.fromkeys(("arrival_us", "dequeued_us", "handled_us", "completed_us", "sent_us"), "long")
    | {"carried_chain_no": "int"}
)
_WATCHES: Final = arrow_schema(
    {"cluster_id": "string", "broker_id": "int", "connection": "string", "session_topic": "string", "topic": "string"}
    | {"topic_id": "string", "partition": "int", "replica_id": "int", "isolation_level": "int"}
    | {"from_us": "long", "went_us": "long"}
)
_PARTITION: Final = ("cluster_id", "broker_id", "topic", "partition")

Rows = Iterator[pa.RecordBatch]


# ------------------------------------------------------------- input that a run resumes from


def partition_states(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the serialized replay states of partitions, from rows of ``state.folds``."""
    return shaped(_PARTITION_STATES, rows.num_rows, {**_split_name(rows), FROZEN: rows.column("state")})


def session_states(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the serialized replay states of connections, from rows of ``state.folds``."""
    values = {name: rows.column(name) for name in ("cluster_id", "broker_id")}
    values |= {"connection": rows.column("name"), FROZEN: rows.column("state")}
    return shaped(_SESSION_STATES, rows.num_rows, values)


def wakes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Convert saved wakes (events that may complete waiting fetches) to events that sort first in their partitions."""
    values = {"kind": CARRIED_WAKE, "rank": RANK[CARRIED_WAKE], "time_us": -1, "carried": rows.column("row")}
    return shaped(_EVENTS, rows.num_rows, {**_split_name(rows), **values})


def _split_name(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    place = pc.extract_regex(rows.column("name"), r"^(?P<topic>.*)-(?P<partition>\d+)$")
    return {
        "cluster_id": rows.column("cluster_id"),
        "broker_id": rows.column("broker_id"),
        "topic": pc.struct_field(place, "topic"),
        "partition": pc.struct_field(place, "partition").cast(pa.int32()),
    }


def outcomes(rows: pa.RecordBatch) -> Rows:
    """Yield the saved partition results of requests that a later run may complete."""
    return produce_worker.outcomes(_load_rows(rows, _OUTCOMES))


def last_fetches(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the last fetch of each connection before the checkpoint."""
    return _make_connection_rows(_load_rows(rows, _FETCHES), c.FETCH)


def watches(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return which partitions each connection fetched before the checkpoint, and from when until when."""
    loaded = _load_rows(rows, _WATCHES)
    names = ["until_us" if name == "went_us" else name for name in loaded.schema.names]
    return _make_connection_rows(loaded.rename_columns(names), c.WATCH)


def _make_connection_rows(rows: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    values = {name: rows.column(name) for name in rows.schema.names}
    return shaped(connection_rows.SCHEMA, rows.num_rows, {**values, "kind": kind, "rank": c.RANK[kind]})


def _load_rows(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    values = [orjson.loads(text) for text in rows.column("row").to_pylist()]
    arrays = [pa.array([value.get(field.name) for value in values], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# ------------------------------------------------------------- state for the next run


@dataclass(frozen=True)
class OpenRows:
    """Selects the rows of a replay that the next run needs. Sent to the Spark tasks that read the rows.

    Args:
        brokers: (cluster, broker) with a log that is final up to some time.
        sessions: by broker, the time up to which fetches are final.
        waiting: by broker, the time up to which requests are final.
    """

    brokers: Collection[Broker]
    sessions: Bounds
    waiting: Bounds

    def watches(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows (connection, partition, time range) whose connection may still have an unfinished fetch."""
        rows = self._select_brokers(rows)
        return rows.filter(self.sessions.mask_rows(rows, pc.add(rows.column("went_us"), GONE_US))).drop_columns(
            ["until_us"]
        )

    def outcomes(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return final partition results of requests that may get further results in the next run."""
        rows = self._select_brokers(_select_final(rows))
        return rows.filter(self.waiting.mask_rows(rows, rows.column("handled_us")))

    def carried_outcomes(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the same rows as `outcomes`, from rows that were loaded from an earlier run."""
        return self.outcomes(_load_rows(rows, _OUTCOMES))

    def wakes(self, rows: pa.RecordBatch) -> Rows:
        """Yield final wakes (events that complete fetches) that an unfinished fetch may need. `wakes_left` filters
        further.
        """
        rows = self._select_brokers(_select_final(rows))
        committed_us = pc.max_element_wise(rows.column("appended_lowest_us"), rows.column("committed_lowest_us"))
        awaited = self.sessions.mask_rows(rows, committed_us)
        values = {name: rows.column(name) for name in rows.schema.names} | {"awaited": awaited}
        few = pc.or_(awaited, is_in(rows.column("wake"), (ROLL, STABLE, LOCAL_START)))
        yield shaped(_LEFT_WAKES, rows.num_rows, values).filter(few)

    def carried_wakes(self, rows: pa.RecordBatch) -> Rows:
        """Yield the same rows as `wakes`, from rows that were loaded from an earlier run."""
        return self.wakes(_load_rows(rows, arrow_schema(KEY_TYPES | WAKE_TYPES)))

    def _select_brokers(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        places = zip(rows.column("cluster_id").to_pylist(), rows.column("broker_id").to_pylist(), strict=True)
        return rows.filter(pa.array([place in self.brokers for place in places], pa.bool_()))


def _select_final(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that are final. Rows loaded from an earlier run have no column ``final`` and are all final."""
    if "final" not in rows.schema.names:
        return rows
    return rows.filter(pc.fill_null(rows.column("final"), False)).drop_columns(["final"])


def wakes_left(batches: Rows) -> Rows:
    """Filter the wakes of one task to those that `wakes_to_carry` may select."""
    rows = pa.Table.from_batches(batches, _LEFT_WAKES)
    yield from rows.take(_select_left(rows, with_stable=True)).to_batches()


def wakes_to_carry(rows: pa.Table) -> pa.Table:
    """Return the wakes that a fetch may still wait for, and the segment rolls from which a later fetch learns its
    segment.

    Kept rolls: the newest of a partition, the newest that the last stable offset has passed, and all that it has not
    passed. The latest start of the broker's local log is also kept.

    Args:
        rows: wakes with a column ``awaited``, see `_LEFT_WAKES`.
    """
    return rows.take(_select_left(rows, with_stable=False)).drop_columns(["awaited"])


def _select_left(rows: pa.Table, with_stable: bool) -> pa.Array:
    names = (*_PARTITION, "wake", "wake_offset", "unstable", "awaited", "appended_lowest_us")
    *places, kinds, offsets, unstable, awaited, since_us = (rows.column(name).to_pylist() for name in names)
    partitions = list(zip(*places, strict=True))
    stable: dict[Any, int] = defaultdict(lambda: -1)
    for partition, kind, offset in zip(partitions, kinds, offsets, strict=True):
        if kind == STABLE:
            stable[partition] = max(stable[partition], offset)
    waits = [
        bool(held) and offset > stable[partition]
        for partition, offset, held in zip(partitions, offsets, unstable, strict=True)
    ]
    begun_us: dict[Any, int] = {}
    for partition, kind, at_us in zip(partitions, kinds, since_us, strict=True):
        if kind == LOCAL_START:
            begun_us[partition] = max(begun_us.get(partition, -1), at_us)
    newest: dict[Any, int] = {}
    for number, group in enumerate(zip(partitions, unstable, strict=True)):
        if kinds[number] == ROLL and not waits[number]:
            newest[group] = max(newest.get(group, -1), offsets[number])

    def is_left(number: int) -> bool:
        if awaited[number]:
            return True
        if kinds[number] == ROLL:
            return waits[number] or bool(offsets[number] == newest[partitions[number], unstable[number]])
        if kinds[number] == LOCAL_START:
            return bool(since_us[number] == begun_us[partitions[number]])
        return with_stable and kinds[number] == STABLE and bool(offsets[number] == stable[partitions[number]])

    return pa.array([number for number in range(rows.num_rows) if is_left(number)], pa.int64())


def carried_folds(rows: pa.RecordBatch, kind: str, run_number: int) -> pa.RecordBatch:
    """Return serialized replay states as rows of ``state.folds``.

    Args:
        kind: what the states belong to: partitions or connections.
    """
    last_us = rows.column("last_us")
    last_time = pc.if_else(pc.equal(last_us, 0), pa.scalar(None, pa.int64()), last_us)
    values = {"pending": rows.column("pending"), "last_time": last_time, "state": rows.column("frozen")}
    return _make_state_rows(rows, kind, run_number, values)


def carried_rows(rows: pa.RecordBatch | pa.Table, kind: str, run_number: int) -> pa.RecordBatch:
    """Return rows of a table as rows of ``state.folds``: JSON without null values."""
    texts = [
        orjson.dumps({name: value for name, value in row.items() if value is not None}).decode()
        for row in rows.to_pylist()
    ]
    return _make_state_rows(rows, kind, run_number, {"pending": 0, "row": pa.array(texts, pa.string())})


def _make_state_rows(
    rows: pa.RecordBatch | pa.Table, kind: str, run_number: int, values: Mapping[str, Any]
) -> pa.RecordBatch:
    broker = {name: rows.column(name) for name in ("cluster_id", "broker_id")}
    if "connection" in rows.schema.names:
        name = rows.column("connection")
    else:
        name = pc.binary_join_element_wise(rows.column("topic"), rows.column("partition").cast(pa.string()), "-")
    values = {**broker, "run_number": run_number, "kind": kind, "name": name, **values}
    return shaped(FOLDS_SCHEMA, rows.num_rows, values)
