"""Bounds of each replica's log of a partition, and its epochs. Pure.

A replica's log is known as Kafka's own leader-epoch cache knows it: epochs with their first offsets, and an end. It
follows from what lines say, by three rules of Kafka:

* a leader's log continues from the offset at which its epoch starts (`Partition.makeLeader`);
* a follower that fetches at an offset holds what its leader holds before that offset (Log Matching; KIP-101, KIP-279
  and KAFKA-6361 are where older releases break it);
* what a replica truncates is gone.

Epochs order what brokers say. Within one, lines of a leader and of its followers are put in order by their times, so
clocks that are apart by more than a fetch takes make bounds wider than they need be, or, beside a truncation, wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from highwater.pipelines.inquiry.answer import Row
from highwater.pipelines.kafka.controller_rows import LeadershipRow
from highwater.pipelines.kafka.partition_history import NEVER, LeaderEpoch, PartitionHistory, build_history
from highwater.schemas.fields import row_of

# Kinds of marks.
LEADS: Final = "leads"
FOLLOWS: Final = "follows"
LOADED: Final = "loaded"
TRUNCATED: Final = "truncated"
FETCHED: Final = "fetched"
#: It follows a leader whose answers to it are not, or not all, in the logs: it may have anything of that leader's.
UNSEEN: Final = "unseen"
APPENDED: Final = "appended"
WATERMARK: Final = "watermark"
STORED: Final = "stored"

#: Roles of ``silver.leader_and_isr`` that a broker says of itself.
OWN_ROLES: Final = ("leader_start", "follower_start", "leader_update", "request", "stopped")

Interval = tuple[int, int]
Epochs = tuple[tuple[int, int], ...]


class LeaderTenure(NamedTuple):
    """One epoch of a leader, on the leader's own clock."""

    incarnation: int  #: of the topic
    epoch: int
    leader: int
    #: from_us, until_us: its requests are those handled then, the end exclusive; None: no bound is known. What a
    #: broker answers without error it answers as leader: that ends where it leads again, whoever was told when
    from_us: int | None
    until_us: int | None
    start_offset: int | None  #: where it starts, as logged
    row: Row

    def holds(self, broker_id: int, time_us: int) -> bool:
        """Return True if a broker's request of that time belongs to this tenure."""
        after = self.from_us is None or time_us >= self.from_us
        return broker_id == self.leader and after and (self.until_us is None or time_us < self.until_us)


class LogMark(NamedTuple):
    """One fact about a replica's log."""

    epoch: int  #: leader epoch that the replica was in
    time_us: int
    kind: str
    replica_id: int
    offset: int | None  #: log end, offset truncated or fetched at, or high watermark; None where a line tells none
    row: Row
    leader: int | None = None  #: whom it fetched from
    #: its log ends there at most, once the answer of that fetch has come; None: as its leader's
    offset_max: int | None = None
    epochs: Epochs = ()  #: of `STORED`, epochs and their first offsets as found on disk


@dataclass(frozen=True)
class KnownReplicaLog:
    """Known bounds of a replica's log."""

    replica_id: int
    #: epochs and their first offsets, up to `end_max`; what lies before the first one is not told apart
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

    def surely_held(self, epoch: int, start: int, end: int) -> Interval:
        """Return the records of an epoch that it certainly has."""
        return self._held(epoch, start, end, self.end_min if self.end_min is not None else 0)

    def possibly_held(self, epoch: int, start: int, end: int) -> Interval:
        """Return the records of an epoch that it may have."""
        return self._held(epoch, start, end, self.end_max)

    def _held(self, epoch: int, start: int, end: int, log_end: int | None) -> Interval:
        first, beyond = self._span(epoch)
        bounds = [bound for bound in (end, beyond, log_end) if bound is not None]
        start = max(start, first)
        return start, max(start, min(bounds))

    def _span(self, epoch: int) -> tuple[int, int | None]:
        """Return the offsets of an epoch in this log; None for the log end."""
        if not self.epochs or epoch < self.epochs[0][0]:
            return 0, self.epochs[0][1] if self.epochs else None
        for number, (known, first) in enumerate(self.epochs):
            if known == epoch:
                return first, self.epochs[number + 1][1] if number + 1 < len(self.epochs) else None
        return 0, 0


def history_of_rows(rows: Sequence[Row], changes: Sequence[Row] = ()) -> PartitionHistory:
    """Return the history of a partition.

    Args:
        rows: of ``silver.leader_and_isr``, `time` in microseconds.
        changes: of ``silver.isr_changes``, what leaders committed, likewise.
    """
    lines, committed = (
        [row_of(LeadershipRow, {**row, "time_us": row["time"]}) for row in some] for some in (rows, changes)
    )
    return build_history((), lines, changes=committed)


