"""Rows of silver as events of the leader's fold, on Arrow's columns: what needs no row before or after it. Pure.

What does is seen by the folds of connections (`pipelines.replay.connections`) and of brokers
(`pipelines.replay.broker_account`), whose events have the same columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import md5

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import (
    Value,
    arrow_schema,
    both,
    explode,
    fill_topic_names,
    first_of,
    is_in,
    look_up,
    micros,
    shaped,
    when,
)
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.kafka.connections import parse_remote_hosts
from highwater.pipelines.kafka.context import Spans
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import coordinators
from highwater.pipelines.replay import isr_events as i
from highwater.pipelines.replay.partition_worker import KEY_TYPES, RANK, WATCH
from highwater.pipelines.replay.watches import WATCH_TYPES
from highwater.schemas import events as e
from highwater.schemas.fields import map_spark_types

#: A marker is a batch of one control record: 61 bytes of header, 17 of record (``EndTransactionMarker``, KIP-98).
MARKER_BYTES = 78

#: Columns of an event after its key, and the saved state of an earlier run.
EVENT_TYPES = map_spark_types(e.Event)
ROW_TYPES = {**KEY_TYPES, "rank": "int", **EVENT_TYPES, "carried": "binary", **WATCH_TYPES}
SCHEMA = arrow_schema(ROW_TYPES)


@dataclass(frozen=True)
class EventReader:
    """Converts rows of silver to events of partitions. Sent to the Spark tasks that read the rows.

    Args:
        bounds: by broker, the time from which events are wanted.
        silent: (start, end) times in which a broker's version logs no transactional ids of produces.
        counts: partition counts of the coordinators' internal topics.
        topic_names: topic name by (cluster, topic id).
        producers: transactional ids by (cluster, producer id).
        clients: by (cluster, client id, host), the only transactional id of that client.
        tier_max: highest log detail to use (T0 to T3).
        chain_ends: arrival of the last fetch of each chain, by ``<cluster>|<broker>|<chain>``.
    """

    bounds: Bounds
    silent: Spans = field(default_factory=dict)
    counts: coordinators.Counts = coordinators.BY_DEFAULT
    topic_names: Mapping[tuple[str, str], str] = field(default_factory=dict)
    producers: Mapping[tuple[str, int], str] = field(default_factory=dict)
    clients: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    tier_max: str = "T3"
    chain_ends: Mapping[str, int] = field(default_factory=dict)

    def rolls(self, rows: pa.RecordBatch) -> Batches:
        """Yield an event for each new log segment."""
        at = micros(rows.column("time"))
        lasted_us = pc.add(pc.multiply(rows.column("duration_ms").cast(pa.int64()), 1000), TICK_US)
        yield from self._make_events(
            rows, e.ROLL, time_us=at, earliest_us=pc.subtract(at, lasted_us), offset=rows.column("base_offset")
        )

    def tier(self, rows: pa.RecordBatch) -> Batches:
        """Yield events for local log start offsets and failed reads of remote storage (KIP-405)."""
        # Most logs that are loaded have nothing in a tier.
        is_whole = pc.equal(rows.column("offset"), rows.column("log_start_offset"))
        rows = rows.filter(pc.invert(pc.fill_null(is_whole, False)))
        at = micros(rows.column("time"))
        for event, kind in (("local_start", e.LOCAL_START), ("read_failed", e.TIER_FAILED)):
            is_so = _is(rows, "event", event)
            some, then = rows.filter(is_so), at.filter(is_so)
            yield from self._make_events(some, kind, time_us=then, earliest_us=then, offset=some.column("offset"))

    def checks(self, rows: pa.RecordBatch) -> Batches:
        """Yield events for TRACE lines about the completion check of a delayed produce."""
        rows = rows.filter(both(_is(rows, "operation", "produce"), is_in(rows.column("step"), ("initial", "progress"))))
        at = micros(rows.column("time"))
        for step, kind in (("initial", e.INITIAL_STATUS), ("progress", e.PROGRESS)):
            of_step = pc.equal(rows.column("step"), step)
            some = rows.filter(of_step)
            yield from self._make_events(
                some,
                kind,
                time_us=at.filter(of_step),
                earliest_us=at.filter(of_step),
                offset=some.column("start_offset"),
                required_offset=some.column("required_offset"),
                isr=_get_ids(some.column("awaiting"), "replica_id"),
            )

    def appends(self, rows: pa.RecordBatch) -> Batches:
        """Yield appends from 'N written to log' lines, which show the required offset exactly."""
        rows = rows.filter(both(_is(rows, "source", "replica_manager"), pc.is_valid(rows.column("last_offset"))))
        at = micros(rows.column("time"))
        yield from self._make_events(
            rows,
            e.INITIAL_STATUS,
            time_us=at,
            earliest_us=at,
            offset=rows.column("first_offset"),
            required_offset=pc.add(rows.column("last_offset"), 1),
        )

    def produces(self, rows: pa.RecordBatch) -> Batches:
        """Yield append events of produce requests."""
        producer = rows.column("transactional_id")
        if self.silent and self.clients:
            is_silent = in_spans(self.silent, rows, micros(rows.column("handled_time")))
            producer = first_of(producer, when(is_silent, self._find_client_ids(rows), pa.scalar(None, pa.string())))
        rows = rows.set_column(rows.schema.get_field_index("transactional_id"), "transactional_id", producer)
        yield from self._make_appends(
            fill_topic_names(self.topic_names, _split_partitions(rows)),
            same={"acks": "acks", "timeout_ms": "timeout_ms", "producer": "transactional_id"},
            offset="base_offset",
            size_bytes="size_bytes",
        )

    def requests(self, rows: pa.RecordBatch) -> Batches:
        """Yield append events of coordinators' records and of transaction markers, from ``silver.requests``."""
        records = coordinators.records(rows, self.counts)
        yield from self._make_appends(_split_partitions(records), same={"records": "records"}, acks=-1)
        marking = _split_partitions(rows.filter(_is(rows, "api", "WRITE_TXN_MARKERS")))
        keys = _join_keys(marking.column("cluster_id"), marking.column("part.producer_id"))
        ids = {f"{cluster_id}|{producer_id}": name for (cluster_id, producer_id), name in self.producers.items()}
        producer_id = pc.binary_join_element_wise("producer id ", marking.column("part.producer_id").cast("string"), "")
        marking = marking.append_column("producer", first_of(look_up(ids, keys, pa.string()), producer_id))
        values: dict[str, Value] = {"acks": -1, "records": 1, "size_bytes": MARKER_BYTES, "control": True}
        yield from self._make_appends(marking, same={"producer": "producer"}, **values)

    def isr_lines(self, rows: pa.RecordBatch) -> Batches:
        """Yield the events of ISR lines (`pipelines.replay.isr_events`). A line in two files gives its events twice."""
        rows = rows.filter(pc.is_valid(rows.column("broker_id")))
        times_us = micros(rows.column("time")).to_pylist()
        lines = zip(rows.drop_columns(["time"]).to_pylist(), times_us, strict=True)
        events = [
            {name: line[name] for name in KEY_TYPES} | event
            for line, time_us in lines
            for event in i.events_of(line, time_us, self.tier_max)
        ]
        batch = pa.RecordBatch.from_pylist(events, SCHEMA)
        yield self.bounds.filter_rows(batch, batch.column("time_us"))

    def fetches(self, rows: pa.RecordBatch) -> Batches:
        """Yield fetch events of followers, with the end of the connection's chain of fetches."""
        chains = pc.binary_join_element_wise(
            _join_keys(rows.column("cluster_id"), rows.column("broker_id")), rows.column("chain"), "|"
        )
        ends = look_up(self.chain_ends, chains, pa.int64())
        rows = rows.set_column(rows.schema.get_field_index("chain_end_us"), SCHEMA.field("chain_end_us"), ends)
        # The fetch after it may show that it was handled before the bound: an earlier run has folded it then.
        yield self.bounds.filter_rows(rows, rows.column("time_us"))

    def watches(self, rows: pa.RecordBatch) -> Batches:
        """Yield rows with the connections that read each partition. Topics without a known name are dropped."""
        rows = rows.filter(pc.is_valid(rows.column("topic")))
        follower = pc.fill_null(pc.greater_equal(rows.column("replica_id"), 0), False)
        same = (*KEY_TYPES, "connection", "session_topic", "from_us", "until_us")
        read_committed = pc.fill_null(pc.equal(rows.column("isolation_level"), 1), False)
        values: dict[str, Value] = {name: rows.column(name) for name in same}
        values |= {"follower": follower, "read_committed": read_committed}
        yield shaped(SCHEMA, rows.num_rows, {"rank": RANK[WATCH], "kind": WATCH, "time_us": -1, **values})

    def _find_client_ids(self, rows: pa.RecordBatch) -> pa.Array:
        hosts = parse_remote_hosts(rows.column("connection"))
        keys = pc.binary_join_element_wise(rows.column("cluster_id"), rows.column("client_id"), hosts, "|")
        return look_up({"|".join(key): name for key, name in self.clients.items()}, keys, pa.string())

    def _make_appends(self, rows: pa.RecordBatch, same: Mapping[str, str] | None = None, **values: Value) -> Batches:
        """Yield append events of requests with one row per partition, ``part``.

        Args:
            same: columns of `rows` by event field.
            values: by event field, a value or the name of a field of the partition.
        """
        fields = {
            name: rows.column(f"part.{value}") if isinstance(value, str) else value for name, value in values.items()
        }
        yield from self._make_events(
            rows,
            e.PRODUCE,
            time_us=micros(rows.column("handled_time")),
            earliest_us=micros(rows.column("dequeued_time")),
            error_code=rows.column("part.error_code"),
            request_id=rows.column("operation_id"),
            arrival_us=micros(rows.column("arrival_time")),
            completed_us=micros(rows.column("completed_time")),
            partitions=rows.column("partition_count"),
            **{name: rows.column(column) for name, column in (same or {}).items()},
            **fields,
        )

    def _make_events(self, rows: pa.RecordBatch, kind: str, **values: Value) -> Batches:
        key = {name: rows.column(name) for name in KEY_TYPES}
        events = shaped(SCHEMA, rows.num_rows, {**key, "rank": e.RANK[kind], "kind": kind, **values})
        events = events.filter(pc.is_valid(events.column("broker_id")))
        if events.num_rows:
            yield self.bounds.filter_rows(events, events.column("time_us"))


