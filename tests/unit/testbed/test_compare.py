"""An audit that tells all as it was agrees; each single thing told otherwise, missed or made up is a difference."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.testbed.audited import Audited
from tests.testbed.check import table
from tests.testbed.compare import Check, compare
from tests.testbed.history import Fault, History, Produced

pytestmark = pytest.mark.unit

Row = dict[str, Any]


def history() -> History:
    """Broker 2 pauses and restarts, controller 1 is killed and comes back; one record of each kind of acks is lost."""
    node = {"version": "3.6.2", "mode": "kraft"}
    faults = (
        Fault(100, "load", None, {"versions": {"1": "3.6.2", "2": "3.6.2"}, "mode": "kraft", "controller": 1}),
        Fault(110, "pause", 2, {"seconds": 5}),
        Fault(115, "resume", 2, {}),
        Fault(130, "alter_config", None, {"topic": "orders", "config": {"min.insync.replicas": 1}}),
        Fault(140, "reassign", None, {"topic": "scratch", "partition": 0, "replicas": [2, 1]}),
        Fault(150, "term", 2, {}),
        Fault(155, "start", 2, node),
        Fault(200, "kill", 1, {"role": "active controller"}),
        Fault(210, "start", 1, node),
        Fault(300, "delete_topic", None, {"topic": "scratch"}),
        Fault(310, "end", None, {"controller": 2}),
        Fault(320, "stop", None, {}),
    )
    produced = (
        Produced("orders", 0, 0, "a", "all", 101, 101.1),
        Produced("orders", 0, 7, "b", "all", 102, 102.1),
        Produced("orders", 0, 9, "c", "1", 103, 103.1),
    )
    return History(produced, faults, {("orders", 0): {0: "a"}}, {("orders", 0): 0}, {("ledger", 1): (4, 5)})


def finding(rule: str, topic: str, partition: int, start: int, end: int, severity: str = "violation") -> Row:
    return {
        "rule_id": rule,
        "severity": severity,
        "implied_by": None,
        "topic": topic,
        "partition": partition,
        "offset_start": start,
        "offset_end": end,
        "time": 102.0,
        "known_bug": None,
        "message": "it is so",
    }


def an_operation(kind: str, residual_ms: float | None, arrival_s: float = 170.0) -> Row:
    times = {"arrival_time": arrival_s, "completed_time": arrival_s + 0.5}
    row = {"broker_id": 2, "operation": kind, "api": kind.upper(), "succeeded": True, "parked": True, **times}
    return row | {"class": "unobservable" if residual_ms is None else "explained", "residual_ms": residual_ms}


def audited() -> Audited:
    """An audit that is right."""
    node = {"kafka_version": "3.6.2", "mode": "kraft"}
    return Audited(
        brokers=frozenset({1, 2}),
        coverage=({"logger": "kafka.request.logger", "outcome": "typed", "line_count": 1000},),
        findings=(
            finding("committed-data-lost", "orders", 0, 7, 8),
            finding("replica-bytes-diverged", "ledger", 1, 4, 6),
            finding("acked-by-leader-only-lost", "orders", 0, 9, 10, "observation"),
        ),
        lives=(
            {"broker_id": 1, "time": 90.0, "event": "version", **node},
            {"broker_id": 2, "time": 90.0, "event": "version", **node},
            {"broker_id": 2, "time": 150.5, "event": "shutting_down", **node},
            {"broker_id": 2, "time": 156.0, "event": "starting", **node},
            {"broker_id": 1, "time": 211.0, "event": "starting", **node},
        ),
        isr=tuple(
            {"replica_id": replica, "change": change, "change_time": time_s, "class": "predicted"}
            for replica, change, time_s in (
                *((2, "shrink", 114.0), (2, "expand", 116.0), (2, "expand", 160.0)),
                *((1, "shrink", 204.0), (1, "expand", 215.0)),
            )
        ),
        failovers=(
            {
                "failed_broker_id": 1,
                "reason": "fenced",
                "strategy": "offline",
                "topic": "orders",
                "partition": 0,
                "detected_time": 207.0,
                "elected_time": 207.1,
                "taken_up_time": None,
                "serving_time": None,
            },
        ),
        controller_events=(
            {"time": 91.0, "event": "controller_elected", "subject_broker_id": 1, "topic": None, "partition": None},
            {"time": 204.0, "event": "controller_elected", "subject_broker_id": 2, "topic": None, "partition": None},
            {"time": 140.5, "event": "reassignment", "subject_broker_id": None, "topic": "scratch", "partition": 0},
            {"time": 300.5, "event": "topic_deleted", "subject_broker_id": None, "topic": "scratch", "partition": None},
        ),
        operations=(*[an_operation("produce", 0.0)] * 200, *[an_operation("fetch", 4.9)] * 200),
        configs=({"time": 130.2, "scope": "topic", "entity": "orders", "key": "min.insync.replicas", "value": "1"},),
    )


def differing(seen: Audited, true: History | None = None) -> list[Check]:
    return [check for check in compare(true or history(), seen) if not check.agrees]


def without(name: str, number: int) -> Audited:
    """The right audit but for one row."""
    seen = audited()
    rows = getattr(seen, name)
    return dataclasses.replace(seen, **{name: rows[:number] + rows[number + 1 :]})


def plus(name: str, row: Row) -> Audited:
    """The right audit and one row more."""
    seen = audited()
    return dataclasses.replace(seen, **{name: (*getattr(seen, name), row)})


def test_an_audit_that_is_right_agrees_in_everything():
    checks = compare(history(), audited())
    assert [check for check in checks if not check.agrees] == []
    shown = [check.what.split(" ", 1)[-1] for check in checks]
    assert {"kill broker 1", "term broker 2", "pause broker 2", "alter_config orders", "reassign scratch"} <= set(shown)


@pytest.mark.parametrize(
    ("name", "number", "what"),
    [
        ("findings", 0, "missed"),
        ("findings", 1, "missed"),
        ("findings", 2, "records of acks=1"),
        ("lives", 0, "load"),
        ("lives", 2, "term broker 2"),
        ("lives", 3, "start broker 2"),
        ("lives", 4, "start broker 1"),
        ("isr", 0, "pause broker 2"),
        ("isr", 2, "start broker 2"),
        ("isr", 3, "kill broker 1"),
        ("isr", 4, "start broker 1"),
        ("controller_events", 0, "kill broker 1"),
        ("controller_events", 1, "end"),
        ("controller_events", 2, "reassign scratch"),
        ("controller_events", 3, "delete_topic scratch"),
        ("configs", 0, "alter_config orders"),
    ],
)
def test_what_is_not_told_is_a_difference(name: str, number: int, what: str):
    differ = differing(without(name, number))
    assert any(check.what.endswith(what) for check in differ), differ


def a_failure(reason: str, strategy: str, time_s: float) -> Row:
    return audited().failovers[0] | {"reason": reason, "strategy": strategy, "detected_time": time_s}


@pytest.mark.parametrize(
    ("name", "row", "what"),
    [
        ("findings", finding("committed-data-lost", "orders", 0, 20, 21), "accused"),
        ("findings", finding("committed-data-lost", "__consumer_offsets", 1, 7, 8), "accused"),
        ("findings", finding("hw-regression", "orders", 0, 7, 8, "open"), "accused"),
        ("findings", finding("late-completion", "orders", 0, 7, 8), "accused"),
        ("findings", finding("acked-by-leader-only-lost", "orders", 0, 2, 3, "observation"), "observed"),
        ("lives", {"broker_id": 2, "time": 250.0, "event": "starting", "kafka_version": None, "mode": None}, "started"),
        ("failovers", a_failure("fenced", "offline", 290.0), "failed"),
        ("failovers", a_failure("preferred", "unclean", 170.0), "elected uncleanly"),
        (
            "lives",
            {"broker_id": 1, "time": 250.0, "event": "version", "kafka_version": "3.6.1", "mode": None},
            "node 1",
        ),
        ("lives", {"broker_id": 2, "time": 250.0, "event": "x", "kafka_version": None, "mode": "zookeeper"}, "node 2"),
    ],
)
def test_what_is_made_up_is_a_difference(name: str, row: Row, what: str):
    assert [check.what for check in differing(plus(name, row))] == [what]


def test_an_observation_or_a_thing_implied_accuses_nobody():
    implied = finding("committed-data-lost", "orders", 0, 20, 21) | {"implied_by": "x"}
    assert differing(plus("findings", implied)) == []
    assert differing(plus("findings", finding("error-yet-committed", "orders", 0, 1, 2, "observation"))) == []


def test_a_late_completion_is_right_where_a_client_waited():
    true = history()
    slow = Produced("orders", 0, 0, "a", "all", 101.5, 106.0)
    seen = plus("findings", finding("late-completion", "orders", 0, 7, 8))
    assert differing(seen, dataclasses.replace(true, produced=(slow, *true.produced[1:]))) == []


@pytest.mark.parametrize(("brokers", "what"), [({1}, "node 2"), ({1, 2, 9}, "node 9"), ({1, 2, None}, "node -1")])
def test_a_node_that_is_missing_or_made_up_is_a_difference(brokers: set[int | None], what: str):
    assert [check.what for check in differing(dataclasses.replace(audited(), brokers=frozenset(brokers)))] == [what]


@pytest.mark.parametrize(
    ("kind", "residual_ms", "count", "what"),
    [
        ("produce", 5.1, 2, ["produces within 5 ms"]),
        ("produce", -5.1, 2, ["produces within 5 ms"]),
        ("produce", None, 2, ["produces within 5 ms"]),
        ("produce", 5.1, 1, []),
        ("fetch", 9.0, 4, ["parked fetches within 5 ms"]),
        ("fetch", 9.0, 3, []),
    ],
)
def test_predictions_that_are_not_close_are_a_difference(kind: str, residual_ms: float, count: int, what: list[str]):
    seen = audited()
    far = [an_operation(kind, residual_ms)] * count
    assert [check.what for check in differing(dataclasses.replace(seen, operations=(*seen.operations, *far)))] == what


def test_nobody_expects_a_stopped_leader_to_answer():
    seen = audited()
    held_up = [an_operation("fetch", 4000.0, arrival_s=109.8)] * 50
    assert differing(dataclasses.replace(seen, operations=(*seen.operations, *held_up))) == []
    another = [row | {"broker_id": 1} for row in held_up]
    assert len(differing(dataclasses.replace(seen, operations=(*seen.operations, *another)))) == 1


def test_nobody_expects_a_prediction_from_a_fetch_that_died_with_the_leader():
    seen = audited()
    # Answered at 199.9; the leader is killed at 200.
    unlogged = [an_operation("produce", None, arrival_s=199.4) | {"broker_id": 1}] * 50
    assert differing(dataclasses.replace(seen, operations=(*seen.operations, *unlogged))) == []
    for other in ({"broker_id": 2}, {"completed_time": 199.4}, {"operation": "fetch"}):
        rows = [row | other for row in unlogged]
        assert len(differing(dataclasses.replace(seen, operations=(*seen.operations, *rows)))) == 1


def test_who_is_elected_as_the_cluster_is_shut_down_matters_to_nobody():
    event = {"event": "controller_elected", "subject_broker_id": 1, "topic": None, "partition": None}
    assert differing(plus("controller_events", {**event, "time": 235.0}))[0].what.endswith("end")
    assert [check.what for check in differing(plus("controller_events", {**event, "time": 315.0}))] == []


def test_no_operations_at_all_are_a_difference():
    assert len(differing(dataclasses.replace(audited(), operations=()))) == 2


def test_unparsed_lines_of_loggers_that_are_read_are_a_difference():
    row = {"logger": "kafka.request.logger", "outcome": "unparsed", "line_count": 6}
    assert [check.what for check in differing(plus("coverage", row))] == ["typed or known"]


def test_where_nothing_is_lost_no_finding_is_right():
    true = history()
    kept = dataclasses.replace(true, produced=true.produced[:1], differing={})
    assert differing(dataclasses.replace(audited(), findings=()), kept) == []
    wrong = [check.what for check in differing(audited(), kept)]
    assert sorted(wrong) == ["accused", "accused", "observed", "records of acks=all"]


def test_a_broker_runs_the_release_of_its_last_start():
    true = history()
    upgraded = Fault(210, "start", 1, {"version": "3.9.1", "mode": "kraft"})
    faults = tuple(upgraded if (fault.what, fault.broker) == ("start", 1) else fault for fault in true.faults)
    seen = audited()
    assert {check.what.split(" ", 1)[-1] for check in differing(seen, dataclasses.replace(true, faults=faults))} == {
        *("start broker 1", "1"),
    }


def test_a_short_pause_leaves_no_trace_in_isrs():
    true = history()
    pause = Fault(110, "pause", 2, {"seconds": 2})
    faults = tuple(pause if fault.what == "pause" else fault for fault in true.faults)
    assert differing(without("isr", 0), dataclasses.replace(true, faults=faults)) == []


def test_what_differs_is_marked_in_the_table():
    text = table([Check("a", "1", "1", True), Check("b", "1", "2", False)])
    assert [line.endswith("DIFFERS") for line in text.splitlines()] == [False, False, True]
