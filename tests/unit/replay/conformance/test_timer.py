"""The timer: hierarchical timing wheels."""

from __future__ import annotations

import pytest

from highwater.pipelines.replay.timer import expiry_interval_us
from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.rules import Rules
from tests.unit.replay.model.timing_wheel import SystemTimer, fires_at

TABLE = Table()


def _timer(start_ms: int = 0, tick_ms: int = 1, wheel_size: int = 3) -> tuple[SystemTimer[int], list[int]]:
    ran: list[int] = []
    return SystemTimer(ran.append, start_ms, tick_ms, wheel_size), ran


@TABLE.scenario("TimerTest.testAlreadyExpiredTask", ([-5, -4, -3, -2, -1, 0], 0))
def a_task_whose_time_has_passed_runs_on_insertion(rules: Rules) -> object:
    timer, ran = _timer()
    for delay_ms in range(-5, 1):
        timer.add(delay_ms, delay_ms, now_ms=0)
    return ran, timer.size


@TABLE.scenario("TimerTest.testTaskExpiration", ([0, *range(2, 12), 15, 18, 50, 100, 101, 250], 0))
def tasks_run_in_the_order_of_their_deadlines_whatever_wheel_holds_them(rules: Rules) -> object:
    timer, ran = _timer()
    for delay_ms in (250, 0, 18, 50, 15, 101, 100, *range(11, 1, -1)):
        timer.add(delay_ms, delay_ms, now_ms=0)
    for now_ms in range(0, 251, 10):
        timer.advance_clock(now_ms)
    return ran, timer.size


@TABLE.scenario("TimerTest.testTaskExpiration", [4, 5, 6])
def tasks_of_one_bucket_run_in_the_order_of_insertion(rules: Rules) -> object:
    timer, ran = _timer(tick_ms=10)
    for number in (4, 5, 6):
        timer.add(number, 19 - number, now_ms=0)
    timer.advance_clock(10)
    return ran


@TABLE.scenario("TimerTest.testTaskExpiration", [1, 20, 399, 400, 8_000, 30_000, 604_800_000])
def a_timeout_is_kept_to_the_millisecond_across_overflow_wheels(rules: Rules) -> object:
    return [fires_at(7, delay_ms) - 7 for delay_ms in (1, 20, 399, 400, 8_000, 30_000, 604_800_000)]


@TABLE.scenario("TimerTaskListTest.testAll", (2, [3], 0))
def a_cancelled_task_counts_no_more_and_never_runs(rules: Rules) -> object:
    timer, ran = _timer()
    tasks = [timer.add(number, number, now_ms=0) for number in (2, 3, 40)]
    timer.cancel(tasks[0])
    timer.cancel(tasks[0])
    left = timer.size
    timer.cancel(tasks[2])
    timer.advance_clock(100)
    return left, ran, timer.size


@TABLE.scenario("TimerTest.testTaskExpiration", [False, True, True])
def an_overflow_bucket_that_is_due_moves_its_tasks_down(rules: Rules) -> object:
    timer, ran = _timer(wheel_size=20)
    timer.add(45, 45, now_ms=0)
    moved = [timer.advance_clock(39), timer.advance_clock(40)]
    assert not ran, "40 is the bucket's instant, not the task's"
    return [*moved, timer.advance_clock(45) and ran == [45]]


@TABLE.scenario("DelayedOperationTest.testRequestExpiry", [(1_029_000, 1_032_500), (1_000_000, 1_003_500)])
def an_expiry_lies_within_a_millisecond_of_insertion_plus_delay(rules: Rules) -> object:
    inserted = (1_000_000, 1_001_500)
    early = expiry_interval_us(*inserted, delay_ms=30)
    return [early, expiry_interval_us(*inserted, delay_ms=1)]


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_timer(scenario: Scenario, version: str) -> None:
    check(scenario, version)
