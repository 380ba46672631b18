"""Fetch requests as events of sessions, against a reading row by row."""

from __future__ import annotations

from hashlib import md5
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import fetch_events as f
from highwater.pipelines.replay import outcome as o
from highwater.schemas import silver
from highwater.schemas.session_events import FETCH, NAMED, RANK
from highwater.schemas.topics import METADATA_TOPIC_ID
from tests.unit.replay.rows import batch_of

Row = dict[str, Any]
SINCE_US = 50


def topic_of(entry: Row) -> str | None:
    """How a fetch names a topic: by id, else by name."""
    topic: str | None = entry["topic_id"] if entry["topic_id"] is not None else entry["topic"]
    return topic


def is_raft(row: Row) -> bool:
    return any(topic_of(entry) in ("__cluster_metadata", METADATA_TOPIC_ID) for entry in row["partitions"])


def at_once_reason(row: Row) -> str | None:
    responses, partitions = row["responses"], row["partitions"]
    if row["error_code"]:
        return o.SESSION_ERROR
    if any(entry["error_code"] for entry in responses):
        return o.ERROR
    if any(entry["diverging_end_offset"] is not None for entry in responses):
        return o.DIVERGING_EPOCH
    if any(entry["preferred_read_replica"] is not None and entry["preferred_read_replica"] >= 0 for entry in responses):
        return o.PREFERRED_REPLICA
    if row["max_wait_ms"] is not None and row["max_wait_ms"] <= 0:
        return o.NO_WAIT
    if row["session_epoch"] is not None and row["session_epoch"] <= 0 and not partitions:
        return o.NO_PARTITIONS
    total = sum(entry["size_bytes"] or 0 for entry in responses)
    if responses and row["min_bytes"] is not None and total >= row["min_bytes"]:
        return o.AT_ONCE
    for answer in responses:
        for asked in partitions:
            is_same = (topic_of(asked), asked["partition"]) == (topic_of(answer), answer["partition"])
            is_known = answer["error_code"] == 0 and answer["high_watermark"] is not None
            is_known = is_known and asked["fetch_offset"] is not None
            if row["replica_id"] < 0 and is_same and is_known and 0 <= answer["high_watermark"] < asked["fetch_offset"]:
                return o.BEYOND_END
    return None


def _told_bytes(row: Row) -> int | None:
    """None where a size is not printed, or a request that asks for all has no answer."""
    sizes = [entry["size_bytes"] for entry in row["responses"]]
    in_session = (row["session_epoch"] or 0) > 0
    return None if None in sizes or (not sizes and not in_session) else sum(sizes)


def event_of(row: Row) -> Row:
    """What the event of a request says; what it does not say is not there."""
    filled = [entry for entry in row["responses"] if (entry["size_bytes"] or 0) > 0]
    held = [
        entry
        for entry in row["responses"]
        if row["isolation_level"] == 1
        and entry["last_stable_offset"] is not None
        and entry["high_watermark"] is not None
        and 0 <= entry["last_stable_offset"] < entry["high_watermark"]
    ]
    errors = [entry["error_code"] for entry in row["responses"]] + [row["error_code"]]
    epochs = [entry["current_leader_epoch"] for entry in row["partitions"]]
    parts = [row[name] for name in ("cluster_id", "broker_id", "connection", "correlation_id", "time")]
    text = "|".join("" if part is None else str(part) for part in parts)
    same = ("cluster_id", "broker_id", "connection", "replica_id", "isolation_level", "session_epoch", "min_bytes")
    event = {name: row[name] for name in (*same, "max_wait_ms", "client_id", "correlation_id")}
    event |= {
        "rank": RANK[FETCH],
        "kind": FETCH,
        "time_us": row["dequeued_time"],
        "latest_us": row["handled_time"],
        "operation_id": md5(text.encode()).hexdigest(),
        "topics": [topic_of(entry) for entry in row["partitions"]],
        "partitions": [entry["partition"] for entry in row["partitions"]],
        "offsets": [entry["fetch_offset"] or 0 for entry in row["partitions"]],
        "max_bytes": [2**31 - 1 if entry["max_bytes"] is None else entry["max_bytes"] for entry in row["partitions"]],
        "leader_epoch": max((epoch for epoch in epochs if epoch is not None), default=None),
        "forgotten_topics": [topic_of(entry) for entry in row["forgotten"]],
        "forgotten_partitions": [entry["partition"] for entry in row["forgotten"]],
        "completed_us": row["completed_time"],
        "error_codes": list(dict.fromkeys(code for code in errors if code)),
        "response_bytes": _told_bytes(row),
        "filled_topics": [topic_of(entry) for entry in filled],
        "filled_partitions": [entry["partition"] for entry in filled],
        "told_topics": [topic_of(entry) for entry in held],
        "told_partitions": [entry["partition"] for entry in held],
        "told_stable": [entry["last_stable_offset"] for entry in held],
        "at_once_reason": at_once_reason(row),
        "sequence": row["correlation_id"],
        "arrival_us": row["arrival_time"],
        "line_us": row["time"],
        "wait_ms": row["remote_time_ms"],
    }
    return {name: value for name, value in event.items() if value is not None}


