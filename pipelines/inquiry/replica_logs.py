"""Bounds of each replica's log of a partition, and its epochs. Pure.

A replica's log is described as in Kafka's own leader-epoch cache: epochs with their first offsets, and an end. It
follows from lines, by three rules of Kafka:

* a leader's log continues from the offset at which its epoch starts (`Partition.makeLeader`);
* a follower that fetches at an offset holds its leader's records before that offset (Log Matching; older releases break
  it: KIP-101, KIP-279 and KAFKA-6361);
* truncated records are gone.

Epochs order the lines of brokers. Within one epoch, lines of a leader and of its followers are ordered by their times.
So clocks that differ by more than the duration of a fetch widen the bounds, or make them wrong near a truncation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from highwater.pipelines.inquiry.answer import Row
from highwater.pipelines.kafka.controller_rows import LeadershipRow
from highwater.pipelines.kafka.partition_history import NEVER, LeaderEpoch, PartitionHistory, build_history
from highwater.schemas.fields import build_row

# Kinds of marks.
LEADS: Final = "leads"
FOLLOWS: Final = "follows"
LOADED: Final = "loaded"
TRUNCATED: Final = "truncated"
FETCHED: Final = "fetched"
#: It follows a leader whose answers to it are not all in the logs: it may have any record of that leader.
UNSEEN: Final = "unseen"
APPENDED: Final = "appended"
WATERMARK: Final = "watermark"
STORED: Final = "stored"

#: Roles of ``silver.leader_and_isr`` that a broker logs about itself.
OWN_ROLES: Final = ("leader_start", "follower_start", "leader_update", "request", "stopped")

Interval = tuple[int, int]
Epochs = tuple[tuple[int, int], ...]


class LeaderTenure(NamedTuple):
    """One epoch of a leader, with times on the leader's clock."""

    incarnation: int  #: of the topic
    epoch: int
    leader: int
    #: from_us, until_us: span in which its requests were handled, end exclusive; None if unknown. A broker answers
    #: without error only as leader, so the span ends where it leads again
    from_us: int | None
    until_us: int | None
    start_offset: int | None  #: where it starts, as logged
    row: Row

    def holds(self, broker_id: int, time_us: int) -> bool:
        """Return True if a request of this broker and time belongs to this leader epoch."""
        after = self.from_us is None or time_us >= self.from_us
        return broker_id == self.leader and after and (self.until_us is None or time_us < self.until_us)


class LogMark(NamedTuple):
    """A log line, request or file that shows how far a replica's log extends."""

    epoch: int  #: leader epoch that the replica was in
    time_us: int
    kind: str
    replica_id: int
    offset: int | None  #: log end, offset truncated or fetched at, or high watermark; None if unknown
    row: Row
    leader: int | None = None  #: broker that it fetched from
    #: maximum end of its log after the answer of that fetch; None: the end of its leader's log
    offset_max: int | None = None
    epochs: Epochs = ()  #: of `STORED`, epochs and their first offsets as found on disk


@dataclass(frozen=True)
class KnownReplicaLog:
    """What is known about the end of a replica's log."""

    replica_id: int
    #: epochs and their first offsets, up to `end_max`; epochs before the first one are unknown
    epochs: Epochs = ()
    end_min: int | None = None  #: it goes at least to here (exclusive); None where nothing shows
    end_max: int | None = None  #: and at most to here; None: no bound
    high_watermark: int | None = None  #: the last one known of it
    row: Row | None = None  #: what shows its end

    @property
    def last_epoch(self) -> int | None:
        """Return the epoch of the last record that it certainly has."""
        known = [epoch for epoch, start in self.epochs if self.end_min is not None and start < self.end_min]
        return known[-1] if known else None

    def find_certain(self, epoch: int, start: int, end: int) -> Interval:
        """Return the offsets of an epoch, from `start` to `end`, that the log certainly contains."""
        return self._clip_interval(epoch, start, end, self.end_min if self.end_min is not None else 0)

    def find_possible(self, epoch: int, start: int, end: int) -> Interval:
        """Return the offsets of an epoch, from `start` to `end`, that the log may contain."""
        return self._clip_interval(epoch, start, end, self.end_max)

    def _clip_interval(self, epoch: int, start: int, end: int, log_end: int | None) -> Interval:
        first, beyond = self._find_span(epoch)
        bounds = [bound for bound in (end, beyond, log_end) if bound is not None]
        start = max(start, first)
        return start, max(start, min(bounds))

    def _find_span(self, epoch: int) -> tuple[int, int | None]:
        """Return (first offset of an epoch in this log, its end). The end is None for the log end."""
        if not self.epochs or epoch < self.epochs[0][0]:
            return 0, self.epochs[0][1] if self.epochs else None
        for number, (known, first) in enumerate(self.epochs):
            if known == epoch:
                return first, self.epochs[number + 1][1] if number + 1 < len(self.epochs) else None
        return 0, 0


def build_row_history(rows: Sequence[Row], changes: Sequence[Row] = ()) -> PartitionHistory:
    """Return the history of a partition.

    Args:
        rows: rows of ``silver.leader_and_isr``, `time` in microseconds.
        changes: rows of ``silver.isr_changes``, committed by leaders, `time` in microseconds.
    """
    lines, committed = (
        [build_row(LeadershipRow, {**row, "time_us": row["time"]}) for row in some] for some in (rows, changes)
    )
    return build_history((), lines, changes=committed)


