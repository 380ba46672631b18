"""A fetch with another leader epoch than the leader's, answered without an error.

The leader's own line shows that it had entered an epoch. A fetch that was surely handled after that line with an
earlier epoch must be fenced (FENCED_LEADER_EPOCH, 74). A fetch that was surely handled before a line of a lower epoch
must be refused (UNKNOWN_LEADER_EPOCH, 75).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.proofs.own_lines import ROLES
from highwater.pipelines.rules.proofs.repeated import Repeated
from highwater.pipelines.rules.rule import KEPT, Case, Checker
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact


class OwnEpochs:
    """The leader epochs of each broker over time. A broker logs a new epoch under the lock that its reads wait for."""

    def __init__(self, history: FactHistory) -> None:
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
            self._highest[key] = list(accumulate(facts, partial(max, key=epoch_of)))
            self._lowest[key] = list(accumulate(facts[::-1], partial(min, key=epoch_of)))[::-1]

    def highest_before(self, broker_id: int, time_us: int) -> Fact | None:
        """Return the line of the highest epoch that the broker had entered before `time_us`. None without one."""
        key = (self._history.incarnation(time_us), broker_id)
        at = bisect_left(self._times.get(key, []), time_us)
        return self._highest[key][at - 1] if at else None

    def lowest_after(self, broker_id: int, time_us: int) -> Fact | None:
        """Return the line of the lowest epoch that the broker entered after `time_us`. It had no higher one before."""
        key = (self._history.incarnation(time_us), broker_id)
        times = self._times.get(key, [])
        at = bisect_right(times, time_us)
        return self._lowest[key][at] if at < len(times) else None


def epoch_of(fact: Fact) -> int:
    """Return the leader epoch that a line names."""
    assert fact.leader_epoch is not None
    return fact.leader_epoch


@dataclass
class StaleEpochAccepted(Checker):
    _epochs: OwnEpochs = field(init=False)
    _cases: Repeated = field(default_factory=lambda: Repeated("{} such fetches"))
    #: By broker, the highest epoch that a fetch named, and when its last one was answered.
    _named: dict[int, tuple[int, int]] = field(default_factory=dict, metadata=KEPT)

    def __post_init__(self) -> None:
        self._epochs = OwnEpochs(self._history)

    def observe(self, fact: Fact) -> None:
        chain = self._history.chain
        if not chain.answered or fact.leader_epoch is None or fact.broker_id is None:
            return
        self.checked += 1
        epoch, last_us = self._named.get(fact.broker_id, (fact.leader_epoch, fact.time_us))
        self._named[fact.broker_id] = max(epoch, fact.leader_epoch), max(last_us, fact.time_us)
        if chain.before is not None:
            entered = self._epochs.highest_before(fact.broker_id, chain.before.time_us)
            if entered is not None and epoch_of(entered) > fact.leader_epoch:
                # A run from before the line to after it: one life of the topic.
                one_run = chain.run is not None and chain.run.time_us < entered.time_us
                self._judge(fact, entered, (chain.before,), one_run=one_run)
        lower = self._epochs.lowest_after(fact.broker_id, fact.time_us)
        if lower is not None and epoch_of(lower) < fact.leader_epoch:
            self._judge(fact, lower, (), one_run=False)

    def finish(self) -> Iterable[Case]:
        return self._cases.cases()

    def stands(self) -> bool:
        named = self._named.items()
        after = [(epoch, self._epochs.lowest_after(broker_id, last_us)) for broker_id, (epoch, last_us) in named]
        return self.is_final and all(line is None or epoch_of(line) >= epoch for epoch, line in after)

    def _judge(self, fact: Fact, line: Fact, between: tuple[Fact, ...], *, one_run: bool) -> None:
        assert fact.broker_id is not None
        assert fact.leader_epoch is not None
        severity = self._severity(fact, line, one_run=one_run)
        if severity is None:
            return
        leader, named, entered = fact.broker_id, fact.leader_epoch, epoch_of(line)
        replica = fact.replica_id if fact.replica_id is not None else -1
        where, error = ("after", "FENCED") if named < entered else ("before", "UNKNOWN")
        self._cases.add(
            (leader, replica, named, entered, severity),
            lambda: Case(
                severity,
                f"Broker {leader} answered a fetch of replica {replica} that names leader epoch {named} without error, "
                f"{where} it had entered epoch {entered} by its own line; {error}_LEADER_EPOCH was due",
                (line, *between, fact),
                leader_epoch=entered,
                offset_start=fact.offset,
                time_us=fact.time_us,
                brokers=(leader, replica),
            ),
        )
