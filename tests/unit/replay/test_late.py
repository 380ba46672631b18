"""A lost wake-up and a leader that stood still, told apart by what else the broker answered; timers behind others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from random import Random
from time import process_time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from highwater.pipelines.base.blobs import unpack
from highwater.pipelines.lake.parquet import select_schema
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.late import (
    BROKER,
    COLUMNS,
    ORDER,
    RESUME_US,
    SHAPE,
    answers,
    operations,
    settler,
    spans_of_late,
    timers,
)
from highwater.schemas import silver
from highwater.schemas.gold import DELAYED_OPERATIONS
from highwater.schemas.table import TableSpec

START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
LIMITS = Tolerances(5_000, 100_000)
Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def late(operation_id: str, broker_id: int, highest: float = 1, completed: float = 6) -> Row:
    return {
        "cluster_id": "c",
        "broker_id": broker_id,
        "operation_id": operation_id,
        "operation": "produce",
        "class": "late",
        "known_bug": "KAFKA-13091",
        "cause": "isr_change",
        "lowest_time": at(highest),
        "highest_time": at(highest),
        "completed_time": at(completed),
        "error_codes": [0],
        "partitions": [{"topic": "t", "partition": 0, "cause": "isr_change", "isr": [1, 2], "isr_inferred": False}],
    }


def request(broker_id: int | None, came: float, left: float) -> Row:
    return {"cluster_id": "c", "broker_id": broker_id, "arrival_time": at(came), "time": at(left)}


def table(spec: TableSpec, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), select_schema(spec, spec.column_names))


def settled(unsettled: Sequence[Row], requests: Sequence[Row] = (), fetches: Sequence[Row] = ()) -> dict[str, Row]:
    """Rows by operation, as the stage has them."""
    parts = [
        operations(table(DELAYED_OPERATIONS, unsettled)),
        answers(table(silver.REQUESTS, requests), spans_of_late(unsettled)),
        timers(table(silver.FETCH_REQUESTS, fetches)),
    ]
    rows = pa.concat_batches(parts)
    assert rows.schema.names == SHAPE.names
    rows = rows.take(pc.sort_indices(rows, [(name, "ascending") for name in (*BROKER, *ORDER)]))
    rows = rows.select([*BROKER, *COLUMNS])
    blobs = settler(LIMITS)(iter([rows.slice(0, 5), rows.slice(5)]))
    made = [row for part in unpack(blobs) for row in part.to_pylist()]
    assert len(made) == len(unsettled)
    return {row["operation_id"]: row for row in made}


def test_reasons():
    unsettled = [late("forgotten", 1), late("stalled", 2), late("of nobody", -1)]
    requests = [
        request(1, 2, 3),  # came and went meanwhile
        request(2, 0.5, 6.5),  # as late as the operation itself
        request(2, 1, 3),  # came as it should have been answered
        request(2, 5.9, 5.95),  # answered as the broker resumed
        request(3, 2, 3),  # another broker
        request(None, 2, 3),
    ]
    told = settled(unsettled, requests)
    assert {name: (row["class_reason"], row["known_bug"]) for name, row in told.items()} == {
        "forgotten": ("lost_wake_up", "KAFKA-13091"),
        "stalled": ("leader_stalled", None),
        "of nobody": ("lost_wake_up", "KAFKA-13091"),
    }
    # All else is as it was.
    before = table(DELAYED_OPERATIONS, unsettled[:1]).to_pylist()[0]
    assert told["forgotten"] == before | {"class_reason": "lost_wake_up"}


def test_a_timer_is_never_a_wake_up_that_was_lost():
    timer = late("timer", 1) | {"operation": "fetch", "cause": "timer"}
    wake_up = late("wake-up", 1) | {"operation": "fetch", "cause": "bytes"}
    reasons = settled([timer, wake_up], [request(1, 2, 3)])
    assert {key: row["class_reason"] for key, row in reasons.items()} == {
        "timer": "leader_stalled",
        "wake-up": "lost_wake_up",
    }


@pytest.mark.parametrize("seed", range(30))
def test_reasons_are_those_of_all_requests_looked_at(seed: int):
    random = Random(seed)

    def some(count: int, longest: float) -> list[tuple[int, float, float]]:
        begins = [(random.randrange(1, 4), random.randrange(200) / 10) for _ in range(count)]
        return [(broker_id, begin, begin + random.random() * longest + 0.1) for broker_id, begin in begins]

    unsettled = [late(str(number), *values) for number, values in enumerate(some(40, 4))]
    requests = [request(*values) for values in some(40, 3)]
    resume = timedelta(microseconds=RESUME_US)
    expected = {
        row["operation_id"]: any(
            other["broker_id"] == row["broker_id"]
            and other["arrival_time"] > row["highest_time"]
            and other["time"] < row["completed_time"] - resume
            for other in requests
        )
        for row in unsettled
    }
    told = settled(unsettled, requests)
    assert {name: row["class_reason"] == "lost_wake_up" for name, row in told.items()} == expected
    assert len(set(expected.values())) == 2


def test_requests_beside_which_nothing_is_late_are_left_out():
    unsettled = [late("a", 1, 1, 2), late("b", 1, 1.5, 3), late("c", 1, 5, 6), late("d", 2, 8, 9)]
    assert spans_of_late([*unsettled, late("e", 1, 0, 9) | {"class": "jitter"}]) == {
        "c|1": [(at(1), at(3)), (at(5), at(6))],
        "c|2": [(at(8), at(9))],
    }
    times = [(0.5, 2), (1, 2), (1.1, 2.9), (1.1, 3), (4, 4.5), (5.5, 5.6), (8.5, 8.6)]
    requests = table(silver.REQUESTS, [request(1, *both) for both in times])
    there = answers(requests, spans_of_late(unsettled)).column("at_us").to_pylist()
    assert there == [int(at(came).timestamp() * 1e6) for came in (1.1, 5.5)]


def test_ten_thousand_late_operations_of_one_incident():
    """Each is held against all requests of its broker: a hundred million pairs, if one looked at each of them."""
    unsettled = [late(str(n), 1 + n % 2, n / 1_000, n / 1_000 + 2 + n % 7) for n in range(10_000)]
    requests = [request(1 + n % 3, n / 2_000, n / 2_000 + 3 + n % 11) for n in range(40_000)]
    began_s = process_time()
    told = settled(unsettled, requests)
    assert process_time() - began_s < 20

    # By broker, from the last arrival back: when it came, and the first answer to it or to what came after it.
    expected = {}
    for broker_id in (1, 2):
        here = [row for row in unsettled if row["broker_id"] == broker_id]
        came = sorted((row for row in requests if row["broker_id"] == broker_id), key=itemgetter("arrival_time"))
        first_answer = None
        for row in sorted(here, key=itemgetter("highest_time"), reverse=True):
            while came and came[-1]["arrival_time"] > row["highest_time"]:
                answered = came.pop()["time"]
                first_answer = min(answered, first_answer or answered)
            lost = first_answer is not None and first_answer < row["completed_time"] - timedelta(seconds=0.1)
            expected[row["operation_id"]] = ("lost_wake_up", "KAFKA-13091") if lost else ("leader_stalled", None)
    assert {name: (row["class_reason"], row["known_bug"]) for name, row in told.items()} == expected
    assert len(set(expected.values())) == 2


def expired(operation_id: str, handled: float, completed: float) -> Row:
    due = at(handled + 0.5)
    return late(operation_id, 1) | {
        "operation": "fetch",
        "cause": "timer",
        "lowest_time": due - timedelta(milliseconds=1),
        "highest_time": due + timedelta(milliseconds=1),
        "completed_time": at(completed),
        "residual_ms": (completed - handled - 0.502) * 1000,
    }


def asked(broker_id: int | None, handled: float, completed: float) -> Row:
    instants = {"handled_time": at(handled), "completed_time": at(completed)}
    return {"cluster_id": "c", "broker_id": broker_id, "max_wait_ms": 500} | instants


def test_a_timer_runs_after_those_that_were_due_before():
    """``SystemTimer``: one thread runs what expires, in the order of the deadlines."""
    unsettled = [expired("first", 0, 4), expired("second", 0.1, 4.002), expired("third", 0.2, 4.02)]
    unsettled.append(expired("jitter", 0.2, 0.75) | {"class": "jitter"})
    fetches = [asked(1, 0, 4), asked(1, 0.1, 4.002), asked(1, 0.2, 4.02), asked(1, 3.499, 3.9995), asked(2, 0, 9)]
    fetches += [asked(None, 0, 9), asked(1, 0, 9) | {"max_wait_ms": 0}]
    told = settled(unsettled, fetches=fetches)
    assert {name: row["class"] for name, row in told.items()} == {
        "first": "late",
        "second": "explained",
        "third": "jitter",
        "jitter": "explained",
    }
    assert told["first"]["highest_time"] == at(0.501)
    assert told["second"]["highest_time"] == at(4)
    assert (told["second"]["residual_ms"], told["third"]["residual_ms"]) == (1.0, 17.0)
    assert (told["second"]["interval_width_ms"], told["first"]["interval_width_ms"]) == (3401.0, 2.0)
    assert (told["first"]["class_reason"], told["second"]["class_reason"]) == ("leader_stalled", None)


def test_timers_of_files_that_no_broker_is_known_of_are_of_one_as_their_operations_are():
    unsettled = [expired("first", 0, 4) | {"broker_id": -1}, expired("second", 0.1, 4.002) | {"broker_id": -1}]
    by_id = settled(unsettled, fetches=[asked(None, 0, 4), asked(None, 0.1, 4.002)])
    assert {name: row["class"] for name, row in by_id.items()} == {"first": "late", "second": "explained"}


@pytest.mark.parametrize("seed", range(30))
def test_what_held_a_timer_up_is_any_that_was_due_a_tick_before(seed: int):
    random = Random(seed)
    fetches = [asked(1, random.randrange(300) / 1000, 0.5 + random.randrange(900) / 1000) for _ in range(40)]
    unsettled = [expired(str(n), random.randrange(300) / 1000, 1.5) for n in range(40)]
    told = settled(unsettled, fetches=fetches)
    for row in unsettled:
        due = row["highest_time"] - timedelta(milliseconds=1)
        ran = [
            fetch["completed_time"]
            for fetch in fetches
            if fetch["handled_time"] + timedelta(seconds=0.5) < due - timedelta(milliseconds=1)
            and fetch["completed_time"] - fetch["handled_time"] > timedelta(seconds=0.505)
        ]
        assert told[row["operation_id"]]["highest_time"] == max([*ran, row["highest_time"]])
