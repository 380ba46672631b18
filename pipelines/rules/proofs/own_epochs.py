"""Which leader epochs a broker's own lines say it had entered by an instant of its clock."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import accumulate

from pipelines.replay.versions import parse_version, rules_for
from pipelines.rules.history import OWN_ROLES, ROLES, PartitionHistory, Tenure
from pipelines.rules.rule import Settings
from schemas import audit_facts as a
from schemas.audit_facts import Fact


class OwnEpochs:
    """A broker's lines are written as it takes an epoch, under the lock that its reads wait for."""

    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        self._settings = settings
        self._history = history
        own: dict[int, list[Fact]] = defaultdict(list)
        lines: dict[tuple[int, int], list[Fact]] = defaultdict(list)
        for fact in history.facts[a.LEADERSHIP]:
            if fact.name in OWN_ROLES and fact.broker_id is not None and fact.leader_epoch is not None:
                own[fact.broker_id].append(fact)
                if fact.name in ROLES:
                    lines[history.incarnation(fact.time_us), fact.broker_id].append(fact)
        self._own = {broker: sorted(facts, key=_time) for broker, facts in own.items()}
        self._times: dict[tuple[int, int], list[int]] = {}
        self._highest: dict[tuple[int, int], list[Fact]] = {}
        self._lowest: dict[tuple[int, int], list[Fact]] = {}
        for key, facts in lines.items():
            facts.sort(key=lambda fact: (fact.time_us, fact.leader_epoch))
            self._times[key] = [fact.time_us for fact in facts]
            self._highest[key] = list(accumulate(facts, _higher))
            self._lowest[key] = list(accumulate(facts[::-1], _lower))[::-1]

    def surely(self, broker_id: int, time_us: int) -> Tenure | None:
        """In which epoch a broker led at an instant, if no line that is missing can change it.

        Its next line has to be of that epoch, or of a later one that had not begun: a line that begins it, or one of
        an epoch of another broker; and no epoch between may be its own.
        """
        tenure = self._history.tenure(broker_id, time_us)
        if tenure is None or tenure.fact.time_us >= time_us:
            return None
        own = self._own.get(broker_id, [])
        at = bisect_right(own, time_us, key=_time)
        if at == len(own):
            return None
        after = own[at]
        last = epoch_of(after)
        if after.name == "leader_start" and last > tenure.epoch and starts_once(self._settings, after):
            last -= 1
        for number in range(tenure.epoch + 1, last + 1):
            leader = self._history.epoch(number, time_us).leader
            if leader is None or leader == broker_id:
                return None
        return tenure if last >= tenure.epoch else None

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


def starts_once(settings: Settings, line: Fact) -> bool:
    """Whether a leader's line of an epoch's start is surely its first of it; KRaft before 3.3 may print it again."""
    version = settings.version(line.broker_id, line.time_us) if line.broker_id is not None else None
    number = parse_version(version)
    return number is not None and (number < (3, 0, 0) or rules_for(version).partition_epoch_gates_state)


def _time(fact: Fact) -> int:
    return fact.time_us


def epoch_of(fact: Fact) -> int:
    """The leader epoch that a line names."""
    assert fact.leader_epoch is not None
    return fact.leader_epoch


def _higher(one: Fact, other: Fact) -> Fact:
    return max(one, other, key=epoch_of)


def _lower(one: Fact, other: Fact) -> Fact:
    return min(one, other, key=epoch_of)
