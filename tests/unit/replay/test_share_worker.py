"""Share groups (KIP-932): what members are given and give back, and what their requests wait for."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pytest

from highwater.pipelines.base.blobs import unpack
from highwater.pipelines.kafka.context import History
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay import share_partition as p
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.share_worker import (
    COLUMNS,
    KEY_TYPES,
    REQUEST_COLUMNS,
    SCHEMA,
    SHARE_LOCK,
    SHARE_LOCK_NOT_LOGGED,
    STATE_WRITTEN,
    TOPIC_COLUMNS,
    ShareReader,
    ShareWorker,
    shared_topics,
)
from highwater.schemas import silver
from tests.unit.replay.rows import batch_of

MS = 1_000
BROKER = {"cluster_id": "c", "broker_id": 1}
PLACE = {"topic": "t", "partition": 0}
LOCK_MS = 4_000


def committed(ms: float, base: int, *, unstable: bool = False) -> dict[str, Any]:
    at = round(ms * MS)
    instants = {"time_us": at, "lowest_us": at, "highest_us": at + 200}
    return BROKER | PLACE | instants | {"rank": 0, "kind": "batch", "base_offset": base, "unstable": unstable}


def stable(ms: float, below: int) -> dict[str, Any]:
    return committed(ms, below) | {"kind": "stable"}


def request(
    ms: float,
    until_ms: float,
    *,
    member: str = "m1",
    api: str = "SHARE_FETCH",
    acquired: tuple[tuple[int, int, int], ...] = (),
    acknowledged: tuple[tuple[int, int, list[int]], ...] = (),
    errors: tuple[int, ...] = (0,),
    group: str = "g",
    refused: int = 0,
) -> dict[str, Any]:
    part = PLACE | {"topic_id": None, "error_code": 0}
    offsets = ("first_offset", "last_offset")
    part |= {"acquired": [dict(zip((*offsets, "delivery_count"), some, strict=True)) for some in acquired]}
    part["acknowledge_error_code"] = refused
    part |= {"acknowledged": [dict(zip((*offsets, "types"), some, strict=True)) for some in acknowledged]}
    at, until = round(ms * MS), round(until_ms * MS)
    values = {"api": api, "group_id": group, "member_id": member, "client_id": member, "connection": "x"}
    values |= {"correlation_id": 1, "min_bytes": 1, "max_wait_ms": 500, "lock_timeout_ms": LOCK_MS, "time": until}
    values |= {"arrival_time": at, "dequeued_time": at, "handled_time": at, "completed_time": until}
    values |= {"remote_time_ms": until_ms - ms, "error_codes": list(errors), "partitions": [part]}
    values |= {"operation_id": f"{member}{ms}"}
    return BROKER | {"time_us": until, "rank": 1, "kind": "request", "request": orjson.dumps(values).decode()}


def replay(*rows: dict[str, Any], timeouts: History = (), since_ms: float = 0) -> list[dict[str, Any]]:
    names = (*KEY_TYPES, *COLUMNS)
    ordered = sorted(rows, key=lambda row: (row["time_us"], row["rank"]))
    table = pa.Table.from_pylist(ordered, pa.schema([SCHEMA.field(name) for name in names]))
    of_broker = {("c", 1): timeouts} if timeouts else {}
    worker = ShareWorker(Tolerances(5 * MS, 100 * MS), of_broker, {}, {("c", 1): round(since_ms * MS)})
    blobs = worker(iter(table.combine_chunks().to_batches()))
    return [row for blob in blobs for batch in unpack([blob]) for row in batch.to_pylist()]


def only(*rows: dict[str, Any]) -> tuple[str, str, float | None]:
    """Cause, class and residual of the last operation."""
    row = replay(*rows)[-1]
    return row["cause"], row["class"], row["residual_ms"]


def test_new_records_answer_a_fetch_as_the_high_watermark_passes_them():
    assert only(committed(30, 5), request(10, 30.5, acquired=((5, 6, 1),))) == (p.RECORDS, "explained", 0)


def test_records_of_a_transaction_may_be_seen_only_once_it_is_over():
    rows = (stable(5, 1 << 40), committed(30, 5, unstable=True), stable(200, 9))
    assert only(*rows, request(10, 200.5, acquired=((5, 6, 1),))) == (p.RECORDS, "explained", 0)
    assert only(*rows, request(10, 30.5, acquired=((5, 6, 1),))) == (p.RECORDS, "explained", 0)


def test_a_fetch_that_gets_nothing_waits_for_its_timer():
    assert only(request(10, 510)) == (o.TIMER, "explained", 0)
    assert only(request(10, 900))[:2] == (o.TIMER, "late")


def test_released_records_are_delivered_again_and_so_are_those_whose_lock_ran_out():
    begin = (committed(1, 5), request(2, 2, acquired=((5, 6, 1),)))
    release = request(20, 30, api="SHARE_ACKNOWLEDGE", acknowledged=((5, 5, [p.RELEASE]), (6, 6, [p.ACCEPT])))
    again = request(10, 31, member="m2", acquired=((5, 5, 2),))
    assert only(*begin, release, again) == (p.RELEASED, "explained", 0)
    late = request(3_900, LOCK_MS + 3, member="m2", acquired=((5, 6, 2),))
    row = replay(*begin, late)[-1]
    assert (row["cause"], row["class"], row["redelivered"]) == (p.LOCK_TIMEOUT, "explained", 2)
    assert row["locks_expired"] == [{"member_id": "m1", "records": 2}]
    renewed = request(3_000, 3_001, api="SHARE_ACKNOWLEDGE", acknowledged=((5, 6, [p.RENEW]),))
    assert replay(*begin, renewed, late)[-1]["locks_expired"] == []


def test_what_members_had_locked_before_the_window_is_known_in_it():
    first = request(0, 30, acquired=((5, 6, 1),))
    again = request(3_000, LOCK_MS + 31, member="m2", acquired=((5, 6, 2),))
    (row,) = replay(committed(20, 5), first, again, since_ms=1_000)
    assert (row["cause"], row["member_id"]) == (p.LOCK_TIMEOUT, "m2")
    assert row["locks_expired"] == [{"member_id": "m1", "records": 2}]


def test_who_acknowledges_too_late_has_lost_the_lock():
    begin = (committed(1, 5), request(2, 2, acquired=((5, 6, 1),)))
    too_late = request(4_500, 4_501, api="SHARE_ACKNOWLEDGE", acknowledged=((5, 6, [p.ACCEPT]),), refused=121)
    again = request(4_600, 4_601, member="m2", acquired=((5, 6, 2),))
    _, refused, last = replay(*begin, too_late, again)
    assert (refused["refused"], refused["accepted"]) == (2, 0)
    assert last["locks_expired"] == [{"member_id": "m1", "records": 2}]


def test_groups_have_their_own_locks():
    begin = (committed(1, 5), request(2, 2, acquired=((5, 6, 1),)))
    other = request(3_900, LOCK_MS + 3, member="m2", group="h", acquired=((5, 6, 2),))
    assert replay(*begin, other)[-1]["locks_expired"] == []


def test_what_is_counted():
    acknowledged = ((5, 9, [1, 2, 3, 4, 0]), (10, 12, [1]))
    row = replay(request(1, 2, acquired=((20, 22, 1), (3, 4, 2)), acknowledged=acknowledged))[-1]
    counts = ("delivered", "redelivered", "accepted", "released", "rejected", "renewed")
    assert tuple(row[name] for name in counts) == (5, 2, 4, 1, 1, 1)


@pytest.mark.parametrize(("timeouts", "until_ms"), [((), 5_001), (((0, "200"),), 201)])
def test_an_acknowledgement_waits_until_the_groups_state_is_written(timeouts: History, until_ms: float):
    row = replay(request(1, 150, api="SHARE_ACKNOWLEDGE", acknowledged=((5, 5, [1]),)), timeouts=timeouts)[-1]
    assert (row["cause"], row["class"], row["interval_width_ms"]) == (STATE_WRITTEN, "explained", until_ms - 1)


def test_what_another_fetch_had_in_hand_is_checked_again_when_that_is_done():
    rows = (committed(5, 5), committed(6, 7), request(8, 60, member="m2", acquired=((5, 6, 1),)))
    waiting = request(10, 61, acquired=((7, 7, 1),))
    assert only(*rows, waiting) == (SHARE_LOCK, "explained", 0)
    row = replay(*rows[:2], waiting)[-1]
    assert (row["class"], row["class_reason"]) == ("unobservable", SHARE_LOCK_NOT_LOGGED)


def test_errors_and_answers_at_once():
    assert only(request(1, 1.5, errors=(56,)))[0] == o.ERROR
    assert only(committed(1, 5), request(2, 2.5, acquired=((5, 5, 1),)))[0] == o.AT_ONCE


def test_what_is_read_of_silver():
    part = {"topic": None, "topic_id": "id", "partition": 0, "error_code": 0, "acquired": [], "acknowledged": []}
    times = ("time", "arrival_time", "dequeued_time", "handled_time", "completed_time")
    row = BROKER | dict.fromkeys(times, 5) | {"connection": "x", "correlation_id": 1, "remote_time_ms": 0.0}
    row |= {"api": "SHARE_FETCH", "group_id": "g", "partitions": [part]}
    rows = [row, row | {"api": "METADATA", "partitions": []}]
    topics = shared_topics(batch_of(silver.REQUESTS, TOPIC_COLUMNS, rows))
    assert topics.to_pylist() == [{"cluster_id": "c", "topic_id": "id"}]
    reader = ShareReader(Bounds({}), frozenset({("c", "t")}), {("c", "id"): "t"})
    (made,) = reader.requests(batch_of(silver.REQUESTS, REQUEST_COLUMNS, rows))
    (request_row,) = made.to_pylist()
    assert orjson.loads(request_row["request"])["partitions"][0]["topic"] == "t"
    assert request_row["time_us"] == 5
