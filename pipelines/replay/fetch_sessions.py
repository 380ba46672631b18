"""The replay of delayed fetches: ``observe(event) -> outcomes``, for one connection to one leader.

Pure. A connection carries one fetch at a time, and a fetch names many partitions, so the unit of replay is the
connection: what its fetches ask for, and the appends, commits and changes of leadership that can complete them, in one
order (`schemas.session_events`).

Rules (``ReplicaManager.fetchMessages``, ``DelayedFetch.tryComplete``, kafka-rules section 1.4): a fetch is answered at
once if it finds enough bytes, an error, nothing to ask for or no time to wait; else as soon as its partitions together
have min.bytes (each counted up to its own limit) below the log end, the high watermark or the last stable offset,
according to who asks; when a partition's leadership ends; or by its timer. In an incremental session a request lists
what changed, and asks for all that the session holds (KIP-227).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pipelines.replay import outcome as o
from pipelines.replay.purgatory.timing_wheel import expiry_interval_us
from pipelines.replay.versions import Rules
from schemas import session_events as s
from schemas.session_events import SessionEvent

#: A remote time below this is the handler's own: the fetch was not parked.
_AT_ONCE_US = 1_000
#: A fetch that took this long was parked, however slow its handler.
_PARKED_US = 5_000
#: Instants of two lines can be off against each other by as much: a line carries the time at which it was written.
_ORDER_SLACK_US = 50_000
#: Batches beyond a position that are kept one by one; older ones are then taken together, as a bound.
_ENTRIES_MAX = 1_024
_UNBOUNDED: Final = 1 << 62
_GONE_US: Final = 3_600_000_000

Key = tuple[str, int]


@dataclass(slots=True, eq=False)
class Entry:
    """Bytes that can be read: between `lowest_us` and `latest_us` they became readable."""

    base_offset: int
    lowest_us: int
    latest_us: int | None
    bytes_min: int
    bytes_max: int
    estimated: bool = False


@dataclass(slots=True)
class Position:
    """One partition as this connection reads it."""

    offset: int
    max_bytes: int
    entries: list[Entry] = field(default_factory=list)
    unstable: list[Entry] = field(default_factory=list)
    stable_offset: int | None = None

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        if len(self.entries) > _ENTRIES_MAX:
            # A reader that lags this far is not waiting for bytes; how many there are hardly matters.
            first, second = self.entries[0], self.entries[1]
            second.bytes_max += first.bytes_max
            del self.entries[0]

    def move(self, offset: int, max_bytes: int, delivered_us: int) -> None:
        """A request lists the partition. What lies below the offset is read; so is what may have come before the last
        answer, where only a count says at which offset it lies."""
        back = offset < self.offset
        self.offset, self.max_bytes = offset, max_bytes
        if self.entries:
            self.entries = [entry for entry in self.entries if not _is_read(entry, offset, delivered_us)]
        if self.unstable:
            self.unstable = [entry for entry in self.unstable if entry.base_offset >= offset]
        if back:
            self.entries.clear()  # out of range, or truncated: what lies from here on is not known


def _is_read(entry: Entry, offset: int, delivered_us: int) -> bool:
    return entry.base_offset < offset or (entry.estimated and entry.lowest_us <= delivered_us)


@dataclass(slots=True)
class FetchOutcome:
    """One fetch, as the rules see it.

    Attributes:
        lowest_us, highest_us: predicted completion; None where nothing could be predicted.
        cause: see `pipelines.replay.outcome`.
        closing: (topic, partition) that completed it, None if none did.
        parked: it waited.
        bytes_known: the sizes that decided it are known, not bounded.
        missing: what evidence lacks, if any does.
    """

    event: SessionEvent
    lowest_us: int | None
    highest_us: int | None
    cause: str
    closing: Key | None = None
    parked: bool = False
    bytes_known: bool = True
    missing: str | None = None


@dataclass(slots=True)
class Asked:
    """A fetch that is under way, or was until lately, with what can have completed it.

    Attributes:
        active: what the session asks for with it.
        told: why the response itself shows that it could not wait; None if it may have waited.
        entries: bytes beyond its offsets: (entry, partition, the partition's limit).
        moved: offsets that it asked from, of partitions that a later fetch has moved on.
        ends: what answers it whatever the bytes: (earliest, latest, partition, cause).
        since_us, until_us: when the fetch before it was answered, and when the next one came.
    """

    fetch: SessionEvent
    active: set[Key]
    partial: bool
    told: str | None = None
    entries: list[tuple[Entry, Key, int]] = field(default_factory=list)
    moved: dict[Key, int] = field(default_factory=dict)
    ends: list[tuple[int, int, Key, str]] = field(default_factory=list)
    since_us: int = 0
    until_us: int = _UNBOUNDED


class FetchSession:
    """Fetches of one connection, in their order.

    Args:
        rules: of the version of the broker that answers.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._positions: dict[Key, Position] = {}
        self._active: set[Key] = set()
        self._filled: set[Key] = set()
        self._known = True
        self._names_epochs = False
        self._asked: deque[Asked] = deque()
        self._last_us: int | None = None
        #: When the last fetch was taken up.
        self.fetched_us = 0

    @property
    def pending(self) -> int:
        """Fetches that are not judged yet."""
        return len(self._asked)

    @property
    def last_us(self) -> int:
        """Earliest instant of the event that was folded last; 0: none was."""
        return self._last_us or 0

    def is_gone(self, sealed_us: int) -> bool:
        """Nothing was fetched for an hour: brokers close idle connections after ten minutes."""
        return not self._asked and self.fetched_us < sealed_us - _GONE_US

    def observe(self, event: SessionEvent) -> Iterator[FetchOutcome]:
        """Fold one event; give the fetches that it shows to be over.

        Raises:
            ValueError: the event lies before the one that was folded last.
        """
        if self._last_us is not None and event.time_us < self._last_us:
            raise ValueError(f"events are out of order: {event.time_us} after {self._last_us}")
        self._last_us = event.time_us
        if event.kind != s.FETCH:
            self._wake(event)
        elif not self._asked or self._asked[-1].fetch.operation_id != event.operation_id:
            self._take(event)  # the same line can stand in two overlapping files
        while self._asked and self._asked[0].until_us + _ORDER_SLACK_US < event.time_us:
            yield judged(self._asked.popleft())

    def finish(self) -> Iterator[FetchOutcome]:
        """No more events."""
        while self._asked:
            yield judged(self._asked.popleft())

    def _take(self, event: SessionEvent) -> None:
        """A new request: it says where the connection reads now (``FetchSession``, ``FullFetchContext``)."""
        before = self._asked[-1] if self._asked else None
        self.fetched_us = event.time_us
        delivered_us = 0
        if before is not None:
            delivered_us = before.fetch.completed_us or 0
            before.until_us = event.time_us
            if before.fetch.isolation_level == 1:
                self._hold(before, delivered_us)
            self._recount(before)
        if event.session_epoch is None or event.session_epoch <= 0:
            self._active = set()
            self._known = True
        elif before is None and self._last_us == event.time_us and not self._positions:
            self._known = False  # the session began before the log did
        for key in zip(event.forgotten_topics, event.forgotten_partitions, strict=True):
            self._active.discard(key)
        for topic, partition, offset, limit in zip(
            event.topics, event.partitions, event.offsets, event.max_bytes, strict=True
        ):
            key = (topic, partition)
            position = self._positions.get(key)
            if position is None:
                self._positions[key] = Position(offset, limit)
            else:
                if before is not None:
                    before.moved[key] = position.offset
                position.move(offset, limit, delivered_us)
                if not position.entries:
                    self._filled.discard(key)
            self._active.add(key)
        asked = Asked(event, self._active, partial=not self._known, since_us=delivered_us)
        asked.told = reason_told(event, self._rules)
        self._names_epochs |= event.leader_epoch is not None and event.leader_epoch >= 0
        for key in self._filled:
            if asked.told is None and key in self._active:
                position = self._positions[key]
                asked.entries += [(entry, key, position.max_bytes) for entry in position.entries]
        self._asked.append(asked)

    def _recount(self, asked: Asked) -> None:
        """A fetch that was parked had found nothing: what was counted before it read is not there."""
        fetch = asked.fetch
        if (fetch.completed_us or 0) - (fetch.latest_us or 0) <= _PARKED_US:
            return
        for entry, key, _ in asked.entries:
            if entry.estimated and entry.latest_us is not None and entry.latest_us <= fetch.time_us:
                position = self._positions[key]
                if entry in position.entries:
                    position.entries.remove(entry)

    def _hold(self, asked: Asked, delivered_us: int) -> None:
        """A response tells the last stable offset: what lies at or above it waits until a marker moves it.

        It matters where a transaction was opened under another leader: this one's log does not show its start.
        """
        fetch = asked.fetch
        told = dict(zip(zip(fetch.told_topics, fetch.told_partitions, strict=True), fetch.told_stable, strict=True))
        full = fetch.session_epoch is None or fetch.session_epoch < 0
        for key in asked.active if full else told:
            position = self._positions.get(key)
            if position is None:
                continue
            position.stable_offset = told.get(key)
            if position.stable_offset is not None:
                held = [
                    entry
                    for entry in position.entries
                    if entry.base_offset >= position.stable_offset and entry.lowest_us <= delivered_us
                ]
                position.unstable += held
                position.entries = [entry for entry in position.entries if entry not in held]

    def _wake(self, event: SessionEvent) -> None:
        key = (event.topic or "", event.partition or 0)
        position = self._positions.get(key)
        if position is None:
            return
        if event.kind == s.BATCH:
            size = event.size_bytes
            least, most = (1, _UNBOUNDED) if size is None else (size, size)
            entry = Entry(event.base_offset or 0, event.time_us, event.latest_us, least, most, bool(event.estimated))
            held = position.stable_offset
            if event.unstable or (held is not None and entry.base_offset >= held):
                position.unstable.append(entry)
            else:
                self._readable(key, position, entry)
        elif event.kind == s.STABLE:
            below = event.base_offset or 0
            if position.stable_offset is not None and below > position.stable_offset:
                position.stable_offset = None
            freed = [entry for entry in position.unstable if entry.base_offset < below]
            position.unstable = [entry for entry in position.unstable if entry.base_offset >= below]
            for entry in freed:
                entry.lowest_us, entry.latest_us = event.time_us, event.latest_us
                self._readable(key, position, entry)
        else:
            cause = self._cause_of_end(event)
            for asked in self._asked:
                # The high watermark answers only what it was not told before (``DelayedFetch``, case H of 2.4 and 2.5).
                if key in asked.active and (cause != o.HIGH_WATERMARK or event.time_us >= asked.since_us):
                    asked.ends.append((event.time_us, event.latest_us or event.time_us, key, cause))

    def _cause_of_end(self, event: SessionEvent) -> str:
        """An epoch in the request is compared first, so whoever names one is fenced (KIP-320, since 2.1)."""
        if event.kind == s.COMMITTED:
            return o.HIGH_WATERMARK
        return o.FENCED_EPOCH if self._names_epochs and self._rules.fences_leader_epochs else o.LEADERSHIP_LOST

    def _readable(self, key: Key, position: Position, entry: Entry) -> None:
        if entry.estimated or entry.base_offset >= position.offset:
            position.add(entry)
            self._filled.add(key)
        offset = position.offset
        for asked in reversed(self._asked):
            offset = asked.moved.get(key, offset)
            if asked.told is None and key in asked.active and (entry.estimated or entry.base_offset >= offset):
                asked.entries.append((entry, key, position.max_bytes))


def reason_told(fetch: SessionEvent, rules: Rules) -> str | None:
    """Why a fetch that was answered at once could not wait, as far as request and response show it."""
    handled_us = fetch.latest_us or fetch.time_us
    reason = fetch.at_once_reason
    if (fetch.completed_us or handled_us) - handled_us > _AT_ONCE_US:
        return None
    return reason if reason != o.BEYOND_END or rules.fetches_beyond_the_end_complete else None


def judged(asked: Asked) -> FetchOutcome:
    """When the rules let a fetch be answered."""
    fetch = asked.fetch
    dequeued_us, handled_us = fetch.time_us, fetch.latest_us or fetch.time_us
    completed_us = fetch.completed_us or handled_us
    parked = completed_us - handled_us > _AT_ONCE_US
    if asked.told is not None:
        return FetchOutcome(fetch, dequeued_us, handled_us, asked.told, _first_filled(fetch))
    expires_us = expiry_interval_us(dequeued_us, handled_us, fetch.max_wait_ms or 0)
    best = FetchOutcome(fetch, *expires_us, o.TIMER, parked=parked)
    for lowest_us, latest_us, key, cause in asked.ends:
        if latest_us >= dequeued_us and latest_us < (best.highest_us or 0):
            best = FetchOutcome(fetch, max(lowest_us, dequeued_us), max(latest_us, handled_us), cause, key, parked)
    need = max(fetch.min_bytes or 0, 1)
    earliest = _reached(sorted((e.lowest_us, e.bytes_max, key, limit) for e, key, limit in asked.entries), need)
    proven = [(e.latest_us, e.bytes_min, key, limit) for e, key, limit in asked.entries if e.latest_us is not None]
    latest = _reached(sorted(proven), need)
    # Bytes that came as the timer fired raced with it: what the response carries tells who won.
    races = latest is not None and best.cause == o.TIMER and latest[0] >= (best.lowest_us or 0)
    if (
        latest is not None
        and latest[0] <= (best.highest_us or 0)
        and not (races and (fetch.response_bytes or 0) < need)
    ):
        cause = o.AT_ONCE if latest[0] <= handled_us else o.BYTES
        lowest_us = max(earliest[0] if earliest is not None else 0, dequeued_us)
        best = FetchOutcome(fetch, lowest_us, max(latest[0], handled_us), cause, latest[1], parked)
        best.bytes_known = need == 1 or all(entry.bytes_max < _UNBOUNDED for entry, _, _ in asked.entries)
    elif earliest is not None and earliest[0] < (best.lowest_us or 0):
        # Enough bytes may have been there by then; what there was is only bounded.
        best.lowest_us, best.bytes_known = max(earliest[0], dequeued_us), False
    if best.cause == o.TIMER and fetch.response_bytes and completed_us < (best.highest_us or 0) - _AT_ONCE_US:
        unproven = min(((e.lowest_us, key) for e, key, _ in asked.entries if e.latest_us is None), default=None)
        best.missing = o.APPEND_NOT_LOGGED
        best.closing = unproven[1] if unproven is not None else _first_filled(fetch)
        if unproven is not None:
            best.lowest_us, best.highest_us, best.cause = None, None, o.BYTES
    if asked.partial:
        best.missing = o.SESSION_NOT_LOGGED
    return best


def _reached(steps: list[tuple[int, int, Key, int]], need: int) -> tuple[int, Key] | None:
    """The first instant at which the bytes of (instant, bytes, partition, its limit), in order, reach what is asked."""
    of_partition: dict[Key, int] = {}
    total = 0
    for instant_us, size, key, limit in steps:
        before = of_partition.get(key, 0)
        after = min(before + size, limit)
        of_partition[key] = after
        total += after - before
        if total >= need:
            return instant_us, key
    return None


def _first_filled(fetch: SessionEvent) -> Key | None:
    if not fetch.filled_topics:
        return None
    return fetch.filled_topics[0], fetch.filled_partitions[0]
