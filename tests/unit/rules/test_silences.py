"""Logs that are silent while their broker does what they used to log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.cluster.premises import (
    GROWTH,
    PRODUCE,
    REQUEST_FILE,
    STARTING,
    FetchRun,
    LifecycleRow,
    Stretch,
)
from highwater.pipelines.kafka.controller_rows import LineRef
from highwater.pipelines.rules.holes_stage import SQL
from highwater.pipelines.rules.silences import (
    ADDED,
    CHANGE,
    Leadership,
    Unpaired,
    silent_logs,
    unlogged_leaderships,
    unpaired_silences,
)
from highwater.pipelines.rules.spans import merge

BROKER = "c", 1
Seconds = tuple[float, float]


def stretches(kind: str, detail: str, spans: Sequence[Seconds], topic: str | None = None) -> list[Stretch]:
    return [
        Stretch(*BROKER, kind, detail, int(since * SECOND_US), int(until * SECOND_US), topic) for since, until in spans
    ]


def fetches(spans: Sequence[Seconds], leader: int = 1, follower: int = 2) -> list[FetchRun]:
    times = [(int(since * SECOND_US), int(until * SECOND_US)) for since, until in spans]
    return [FetchRun("c", leader, "a", follower, number, number, *span) for number, span in enumerate(times)]


def found(lines: Sequence[Stretch], runs: Sequence[FetchRun] = ()) -> list[tuple[str, Seconds]]:
    holes = silent_logs(lines, runs, {("c", "t1"): "orders", ("c", "t2"): "__consumer_offsets"})
    return [(hole.kind, ((hole.since_us or 0) / SECOND_US, (hole.until_us or 0) / SECOND_US)) for hole in holes]


WORKS = {
    "followers fetch": fetches([(0, 100)]),
    "it fetches": fetches([(0, 100)], leader=2, follower=1),
}


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("kind", ["server", "state-change", "controller"])
def test_a_steady_log_that_is_silent_during_the_same_work_lacks_lines(work: str, kind: str) -> None:
    assert found(stretches(kind, "INFO", [(0, 60), (74, 100)]), WORKS[work]) == [(kind, (60, 74))]
    assert found(stretches(kind, "INFO", [(0, 85)]), WORKS[work]) == [(kind, (85, 100))]
    assert found(stretches(kind, "INFO", [(15, 100)]), WORKS[work]) == [(kind, (0, 15))]


def test_a_silent_log_has_its_rhythm() -> None:
    sparse = [(at, at) for at in range(0, 100, 20)]
    burst = [(0, 5), (95, 100)]
    for spans in (sparse, burst):
        assert found(stretches("server", "INFO", spans), WORKS["it fetches"]) == []


def test_a_paused_broker_does_no_work() -> None:
    assert found(stretches("server", "INFO", [(0, 60), (74, 100)]), fetches([(0, 60), (74, 100)])) == []
    assert found(stretches("server", "INFO", [(0, 60), (74, 100)])) == []


@pytest.mark.parametrize("level", ["DEBUG", "TRACE"])
def test_a_level_that_vanishes_for_a_while_is_missing(level: str) -> None:
    lines = stretches("server", "INFO", [(0, 100)])
    assert found([*lines, *stretches("server", level, [(0, 60), (74, 100)])], WORKS["it fetches"]) == [
        ("server", (60, 74))
    ]
    # One that does not come back was switched off.
    assert found([*lines, *stretches("server", level, [(0, 85)])], WORKS["it fetches"]) == []


def test_produces_that_vanish_while_the_log_grows_are_missing() -> None:
    requests = stretches(REQUEST_FILE, "DEBUG", [(0, 100)])
    produces = stretches(REQUEST_FILE, PRODUCE, [(0, 60), (74, 100)])
    for topic, holes in {"orders": 1, "id:t1": 1, "id:t2": 0, "id:t3": 0, "__transaction_state": 0}.items():
        grows = stretches(REQUEST_FILE, GROWTH, [(0, 100)], topic)
        assert len(found([*requests, *produces, *grows])) == holes
    idle = stretches(REQUEST_FILE, GROWTH, [(0, 60), (74, 100)], "orders")
    assert found([*requests, *produces, *idle]) == []


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)).map(lambda span: (span[0], sum(span))), max_size=9)


@given(spans, st.integers(0, 5))
def test_merged_spans_cover_the_same_instants(given_spans: list[tuple[int, int]], gap: int) -> None:
    merged = merge(given_spans, gap)
    covered = {at for since, until in given_spans for at in range(since, until + 1)}
    assert covered <= {at for since, until in merged for at in range(since, until + 1)}
    assert all(after[0] - before[1] > gap for before, after in pairwise(merged))


def leadership(time_s: float, next_s: float | None = None, kind: str | None = "state-change") -> Leadership:
    next_us = None if next_s is None else int(next_s * SECOND_US)
    return Leadership(*BROKER, kind, "orders", 0, 7, int(time_s * SECOND_US), next_us)


def life(event: str, time_s: float) -> LifecycleRow:
    return LifecycleRow(*BROKER, int(time_s * SECOND_US), LineRef("f", 0, 1), event, None, None, None)


@pytest.mark.parametrize(
    ("named", "spans", "lives", "count"),
    [
        (leadership(100), [(0, 90), (109, 200)], [], 1),
        (leadership(100, next_s=150), [(0, 200)], [], 1),
        # It received the next epoch with this one.
        (leadership(100, next_s=105), [(0, 200)], [], 0),
        # It was paused, or dead.
        (leadership(100), [(0, 90), (120, 200)], [], 0),
        (leadership(100), [(0, 100)], [], 0),
        (leadership(100), [(0, 80)], [], 0),
        # Its logs begin later.
        (leadership(100), [(105, 200)], [], 0),
        (leadership(100), [(0, 200)], [life(STARTING, 130)], 0),
        (leadership(100), [(0, 200)], [life(STARTING, 10)], 1),
        (leadership(100, kind=None), [(0, 200)], [], 0),
    ],
)
def test_a_live_broker_logs_that_it_leads(
    named: Leadership, spans: list[Seconds], lives: list[LifecycleRow], count: int
) -> None:
    holes = unlogged_leaderships([named], stretches("server", "INFO", spans), lives)
    assert [(hole.kind, hole.reason) for hole in holes] == [("state-change", "silent")] * count


def unpaired(time_s: float, line: str = CHANGE, paired: int = 9) -> Unpaired:
    return Unpaired(*BROKER, "server", "state-change", line, "orders", 0, int(time_s * SECOND_US), paired)


SILENT = [(0, 60), (80, 100)]


@pytest.mark.parametrize(
    ("one", "server", "others", "lives", "holes"),
    [
        (unpaired(70), SILENT, [(0, 100)], [], [(60, 80)]),
        (unpaired(70, ADDED), SILENT, [(0, 70)], [], [(60, 80)]),
        # A cut tail is missing at least until the last line that proves it.
        (unpaired(70), [(0, 60)], [(0, 100)], [], [(60, 70)]),
        # The log is not silent then, begins later, or was copied a moment before the other one.
        (unpaired(60.5), SILENT, [(0, 100)], [], []),
        (unpaired(70), [(80, 100)], [(0, 100)], [], []),
        (unpaired(63), [(0, 60)], [(0, 100)], [], []),
        # The broker died before it removed the fetcher, or started after it, or was paused.
        (unpaired(70), SILENT, [(0, 71)], [], []),
        (unpaired(70), SILENT, [(0, 100)], [life(STARTING, 73)], []),
        (unpaired(70), SILENT, [(0, 70), (90, 100)], [], []),
        # Its log seldom has such lines: an excerpt.
        (unpaired(70, paired=4), SILENT, [(0, 100)], [], []),
    ],
)
def test_a_change_without_its_other_line_shows_that_a_log_is_cut(
    one: Unpaired,
    server: list[Seconds],
    others: list[Seconds],
    lives: list[LifecycleRow],
    holes: list[Seconds],
) -> None:
    lines = [*stretches("server", "INFO", server), *stretches("state-change", "TRACE", others)]
    found_holes = unpaired_silences([one], lines, lives)
    spans = [((hole.since_us or 0) / SECOND_US, (hole.until_us or 0) / SECOND_US) for hole in found_holes]
    assert spans == holes
    assert {(hole.kind, hole.reason) for hole in found_holes} <= {("server", "silent")}


def asked(changes: Sequence[tuple[str, float, int, int]], fetchers: Sequence[tuple[str, float]]) -> list[Unpaired]:
    """Return what the query finds for a replica: role, time, leader and epoch of changes, action and time of others."""
    same = {"cluster_id": "c", "broker_id": 1, "topic": "orders", "partition": 0}

    def at(seconds: float) -> datetime:
        return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=seconds)

    tables = {
        "silver_leader_and_isr": [
            {**same, "file_id": "s", "role": role, "time": at(time), "leader": leader, "leader_epoch": epoch}
            for role, time, leader, epoch in changes
        ],
        "silver_fetcher_events": [
            {**same, "file_id": "f", "action": action, "time": at(time)} for action, time in fetchers
        ],
        "bronze_log_files": [{"file_id": "s", "kind": "state-change"}, {"file_id": "f", "kind": "server"}],
    }
    with duckdb.connect() as connection:
        for name, rows in tables.items():
            connection.register(name, pa.Table.from_pylist(rows))
        found_rows = connection.sql(SQL["unpaired"]).to_arrow_table().to_pylist()
    return [Unpaired(**row) for row in found_rows]


def test_each_change_is_paired_with_its_own_lines() -> None:
    changes = [("follower_start", 0, 2, 1), ("leader_start", 100, 1, 2), ("follower_start", 200, 3, 3)]
    fetchers = [("removed", 0.2), ("added", 0.3), ("removed", 99.5), ("removed", 200.2), ("added", 200.4)]
    assert asked(changes, fetchers) == []
    assert [(one.line, one.kind, one.paired) for one in asked(changes, fetchers[:2])] == [(CHANGE, "server", 1)] * 2
    assert [(one.line, one.kind, one.paired) for one in asked(changes[:2], fetchers)] == [(ADDED, "state-change", 1)]


def test_a_request_that_changes_no_leader_proves_nothing() -> None:
    fetchers = [("removed", 0.2)]
    assert asked([("request", 0, 2, 1), ("request", 100, 2, 2)], fetchers) == []
    # It is older than what the broker has.
    assert asked([("request", 0, 2, 3), ("request", 100, 3, 2)], fetchers) == []
    assert [one.line for one in asked([("request", 0, 2, 1), ("request", 100, 3, 2)], fetchers)] == [CHANGE]
