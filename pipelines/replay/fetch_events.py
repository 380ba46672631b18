"""Fetch requests, and what wakes them, as events of the fold of sessions, on Arrow's columns. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import Value, arrow_schema, first_of, micros, shaped
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.connection_rows import data_fetches
from highwater.pipelines.replay.partition_events import operation_ids
from highwater.pipelines.replay.session_worker import KEY_TYPES
from highwater.schemas import session_events as s
from highwater.schemas.fields import map_spark_types

#: Columns of an event after its key and rank. The columns of its origin come last.
EVENT_TYPES = map_spark_types(s.SessionEvent)
ROW_TYPES = {**KEY_TYPES, "rank": "int", **EVENT_TYPES}
SCHEMA = arrow_schema(ROW_TYPES)
#: Order of events of one connection. The last columns only make it total, whatever the order of the files.
ORDER = ("time_us", "rank", "latest_us", "operation_id", "topic", "partition", "base_offset")

FETCH_COLUMNS = (
    *("cluster_id", "broker_id", "connection", "correlation_id", "client_id", "time", "remote_time_ms"),
    *("arrival_time", "dequeued_time", "handled_time", "completed_time", "replica_id", "isolation_level"),
    *("session_epoch", "min_bytes", "max_wait_ms", "error_code", "partitions", "forgotten", "responses"),
)
_ALL_BYTES: Final = 2_147_483_647
_NO_EPOCH: Final = -(1 << 31)

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class FetchReader:
    """Converts rows to events of fetch sessions. Sent to the Spark tasks that read the rows.

    Args:
        bounds: by broker, the time from which fetches are wanted.
    """

    bounds: Bounds

    def fetches(self, rows: pa.RecordBatch) -> Batches:
        """Convert rows of ``silver.fetch_requests`` to `SessionEvent` rows."""
        rows = data_fetches(self.bounds.filter_rows(rows, micros(rows.column("dequeued_time"))))
        if not rows.num_rows:
            return
        asked, forgotten, answered = (_Items(rows.column(name)) for name in ("partitions", "forgotten", "responses"))
        size_bytes = _fill_numbers(answered.field("size_bytes"), 0)
        filled = size_bytes > 0
        stable, high_watermark = (
            _fill_numbers(answered.field(f"{name}"), -1) for name in ("last_stable_offset", "high_watermark")
        )
        committed_only = _fill_numbers(rows.column("isolation_level"), 0) == 1
        held = committed_only[answered.parents] & (stable >= 0) & (stable < high_watermark)
        response_bytes = np.bincount(answered.parents, weights=size_bytes, minlength=rows.num_rows).astype(np.int64)
        yield _make_event(
            rows,
            s.FETCH,
            time_us=micros(rows.column("dequeued_time")),
            latest_us=micros(rows.column("handled_time")),
            operation_id=operation_ids(rows),
            **{name: rows.column(name) for name in ("replica_id", "isolation_level", "session_epoch", "min_bytes")},
            max_wait_ms=rows.column("max_wait_ms"),
            topics=asked.lists(asked.topics),
            partitions=asked.lists(asked.field("partition")),
            offsets=asked.lists(pc.fill_null(asked.field("fetch_offset"), 0)),
            max_bytes=asked.lists(pc.fill_null(asked.field("max_bytes"), _ALL_BYTES)),
            leader_epoch=_find_highest(asked, "current_leader_epoch"),
            forgotten_topics=forgotten.lists(forgotten.topics),
            forgotten_partitions=forgotten.lists(forgotten.field("partition")),
            completed_us=micros(rows.column("completed_time")),
            error_codes=_collect_errors(rows.column("error_code"), answered),
            response_bytes=pa.array(response_bytes, mask=_is_untold(rows, answered)),
            filled_topics=answered.lists(answered.topics, filled),
            filled_partitions=answered.lists(answered.field("partition"), filled),
            told_topics=answered.lists(answered.topics, held),
            told_partitions=answered.lists(answered.field("partition"), held),
            told_stable=answered.lists(answered.field("last_stable_offset"), held),
            at_once_reason=_explain_immediate(rows, asked, answered, response_bytes),
            sequence=rows.column("correlation_id"),
            arrival_us=micros(rows.column("arrival_time")),
            line_us=micros(rows.column("time")),
            client_id=rows.column("client_id"),
            correlation_id=rows.column("correlation_id"),
            wait_ms=rows.column("remote_time_ms"),
        )


def _is_untold(rows: pa.RecordBatch, answered: _Items) -> Mask:
    """Return a mask of fetches whose response size is unknown.

    Either a partition's size is not logged, or a full (non-session) response lists no partition.
    """
    untold: Mask = answered.any(pc.is_null(answered.field("size_bytes")).to_numpy(zero_copy_only=False))
    is_full: Mask = _fill_numbers(rows.column("session_epoch"), -1) <= 0
    is_empty: Mask = answered.counts == 0
    untold[is_empty & is_full] = True
    return untold


def wakes(rows: pa.RecordBatch) -> Batches:
    """Convert the `SessionWake` rows of the partition replay to session events: what may complete a waiting fetch."""
    yield shaped(SCHEMA, rows.num_rows, {name: rows.column(name) for name in rows.schema.names})


def names(rows: pa.RecordBatch) -> Batches:
    """Yield an event with the name of each topic that a connection's fetches identify by id."""
    rows = rows.filter(pc.not_equal(rows.column("session_topic"), rows.column("topic")))
    if rows.num_rows:
        yield _make_event(rows, s.NAMED, time_us=-1, topic=rows.column("session_topic"), name=rows.column("topic"))


