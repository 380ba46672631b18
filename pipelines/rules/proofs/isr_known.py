"""The ISR as a leader surely had it through a stretch of its clock: no change of it can be missing from the lines.

Each commit of an ISR takes the next partition epoch (zkVersion), and so does what the controller changes. So where the
leader's own lines show one before a stretch and one after it, and every one from the first to the second is known, no
change is missing between. A line of the very instant at which the stretch begins or ends may have come before or after
it, so it bounds nothing: a change and its line are made under another lock than a request and its line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from highwater.pipelines.kafka.versions import rule_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

if TYPE_CHECKING:
    from highwater.pipelines.rules.history import FactHistory

#: Limit of partition epochs within a replica's stay.
STEPS_MAX: Final = 10_000
#: Lines before a stretch that are searched: one of them may be a late line of a controller's state.
BEFORE_MAX: Final = 8
#: A leader's own view: each follows what it saw before.
_VIEWS: Final = frozenset({"leader_start", "leader_update", "committed"})
#: State that a broker received. It can be older than the broker's own state, so it bounds a stretch from below only.
_TOLD: Final = frozenset({"request", "metadata", "follower_start"})


class EpochLine(NamedTuple):
    """A broker's line that names a partition epoch."""

    time_us: int
    partition_epoch: int
    last: bool  #: its broker had no later partition epoch before
    fact: Fact


