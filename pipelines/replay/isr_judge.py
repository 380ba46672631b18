"""Why an ISR change was not made when the rules required it, as the log shows it. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from highwater.pipelines.replay import isr_outcome as o
from highwater.pipelines.replay.isr_evidence import IsrEvidence, Span
from highwater.pipelines.replay.isr_outcome import IsrOutcome

#: Earlier changes that are kept to explain a delay.
_FLIGHTS_KEPT = 16


class IsrJudge:
    """Finds the reasons for delayed ISR changes of one leadership.

    Attributes:
        refused_us: when a change was last refused, us. 0 if never.
    """

    def __init__(self, evidence: IsrEvidence, period_us: int, asks_controller: bool) -> None:
        self._evidence = evidence
        self._period_us = period_us
        self._asks_controller = asks_controller
        self._flights: deque[Span] = deque(maxlen=_FLIGHTS_KEPT)
        self.refused_us = 0

    def landed(self, from_us: int, until_us: int) -> None:
        """Record that an ISR change was in progress between two times. No other change was evaluated then."""
        self._flights.append((from_us, until_us))

    def explain(self, outcome: IsrOutcome) -> None:
        """Set the reason of an observed change that is late."""
        if outcome.class_ != o.LATE or outcome.reason is not None:
            return
        lowest_us, seen_us = outcome.lowest_us or 0, outcome.observed_us or 0
        if self._evidence.silent_us(lowest_us, seen_us):
            outcome.reason = o.LEADER_PAUSED
        elif lowest_us <= self.refused_us <= seen_us:
            outcome.reason = o.REFUSED
        elif self._count_blocked(lowest_us, seen_us, ()):
            outcome.reason = o.IN_FLIGHT
        elif outcome.proposed_us is None and self._asks_controller:
            outcome.reason = o.COMMIT_DELAYED

    def missed(
        self, outcome: IsrOutcome, certain_us: int, until_us: int, under_way: Iterable[IsrOutcome], reason: str | None
    ) -> bool:
        """Return True if a change that was required but not observed should have happened: a periodic check was due.

        Args:
            certain_us, until_us: between these times the rule certainly required the change.
            under_way: changes in progress.
            reason: why the change can no longer be seen. None if unknown.
        """
        if not self._evidence.logged(certain_us, until_us):
            return False
        blocked = self._count_blocked(certain_us, until_us, under_way)
        held_us = until_us - certain_us - self._evidence.silent_us(certain_us, until_us)
        if held_us <= self._period_us * (1 + blocked):
            return False
        outcome.class_ = o.NOT_OBSERVED
        if (outcome.lowest_us or 0) <= self.refused_us <= until_us:
            outcome.reason = o.REFUSED
        else:
            outcome.reason = o.IN_FLIGHT if blocked else reason
        return True

    def _count_blocked(self, from_us: int, until_us: int, under_way: Iterable[IsrOutcome]) -> int:
        """Count the changes in progress between two times. The periodic check skips the partition during a change."""
        ended = sum(since_us < until_us and from_us <= ended_us for since_us, ended_us in self._flights)
        return ended + sum((change.proposed_us or until_us) < until_us for change in under_way)