def tenures(rows: Sequence[Row], history: PartitionHistory) -> tuple[LeaderTenure, ...]:
    """Return epochs that had a leader, in all lives of the topic, ascending; `rows` are those of the history."""
    by_place = {(row["file_id"], row["byte_offset"], row["line_no"], row["leader_epoch"]): row for row in rows}
    known: list[LeaderTenure] = []
    for epoch in reversed(history.epochs):
        if epoch.leader is None or epoch.leader < 0:
            continue
        first = epoch.taken_up or epoch.heard.get(epoch.leader) or epoch.shown
        assert first is not None
        # Where the log begins within an epoch, what it answered before its first line about it is of that epoch, too.
        others = (other.heard.get(epoch.leader, NEVER).time_us for other in history.epochs)
        is_earliest = epoch.taken_up is None and not any(time_us < first.time_us for time_us in others)
        until_us = next((later.from_us for later in reversed(known) if later.leader == epoch.leader), None)
        from_us = None if is_earliest else first.time_us
        row = by_place[*first.ref, epoch.leader_epoch]
        place = epoch.incarnation, epoch.leader_epoch, epoch.leader
        known.append(LeaderTenure(*place, from_us, until_us, epoch.start_offset, row))
    return tuple(reversed(known))


def epoch_at(epochs: Iterable[LeaderEpoch], broker_id: int, time_us: int) -> int:
    """Return the epoch that a broker had taken up, on its own clock; -1 if its log shows none."""
    heard = (epoch.leader_epoch for epoch in epochs if epoch.heard.get(broker_id, NEVER).time_us <= time_us)
    return max(heard, default=-1)


def replica_logs(marks: Iterable[LogMark]) -> dict[int, KnownReplicaLog]:
    """Return the log of each replica after all marks."""
    logs: dict[int, KnownReplicaLog] = {}
    for mark in sorted(marks, key=lambda mark: (mark.kind == STORED, mark.epoch, mark.time_us)):
        known = logs.get(mark.replica_id, KnownReplicaLog(mark.replica_id))
        logs[mark.replica_id] = _STEPS[mark.kind](known, mark, logs)
        if mark.kind == FETCHED and mark.leader in logs and mark.offset is not None:
            # A follower's offset is one that its leader has.
            logs[mark.leader] = _grown(logs[mark.leader], mark.offset, mark.row)
    return logs


def _leads(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    start = mark.offset if mark.offset is not None else log.end_min or 0
    epochs = (*_prefix(log.epochs, start), (mark.epoch, start))
    # From now on it takes records; those that it never answered are in no line.
    return replace(log, epochs=epochs, end_min=start, end_max=None, row=mark.row)


def _ends(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None or (mark.kind == LOADED and log.epochs[-1:] == ((mark.epoch, mark.offset),)):
        return log  # The log of a leader that has just been made, and takes records from now on.
    epochs = _prefix(log.epochs, mark.offset)
    return replace(log, epochs=epochs, end_min=mark.offset, end_max=mark.offset, row=mark.row)


def _truncated(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None:
        return log
    reaches = log.end_max is None or log.end_max > mark.offset
    return replace(
        log,
        epochs=_prefix(log.epochs, mark.offset),
        end_min=None if log.end_min is None else min(log.end_min, mark.offset),
        end_max=mark.offset if reaches else log.end_max,
        row=mark.row if reaches else log.row,
    )


def _fetched(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None:
        return log
    leader = logs.get(mark.leader) if mark.leader is not None else None
    end_max = None if mark.offset_max is None else max(mark.offset_max, mark.offset)
    epochs = log.epochs if leader is None else _prefix(leader.epochs, end_max)
    return replace(log, epochs=epochs, end_min=mark.offset, end_max=end_max, row=mark.row)


def _unseen(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    leader = logs.get(mark.leader) if mark.leader is not None else None
    return replace(log, epochs=log.epochs if leader is None else leader.epochs, end_max=None)


def _appended(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    return log if mark.offset is None else _grown(log, mark.offset, mark.row)


def _grown(log: KnownReplicaLog, end: int, row: Row) -> KnownReplicaLog:
    if log.end_min is not None and end <= log.end_min:
        return log
    end_max = None if log.end_max is None else max(log.end_max, end)
    return replace(log, end_min=end, end_max=end_max, row=row)


def _watermark(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    if mark.offset is None:
        return log
    # A high watermark never lies beyond the log's own end.
    return replace(_grown(log, mark.offset, mark.row), high_watermark=mark.offset)


def _stored(log: KnownReplicaLog, mark: LogMark, logs: Mapping[int, KnownReplicaLog]) -> KnownReplicaLog:
    """Apply files of a data directory, copied before a log's last line if they end sooner."""
    if mark.offset is None or (log.end_min is not None and mark.offset < log.end_min):
        return log
    epochs = _prefix(mark.epochs or log.epochs, mark.offset)
    return replace(log, epochs=epochs, end_min=mark.offset, end_max=mark.offset, row=mark.row)


def _prefix(epochs: Epochs, end: int | None) -> Epochs:
    return epochs if end is None else tuple((epoch, start) for epoch, start in epochs if start < end)


_STEPS = {
    LEADS: _leads,
    FOLLOWS: _ends,
    LOADED: _ends,
    TRUNCATED: _truncated,
    FETCHED: _fetched,
    UNSEEN: _unseen,
    APPENDED: _appended,
    WATERMARK: _watermark,
    STORED: _stored,
}