def tenures(rows: Sequence[Row], history: PartitionHistory) -> tuple[LeaderTenure, ...]:
    """Return the epochs with a leader, of every incarnation of the topic, ascending.

    Args:
        rows: the rows from which `history` was built.
    """
    by_place = {(row["file_id"], row["byte_offset"], row["line_no"], row["leader_epoch"]): row for row in rows}
    known: list[LeaderTenure] = []
    for epoch in reversed(history.epochs):
        if epoch.leader is None or epoch.leader < 0:
            continue
        first = epoch.taken_up or epoch.heard.get(epoch.leader) or epoch.shown
        assert first is not None
        # If the log begins within an epoch, earlier answers are of that epoch, too.
        others = (other.heard.get(epoch.leader, NEVER).time_us for other in history.epochs)
        is_earliest = epoch.taken_up is None and not any(time_us < first.time_us for time_us in others)
        until_us = next((later.from_us for later in reversed(known) if later.leader == epoch.leader), None)
        from_us = None if is_earliest else first.time_us
        row = by_place[*first.ref, epoch.leader_epoch]
        place = epoch.incarnation, epoch.leader_epoch, epoch.leader
        known.append(LeaderTenure(*place, from_us, until_us, epoch.start_offset, row))
    return tuple(reversed(known))


def find_epoch(epochs: Iterable[LeaderEpoch], broker_id: int, time_us: int) -> int:
    """Return the highest epoch that a broker had entered at a time of its clock. -1 if its log shows none."""
    heard = (epoch.leader_epoch for epoch in epochs if epoch.heard.get(broker_id, NEVER).time_us <= time_us)
    return max(heard, default=-1)


def fold_marks(marks: Iterable[LogMark]) -> dict[int, KnownReplicaLog]:
    """Return by replica what all marks show about its log."""
    logs: dict[int, KnownReplicaLog] = {}
    for mark in sorted(marks, key=lambda mark: (mark.kind == STORED, mark.epoch, mark.time_us)):
        known = logs.get(mark.replica_id, KnownReplicaLog(mark.replica_id))
        logs[mark.replica_id] = _STEPS[mark.kind](known, mark, logs)
        if mark.kind == FETCHED and mark.leader in logs and mark.offset is not None:
            # A follower's offset is one that its leader has.
            logs[mark.leader] = _extend_log(logs[mark.leader], mark.offset, mark.row)
    return logs


def _apply_leadership(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    start = mark.offset if mark.offset is not None else log.end_min or 0
    epochs = (*_cut_epochs(log.epochs, start), (mark.epoch, start))
    # From now on it appends records; lines show only the answered ones.
    return replace(log, epochs=epochs, end_min=start, end_max=None, row=mark.row)


def _apply_end(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None or (mark.kind == LOADED and log.epochs[-1:] == ((mark.epoch, mark.offset),)):
        return log  # The log of a leader that has just been made, and takes records from now on.
    epochs = _cut_epochs(log.epochs, mark.offset)
    return replace(log, epochs=epochs, end_min=mark.offset, end_max=mark.offset, row=mark.row)


def _apply_truncation(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None:
        return log
    reaches = log.end_max is None or log.end_max > mark.offset
    return replace(
        log,
        epochs=_cut_epochs(log.epochs, mark.offset),
        end_min=None if log.end_min is None else min(log.end_min, mark.offset),
        end_max=mark.offset if reaches else log.end_max,
        row=mark.row if reaches else log.row,
    )


def _apply_fetch(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None:
        return log
    leader = logs.get(mark.leader) if mark.leader is not None else None
    end_max = None if mark.offset_max is None else max(mark.offset_max, mark.offset)
    epochs = log.epochs if leader is None else _cut_epochs(leader.epochs, end_max)
    return replace(log, epochs=epochs, end_min=mark.offset, end_max=end_max, row=mark.row)


def _apply_unseen(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    leader = logs.get(mark.leader) if mark.leader is not None else None
    return replace(log, epochs=log.epochs if leader is None else leader.epochs, end_max=None)


def _apply_append(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    return log if mark.offset is None else _extend_log(log, mark.offset, mark.row)


def _extend_log(log: KnownReplicaLog, end: int, row: Row) -> KnownReplicaLog:
    if log.end_min is not None and end <= log.end_min:
        return log
    end_max = None if log.end_max is None else max(log.end_max, end)
    return replace(log, end_min=end, end_max=end_max, row=row)


def _apply_watermark(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None:
        return log
    # A high watermark is never beyond the log's own end.
    return replace(_extend_log(log, mark.offset, mark.row), high_watermark=mark.offset)


def _apply_stored(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    """Apply the state of a data directory. If it ends earlier, it was copied before the log's last line."""
    if mark.offset is None or (log.end_min is not None and mark.offset < log.end_min):
        return log
    epochs = _cut_epochs(mark.epochs or log.epochs, mark.offset)
    return replace(log, epochs=epochs, end_min=mark.offset, end_max=mark.offset, row=mark.row)


def _cut_epochs(epochs: Epochs, end: int | None) -> Epochs:
    return epochs if end is None else tuple((epoch, start) for epoch, start in epochs if start < end)


_STEPS = {
    LEADS: _apply_leadership,
    FOLLOWS: _apply_end,
    LOADED: _apply_end,
    TRUNCATED: _apply_truncation,
    FETCHED: _apply_fetch,
    UNSEEN: _apply_unseen,
    APPENDED: _apply_append,
    WATERMARK: _apply_watermark,
    STORED: _apply_stored,
}
