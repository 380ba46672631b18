"""Produces that were answered with an error although their records were appended and are committed: a retry doubles "
"them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from highwater.pipelines.rules.rule import KEPT, OBSERVATION, Case, Checker, brokers_of
from highwater.schemas.audit_facts import Fact

#: Requests that a case shows of each error.
SHOWN = 5
#: Requests of a partition that a later run checks again. With more of them it judges the whole partition.
UNDECIDED_MAX = 200
ERRORS = {
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
}


@dataclass
class Answered:
    """Produces of one leader epoch that got the same error: first, last and number."""

    shown: list[Fact]
    last: Fact
    low: int  #: the lowest offset
    high: int  #: the highest offset
    count: int = 0


@dataclass
class ErrorYetCommitted(Checker):
    """Finds produces answered with an error although their records were committed.

    It reports one case per partition, leader epoch and error, because a fail-over answers all waiting produces.
    """

    _answered: dict[tuple[int, int], Answered] = field(default_factory=dict, metadata=KEPT)
    #: Requests that no known high watermark has passed, with their leader epochs.
    _undecided: list[tuple[int, Fact]] = field(default_factory=list, metadata=KEPT)
    _goes_on: bool = False

    def observe(self, fact: Fact) -> None:
        if not fact.error_code or fact.offset is None or fact.broker_id is None:
            return
        self._look_again()
        self.checked += 1
        tenure = self._history.tenure(fact.broker_id, fact.earliest_us or fact.time_us)
        if tenure is not None:
            self._judge(tenure.epoch, fact)

    def _judge(self, number: int, fact: Fact) -> None:
        assert fact.error_code is not None
        assert fact.offset is not None
        if self._find_proof(fact, number) is None:
            if len(self._undecided) < UNDECIDED_MAX:
                self._undecided.append((number, fact))
            else:
                self.is_final = False
            return
        new = Answered([], fact, fact.offset, fact.offset)
        answered = self._answered.setdefault((number, fact.error_code), new)
        answered.count += 1
        answered.last = fact
        answered.low, answered.high = min(answered.low, fact.offset), max(answered.high, fact.offset)
        if len(answered.shown) < SHOWN:
            answered.shown.append(fact)

    def go_on(self, kept: Mapping[str, Any]) -> None:
        super().go_on(kept)
        self._goes_on = True

    def _look_again(self) -> None:
        """Judge the facts that an earlier run could not decide, once all fetches of this run are known."""
        if self._goes_on:
            self._goes_on = False
            undecided, self._undecided = self._undecided, []
            for number, fact in undecided:
                self._judge(number, fact)

    def stands(self) -> bool:
        return self.is_final and all(
            self._find_proof(answered.last._replace(offset=answered.high), number)
            for (number, _), answered in self._answered.items()
        )

    def _find_proof(self, fact: Fact, number: int) -> Fact | None:
        """Return the fact that proves the record committed. None without one, or if a later epoch starts below it."""
        assert fact.offset is not None
        if self._history.lost_by(number, fact.time_us, fact.offset + 1) is not None:
            return None
        known = self._history.epoch(number, fact.time_us).high_watermark
        if known is not None and known[0] > fact.offset:
            return known[1]
        later = self._history.later(number, fact.time_us)
        started = next((epoch.start for epoch in later if epoch.start is not None), None)
        return None if started is None else started[1]

    def finish(self) -> Iterable[Case]:
        self._look_again()
        for (number, error_code), answered in sorted(self._answered.items(), key=lambda item: item[0]):
            facts, low, high, count = answered.shown, answered.low, answered.high, answered.count
            error = ERRORS.get(error_code, f"error {error_code}")
            message = (
                f"{count} produce{'s' if count > 1 else ''} answered with {error} in leader epoch {number} had been "
                f"appended, at offsets {low} to {high}, and {'are' if count > 1 else 'is'} in the log: a retry "
                "without idempotence writes the records again."
            )
            proof = self._find_proof(answered.last, number)
            assert proof is not None
            yield Case(
                OBSERVATION,
                message,
                (*facts, proof),
                leader_epoch=number,
                offset_start=low,
                offset_end=high + 1,
                time_us=facts[0].time_us,
                brokers=brokers_of(facts),
                records=count,
            )
