"""A clock that was set back, and what only looks like it."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.silver.clock import LINES_MIN, STEP_MIN_US, ClockWatch

SECOND = 1_000_000


def _steps(times: list[int]) -> list[int]:
    watch = ClockWatch()
    return [back_us for time in times if (back_us := watch.see("f", time)) is not None]


def test_a_clock_set_back_is_one_step() -> None:
    before = [n * SECOND for n in range(100)]
    after = [time - 3600 * SECOND for time in range(100 * SECOND, 200 * SECOND, SECOND)]
    found = _steps(before + after)
    assert len(found) == 1
    assert 3560 * SECOND <= found[0] <= 3600 * SECOND


def test_a_line_of_a_thread_that_was_stopped_is_none() -> None:
    times = [n * SECOND for n in range(100)]
    times[50:50] = [30 * SECOND] * (LINES_MIN - 1)
    assert _steps(times) == []


def test_another_file_begins_anew() -> None:
    watch = ClockWatch()
    assert watch.see("a", 10**9) is None
    assert all(watch.see("b", n) is None for n in range(LINES_MIN * 2))


@given(st.lists(st.integers(0, STEP_MIN_US - 1), min_size=1))
def test_disorder_below_a_second_is_none(late_us: list[int]) -> None:
    assert _steps([n * 1000 + STEP_MIN_US - late for n, late in enumerate(late_us)]) == []
