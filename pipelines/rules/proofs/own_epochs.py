"""Which leader epochs a broker's own lines say it had entered by an instant of its clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate

from pipelines.rules.history import PartitionHistory
from pipelines.rules.proofs.own_lines import ROLES
from schemas import audit_facts as a
from schemas.audit_facts import Fact


class OwnEpochs:
    """A broker's lines are written as it takes an epoch, under the lock that its reads wait for."""

    def __init__(self, history: PartitionHistory) -> None:
        self._history = history
        lines: dict[tuple[int, int], list[Fact]] = defaultdict(list)
        for fact in history.facts[a.LEADERSHIP]:
            if fact.name in ROLES and fact.broker_id is not None and fact.leader_epoch is not None:
                lines[history.incarnation(fact.time_us), fact.broker_id].append(fact)
        self._times: dict[tuple[int, int], list[int]] = {}
        self._highest: dict[tuple[int, int], list[Fact]] = {}
        self._lowest: dict[tuple[int, int], list[Fact]] = {}
        for key, facts in lines.items():
            facts.sort(key=lambda fact: (fact.time_us, fact.leader_epoch))
            self._times[key] = [fact.time_us for fact in facts]
            self._highest[key] = list(accumulate(facts, _higher))
            self._lowest[key] = list(accumulate(facts[::-1], _lower))[::-1]

    def highest_before(self, broker_id: int, time_us: int) -> Fact | None:
        """The line of the highest epoch that the broker had entered before an instant."""
        key = (self._history.incarnation(time_us), broker_id)
        at = bisect_left(self._times.get(key, []), time_us)
        return self._highest[key][at - 1] if at else None

    def lowest_after(self, broker_id: int, time_us: int) -> Fact | None:
        """The line of the lowest epoch that the broker had after an instant: it had none higher before."""
        key = (self._history.incarnation(time_us), broker_id)
        times = self._times.get(key, [])
        at = bisect_right(times, time_us)
        return self._lowest[key][at] if at < len(times) else None


def epoch_of(fact: Fact) -> int:
    """The leader epoch that a line names."""
    assert fact.leader_epoch is not None
    return fact.leader_epoch


def _higher(line: Fact, other: Fact) -> Fact:
    return max(line, other, key=epoch_of)


def _lower(line: Fact, other: Fact) -> Fact:
    return min(line, other, key=epoch_of)
