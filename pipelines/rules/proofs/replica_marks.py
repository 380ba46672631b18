"""What replicas' own lines show to have been committed, and which later leader epoch does not have it.

A replica's high watermark is never above what was committed: a leader's is the least log end of its ISR, a follower's
is what its leader told it, if its own log has that much (``Partition.maybeIncrementLeaderHW``,
``ReplicaFetcherThread.processPartitionData``). Where the ISR is its leader alone, all that is in that log is committed.

Such a mark above the start of a leader epoch is loss only if it is of an earlier one. Clocks of two brokers do not tell
that, and a replica that restarts may have followed the epoch before. What tells it is the broker's own line, if it
names the epoch before; a leader's tenure; or that the replica, once it had the mark, cut its log at or below that
start, as it followed an epoch from there on: records that were of that epoch's log it would have kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from pipelines.replay.versions import rules_for
from pipelines.rules.history import PartitionHistory
from pipelines.rules.leader_epoch import NO_LEADER, Epoch, State
from pipelines.rules.proofs.fetch_chain import written_before
from pipelines.rules.proofs.own_lines import OWN_ROLES
from pipelines.rules.rule import Settings
from schemas import audit_facts as a
from schemas.audit_facts import Fact

_LOG, _OUT_OF_RANGE = "log", "out_of_range"


class Mark(NamedTuple):
    """A line of a replica that shows how far records were committed.

    Attributes:
        end: offset up to which they were, exclusive.
        fact: the line.
        how: what it is, for a message.
        more: states that it takes to show that; the line is no high watermark then.
    """

    end: int
    fact: Fact
    how: str
    more: tuple[Fact, ...] = ()


class Passed(NamedTuple):
    """A mark above where a later leader epoch begins.

    Attributes:
        mark: the mark.
        number: the last leader epoch that the mark can be of, as far as the broker's lines tell; None if they do not.
        lost_by: the leader epoch that does not have what is before the mark.
        bound: at or before which offset it begins, and the line.
        lines: lines that show that the mark is of an earlier epoch.
        proven: they do show it.
        one_life: the mark's line names the id of the topic that the later epoch is of.
    """

    mark: Mark
    number: int | None
    lost_by: Epoch
    bound: tuple[int, Fact]
    lines: tuple[Fact, ...]
    proven: bool
    one_life: bool = False


def passed(history: PartitionHistory, settings: Settings) -> Iterator[Passed]:
    """Marks above where a later epoch begins."""
    yield from _of_leaders(history)
    yield from _of_followers(history)
    brokers = {fact.broker_id for fact in history.facts[a.LEADERSHIP] if fact.name in OWN_ROLES}
    for broker_id in sorted(broker for broker in brokers if broker is not None):
        yield from _Replica(history, settings, broker_id).passed()


def _of_leaders(history: PartitionHistory) -> Iterator[Passed]:
    """High watermarks that leaders print as they shrink the ISR."""
    for fact in history.facts[a.ISR_CHANGE]:
        if fact.high_watermark is None or fact.broker_id is None:
            continue
        tenure = history.tenure(fact.broker_id, fact.time_us)
        if tenure is None:
            continue
        mark = Mark(fact.high_watermark, fact, f"leader {fact.broker_id}'s high watermark was {fact.high_watermark}")
        for number, proven in ((tenure.latest, True), (tenure.epoch, False)):
            lost_by = None if number is None else history.lost_by(number, fact.time_us, mark.end)
            if lost_by is not None:
                yield Passed(mark, number, *lost_by, (tenure.fact,), proven)
                break
            if tenure.certain:
                break


def _of_followers(history: PartitionHistory) -> Iterator[Passed]:
    """High watermarks of replicas that begin to follow, where the line names the epoch before."""
    for fact in history.facts[a.LEADERSHIP]:
        before, epoch = fact.previous, fact.leader_epoch
        named = before is not None and epoch is not None and 0 <= before < epoch
        if fact.name == "follower_start" and named and fact.high_watermark is not None and before is not None:
            lost_by = history.lost_by(before, fact.time_us, fact.high_watermark)
            if lost_by is not None and epoch is not None and lost_by[0].number <= epoch:
                yield Passed(_high_watermark(fact), before, *lost_by, (), True)


def _high_watermark(fact: Fact) -> Mark:
    assert fact.high_watermark is not None
    return Mark(fact.high_watermark, fact, f"broker {fact.broker_id} had a high watermark of {fact.high_watermark}")


class _Replica:
    """One broker's replica: its marks, its roles and where it cut its log, in the order of its own lines."""

    def __init__(self, history: PartitionHistory, settings: Settings, broker_id: int) -> None:
        self._history = history
        self._settings = settings
        self._broker_id = broker_id
        self._roles = self._own(fact for fact in history.facts[a.LEADERSHIP] if fact.name in OWN_ROLES)
        self._roles_us = [fact.time_us for fact in self._roles]
        self._cuts = self._own(
            fact
            for fact in history.facts[a.TRUNCATION]
            if fact.offset is not None and (fact.name == _LOG or _is_behind(fact))
        )
        starts = (fact for fact in self._roles if fact.name == "follower_start")
        self._shown = self._own(chain(history.facts[a.LOADED], starts))

    def _own(self, facts: Iterable[Fact]) -> list[Fact]:
        own = (fact for fact in facts if fact.broker_id == self._broker_id)
        return sorted(own, key=lambda fact: (fact.time_us, fact.leader_epoch or 0, fact.byte_offset or -1))

    def passed(self) -> Iterator[Passed]:
        """Of each mark the first later epoch that begins before it."""
        last: Fact | None = None
        for cut in self._cuts:
            shown = [fact for fact in self._shown if written_before(fact, cut)]
            shown = [fact for fact in shown if last is None or not written_before(fact, last)]
            role, certain = self._role_before(cut)
            if role is not None and role.leader_epoch is not None:
                yield from self._cut(cut, role, certain, shown)
            last = cut
        yield from self._not_cut()

    def _cut(self, cut: Fact, role: Fact, certain: bool, shown: Sequence[Fact]) -> Iterator[Passed]:
        """Marks that the replica had before it cut its log below them, following an epoch."""
        assert cut.offset is not None
        marks = list(self._marks(shown, role))
        marks += self._cut_to_high_watermark(cut, role)
        for mark in marks:
            number = self._number_before(mark.fact, role)
            lost_by = self._lost_by(mark, number, role, cut)
            if lost_by is not None:
                yield Passed(mark, number, *lost_by, (role, cut), certain, _is_named(mark, lost_by[0]))

    def _not_cut(self) -> Iterator[Passed]:
        """Marks of an epoch that the broker led or followed before, as it follows one that begins below them."""
        for at, role in enumerate(self._roles):
            if not _follows(role, self._broker_id):
                continue
            life = self._history.incarnation(role.time_us)
            earlier = [line for line in self._roles[:at] if written_before(line, role)]
            earlier = [line for line in earlier if self._history.incarnation(line.time_us) == life]
            number = max((line.leader_epoch for line in earlier if line.leader_epoch is not None), default=None)
            since = max((line.time_us for line in earlier), default=-1)
            shown = [fact for fact in self._shown if fact is role or since < fact.time_us < role.time_us]
            if number is None or role.leader_epoch is None or number >= role.leader_epoch:
                continue
            for mark in self._marks(shown, role):
                lost_by = self._lost_by(mark, number, role, None)
                if lost_by is not None:
                    yield Passed(mark, number, *lost_by, (role,), False)

    # ------------------------------------------------------------------- marks

    def _marks(self, shown: Iterable[Fact], role: Fact) -> Iterator[Mark]:
        for fact in shown:
            if fact.high_watermark is not None:
                yield _high_watermark(fact)
            if fact.offset is not None and role.leader_epoch is not None:
                alone = self._alone(role)
                # Its log ended there after it had led: a line of its own tells that.
                if alone and (self._number_before(fact, role) or 0) >= (alone[0].leader_epoch or 0):
                    how = f"broker {self._broker_id}, whose log ended at {fact.offset}, had been alone in the ISR"
                    yield Mark(fact.offset, fact, how, alone)

    def _alone(self, role: Fact) -> tuple[Fact, ...]:
        """States by which the broker was alone in the ISR from some partition epoch on until another one led, in the
        epoch that it follows now; none where they do not show it."""
        known = self._history.states.get(self._history.incarnation(role.time_us), {})
        first = [
            version for version, states in known.items() if any(s.leader_epoch == role.leader_epoch for s in states)
        ]
        if not first:
            return ()
        before: list[State] = []
        for version in range(min(first) - 1, -1, -1):
            states = known.get(version, ())
            if len(states) != 1 or states[0].isr != {self._broker_id}:
                return ()
            before.append(states[0])
            if states[0].leader == self._broker_id:
                break
            if states[0].leader != NO_LEADER:
                return ()
        led = before[-1] if before else None
        if led is None or led.leader != self._broker_id or not self._commits_alone(led.fact.time_us):
            return ()
        return (led.fact,)

    def _commits_alone(self, time_us: int) -> bool:
        """Whether the high watermark of a leader that is alone in the ISR is its log end (KAFKA-15583: since 3.7 not
        where ``min.insync.replicas`` asks for more)."""
        version = self._settings.version(self._broker_id, time_us)
        if version is None:
            return False
        waits = rules_for(version).high_watermark_needs_min_isr
        return not waits or self._settings.min_insync_replicas(self._broker_id, time_us) == 1

    def _cut_to_high_watermark(self, cut: Fact, role: Fact) -> Iterator[Mark]:
        """Up to 0.10 a follower first cuts to its high watermark: below that its leader ends, if it is out of range."""
        if not _is_behind(cut):
            return
        for earlier in self._cuts:
            version = self._settings.version(self._broker_id, earlier.time_us)
            if version is None or not rules_for(version).truncates_to_high_watermark:
                continue
            if earlier.name == _LOG and written_before(role, earlier) and written_before(earlier, cut):
                yield _high_watermark(earlier._replace(high_watermark=earlier.offset))

    # ------------------------------------------------------------------- order

    def _role_before(self, line: Fact) -> tuple[Fact | None, bool]:
        """The broker's last role before a line, and whether none of its lines may lie between."""
        at = bisect_left(self._roles_us, line.time_us)
        role = self._roles[at - 1] if at else None
        certain = True
        for other in self._roles[at:]:
            if other.time_us > line.time_us:
                break
            if written_before(other, line):
                role = other
            elif not written_before(line, other):
                certain = False
        follows = role is not None and _follows(role, self._broker_id)
        return (role, certain) if follows else (None, False)

    def _number_before(self, mark: Fact, role: Fact) -> int | None:
        """The last epoch that the broker is known to have been in before it had a mark; None without a line of it."""
        life = self._history.incarnation(role.time_us)
        numbers = [
            line.leader_epoch
            for line in self._roles
            if line.leader_epoch is not None
            and written_before(line, mark)
            and self._history.incarnation(line.time_us) == life
            and (line.leader_epoch != role.leader_epoch or self._is_of_an_earlier_start(line, mark))
        ]
        return max(numbers, default=None)

    def _is_of_an_earlier_start(self, line: Fact, mark: Fact) -> bool:
        """A broker had an epoch before it had a mark: what it is told comes before it loads a replica's high watermark,
        but after it loaded its logs."""
        loads = (fact for fact in self._history.facts[a.LOADED] if fact.broker_id == self._broker_id)
        started = any(fact.offset and written_before(line, fact) and written_before(fact, mark) for fact in loads)
        return started or line.name != "request"

    def _lost_by(
        self, mark: Mark, number: int | None, role: Fact, cut: Fact | None
    ) -> tuple[Epoch, tuple[int, Fact]] | None:
        """The first epoch after one, up to that of a role, that begins before a mark, and not before where it was cut;
        the last one where it is not known which epoch the mark is of."""
        assert role.leader_epoch is not None
        epochs = self._history.later(-1 if number is None else number, role.time_us)
        begun = []
        for epoch in epochs:
            bounds = [epoch.bound] if epoch.bound is not None else []
            if cut is not None and _is_behind(cut) and epoch.number == role.leader_epoch and cut.offset is not None:
                bounds.append((cut.offset, cut))
            if not bounds or epoch.number > role.leader_epoch:
                continue
            bound = min(bounds, key=lambda each: each[0])
            if bound[0] < mark.end and (cut is None or (cut.offset or 0) <= bound[0] or _is_behind(cut)):
                begun.append((epoch, bound))
        if not begun:
            return None
        return begun[-1] if number is None else begun[0]


def _is_named(mark: Mark, lost_by: Epoch) -> bool:
    """The mark's line names the topic's id: with the log of another one no broker begins to follow (KIP-516)."""
    return mark.fact.topic_id is not None and lost_by.topic_ids == {mark.fact.topic_id}


def _is_behind(fact: Fact) -> bool:
    """A follower finds that its leader's log ends before its own."""
    ends = fact.name == _OUT_OF_RANGE and fact.offset is not None and fact.end_offset is not None
    return ends and (fact.offset or 0) < (fact.end_offset or 0)


def _follows(role: Fact, broker_id: int) -> bool:
    is_told = role.name == "request" and role.leader is not None and role.leader not in (broker_id, NO_LEADER)
    return is_told or role.name == "follower_start"
