"""Known records of each replica of a partition, and the loss if it is elected. Pure.

An election loses a record if the elected replica's log does not hold it: since KIP-101 all others truncate to the new
leader's log. Acknowledged records are known from answers to produces (T1), committed records from high watermarks (T0).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from highwater.pipelines.base.plain import number, offsets
from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.inquiry.answer import Answer, Lines, Point, Row, Table, name_partition, sort_steps
from highwater.pipelines.inquiry.replica_logs import (
    WATERMARK,
    Interval,
    KnownReplicaLog,
    LeaderTenure,
    LogMark,
    fold_marks,
)

ALL, ONE = "all", "1"
#: Ranges of lost offsets that are named.
RANGES_MAX = 8


class Acked(NamedTuple):
    """Offsets of one acknowledged batch."""

    epoch: int
    start: int
    end: int  #: exclusive
    acks: str  #: ``all`` or ``1``
    is_sure: bool  #: the answer is logged; where a release logs none, it may have been an error
    is_whole: bool  #: `end` is known from later lines; else it may hold more records
    row: Row  #: the request's line


@dataclass(frozen=True)
class PartitionFacts:
    """State of a partition up to a time."""

    cluster_id: str
    topic: str
    partition: int
    before_us: int | None  #: lines before this time are known, and no others; None: all
    tenures: tuple[LeaderTenure, ...]
    marks: tuple[LogMark, ...]  #: of its replicas' logs
    acked: tuple[Acked, ...]  #: acknowledged batches, the newest `ACKED_MAX` of them; `is_whole`: these are all
    is_whole: bool
    has_answers: bool  #: the logs have answers to its produces, or the request logs of its leaders
    unplaced: int  #: produces of acks=1 that were answered, at offsets that no line shows
    replicas: tuple[int, ...]
    #: isr, eligible: last known ISR, and last known eligible leader replicas (KIP-966)
    isr: tuple[int, ...]
    eligible: tuple[int, ...]
    leader: int | None  #: last known leader; -1 for none
    committed: LogMark | None  #: highest high watermark that a leader logged, with its epoch and line


class Loss(NamedTuple):
    """Acknowledged offsets that an election would lose: certainly, or possibly."""

    surely: tuple[Interval, ...]
    perhaps: tuple[Interval, ...]
    beyond: int | None = None  #: first offset of possible further records of a lost batch; None without any

    @property
    def surely_count(self) -> int:
        """Return the number of offsets that are certainly lost."""
        return sum(end - start for start, end in self.surely)

    @property
    def perhaps_count(self) -> int:
        """Return the number of offsets that may also be lost."""
        return sum(end - start for start, end in self.perhaps)


@dataclass(frozen=True)
class Candidate:
    """A replica, and what its election would lose."""

    log: KnownReplicaLog
    of_all: Loss
    of_one: Loss
    committed_lost: Interval | None

    @property
    def is_known_safe(self) -> bool:
        """Return True if the replica's log end is known, and its election loses no record that the logs show."""
        return self.log.end_max is not None and self.loses_nothing

    @property
    def loses_nothing(self) -> bool:
        """Return True if its log has every record that the logs show as acknowledged or committed."""
        if (self.log.end_min, self.log.end_max) == (None, None) or self.committed_lost is not None:
            return False
        return not any(loss.surely or loss.perhaps or loss.beyond for loss in (self.of_all, self.of_one))


@dataclass(frozen=True)
class Survivors:
    """All replicas of a partition, and what each election would lose."""

    facts: PartitionFacts
    acked: tuple[Acked, ...]  #: acknowledged batches, also those that only a high watermark proves
    candidates: tuple[Candidate, ...]  #: by replica id
    gone: Loss  #: acks=all records that the last leader's log did not hold: lost before any election


def find_survivors(facts: PartitionFacts) -> Survivors:
    """Compute for each replica what its election would lose."""
    logs = fold_marks(facts.marks)
    acked = mark_committed(facts)
    last = logs.get(facts.tenures[-1].leader) if facts.tenures else None
    standing, gone = _split_lost(acked, last)
    # A broker that the partition was moved away from is not elected, whatever its log holds.
    replicas = sorted({*facts.replicas, *facts.isr} if facts.replicas else logs)
    candidates = (_make_candidate(logs.get(replica, KnownReplicaLog(replica)), standing, facts) for replica in replicas)
    return Survivors(facts, tuple(acked), tuple(candidates), gone)


def mark_committed(facts: PartitionFacts) -> list[Acked]:
    """Return acknowledged batches. Without logged answers, a batch below its leader's high watermark counts as one."""
    passed: dict[int, int] = {}
    for mark in facts.marks:
        if mark.kind == WATERMARK and mark.offset is not None:
            passed[mark.epoch] = max(passed.get(mark.epoch, 0), mark.offset)
    return [batch._replace(is_sure=batch.is_sure or batch.end <= passed.get(batch.epoch, 0)) for batch in facts.acked]


