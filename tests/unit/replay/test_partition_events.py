"""Rows of silver as events of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import md5
from typing import Any

import pyarrow as pa
import pytest

from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import isr_events as i
from highwater.pipelines.replay import partition_events as p
from highwater.pipelines.replay.partition_worker import RANK, WATCH
from highwater.schemas import events as e
from highwater.schemas import silver
from highwater.schemas.topics import GROUP_TOPIC
from tests.unit.replay.rows import batch_of

PLACE = {"cluster_id": "c", "broker_id": 1}
PARTITION = {"topic": "t", "partition": 0}
BOUNDS = Bounds({("c", 1): 100})
INSTANTS = ("arrival_time", "dequeued_time", "handled_time", "completed_time", "time")
Row = dict[str, Any]


def events(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    """Rows of events, without what is null."""
    rows = []
    for batch in batches:
        assert batch.schema == p.SCHEMA
        rows += [{name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()]
    return rows


def without_place(rows: Iterable[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in {*PLACE, *PARTITION}} for row in rows]


def request(at_us: int, connection: str = "h:1-r:2-3", **values: Any) -> Row:
    """A request that arrives at an instant and takes four microseconds."""
    row: Row = {**PLACE, "connection": connection, "correlation_id": 7, "client_id": "client"}
    return row | {name: at_us + passed for passed, name in enumerate(INSTANTS)} | values


def operation_id(row: Row) -> str:
    parts = [row[name] for name in ("cluster_id", "broker_id", "connection", "correlation_id", "time")]
    return md5("|".join("" if part is None else str(part) for part in parts).encode()).hexdigest()


def test_a_roll_lasted_and_its_clock_ticks_in_milliseconds():
    row = {**PLACE, **PARTITION, "time": 5_000, "duration_ms": 2, "base_offset": 9}
    rows = [row, row | {"time": 99}, row | {"broker_id": None}, row | {"broker_id": 2, "time": 99, "base_offset": None}]
    batch = batch_of(silver.SEGMENT_ROLLS, (*PLACE, *PARTITION, "time", "duration_ms", "base_offset"), rows)
    roll = {"kind": e.ROLL, "rank": e.RANK[e.ROLL]}
    given = events(p.EventReader(BOUNDS).rolls(batch))
    assert without_place(given) == [
        roll | {"time_us": 5_000, "earliest_us": 2_000, "offset": 9},
        roll | {"time_us": 99, "earliest_us": -2_901},
    ]
    assert [row["broker_id"] for row in given] == [1, 2]


def test_where_a_log_begins_of_which_a_part_is_in_the_tier():
    row = {**PLACE, **PARTITION, "time": 5_000, "event": "local_start", "offset": 9}
    whole = row | {"log_start_offset": 9}
    rows = [row, whole, row | {"log_start_offset": 4}, row | {"event": "copied"}, row | {"event": "read_failed"}]
    batch = batch_of(silver.TIER_EVENTS, (*PLACE, *PARTITION, "time", "event", "offset", "log_start_offset"), rows)
    given = events(p.EventReader(BOUNDS).tier(batch))
    assert [event["kind"] for event in given] == [e.LOCAL_START, e.LOCAL_START, e.TIER_FAILED]


def test_checks_and_appends():
    row = {**PLACE, **PARTITION, "time": 500, "operation": "produce", "start_offset": 3, "required_offset": 4}
    awaiting = [{"replica_id": 2}, {"replica_id": 3}]
    rows = [
        row | {"step": "progress", "awaiting": awaiting},
        row | {"step": "initial"},
        row | {"step": "complete"},
        row | {"step": "initial", "operation": "fetch"},
    ]
    columns = (*PLACE, *PARTITION, "time", "operation", "step", "start_offset", "required_offset", "awaiting")
    at = {"time_us": 500, "earliest_us": 500, "offset": 3, "required_offset": 4}
    assert without_place(
        events(p.EventReader(BOUNDS).checks(batch_of(silver.DELAYED_OPERATION_CHECKS, columns, rows)))
    ) == [
        at | {"kind": e.INITIAL_STATUS, "rank": e.RANK[e.INITIAL_STATUS]},
        at | {"kind": e.PROGRESS, "rank": e.RANK[e.PROGRESS], "isr": [2, 3]},
    ]
    row = {**PLACE, **PARTITION, "time": 500, "source": "replica_manager", "first_offset": 3, "last_offset": 3}
    rows = [row, row | {"last_offset": None}, row | {"source": "log"}]
    columns = (*PLACE, *PARTITION, "time", "source", "first_offset", "last_offset")
    assert without_place(events(p.EventReader(BOUNDS).appends(batch_of(silver.APPENDS, columns, rows)))) == [
        at | {"kind": e.INITIAL_STATUS, "rank": e.RANK[e.INITIAL_STATUS]}
    ]


PRODUCE_COLUMNS = (
    *(*PLACE, "connection", "correlation_id", "client_id", *INSTANTS, "partitions"),
    *("acks", "timeout_ms", "transactional_id"),
)


def test_an_append_of_a_producer_is_an_event_per_partition():
    parts = [
        {"topic": "t", "partition": 0, "size_bytes": 70, "base_offset": 5, "error_code": 0},
        {"topic": "id:known", "partition": 1, "error_code": 6},
    ]
    row = request(200, partitions=parts, acks=-1, timeout_ms=30)
    rows = [row, request(97, partitions=parts), request(200, partitions=parts, broker_id=None)]
    reader = p.EventReader(BOUNDS, topic_names={("c", "known"): "named"})
    given = events(reader.produces(batch_of(silver.PRODUCE_REQUESTS, PRODUCE_COLUMNS, rows)))
    same = {"kind": e.PRODUCE, "rank": e.RANK[e.PRODUCE], "time_us": 202, "earliest_us": 201, "arrival_us": 200}
    same |= {"completed_us": 203, "partitions": 2, "acks": -1, "timeout_ms": 30, "request_id": operation_id(row)}
    assert given == [
        {**PLACE, **PARTITION, **same, "size_bytes": 70, "offset": 5, "error_code": 0},
        {**PLACE, "topic": "named", "partition": 1, **same, "error_code": 6},
    ]


@pytest.mark.parametrize(
    ("values", "producer"),
    [
        ({}, "of client"),
        ({"transactional_id": "logged"}, "logged"),
        ({"client_id": "other"}, None),
        ({"client_id": None}, None),
        ({"connection": "h:1-elsewhere:2-3"}, None),
        ({"connection": None}, None),
        ({"handled_time": 1_000}, None),  # its version logs the ids by then
        ({"broker_id": 2}, None),
    ],
)
def test_where_ids_are_not_logged_the_client_tells_whose_transaction_it_is(values: Row, producer: str | None):
    parts = [{"topic": "t", "partition": 0}]
    silent = {("c", 1): ((0, 1_000),)}
    reader = p.EventReader(Bounds({}), silent, clients={("c", "client", "r"): "of client"})
    batch = batch_of(silver.PRODUCE_REQUESTS, PRODUCE_COLUMNS, [request(200, partitions=parts) | values])
    assert [row.get("producer") for row in events(reader.produces(batch))] == [producer]


COORDINATOR_COLUMNS = (
    *(*PLACE, "connection", "correlation_id", *INSTANTS, "partitions", "api", "remote_time_ms", "error_codes"),
    *("group_id", "transactional_id", "records", "assignments", "verify_only"),
)


def test_coordinators_append_records_and_markers():
    markers = [
        {"topic": "t", "partition": 0, "producer_id": 4, "error_code": 0},
        {"topic": "t", "partition": 1, "producer_id": 5},
    ]
    commit = request(200, api="OFFSET_COMMIT", group_id="g1", records=3, remote_time_ms=1.0, partitions=[])
    marking = request(300, api="WRITE_TXN_MARKERS", partitions=markers, remote_time_ms=0.0)
    reader = p.EventReader(BOUNDS, producers={("c", 4): "tx", ("other", 5): "not here"})
    batch = batch_of(silver.REQUESTS, COORDINATOR_COLUMNS, [commit, marking, request(200, api="METADATA")])
    names = ("topic", "partition", "producer", "records", "size_bytes", "control", "acks", "error_code", "partitions")
    assert [tuple(row.get(name) for name in names) for row in events(reader.requests(batch))] == [
        (GROUP_TOPIC, (103 * 31 + 49) % 50, None, 3, None, None, -1, 0, 1),
        ("t", 0, "tx", 1, 78, True, -1, 0, 2),
        ("t", 1, "producer id 5", 1, 78, True, -1, None, 2),
    ]


CHANGE_COLUMNS = (
    *(*PLACE, *PARTITION, "time", "change", "isr", "previous_isr", "leader_epoch", "high_watermark"),
    *("leader_end_offset", "out_of_sync", "detail"),
)


def change(what: str, **values: Any) -> Row:
    return {**PLACE, **PARTITION, "time": 200, "change": what, "leader_epoch": 4, "leader_end_offset": 9} | values


def isr_lines(row: Row, tier_max: str = "T3") -> list[tuple[Any, ...]]:
    batch = batch_of(silver.ISR_CHANGES, CHANGE_COLUMNS, [row])
    names = ("kind", "isr", "replica_id", "offset", "completed_us", "required_offset")
    given = events(p.EventReader(BOUNDS, tier_max=tier_max).isr_lines(batch))
    assert all(row["time_us"] == row["earliest_us"] == 200 and row["rank"] == 1 for row in given)
    return [tuple(row.get(name) for name in names) for row in given]


FROM = (i.ISR_FROM, [1, 2, 3], None, None, None, None)


def test_a_shrink_names_who_leaves():
    shrink = {"isr": [1], "previous_isr": [1, 2, 3]}
    assert isr_lines(change("shrink", **shrink)) == [
        FROM,
        (i.ISR_SHRINK, [1], 2, None, None, 9),
        (i.ISR_SHRINK, [1], 3, None, None, 9),
    ]
    out_of_sync = [{"replica_id": 3, "end_offset": 7, "last_caught_up_time_ms": 5}]
    assert isr_lines(change("shrink", **shrink, out_of_sync=out_of_sync)) == [
        FROM,
        (i.ISR_SHRINK, [1], 3, 7, 5_000, 9),
    ]
    assert isr_lines(change("shrink", **shrink, out_of_sync=[])) == [FROM]
    assert isr_lines(change("shrink", isr=[1])) == []


def test_an_expansion_names_who_joins_and_is_debug_where_it_is_pending():
    expand = {"isr": [1, 2, 3, 4], "previous_isr": [1, 2, 3]}
    expected = [FROM, (i.ISR_EXPAND, [1, 2, 3, 4], 4, None, None, 9)]
    assert isr_lines(change("expand", **expand), "T1") == expected
    assert isr_lines(change("pending_expand", **expand), "T2") == expected
    assert isr_lines(change("pending_expand", **expand), "T1") == []
    assert isr_lines(change("pending_shrink", **expand)) == []
    assert isr_lines(change("committed", **expand)) == []


def test_a_refusal_is_one_unless_the_state_has_moved_on():
    assert isr_lines(change("refused", previous_isr=[1, 2])) == [(i.ISR_REFUSED, None, None, None, None, 9)]
    assert isr_lines(change("refused", detail="a stale leader epoch")) == []
    assert isr_lines(change("refused", broker_id=None)) == []
    assert isr_lines(change("refused", time=99)) == []


def fetch(time_us: int, chain: str) -> Row:
    return {**PLACE, **PARTITION, "rank": 6, "kind": e.FETCH, "time_us": time_us, "earliest_us": 0, "chain": chain}


def test_fetches_are_told_when_their_chain_ended():
    rows = [fetch(100, "x#1"), fetch(200, "x#2"), fetch(99, "x#1")]
    reader = p.EventReader(BOUNDS, chain_ends={"c|1|x#1": 700, "c|2|x#2": 800})
    given = events(reader.fetches(pa.RecordBatch.from_pylist(rows, p.SCHEMA)))
    assert [(row["time_us"], row.get("chain_end_us")) for row in given] == [(100, 700), (200, None)]


def test_watches_of_named_topics():
    row = {**PLACE, **PARTITION, "connection": "x", "session_topic": "id", "from_us": 5, "until_us": 7}
    row |= {"replica_id": 2, "isolation_level": 1}
    rows = [row, row | {"replica_id": -1}, row | {"replica_id": None, "isolation_level": None}, row | {"topic": None}]
    given = events(p.EventReader(BOUNDS).watches(pa.RecordBatch.from_pylist(rows)))
    assert [(row["follower"], row["read_committed"]) for row in given] == [(True, True), (False, True), (False, False)]
    names = ("kind", "rank", "time_us", "connection", "session_topic", "from_us", "until_us")
    assert {tuple(row[name] for name in names) for row in given} == {(WATCH, RANK[WATCH], -1, "x", "id", 5, 7)}
