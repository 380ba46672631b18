"""Committed records that a later leader did not have.

What a leader epoch committed follows from its leader's answers to producers, and from its high watermarks. At default
levels it follows from replicas' lines (`pipelines.rules.proofs.replica_marks`). The start of a later epoch follows from
its leader's own line, from its records, or from the replicas' files. A record at or past that start did not survive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from highwater.pipelines.base.plain import offsets
from highwater.pipelines.rules.leader_epoch import Epoch
from highwater.pipelines.rules.proofs.fetch_chain import written_before
from highwater.pipelines.rules.proofs.loss_cause import (
    Cause,
    ShortLog,
    cause_of,
    high_watermark_cuts,
    outlived_logs,
    short_logs,
)
from highwater.pipelines.rules.proofs.replica_marks import CommitMark, Passed, Starts, passed
from highwater.pipelines.rules.rule import KEPT, OPEN, VIOLATION, Case, Checker, brokers_of, witnesses_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: Lines of acknowledgements that a case shows: the first and the last ones.
ACKS_SHOWN = 4
#: Words of a message before its cause.
CAUSE = "Cause: "


@dataclass
class _Loss:
    """Committed records that one later leader epoch removed."""

    lost_by: Epoch
    offset_start: int
    start_fact: Fact
    offset_end: int
    epochs: set[int] = field(default_factory=set)
    answered: int = 0
    first: list[Fact] = field(default_factory=list)
    last: list[Fact] = field(default_factory=list)
    committed: Fact | None = None
    stored: tuple[Fact, ...] = ()
    marks: list[CommitMark] = field(default_factory=list)
    lines: tuple[Fact, ...] = ()
    one_life: bool = False

    @classmethod
    def by(cls, epoch: Epoch, bound: tuple[int, Fact]) -> _Loss:
        return cls(epoch, max(bound[0], 0), bound[1], bound[0])

    def acknowledge(self, number: int, fact: Fact, end: int) -> None:
        """Add an acknowledged produce of epoch `number` that ends at `end`, above the start of the loss."""
        self.answered += 1
        self.epochs.add(number)
        self.offset_end = max(self.offset_end, end)
        if len(self.first) < ACKS_SHOWN // 2:
            self.first.append(fact)
        else:
            self.last = [*self.last, fact][-ACKS_SHOWN // 2 :]

    def join(self, other: _Loss) -> None:
        """Merge the acknowledgements of `other`. The lost range does not change."""
        self.answered += other.answered
        self.epochs |= other.epochs
        self.first, self.last = self.first or other.first, self.last or other.last
        self.stored = self.stored or other.stored

    @property
    def shown(self) -> list[Fact]:
        """Return the lines that show the records as committed, the highest offset first."""
        marks = sorted(self.marks, key=lambda mark: -mark.end)
        return [line for mark in marks for line in (mark.fact, *mark.more)]

    def commit(self, number: int, high_watermark: int, fact: Fact) -> None:
        """Add a high watermark above the start of the loss, logged by the leader of epoch `number`."""
        self.epochs.add(number)
        self.offset_end = max(self.offset_end, high_watermark)
        if self.committed is None or high_watermark > (self.committed.high_watermark or 0):
            self.committed = fact

    def show(self, shown: Passed) -> None:
        """Add a replica's lines that show records above the start of the loss as committed."""
        self.epochs |= set() if shown.number is None else {shown.number}
        self.offset_end = max(self.offset_end, shown.mark.end)
        self.marks.append(shown.mark)
        self.lines += shown.lines
        self.one_life = self.one_life or shown.one_life