def _split_lost(acked: Iterable[Acked], last: KnownReplicaLog | None) -> tuple[list[Acked], Loss]:
    """Return (acknowledged batches that the last leader's log may have, loss of the others)."""
    standing: list[Acked] = []
    gone: list[Interval] = []
    for batch in acked:
        start, end = (batch.start, batch.end) if last is None else last.find_possible(*batch[:3])
        if end > start:
            standing.append(batch._replace(start=start, end=end))
        if batch.acks == ALL and batch.is_sure:
            gone += [part for part in ((batch.start, min(start, batch.end)), (end, batch.end)) if part[1] > part[0]]
    return standing, Loss(merge_intervals(gone), ())


def _make_candidate(log: KnownReplicaLog, standing: Sequence[Acked], facts: PartitionFacts) -> Candidate:
    committed = facts.committed
    lost = None
    if committed is not None and committed.offset is not None and log.end_max is not None:
        lost = (log.end_max, committed.offset) if log.end_max < committed.offset else None
    return Candidate(
        log=log,
        of_all=loss(log, (batch for batch in standing if batch.acks == ALL)),
        of_one=loss(log, (batch for batch in standing if batch.acks == ONE)),
        committed_lost=lost,
    )


def loss(log: KnownReplicaLog, batches: Iterable[Acked]) -> Loss:
    """Return the offsets of acknowledged batches that a log certainly or possibly lacks."""
    surely: list[Interval] = []
    perhaps: list[Interval] = []
    beyond: int | None = None
    for batch in batches:
        held = log.find_certain(*batch[:3])
        possible = log.find_possible(*batch[:3])
        lacking = _cut_out((batch.start, batch.end), possible)
        (surely if batch.is_sure else perhaps).extend(lacking)
        perhaps += _cut_out(possible, held)
        if not batch.is_whole and held[1] < batch.end:
            beyond = batch.end
    return Loss(merge_intervals(surely), merge_intervals(perhaps), beyond)


def _cut_out(whole: Interval, part: Interval) -> list[Interval]:
    if part[1] <= part[0]:
        return [whole] if whole[1] > whole[0] else []
    pieces = [(whole[0], min(part[0], whole[1])), (max(part[1], whole[0]), whole[1])]
    return [(start, end) for start, end in pieces if end > start]


