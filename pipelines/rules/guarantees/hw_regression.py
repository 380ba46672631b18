"""A leader's high watermark that decreased within its epoch.

Two proofs. By fetches: on one connection a later fetch with the same leader epoch was answered a lower high watermark.
By a leader's own lines: one line that decreases it, or two lines that both pass the same offset. Two threads may print
such lines in either order, so their order proves nothing. But a growing high watermark passes no offset twice.

A follower's high watermark may decrease at a failover to its new leader's (KIP-207): an observation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from highwater.pipelines.rules.proofs.fetch_chain import high_watermark_of
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Case, Checker, Severity, brokers_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: Stretches that are kept; the lowest ones are forgotten, so that fewer second passes are seen and never more.
STRETCHES_MAX: Final = 4096


class PassedOffsets:
    """Disjoint offset ranges that a high watermark passed, each with a fact of the move.

    A high watermark that only grows passes every offset once. Missing lines leave gaps.
    """

    def __init__(self) -> None:
        self._stretches: list[tuple[int, int, Fact]] = []  # in the order of their starts

    def add(self, start: int, end: int, fact: Fact) -> Fact | None:
        """Add the range from `start` to `end`. Return the fact of an earlier range that overlaps it, or None."""
        if start >= end:
            return None
        stretches = self._stretches
        first = last = bisect_right(stretches, start, key=itemgetter(0))
        if first and stretches[first - 1][1] > start:
            return stretches[first - 1][2]
        if last < len(stretches) and stretches[last][0] < end:
            return stretches[last][2]
        if last < len(stretches) and stretches[last][0] == end:
            _, end, shown = stretches[last]
            last += 1
        else:
            shown = fact
        if first and stretches[first - 1][1] == start:
            first, start, shown = first - 1, stretches[first - 1][0], fact
        stretches[first:last] = [(start, end, shown)]
        if len(stretches) > STRETCHES_MAX:
            del stretches[0]
        return None


@dataclass
class HighWatermarkRegression(Checker):
    _passed: dict[tuple[int, int, int], PassedOffsets] = field(default_factory=dict)
    _steps_us: int = -1
    _steps: set[tuple[int, int, int]] = field(default_factory=set)

    def observe(self, fact: Fact) -> Iterable[Case]:
        if fact.kind == a.FETCH:
            return self._check_fetch(fact)
        if fact.name == "non_monotonic":
            return self._check_decrease(fact)
        return self._check_update(fact) if fact.name == "updated" else ()

    # ----------------------------------------------------------------- fetches

    def _check_fetch(self, fact: Fact) -> Iterable[Case]:
        chain = self._history.chain
        epoch = chain.epoch
        if epoch is None or not chain.answered:
            return
        self.checked += 1
        for highest, one_run in ((chain.highest_of_run, True), (chain.highest, False)):
            if highest is None or highest[0] != epoch or high_watermark_of(highest[1]) <= high_watermark_of(fact):
                continue
            severity = self._severity(highest[1], fact, one_run=one_run)
            if severity is not None:
                yield _make_case(severity, highest[1], fact, epoch)
            # One case: from here on it may only grow again.
            chain.highest = chain.highest_of_run = (epoch, fact)
            return
        chain.highest = _take_higher(chain.highest, epoch, fact)
        chain.highest_of_run = _take_higher(chain.highest_of_run, epoch, fact)

    # ------------------------------------------------------------------- lines

    def _check_update(self, fact: Fact) -> Iterable[Case]:
        if fact.previous is None or fact.high_watermark is None or fact.broker_id is None:
            return
        if self._is_copy(fact.time_us, (fact.broker_id, fact.previous, fact.high_watermark)):
            return
        self.checked += 1
        if fact.previous > fact.high_watermark:
            yield _make_case(VIOLATION, None, fact, None)
            return
        tenure = self._history.tenure(fact.broker_id, fact.time_us)
        if tenure is None or not tenure.certain:
            return
        # A leader that restarts within its epoch (KRaft) begins again at the high watermark that it checkpointed.
        key = (fact.broker_id, self._history.own_lines.started_us(fact.broker_id, fact.time_us), tenure.epoch)
        twice = self._passed.setdefault(key, PassedOffsets()).add(fact.previous, fact.high_watermark, fact)
        if twice is None:
            return
        if self._severity(tenure.fact, twice, fact) is not None:
            yield _make_case(OPEN, twice, fact, tenure.epoch)

    def _is_copy(self, time_us: int, step: tuple[int, int, int]) -> bool:
        """Return True if the same high watermark step was already logged at this time: a copy in another file."""
        if time_us != self._steps_us:
            self._steps_us, self._steps = time_us, set()
        known = step in self._steps
        self._steps.add(step)
        return known

    def _check_decrease(self, fact: Fact) -> Iterable[Case]:
        if fact.previous is None or fact.high_watermark is None or fact.broker_id is None:
            return
        self.checked += 1
        message = (
            f"The high watermark of broker {fact.broker_id}'s replica stepped back from {fact.previous} to "
            f"{fact.high_watermark}. At a failover that is legal: a new leader's high watermark may lag one fetch "
            "behind (KIP-207). It is loss only where the records themselves are gone (committed-data-lost)."
        )
        yield Case(
            OBSERVATION,
            message,
            (fact,),
            offset_start=fact.high_watermark,
            offset_end=fact.previous,
            time_us=fact.time_us,
            brokers=(fact.broker_id,),
        )


def _take_higher(highest: tuple[int, Fact] | None, epoch: int, fact: Fact) -> tuple[int, Fact]:
    if highest is None or highest[0] != epoch or high_watermark_of(fact) > high_watermark_of(highest[1]):
        return epoch, fact
    return highest


def _make_case(severity: Severity, earlier: Fact | None, fact: Fact, epoch: int | None) -> Case:
    low = high_watermark_of(fact)
    if fact.kind == a.FETCH and earlier is not None:
        high = high_watermark_of(earlier)
        message = (
            f"Leader {fact.broker_id} sent follower {fact.replica_id} a high watermark of {high} and later, on the "
            f"same connection and in the same leader epoch {epoch}, one of {low}"
        )
    elif earlier is None:
        high = fact.previous or 0
        message = f"Leader {fact.broker_id} moved its high watermark back, from {high} to {low}"
    else:
        low, high = fact.previous or 0, low
        message = (
            f"Leader {fact.broker_id} moved its high watermark from {low} to {high}, offsets that it had passed before "
            f"in the same leader epoch {epoch}: between the two lines it went back"
        )
    if severity != VIOLATION:
        message += ", unless the topic was re-created or the broker restarted between: these lines do not show it"
    return Case(
        severity,
        f"{message}.",
        tuple(line for line in (earlier, fact) if line is not None),
        leader_epoch=epoch,
        offset_start=min(low, high),
        offset_end=max(low, high),
        time_us=fact.time_us,
        brokers=brokers_of((fact,)),
    )
