"""Purgatory: who completes an operation, when, and in which order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.operation import DelayedOperation
from tests.unit.replay.model.purgatory import DelayedOperationPurgatory
from tests.unit.replay.model.rules import Rules, rules_for

TABLE = Table()


class Waiting(DelayedOperation):
    """Waits until it is told that it may complete; notes what became of it."""

    def __init__(self, rules: Rules, delay_ms: int = 10_000, ready: bool = False, journal: list[str] | None = None):
        super().__init__(rules, delay_ms)
        self.ready = ready
        self.checks = 0
        self.journal = journal if journal is not None else []
        self.on_check: Callable[[], None] = lambda: None

    def try_complete(self) -> bool:
        self.checks += 1
        ready = self.ready
        self.on_check()
        return ready and self.force_complete()

    def on_complete(self) -> None:
        self.journal.append("completed")

    def on_expiration(self) -> None:
        self.journal.append("expired")


Purgatory = DelayedOperationPurgatory[Waiting]


@TABLE.scenario("DelayedOperationTest.testRequestSatisfaction", [1, 0, 1, 0])
def a_key_completes_what_is_ready_and_once(rules: Rules) -> object:
    purgatory, first, second = Purgatory(), Waiting(rules), Waiting(rules)
    purgatory.try_complete_else_watch(first, ["a"])
    purgatory.try_complete_else_watch(second, ["b"])
    counts = []
    for operation, key in ((first, "a"), (first, "a"), (second, "b"), (second, "b")):
        operation.ready = True
        counts.append(purgatory.check_and_complete(key))
    return counts


@TABLE.scenario("DelayedOperationTest.testRequestSatisfaction", (0, 0))
def a_key_that_nobody_watches_completes_nothing(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules)
    purgatory.try_complete_else_watch(waiting, ["a"])
    waiting.ready = True
    return purgatory.check_and_complete("b"), len(waiting.journal)


@TABLE.scenario("DelayedOperationTest.testRequestExpiry", (["completed", "expired"], [], 1))
def time_runs_out_for_the_one_whose_time_it_is(rules: Rules) -> object:
    purgatory, short, long = Purgatory(), Waiting(rules, delay_ms=20), Waiting(rules, delay_ms=200_000)
    purgatory.try_complete_else_watch(short, ["a"])
    purgatory.try_complete_else_watch(long, ["b"])
    purgatory.advance_clock(20)
    return short.journal, long.journal, purgatory.delayed


@TABLE.scenario("DelayedOperationTest.testRequestExpiry", [])
def nothing_expires_a_millisecond_early(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules, delay_ms=20)
    purgatory.try_complete_else_watch(waiting, ["a"])
    purgatory.advance_clock(19)
    return waiting.journal


@TABLE.scenario("DelayedOperationTest.testRequestExpiry", (True, ["completed"]))
def what_a_trigger_completed_never_expires(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules, delay_ms=20)
    purgatory.try_complete_else_watch(waiting, ["a"])
    waiting.ready = True
    completed = purgatory.check_and_complete("a") == 1
    purgatory.advance_clock(1_000)
    return completed, waiting.journal


@TABLE.scenario("DelayedOperationTest.testRequestExpiry", (0, ["completed", "expired"]))
def what_has_expired_no_trigger_completes(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules, delay_ms=20)
    purgatory.try_complete_else_watch(waiting, ["a"])
    purgatory.advance_clock(20)
    waiting.ready = True
    return purgatory.check_and_complete("a"), waiting.journal


@TABLE.scenario("DelayedOperationTest.testRequestPurge", [(3, 6), (2, 6), (2, 5), (2, 4)])
def completed_operations_leave_the_timer_at_once_and_a_list_when_it_is_looked_through(rules: Rules) -> object:
    purgatory = Purgatory(purge_interval=1_000)
    waiting = [Waiting(rules, delay_ms=100_000) for _ in range(3)]
    for operation, keys in zip(waiting, (["a", "b"], ["a", "b"], ["a", "c"]), strict=True):
        purgatory.try_complete_else_watch(operation, keys)
    sizes = [(purgatory.delayed, purgatory.watched)]
    waiting[1].force_complete()
    sizes.append((purgatory.delayed, purgatory.watched))
    for key in ("a", "b"):
        purgatory.check_and_complete(key)
        sizes.append((purgatory.delayed, purgatory.watched))
    return sizes


@TABLE.scenario("DelayedOperationTest.testRequestPurge", (4, 1))
def the_reaper_sweeps_beyond_its_threshold_only(rules: Rules) -> object:
    purgatory = Purgatory(purge_interval=3)
    waiting = [Waiting(rules) for _ in range(5)]
    for number, operation in enumerate(waiting):
        purgatory.try_complete_else_watch(operation, [number])
    for operation in waiting[:3]:
        operation.force_complete()
    purgatory.check_and_complete(0)
    purgatory.advance_clock(1)
    before = purgatory.watched
    waiting[3].force_complete()
    purgatory.advance_clock(2)
    return before, purgatory.watched


@TABLE.scenario("DelayedOperationTest.testSafeTryCompleteOrElse", (True, 1, 0))
def what_is_ready_at_once_is_never_watched(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules, ready=True)
    return purgatory.try_complete_else_watch(waiting, ["a"]), waiting.checks, purgatory.watched


@TABLE.scenario("DelayedOperationTest.testSafeTryCompleteOrElse", (True, 2, 0))
def what_became_ready_before_it_was_watched_is_found_by_the_second_check(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules)
    waiting.on_check = lambda: setattr(waiting, "ready", True)
    return purgatory.try_complete_else_watch(waiting, ["a"]), waiting.checks, purgatory.delayed


@TABLE.scenario("DelayedOperationTest.testTryCompleteWithMultipleThreads", ["completed"], until="0.11.0")
@TABLE.scenario("DelayedOperationTest.testTryCompleteWithMultipleThreads", ["completed"], since="1.1.0")
@TABLE.scenario("DelayedOperationTest.testTryCompleteWithMultipleThreads (KAFKA-6653)", [], "0.11.0", "1.1.0")
def the_last_trigger_counts_even_if_it_meets_another_check(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules)
    purgatory.try_complete_else_watch(waiting, ["a"])

    def meanwhile() -> None:
        if not waiting.ready:
            waiting.ready = True
            purgatory.check_and_complete("a")

    waiting.on_check = meanwhile
    purgatory.check_and_complete("a")
    return waiting.journal


@TABLE.scenario("DelayedOperationPurgatory.checkAndComplete", [1, 0])
def an_operation_under_two_keys_completes_for_the_first_of_them(rules: Rules) -> object:
    purgatory, waiting = Purgatory(), Waiting(rules)
    purgatory.try_complete_else_watch(waiting, ["a", "b"])
    waiting.ready = True
    return [purgatory.check_and_complete("b"), purgatory.check_and_complete("a")]


@TABLE.scenario("DelayedOperationPurgatory.Watchers.tryCompleteWatched", ["first", "third", "second"])
def one_trigger_completes_in_the_order_of_watching(rules: Rules) -> object:
    purgatory, order = Purgatory(), []
    names = ("first", "second", "third")
    operations = {name: Waiting(rules) for name in names}
    for name, operation in operations.items():
        operation.on_complete = lambda name=name: order.append(name)  # type: ignore[method-assign, misc]
        purgatory.try_complete_else_watch(operation, ["a"])
    operations["first"].ready = operations["third"].ready = True
    purgatory.check_and_complete("a")
    operations["second"].ready = True
    purgatory.check_and_complete("a")
    return order


@TABLE.scenario("DelayedOperationPurgatory.tryCompleteElseWatch", (["completed"], ["completed", "expired"]))
def without_a_delay_it_completes_or_expires_at_once(rules: Rules) -> object:
    purgatory, ready, unready = Purgatory(), Waiting(rules, 0, ready=True), Waiting(rules, 0)
    purgatory.try_complete_else_watch(ready, ["a"])
    purgatory.try_complete_else_watch(unready, ["a"])
    return ready.journal, unready.journal


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_delayed_operation(scenario: Scenario, version: str) -> None:
    check(scenario, version)


def test_an_operation_needs_a_key() -> None:
    with pytest.raises(ValueError, match="one key"):
        Purgatory().try_complete_else_watch(Waiting(rules_for("3.9.1")), [])
