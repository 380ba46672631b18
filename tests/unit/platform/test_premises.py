"""Rows of all kinds, as one query brings them, become the premises of an audit."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.cluster.premises import (
    CONFIG,
    EVENT,
    FILE,
    LIFE,
    NAME,
    PARSED,
    RECORD,
    SNAPSHOT,
    TRANSACTIONAL,
    LogFile,
    Premises,
    build_premises,
    find_coarse_spans,
)
from highwater.pipelines.controllers.cluster_facts import collect_facts, find_active_controllers
from highwater.pipelines.kafka.context import ALL_BROKERS, BROKER, DYNAMIC, MIN_ISR, TOPIC, Contexts, Spans
from highwater.pipelines.kafka.controller_rows import EventRow, LineRef
from highwater.pipelines.replay.isr_evidence import FENCED, SHUTTING_DOWN, UNFENCED
from highwater.pipelines.replay.log_evidence import fencings

COLUMNS = (
    *("event", "mode", "kafka_version", "detail", "line_no", "controller_epoch"),
    *("subject_broker_id", "brokers", "topic", "topic_id", "leader", "source", "offset", "record", "record_no"),
    *("node_id", "node_epoch", "fenced", "in_controlled_shutdown", "path", "file_kind", "first_us", "last_us"),
    "resolution_us",
)


def row(kind: str, time_us: int = 0, broker_id: int | None = 1, **values: Any) -> dict[str, Any]:
    """A row of the union: columns of other kinds are null."""
    place = {"cluster_id": "c", "broker_id": broker_id, "file_id": "f", "byte_offset": time_us, "time_us": time_us}
    return {"kind": kind, **place, **dict.fromkeys(COLUMNS), **values}


def settings(*pairs: tuple[str, str]) -> dict[str, list[str]]:
    return {"keys": [key for key, _ in pairs], "values": [value for _, value in pairs]}


def test_the_last_run_of_a_broker_is_from_its_last_start_to_its_last_line() -> None:
    rows = [
        row(FILE, path="server.log", file_kind="server", first_us=1, last_us=70),
        row(FILE, path="server.log.1", file_kind="server", first_us=0, last_us=1),
        row(FILE, path="controller.log", file_kind="controller"),
        row(FILE, broker_id=2, path="2/server.log", file_kind="server", first_us=2, last_us=90),
        *(row(LIFE, time_us, event="starting") for time_us in (5, 40)),
    ]
    assert build_premises(rows, 7).contexts.last_runs == {("c", 1): (40, 70), ("c", 2): (0, 90)}


def test_files_in_which_no_client_can_write_are_known_by_their_kinds() -> None:
    kinds = ("server", "state-change", "controller", "kafka-request", "log-cleaner", "other")
    rows = [row(FILE, path=f"{kind}.log", file_kind=kind) | {"file_id": kind} for kind in kinds]
    assert build_premises(rows, 7).contexts.client_free_files == {"state-change", "log-cleaner"}


def test_lines_of_lives_and_of_configuration_are_folded_in_the_order_of_the_log() -> None:
    rows = [
        row(LIFE, 1, event="starting", mode="kraft"),
        row(LIFE, 2, event="version", kafka_version="3.6.2"),
        row(LIFE, 3, event="started", mode="kraft"),
        row(LIFE, 4, event="version", kafka_version="2.8.0"),
        row(FILE, path="server.log", file_kind="server", kafka_version="3.7.0"),
        row(CONFIG, 3, scope=BROKER, entity="1", **settings((MIN_ISR, "2"))),
        row(CONFIG, 4, scope=DYNAMIC, entity=ALL_BROKERS, **settings((MIN_ISR, "3"))),
        row(CONFIG, 5, scope=TOPIC, entity="orders", **settings((MIN_ISR, "1"))),
        row(LIFE, 6, event="starting", mode="kraft"),
        row(LIFE, 7, event="version", kafka_version="3.7.0"),
    ]
    expected = Contexts(
        {("c", 1): "3.7.0"},
        {("c", 1, MIN_ISR): ((0, "2"), (4, "3"))},
        {("c", 1, "orders", MIN_ISR): ((5, "1"), (60_000_006, None))},
        7,
        {("c", 1): ((1, "3.6.2"), (6, "3.7.0"))},
        {("c", 1, None): 1, ("c", 1, "orders"): 5},
    )
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        assert build_premises(rows, 7).contexts == expected


def test_files_are_parsed_if_silver_counts_their_lines() -> None:
    times = {"path": "server.log", "file_kind": "server", "first_us": 1, "last_us": 9}
    rows = [row(PARSED, file_id="a"), row(FILE, file_id="a", **times), row(FILE, cluster_id=None, file_id="b", **times)]
    assert build_premises(rows, 0).files == (
        LogFile("a", "server.log", "server", "c", 1, 1, 9, True),
        LogFile("b", "server.log", "server", "unknown", 1, 1, 9, False),
    )


def test_times_of_whole_seconds_are_coarse_from_a_brokers_first_file_to_its_last() -> None:
    def file(broker_id: int | None, first: int, last: int, resolution_us: int | None, kind: str = "server") -> LogFile:
        return LogFile(f"{first}", "p", kind, "c", broker_id, first, last, True, resolution_us)

    second = 1_000_000
    files = [
        file(1, 10 * second, 20 * second, second),
        file(1, 40 * second, 50 * second, second, "state-change"),
        file(1, 60 * second, 70 * second, 1_000),
        file(2, 10 * second, 20 * second, None),
        file(3, 10 * second, 20 * second, second, "other"),
        file(None, 10 * second, 20 * second, second),
    ]
    assert find_coarse_spans(files) == {
        ("c", 1): [(10 * second, 51 * second)],
        ("c", UNKNOWN_BROKER): [(10 * second, 21 * second)],
    }


def test_only_what_was_coarse_before_a_seal_has_the_past_replayed_anew() -> None:
    def digest(spans: Spans) -> str:
        return Premises(contexts=Contexts(coarse=spans)).digest(("c", 1), 100)

    assert digest({}) == digest({("c", 1): [(100, 200)]}) == digest({("c", 2): [(0, 200)]})
    assert digest({("c", 1): [(90, 200)]}) == digest({("c", 1): [(90, 300)]}) != digest({})


@pytest.mark.parametrize(
    ("spans", "overlap"),
    [
        (((1, 1, 5), (1, 6, 9)), False),
        (((1, 1, 5), (1, 5, 9)), True),
        (((1, 1, 20), (1, 3, 4), (1, 10, 12)), True),
        (((1, 1, 5), (2, 1, 5)), False),
        (((1, 6, 9), (1, 1, 5), (1, None, None)), False),
    ],
)
def test_request_logs_of_one_broker_overlap(spans: tuple[tuple[int, Any, Any], ...], overlap: bool) -> None:
    files = tuple(LogFile(f"{number}", "p", "kafka-request", "c", *span, True) for number, span in enumerate(spans))
    others = tuple(file._replace(kind="server") for file in files)
    assert Premises(files=files).has_overlapping_request_logs is overlap
    assert not Premises(files=others).has_overlapping_request_logs


def test_names_and_snapshots() -> None:
    names = [row(NAME, broker_id=None, topic_id=f"id{number}", topic=f"t{number}") for number in range(3)]
    premises = build_premises([*names, row(SNAPSHOT, broker_id=3, offset=99)], 0)
    assert premises.topic_names == {("c", f"id{number}"): f"t{number}" for number in range(3)}
    assert premises.snapshots == {("c", 3): 99}


def test_the_plan_of_controllers_has_starts_events_and_registrations() -> None:
    leads = {"source": "log", "record": "LeaderChangeMessage", "leader": 3, "controller_epoch": 7}
    fence = {"source": "log", "record": "FenceBrokerRecord", "node_id": 2, "node_epoch": 5, "offset": 40}
    premises = build_premises(
        [
            row(LIFE, 5, event="starting", mode="kraft", line_no=1),
            row(LIFE, 6, event="clock_set_back", detail="2.5", line_no=1),
            row(EVENT, 3, event="broker_failed", brokers=[2], line_no=9),
            row(EVENT, 4, event="config_changed", topic="orders", line_no=10),
            row(RECORD, 8, record_no=1, **leads),
            row(RECORD, 9, record_no=2, **fence),
        ],
        0,
    )
    facts = collect_facts(premises)
    assert facts.events == {
        "c": [
            EventRow(3, 1, LineRef("f", 3, 9), "broker_failed", brokers=(2,)),
            EventRow(5, 1, LineRef("f", 5, 1), "starting"),
        ]
    }
    assert [event.event for event in facts.topic_events["c", "orders"]] == ["config_changed"]
    assert facts.kraft == {"c": True}
    assert [(step.subject_broker_id, step.change) for step in facts.registrations["c"]] == [(2, "fenced")]
    assert find_active_controllers(premises) == {("c", 7): 3}


def test_how_brokers_stood_with_a_controller_of_kraft() -> None:
    rows = [
        row(EVENT, 1, event="broker_registered", subject_broker_id=2),
        row(EVENT, 5, event="broker_fenced", subject_broker_id=2),  # is so already
        row(EVENT, 9, event="broker_unfenced", subject_broker_id=2),
        row(EVENT, 20, event="broker_fenced", subject_broker_id=2),
        row(EVENT, 20, event="broker_unfenced", subject_broker_id=2, byte_offset=21),  # the last word of an instant
        row(EVENT, 30, event="controlled_shutdown", subject_broker_id=2),
        row(EVENT, 31, event="broker_failed", subject_broker_id=2),  # no word of a KRaft controller
        row(EVENT, 32, event="controller_elected"),
    ]
    standing = ((1, FENCED), (9, UNFENCED), (30, SHUTTING_DOWN))
    assert fencings(build_premises(rows[::-1], 0)) == {("c", 1): {2: standing}}


def test_a_controller_of_zookeeper_registers_brokers_that_may_join_at_once() -> None:
    rows = [
        row(LIFE, event="starting", mode="zookeeper"),
        row(EVENT, 1, event="broker_registered", subject_broker_id=2),
        row(EVENT, 2, event="broker_failed", subject_broker_id=2),
    ]
    assert fencings(build_premises(rows, 0)) == {("c", 1): {2: ((1, UNFENCED), (2, FENCED))}}


def test_a_digest_is_of_what_was_told_of_a_broker_before_an_instant() -> None:
    rows = [
        row(CONFIG, at, broker, scope=BROKER, entity=str(broker), **settings((MIN_ISR, value)))
        for broker in (1, 2)
        for at, value in ((3, "1"), (8, "2"))
    ]
    premises = build_premises(rows, 0)
    later = row(CONFIG, 9, 2, scope=TOPIC, entity="orders", **settings((MIN_ISR, "1")))
    more = build_premises([*rows, later], 0)
    assert premises.digest(("c", 1), 99) == more.digest(("c", 1), 99)
    assert premises.digest(("c", 2), 9) == more.digest(("c", 2), 9)
    assert premises.digest(("c", 2), 10) != more.digest(("c", 2), 10)
    assert premises.digest(("c", 1), 8) != premises.digest(("c", 1), 9)
    versioned = replace(premises, contexts=replace(premises.contexts, versions={("c", 1): "3.9.1"}))
    assert premises.digest(("c", 1), 8) != versioned.digest(("c", 1), 8)


def test_a_client_that_uses_one_transactional_id_is_known_by_it() -> None:
    def used(client_id: str | None, transactional_id: str, **values: Any) -> dict[str, Any]:
        told = {"client_id": client_id, "transactional_id": transactional_id, "remote_host": "r", "begins": True}
        return row(TRANSACTIONAL, **({"producer_id": None} | told | values))

    rows = [
        used("one", "tx", producer_id=4),
        used("one", "tx", producer_id=4, begins=False),
        used("one", "other", begins=False, producer_id=5),
        used("two", "tx", producer_id=-1),
        used("two", "ty", producer_id=5),
        used("two", "ty", remote_host=None),
        used(None, "tx"),
    ]
    premises = build_premises(rows, 0)
    assert premises.transactional_clients == {("c", "one", "r"): "tx", ("c", "two", ""): "ty"}
    assert premises.producers == {("c", 4): "tx", ("c", 5): "ty"}
