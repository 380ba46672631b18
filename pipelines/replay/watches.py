"""The connections that read a partition, and the wakes of their fetches. Pure.

A fetch waits for what it reads: followers read up to the log end, consumers up to the high watermark, and consumers of
committed records only up to the last stable offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import HOUR_US
from highwater.pipelines.replay.wakes import (
    BATCH,
    LEADER_START,
    LOCAL_START,
    REPLICATED,
    REPLICATED_STABLE,
    ROLL,
    STABLE,
    TIER_FAILED,
    Wake,
)
from highwater.schemas import session_events as s
from highwater.schemas.fields import Int, Long, map_spark_types

#: Microseconds before a consumer's first request from which it may read new batches.
_MARGIN_US: Final = 1_000_000
#: Microseconds within which clients find a new leader. They then continue below the offset at which it began.
_FINDING_US: Final = 5_000_000
#: Key for wakes that matter in any hour.
_ANY_HOUR: Final = -1
#: Hours of a connection above which it is kept in a list of its own.
_HOURS_MAX: Final = 1_000


#: Kinds of wake that matter to later readers too.
LASTING: Final = frozenset({ROLL, LOCAL_START})
#: Kinds of wake that do not concern followers.
_OF_CONSUMERS: Final = frozenset({STABLE, LOCAL_START, TIER_FAILED})


class Watch(NamedTuple):
    """A connection that fetches from a partition, and from when until when."""

    connection: str  #: to the leader
    session_topic: str  #: how its fetches name the topic: by id since version 13, else by name
    follower: bool  #: a replica fetches, no consumer
    read_committed: bool  #: it asks for committed records only
    #: from_us, until_us: when its first fetch of the partition, and its last one of all, arrived
    from_us: Long
    until_us: Long


class SessionWake(NamedTuple):
    """An event that may complete fetches of one connection: the fields of `SessionEvent` that it sets, and its rank."""

    connection: str
    rank: Int
    time_us: Long
    kind: str
    latest_us: Long | None
    topic: str
    partition: Int
    base_offset: Long | None = None
    size_bytes: Long | None = None
    estimated: bool | None = None
    unstable: bool | None = None
    transaction_offset: Long | None = None


WATCH_TYPES: Final = map_spark_types(Watch)
SESSION_WAKE_TYPES: Final = map_spark_types(SessionWake)


class Watches:
    """The connections that fetch one partition from its leader.

    Args:
        partition: partition number.
        answering: (start, end) times in which the leader's version answers a follower to send it a new high watermark.
    """

    def __init__(self, partition: int, answering: Sequence[tuple[int, int]] = ()) -> None:
        self._partition = partition
        self._answering = answering
        #: Of thousands of connections that came and went few were there in any hour.
        self._by_hour: dict[int, list[Watch]] = defaultdict(list)
        #: Few were there for long.
        self._long: list[Watch] = []

    def add(self, watch: Watch) -> None:
        """Add a connection."""
        # A segment that began long before can still be the one with the log end.
        self._by_hour[_ANY_HOUR].append(watch)
        hours = range((watch.from_us - _FINDING_US) // HOUR_US, watch.until_us // HOUR_US + 1)
        if len(hours) > _HOURS_MAX:
            self._long.append(watch)
            return
        for hour in hours:
            self._by_hour[hour].append(watch)

    def woken_by(self, wake: Wake) -> Iterator[SessionWake]:
        """Yield an event for each connection whose fetches of the partition the wake may complete."""
        if not self._by_hour:
            return
        if wake.kind in (REPLICATED, REPLICATED_STABLE):
            yield from self._yield_consumer_wakes(wake)
            return
        of_end = wake.kind in (BATCH, ROLL)
        if wake.kind not in _OF_CONSUMERS:
            for watch in self._select_present(wake, wake.appended_lowest_us, follower=True):
                yield self._make_wake(wake, watch, wake.appended_lowest_us, self._get_appended_us(wake, watch))
        earliest_us = wake.committed_lowest_us if of_end else wake.appended_lowest_us
        for watch in self._select_present(wake, earliest_us, follower=False):
            if wake.kind != STABLE or watch.read_committed:
                latest_us = wake.committed_highest_us if of_end else self._get_appended_us(wake, watch)
                yield self._make_wake(wake, watch, earliest_us, latest_us)
        moved_us = wake.committed_lowest_us
        if wake.kind == BATCH and moved_us is not None and self._is_answering(moved_us):
            for watch in self._select_present(wake, moved_us, follower=True):
                place = watch.session_topic, self._partition
                rank = s.RANK[s.COMMITTED]
                yield SessionWake(watch.connection, rank, moved_us, s.COMMITTED, wake.committed_highest_us, *place)

    def _yield_consumer_wakes(self, wake: Wake) -> Iterator[SessionWake]:
        """Yield an event for each consumer that fetches from this follower, when its high watermark moves."""
        committed_only = wake.kind == REPLICATED_STABLE
        for watch in self._select_present(wake, wake.appended_lowest_us, follower=False):
            if watch.read_committed != committed_only:
                continue
            lowest_us, highest_us = wake.appended_lowest_us, wake.appended_highest_us
            assert lowest_us is not None
            place = watch.session_topic, self._partition
            rank, kind = s.RANK[s.REPLICATED], s.REPLICATED
            batch = wake.base_offset, wake.size_bytes
            yield SessionWake(watch.connection, rank, lowest_us, kind, highest_us, *place, *batch)
            if committed_only:
                rank, kind = s.RANK[s.STABLE], s.STABLE
                yield SessionWake(watch.connection, rank, lowest_us, kind, highest_us, *place, wake.high_watermark)

    def _select_present(self, wake: Wake, earliest_us: int | None, follower: bool) -> Iterator[Watch]:
        if earliest_us is None:
            return
        lasts = wake.kind in LASTING
        margin_us = _FINDING_US if wake.kind == LEADER_START else _MARGIN_US
        hour = _ANY_HOUR if lasts else earliest_us // HOUR_US
        for watch in (*self._by_hour.get(hour, ()), *(() if lasts else self._long)):
            begun_us = 0 if lasts else watch.from_us - margin_us
            if watch.follower == follower and begun_us <= earliest_us <= watch.until_us:
                yield watch

    def _make_wake(self, wake: Wake, watch: Watch, earliest_us: int | None, latest_us: int | None) -> SessionWake:
        assert earliest_us is not None
        return SessionWake(
            watch.connection,
            s.RANK[wake.kind],
            earliest_us,
            wake.kind,
            latest_us,
            watch.session_topic,
            self._partition,
            wake.base_offset,
            wake.size_bytes,
            wake.estimated,
            wake.unstable and not watch.follower and watch.read_committed,
            wake.transaction_offset,
        )

    @staticmethod
    def _get_appended_us(wake: Wake, watch: Watch) -> int | None:
        return wake.without_carrier_us if wake.carrier == watch.connection else wake.appended_highest_us

    def _is_answering(self, time_us: int) -> bool:
        return any(since_us <= time_us < until_us for since_us, until_us in self._answering)
