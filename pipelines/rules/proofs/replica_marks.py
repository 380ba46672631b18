"""Commits that replicas' own lines show, and the later leader epoch that lacks them.

A replica's high watermark is never above what was committed. A leader's is the least log end of its ISR. A follower's
is what its leader answered, limited by its own log (``Partition.maybeIncrementLeaderHW``,
``ReplicaFetcherThread.processPartitionData``). If the leader is alone in the ISR, everything in its log is committed. A
follower that catches up holds the high watermark back before it joins the ISR (KAFKA-4485). So the log end of such a
leader counts only if no other replica had caught up: none had records of that epoch, or a high watermark passed them.

Such a mark above the start of a leader epoch proves a loss only if the mark is of an earlier epoch. Clocks of two
brokers do not show that, and a restarted replica may have followed the epoch before. Three things show it. The broker's
own line names the epoch before. Or a leader's tenure does. Or the replica had the mark and then truncated its log at or
below that start, as it followed an epoch from there on: it would have kept records of that epoch's log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, islice
from typing import NamedTuple

from highwater.pipelines.kafka.controller_rows import NO_LEADER
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.leader_epoch import CommittedState, Epoch
from highwater.pipelines.rules.proofs.fetch_chain import written_before
from highwater.pipelines.rules.proofs.loss_cause import CORRUPTION
from highwater.pipelines.rules.proofs.own_lines import OWN_ROLES
from highwater.pipelines.rules.rule import Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

_LOG, _OUT_OF_RANGE = "log", "out_of_range"


class CommitMark(NamedTuple):
    """A line that shows how far a replica's records were committed."""

    end: int  #: offset up to which they were, exclusive
    fact: Fact  #: the line
    how: str  #: description for a message
    more: tuple[Fact, ...] = ()  #: states and starts of epochs that it takes to show that
    is_sure: bool = True  #: all before the end was committed
    extends: bool = True  #: all before the end was committed if a high watermark passed where the next leader starts


class Passed(NamedTuple):
    """A commit shown by a replica's line that reaches above the start of a later leader epoch."""

    mark: CommitMark  #: the mark
    #: the last leader epoch that the mark can be of, by the broker's lines; None if unknown
    number: int | None
    lost_by: Epoch  #: the leader epoch that lacks offsets before the mark
    bound: tuple[int, Fact]  #: at or before which offset it begins, and the line
    lines: tuple[Fact, ...]  #: lines that show that the mark is of an earlier epoch
    proven: bool  #: they do show it
    one_life: bool = False  #: the mark's line names the id of the topic that the later epoch is of


class _Alone(NamedTuple):
    """A broker led as only ISR member, and another one led next."""

    state: CommittedState  #: the last state in which it led
    next_epoch: int  #: leader epoch of the next leader


def passed(history: FactHistory, settings: Settings, starts: Starts) -> Iterator[Passed]:
    """Yield commits that replicas' lines show above the start of a later epoch."""
    yield from _find_leader_marks(history, starts)
    yield from _find_follower_marks(history, starts)
    brokers = {fact.broker_id for fact in history.facts[a.LEADERSHIP] if fact.name in OWN_ROLES}
    for broker_id in sorted(broker for broker in brokers if broker is not None):
        yield from _Replica(history, settings, broker_id, starts).passed()


class Starts:
    """The lowest start offsets of leader epochs, by incarnation of the topic."""

    def __init__(self, history: FactHistory) -> None:
        self._history = history
        self._numbers: dict[int, list[int]] = defaultdict(list)
        self._lowest: dict[int, list[int]] = defaultdict(list)
        for life, epoch in history.epochs():
            if epoch.bound is not None:
                self._numbers[life].append(epoch.number)
                self._lowest[life].append(epoch.bound[0])
        for life, offsets in self._lowest.items():
            self._lowest[life] = list(accumulate(offsets[::-1], min))[::-1]

    def any_below(self, number: int | None, time_us: int, end: int) -> bool:
        """Return True if an epoch after `number` starts below `end`, in the topic's incarnation at a time.

        Args:
            number: leader epoch. None considers all epochs.
        """
        life = self._history.incarnation(time_us)
        at = bisect_right(self._numbers[life], -1 if number is None else number)
        return at < len(self._lowest[life]) and self._lowest[life][at] < end


