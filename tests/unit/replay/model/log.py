"""What the rules need to know of a replica's log: where batches and segments lie, and the offsets on top of it.

Sizes are bytes. Nothing is stored but bounds of batches.

Source: ``Log`` (``UnifiedLog`` since 3.2), ``LogSegment.read``, ``LogOffsetMetadata``; KAFKA-9196.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

from highwater.pipelines.replay.truncation import EpochEnd, end_offset_for, truncated_epochs
from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.rules import Rules


class MessageOnlyOffset(ValueError):
    """An offset is compared by position that has none (``KafkaException`` of ``LogOffsetMetadata``)."""


class LogOffset(NamedTuple):
    """An offset and, unless it is known by its offset only, its segment and the position there, in bytes."""

    offset: int
    segment: int | None = None
    position: int = -1

    @property
    def message_only(self) -> bool:
        return self.segment is None

    def on_older_segment(self, other: LogOffset, tolerant: bool = False) -> bool:
        """Does this one lie on an older segment? `tolerant`: False, and no error, where either has no segment."""
        return self._segments(other, tolerant)[0] < self._segments(other, tolerant)[1]

    def on_same_segment(self, other: LogOffset, tolerant: bool = False) -> bool:
        if tolerant and (self.segment is None or other.segment is None):
            return False
        segments, others = self._segments(other, tolerant)
        return segments == others

    def position_diff(self, other: LogOffset) -> int:
        if not self.on_same_segment(other):
            raise MessageOnlyOffset(f"{self} and {other} are not on one segment")
        return self.position - other.position

    def _segments(self, other: LogOffset, tolerant: bool) -> tuple[int, int]:
        if self.segment is None or other.segment is None:
            if tolerant:
                return 0, 0
            raise MessageOnlyOffset(f"{self} or {other} has no position")
        return self.segment, other.segment


#: Where nothing is known (``LogOffsetMetadata.UnknownOffsetMetadata``).
UNKNOWN = LogOffset(-1)
_ZERO = LogOffset(0)


class Read(NamedTuple):
    """What a read found: where it started, how many bytes, and whether the first batch was cut off."""

    at: LogOffset
    size: int
    first_incomplete: bool = False


class _Batch(NamedTuple):
    base: int
    last: int
    segment: int
    position: int
    size: int


@dataclass
class ReplicaLog:
    """A replica's log; `high_watermark` and `first_unstable` included."""

    rules: Rules
    start_offset: int = 0
    end_offset: int = 0
    high_watermark: LogOffset = _ZERO
    #: offset of the first record of a transaction that is still open; None: there is none
    first_unstable: int | None = None
    epochs: tuple[tuple[int, int], ...] = ()  #: entries of ``leader-epoch-checkpoint``
    _segment: int = 0
    _position: int = 0
    _batches: list[_Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.end_offset = max(self.end_offset, self.start_offset)
        self._segment = self.end_offset

    @property
    def end(self) -> LogOffset:
        return LogOffset(self.end_offset, self._segment, self._position)

    def append(self, records: int, size: int, leader_epoch: int) -> tuple[int, int]:
        """Append a batch; returns its first and last offset."""
        first, last = self.end_offset, self.end_offset + records - 1
        self.assign_epoch(leader_epoch, first)
        self._batches.append(_Batch(first, last, self._segment, self._position, size))
        self.end_offset, self._position = last + 1, self._position + size
        return first, last

    def roll(self) -> None:
        """Start a new segment at the end."""
        self._segment, self._position = self.end_offset, 0
        if self.rules.roll_moves_high_watermark and self.high_watermark.offset >= self.end_offset:
            self.high_watermark = self.end

    def assign_epoch(self, leader_epoch: int, offset: int) -> None:
        """Note the start of an epoch (``LeaderEpochFileCache.assign``); a known or older one is left as it is."""
        if leader_epoch >= 0 and (not self.epochs or leader_epoch > self.epochs[-1][0]):
            self.epochs = (*(entry for entry in self.epochs if entry[1] < offset), (leader_epoch, offset))

    def end_offset_for(self, leader_epoch: int) -> EpochEnd:
        return end_offset_for(self.rules, self.epochs, self.end_offset, leader_epoch)

    def locate(self, offset: int) -> LogOffset:
        """An offset with its position: that of the batch it lies in. Message-only where the log does not hold it."""
        if offset == self.end_offset:
            return self.end
        batch = self._batch_of(offset)
        return LogOffset(offset, batch.segment, batch.position) if batch else LogOffset(offset)

    def high_watermark_position(self) -> LogOffset:
        """The high watermark with its position, looked up once if a follower had set it without."""
        if self.high_watermark.message_only:
            self.high_watermark = self.locate(self.high_watermark.offset)
        return self.high_watermark

    def last_stable(self) -> LogOffset:
        """Where a consumer of committed transactions stops: at an open transaction, or at the high watermark."""
        high_watermark = self.high_watermark_position()
        if self.first_unstable is not None and self.first_unstable < high_watermark.offset:
            return self.locate(self.first_unstable)
        return high_watermark

    def increment_high_watermark(self, to: LogOffset) -> bool:
        """As leader: move it forward, or onto a newer segment at the same offset (``maybeIncrementHighWatermark``).

        Raises:
            ValueError: beyond the end of the log.
        """
        if to.offset > self.end_offset:
            raise ValueError(f"high watermark {to.offset} beyond the log end offset {self.end_offset}")
        now = self.high_watermark_position()
        if now.offset < to.offset or (now.offset == to.offset and now.on_older_segment(to, tolerant=True)):
            self.high_watermark = to
            return True
        return False

    def set_high_watermark(self, offset: int) -> bool:
        """As follower: take the leader's, between the log's start and end (``maybeUpdateHighWatermark``)."""
        before = self.high_watermark.offset
        if offset >= self.end_offset:
            self.high_watermark = self.end
        else:
            self.high_watermark = LogOffset(max(offset, self.start_offset))
        return self.high_watermark.offset != before

    def read(self, offset: int, bytes_max: int, upper: LogOffset, min_one_message: bool) -> Read:
        """Read from an offset up to `upper`, exclusive, within one segment.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, before the start or beyond the end of the log.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise KafkaError(Error.OFFSET_OUT_OF_RANGE)
        if offset >= upper.offset:
            return Read(upper if offset == upper.offset else self.locate(offset), 0)
        batch = self._batch_of(offset)
        if batch is None:
            return Read(self.end, 0)
        bytes_max = max(bytes_max, batch.size) if min_one_message else bytes_max
        if upper.segment == batch.segment:
            end = upper.position
        else:
            end = max(b.position + b.size for b in self._batches if b.segment == batch.segment)
        at = LogOffset(offset, batch.segment, batch.position)
        return Read(at, max(0, min(end - batch.position, bytes_max)), bytes_max < batch.size)

    def truncate_to(self, offset: int) -> None:
        """Throw away what lies at and beyond an offset; no effect beyond the end."""
        if offset >= self.end_offset:
            return
        while self._batches and self._batches[-1].last >= offset:
            gone = self._batches.pop()
            self._segment, self._position = gone.segment, gone.position
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.epochs = truncated_epochs(self.epochs, offset)
        if self.high_watermark.offset > offset:
            self.high_watermark = self.end

    def _batch_of(self, offset: int) -> _Batch | None:
        at = bisect_right(self._batches, offset, key=lambda batch: batch.base) - 1
        batch = self._batches[at] if at >= 0 else None
        if batch is not None and batch.last >= offset:
            return batch
        return self._batches[at + 1] if at + 1 < len(self._batches) else None  # a gap: the batch behind it
