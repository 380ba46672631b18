"""Lines of tables become events of a partition, whatever the batches and the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay import follower_events as e
from highwater.schemas import replicas as r
from highwater.schemas import silver
from highwater.schemas.replicas import ReplicaEvent
from tests.unit.tables import table_rows

PLACE = {"cluster_id": "c", "broker_id": 1, "topic": "t", "partition": 0}


def rows_in_order(batches: Iterable[pa.RecordBatch]) -> list[e.Row]:
    """Rows behind the key as a worker gets them."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    rows.sort(key=lambda row: [(row[name] is not None, row[name]) for name in e.ORDER])
    return [tuple(row[name] for name in e.ROW_TYPES) for row in rows]


def events(batches: Iterable[pa.RecordBatch], threads: Any = None, turns: Any = None) -> list[ReplicaEvent]:
    return e.events_of(rows_in_order(batches), threads or {}, turns or {})


def facts(spec: Any, *rows: Mapping[str, Any]) -> pa.RecordBatch:
    return table_rows(spec, [{**PLACE, **row} for row in rows])


def fetch(number: int, **values: Any) -> dict[str, Any]:
    base = {"replica_id": 2, "leader_epoch": 1, "connection": "a", "fetch_offset": 0, "response_error_code": 0}
    return {**PLACE, **base, "arrival_time": number, "correlation_id": number, **values}


fetches = st.builds(
    fetch,
    st.integers(0, 5),
    broker_id=st.integers(1, 2),
    replica_id=st.integers(2, 3),
    leader_epoch=st.integers(1, 2),
    connection=st.sampled_from(["a", "b"]),
    correlation_id=st.integers(0, 3),
    fetch_offset=st.integers(0, 9),
    response_error_code=st.sampled_from([0, 0, 0, 6, None]),
    diverging_end_offset=st.sampled_from([None, None, None, 7]),
)


@given(st.lists(st.lists(fetches, max_size=8), max_size=4))
def test_of_a_connection_and_epoch_the_first_fetch_counts(batches: list[list[dict[str, Any]]]) -> None:
    rows = [row for batch in batches for row in batch]
    expected = set()
    for broker, replica, epoch, connection in product((1, 2), (2, 3), (1, 2), ("a", "b")):
        place = {"broker_id": broker, "replica_id": replica, "leader_epoch": epoch, "connection": connection}
        alike = [row for row in rows if place.items() <= row.items()]
        taken = [row for row in alike if row["response_error_code"] == 0 and row["diverging_end_offset"] is None]
        for row in sorted(taken, key=lambda row: (row["arrival_time"], row["correlation_id"], row["fetch_offset"]))[:1]:
            expected.add((broker, row["arrival_time"], replica, epoch, row["fetch_offset"], None, 4))
        for row in alike:
            if row["diverging_end_offset"] is not None:
                expected.add((broker, row["arrival_time"], replica, epoch, row["fetch_offset"], 7, None))
    threads = {(broker, connection): 4 for broker in (1, 2) for connection in ("a", "b")}
    given_batches = [one for batch in batches for one in e.fetches(table_rows(silver.REPLICA_FETCHES, batch))]
    seen = [
        (x.broker_id, x.time_us, x.replica_id, x.leader_epoch, x.offset, x.diverging_end_offset, x.fetcher_id)
        for x in events(given_batches, threads)
    ]
    assert len(seen) == len(set(seen))
    assert set(seen) == expected


lines = st.fixed_dictionaries(
    {
        "broker_id": st.integers(1, 2),
        "time": st.integers(0, 9),
        "source": st.sampled_from(["follower", "updated"]),
        "high_watermark": st.none() | st.integers(0, 9),
        "log_end_offset": st.none() | st.integers(0, 9),
    }
)
appends = st.fixed_dictionaries(
    {"broker_id": st.integers(1, 2), "time": st.integers(0, 9), "last_offset": st.integers(0, 9)}
)


