"""What a broker leads and hosts."""

from __future__ import annotations

from pipelines.metrics.intervals import Steps
from pipelines.replay import partition_counts as p
from pipelines.replay.partition_counts import PartitionCounts
from schemas import events as e

ORDERS = ("orders", 0)
PAYMENTS = ("payments", 0)


def _start(time_us: int, isr: tuple[int, ...] | None, replicas: int | None = 3) -> e.Event:
    return e.Event(time_us, e.LEADER_START, time_us, leader_epoch=1, isr=isr, replicas=replicas)


def _follow(time_us: int) -> e.Event:
    return e.Event(time_us, e.LEADER_END, time_us, leader_epoch=2)


def _isr(time_us: int, isr: tuple[int, ...]) -> e.Event:
    return e.Event(time_us, e.ISR_UPDATE, time_us, isr=isr)


def stepped(values: dict[str, dict[int, int]]) -> dict[str, Steps]:
    return {name: Steps(list(of_name), list(of_name.values())) for name, of_name in values.items()}


def _counts(*events: tuple[tuple[str, int], e.Event], starts: tuple[int, ...] = (), min_isr: int | None = 2):  # type: ignore[no-untyped-def]
    steps = stepped(PartitionCounts(lambda topic, time_us, replicas: min_isr).fold(events, starts))
    return lambda at: {name: count for name in p.COUNTS if (count := steps[name].at(at))}


def test_an_isr_that_shrinks_is_at_and_then_under_min_insync_replicas() -> None:
    at = _counts((ORDERS, _start(10, (1, 2, 3))), (ORDERS, _isr(20, (1, 2))), (ORDERS, _isr(30, (1,))))
    leads = {p.LEADERS: 1, p.HOSTED: 1}
    assert at(9) == {}
    assert at(10) == leads
    assert at(20) == leads | {p.UNDER_REPLICATED: 1, p.AT_MIN_ISR: 1}
    assert at(30) == leads | {p.UNDER_REPLICATED: 1, p.UNDER_MIN_ISR: 1}


def test_a_follower_is_hosted_and_a_replica_that_left_is_not() -> None:
    gone = e.Event(30, e.LEADER_END, 30, error_code=3)
    at = _counts((ORDERS, _start(10, (1, 2))), (ORDERS, _follow(20)), (ORDERS, gone), (PAYMENTS, _follow(20)))
    assert at(20) == {p.HOSTED: 2}
    assert at(30) == {p.HOSTED: 1}


def test_a_start_ends_everything_and_what_comes_with_it_counts() -> None:
    at = _counts((ORDERS, _start(10, (1, 2, 3))), (PAYMENTS, _follow(10)), (ORDERS, _follow(50)), starts=(50,))
    assert at(49) == {p.LEADERS: 1, p.HOSTED: 2}
    assert at(50) == {p.HOSTED: 1}


def test_what_nothing_tells_is_counted_as_unknown() -> None:
    at = _counts((ORDERS, _start(10, None)), (PAYMENTS, _start(10, (1,), replicas=None)), min_isr=None)
    assert at(10) == {p.LEADERS: 2, p.HOSTED: 2, p.REPLICAS_UNKNOWN: 2, p.MIN_ISR_UNKNOWN: 2}


def test_min_insync_replicas_that_change_make_a_partition_fall_under_it() -> None:
    counts = PartitionCounts(lambda topic, time_us, replicas: 2 if time_us < 20 else 3)
    steps = stepped(counts.fold([(ORDERS, _start(10, (1, 2)))], (), {"orders": [20]}))
    assert (steps[p.AT_MIN_ISR].at(19), steps[p.UNDER_MIN_ISR].at(19)) == (1, 0)
    assert (steps[p.AT_MIN_ISR].at(20), steps[p.UNDER_MIN_ISR].at(20)) == (0, 1)
