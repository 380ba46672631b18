"""Offsets of clocks by registrations, and rows on one clock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.timelines.offsets import clock_offsets, on_one_clock

S = 1_000_000
NODE = ("c", 2)


def _own(time: int) -> dict[str, Any]:
    return {"cluster_id": "c", "broker_id": 2, "event": "registered", "time": time}


def _seen(time: int, by: int = 1) -> dict[str, Any]:
    return {"cluster_id": "c", "broker_id": by, "subject_broker_id": 2, "event": "broker_registered", "time": time}


@given(
    registrations=st.lists(st.integers(1, 50), min_size=2, max_size=4, unique=True),
    ahead=st.integers(-100, 100),
    delays=st.lists(st.integers(0, S // 10), min_size=4, max_size=4),
)
def test_the_offset_of_a_clock_is_found_from_its_registrations(
    registrations: list[int], ahead: int, delays: list[int]
) -> None:
    times = [100 * S * each**2 for each in registrations]  # No two distances are the same.
    seen = [_seen(time + delay) for time, delay in zip(times, delays, strict=False)]
    found = clock_offsets([_own(time + ahead * S) for time in times], seen)
    if abs(ahead) <= 1:
        assert not found
    else:
        assert abs(found[NODE] - ahead * S) <= S // 10


@pytest.mark.parametrize(
    ("own", "seen"),
    [([10, 200], [10]), ([10, 200], [47]), ([10, 200], []), ([10], [47]), ([10, 200], [60, 300])],
    ids=["seen at once", "one alone", "controllers without lines", "one", "different offsets"],
)
def test_a_clock_is_right_unless_registrations_agree(own: list[int], seen: list[int]) -> None:
    assert not clock_offsets([_own(time * S) for time in own], [_seen(time * S) for time in seen])


def _elected(time: float, leader: int, controller: int, delay: float, ahead: dict[int, float]) -> dict[str, Any]:
    """Return an election, as the clocks of leader and controller show it."""
    at = {"elected_time": time + ahead.get(controller, 0), "taken_up_time": time + delay + ahead.get(leader, 0)}
    in_us = {name: int(second * S) for name, second in at.items()}
    return {"cluster_id": "c", "new_leader": leader, "elected_clock": controller} | in_us


@given(
    ahead=st.sampled_from([7200, 37, 5, -5, -7200]),
    off=st.integers(1, 3),
    delays=st.lists(st.floats(0, 0.4), min_size=12, max_size=12),
)
def test_elections_far_apart_show_whose_clock_is_off(ahead: int, off: int, delays: list[float]) -> None:
    pairs = [(leader, controller) for leader in (1, 2, 3) for controller in (1, 2, 3) if leader != controller]
    rows = [
        _elected(100 * number + 30 * round_, leader, controller, delays[2 * number + round_], {off: ahead})
        for number, (leader, controller) in enumerate(pairs)
        for round_ in (0, 1)
    ]
    found = clock_offsets([], [], rows)
    assert found.keys() == {("c", off)}
    assert abs(found["c", off] - ahead * S) <= S // 2


@pytest.mark.parametrize(("leaders", "is_found"), [((2,), False), ((2, 3), True)])
def test_one_of_two_clocks_is_never_blamed(leaders: tuple[int, ...], is_found: bool) -> None:
    """Two leaders that agree with each other show that the clock of their controller is off."""
    rows = [_elected(100 * leader, leader, 1, 0.1, {1: 3600}) for leader in leaders]
    found = clock_offsets([], [], rows)
    assert found.keys() == ({("c", 1)} if is_found else set())
    assert all(abs(offset_us - 3600 * S) <= S // 2 for offset_us in found.values())


@pytest.mark.parametrize(
    "rows",
    [
        [(10, 2, 1, 5), (10.2, 2, 1, 5)],
        [(10, 2, 1, 5), (60, 2, 1, 0.1)],
        [(10, 2, 1, 5), (60, 2, 1, 9)],
        [(10, 1, 1, 5), (60, 1, 1, 5)],
    ],
    ids=["one delay", "prompt once", "different delays", "one clock"],
)
def test_late_leaders_show_no_offset(rows: list[tuple[float, int, int, float]]) -> None:
    assert not clock_offsets([], [], [_elected(*row, {}) for row in rows])


def test_a_time_is_on_the_clock_beside_it() -> None:
    row = {"cluster_id": "c", "left_time": 50, "left_clock": 2, "back_time": 60, "back_clock": 1, "topic": "t"}
    of_broker = {"cluster_id": "c", "broker_id": 2, "first_time": 50, "last_time": None}
    corrected = on_one_clock([row, of_broker], {NODE: 37})
    assert corrected == [row | {"left_time": 13}, of_broker | {"first_time": 13}]
    failover = {"cluster_id": "c", "elected_time": 60, "elected_clock": 1, "new_leader": 2, "taken_up_time": 50}
    assert on_one_clock([failover], {NODE: 37}) == [failover | {"taken_up_time": 13}]