def read(rows: list[Row], bounds: Bounds, begin: int = 0, size: int | None = None) -> list[Row]:
    batch = batch_of(silver.FETCH_REQUESTS, f.FETCH_COLUMNS, rows).slice(begin, size)
    events = []
    for part in f.FetchReader(bounds).fetches(batch):
        assert part.schema == f.SCHEMA
        part.validate(full=True)
        events += [{name: value for name, value in row.items() if value is not None} for row in part.to_pylist()]
    return events


def entries(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    names = st.sampled_from([("t", None), ("u", None), (None, "id"), ("t", "id")])
    place = st.tuples(names, st.integers(0, 1))
    entry = st.builds(
        lambda place, values: {"topic": place[0][0], "topic_id": place[0][1], "partition": place[1]} | values,
        place,
        st.fixed_dictionaries(fields),
    )
    return st.lists(entry, max_size=3, unique_by=lambda entry: (topic_of(entry), entry["partition"]))


numbers = st.none() | st.integers(-1, 3)
#: Mostly none, so that later reasons have their turn.
rarely = st.sampled_from([None, None, None, None, -1, 0, 5])
errors = st.sampled_from([None, 0, 0, 0, 0, 6, 3])
requests = st.fixed_dictionaries(
    {
        "cluster_id": st.sampled_from(["c", "d"]),
        "broker_id": st.sampled_from([1, 1, 2, None]),
        "connection": st.sampled_from(["x", "y", None]),
        "correlation_id": st.none() | st.integers(0, 9),
        "client_id": st.none() | st.just("client"),
        "time": st.integers(0, 100),
        "remote_time_ms": st.sampled_from([0.0, 1.5]),
        **{f"{name}_time": st.integers(0, 100) for name in ("arrival", "dequeued", "handled", "completed")},
        "replica_id": st.sampled_from([-1, 2]),
        "isolation_level": st.sampled_from([None, 0, 1, 1]),
        "session_epoch": numbers,
        "min_bytes": st.sampled_from([None, 1, 4, 4, 4]),
        "max_wait_ms": st.sampled_from([None, 500, 500, 500, 500, 0]),
        "error_code": errors,
        "partitions": entries(fetch_offset=numbers, max_bytes=numbers, current_leader_epoch=numbers),
        "forgotten": entries(),
        "responses": entries(
            error_code=errors,
            high_watermark=numbers,
            last_stable_offset=numbers,
            size_bytes=numbers,
            preferred_read_replica=rarely.map(lambda replica: None if replica == 0 else replica),
            diverging_end_offset=st.sampled_from([None, None, None, None, 4]),
        ),
    }
)


@given(st.lists(requests, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_events_are_what_each_row_says(rows: list[Row], begin: int, size: int):
    bounds = Bounds({("c", 1): SINCE_US})
    expected = [
        event_of(row)
        for row in rows[begin : begin + size]
        if row["broker_id"] is not None
        and row["connection"] is not None
        and not is_raft(row)
        and ((row["cluster_id"], row["broker_id"]) != ("c", 1) or row["dequeued_time"] >= SINCE_US)
    ]
    assert read(rows, bounds, begin, size) == expected


ASKED = {"topic": "t", "topic_id": None, "partition": 0, "fetch_offset": 5, "max_bytes": 1, "current_leader_epoch": 0}
ANSWERED = dict.fromkeys(("last_stable_offset", "size_bytes", "preferred_read_replica", "diverging_end_offset"))
ANSWER: Row = {"topic": "t", "topic_id": None, "partition": 0, "error_code": 0, "high_watermark": 5, **ANSWERED}
REQUEST: Row = {"cluster_id": "c", "broker_id": 1, "connection": "x", "correlation_id": 7, "client_id": None}
REQUEST |= {"arrival_time": 100, "dequeued_time": 101, "handled_time": 102, "completed_time": 103, "time": 104}
REQUEST |= {"replica_id": -1, "isolation_level": 0, "session_epoch": 3, "min_bytes": 4, "max_wait_ms": 500}
REQUEST |= {"error_code": 0, "remote_time_ms": 0.0, "partitions": [ASKED], "forgotten": [], "responses": [ANSWER]}


@pytest.mark.parametrize(
    ("request_values", "answer", "reason"),
    [
        ({}, {}, None),
        ({"error_code": 71}, {"error_code": 6}, o.SESSION_ERROR),
        ({}, {"error_code": 6, "diverging_end_offset": 1}, o.ERROR),
        ({}, {"diverging_end_offset": 0, "preferred_read_replica": 2}, o.DIVERGING_EPOCH),
        ({"max_wait_ms": 0}, {"preferred_read_replica": 0}, o.PREFERRED_REPLICA),
        ({}, {"preferred_read_replica": -1}, None),
        ({"max_wait_ms": 0, "session_epoch": 0, "partitions": []}, {}, o.NO_WAIT),
        ({"session_epoch": -1, "partitions": []}, {"size_bytes": 9}, o.NO_PARTITIONS),
        ({"session_epoch": 1, "partitions": []}, {}, None),
        ({}, {"size_bytes": 4, "high_watermark": 4}, o.AT_ONCE),
        ({}, {"size_bytes": 3}, None),
        ({"min_bytes": 0}, {}, o.AT_ONCE),
        ({"min_bytes": 0, "responses": []}, {}, None),
        ({}, {"high_watermark": 4}, o.BEYOND_END),
        ({}, {"high_watermark": -1}, None),
        ({}, {"high_watermark": 4, "partition": 1}, None),
        ({"replica_id": 2}, {"high_watermark": 4}, None),
    ],
)
def test_why_a_fetch_cannot_wait(request_values: Row, answer: Row, reason: str | None):
    row = REQUEST | {"responses": [ANSWER | answer]} | request_values
    (event,) = read([row], Bounds({}))
    assert event.get("at_once_reason") == reason
    assert at_once_reason(row) == reason


@pytest.mark.parametrize("values", [{"topic": "__cluster_metadata"}, {"topic": None, "topic_id": METADATA_TOPIC_ID}])
def test_fetches_of_the_metadata_log_are_rafts(values: Row):
    of_raft = REQUEST | {"partitions": [ASKED, ASKED | values], "correlation_id": 8}
    rows = [REQUEST, of_raft, REQUEST | {"partitions": []}]
    assert [event["correlation_id"] for event in read(rows, Bounds({}))] == [7, 7]
    assert read(rows, Bounds({}), 1, 1) == []


def test_names_of_topics_that_are_asked_for_by_id():
    row = {"cluster_id": "c", "broker_id": 1, "connection": "x"}
    watches = [
        row | {"session_topic": "id", "topic": "t"},
        row | {"session_topic": "t", "topic": "t"},
        row | {"session_topic": "unknown", "topic": None},
    ]
    (batch,) = f.names(pa.RecordBatch.from_pylist(watches))
    (event,) = batch.to_pylist()
    expected = {"rank": -1, "time_us": -1, "kind": NAMED, "topic": "id", "name": "t"}
    assert {name: value for name, value in event.items() if value is not None} == row | expected
    assert list(f.names(pa.RecordBatch.from_pylist(watches[1:]))) == []


def test_wakes_are_events():
    row = {"cluster_id": "c", "broker_id": 1, "connection": "x", "rank": 3, "time_us": 5, "kind": "batch", "topic": "t"}
    (batch,) = f.wakes(pa.RecordBatch.from_pylist([row]))
    assert batch.schema == f.SCHEMA
    assert [{name: value for name, value in each.items() if value is not None} for each in batch.to_pylist()] == [row]