@dataclass
class CommittedDataLost(Checker):
    #: By incarnation and number of the epoch that lost them.
    _losses: dict[tuple[int, int], _Loss] = field(default_factory=dict)
    _open: dict[tuple[int, int], _Loss] = field(default_factory=dict)
    #: Acknowledgements of derived facts: counted with a loss that others prove, else open.
    _matched: dict[tuple[int, int], _Loss] = field(default_factory=dict)
    #: Loads of a leader's log within an epoch, each with the start that follows, by incarnation, epoch and broker.
    _restarts: dict[tuple[int, int, int | None], list[tuple[Fact, Fact]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    #: Losses within an epoch, and the continued epoch, by incarnation, epoch and start.
    _in_epoch: dict[tuple[tuple[int, int], int], _Loss] = field(default_factory=dict)
    _again: dict[tuple[tuple[int, int], int], Epoch] = field(default_factory=dict)
    #: End of the acknowledged offsets, by incarnation and leader epoch.
    _reached: dict[tuple[int, int], int] = field(default_factory=dict, metadata=KEPT)
    #: The last batch of each replica's segments, in the order of offsets.
    _stored: dict[int, Fact] = field(default_factory=dict)
    #: Instants at which replicas cut their logs to their high watermarks, ascending.
    _cuts_us: dict[int | None, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: First fetch of a replica after such a cut.
    _fetched: dict[tuple[int | None, int], int] = field(default_factory=dict, metadata=KEPT)
    #: Whether requests of the partition are logged.
    _has_requests: bool = field(default=False, metadata=KEPT)

    def observe(self, fact: Fact) -> None:
        self._has_requests |= fact.kind != a.BATCH
        if fact.kind == a.BATCH:
            if fact.broker_id is not None:
                self._stored[fact.broker_id] = fact
        elif fact.kind == a.FETCH:
            self._note_fetch(fact)
        else:
            self._answered(fact)

    def _note_fetch(self, fact: Fact) -> None:
        """Record that a replica fetched after it truncated its log: the log may have grown since."""
        cuts = self._cuts_us.get(fact.replica_id)
        asked_us = fact.earliest_us or fact.time_us
        if cuts and (number := bisect_right(cuts, asked_us)):
            key = fact.replica_id, cuts[number - 1]
            self._fetched[key] = min(asked_us, self._fetched.get(key, asked_us))

    def _answered(self, fact: Fact) -> None:
        self.checked += 1
        if fact.error_code or fact.broker_id is None or fact.offset is None:
            return
        if fact.derived is not None and fact.derived != a.MATCHED_APPEND:
            return  # Its offset is counted, so only high watermarks show what was committed there.
        tenure = self._history.tenure(fact.broker_id, fact.latest_us or fact.time_us)
        if tenure is None:
            return
        end = max(fact.end_offset or 0, fact.offset + 1)
        life = self._history.incarnation(fact.time_us), tenure.epoch
        self._reached[life] = max(end, self._reached.get(life, end))
        if fact.derived is not None and not self._is_committed(tenure.epoch, fact, end):
            return
        # A derived append counts only in the epoch whose high watermark passed it.
        latest = tenure.latest if fact.derived is None or tenure.certain else None
        surely = self._losses if fact.derived is None else self._matched
        if fact.derived is None and self._count_restart(fact, life, end):
            return
        for epoch, losses in ((latest, surely), (tenure.epoch, self._open)):
            if epoch is None:
                continue
            lost_by = self._history.lost_by(epoch, fact.time_us, end)
            if lost_by is not None:
                loss = losses.setdefault((life[0], lost_by[0].number), _Loss.by(*lost_by))
                loss.acknowledge(tenure.epoch, fact, end)
                loss.stored = loss.stored or self._find_instead(fact, epoch)
                return
            if tenure.certain:
                return

    def _count_restart(self, fact: Fact, life: tuple[int, int], end: int) -> bool:
        """Return True if the leader's own log lost the answered record: the broker crashed and kept leading this epoch.

        Args:
            life: (incarnation of the topic, leader epoch).
            end: end offset of the answered batch.
        """
        for load, start in self._restarts.get((*life, fact.broker_id), ()):
            if fact.time_us < load.time_us and (start.offset or 0) < end:
                again = self._again.setdefault((life, start.time_us), Epoch(life[1], first_us=start.time_us))
                again.starts(start.offset or 0, start)
                again.see(start)
                loss = self._in_epoch.setdefault((life, start.time_us), _Loss.by(again, (start.offset or 0, start)))
                loss.acknowledge(life[1], fact, end)
                return True
        return False

    def __post_init__(self) -> None:
        """Find leaders that loaded their log again within one leader epoch."""
        starts: dict[tuple[int, int, int | None], list[Fact]] = defaultdict(list)
        for line in self._history.facts[a.LEADERSHIP]:
            if line.name == "leader_start" and line.leader_epoch is not None and line.offset is not None:
                key = self._history.incarnation(line.time_us), line.leader_epoch, line.broker_id
                starts[key].append(line)
        for cut in sorted(high_watermark_cuts(self._history, self._settings), key=lambda cut: cut.time_us):
            self._cuts_us[cut.broker_id].append(cut.time_us)
        loads = [line for line in self._history.facts[a.LOADED] if line.offset is not None]
        for key, lines in starts.items():
            for before, after in pairwise(sorted(lines, key=lambda line: line.time_us)):
                between = [
                    load
                    for load in loads
                    if load.offset == after.offset and written_before(before, load) and written_before(load, after)
                ]
                self._restarts[key].extend((load, after) for load in between[-1:])

    def _find_instead(self, fact: Fact, number: int) -> tuple[Fact, ...]:
        """Return the stored batches at an answer's offset that are from a later epoch, or were written later."""
        assert fact.offset is not None
        instead = []
        for _, batch in sorted(self._stored.items()):
            if batch.offset is None or not batch.offset <= fact.offset < (batch.end_offset or 0):
                continue
            later_epoch = batch.leader_epoch is not None and batch.leader_epoch > number
            written_us = batch.log_append_time_us if batch.leader_epoch is None else None
            if later_epoch or (written_us is not None and written_us > fact.time_us + self._settings.skew_max_us):
                instead.append(batch)
        return tuple(instead)

    def _is_committed(self, number: int, fact: Fact, end: int) -> bool:
        """Return True if the leader's own lines show its high watermark past the batch. For logs without responses."""
        known = self._history.epoch(number, fact.time_us).high_watermark
        return known is not None and known[0] >= end

    def stands(self) -> bool:
        shrunk = (
            (start.offset or 0) < self._reached.get(key[:2], 0)
            for key, restarts in self._restarts.items()
            for _, start in restarts
        )
        return (
            self.is_final
            and not any(shrunk)
            and not any(
                incarnation == life and number < epoch.number and epoch.bound is not None and epoch.bound[0] < end
                for incarnation, epoch in self._history.epochs()
                for (life, number), end in self._reached.items()
            )
        )

    # ------------------------------------------------------------------- cases

    def finish(self) -> Iterable[Case]:
        has_answers = self.checked > 0 or self._history.has_fetches
        starts = Starts(self._history)
        self._add_committed(starts)
        self._add_shown(starts)
        within = [loss for _, loss in sorted(self._in_epoch.items(), key=lambda item: item[0])]
        for loss in within:
            # Without an id the second start may be of a re-created topic.
            one_life = bool(loss.lost_by.topic_ids) or not self._settings.deletable
            yield self._make_decided_case(loss) if one_life else _make_open_case(loss)
        for key, loss in sorted(self._losses.items(), key=lambda item: item[0]):
            if key in self._matched:
                loss.join(self._matched[key])
            known = True if loss.one_life else self._are_of_one_life(loss)
            # Before 1.0 lines may have neither ids nor versions, but topics mostly cannot be deleted.
            known = known if known is not None or self._settings.deletable else True
            if known is None:
                yield _make_open_case(loss)
            elif known:
                yield self._make_decided_case(loss)
        for key, loss in sorted((self._matched | self._open).items(), key=lambda item: item[0]):
            if key not in self._losses:
                yield _make_open_case(loss)
        shorts = [short for short in self._find_outlived() if not self._is_answered(short)]
        if not has_answers:
            shorts += short_logs(self._history, self._settings)
        yield from self._unknown(shorts)

    def _make_decided_case(self, loss: _Loss) -> Case:
        lost = (loss.lost_by, loss.offset_start, loss.offset_end)
        committed = [*loss.first, *loss.last, *loss.shown, *([loss.committed] if loss.committed else [])]
        return _case(loss, cause_of(self._history, self._settings, *lost, committed))

    def _is_answered(self, short: ShortLog) -> bool:
        """Return True if lines show whether a leader's log lacked records committed before its epoch."""
        committed = [(key, end) for key, end in self._reached.items()]
        committed += [
            ((life, epoch.number), epoch.high_watermark[0])
            for life, epoch in self._history.epochs()
            if epoch.high_watermark is not None
        ]
        ends = [
            end
            for (life, number), end in committed
            if life == short.incarnation and (short.epoch is None or number < short.epoch.number)
        ]
        # Committed records are compared with a start that a line shows.
        is_compared = short.epoch is None or short.epoch.bound is not None
        return bool(ends) and (is_compared or max(ends) <= (short.start or 0))

    def _find_outlived(self) -> Iterable[ShortLog]:
        """Yield leaders that truncated their logs and did not fetch afterwards. Empty without a request log."""
        return outlived_logs(self._history, self._settings, self._fetched) if self._has_requests else ()

    def _unknown(self, found: Iterable[ShortLog]) -> Iterable[Case]:
        """Yield undecided cases: leaders with shorter logs than other replicas, if no line shows what was committed."""
        losses = self._losses | self._open
        by_epoch: dict[tuple[int, int | None, int | None], list[ShortLog]] = defaultdict(list)
        for short in found:
            number = None if short.epoch is None else short.epoch.number
            within = any(
                life == short.incarnation and loss.offset_start <= (short.start or 0) < loss.offset_end
                for (life, _), loss in losses.items()
            )
            if (short.incarnation, number) not in losses and not (number is None and within):
                by_epoch[short.incarnation, number, short.start].append(short)
        for shorts in by_epoch.values():
            self.checked += 1
            yield _unknown(shorts)

    def _are_of_one_life(self, loss: _Loss) -> bool | None:
        if not loss.epochs:
            return None
        return self._history.are_of_one_life(max(loss.epochs), loss.lost_by.number, loss.start_fact.time_us)

    def _add_shown(self, starts: Starts) -> None:
        """Add losses that only replicas' lines show, not answers or leaders' high watermarks."""
        answered = self._losses.keys() | self._matched.keys()
        shown: dict[tuple[int, int], list[Passed]] = defaultdict(list)
        for each in passed(self._history, self._settings, starts):
            self.checked += 1
            key = self._history.incarnation(each.mark.fact.time_us), each.lost_by.number
            if key not in answered:
                shown[key].append(each)
        for key, group in shown.items():
            # A log end that is not sure by itself may extend a loss that another mark proves.
            certain = [each for each in group if each.proven and each.mark.extends]
            proven = any(each.mark.is_sure for each in certain)
            losses = self._losses if proven else self._open
            for each in certain if proven else group:
                loss = losses.setdefault(key, _Loss.by(each.lost_by, each.bound))
                loss.show(each)

    def _add_committed(self, starts: Starts) -> None:
        """Add losses below a leader's logged high watermark."""
        for incarnation, epoch in self._history.epochs():
            if epoch.high_watermark is None:
                continue
            high_watermark, fact = epoch.high_watermark
            self.checked += 1
            if not starts.any_below(epoch.number, fact.time_us, high_watermark):
                continue
            lost_by = self._history.lost_by(epoch.number, fact.time_us, high_watermark)
            if lost_by is not None:
                loss = self._losses.setdefault((incarnation, lost_by[0].number), _Loss.by(*lost_by))
                loss.commit(epoch.number, high_watermark, fact)


def _case(loss: _Loss, cause: Cause) -> Case:
    start, end = loss.offset_start, loss.offset_end
    proofs = []
    if loss.answered:
        proofs.append(f"{_count_produces(loss.answered)} wrote there in {_epochs(loss)} and got an acknowledgement.")
    if loss.committed is not None:
        proofs.append(f"The high watermark of an earlier leader had reached {loss.committed.high_watermark}.")
    proofs += [f"{how[:1].upper()}{how[1:]}." for how in dict.fromkeys(mark.how for mark in loss.marks)]
    what = "starts" if loss.start_fact.name == "leader_start" else "has other records"
    records = f"{end - start:,} {'acknowledged' if loss.answered else 'committed'} record"
    lost = f"s are lost: {offsets(start, end)}" if end - start > 1 else f" is lost: {offsets(start, end)}"
    message = (
        f"{records}{lost}. Leader epoch {loss.lost_by.number} {what} from offset {loss.start_fact.offset}. "
        f"{' '.join(proofs)} {CAUSE}{cause.text}{_describe_stored(loss)}"
    )
    committed = [loss.committed] if loss.committed is not None else []
    committed += loss.shown
    chain = [*loss.first[:1], *loss.last[-1:], loss.start_fact, *committed, *loss.lines, *cause.facts, *loss.stored]
    facts = [*chain, *loss.first[1:], *loss.last[:-1]]
    sides = (loss.start_fact, *committed, *loss.first, *loss.last, *loss.stored)
    return Case(
        VIOLATION,
        message,
        tuple(facts),
        leader_epoch=max(loss.epochs, default=None),
        offset_start=start,
        offset_end=end,
        time_us=loss.lost_by.first_us,
        brokers=brokers_of(facts),
        known_bug=cause.known_bug,
        cause=cause.name,
        records=loss.answered or None,
        witnesses=witnesses_of(sides),
    )


def _describe_stored(loss: _Loss) -> str:
    if not loss.stored:
        return ""
    brokers = [str(fact.broker_id) for fact in loss.stored]
    return f" The segments of broker{'s' if len(brokers) > 1 else ''} {', '.join(brokers)} hold a later record there."


def _make_open_case(loss: _Loss) -> Case:
    if loss.marks and not loss.answered:
        what = f"before which {'; '.join(dict.fromkeys(mark.how for mark in loss.marks))}"
    else:
        what = f"where {_count_produces(loss.answered)} wrote" if loss.answered else "which a high watermark had passed"
    when = f"in {_epochs(loss)}" if loss.epochs else f"before leader epoch {loss.lost_by.number}"
    message = (
        f"{offsets(loss.offset_start, loss.offset_end).capitalize()}, {what}, may be lost: they are if that was "
        f"{when} of the same topic. The lines that would show it are missing."
    )
    return Case(
        OPEN,
        message,
        (*loss.first, *loss.last, loss.start_fact, *loss.shown, *loss.lines),
        leader_epoch=max(loss.epochs, default=None),
        offset_start=loss.offset_start,
        offset_end=loss.offset_end,
        time_us=loss.lost_by.first_us,
    )


def _unknown(shorts: Sequence[ShortLog]) -> Case:
    first = shorts[0]
    facts = [fact for short in shorts for fact in short.facts]
    return Case(
        OPEN,
        " ".join(dict.fromkeys(short.what for short in shorts)),
        tuple(facts),
        leader_epoch=None if first.epoch is None else first.epoch.number,
        offset_start=first.start,
        offset_end=max((short.end for short in shorts if short.end is not None), default=None),
        time_us=min(fact.time_us for fact in facts),
        brokers=brokers_of(facts),
    )


def _count_produces(count: int) -> str:
    return f"{count} acks=all produce{'s' if count > 1 else ''}"


def _epochs(loss: _Loss) -> str:
    numbers = sorted(loss.epochs)
    return f"leader epoch{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
