"""Intervals in which a broker ran, and gauges that step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.metrics.intervals import Interval, Span, Steps, intervals_of

CHANGES = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([-1, 1, 2])), max_size=20)


@given(CHANGES)
def test_a_gauge_is_what_was_added_up_to_an_instant(changes: list[tuple[int, int]]) -> None:
    steps = Steps.of_changes(changes)
    totals = {at: sum(change for time_us, change in changes if time_us <= at) for at in range(-1, 62)}
    assert all(steps.at(at) == total for at, total in totals.items())
    (seen,) = steps.over([Interval(0, 5, 40, True)])
    assert seen[1:] == (totals[39], max(totals[at] for at in range(5, 40)))


def test_an_interval_is_there_if_the_broker_ran_in_it() -> None:
    spans = [Span(5, 12, False), Span(14, 16, True), Span(31, 32, True)]
    assert intervals_of(spans, 10) == [
        Interval(0, 5, 10, False),
        Interval(10, 10, 16, True),
        Interval(30, 31, 32, True),
    ]
    assert intervals_of(spans, 10, since_us=10) == intervals_of(spans, 10)[1:]