def _find_leader_marks(history: FactHistory, starts: Starts) -> Iterator[Passed]:
    """Yield the high watermarks in leaders' ISR shrink lines that are above a later epoch's start."""
    for fact in history.facts[a.ISR_CHANGE]:
        if fact.high_watermark is None or fact.broker_id is None:
            continue
        tenure = history.tenure(fact.broker_id, fact.time_us)
        if tenure is None:
            continue
        mark = CommitMark(
            fact.high_watermark, fact, f"leader {fact.broker_id}'s high watermark was {fact.high_watermark}"
        )
        for number, proven in ((tenure.latest, True), (tenure.epoch, False)):
            is_lost = number is not None and starts.any_below(number, fact.time_us, mark.end)
            lost_by = history.lost_by(number, fact.time_us, mark.end) if is_lost and number is not None else None
            if lost_by is not None:
                yield Passed(mark, number, *lost_by, (tenure.fact,), proven)
                break
            if tenure.certain:
                break


def _find_follower_marks(history: FactHistory, starts: Starts) -> Iterator[Passed]:
    """Yield high watermarks of replicas that begin to follow, if the line names the previous epoch."""
    for fact in history.facts[a.LEADERSHIP]:
        before, epoch, end = fact.previous, fact.leader_epoch, fact.high_watermark
        if fact.name != "follower_start" or before is None or epoch is None or end is None:
            continue
        if 0 <= before < epoch and starts.any_below(before, fact.time_us, end):
            lost_by = history.lost_by(before, fact.time_us, end)
            if lost_by is not None and lost_by[0].number <= epoch:
                yield Passed(_make_mark(fact), before, *lost_by, (), True)


def _make_mark(fact: Fact) -> CommitMark:
    assert fact.high_watermark is not None
    return CommitMark(
        fact.high_watermark, fact, f"broker {fact.broker_id} had a high watermark of {fact.high_watermark}"
    )


