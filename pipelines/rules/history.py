"""A partition's history from its lines: its leader epochs, its ISRs, and the role of each broker over time.

Epochs order what brokers did; their clocks do not. A broker's own lines are in the order of its own clock. They show
between which of them it led in which epoch. If lines may be missing in between, `Tenure.certain` is False.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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

#: Kinds of facts from log lines. Other kinds come from a broker's files, or are computed.
_LINES: Final = frozenset({a.LEADERSHIP, a.ISR_CHANGE, a.PARTITION_STATE, a.ELECTION, a.TRUNCATION, a.LOADED, a.TIER})
#: Index of a fact's first field of its location. The fields before are its content.
PLACE: Final = Fact._fields.index("file_id")


class Tenure(NamedTuple):
    """The leader epoch of a broker at some time."""

    epoch: int  #: leader epoch
    #: the last epoch in which it can have led then, by its lines before and after; None if unknown
    latest: int | None
    fact: Fact  #: the line that began it
    begun: bool  #: that line has an earlier time. Lines of one time have no known order

    @property
    def certain(self) -> bool:
        """Return True if the broker's lines before and after the time exclude another leader epoch."""
        return self.begun and self.latest == self.epoch


@dataclass
class FactHistory:
    """Facts of one partition that rules can query. Facts of rank `HISTORY_RANK` come first, in time order."""

    #: Kafka version by (broker, instant), None where unknown
    version: Callable[[int, int], str | None] = lambda broker_id, time_us: None
    skew_max_us: int = 1_000_000  #: clocks of two brokers are taken to differ by no more
    #: largest distance of two stamps of one time, microseconds, by (broker, time)
    blur_us: Callable[[int, int], int] = lambda broker_id, time_us: 0
    #: True if a broker surely runs on after a time, by (broker, time)
    is_running: Callable[[int, int], bool] = lambda broker_id, time_us: False
    client_free_files: Collection[str] = ()  #: ids of files in which no client can write
    facts: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list))  #: by kind
    #: Followers' fetches as they stream by, for all rules.
    chains: FetchChains = field(default_factory=FetchChains)
    stretches: Stretches = field(default_factory=Stretches)
    _epochs: dict[tuple[int, int], Epoch] = field(default_factory=dict)
    #: Until when a broker surely led in an epoch, by (incarnation, broker, epoch): it answered a fetch in it later.
    _answered_us: dict[tuple[int, int, int], int] = field(default_factory=dict)
    #: First file of each line of the latest time, by the line's content.
    _copies: dict[tuple[object, ...], str | None] = field(default_factory=dict)
    _copies_us: int | None = None

    def add(self, fact: Fact) -> None:
        """Add a fact. A line that several files contain is added once."""
        if fact.kind in _LINES:
            if fact.time_us != self._copies_us:
                self._copies_us, self._copies = fact.time_us, {}
            if self._copies.setdefault(fact[:PLACE], fact.file_id) != fact.file_id:
                return
        self.facts[fact.kind].append(fact)

    @property
    def brokers(self) -> set[int]:
        """Return the brokers that any line names as leader, replica or ISR member."""
        named: set[int] = set()
        for fact in (*self.facts[a.LEADERSHIP], *self.facts[a.METADATA], *self.facts[a.ISR_CHANGE]):
            named |= {fact.leader} if fact.leader is not None else set()
            named |= set(fact.isr or ()) | set(fact.replicas or ())
        return {broker_id for broker_id in named if broker_id >= 0}

    @cached_property
    def strangers(self) -> tuple[frozenset[int], ...]:
        """Return groups of brokers that no line of leaders and ISRs connects, if there are several groups."""
        groups: list[set[int]] = []
        for fact in (*self.facts[a.LEADERSHIP], *self.facts[a.METADATA], *self.facts[a.ISR_CHANGE]):
            named = {fact.broker_id, fact.leader, *(fact.isr or ()), *(fact.replicas or ())}
            known = {broker_id for broker_id in named if broker_id is not None and broker_id >= 0}
            joined = [group for group in groups if group & known]
            groups = [group for group in groups if not group & known] + [known.union(*joined)]
        return tuple(sorted((frozenset(group) for group in groups if len(group) > 1), key=min))

    @property
    def chain(self) -> FetchChain:
        """Return the fetches of the connection of the last fetch."""
        return self.chains.last

    # ------------------------------------------------------------ incarnations

    @cached_property
    def topic_lives(self) -> TopicLives:
        """Return the incarnations of the topic: it may have been deleted and re-created. Epochs restart in each one."""
        roles = ((fact.name, fact) for fact in self.facts[a.LEADERSHIP])
        created_us = (fact.time_us for fact in self.facts[a.PARTITION_STATE] if fact.detail == NON_EXISTENT)
        return topic_lives(roles, self.facts[a.METADATA], created_us)

    @property
    def has_fetches(self) -> bool:
        """Return True if a leader's answer to a follower showed a high watermark."""
        return bool(self._answered_us) or any(
            epoch.high_watermark is not None and epoch.high_watermark[1].kind == a.FETCH for _, epoch in self.epochs()
        )

    def incarnation(self, time_us: int) -> int:
        """Return the index of the topic's incarnation at a time: how often it had been re-created."""
        return self.topic_lives.at(time_us)

    # ------------------------------------------------------------------ epochs

    def epoch(self, number: int, time_us: int) -> Epoch:
        """Return the leader epoch with that number, in the topic's incarnation at that time."""
        key = (self.incarnation(time_us), number)
        if key not in self._epochs:
            self._epochs[key] = Epoch(number)
        return self._epochs[key]

    def close(self) -> None:
        """Derive leader epochs from the complete history. Call it after the last `add`."""
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
            # The first entry moves up with the log start. No entry is below its epoch's first record.
            if fact.leader_epoch is not None and fact.offset is not None and self._is_last_life(fact):
                self.epoch(fact.leader_epoch, fact.time_us).wrote(fact.offset, fact)

    def _is_last_life(self, fact: Fact) -> bool:
        """Return True if a file's entry is of the topic's last incarnation, not of a deleted topic of the same name."""
        newest_id = self.topic_lives.newest_id
        if None not in (newest_id, fact.topic_id):
            return fact.topic_id == newest_id
        return fact.broker_id not in self._strange_files

    @cached_property
    def _strange_files(self) -> frozenset[int | None]:
        starts = {number: epoch.start for (_, number), epoch in sorted(self._epochs.items())}
        return contradicting(self.facts[a.EPOCH_ENTRY], lambda number: (starts.get(number) or (None,))[0])

    def stream(self, fact: Fact) -> None:
        """Add a fetch, append or answer. Only what it shows about an epoch's writes and commits is kept."""
        if fact.broker_id is not None and self._is_near_birth(fact.broker_id, fact.time_us):
            return
        if fact.kind == a.APPEND and fact.broker_id is not None and fact.offset is not None:
            # In the epoch that its broker's lines show, or in a later one of its own without a line: never earlier.
            # Only of brokers that know no retries: the line is written for a duplicate, too.
            number = self.own_lines.lowest_epoch(fact.broker_id, fact.time_us)
            if number is not None:
                self.epoch(number, fact.time_us).wrote(fact.offset, fact)
        elif fact.kind == a.BATCH:
            named = fact.leader_epoch is not None and fact.leader_epoch >= 0
            if named and fact.offset is not None and self._is_last_life(fact):
                self.epoch(fact.leader_epoch or 0, a.NO_TIME_US).wrote(fact.offset, fact)
        elif fact.kind == a.FETCH:
            # A fetch that names its epoch and is answered without error was answered in that epoch.
            if fact.leader_epoch is not None and fact.high_watermark is not None and not fact.error_code:
                self.epoch(fact.leader_epoch, fact.time_us).committed(fact.high_watermark, fact)
            if self.chains.follow(fact):
                self.stretches.add(self.chain)
                if self.chain.answered:
                    self.lives.fetched(fact, self.chain.before)
                    self._note_answer(fact, self.chain.before)
        elif fact.kind == a.HIGH_WATERMARK and fact.name == "updated" and fact.high_watermark is not None:
            tenure = self.tenure(fact.broker_id, fact.time_us) if fact.broker_id is not None else None
            if tenure is not None and tenure.certain:
                self.epoch(tenure.epoch, fact.time_us).committed(fact.high_watermark, fact)

    # ---------------------------------------------------------- from run to run

    def kept(self) -> dict[str, Any]:
        """Return the state to resume from: high watermarks by epoch, fetch chains, topic ids."""
        return {
            "epochs": [(key, epoch.high_watermark) for key, epoch in self._epochs.items()],
            "answered_us": self._answered_us,
            "chains": self.chains,
            "lives": self.lives.known,
        }

    def go_on(self, kept: Mapping[str, Any]) -> None:
        """Restore the `kept` state of an earlier run. Call it when all facts were added."""
        for key, highest in kept["epochs"]:
            epoch = self._epochs.setdefault(key, Epoch(key[1]))
            if highest is not None:
                epoch.committed(*highest)
        self._answered_us, self.chains = kept["answered_us"], kept["chains"]
        self.lives.knew(kept["lives"])

    def extends(self, before: FactHistory) -> bool:
        """Return True if incarnations and states of an earlier history are unchanged, so new ones come after."""
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
        """Return the lookup of the ISR that a leader certainly had at a time."""
        return IsrKnown(self)

    @cached_property
    def lives(self) -> Lives:
        """Return the topic ids that brokers used over time. Fetches are added when they are streamed."""
        roles = (fact for fact in self.facts[a.LEADERSHIP] if fact.name in ROLES)
        return Lives(roles, self.topic_lives.births_us, self.skew_max_us)

    def _note_answer(self, fact: Fact, before: Fact | None) -> None:
        """Record that the broker led in the epoch of the fetch `fact`, after the line of the fetch `before` it."""
        if before is not None and fact.broker_id is not None and fact.leader_epoch is not None:
            key = (self.incarnation(fact.time_us), fact.broker_id, fact.leader_epoch)
            self._answered_us[key] = max(before.time_us, self._answered_us.get(key, -1))

    def are_of_one_life(self, number: int, later: int, time_us: int) -> bool | None:
        """Return True if two leader epochs belong to one incarnation of the topic. None if the lines do not decide it.

        Equal topic ids prove it, and so do states with all partition epochs (zkVersion) between the two. A re-created
        topic restarts them at 0.
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
        """Yield (incarnation, epoch) of all leader epochs, ascending."""
        for key in sorted(self._epochs):
            yield key[0], self._epochs[key]

    def later(self, number: int, time_us: int) -> list[Epoch]:
        """Return the later epochs of the same incarnation, ascending."""
        incarnation = self.incarnation(time_us)
        return [self._epochs[key] for key in sorted(self._epochs) if key[0] == incarnation and key[1] > number]

    def lost_by(self, number: int, time_us: int, end: int) -> tuple[Epoch, tuple[int, Fact]] | None:
        """Return the first later epoch that starts below offset `end`, with (start offset, fact). Or None."""
        bounds = ((epoch, epoch.bound) for epoch in self.later(number, time_us))
        return next(((epoch, bound) for epoch, bound in bounds if bound is not None and bound[0] < end), None)

    # ----------------------------------------------------------------- tenures

    @cached_property
    def own_lines(self) -> OwnLines:
        """Return the brokers' own lines about their roles."""
        return OwnLines(self.facts[a.LEADERSHIP])

    def tenure(self, broker_id: int, time_us: int) -> Tenure | None:
        """Return the epoch in which a broker led at a time of its clock, by its own lines. None if it did not lead.

        It is certain if the lines exclude another epoch, or if the broker answered a later fetch in that epoch: a
        broker's epochs only grow (``Partition.makeLeader``, ``makeFollower``).
        """
        known, after = self.own_lines.around(broker_id, time_us)
        if not known or self._is_near_birth(broker_id, time_us):
            return None
        before = known[-1]
        if not leads(before) or before.leader_epoch is None:
            return None
        answered_us = self._answered_us.get((self.incarnation(time_us), broker_id, before.leader_epoch), -1)
        epoch = before.leader_epoch
        latest = epoch if time_us < answered_us else self._find_latest(epoch, before, after, broker_id)
        return Tenure(epoch, latest, before, before.time_us < time_us - self.blur_us(broker_id, time_us))

    def _is_near_birth(self, broker_id: int, time_us: int) -> bool:
        """Return True if a whole-second time is too close to a re-creation of the topic to be ordered."""
        births_us = self.topic_lives.births_us
        if not births_us:
            return False
        blur_us = self.blur_us(broker_id, time_us)
        return bool(blur_us) and any(abs(born_us - time_us) <= blur_us for born_us in births_us)

    def _find_latest(self, epoch: int, before: Fact, after: list[Fact], broker_id: int) -> int | None:
        """Return the last epoch in which the broker can have led before its next line. None if unknown.

        A broker's epochs only grow. Epochs led by other brokers are excluded.
        """
        following = next((fact for fact in after if fact.leader_epoch is not None), before)
        same_life = self.incarnation(before.time_us) == self.incarnation(following.time_us)
        if following is before or following.leader_epoch is None or not same_life:
            return None
        last = following.leader_epoch
        if last < epoch:
            return None  # A late request: it does not show what the broker was at that time.
        if following.name == "follower_start" or (following.name == "leader_start" and self.starts_once(following)):
            last -= 1
        while last > epoch and self.epoch(last, before.time_us).is_anothers(broker_id):
            last -= 1
        return max(epoch, last)

    def starts_once(self, line: Fact) -> bool:
        """Return True if an epoch's start line is certainly the leader's first. KRaft before 3.3 may log it again.

        Source: ``Partition.makeLeader``; see `Rules.partition_epoch_gates_state`.
        """
        version = self.version(line.broker_id, line.time_us) if line.broker_id is not None else None
        return rule_of(version, lambda rules: rules.epochs_start_once) is True

    # ------------------------------------------------------------------ states

    @cached_property
    def states(self) -> dict[int, dict[int, list[CommittedState]]]:
        """Return the committed states by incarnation and partition epoch. Several if lines disagree."""
        states: dict[int, dict[int, list[CommittedState]]] = defaultdict(lambda: defaultdict(list))
        for fact in (*_select_states(self.facts), *self._yield_commits()):
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

    def _yield_commits(self) -> Iterator[Fact]:
        """Yield ISR commits of leaders, with the epoch in which the broker led."""
        for fact in self.facts[a.ISR_CHANGE]:
            if fact.name != "committed" or None in (fact.partition_epoch, fact.isr, fact.broker_id):
                continue
            number = self.own_lines.epoch_of_commit(fact)
            if number is not None:
                yield fact._replace(leader=fact.broker_id, leader_epoch=number)

    def steps(self) -> Iterator[tuple[CommittedState, CommittedState]]:
        """Yield (before, after) pairs of states with consecutive partition epochs: no state is missing between them."""
        for by_epoch in self.states.values():
            for partition_epoch in sorted(by_epoch):
                before, after = by_epoch.get(partition_epoch - 1, []), by_epoch[partition_epoch]
                if len(before) == 1 and len(after) == 1:
                    yield before[0], after[0]

    def steps_to(self, number: int) -> list[tuple[CommittedState, CommittedState]]:
        """Return the (before, after) pairs whose later state is of leader epoch `number`."""
        return self._steps_to.get(number, [])

    @cached_property
    def _steps_to(self) -> dict[int, list[tuple[CommittedState, CommittedState]]]:
        to: dict[int, list[tuple[CommittedState, CommittedState]]] = defaultdict(list)
        for before, after in self.steps():
            to[after.leader_epoch].append((before, after))
        return to


def _select_states(facts: dict[str, list[Fact]]) -> Iterable[Fact]:
    """Yield lines with a whole state: leader, leader epoch, ISR and partition epoch."""
    for fact in (*facts[a.METADATA], *facts[a.LEADERSHIP], *facts[a.PARTITION_STATE]):
        if None not in (fact.partition_epoch, fact.leader_epoch, fact.isr, fact.leader):
            yield fact
