"""Bounds on a difference that is known: one broker's clock is set, steps and drifts as the test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.timing.clocks.bounds import compute_clock_bounds
from highwater.pipelines.timing.clocks.links import FOLLOWER, Link

WINDOW_US = 600_000_000


@dataclass(frozen=True)
class Clock:
    """A clock that is off: by a constant, by steps at instants, by a drift in millionths."""

    off_us: int = 0
    steps: tuple[tuple[int, int], ...] = ()
    drift_ppm: int = 0

    def read(self, time_us: int) -> int:
        return time_us + self.difference(time_us)

    def difference(self, time_us: int) -> int:
        stepped = sum(step for at_us, step in self.steps if at_us <= time_us)
        return self.off_us + stepped + time_us * self.drift_ppm // 1_000_000


@dataclass(frozen=True)
class Cause:
    """Something at one of two brokers, and what it led to at the other, in true time."""

    time_us: int
    took_us: int
    forward: bool

    def link(self, clock: Clock) -> Link:
        done_us = self.time_us + self.took_us
        if self.forward:
            return Link(FOLLOWER, 1, self.time_us, 2, clock.read(done_us))
        return Link(FOLLOWER, 2, clock.read(self.time_us), 1, done_us)


CAUSES = st.lists(
    st.builds(Cause, st.integers(0, 3 * WINDOW_US), st.integers(1, 2_000_000), st.booleans()), min_size=1, max_size=30
)
OFF = st.integers(-10_000_000_000, 10_000_000_000)
STEPS = st.lists(st.tuples(st.integers(0, 3 * WINDOW_US), st.integers(0, 60_000_000)), max_size=2).map(tuple)


def _links(causes: Sequence[Cause], clock: Clock) -> list[Link]:
    return [cause.link(clock) for cause in causes]


@given(CAUSES, OFF)
def test_a_constant_difference_lies_within_all_bounds_and_no_change_is_seen(causes: list[Cause], off_us: int) -> None:
    for bounds in compute_clock_bounds(_links(causes, Clock(off_us)), WINDOW_US):
        assert bounds.lowest_us is None or bounds.lowest_us < off_us
        assert bounds.highest_us is None or off_us < bounds.highest_us
        assert (bounds.changed_us, bounds.changed_since) == (0, None)


@given(CAUSES, st.builds(Clock, OFF, STEPS, st.integers(-500, 500)))
def test_each_bound_holds_when_it_says_whatever_the_clock_does(causes: list[Cause], clock: Clock) -> None:
    """Forward steps only: a clock that goes back may read less after a cause than before it."""
    at = {cause.time_us if cause.forward else cause.time_us + cause.took_us for cause in causes}
    differences = {time_us: clock.difference(time_us) for time_us in at}
    for bounds in compute_clock_bounds(_links(causes, clock), WINDOW_US):
        if bounds.lowest_us is not None and bounds.lowest_time is not None:
            assert bounds.lowest_us < differences[bounds.lowest_time] + _rounding(clock)
        if bounds.highest_us is not None and bounds.highest_time is not None:
            assert differences[bounds.highest_time] - _rounding(clock) < bounds.highest_us


def _rounding(clock: Clock) -> int:
    """A clock that runs slow goes on by less than the time that a cause takes."""
    return 1 + 2_000_000 * abs(clock.drift_ppm) // 1_000_000


@given(CAUSES, st.builds(Clock, OFF, STEPS, st.integers(-500, 500)))
def test_a_change_that_is_told_was_no_smaller(causes: list[Cause], clock: Clock) -> None:
    end_us = 3 * WINDOW_US + 2_000_000
    instants = sorted({0, end_us, *(at for at_us, _ in clock.steps for at in (at_us - 1, at_us))})
    differences = [clock.difference(at_us) for at_us in instants]
    span = max(differences) - min(differences) + 2 * _rounding(clock)
    for bounds in compute_clock_bounds(_links(causes, clock), WINDOW_US):
        assert abs(bounds.changed_us) <= span


@given(st.integers(5_000, 60_000_000), st.booleans())
def test_a_step_beyond_the_width_is_seen(step_us: int, forward: bool) -> None:
    """Both ways took 2 ms: the difference is known to 4 ms before and after."""
    sign = 1 if forward else -1
    clock = Clock(steps=((WINDOW_US, sign * step_us),))
    causes = [Cause(at_us, 2_000, way) for at_us in (1_000, WINDOW_US + 100_000_000) for way in (True, False)]
    first, last = compute_clock_bounds(_links(causes, clock), WINDOW_US)
    assert first.changed_us == 0
    assert 0 < sign * last.changed_us <= step_us
    assert sign * last.changed_us >= step_us - 4_000


def test_one_way_is_one_bound() -> None:
    (bounds,) = compute_clock_bounds([Link(FOLLOWER, 2, 1_000, 1, 4_000)], WINDOW_US)
    assert (bounds.broker_a, bounds.broker_b, bounds.links) == (1, 2, 1)
    assert (bounds.lowest_us, bounds.lowest_time, bounds.lowest_by) == (-3_000, 4_000, FOLLOWER)
    assert (bounds.highest_us, bounds.highest_time, bounds.highest_by) == (None, None, None)