class _Replica:
    """One broker's replica: the commits, roles and truncations that its own lines show, in order."""

    def __init__(self, history: FactHistory, settings: Settings, broker_id: int, starts: Starts) -> None:
        self._history = history
        self._settings = settings
        self._broker_id = broker_id
        self._starts = starts
        self._roles = self._select_own(fact for fact in history.facts[a.LEADERSHIP] if fact.name in OWN_ROLES)
        self._roles_us = [fact.time_us for fact in self._roles]
        self._cuts = self._select_own(
            fact
            for fact in history.facts[a.TRUNCATION]
            if fact.offset is not None and (_is_cut(fact) or _is_behind(fact))
        )
        follows = (fact for fact in self._roles if fact.name == "follower_start")
        self._shown = self._select_own(chain(history.facts[a.LOADED], follows))
        self._shown_us = [fact.time_us for fact in self._shown]
        self._loads = [fact for fact in self._shown if fact.kind == a.LOADED and fact.offset]

    def _select_own(self, facts: Iterable[Fact]) -> list[Fact]:
        lines = (fact for fact in facts if fact.broker_id == self._broker_id)
        return sorted(lines, key=lambda fact: (fact.time_us, fact.leader_epoch or 0, fact.byte_offset or -1))

    def passed(self) -> Iterator[Passed]:
        """Yield for each shown commit the first later epoch that starts below it."""
        last: Fact | None = None
        for cut in self._cuts:
            shown = [fact for fact in self._select_shown(last, cut) if written_before(fact, cut)]
            shown = [fact for fact in shown if last is None or not written_before(fact, last)]
            role, certain = self._find_role(cut)
            if role is not None and role.leader_epoch is not None:
                yield from self._cut(cut, role, certain, shown)
            last = cut
        yield from self._find_uncut()

    def _cut(self, cut: Fact, role: Fact, certain: bool, shown: Sequence[Fact]) -> Iterator[Passed]:
        """Yield commits that the replica knew before it truncated its log below them, to follow a leader.

        Args:
            cut: the truncation.
            role: the line by which it followed, `certain` if no other role may be between.
            shown: lines before the truncation with a high watermark or log end.
        """
        assert cut.offset is not None
        marks = list(self._find_marks(shown, role, cut.offset))
        marks += self._cut_to_high_watermark(cut, role)
        for mark in marks:
            if not _is_behind(cut) and not self._starts.any_below(None, role.time_us, mark.end):
                continue
            number = self._find_number(mark.fact, role)
            lost_by = self._find_loss(mark, number, role, cut)
            if lost_by is not None:
                yield Passed(mark, number, *lost_by, (role, cut), certain, _is_named(mark, lost_by[0]))

    def _find_uncut(self) -> Iterator[Passed]:
        """Yield commits of an epoch above the start of a later epoch that the broker followed."""
        before: Fact | None = None
        number, life = -1, -1
        for role in self._roles:
            if self._history.incarnation(role.time_us) != life:
                before, number, life = None, -1, self._history.incarnation(role.time_us)
            epoch = role.leader_epoch
            ordered = before is not None and written_before(before, role)
            if ordered and epoch is not None and number < epoch and _is_following(role, self._broker_id):
                shown = [
                    fact
                    for fact in self._select_shown(before, role)
                    if fact is role or (before is not None and before.time_us < fact.time_us < role.time_us)
                ]
                for mark in self._find_marks(shown, role, -1):
                    is_lost = self._starts.any_below(number, role.time_us, mark.end)
                    lost_by = self._find_loss(mark, number, role, None) if is_lost else None
                    if lost_by is not None:
                        # The line itself shows that the broker came from an earlier epoch, without a restart.
                        previous = role.previous if mark.fact is role else None
                        proven = previous is not None and 0 <= previous < lost_by[0].number
                        yield Passed(mark, number, *lost_by, (role,), proven)
            before, number = role, max(number, -1 if epoch is None else epoch)

    def _select_shown(self, first: Fact | None, last: Fact) -> list[Fact]:
        """Return the high watermarks and log ends shown between two lines, both inclusive."""
        low = 0 if first is None else bisect_left(self._shown_us, first.time_us)
        return self._shown[low : bisect_right(self._shown_us, last.time_us)]

    # ------------------------------------------------------------------- marks

    def _find_marks(self, shown: Iterable[Fact], role: Fact, above: int) -> Iterator[CommitMark]:
        """Yield the commits above an offset that the lines show."""
        for fact in shown:
            if fact.high_watermark is not None and fact.high_watermark > above:
                yield _make_mark(fact)
            if fact.offset is None or fact.offset <= above:
                continue
            alone = self._find_alone(role)
            # A line of its own shows that its log ended there after it had led.
            if alone is not None and (self._find_number(fact, role) or 0) >= alone.state.leader_epoch:
                how = f"broker {self._broker_id}, whose log ended at {fact.offset}, had been alone in the ISR"
                starts = self._find_starts(alone, role)
                extends = not self._has_proposed_others(alone, fact) and self._is_rest_behind(alone, starts)
                is_sure = extends and self._is_next_behind(alone, role, starts)
                lines = [line for line in starts if line is not None] if is_sure else []
                yield CommitMark(fact.offset, fact, how, (alone.state.fact, *lines), is_sure, extends)

    def _find_alone(self, role: Fact) -> _Alone | None:
        """Return the state in which the broker led as only ISR member, if none after it is known or missing. Else None.

        From then until the epoch that the broker follows now, one other broker led, or none.
        """
        life = self._history.incarnation(role.time_us)
        known = self._history.states.get(life, {})
        first = self._first_version.get((life, role.leader_epoch))
        if first is None or role.leader_epoch is None:
            return None
        next_leader, next_epoch = known[first][0].leader, role.leader_epoch
        for version in range(first - 1, -1, -1):
            states = known.get(version, ())
            if len(states) > 1 or (not states and (life, version) not in self._leaderless):
                return None
            if not states or states[0].leader == NO_LEADER:
                continue
            state = states[0]
            if state.leader == self._broker_id:
                is_alone = state.isr == {self._broker_id} and self._can_commit_alone(state.fact.time_us)
                return _Alone(state, next_epoch) if is_alone else None
            if state.leader != next_leader:
                return None
            next_epoch = state.leader_epoch
        return None

    @cached_property
    def _leaderless(self) -> set[tuple[int, int]]:
        """Return the (incarnation, partition epoch) without a leader. Brokers' lines may name them without an ISR."""
        return {
            (self._history.incarnation(line.time_us), line.partition_epoch)
            for line in self._history.facts[a.LEADERSHIP]
            if line.leader == NO_LEADER and line.partition_epoch is not None
        }

    def _find_starts(self, alone: _Alone, role: Fact) -> tuple[Fact | None, Fact | None]:
        """Return (the broker's start line as only ISR member, the next leader's start line). None if unknown."""
        known = (
            self._history.epoch(number, role.time_us).start for number in (alone.state.leader_epoch, alone.next_epoch)
        )
        led, after = (None if start is None else start[1] for start in known)
        return (led if led is not None and led.broker_id == self._broker_id else None), after

    def _is_next_behind(self, alone: _Alone, role: Fact, starts: tuple[Fact | None, Fact | None]) -> bool:
        """Return True if the next leader had no record of the lone leader's epoch, and its log only grew since."""
        led, after = starts
        current = self._history.epoch(role.leader_epoch or 0, role.time_us).start
        if led is None or after is None or current is None:
            return False
        # A follower would have kept records copied from the next leader, once the leader's log has grown.
        has_grown = alone.next_epoch == role.leader_epoch or current[0] > (after.offset or 0)
        return has_grown and _has_nothing(after, led)

    def _is_rest_behind(self, alone: _Alone, starts: tuple[Fact | None, Fact | None]) -> bool:
        """Return True if all other replicas are known to have no record of the lone leader's epoch."""
        led, after = starts
        replicas = self._find_replicas(alone.state)
        if replicas is None:
            return False
        others = replicas - {self._broker_id, None if after is None else after.broker_id}
        behind = {
            line.broker_id
            for line in self._history.facts[a.LEADERSHIP]
            if led is not None
            and line.name == "follower_start"
            and line.leader_epoch == alone.next_epoch
            and line.broker_id in others
            # It names the epoch before: the broker had not restarted, nor cut its log for the next leader yet.
            and 0 <= (-1 if line.previous is None else line.previous) < alone.next_epoch
            and _has_nothing(line, led)
        }
        return others <= behind

    def _find_replicas(self, state: CommittedState) -> frozenset[int] | None:
        """Return the assigned replicas, else the ISR with which the topic was created. None if unknown."""
        life = self._history.incarnation(state.fact.time_us)
        known = self._history.states[life]
        assigned = [each for states in known.values() for each in states if each.fact.replicas is not None]
        if assigned:
            return frozenset().union(*(each.fact.replicas or () for each in assigned))
        return frozenset().union(*(each.isr for each in known[0])) if known.get(0) else None

    def _has_proposed_others(self, alone: _Alone, mark: Fact) -> bool:
        """Return True if the broker, as only ISR member, proposed to add another replica."""
        return any(
            line.broker_id == self._broker_id
            and set(line.isr or ()) > {self._broker_id}
            and line.name != "shrink"
            and (line.partition_epoch or alone.state.partition_epoch) >= alone.state.partition_epoch
            and not written_before(line, alone.state.fact)
            and not written_before(mark, line)
            for line in self._history.facts[a.ISR_CHANGE]
        )

    @cached_property
    def _first_version(self) -> dict[tuple[int, int | None], int]:
        """Return the first partition epoch of each leader epoch, by (incarnation, leader epoch)."""
        first: dict[tuple[int, int | None], int] = {}
        for life, by_version in self._history.states.items():
            for version, states in by_version.items():
                for state in states:
                    key = life, state.leader_epoch
                    first[key] = min(version, first.get(key, version))
        return first

    def _can_commit_alone(self, time_us: int) -> bool:
        """Return True if the high watermark of an only ISR member is its log end."""
        version = self._settings.version(self._broker_id, time_us)
        if version is None:
            return False
        waits = rules_for(version).high_watermark_needs_min_isr
        return not waits or self._settings.min_insync_replicas(self._broker_id, time_us) == 1

    def _cut_to_high_watermark(self, cut: Fact, role: Fact) -> Iterator[CommitMark]:
        """Yield high watermarks a follower truncated to (up to 0.10), if the leader's log then ended lower."""
        if not _is_behind(cut):
            return
        for earlier in self._cuts:
            version = self._settings.version(self._broker_id, earlier.time_us)
            if version is None or not rules_for(version).truncates_to_high_watermark:
                continue
            if earlier.name == _LOG and written_before(role, earlier) and written_before(earlier, cut):
                yield _make_mark(earlier._replace(high_watermark=earlier.offset))

    # ------------------------------------------------------------------- order

    def _find_role(self, line: Fact) -> tuple[Fact | None, bool]:
        """Return (the broker's last role line before `line` if it followed, True if no other role may be between)."""
        at = bisect_left(self._roles_us, line.time_us)
        role = self._roles[at - 1] if at else None
        certain = True
        for other in islice(self._roles, at, bisect_right(self._roles_us, line.time_us)):
            if written_before(other, line):
                role = other
            elif not written_before(line, other):
                certain = False
        follows = role is not None and _is_following(role, self._broker_id)
        return (role, certain) if follows else (None, False)

    def _find_number(self, mark: Fact, role: Fact) -> int | None:
        """Return the highest epoch that the broker certainly had before `mark`. None without a line of one."""
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
        """Return True if `line` certainly came before `mark`. A request did if a log with records was loaded in
        between.

        A broker loads its logs, then receives LeaderAndIsr, then loads high watermarks.
        """
        if line.name != "request":
            return True
        return any(written_before(line, load) and written_before(load, mark) for load in self._loads)

    def _find_loss(
        self, mark: CommitMark, number: int | None, role: Fact, cut: Fact | None
    ) -> tuple[Epoch, tuple[int, Fact]] | None:
        """Return the first epoch after `number` that starts below the commit but not below the truncation, or None.

        If `number` is None, return the last such epoch. The result is (epoch, (start offset, fact)).
        """
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


