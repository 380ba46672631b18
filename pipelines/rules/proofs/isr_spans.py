"""When a replica was in the ISR for sure, on the clock of its leader, as the leader saw it.

Partition epochs count the commits of the ISR: where the leader's own lines show one before an instant and one after
it, and every one from the first to the second is known, no change can be missing between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Final, NamedTuple

from pipelines.replay.versions import rules_for
from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import Settings
from schemas import audit_facts as a
from schemas.audit_facts import Fact

#: Partition epochs that one span goes over at most.
STEPS_MAX: Final = 10_000


class Anchor(NamedTuple):
    """The leader had a partition epoch at an instant of its clock.

    Attributes:
        upper: it had no later one before; a request that a controller sent only shows that this one existed.
    """

    time_us: int
    partition_epoch: int
    upper: bool
    fact: Fact


class IsrSpans:
    """See the module."""

    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        self._history = history
        self._settings = settings
        self._anchors: dict[tuple[int, int, int], list[Anchor]] = defaultdict(list)
        for fact in history.facts[a.LEADERSHIP]:
            if fact.leader == fact.broker_id and fact.leader_epoch is not None:
                if fact.name in ("leader_start", "request"):
                    self._anchor(fact, fact.leader_epoch, upper=False)
                elif fact.name == "leader_update":
                    self._anchor(fact, fact.leader_epoch, upper=self._takes_newer_only(fact))
        for fact in history.facts[a.ISR_CHANGE]:
            if fact.name == "committed" and fact.broker_id is not None:
                tenure = history.tenure(fact.broker_id, fact.time_us)
                if tenure is not None:
                    self._anchor(fact, tenure.epoch, upper=True)
        for anchors in self._anchors.values():
            anchors.sort(key=lambda anchor: (anchor.time_us, anchor.partition_epoch, anchor.upper))

    def _takes_newer_only(self, fact: Fact) -> bool:
        version = self._settings.version(fact.broker_id, fact.time_us) if fact.broker_id is not None else None
        return version is not None and rules_for(version).partition_epoch_gates_state

    def _anchor(self, fact: Fact, epoch: int, *, upper: bool) -> None:
        if fact.broker_id is None or fact.partition_epoch is None:
            return
        key = (self._history.incarnation(fact.time_us), fact.broker_id, epoch)
        self._anchors[key].append(Anchor(fact.time_us, fact.partition_epoch, upper, fact))

    def around(
        self, leader: int, epoch: int, replica: int, since_us: int, until_us: int
    ) -> tuple[Fact, tuple[Fact, ...]] | None:
        """The replica was in the leader's committed ISR from an instant to another.

        Gives the leader's line before, and the lines of the states from then on until after; None if it is not certain.
        """
        incarnation = self._history.incarnation(since_us)
        anchors = self._anchors.get((incarnation, leader, epoch), [])
        at = bisect_left(anchors, since_us, key=lambda anchor: anchor.time_us)
        if at == 0:
            return None
        before = max(anchors[:at][-8:], key=lambda anchor: anchor.partition_epoch)
        after = next((anchor for anchor in anchors[at:] if anchor.upper and anchor.time_us > until_us), None)
        last = after.partition_epoch if after is not None else None
        states = self._run(incarnation, leader, epoch, replica, before.partition_epoch, last)
        return None if states is None else (before.fact, states)

    def stayed(
        self, leader: int, epoch: int, replica: int, joined: Fact, within: tuple[int, int]
    ) -> tuple[Fact, ...] | None:
        """The replica stayed in the ISR from the leader's line by which it joined until after an interval."""
        around = self.around(leader, epoch, replica, *within)
        if around is None or joined.partition_epoch is None or around[0].partition_epoch is None:
            return None
        if around[0].partition_epoch <= joined.partition_epoch:
            return around[1] if around[0].partition_epoch == joined.partition_epoch else None
        incarnation = self._history.incarnation(joined.time_us)
        first, last = joined.partition_epoch, around[0].partition_epoch
        states = self._run(incarnation, leader, epoch, replica, first, last)
        return None if states is None else (*states, *around[1])

    def _run(
        self, incarnation: int, leader: int, epoch: int, replica: int, first: int, last: int | None
    ) -> tuple[Fact, ...] | None:
        """States from one partition epoch to another, or to the end of the leader epoch, all with the replica."""
        by_epoch = self._history.states.get(incarnation, {})
        facts: list[Fact] = []
        for partition_epoch in range(first, first + STEPS_MAX):
            states = by_epoch.get(partition_epoch, [])
            if len(states) != 1:
                return None
            state = states[0]
            if state.leader_epoch > epoch:
                # The leader's epoch ended with the state before: this one is of the next.
                return (*facts, state.fact) if facts else None
            if state.leader_epoch != epoch or state.leader != leader or replica not in state.isr:
                return None
            facts.append(state.fact)
            if partition_epoch == last:
                return tuple(facts)
        return None