def _make_event(rows: pa.RecordBatch, kind: str, **values: Value) -> pa.RecordBatch:
    key = {name: rows.column(name) for name in KEY_TYPES}
    return shaped(SCHEMA, rows.num_rows, {**key, "rank": s.RANK.get(kind, -1), "kind": kind, **values})


class _Items:
    """The structs in a column of lists, flattened.

    Attributes:
        parents: for each struct, the index of its row.
    """

    def __init__(self, lists: pa.Array) -> None:
        self._items = pc.list_flatten(lists)
        self._row_count = len(lists)
        self.parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
        self.counts = np.bincount(self.parents, minlength=self._row_count)

    def field(self, name: str) -> pa.Array:
        return pc.struct_field(self._items, name)

    @property
    def topics(self) -> pa.Array:
        """Return the topics as the connection's fetches identify them: by id since version 13, by name before."""
        return first_of(self.field("topic_id"), self.field("topic"))

    def lists(self, values: pa.Array, where: Mask | None = None) -> pa.Array:
        """Return the items' values as one list per row. With a mask `where`, only of selected items."""
        counts = self.counts
        if where is not None:
            values = values.filter(pa.array(where))
            counts = np.bincount(self.parents[where], minlength=self._row_count)
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), values)

    def any(self, where: Mask) -> Mask:
        """Return a mask of the rows in which `where` selects any item."""
        result = np.zeros(self._row_count, dtype=bool)
        result[self.parents[where]] = True
        return result


def _fill_numbers(column: pa.Array, null: int) -> np.ndarray[Any, np.dtype[Any]]:
    values: np.ndarray[Any, np.dtype[Any]] = pc.fill_null(column, null).to_numpy(zero_copy_only=False)
    return values


def _find_highest(items: _Items, name: str) -> pa.Array:
    """Return the greatest value of an item field per row. Null for a row without values."""
    highest = np.full(len(items.counts), _NO_EPOCH, dtype=np.int64)
    np.maximum.at(highest, items.parents, _fill_numbers(items.field(name), _NO_EPOCH))
    return pa.array(highest, mask=highest == _NO_EPOCH)