@given(st.lists(lines), st.lists(appends))
def test_an_event_has_what_trace_lines_showed_last(marks: list[dict[str, Any]], ends: list[dict[str, Any]]) -> None:
    starts = [{"broker_id": broker, "time": time, "role": "request"} for broker in (1, 2) for time in (3, 7)]
    seen = events(
        [
            *e.leadership(facts(silver.LEADER_AND_ISR, *starts)),
            *e.shown_watermarks(facts(silver.HIGH_WATERMARKS, *marks)),
            *e.shown_ends(facts(silver.APPENDS, *ends)),
        ]
    )
    assert len(seen) == len(starts)
    for event in seen:
        told = [(row["time"], row["high_watermark"]) for row in marks if row["broker_id"] == event.broker_id]
        held = [(row["time"], row["last_offset"] + 1) for row in ends if row["broker_id"] == event.broker_id]
        of_followers = [row for row in marks if row["source"] == "follower" and row["broker_id"] == event.broker_id]
        held += [(row["time"], row["log_end_offset"]) for row in of_followers]
        assert (event.traced_high_watermark_us, event.traced_high_watermark) == last(told, event.time_us)
        assert (event.traced_end_offset_us, event.traced_end_offset) == last(held, event.time_us)


def last(shown: Iterable[tuple[int, int | None]], until_us: int) -> tuple[int | None, int | None]:
    none: tuple[int | None, int | None] = (None, None)
    return max(((at, value) for at, value in shown if value is not None and at <= until_us), default=none)


def test_starts_and_stops_go_to_brokers_that_have_a_replica() -> None:
    rows = [{"time": 5, "role": "follower_start", "leader": 2, "leader_epoch": 3, "start_offset": 8}]
    batches = [
        *e.leadership(facts(silver.LEADER_AND_ISR, *rows, *rows, {"time": 6, "role": "metadata", "broker_id": 2})),
        *e.fetchers(facts(silver.FETCHER_EVENTS, {"time": 7, "action": r.ADDED, "leader": 1, "broker_id": 3})),
    ]
    life = [(1, r.STARTING), (1, r.STARTING), (9, r.STOPPED)]
    assert sorted(events(batches, turns={1: life, 2: life, 3: life})) == [
        ReplicaEvent(1, 1, r.STARTING),
        ReplicaEvent(1, 5, r.FOLLOWER, leader=2, leader_epoch=3, offset=8),
        ReplicaEvent(1, 9, r.STOPPED),
        ReplicaEvent(3, 7, r.ADDED, leader=1),
    ]


def test_lines_of_the_log_layer() -> None:
    marks = [
        {"time": 1, "source": "loaded", "high_watermark": 4, "log_end_offset": 6},
        {"time": 2, "source": "non_monotonic", "high_watermark": 3, "previous_high_watermark": 4},
    ]
    cut = {"time": 3, "source": r.NO_EFFECT, "offset": 6, "previous_end_offset": 6, "reason": "new_epoch"}
    batches = [*e.watermarks(facts(silver.HIGH_WATERMARKS, *marks)), *e.truncations(facts(silver.TRUNCATIONS, cut))]
    assert events(batches) == [
        ReplicaEvent(1, 1, r.LOADED, offset=6, high_watermark=4),
        ReplicaEvent(1, 2, r.STEPPED_BACK, high_watermark=3, previous_high_watermark=4),
        ReplicaEvent(1, 3, r.NO_EFFECT, offset=6, previous_end_offset=6, reason="new_epoch"),
    ]


def test_only_followers_questions_are_answers_to_followers() -> None:
    def asked(client_id: str | None, *partitions: dict[str, Any]) -> dict[str, Any]:
        whole = {"partition": 0, "error_code": 0, "leader_epoch": 2, "end_offset": 30}
        parts = [{**whole, **part} for part in partitions]
        row = {"cluster_id": "c", "broker_id": 1, "api": "OFFSET_FOR_LEADER_EPOCH", "arrival_time": 4}
        return {**row, "client_id": client_id, "partitions": parts}

    unread = [{"topic": "t", "error_code": 6}, {"topic": None}, {"topic": "__cluster_metadata"}]
    rows = [
        asked("broker-7-fetcher-0", *unread, {"topic": "t"}),
        asked("consumer", {"topic": "t"}),
        asked(None, {"topic": "t"}),
    ]
    (batch,) = e.answers(table_rows(silver.REQUESTS, rows))
    assert [row["topic"] for row in batch.to_pylist()] == ["t"]
    assert events([batch]) == [ReplicaEvent(1, 4, r.ANSWERED, leader_epoch=2, offset=30, replica_id=7)]
