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

from highwater.pipelines.base.freeze import Freezer
from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.context import History, find_value
from highwater.pipelines.kafka.versions import Rules
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.fetch_rules import (
    SLACK_US,
    UNBOUNDED,
    Asked,
    Entry,
    FetchOutcome,
    Key,
    judged,
    reason_told,
)
from highwater.schemas import session_events as s
from highwater.schemas.session_events import Origin, SessionEvent

#: A fetch that took this long was parked, however slow its handler.
_PARKED_US = 5_000
#: Instants of two lines can be off against each other by as much: a line carries the time at which it was written.
_ORDER_SLACK_US = 50_000
#: Batches beyond a position that are kept one by one; older ones are then taken together, as a bound.
_ENTRIES_MAX = 1_024
_GONE_US: Final = 3_600_000_000
#: Default of remote.fetch.max.wait.ms (KIP-1018).
DEFAULT_REMOTE_WAIT_MS: Final = 500


@dataclass(slots=True)
class Position:
    """Fetch offset of a connection in one partition, and the readable data from there."""

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
        """Move to the fetch offset of a new request, and drop data that was already delivered.

        Data below the offset was delivered. So were estimated entries from before `delivered_us`, the last answer,
        because their offsets are only counted.
        """
        back = offset < self.offset
        self.offset, self.max_bytes = offset, max_bytes
        if self.entries:
            self.entries = [entry for entry in self.entries if not _is_read(entry, offset, delivered_us)]
        if self.unstable:
            self.unstable = [entry for entry in self.unstable if entry.base_offset >= offset]
        if back:
            self.entries.clear()  # out of range, or truncated: the bytes from this offset on are unknown


def _is_read(entry: Entry, offset: int, delivered_us: int) -> bool:
    return entry.base_offset < offset or (entry.estimated and entry.lowest_us <= delivered_us)