def _collect_errors(error_code: pa.Array, answered: _Items) -> pa.Array:
    """Return the distinct error codes of each response, without 0: first of its partitions, then its own."""
    codes: list[tuple[int, ...]] = [()] * len(error_code)
    of_items = _fill_numbers(answered.field("error_code"), 0)
    for at in np.flatnonzero(of_items).tolist():
        row = int(answered.parents[at])
        codes[row] = (*codes[row], int(of_items[at]))
    own_codes = _fill_numbers(error_code, 0)
    for row in np.flatnonzero(own_codes).tolist():
        codes[row] = (*codes[row], int(own_codes[row]))
    return pa.array([tuple(dict.fromkeys(some)) for some in codes], pa.list_(pa.int32()))


def _explain_immediate(
    rows: pa.RecordBatch, asked: _Items, answered: _Items, response_bytes: np.ndarray[Any, np.dtype[np.int64]]
) -> pa.Array:
    """Return the reason why each fetch cannot wait (``ReplicaManager.fetchMessages``). Null if it can.

    Args:
        asked: partitions of the requests.
        answered: partitions of the responses.
        response_bytes: size of each response.
    """
    max_wait_ms, session_epoch = (_fill_numbers(rows.column(name), 1) for name in ("max_wait_ms", "session_epoch"))
    min_bytes = _fill_numbers(rows.column("min_bytes"), _ALL_BYTES)
    reasons = (
        (_fill_numbers(rows.column("error_code"), 0) != 0, o.SESSION_ERROR),
        (answered.any(_fill_numbers(answered.field("error_code"), 0) != 0), o.ERROR),
        (
            answered.any(pc.is_valid(answered.field("diverging_end_offset")).to_numpy(zero_copy_only=False)),
            o.DIVERGING_EPOCH,
        ),
        (answered.any(_fill_numbers(answered.field("preferred_read_replica"), -1) >= 0), o.PREFERRED_REPLICA),
        (max_wait_ms <= 0, o.NO_WAIT),
        ((session_epoch <= 0) & (asked.counts == 0), o.NO_PARTITIONS),
        ((answered.counts > 0) & (response_bytes >= min_bytes), o.AT_ONCE),
    )
    chosen: list[str | None] = [None] * rows.num_rows
    open_rows = np.ones(rows.num_rows, dtype=bool)
    for condition, reason in reasons:
        for row in np.flatnonzero(condition & open_rows).tolist():
            chosen[row] = reason
        open_rows &= ~condition
    consumers = open_rows & (_fill_numbers(rows.column("replica_id"), 0) < 0)
    for row in np.flatnonzero(_find_beyond_end(asked, answered, consumers)).tolist():
        chosen[row] = o.BEYOND_END
    return pa.array(chosen, pa.string())


def _find_beyond_end(asked: _Items, answered: _Items, consumers: Mask) -> Mask:
    """Return a mask of consumers' requests with an offset beyond the high watermark of their response."""
    high_watermark = _fill_numbers(answered.field("high_watermark"), -1)
    answers = (
        consumers[answered.parents] & (high_watermark >= 0) & (_fill_numbers(answered.field("error_code"), -1) == 0)
    )
    asks = consumers[asked.parents]
    topics = pa.concat_arrays([items.topics for items in (asked, answered)])
    topics = topics.dictionary_encode("encode").indices.to_numpy()
    partitions = np.concatenate([_fill_numbers(items.field("partition"), 0) for items in (asked, answered)])
    _, partitions = np.unique(partitions, return_inverse=True)
    parents = np.concatenate([asked.parents, answered.parents])
    topic_count, partition_count = (int(numbers.max(initial=0)) + 1 for numbers in (topics, partitions))
    places = (parents * topic_count + topics) * partition_count + partitions
    asked_places, answered_places = places[: len(asks)][asks], places[len(asks) :][answers]
    result = np.zeros(len(consumers), dtype=bool)
    if len(answered_places):
        order = np.argsort(answered_places, kind="stable")  # of a place that is answered twice the last answer counts
        at = np.searchsorted(answered_places[order], asked_places, side="right") - 1
        last_answers = order[np.maximum(at, 0)]
        is_beyond = _fill_numbers(asked.field("fetch_offset"), 0)[asks] > high_watermark[answers][last_answers]
        result[asked.parents[asks][(at >= 0) & (answered_places[last_answers] == asked_places) & is_beyond]] = True
    return result
