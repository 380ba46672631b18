"""The leader's log as its requests show it: when each batch was appended, and when consumers may read it.

Pure. Delayed fetches wait for bytes (``FetchIsolation``, ``DelayedFetch.tryComplete``). A follower waits for bytes
below the log end. A consumer waits for bytes below the high watermark, with read_committed below the last stable
offset. So each batch of a leadership becomes a `Wake` with three intervals: when it passed each of these offsets.

Some appends are logged without an offset: coordinators' records, transaction markers, acks=0. Such a batch is placed at
the known log end, which counts the records before it. Appends that no request shows follow from followers' positions. A
fetch offset beyond the known end proves an append before the response that carried it out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from highwater.pipelines.replay.wakes import BATCH, CHECK, LEADER_END, LEADER_START, ROLL, STABLE, Wake
from highwater.schemas.events import Event, parse_connection

#: How long an append that no request shows waits for the other followers that carry it, microseconds.
_SETTLE_US = 1_000_000
#: Microseconds from reading to answer beyond which a fetch was parked.
_PARKED_US = 1_000
ACKS_ALL = -1
#: Instants computed from two lines can contradict each other by as much: two ticks of the log's clock.
_CLOCK_US = 2_000
#: Segments begun while the broker followed that are kept until it leads: the high watermark lags by few.
_ROLLS_MAX = 64


@dataclass(slots=True, eq=False)
class Batch:
    """A batch whose append or commit time is still open, or the start of a log segment (`rolled_at` is set)."""

    base_offset: int
    size_bytes: int | None
    appended_lowest_us: int
    appended_highest_us: int
    producer: str | None = None
    control: bool = False
    estimated: bool = False
    #: When its request was answered without error, with acks=all: the high watermark had passed it.
    acked_us: int | None = None
    committed_lowest_us: int | None = None
    committed_highest_us: int | None = None
    unstable: bool = False
    #: It was appended some time after its request was handled.
    deferred: bool = False
    #: End offset, exclusive, of an append whose time followers show better.
    end_offset: int = 0
    #: Fetches that prove an append without a request: (completed, connection), the earliest first.
    carriers: list[tuple[int, str]] | None = None
    #: First offset of a new segment. The entry is then no batch: the high watermark passes it on entering the segment.
    rolled_at: int | None = None


class BatchLog:
    """Batches and transactions of one leadership.

    Attributes:
        end_offset: log end offset. Exact, or a lower bound while `open_ended`.
        open_ended: True if the number of records in the last batch is unknown.
        uncommitted: batches at or above the high watermark, by base offset.
    """

    def __init__(self) -> None:
        self.end_offset = 0
        self.open_ended = True
        self.leader_epoch: int | None = None
        self.uncommitted: deque[Batch] = deque()
        self._open: dict[str, int] = {}
        self._ended: dict[str, tuple[int | None, int]] = {}
        #: Producers whose transactions began here: an earlier one ended here, or the log began with this leader.
        self._begin_here: set[str] = set()
        self._leads_from: int | None = None
        self._inferred: list[Batch] = []
        self._last: Batch | None = None
        self._since_us = 0
        #: Parked fetches may name an older epoch, and have not been checked since.
        self._unchecked = False
        self._started_at = 0
        self._checks: list[Wake] = []
        #: Segments begun while the broker did not lead, and one without its first batch.
        self._rolls: deque[Batch] = deque(maxlen=_ROLLS_MAX)
        self._rolling: Batch | None = None

    def starts(self, event: Event, newly_leader: bool) -> Iterator[Wake]:
        """Start a leader epoch, and yield wakes (events that may complete waiting fetches) of batches that end with the
        old one.

        Args:
            newly_leader: the broker did not lead the previous epoch. Its batches are then dropped.
        """
        if newly_leader:
            yield from self.ends(event)
            self.end_offset = event.offset or 0
            self.open_ended = event.offset is None
            # Open transactions from before are unknown here: consumers' responses show their last stable offset.
            self._open, self._ended, self._last = {}, {}, None
            self._begin_here, self._leads_from = set(), event.offset
            self._take_up_rolls(event)
        self.leader_epoch = event.leader_epoch
        self._since_us = event.time_us
        self._unchecked, self._started_at = not newly_leader, event.high_watermark or 0
        yield Wake(
            LEADER_START,
            event.offset,
            appended_lowest_us=event.earliest_us,
            appended_highest_us=event.time_us,
            high_watermark=event.high_watermark,
            leader_epoch=event.leader_epoch,
        )

    def ends(self, event: Event) -> Iterator[Wake]:
        """End the leadership and yield a wake for each remaining batch. No uncommitted batch is committed in this
        leadership.
        """
        yield from self.settle(None)
        for batch in self.uncommitted:
            if batch.rolled_at is not None:
                self._rolls.append(batch)
            elif batch.carriers is None:
                yield self._make_wake(batch)
        self.uncommitted.clear()
        self._rolling = None

    def ended(self, event: Event) -> Iterator[Wake]:
        """End the leadership as `ends` does, and yield a wake that ends all waiting fetches."""
        yield from self.ends(event)
        yield Wake(
            LEADER_END,
            appended_lowest_us=event.earliest_us,
            appended_highest_us=max(event.time_us, event.completed_us or 0),
            leader_epoch=event.leader_epoch,
        )

    def begins_transaction(self, event: Event) -> bool:
        """Return True if the event's producer has no open transaction in this log, so that the event begins one."""
        return event.producer is not None and not event.control and event.producer not in self._open

    def appended(self, event: Event, deferred: bool = False, placed: int | None = None) -> int:
        """Append the records of a request and return their base offset, or its best estimate.

        Args:
            deferred: the append came after the request was handled. Followers' fetches then bound its time.
            placed: offset of a transaction marker, derived from the offsets around it. None for other appends.
        """
        estimated = event.offset is None or event.offset < 0
        shown = self._take_inferred(event)
        counted = self.end_offset if placed is None else placed
        base = event.offset if event.offset is not None and not estimated else counted
        if shown is not None and estimated:
            base = shown.base_offset
        acked_us = event.completed_us if event.acks == ACKS_ALL and event.error_code == 0 else None
        instants = event.earliest_us, event.time_us
        batch = Batch(base, event.size_bytes, *instants, event.producer, bool(event.control), estimated, acked_us)
        if deferred:
            self._defer(batch, event.time_us)
        self._begin_segment(batch)
        self._insert(batch)
        self._check(max(event.earliest_us, self._since_us), event.time_us)
        self._last = batch
        if base + (event.records or 1) > self.end_offset:
            self.end_offset = base + (event.records or 1)
            self.open_ended = event.records is None
        if event.producer is not None:
            if batch.control:
                # A transaction that the leader took over was opened before its log here begins.
                self._ended[event.producer] = (self._open.pop(event.producer, None), base)
                # The producer's next transaction may have been taken up before, and appended after its marker.
                beyond = [
                    other
                    for other in self.uncommitted
                    if other.producer == event.producer and not other.control and other.base_offset > base
                ]
                if beyond:
                    first = min(beyond, key=lambda other: other.base_offset)
                    self._open[event.producer] = first.base_offset
                    if first.appended_highest_us < batch.appended_lowest_us and first.acked_us is not None:
                        # The append was verified first: by its offset, it came after the marker.
                        first.appended_lowest_us = batch.appended_lowest_us
                        self._defer(first, max(first.acked_us, batch.appended_highest_us))
            else:
                self._open.setdefault(event.producer, base)
        return base

    def _defer(self, batch: Batch, latest_us: int) -> None:
        """Mark the batch as appended by `latest_us`. Followers' fetches narrow the time."""
        batch.deferred, batch.appended_highest_us, batch.end_offset = True, latest_us, batch.base_offset + 1
        if batch.carriers is None:
            batch.carriers = [(latest_us, "")]
            self._inferred.append(batch)

    def rolled(self, event: Event, leads: bool, moves_high_watermark: bool) -> None:
        """Begin a new log segment.

        Reads from older segments complete once the relevant end offset is in the new segment
        (``LogOffsetMetadata.onOlderSegment``, ``DelayedFetch.tryComplete`` case F).

        Args:
            event: the roll. Its offset is None up to 0.11: then it is the offset of the next append.
            leads: True if the broker leads the partition. Otherwise the segment is kept until it does.
            moves_high_watermark: True if a high watermark at the log end moves into the new segment at the roll, False
                if it moves there with the first batch.
        """
        at = self.end_offset if event.offset is None else event.offset
        roll = Batch(
            at - moves_high_watermark,
            None,
            event.earliest_us,
            event.time_us,
            estimated=event.offset is None,
            rolled_at=at,
        )
        if leads:
            self._insert(roll)
            self._rolling = roll
        elif event.offset is not None:
            self._rolls.append(roll)

    def _begin_segment(self, first: Batch) -> None:
        """Set the time and offset of a segment roll from the segment's first batch, whose append checks waiting
        fetches.
        """
        roll, self._rolling = self._rolling, None
        if roll is None or first.appended_lowest_us > roll.appended_highest_us + _CLOCK_US:
            return
        if roll.estimated and roll in self.uncommitted:
            self.uncommitted.remove(roll)
            roll.base_offset += first.base_offset - (roll.rolled_at or 0)
            roll.rolled_at = first.base_offset
            self._insert(roll)
        roll.appended_highest_us = max(roll.appended_highest_us, first.appended_highest_us)

    def _take_up_rolls(self, event: Event) -> None:
        """Insert the segments that the new leader began while it was a follower, except truncated ones."""
        for roll in self._rolls:
            if event.offset is None or (roll.rolled_at or 0) <= event.offset:
                roll.appended_lowest_us, roll.appended_highest_us = event.earliest_us, event.time_us
                self._insert(roll)
        self._rolls.clear()

    def fetched(self, event: Event) -> None:
        """Apply a follower's fetch. The log reached its offset before the previous response completed."""
        offset = event.offset
        if offset is None:
            return
        for batch in self._inferred:
            if offset > batch.base_offset:
                _note_carrier(batch, event)
        if offset > self.end_offset:
            if not self.open_ended and event.previous_completed_us is not None:
                self._infer(event)
            self.end_offset = offset
            self.open_ended = False
        elif offset == self.end_offset:
            self.open_ended = False
        elif (event.completed_us or 0) - event.time_us > _PARKED_US:
            self._recount(offset, event)

    def _recount(self, offset: int, event: Event) -> None:
        """Lower the counted log end to `offset`, where a follower found no data. Drop estimated batches beyond it."""
        beyond = [batch for batch in self.uncommitted if batch.base_offset >= offset]
        counted = [*beyond, self._last] if self._last is not None else beyond
        if counted and all(batch.estimated and batch.appended_highest_us < event.earliest_us for batch in counted):
            for batch in beyond:
                self.uncommitted.remove(batch)
                if batch in self._inferred:
                    self._inferred.remove(batch)
            self.end_offset, self.open_ended = offset, False

    def _infer(self, event: Event) -> None:
        """Add a batch whose produce request is not in the logs: from the known log end to a follower's fetch offset."""
        batch = Batch(
            self.end_offset, None, 0, event.previous_completed_us or event.time_us, estimated=True, carriers=[]
        )
        batch.end_offset = event.offset or 0
        _note_carrier(batch, event)
        self._insert(batch)
        self._inferred.append(batch)

    def _take_inferred(self, event: Event) -> Batch | None:
        """Remove and return the inferred batch that this produce request wrote. None if no inferred batch matches."""
        for batch in self._inferred:
            if batch.deferred or not batch.estimated:
                continue
            if event.offset is not None and event.offset >= 0:
                fits = batch.base_offset <= event.offset < batch.end_offset
            else:
                carried_us = batch.carriers[0][0] if batch.carriers else batch.appended_highest_us
                fits = batch.appended_lowest_us <= event.time_us and event.earliest_us <= carried_us + _CLOCK_US
            if fits:
                self._inferred.remove(batch)
                if batch.committed_highest_us is None:
                    self.uncommitted.remove(batch)
                return batch
        return None

    def _insert(self, batch: Batch) -> None:
        at = len(self.uncommitted)
        while at and self.uncommitted[at - 1].base_offset > batch.base_offset:
            at -= 1
        self.uncommitted.insert(at, batch)

    def committed(self, base_below: int, highest_us: int) -> Iterator[Wake]:
        """Yield wakes for batches with a base offset below `base_below`, which the high watermark passed by
        `highest_us`.
        """
        while self.uncommitted and self.uncommitted[0].base_offset < base_below:
            batch = self.uncommitted.popleft()
            # The line of the fetch that moved the high watermark may be late: the answer came after the move.
            passed_us = highest_us if batch.acked_us is None else min(highest_us, batch.acked_us)
            batch.committed_lowest_us = min(batch.committed_lowest_us or passed_us, passed_us)
            batch.committed_highest_us = passed_us
            if batch.base_offset >= self._started_at:  # else it was passed before the epoch began
                self._check(max(batch.committed_lowest_us, self._since_us), passed_us)
            first_open = self._find_first_open()
            batch.unstable = first_open is not None and first_open <= batch.base_offset
            if batch.carriers is None:
                yield self._make_wake(batch)
            if batch.control and batch.producer is not None:
                yield from self._end_transaction(batch, passed_us)

    def _check(self, lowest_us: int, highest_us: int) -> None:
        """Record that an append or high watermark move, between these two times, checked the partition's waiting
        fetches.
        """
        if self._unchecked:
            self._unchecked = False
            self._checks.append(
                Wake(
                    CHECK,
                    appended_lowest_us=min(lowest_us, highest_us),
                    appended_highest_us=highest_us,
                    leader_epoch=self.leader_epoch,
                )
            )

    def settle(self, now_us: int | None) -> Iterator[Wake]:
        """Yield wakes for recorded checks, and for inferred batches that followers can no longer prove to be earlier.

        Args:
            now_us: time of the current event, us. None yields all of them.
        """
        yield from self._checks
        self._checks = []
        if not self._inferred:
            return
        still: list[Batch] = []
        for batch in self._inferred:
            done_us = batch.committed_highest_us
            if now_us is None or (done_us is not None and done_us + _SETTLE_US <= now_us):
                yield self._make_wake(batch)
            else:
                still.append(batch)
        self._inferred = still

    def _end_transaction(self, marker: Batch, highest_us: int) -> Iterator[Wake]:
        """Yield a wake if a committed transaction marker moves the last stable offset past its transaction."""
        ended = self._ended.get(marker.producer or "")
        if ended is None or ended[1] != marker.base_offset:
            return
        del self._ended[marker.producer or ""]
        first_open = self._find_first_open()
        if first_open is None or first_open > (marker.base_offset if ended[0] is None else ended[0]):
            began_here = marker.producer in self._begin_here or self._leads_from == 0
            yield Wake(
                STABLE,
                first_open if first_open is not None else 1 << 62,
                transaction_offset=ended[0] if began_here else None,
                appended_lowest_us=marker.committed_lowest_us,
                appended_highest_us=highest_us,
                leader_epoch=self.leader_epoch,
            )
        self._begin_here.add(marker.producer or "")

    def _make_wake(self, batch: Batch) -> Wake:
        lowest_us, highest_us = batch.appended_lowest_us, batch.appended_highest_us
        carrier, without = None, None
        if batch.carriers is not None:
            batch.carriers.sort()
            highest_us, carrier = batch.carriers[0]
            without = batch.carriers[1][0] if len(batch.carriers) > 1 else None
        return Wake(
            BATCH if batch.rolled_at is None else ROLL,
            batch.base_offset if batch.rolled_at is None else batch.rolled_at,
            batch.size_bytes,
            batch.estimated,
            min(lowest_us, highest_us),
            highest_us,
            None if batch.committed_highest_us is None else batch.committed_lowest_us,
            batch.committed_highest_us,
            batch.unstable,
            leader_epoch=self.leader_epoch,
            carrier=carrier,
            without_carrier_us=without,
        )

    def _find_first_open(self) -> int | None:
        """Return the first offset of the oldest open transaction, or None. A transaction stays open until its marker
        commits.
        """
        ended = (marker if first is None else first for first, marker in self._ended.values())
        return min((*self._open.values(), *ended), default=None)


def _note_carrier(batch: Batch, event: Event) -> None:
    """Record that the response to the follower's previous fetch contained the batch.

    If that fetch waited in the purgatory, the batch was appended after the fetch had read the log.
    """
    completed_us, handled_us = event.previous_completed_us, event.previous_handled_us
    connection = parse_connection(event.chain)
    if batch.carriers is None or completed_us is None or any(known == connection for _, known in batch.carriers):
        return
    batch.carriers.append((completed_us, connection))
    if handled_us is not None and completed_us - handled_us > _PARKED_US:
        batch.appended_lowest_us = max(batch.appended_lowest_us, event.previous_dequeued_us or 0)