def _has_nothing(line: Fact, led: Fact) -> bool:
    """Return True if a replica's next role line shows that it had no record of a lone leader's epoch.

    Its log ends below that epoch's start. Or it ends exactly there with a lower high watermark: a lone leader's high
    watermark is its log end, and any answer would have passed it on.
    """
    if line.offset is None or led.offset is None or line.offset > led.offset:
        return False
    return line.offset < led.offset or (line.high_watermark is not None and line.high_watermark < led.offset)


def _is_named(mark: CommitMark, lost_by: Epoch) -> bool:
    """Return True if the mark's line has the topic's id: a broker never follows with another topic's log (KIP-516)."""
    return mark.fact.topic_id is not None and lost_by.topic_ids == {mark.fact.topic_id}


def _is_cut(fact: Fact) -> bool:
    """Return True if a log was truncated to follow a leader, not to remove a corrupt end."""
    return fact.name == _LOG and fact.detail != CORRUPTION


def _is_behind(fact: Fact) -> bool:
    """Return True if a follower found its leader's log end below its own."""
    ends = fact.name == _OUT_OF_RANGE and fact.offset is not None and fact.end_offset is not None
    return ends and (fact.offset or 0) < (fact.end_offset or 0)


def _is_following(role: Fact, broker_id: int) -> bool:
    is_told = role.name == "request" and role.leader is not None and role.leader not in (broker_id, NO_LEADER)
    return is_told or role.name == "follower_start"
