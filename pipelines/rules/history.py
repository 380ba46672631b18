"""A partition's history: its leader epochs, its ISRs and who held what role when, from what lines say.

Epochs order what brokers did; their clocks do not. A broker's own lines, though, are in the order of its own clock, and
tell between which of its lines it led in which epoch. Where lines may be missing between, `Tenure.certain` is False.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from highwater.pipelines.kafka.controller_rows import NON_EXISTENT
from highwater.pipelines.kafka.topic_lives import TopicLives, topic_lives
from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.rules.leader_epoch import CommittedState, Epoch, contradicting
from highwater.pipelines.rules.proofs.fetch_chain import FetchChain, FetchChains, Stretches
from highwater.pipelines.rules.proofs.isr_known import IsrKnown
from highwater.pipelines.rules.proofs.lives import Lives
from highwater.pipelines.rules.proofs.own_lines import ROLES, OwnLines, leads
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: Kinds of lines of a log; all others stand in files that a broker keeps, or are computed.
_LINES: Final = frozenset({a.LEADERSHIP, a.ISR_CHANGE, a.PARTITION_STATE, a.ELECTION, a.TRUNCATION, a.LOADED, a.TIER})
#: The fields of a fact from here on say where it stands; those before, what it says.
PLACE: Final = Fact._fields.index("file_id")


class Tenure(NamedTuple):
    """A broker led in an epoch at some instant."""

    epoch: int  #: leader epoch
    #: the last epoch in which it can have led then, by its lines before and after; None if they do not tell
    latest: int | None
    fact: Fact  #: the line that began it
    begun: bool  #: that line is of an earlier instant. Of lines of one instant none is known to be the first

    @property
    def certain(self) -> bool:
        """The broker's lines before and after the instant leave no room for another epoch of its own."""
        return self.begun and self.latest == self.epoch