def merge_intervals(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Return intervals in order, merged if they touch."""
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


def list_shown_rows(result: Survivors) -> list[Row]:
    """Return rows with the locations of the log lines that the answer shows."""
    return [step.row for step in _collect_points(result) if step.row is not None and step.row["file_id"] is not None]


def answer(result: Survivors, lines: Lines) -> Answer:
    """Return an answer: the state of each replica, and what its election would lose."""
    facts = result.facts
    place = name_partition(facts.topic, facts.partition)
    when = "at the end of the logs" if facts.before_us is None else f"just before {iso_utc(facts.before_us)}"
    rows = tuple(_make_row(candidate, facts) for candidate in result.candidates)
    return Answer(
        title=f"{place} {when}: what is lost if a replica is elected",
        is_shown=any(candidate.log.end_min is not None for candidate in result.candidates),
        sentences=tuple(_write_sentences(result)),
        steps=sort_steps(_collect_points(result), lines),
        tables=(Table(title="replicas", rows=rows),) if rows else (),
    )


def _write_sentences(result: Survivors) -> Iterable[str]:
    facts = result.facts
    if not facts.tenures and not result.candidates:
        yield "The logs of this time do not mention this partition."
        return
    yield _summarize(result)
    if facts.tenures:
        last = facts.tenures[-1]
        if facts.leader == -1:
            yield f"No leader. Last known leader: broker {last.leader} (epoch {last.epoch})."
        else:
            yield f"Last known leader: broker {last.leader} (epoch {last.epoch})."
    if not facts.has_answers:
        yield (
            "What was acknowledged cannot be shown: no answers to produces are in these logs (kafka.request.logger at "
            "DEBUG has them). Losses are those of records that high watermarks show as committed."
        )
    if facts.unplaced:
        yield (
            f"{number(facts.unplaced, 'produce')} with acks=1 have no known offsets, as this release logs no "
            "answers: which of their records are lost cannot be shown."
        )
    for candidate in result.candidates:
        yield f"If broker {candidate.log.replica_id} is elected: {_describe_loss(candidate, facts)}."
    if result.gone.surely:
        yield (
            f"Lost before, and not counted above: {number(result.gone.surely_count, 'record')} acknowledged with "
            f"acks=all ({_format_ranges(result.gone.surely)}), which the log of the last leader does not hold."
        )
    if facts.acked and not facts.is_whole:
        yield f"Only acknowledged records from offset {facts.acked[-1].start} on were looked at."


def _summarize(result: Survivors) -> str:
    """Return a sentence about which replicas can be elected without a loss."""
    safe = [str(candidate.log.replica_id) for candidate in result.candidates if candidate.loses_nothing]
    if len(safe) == len(result.candidates) and safe:
        return "Any replica can be elected: no known loss."
    if safe:
        return f"Elect broker {' or '.join(safe)}: no known loss. Others lose records, or their log is unknown."
    least = min(result.candidates, key=lambda candidate: candidate.of_all.surely_count, default=None)
    if least is None:
        return "The logs do not show what any replica holds."
    if not least.of_all.surely_count:
        return "The logs do not show that any replica can be elected without a loss."
    return f"Every election loses records; broker {least.log.replica_id} loses fewest: {least.of_all.surely_count:,}."


def summarize(results: Sequence[Survivors]) -> str:
    """Return sentences: number of partitions with a safe replica, and names of the others."""
    safe = [result for result in results if any(candidate.is_known_safe for candidate in result.candidates)]
    others = [name_partition(result.facts.topic, result.facts.partition) for result in results if result not in safe]
    partitions = number(len(results), "partition")
    if not others:
        return f"{partitions} without a leader: each has a replica that can be elected without a known loss."
    return f"{partitions} without a leader. No replica is known to be safe for: {', '.join(others)}."


def _describe_loss(candidate: Candidate, facts: PartitionFacts) -> str:
    log = candidate.log
    if log.end_min is None and log.end_max is None:
        return "cannot be shown: the logs do not show how far its log goes"
    parts = []
    for acks, lost in ((ALL, candidate.of_all), (ONE, candidate.of_one)):
        if lost.surely:
            records = f"{number(lost.surely_count, 'record')} acknowledged with acks={acks}"
            parts.append(f"{records} {'is' if lost.surely_count == 1 else 'are'} lost: {_format_ranges(lost.surely)}")
        if lost.perhaps:
            records = number(lost.perhaps_count, f"{'further ' if lost.surely else ''}record")
            parts.append(f"of {records} of acks={acks} ({_format_ranges(lost.perhaps)}) it cannot be shown")
        if lost.beyond is not None:
            parts.append(f"the batch before offset {lost.beyond} may hold more records; the logs do not show that")
    if candidate.committed_lost is not None and not candidate.of_all.surely:
        parts.append(f"what a high watermark had passed is lost: {offsets(*candidate.committed_lost)}")
    if parts:
        return "; ".join(parts)
    return "no acknowledged record is lost" if facts.has_answers else "nothing is known to be lost"


def _format_ranges(intervals: Sequence[Interval]) -> str:
    if len(intervals) == 1:
        return offsets(*intervals[0])
    shown = ", ".join(offsets(*interval).split(" ", 1)[1] for interval in intervals[:RANGES_MAX])
    more = f" and {len(intervals) - RANGES_MAX} more ranges" if len(intervals) > RANGES_MAX else ""
    return f"offsets {shown}{more}"


def _make_row(candidate: Candidate, facts: PartitionFacts) -> dict[str, Any]:
    log = candidate.log
    known = log.end_min is not None or log.end_max is not None
    return {
        "replica": log.replica_id,
        "in_isr": log.replica_id in facts.isr,
        **({"eligible": log.replica_id in facts.eligible} if facts.eligible else {}),
        "log_end_min": log.end_min,
        "log_end_max": log.end_max,
        "last_epoch": log.last_epoch,
        "high_watermark": log.high_watermark,
        "lost_acks_all": candidate.of_all.surely_count if known and facts.has_answers else None,
        "perhaps_acks_all": candidate.of_all.perhaps_count if known and facts.has_answers else None,
        "lost_acks_1": candidate.of_one.surely_count if known and facts.has_answers else None,
        "perhaps_acks_1": candidate.of_one.perhaps_count if known and facts.has_answers else None,
    }


def _collect_points(result: Survivors) -> Iterable[Point]:
    for tenure in result.facts.tenures[-2:]:
        start = "" if tenure.start_offset is None else f", from offset {tenure.start_offset} on"
        yield Point(tenure.row["time"], f"Broker {tenure.leader} leads epoch {tenure.epoch}{start}.", tenure.row)
    for candidate in result.candidates:
        log = candidate.log
        if log.row is not None:
            beyond = "" if log.end_max == log.end_min else " or later"
            what = f"The log of broker {log.replica_id} ends at offset {log.end_min}{beyond}"
            if log.row["file_id"] is None:
                yield Point(log.row["time"], f"{what}: the segments of its data directory.", log.row)
            else:
                yield Point(log.row["time"], f"{what}.", log.row)
    acked = [batch for batch in result.acked if batch.acks == ALL and batch.is_sure]
    if acked:
        newest = max(acked, key=lambda batch: (batch.epoch, batch.start))
        what = f"The last acks=all produce that is answered: {offsets(newest.start, newest.end)}, epoch {newest.epoch}."
        yield Point(newest.row["time"], what, newest.row)