class IsrKnown:
    """The ISR that a leader certainly had at a time, from the lines of all brokers about one partition.

    Attributes:
        of_leadership: leaders' own lines in time order, by (incarnation, broker, leader epoch).
    """

    def __init__(self, history: FactHistory) -> None:
        self._history = history
        #: By incarnation and broker.
        self._of_broker: dict[tuple[int, int], list[EpochLine]] = defaultdict(list)
        self.of_leadership: dict[tuple[int, int, int], list[EpochLine]] = defaultdict(list)
        for fact in (*history.facts[a.LEADERSHIP], *history.facts[a.ISR_CHANGE]):
            if fact.broker_id is None or fact.partition_epoch is None or fact.name not in _VIEWS | _TOLD:
                continue
            place = (history.incarnation(fact.time_us), fact.broker_id)
            self._of_broker[place].append(EpochLine(fact.time_us, fact.partition_epoch, self._is_last(fact), fact))
        for (incarnation, broker_id), lines in self._of_broker.items():
            lines.sort(key=lambda line: line[:3])
            entered = -1
            for at, line in enumerate(lines):
                epoch = self._find_led_epoch(line.fact)
                if epoch is None:
                    continue
                if line.fact.name == "leader_start" and epoch <= entered:
                    # A leader that was started again within its epoch.
                    lines[at] = line._replace(last=False)
                entered = max(entered, epoch)
                self.of_leadership[incarnation, broker_id, epoch].append(lines[at])

    def _is_last(self, fact: Fact) -> bool:
        """Return True if the leader had no later state before. Before 3.3 it takes older state again (KAFKA-13790)."""
        if fact.name == "leader_update" and fact.broker_id is not None:
            version = self._history.version(fact.broker_id, fact.time_us)
            return rule_of(version, lambda rules: rules.partition_epoch_gates_state) is True
        return fact.name == "committed" or (fact.name == "leader_start" and self._history.starts_once(fact))

    def _find_led_epoch(self, fact: Fact) -> int | None:
        if fact.kind == a.ISR_CHANGE:
            return self._history.own_lines.epoch_of_commit(fact)
        elected = fact.name == "request" and fact.leader == fact.broker_id
        return fact.leader_epoch if elected or fact.name in _VIEWS else None

    def through(self, broker_id: int, since_us: int, until_us: int) -> tuple[Fact, ...] | None:
        """Return a leader's ISR lines from the last one before `since_us` to the first one after `until_us`.

        None if a line may be missing between them.
        """
        lines = self._of_broker.get((self._history.incarnation(since_us), broker_id), [])
        before, after = _find_around(lines, since_us, until_us)
        if before is None or after is None:
            return None
        views = (line for line in lines[before + 1 : after + 1] if line.fact.name in _VIEWS)
        covering = [lines[before], *views]
        versions = {line.partition_epoch for line in covering}
        if max(versions) - min(versions) != len(versions) - 1:
            return None
        return tuple(line.fact for line in covering)

    def before(self, broker_id: int, time_us: int) -> Fact | None:
        """Return the first line of the stretch that `through` returns. Later lines never change it."""
        lines = self._of_broker.get((self._history.incarnation(time_us), broker_id), [])
        before, _ = _find_around(lines, time_us, time_us)
        return None if before is None else lines[before].fact

    def held(
        self, leader: int, epoch: int, replica: int, since_us: int, until_us: int
    ) -> tuple[Fact, tuple[Fact, ...]] | None:
        """Prove that a replica was in the leader's committed ISR during the whole time.

        Return (last line before `since_us`, lines of the states until after `until_us`). None if it is not certain.
        """
        incarnation = self._history.incarnation(since_us)
        lines = self.of_leadership.get((incarnation, leader, epoch), [])
        before, after = _find_around(lines, since_us, until_us)
        if before is None:
            return None
        last = lines[after].partition_epoch if after is not None else None
        states = self._find_states(replica, incarnation, (leader, epoch), lines[before].partition_epoch, last)
        return (lines[before].fact, tuple(states)) if states else None

    def stretch(self, leader: int, epoch: int, since_us: int, until_us: int) -> tuple[int | None, int | None]:
        """Return the indexes of the leader's lines before and after the time. `held` and `stayed` depend on them."""
        lines = self.of_leadership.get((self._history.incarnation(since_us), leader, epoch), [])
        return _find_around(lines, since_us, until_us)

    def may_hold(self, leader: int, epoch: int, replica: int, since_us: int) -> bool:
        """Return True if a later line may still make `held` succeed: the line before may contain the replica."""
        lines = self.of_leadership.get((self._history.incarnation(since_us), leader, epoch), [])
        before, _ = _find_around(lines, since_us, since_us)
        if before is None:
            return False
        isr = lines[before].fact.isr
        return isr is None or replica in isr

    def stayed(
        self, leader: int, epoch: int, replica: int, joined: Fact, within: tuple[int, int]
    ) -> tuple[Fact, ...] | None:
        """Return lines that prove a replica in the ISR from the `joined` line to the end of `within`, or None."""
        held = self.held(leader, epoch, replica, *within)
        if held is None or joined.partition_epoch is None or held[0].partition_epoch is None:
            return None
        first, last = joined.partition_epoch, held[0].partition_epoch
        if last <= first:
            return held[1] if last == first else None
        incarnation = self._history.incarnation(joined.time_us)
        states = self._find_states(replica, incarnation, (leader, epoch), first, last)
        return (*states, *held[1]) if states else None

    def _find_states(
        self, replica: int, incarnation: int, leadership: tuple[int, int], first: int, last: int | None
    ) -> list[Fact]:
        """Return the states with the replica from partition epoch `first` to `last`, or to the end of the leader epoch.

        Empty if a state is unknown or does not contain the replica.
        """
        by_epoch = self._history.states.get(incarnation, {})
        facts: list[Fact] = []
        for partition_epoch in range(first, first + STEPS_MAX):
            states = by_epoch.get(partition_epoch, [])
            if len(states) != 1:
                return []
            state = states[0]
            if state.leader_epoch > leadership[1]:
                # The leader's epoch ended with the state before: this one is of the next.
                return [*facts, state.fact] if facts else []
            if (state.leader, state.leader_epoch) != leadership or replica not in state.isr:
                return []
            facts.append(state.fact)
            if partition_epoch == last:
                return facts
        return []


def _find_around(lines: list[EpochLine], since_us: int, until_us: int) -> tuple[int | None, int | None]:
    """Return (index with the highest partition epoch before `since_us`, index of the first final line after).

    "Final" means that the broker had no later partition epoch before. None if no line qualifies.
    """
    at = bisect_left(lines, since_us, key=lambda line: line.time_us)
    before = max(range(max(at - BEFORE_MAX, 0), at), key=lambda n: (lines[n].partition_epoch, n), default=None)
    after = next((n for n in range(at, len(lines)) if lines[n].last and lines[n].time_us > until_us), None)
    return before, after