def operation_ids(rows: pa.RecordBatch) -> pa.Array:
    """Return ids of requests. The same line in two files gets the same id."""
    parts = [rows.column(name).to_pylist() for name in ("cluster_id", "broker_id", "connection", "correlation_id")]
    times = micros(rows.column("time")).to_pylist()
    texts = ("|".join("" if part is None else str(part) for part in key) for key in zip(*parts, times, strict=True))
    return pa.array([md5(text.encode(), usedforsecurity=False).hexdigest() for text in texts], pa.string())


def in_spans(spans: Spans, rows: pa.RecordBatch, time_us: pa.Array) -> pa.Array:
    """Return a mask of rows with a time within one of their broker's (start, end) pairs, end exclusive.

    Args:
        rows: with ``cluster_id`` and ``broker_id``.
    """
    keys = _join_keys(rows.column("cluster_id"), rows.column("broker_id")).to_pylist()
    texts = {f"{cluster_id}|{broker_id}": some for (cluster_id, broker_id), some in spans.items()}
    within = [
        any(since_us <= at < until_us for since_us, until_us in texts.get(key, ()))
        for key, at in zip(keys, time_us.to_pylist(), strict=True)
    ]
    return pa.array(within, pa.bool_())


def _join_keys(first: pa.Array, second: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(first, second.cast(pa.string()), "|")


def _is(rows: pa.RecordBatch, column: str, value: str) -> pa.Array:
    return pc.equal(rows.column(column), value)


def _split_partitions(requests: pa.RecordBatch) -> pa.RecordBatch:
    """Return requests with one row per partition: ``part``, its ``topic`` and ``partition``, and the shared columns."""
    counts = pc.list_value_length(requests.column("partitions"))
    rows = requests.append_column("operation_id", operation_ids(requests)).append_column("partition_count", counts)
    parts = explode(rows, "partitions", "part")
    topics = parts.append_column("topic", parts.column("part.topic"))
    return topics.append_column("partition", parts.column("part.partition"))


def _get_ids(lists: pa.Array, name: str) -> pa.Array:
    """Return one field of the structs in a column of lists, as lists."""
    values = [None if items is None else [item[name] for item in items] for items in lists.to_pylist()]
    return pa.array(values, pa.list_(pa.int32()))
