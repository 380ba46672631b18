"""What happened to the cluster, from rows of the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report.cluster.events import (
    EVENTS_MAX,
    make_events,
    make_failovers,
    make_leaders,
    make_unavailable,
)
from highwater.pipelines.report.cluster.lives import make_lives, make_restarts
from highwater.pipelines.report.cluster.settings import make_settings
from highwater.pipelines.report.cluster.stories import StoryRows, find_lines, make_stories, read_fetches_near
from highwater.schemas.silver import REPLICA_FETCHES
from tests.unit.report.rows import Row

S = 1_000_000
#: 2026-11-20T14:00:00Z
T0 = 1_795_183_200 * S


def at(second: float) -> int:
    return T0 + round(second * S)


def said(second: float, event: str, broker_id: int = 1) -> Row:
    return {"time": at(second), "cluster_id": "c", "broker_id": broker_id, "event": event}


def controller(second: float, event: str, subject: int | None, brokers: list[int] | None = None) -> Row:
    return said(second, event, 3) | {"subject_broker_id": subject, "brokers": brokers}


def isr(second: float, change: str, replica_id: int = 1, partition: int = 0) -> Row:
    return {
        "cluster_id": "c",
        "topic": "orders",
        "partition": partition,
        "replica_id": replica_id,
        "change": change,
        "change_time": at(second),
        "made_by": "leader",
    }


def state(name: str, since: float | None, until: float | None, reason: str = "", broker_id: int = 1) -> Row:
    """Return a row of `gold.broker_timeline`."""
    row = {"cluster_id": "c", "broker_id": broker_id, "position": 0, "state": name, "reason": reason}
    begin, end = (None if second is None else at(second) for second in (since, until))
    return row | {"begin_by_time": begin, "end_by_time": end}


def timeline(*states: Row) -> list[Row]:
    return [row | {"position": position} for position, row in enumerate(states)]


def second_of(text: str | None) -> str | None:
    return None if text is None else text[17:]


# -------------------------------------------------------------------------- lives

UP = state("up", None, 10, "logs_begin")
STOPPED = [UP, state("stopping", 10, 12, "shutdown"), state("down", 12, 20, "shutdown")]
DIED = [UP, state("down", 10, 20, "died")]
BACK = [state("starting", 20, 25, "booted"), state("up", 25, None, "started")]


def test_states_of_a_broker_are_those_of_its_timeline() -> None:
    found = make_lives(timeline(state("unknown", None, None), *STOPPED, *BACK))
    assert [(life.state, second_of(life.start), second_of(life.end)) for life in found] == [
        ("up", None, "10.000Z"),
        ("stopping", "10.000Z", "12.000Z"),
        ("down", "12.000Z", "20.000Z"),
        ("starting", "20.000Z", "25.000Z"),
        ("up", "25.000Z", None),
    ]


def test_a_clean_restart() -> None:
    changes = [isr(10.5, "shrink"), isr(10.6, "shrink", partition=1), isr(30, "expand"), isr(31, "expand", partition=1)]
    (restart,) = make_restarts(timeline(*STOPPED, *BACK), changes)
    assert (restart.ending, second_of(restart.down), second_of(restart.started)) == ("clean", "10.000Z", "25.000Z")
    assert (restart.isr_lost, restart.isr_back, second_of(restart.isr_full)) == (2, 2, "31.000Z")


def test_a_restart_after_a_death() -> None:
    (restart,) = make_restarts(timeline(*DIED, *BACK), [isr(11, "shrink")])
    assert (restart.ending, second_of(restart.down)) == ("found_gone", "10.000Z")
    assert (restart.isr_lost, restart.isr_back, restart.isr_full) == (1, 0, None)


@pytest.mark.parametrize(
    "end", [state("down", 20, 20, "died"), state("down", 10, 20, "ended"), state("up", None, 20, "logs_begin")]
)
def test_no_line_shows_how_a_process_ended(end: Row) -> None:
    (restart,) = make_restarts(timeline(UP, end, *BACK), [])
    assert restart.ending == "unknown"


@pytest.mark.parametrize("states", [[UP], STOPPED, DIED, []])
def test_a_broker_without_a_start_has_no_restart(states: list[Row]) -> None:
    assert make_restarts(timeline(*states), [isr(11, "shrink")]) == ()


def test_a_first_start_is_no_restart() -> None:
    assert make_restarts(timeline(*BACK), []) == ()
    assert [restart.starting for restart in make_restarts(timeline(*BACK, *DIED[1:], *BACK), [])] != []


def test_a_partition_that_a_broker_led_counts_when_it_comes_back_into_the_isr() -> None:
    (restart,) = make_restarts(timeline(*DIED, *BACK), [isr(50, "expand")])
    assert (restart.isr_lost, restart.isr_back) == (1, 1)


# ------------------------------------------------------------------------- events


def moved(second: float, partition: int = 0, **changes: Any) -> Row:
    return {
        "cluster_id": "c",
        "topic": "orders",
        "partition": partition,
        "sequence": 0,
        "reason": "fenced",
        "strategy": "offline",
        "old_leader": 1,
        "new_leader": 2,
        "outcome": "completed",
        "detected_time": at(second),
        "elected_time": at(second + 1),
        "taken_up_time": at(second + 2),
        "detected_to_taken_up_ms": 2000.0,
        "detected_to_serving_ms": 2500.0,
        "approximate": False,
    } | changes


def test_events_that_are_alike_within_a_second_are_one() -> None:
    changes = [isr(5.1 + number / 100, "shrink", partition=number) for number in range(20)]
    found, left_out = make_events(
        [said(3, "started")], [controller(4, "broker_fenced", 1)], changes, [moved(5), moved(5, 1)]
    )
    assert left_out == 0
    assert [(event.kind, event.broker_id, event.count) for event in found] == [
        ("broker_started", 1, 1),
        ("broker_fenced", 1, 1),
        ("isr_shrink", 1, 20),
        ("election", 2, 2),
    ]
    assert len(found[2].partitions) == 12
    assert found[2].detail == "left an ISR (leader): 20 partitions"


def test_the_same_noticed_by_several_brokers_happened_once() -> None:
    noticed = [controller(4 + number / 10, "controller_elected", 2) for number in range(3)]
    assert [event.count for event in make_events([], noticed, [], [])[0]] == [1]


def test_of_too_many_events_the_rare_ones_stay() -> None:
    changes = [isr(number, "shrink") for number in range(EVENTS_MAX + 50)]
    found, left_out = make_events([said(3, "started")], [], changes, [moved(5, strategy="unclean")])
    assert (len(found), left_out) == (EVENTS_MAX, 52)
    assert {event.kind for event in found} == {"broker_started", "isr_shrink", "unclean_election"}
    assert [event.time for event in found] == sorted(event.time for event in found)


def window(second: float, duration_ms: float | None, **changes: Any) -> Row:
    return {
        "cluster_id": "c",
        "topic": "orders",
        "partition": 0,
        "state": "offline",
        "started_time": at(second),
        "ended_time": None if duration_ms is None else at(second + duration_ms / 1000),
        "duration_ms": duration_ms,
        "isr": None,
        "min_insync_replicas": None,
        "produces_refused": None,
    } | changes


def test_windows_that_never_end_come_first_then_the_longest() -> None:
    found, left_out = make_unavailable([window(0, 10.0), window(1, 500.0), window(2, None)])
    assert [row.duration_ms for row in found] == [None, 500.0, 10.0]
    assert left_out == 0


def test_failovers_that_did_not_complete_come_first_and_those_of_no_time_are_counted() -> None:
    timeless = dict.fromkeys(("detected_time", "elected_time", "taken_up_time"))
    rows = [
        moved(0),
        moved(1, 1, detected_to_serving_ms=9000.0),
        moved(2, 2, outcome="unfinished"),
        moved(3, 3, **timeless),
    ]
    found, left_out = make_failovers(rows)
    assert [row.partition for row in found] == [2, 1, 0]
    assert left_out == 1


def test_leaders_are_counted_epoch_by_epoch() -> None:
    def led(second: float, partition: int, leader: int, epoch: int) -> Row:
        row = {"time": at(second), "cluster_id": "c", "topic": "orders", "partition": partition}
        return row | {"leader": leader, "leader_epoch": epoch}

    rows = [led(0, 0, 1, 0), led(0, 1, 1, 0), led(5, 0, 2, 1), led(6, 0, 1, 0), led(9, 1, -1, 1)]
    found = {row.broker_id: [number for _, number in row.steps] for row in make_leaders(rows)}
    assert found == {1: [2, 1, 0], 2: [1]}


# ----------------------------------------------------------------------- settings


def test_settings_that_differ_those_that_are_each_brokers_own_last() -> None:
    def value(broker_id: int, key: str, text: str | None) -> Row:
        return {"broker_id": broker_id, "key": key, "value": text}

    rows = [value(broker, "num.io.threads", text) for broker, text in ((1, "8"), (2, "8"), (3, "16"))]
    rows += [value(broker, "node.id", str(broker)) for broker in (1, 2)]
    rows += [value(broker, "same", "x") for broker in (1, 2)]
    found, left_out = make_settings(rows)
    assert [(setting.key, setting.by_nature) for setting in found] == [("num.io.threads", False), ("node.id", True)]
    assert found[0].values == (("8", (1, 2)), ("16", (3,)))
    assert left_out == 0


# ------------------------------------------------------------------------ stories


def part(**changes: Any) -> Row:
    return {
        "topic": "orders",
        "partition": 0,
        "leader_epoch": 5,
        "base_offset": 100,
        "required_offset": 110,
        "error_code": 0,
        "cause": "high_watermark",
        "closing_replica": 2,
        "isr": [1, 2],
        "missing": None,
    } | changes


def operation(**changes: Any) -> Row:
    parts = (
        "wait_for_fetch_ms",
        "wait_follower_ms",
        "wait_closing_fetch_ms",
        "wait_completion_ms",
        "wait_isr_change_ms",
    )
    return (
        {
            "operation_id": "a1",
            "api": "PRODUCE",
            "cluster_id": "c",
            "broker_id": 1,
            "client_id": "p",
            "connection": "k",
            "correlation_id": 7,
            "arrival_time": at(10),
            "handled_time": at(10.001),
            "completed_time": at(10.5),
            "line_time": at(10.501),
            "lowest_time": at(10.499),
            "highest_time": at(10.5),
            "wait_ms": 499.0,
            "residual_ms": 0.0,
            "succeeded": True,
            "error_codes": [0],
            "class": "explained",
            "class_reason": None,
            "known_bug": None,
            "cause": "high_watermark",
            "closing_topic": "orders",
            "closing_partition": 0,
            "closing_replica": 2,
            "closing_role": "isr_member",
            "wait_carry_ms": 1.0,
            "partitions": [part()],
        }
        | dict.fromkeys(parts)
        | changes
    )


def fetch(number: int, second: float, offset: int, **changes: Any) -> Row:
    return {
        "time": at(second + 0.1),
        "broker_id": 1,
        "topic": "orders",
        "partition": 0,
        "replica_id": 2,
        "fetch_offset": offset,
        "dequeued_time": at(second),
        "handled_time": at(second),
        "completed_time": at(second + 0.1),
        "response_bytes": 512,
        "file_id": "f",
        "byte_offset": number,
        "line_no": number,
    } | changes


REQUEST = {
    "time": at(10.501),
    "broker_id": 1,
    "connection": "k",
    "correlation_id": 7,
    "file_id": "f",
    "byte_offset": 99,
    "line_no": 99,
}
FETCHES = [fetch(1, 9.5, 90), fetch(2, 10.0, 100), fetch(3, 10.4, 110), fetch(4, 10.6, 120)]


def test_a_story_names_the_fetch_that_carried_and_the_fetch_that_closed() -> None:
    texts = {("f", 2): "carried", ("f", 3): "closed", ("f", 99): "answered"}
    rows = StoryRows([operation()], [REQUEST], FETCHES, texts, {"f": "1/kafka-request.log"})
    assert find_lines(rows) == {("f", 2): at(10.1), ("f", 3): at(10.5), ("f", 99): at(10.501)}
    (story,) = make_stories(rows)
    told = [(step.time[17:-1], step.text) for step in story.steps]
    assert told == [
        ("10.000", None),
        ("10.000", "carried"),
        ("10.001", None),
        ("10.400", "closed"),
        ("10.499", None),
        ("10.500", "answered"),
    ]
    assert "Appended to orders-0 at offsets 100 to 109" in story.steps[2].what
    assert story.steps[3].what == "Fetch of broker 2 at offset 110: it has all of the records."
    assert story.steps[-1].file == "1/kafka-request.log"
    assert story.parts_ms == {"carry": 1.0}


@pytest.mark.parametrize(
    "changes", [{"completed_time": at(9.99)}, {"response_bytes": 0}], ids=["answered before", "empty"]
)
def test_a_fetch_whose_answer_cannot_have_had_the_records_did_not_carry_them(changes: Row) -> None:
    """The one that did is of a session, and names the partition no more: it is in no row."""
    (story,) = make_stories(StoryRows([operation()], [], [fetch(2, 9.9, 100, **changes), fetch(3, 10.4, 110)]))
    told = [step.what for step in story.steps if step.what.startswith("Fetch of")]
    assert told == ["Fetch of broker 2 at offset 110: it has all of the records."]


def test_what_is_not_in_the_logs_is_said() -> None:
    timed_out = operation(error_codes=[7], succeeded=False, cause="timer", lowest_time=None, class_reason="no_fetch")
    (story,) = make_stories(StoryRows([timed_out], [], FETCHES[:2]))
    words = [step.what for step in story.steps]
    assert "No fetch of broker 2 that shows the records is in the logs." in words
    assert "When to answer is unknown: no_fetch." in words
    assert words[-1] == "Answered with REQUEST_TIMED_OUT: explained."


def test_an_operation_of_no_known_partition_has_a_story_too() -> None:
    (story,) = make_stories(StoryRows([operation(closing_topic=None, closing_replica=None, partitions=[])]))
    assert story.closing_partition is None
    assert any(step.what == "Left the request handler: the wait begins." for step in story.steps)


def test_fetches_near_an_operation_are_those_of_its_partition_and_time() -> None:
    rows = [*FETCHES, fetch(5, 10.2, 100, replica_id=3), fetch(6, 10.2, 100, partition=1), fetch(7, 30, 200)]
    stored = [{"cluster_id": "c", "source": "request", **row} for row in rows]
    reader = LakeReader(Path("lake"), {})
    reader.show(REPLICA_FETCHES.full_name, pa.Table.from_pylist(stored, REPLICA_FETCHES.arrow_schema))
    produce = operation(operation="produce")
    assert sorted(row["line_no"] for row in read_fetches_near(reader, [produce])) == [1, 2, 3, 4]
    assert sorted(row["line_no"] for row in read_fetches_near(reader, [produce], of_others=True)) == [1, 2, 3, 4, 5]
    assert read_fetches_near(reader, [operation(operation="fetch")]) == []