class FetchSession:
    """Replay of the fetches of one connection, in their order.

    Args:
        rules: behaviour of the version of the answering broker.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._positions: dict[Key, Position] = {}
        self._active: set[Key] = set()
        self._filled: set[Key] = set()
        self._known = True
        self._names_epochs = False
        self._asked: deque[Asked] = deque()
        #: First offset of the newest segment that the relevant end offset is in, and partitions read from before it.
        self._segments: dict[Key, int] = {}
        self._behind: set[Key] = set()
        #: Partitions that the broker follows.
        self._followed: set[Key] = set()
        #: Offset at which the leadership began. Bytes below it exist, but no request in this log shows their sizes.
        self._starts: dict[Key, int] = {}
        #: Start of the broker's own log. Lower offsets are in the remote tier.
        self._local_starts: dict[Key, int] = {}
        #: When a read from there failed last.
        self._tier_failed_us: dict[Key, int] = {}
        #: History of remote.fetch.max.wait.ms.
        self.remote_waits: History = ()
        #: Segments that the last stable offset has not reached.
        self._unstable_rolls: dict[Key, list[int]] = {}
        #: Moves of the high watermark that are newer than the one last sent: (earliest, latest, partition).
        self._moves: list[tuple[int, int, Key]] = []
        #: Fetches that came before one with a smaller number may have: a connection takes up one after the other.
        self._early: list[SessionEvent] = []
        self._sequence: int | None = None
        self._last_us: int | None = None
        #: When the last fetch was taken up.
        self.fetched_us = 0

    @property
    def pending(self) -> int:
        """Return the number of fetches without a prediction yet."""
        return len(self._asked) + len(self._early)

    @property
    def last_us(self) -> int:
        """Return the earliest time of the last observed event, us since the epoch. 0 before the first event."""
        return self._last_us or 0

    def is_gone(self, sealed_us: int) -> bool:
        """Return True if no fetch arrived in the hour before `sealed_us`, the end of the final part of the replay.

        Brokers close idle connections after 10 min. The last fetch of a dropped session is decided in the same run.
        """
        return not self._early and self.fetched_us < sealed_us - _GONE_US

    def freeze(self) -> bytes:
        """Serialize this session. `thawed` restores it."""
        return FREEZER.freeze(self, (self.rules,))

    @classmethod
    def thawed(cls, frozen: bytes, rules: Rules) -> FetchSession:
        """Restore a session from `freeze`, with the rules of the version as known now."""
        session = FREEZER.thaw(frozen, (rules,))
        assert isinstance(session, cls)
        return session

    def observe(self, event: SessionEvent) -> Iterator[FetchOutcome]:
        """Apply one event and yield the fetches that ended before it.

        Raises:
            ValueError: the event is older than the previous one.
        """
        if self._last_us is not None and event.time_us < self._last_us:
            raise ValueError(f"events are out of order: {event.time_us} after {self._last_us}")
        self._last_us = event.time_us
        if event.kind == s.FETCH:
            self._early.append(event)
        self._take_due(event.time_us if event.kind != s.LEADER_END else NEVER_US)
        if event.kind != s.FETCH:
            self._apply_wake(event)
        while self._asked and self._asked[0].until_us + _ORDER_SLACK_US < event.time_us:
            yield judged(self._asked.popleft(), self.rules)

    def finish(self) -> Iterator[FetchOutcome]:
        """Yield the results of the remaining fetches. No event follows."""
        self._take_due(NEVER_US)
        while self._asked:
            yield judged(self._asked.popleft(), self.rules)

    def _take_due(self, now_us: int) -> None:
        """Handle held fetches in correlation id order. A fetch whose predecessor is missing waits up to `SLACK_US`.

        Args:
            now_us: time of the current event, us.
        """
        if not self._early:
            return
        self._early.sort(key=lambda fetch: fetch.sequence or 0)
        while self._early:
            fetch = self._early[0]
            is_next = fetch.sequence is None or self._sequence is None or fetch.sequence <= self._sequence + 1
            if not is_next and fetch.time_us + SLACK_US >= now_us:
                return
            del self._early[0]
            if self._asked and self._asked[-1].fetch.operation_id == fetch.operation_id:
                continue  # the same line in two overlapping files
            if fetch.sequence is not None and self._asked and fetch.sequence == (self._sequence or 0) + 1:
                time_us = max(fetch.time_us, self.fetched_us + 1)
                fetch = fetch._replace(time_us=time_us, latest_us=max(fetch.latest_us or 0, time_us))
            self._sequence = fetch.sequence
            self._take(fetch)

    def _take(self, event: SessionEvent) -> None:
        """Handle a fetch request, which shows the current fetch offsets (``FetchSession``, ``FullFetchContext``)."""
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
            (self._behind.add if offset < self._segments.get(key, 0) else self._behind.discard)(key)
        asked = Asked(event, self._active, partial=not self._known)
        asked.followed = bool(self._followed) and not self._followed.isdisjoint(self._active)
        asked.answered_at_once = reason_told(event, self.rules)
        if self._local_starts:
            self._read_remotely(asked)
        self._names_epochs |= event.leader_epoch is not None and event.leader_epoch >= 0
        if asked.answered_at_once is None and (event.min_bytes or 0) > 1:
            asked.entries += self._yield_unread(event)
        for key in self._filled:
            if asked.answered_at_once is None and key in self._active:
                position = self._positions[key]
                asked.entries += [(entry, key, position.max_bytes) for entry in position.entries]
        if asked.answered_at_once is None:
            asked.ends += [
                (event.time_us, event.time_us, key, o.OLDER_SEGMENT) for key in sorted(self._behind & self._active)
            ]
            asked.ends += [
                (lowest_us, max(latest_us, event.time_us), key, o.HIGH_WATERMARK)
                for lowest_us, latest_us, key in self._moves
                if key in self._active
            ]
        # What counts as sent is what a fetch read first, before it moved the high watermark itself, whatever its
        # final response contains (``Replica.lastSentHighWatermark``, 2.4 and 2.5; case H, KIP-392).
        self._moves = [move for move in self._moves if move[0] >= event.time_us]
        self._asked.append(asked)
        if asked.answered_at_once is None and event.isolation_level == 1:
            self._hold_parked(asked)

    def _read_remotely(self, asked: Asked) -> None:
        """Mark a fetch below the broker's local log start offset as a read from remote storage (KIP-405)."""
        keys = self._local_starts.keys() & asked.active
        asked.remote = min((key for key in keys if self._positions[key].offset < self._local_starts[key]), default=None)
        if asked.remote is not None:
            fetch = asked.fetch
            asked.remote_wait_ms = fetch.max_wait_ms or 0
            asked.failed_us = [at_us for key in keys if (at_us := self._tier_failed_us.get(key)) is not None]
            if self.rules.bounds_remote_reads:
                asked.remote_wait_ms = int(find_value(self.remote_waits, fetch.time_us) or DEFAULT_REMOTE_WAIT_MS)

    def _yield_unread(self, fetch: SessionEvent) -> Iterator[tuple[Entry, Key, int]]:
        """Yield (data, partition, max bytes) for offsets below this leadership's start that the fetch has not read."""
        for key in self._active:
            position = self._positions[key]
            if position.offset < self._starts.get(key, 0):
                entry = Entry(position.offset, fetch.time_us, fetch.latest_us, 1, UNBOUNDED)
                yield entry, key, position.max_bytes

    def _recount(self, asked: Asked) -> None:
        """Drop entries with counted offsets from before a waiting fetch read the log: it found no data there."""
        fetch = asked.fetch
        if (fetch.completed_us or 0) - (fetch.latest_us or 0) <= _PARKED_US:
            return
        for entry, key, _ in asked.entries:
            if entry.estimated and entry.latest_us is not None and entry.latest_us <= fetch.time_us:
                position = self._positions[key]
                if entry in position.entries:
                    position.entries.remove(entry)

    def _hold_parked(self, asked: Asked) -> None:
        """Mark committed entries as not stable if a fetch for at least one byte waited.

        The fetch found no bytes below the last stable offset. So the entries belong to an open transaction or follow
        one. An earlier leader's log shows its start.
        """
        fetch = asked.fetch
        waited_us = (fetch.completed_us or 0) - (fetch.latest_us or fetch.time_us)
        if (fetch.min_bytes or 0) > 1 or waited_us <= _PARKED_US:
            return
        for key in asked.active:
            position = self._positions[key]
            held = [entry for entry in position.entries if (entry.latest_us or fetch.time_us) < fetch.time_us]
            if held or position.offset < self._starts.get(key, 0):
                position.stable_offset = position.offset
                position.unstable += held
                position.entries = [entry for entry in position.entries if entry not in held]
                asked.entries = [entry for entry in asked.entries if entry[0] not in held]

    def _hold(self, asked: Asked, delivered_us: int) -> None:
        """Hold back entries at or above the last stable offset of a response until a transaction marker moves it.

        This matters for a transaction that began under another leader, because this leader's log does not show its
        start.
        """
        fetch = asked.fetch
        stable = dict(zip(zip(fetch.told_topics, fetch.told_partitions, strict=True), fetch.told_stable, strict=True))
        full = fetch.session_epoch is None or fetch.session_epoch < 0
        for key in asked.active if full else stable:
            position = self._positions.get(key)
            if position is None:
                continue
            position.stable_offset = stable.get(key)
            if position.stable_offset is not None:
                held = [
                    entry
                    for entry in position.entries
                    if entry.base_offset >= position.stable_offset and entry.lowest_us <= delivered_us
                ]
                position.unstable += held
                position.entries = [entry for entry in position.entries if entry not in held]

    def _apply_wake(self, event: SessionEvent) -> None:
        key = (event.topic or "", event.partition or 0)
        position = self._positions.get(key)
        if event.kind == s.ROLL:
            self._apply_roll(key, event, position)
        elif event.kind == s.LEADER_START:
            self._followed.discard(key)
            self._starts[key] = event.base_offset or 0
        elif event.kind == s.LOCAL_START:
            self._local_starts[key] = event.base_offset or 0
        if position is None or event.kind in (s.ROLL, s.LOCAL_START):
            return
        if event.kind == s.TIER_FAILED:
            self._tier_failed_us[key] = event.time_us
            for asked in self._asked:
                if asked.remote is not None and key in asked.active:
                    asked.failed_us.append(event.time_us)
            return
        if event.kind == s.LEADER_START:
            self._fence(key, event)
            return
        self._check_fenced(key, event)
        if event.kind in (s.BATCH, s.REPLICATED):
            if event.kind == s.REPLICATED:
                self._followed.add(key)
            size = event.size_bytes
            least, most = (1, UNBOUNDED) if size is None else (size, size)
            entry = Entry(event.base_offset or 0, event.time_us, event.latest_us, least, most, bool(event.estimated))
            held = position.stable_offset
            if event.unstable or (held is not None and entry.base_offset >= held):
                position.unstable.append(entry)
            else:
                self._add_readable(key, position, entry)
        elif event.kind == s.STABLE:
            below, began = event.base_offset or 0, event.transaction_offset
            if position.stable_offset is not None and began is not None and began > position.stable_offset:
                return  # it began behind the one that holds the last stable offset back
            if position.stable_offset is not None and began is None and self._is_waiting(key, event):
                return  # so did it, or an earlier leader's log has another one that is open
            if position.stable_offset is not None and below > position.stable_offset:
                position.stable_offset = None
            freed = [entry for entry in position.unstable if entry.base_offset < below]
            position.unstable = [entry for entry in position.unstable if entry.base_offset >= below]
            for entry in freed:
                entry.lowest_us, entry.latest_us = event.time_us, event.latest_us
                self._add_readable(key, position, entry)
            rolls = self._unstable_rolls.pop(key, [])
            if reached := [first for first in rolls if first <= below]:
                self._begin_segment(key, max(reached), event)
            if left := [first for first in rolls if first > below]:
                self._unstable_rolls[key] = left
        elif event.kind == s.COMMITTED:
            self._moves.append((event.time_us, event.latest_us or event.time_us, key))
            self._end(key, event, o.HIGH_WATERMARK)  # DelayedFetch case H, 2.4 and 2.5 (KIP-392)
        elif event.kind == s.LEADER_END:
            self._end(key, event, self._choose_end_cause())

    def _is_waiting(self, key: Key, event: SessionEvent) -> bool:
        """Return True if a fetch of the partition kept waiting after the event: the last stable offset did not move."""
        moved_us = event.latest_us or event.time_us
        return any(
            key in asked.active and (asked.fetch.completed_us or 0) > moved_us + _ORDER_SLACK_US
            for asked in self._asked
        )

    def _fence(self, key: Key, event: SessionEvent) -> None:
        """Mark waiting fetches that name an older epoch than the one the leader now leads.

        The new epoch itself does not check any fetch (``Partition.makeLeader``). The next append or high watermark move
        does (``DelayedFetch.tryComplete`` case E; KIP-320, since 2.1).
        """
        if not self._names_epochs or not self.rules.fences_leader_epochs:
            return
        for asked in self._asked:
            fetch = asked.fetch
            in_session = fetch.session_epoch is not None and fetch.session_epoch > 0
            forgotten = in_session and not self.rules.sessions_keep_leader_epochs
            if asked.answered_at_once is None and asked.fenced is None and key in asked.active and not forgotten:
                asked.fenced = key, event.time_us

    def _check_fenced(self, key: Key, event: SessionEvent) -> None:
        """End waiting fetches of the partition that name an older epoch (``DelayedFetch.tryComplete`` case E; KIP-320,
        2.1).

        Any partition of a fetch can trigger the check, which looks at all its partitions.
        """
        latest_us = event.latest_us
        for asked in self._asked:
            if asked.fenced is not None and key in asked.active and latest_us is not None:
                fenced_key, since_us = asked.fenced
                asked.ends.append((max(event.time_us, since_us), max(latest_us, since_us), fenced_key, o.FENCED_EPOCH))

    def _apply_roll(self, key: Key, event: SessionEvent, position: Position | None) -> None:
        first = event.base_offset or 0
        held = position.stable_offset if position is not None else None
        if event.unstable or (held is not None and first > held):
            self._unstable_rolls.setdefault(key, []).append(first)
        else:
            self._begin_segment(key, first, event)

    def _begin_segment(self, key: Key, first: int, event: SessionEvent) -> None:
        """End waiting fetches below offset `first`, where a segment begins (``DelayedFetch.tryComplete`` case F)."""
        self._segments[key] = max(first, self._segments.get(key, 0))
        position = self._positions.get(key)
        if position is None:
            return
        offset = position.offset
        if offset < first:
            self._behind.add(key)
        for asked in reversed(self._asked):
            offset = asked.moved.get(key, offset)
            if asked.answered_at_once is None and key in asked.active and offset < first:
                asked.ends.append((event.time_us, event.latest_us or event.time_us, key, o.OLDER_SEGMENT))

    def _end(self, key: Key, event: SessionEvent, cause: str) -> None:
        for asked in self._asked:
            if key in asked.active:
                asked.ends.append((event.time_us, event.latest_us or event.time_us, key, cause))

    def _choose_end_cause(self) -> str:
        """Return the error that fetches get when the leadership ends: ``DelayedFetch.tryComplete`` case E or A.

        The epoch in a request is compared first, so a fetch that names one is fenced (KIP-320, since 2.1).
        """
        return o.FENCED_EPOCH if self._names_epochs and self.rules.fences_leader_epochs else o.LEADERSHIP_LOST

    def _add_readable(self, key: Key, position: Position, entry: Entry) -> None:
        if entry.estimated or entry.base_offset >= position.offset:
            position.add(entry)
            self._filled.add(key)
        if key in self._followed and not self.rules.follower_checks_fetches:
            return  # no check of the fetches that wait already
        offset = position.offset
        for asked in reversed(self._asked):
            offset = asked.moved.get(key, offset)
            if (
                asked.answered_at_once is None
                and key in asked.active
                and (entry.estimated or entry.base_offset >= offset)
            ):
                asked.entries.append((entry, key, position.max_bytes))


FREEZER: Final = Freezer(FetchSession, Position, Entry, Asked, SessionEvent, Origin)