@dataclass
class FactHistory:
    """All that is kept of one partition; facts of rank `HISTORY_RANK` come first, in the order of their times."""

    #: Kafka version by (broker, instant), None where unknown
    version: Callable[[int, int], str | None] = lambda broker_id, time_us: None
    skew_max_us: int = 1_000_000  #: clocks of two brokers are taken to differ by no more
    #: how far two instants of one time may lie apart, of (broker, instant)
    blur_us: Callable[[int, int], int] = lambda broker_id, time_us: 0
    facts: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list))  #: by kind
    #: Followers' fetches as they stream by, for all rules.
    chains: FetchChains = field(default_factory=FetchChains)
    stretches: Stretches = field(default_factory=Stretches)
    _epochs: dict[tuple[int, int], Epoch] = field(default_factory=dict)
    #: Until when a broker surely led in an epoch, by (incarnation, broker, epoch): it answered a fetch in it later.
    _answered_us: dict[tuple[int, int, int], int] = field(default_factory=dict)
    #: By what it says, the first file of each line of the instant that was taken last.
    _copies: dict[tuple[object, ...], str | None] = field(default_factory=dict)
    _copies_us: int | None = None

    def add(self, fact: Fact) -> None:
        """Take a fact of the history; of a line that stands in several files, only as often as in one of them."""
        if fact.kind in _LINES:
            if fact.time_us != self._copies_us:
                self._copies_us, self._copies = fact.time_us, {}
            if self._copies.setdefault(fact[:PLACE], fact.file_id) != fact.file_id:
                return
        self.facts[fact.kind].append(fact)

    @property
    def brokers(self) -> set[int]:
        """Brokers that lead, are in sync or assigned, by any line."""
        named: set[int] = set()
        for fact in (*self.facts[a.LEADERSHIP], *self.facts[a.METADATA], *self.facts[a.ISR_CHANGE]):
            named |= {fact.leader} if fact.leader is not None else set()
            named |= set(fact.isr or ()) | set(fact.replicas or ())
        return {broker_id for broker_id in named if broker_id >= 0}

    @cached_property
    def strangers(self) -> tuple[frozenset[int], ...]:
        """Groups of several brokers of which none, by its lines of leaders and ISRs, names one of another group."""
        groups: list[set[int]] = []
        for fact in (*self.facts[a.LEADERSHIP], *self.facts[a.METADATA], *self.facts[a.ISR_CHANGE]):
            named = {fact.broker_id, fact.leader, *(fact.isr or ()), *(fact.replicas or ())}
            known = {broker_id for broker_id in named if broker_id is not None and broker_id >= 0}
            joined = [group for group in groups if group & known]
            groups = [group for group in groups if not group & known] + [known.union(*joined)]
        return tuple(sorted((frozenset(group) for group in groups if len(group) > 1), key=min))

    @property
    def chain(self) -> FetchChain:
        """The connection of the fetch that was taken last (`chain.fact`)."""
        return self.chains.last

    # ------------------------------------------------------------ incarnations

    @cached_property
    def topic_lives(self) -> TopicLives:
        """Lives of the topic; in a later one epochs begin again, and nothing carries over."""
        roles = ((fact.name, fact) for fact in self.facts[a.LEADERSHIP])
        created_us = (fact.time_us for fact in self.facts[a.PARTITION_STATE] if fact.detail == NON_EXISTENT)
        return topic_lives(roles, self.facts[a.METADATA], created_us)

    @property
    def has_fetches(self) -> bool:
        """Return True if a leader's answer to a follower showed what was committed."""
        return bool(self._answered_us) or any(
            epoch.high_watermark is not None and epoch.high_watermark[1].kind == a.FETCH for _, epoch in self.epochs()
        )

    def incarnation(self, time_us: int) -> int:
        """How often the topic had been created anew by then."""
        return self.topic_lives.at(time_us)

    # ------------------------------------------------------------------ epochs

    def epoch(self, number: int, time_us: int) -> Epoch:
        """The leader epoch of that number, of the topic as it was at that time."""
        key = (self.incarnation(time_us), number)
        if key not in self._epochs:
            self._epochs[key] = Epoch(number)
        return self._epochs[key]

    def close(self) -> None:
        """The history is complete: fold it into epochs."""
        for fact in (*self.facts[a.METADATA], *self.facts[a.LEADERSHIP], *self.facts[a.PARTITION_STATE]):
            if fact.leader_epoch is None:
                continue
            epoch = self.epoch(fact.leader_epoch, fact.time_us)
            epoch.see(fact)
            if fact.name == "leader_start" and fact.broker_id is not None:
                epoch.leaders.setdefault(fact.broker_id, fact)
                if fact.offset is not None:
                    epoch.starts(fact.offset, fact)
            if fact.name in ("leader_start", "leader_update") and fact.high_watermark is not None:
                epoch.committed(fact.high_watermark, fact)
        for fact in self.facts[a.EPOCH_ENTRY]:
            # The first entry moves up with the start of the log; none says less than what its epoch wrote.
            if fact.leader_epoch is not None and fact.offset is not None and self._of_last_life(fact):
                self.epoch(fact.leader_epoch, fact.time_us).wrote(fact.offset, fact)

    def _of_last_life(self, fact: Fact) -> bool:
        """Whether what a file says is of the topic as the lines know it last: not of its namesake before or after."""
        newest_id = self.topic_lives.newest_id
        if None not in (newest_id, fact.topic_id):
            return fact.topic_id == newest_id
        return fact.broker_id not in self._strange_files

    @cached_property
    def _strange_files(self) -> frozenset[int | None]:
        starts = {number: epoch.start for (_, number), epoch in sorted(self._epochs.items())}
        return contradicting(self.facts[a.EPOCH_ENTRY], lambda number: (starts.get(number) or (None,))[0])

    def stream(self, fact: Fact) -> None:
        """Take a fact that streams by: what it says of an epoch's writes and commits is kept, nothing else."""
        if fact.broker_id is not None and self._beside_birth(fact.broker_id, fact.time_us):
            return
        if fact.kind == a.APPEND and fact.broker_id is not None and fact.offset is not None:
            # In the epoch that its broker's lines tell, or in a later one of its own that they do not: never earlier.
            # Only of brokers that know no retries: the line is written for a duplicate, too.
            number = self.own_lines.lowest_epoch(fact.broker_id, fact.time_us)
            if number is not None:
                self.epoch(number, fact.time_us).wrote(fact.offset, fact)
        elif fact.kind == a.BATCH:
            named = fact.leader_epoch is not None and fact.leader_epoch >= 0
            if named and fact.offset is not None and self._of_last_life(fact):
                self.epoch(fact.leader_epoch or 0, a.NO_TIME_US).wrote(fact.offset, fact)
        elif fact.kind == a.FETCH:
            # A fetch that names its epoch and is answered without error was answered in that epoch.
            if fact.leader_epoch is not None and fact.high_watermark is not None and not fact.error_code:
                self.epoch(fact.leader_epoch, fact.time_us).committed(fact.high_watermark, fact)
            if self.chains.follow(fact):
                self.stretches.add(self.chain)
                if self.chain.answered:
                    self.lives.fetched(fact, self.chain.before)
                    self._answers(fact, self.chain.before)
        elif fact.kind == a.HIGH_WATERMARK and fact.name == "updated" and fact.high_watermark is not None:
            tenure = self.tenure(fact.broker_id, fact.time_us) if fact.broker_id is not None else None
            if tenure is not None and tenure.certain:
                self.epoch(tenure.epoch, fact.time_us).committed(fact.high_watermark, fact)

    # ---------------------------------------------------------- from run to run

    def kept(self) -> dict[str, Any]:
        """What a later run goes on with, beside the facts: what those that streamed by have told."""
        return {
            "epochs": [(key, epoch.high_watermark) for key, epoch in self._epochs.items()],
            "answered_us": self._answered_us,
            "chains": self.chains,
            "lives": self.lives.known,
        }

    def go_on(self, kept: Mapping[str, Any]) -> None:
        """Take what an earlier run `kept`; the history is closed, and begins the same lives as that run's did."""
        for key, highest in kept["epochs"]:
            epoch = self._epochs.setdefault(key, Epoch(key[1]))
            if highest is not None:
                epoch.committed(*highest)
        self._answered_us, self.chains = kept["answered_us"], kept["chains"]
        self.lives.knew(kept["lives"])

    def extends(self, before: FactHistory) -> bool:
        """Whether lives and states that an earlier history knew are as they were: what it has more comes after them."""
        if self.topic_lives.births_us != before.topic_lives.births_us:
            return False
        return all(
            len(self.states[incarnation][partition_epoch]) == len(states)
            for incarnation, by_epoch in before.states.items()
            for partition_epoch, states in by_epoch.items()
        )

    # ------------------------------------------------------------------ proofs

    @cached_property
    def isr_known(self) -> IsrKnown:
        """Where the ISR that a leader had is known."""
        return IsrKnown(self)

    @cached_property
    def lives(self) -> Lives:
        """Topic ids that brokers knew, those of fetches as they stream by."""
        roles = (fact for fact in self.facts[a.LEADERSHIP] if fact.name in ROLES)
        return Lives(roles, self.topic_lives.births_us, self.skew_max_us)

    def _answers(self, fact: Fact, before: Fact | None) -> None:
        """In the epoch that the fetch names its broker led after the line of the fetch before."""
        if before is not None and fact.broker_id is not None and fact.leader_epoch is not None:
            key = (self.incarnation(fact.time_us), fact.broker_id, fact.leader_epoch)
            self._answered_us[key] = max(before.time_us, self._answered_us.get(key, -1))

    def are_of_one_life(self, number: int, later: int, time_us: int) -> bool | None:
        """Whether two epochs are of one life of the topic; None if these lines leave it open.

        Shown by the topic's id; or by states with every partition epoch (zkVersion) from one to the other: a topic
        that is created anew begins them again at 0.
        """
        ids, later_ids = self.epoch(number, time_us).topic_ids, self.epoch(later, time_us).topic_ids
        if ids and later_ids:
            return ids == later_ids if len(ids | later_ids) == 1 or not ids & later_ids else None
        known = self.states.get(self.incarnation(time_us), {})
        first = [version for version, states in known.items() if any(state.leader_epoch == number for state in states)]
        last = [version for version, states in known.items() if any(state.leader_epoch == later for state in states)]
        if not first or not last or max(first) >= min(last):
            return None
        return True if all(len(known.get(v, ())) == 1 for v in range(max(first), min(last) + 1)) else None

    def epochs(self) -> Iterator[tuple[int, Epoch]]:
        """All epochs with their incarnations, ascending."""
        for key in sorted(self._epochs):
            yield key[0], self._epochs[key]

    def later(self, number: int, time_us: int) -> list[Epoch]:
        """Epochs after one, of the same incarnation, ascending."""
        incarnation = self.incarnation(time_us)
        return [self._epochs[key] for key in sorted(self._epochs) if key[0] == incarnation and key[1] > number]

    def lost_by(self, number: int, time_us: int, end: int) -> tuple[Epoch, tuple[int, Fact]] | None:
        """The first epoch after one that does not have all before an offset, and what shows where it begins."""
        bounds = ((epoch, epoch.bound) for epoch in self.later(number, time_us))
        return next(((epoch, bound) for epoch, bound in bounds if bound is not None and bound[0] < end), None)

    # ----------------------------------------------------------------- tenures

    @cached_property
    def own_lines(self) -> OwnLines:
        """Brokers' own lines about their roles."""
        return OwnLines(self.facts[a.LEADERSHIP])

    def tenure(self, broker_id: int, time_us: int) -> Tenure | None:
        """In which epoch a broker led at an instant of its clock, as far as its lines tell; None if it did not.

        It is certain if its lines leave no room for another, or if it answered a later fetch in that very epoch: a
        broker's epochs only grow (``Partition.makeLeader``, ``makeFollower``).
        """
        known, after = self.own_lines.around(broker_id, time_us)
        if not known or self._beside_birth(broker_id, time_us):
            return None
        before = known[-1]
        if not leads(before) or before.leader_epoch is None:
            return None
        answered_us = self._answered_us.get((self.incarnation(time_us), broker_id, before.leader_epoch), -1)
        epoch = before.leader_epoch
        latest = epoch if time_us < answered_us else self._latest(epoch, before, after, broker_id)
        return Tenure(epoch, latest, before, before.time_us < time_us - self.blur_us(broker_id, time_us))

    def _beside_birth(self, broker_id: int, time_us: int) -> bool:
        """Whether an instant of a broker whose times are seconds may lie on either side of a new creation."""
        births_us = self.topic_lives.births_us
        if not births_us:
            return False
        blur_us = self.blur_us(broker_id, time_us)
        return bool(blur_us) and any(abs(born_us - time_us) <= blur_us for born_us in births_us)

    def _latest(self, epoch: int, before: Fact, after: list[Fact], broker_id: int) -> int | None:
        """The last epoch that the broker can have led in before its next line: its epochs only grow, and it did not
        lead in those that are known to be others' ones."""
        following = next((fact for fact in after if fact.leader_epoch is not None), before)
        same_life = self.incarnation(before.time_us) == self.incarnation(following.time_us)
        if following is before or following.leader_epoch is None or not same_life:
            return None
        last = following.leader_epoch
        if last < epoch:
            return None  # A request that came late: it tells nothing of what the broker was by then.
        if following.name == "follower_start" or (following.name == "leader_start" and self.starts_once(following)):
            last -= 1
        while last > epoch and self.epoch(last, before.time_us).is_anothers(broker_id):
            last -= 1
        return max(epoch, last)

    def starts_once(self, line: Fact) -> bool:
        """Whether a leader's line of an epoch's start is surely its first of it; KRaft before 3.3 may print it again.

        Source: ``Partition.makeLeader``, which `Rules.partition_epoch_gates_state` is about.
        """
        version = self.version(line.broker_id, line.time_us) if line.broker_id is not None else None
        return rule_of(version, lambda rules: rules.epochs_start_once) is True

    # ------------------------------------------------------------------ states

    @cached_property
    def states(self) -> dict[int, dict[int, list[CommittedState]]]:
        """States by incarnation and partition epoch; several where lines disagree."""
        states: dict[int, dict[int, list[CommittedState]]] = defaultdict(lambda: defaultdict(list))
        for fact in (*_with_state(self.facts), *self._commits()):
            assert fact.partition_epoch is not None
            assert fact.leader_epoch is not None
            assert fact.isr is not None
            state = CommittedState(fact.partition_epoch, fact.leader_epoch, fact.leader, frozenset(fact.isr), fact)
            known = states[self.incarnation(fact.time_us)][fact.partition_epoch]
            same = next((at for at, other in enumerate(known) if other[:4] == state[:4]), None)
            if same is None:
                known.append(state)
            elif known[same].fact.replicas is None and fact.replicas is not None:
                known[same] = state
        return states

    def _commits(self) -> Iterator[Fact]:
        """Commits of the ISR by a leader, in the epoch that it led in by its lines."""
        for fact in self.facts[a.ISR_CHANGE]:
            if fact.name != "committed" or None in (fact.partition_epoch, fact.isr, fact.broker_id):
                continue
            number = self.own_lines.epoch_of_commit(fact)
            if number is not None:
                yield fact._replace(leader=fact.broker_id, leader_epoch=number)

    def steps(self) -> Iterator[tuple[CommittedState, CommittedState]]:
        """Pairs of states that follow each other directly: nothing can be missing between them."""
        for by_epoch in self.states.values():
            for partition_epoch in sorted(by_epoch):
                before, after = by_epoch.get(partition_epoch - 1, []), by_epoch[partition_epoch]
                if len(before) == 1 and len(after) == 1:
                    yield before[0], after[0]

    def steps_to(self, number: int) -> list[tuple[CommittedState, CommittedState]]:
        """Those of `steps` to a state of a leader epoch."""
        return self._steps_to.get(number, [])

    @cached_property
    def _steps_to(self) -> dict[int, list[tuple[CommittedState, CommittedState]]]:
        to: dict[int, list[tuple[CommittedState, CommittedState]]] = defaultdict(list)
        for before, after in self.steps():
            to[after.leader_epoch].append((before, after))
        return to


def _with_state(facts: dict[str, list[Fact]]) -> Iterable[Fact]:
    """Lines that give a whole state: leader, leader epoch, ISR and partition epoch."""
    for fact in (*facts[a.METADATA], *facts[a.LEADERSHIP], *facts[a.PARTITION_STATE]):
        if None not in (fact.partition_epoch, fact.leader_epoch, fact.isr, fact.leader):
            yield fact
