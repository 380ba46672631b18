"""Intervals in which a broker ran, and gauges that step."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics.intervals import SILENCE_MAX_US, RunningInterval, RunSpan, Steps, intervals_of, logged_spans

CHANGES = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([-1, 1, 2])), max_size=20)


@given(CHANGES)
def test_a_gauge_is_what_was_added_up_to_an_instant(changes: list[tuple[int, int]]) -> None:
    steps = Steps.of_changes(changes)
    totals = {at: sum(change for time_us, change in changes if time_us <= at) for at in range(-1, 62)}
    assert all(steps.at(at) == total for at, total in totals.items())
    (seen,) = steps.over([RunningInterval(0, 5, 40, True)])
    assert seen[1:] == (totals[39], max(totals[at] for at in range(5, 40)))


def test_an_interval_is_there_if_the_broker_ran_in_it() -> None:
    spans = [RunSpan(5, 12, False), RunSpan(14, 16, True), RunSpan(31, 32, True)]
    assert intervals_of(spans, 10) == [
        RunningInterval(0, 5, 10, False),
        RunningInterval(10, 10, 16, True),
        RunningInterval(30, 31, 32, True),
    ]
    assert intervals_of(spans, 10, since_us=10) == intervals_of(spans, 10)[1:]


@given(st.lists(st.integers(0, 3_000), max_size=20), st.integers(0, 3_000), st.integers(1, 3_000))
def test_a_broker_ran_on_for_some_days_after_what_its_log_tells_of(days: list[int], start: int, length: int) -> None:
    day_us = 86_400_000_000
    span = RunSpan(start * day_us, (start + length) * day_us, True)
    told = [span.start_us, *(at * day_us for at in days)]
    left = list(logged_spans([span], told))
    for at in range(start, start + length):
        instant_us = at * day_us
        is_near = any(0 <= instant_us - before_us < SILENCE_MAX_US for before_us in told)
        assert any(part.start_us <= instant_us < part.end_us for part in left) == is_near
    assert all(before.end_us <= after.start_us for before, after in pairwise(left))


def test_intervals_do_not_grow_with_the_distance_between_two_instants() -> None:
    year_us = 365 * 86_400_000_000
    told = [45 * year_us, 57 * year_us, 57 * year_us + 60_000_000, 130 * year_us]
    spans = logged_spans([RunSpan(told[0], told[-1] + 1, True)], told)
    assert len(intervals_of(spans, 60_000_000)) <= 3 * (7 * 24 * 60 + 2) + 1
