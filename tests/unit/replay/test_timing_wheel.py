"""The timing wheels against the obvious timer: a list that is sorted by deadline."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay.timer import expiry_interval_us
from tests.unit.replay.model.timing_wheel import SystemTimer, fires_at

#: (pass time by, then insert a task with this delay; None: insert nothing), milliseconds.
STEPS = st.lists(st.tuples(st.integers(0, 900), st.none() | st.integers(-3, 9_000)), max_size=60)


@given(steps=STEPS, wheel_size=st.integers(2, 20), cancelled=st.sets(st.integers(0, 59)))
def test_tasks_run_when_and_in_the_order_in_which_a_sorted_list_says(steps, wheel_size, cancelled):
    ran: list[tuple[int, int]] = []
    timer: SystemTimer[tuple[int, int]] = SystemTimer(ran.append, 0, 1, wheel_size)
    now_ms, waiting = 0, []
    for number, (pass_ms, delay_ms) in enumerate(steps):
        now_ms += pass_ms
        before = len(ran)
        timer.advance_clock(now_ms)
        deadlines = [deadline for deadline, _ in ran[before:]]
        assert deadlines == sorted(deadlines)
        assert set(ran[before:]) == {task for task in waiting if task[0] <= now_ms}
        waiting = [task for task in waiting if task[0] > now_ms]
        assert timer.size == len(waiting)
        if delay_ms is None:
            continue
        task = (now_ms + delay_ms, number)
        before = len(ran)
        handle = timer.add(task, delay_ms, now_ms)
        if len(ran) > before:
            assert delay_ms <= 0, "only what is due runs on insertion"
            continue
        if number in cancelled:
            timer.cancel(handle)
        else:
            waiting.append(task)


@given(inserted_ms=st.integers(0, 10**9), delay_ms=st.integers(0, 10**7), lag_ms=st.integers(0, 10**6))
def test_a_wheel_that_stood_still_for_long_is_as_precise(inserted_ms, delay_ms, lag_ms):
    assert fires_at(inserted_ms, delay_ms, max(0, inserted_ms - lag_ms)) == inserted_ms + delay_ms


@given(
    inserted_us=st.integers(0, 10**9),
    width_us=st.integers(0, 10**6),
    within=st.floats(0, 1),
    delay_ms=st.integers(0, 10**5),
    wakes_after_us=st.integers(0, 999),
)
def test_an_expiry_lies_in_its_interval(inserted_us, width_us, within, delay_ms, wakes_after_us):
    truly_us = inserted_us + int(width_us * within)
    fires_us = fires_at(truly_us // 1_000, delay_ms) * 1_000
    lowest_us, highest_us = expiry_interval_us(inserted_us, inserted_us + width_us, delay_ms)
    # Without a delay it runs on insertion, within the millisecond that the timer sees as its deadline.
    assert lowest_us <= max(fires_us + wakes_after_us, truly_us) <= highest_us
