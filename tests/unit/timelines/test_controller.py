"""Timelines of controllers: who was active, and the bounds of times without one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.timelines.controller import (
    Away,
    ControllerEvidence,
    ControllerState,
    controller_states,
    rows_of,
)

S = 1_000_000
VOTERS = {"c": frozenset({1, 2, 3})}


def event(second: float, node: int, name: str, subject: int | None = None, **fields: Any) -> dict[str, Any]:
    of = {"cluster_id": "c", "broker_id": node, "time": int(second * S), "event": name, "subject_broker_id": subject}
    return of | {"controller_epoch": None, "detail": None, "file_id": "f", "byte_offset": int(second)} | fields


def elected(second: float, node: int, epoch: int | None = None) -> dict[str, Any]:
    return event(second, node, "controller_elected", node, controller_epoch=epoch)


def without(second: float, node: int) -> dict[str, Any]:
    return event(second, node, "other", detail="In the new epoch 7, the leader is (none).")


def states(*rows: Mapping[str, Any], **evidence: Any) -> list[ControllerState]:
    given_rows = {"away": (), "with_lines": {("c", 1), ("c", 2), ("c", 3)}, "voters": VOTERS} | evidence
    return controller_states(ControllerEvidence(sorted(rows, key=lambda row: row["time"]), **given_rows))["c"]


def spans(found: list[ControllerState]) -> list[tuple[int | None, str, float, float | None]]:
    return [
        (of.controller, of.reason, of.begin_by_us / S, None if of.end_by_us is None else of.end_by_us / S)
        for of in found
    ]


def test_a_change_without_a_line_of_the_end_has_bounds() -> None:
    """The last act of the controller before is the earliest end of its term."""
    first, second = states(elected(10, 1), event(40, 1, "broker_fenced", 3), elected(52, 2))
    assert (first.end_after_us, first.end_by_us) == (40 * S, 52 * S)
    assert (second.begin_after_us, second.begin_by_us, second.end_by_us) == (40 * S, 52 * S, None)


def test_a_controller_that_resigned_leaves_a_time_without_one() -> None:
    found = states(elected(10, 1), event(40, 1, "controller_resigned", 1), elected(52, 2))
    assert spans(found) == [(1, "first_shown", 10, 40), (None, "resigned", 40, 52), (2, "elected", 52, None)]


@pytest.mark.parametrize("reason", ["died", "shutdown", "froze"])
def test_a_term_ends_with_its_process(reason: str) -> None:
    found = states(elected(10, 1), elected(52, 2), away=[Away(("c", 1), 45 * S, 60 * S, reason)])
    assert spans(found) == [(1, "first_shown", 10, 45), (None, reason, 45, 52), (2, "elected", 52, None)]


def test_a_pause_that_ends_before_the_election_ends_no_term() -> None:
    found = states(elected(10, 1), elected(52, 2), away=[Away(("c", 1), 20 * S, 30 * S, "froze")])
    assert [of.controller for of in found] == [1, 2]


@pytest.mark.parametrize(
    ("nodes", "voters", "is_lost"),
    [
        ([2, 3], VOTERS, True),
        ([3], VOTERS, False),
        ([2, 3], {"c": frozenset({1, 2, 3, 4, 5})}, False),
        ([3], {}, False),
        ([3, 4], VOTERS, False),
    ],
)
def test_only_a_majority_of_the_voters_shows_that_there_is_no_leader(
    nodes: list[int], voters: Mapping[str, frozenset[int]], is_lost: bool
) -> None:
    rows = [elected(10, 1), *(without(40 + node, node) for node in nodes)]
    found = states(*rows, voters=voters)
    assert [of.controller for of in found] == ([1, None] if is_lost else [1])
    assert found[-1].end_by_us is None


def test_logs_that_begin_without_a_leader_show_that() -> None:
    found = states(without(1, 2), without(3, 3), elected(30, 2))
    assert spans(found) == [(None, "no_leader", 3, 30), (2, "elected", 30, None)]
    assert found[0].begin_after_us is None


def test_peers_date_the_end_of_a_controller_without_lines() -> None:
    rows = elected(52, 2), event(9, 3, "controller_elected", 1)
    found = states(*rows, with_lines={("c", 2), ("c", 3)}, missed={("c", 1): [(41 * S, 50 * S)]})
    assert spans(found) == [(1, "first_shown", 9, 41), (None, "unreachable", 41, 52), (2, "elected", 52, None)]


_EVENTS = st.one_of(
    st.builds(elected, st.integers(0, 60), st.integers(1, 3), st.none() | st.integers(1, 5)),
    st.builds(without, st.integers(0, 60), st.integers(1, 3)),
    st.builds(lambda at, node: event(at, node, "controller_resigned", node), st.integers(0, 60), st.integers(1, 3)),
    st.builds(lambda at, node: event(at, node, "broker_fenced", 3), st.integers(0, 60), st.integers(1, 3)),
)
_AWAY = st.builds(
    lambda node, since, length, reason: Away(("c", node), since * S, (since + length) * S, reason),
    *(st.integers(1, 3), st.integers(0, 60), st.integers(0, 20), st.sampled_from(["died", "shutdown", "froze"])),
)


@given(st.lists(_EVENTS, min_size=1, max_size=12), st.lists(_AWAY, max_size=4))
def test_states_follow_each_other(rows: list[dict[str, Any]], away: list[Away]) -> None:
    """Each state begins where the one before ends, and bounds never contradict."""
    found = states(*rows, away=away)
    for before, after in pairwise(found):
        assert before.end_by_us == after.begin_by_us
        assert before.begin_by_us <= after.begin_by_us
        assert before.controller is not None or after.controller is not None
    for state in found:
        assert state.begin_after_us is None or state.begin_after_us <= state.begin_by_us
        assert (state.end_after_us is None) == (state.end_by_us is None)
        assert state.end_after_us is None or state.end_after_us <= (state.end_by_us or 0)
    assert [row["position"] for row in rows_of({"c": found})] == [*range(len(found))]
