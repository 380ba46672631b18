"""A fetch that waits for enough bytes.

Source: ``DelayedFetch``; its cases A to H, in the words of its comments. KAFKA-6937, KIP-392, KIP-595, KAFKA-9952,
KAFKA-16452.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.log import UNKNOWN, LogOffset
from tests.unit.replay.model.operation import DelayedOperation
from tests.unit.replay.model.partition_state import PartitionState
from tests.unit.replay.model.reads import FetchPartition, Isolation, diverging, snapshot
from tests.unit.replay.model.rules import Rules


class FetchParams(NamedTuple):
    """What a fetch request asks for, apart from its partitions."""

    replica_id: int = -1  #: follower, or -1 for a consumer
    #: min_bytes, max_bytes, max_wait_ms: as in the request
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_wait_ms: int = 500
    committed_only: bool = False  #: isolation level read_committed
    rack: bool = False  #: a consumer that tells its rack, and so may read from followers
    broker_epoch: int | None = None  #: the follower's, where the request has it
    referred: bool = False  #: a consumer that the leader refers to a replica nearer to it, and gives no records

    @property
    def from_follower(self) -> bool:
        return self.replica_id >= 0

    def isolation(self, rules: Rules) -> Isolation:
        if self.from_follower:
            return Isolation.LOG_END
        return Isolation.LAST_STABLE if self.committed_only and rules.reads_committed else Isolation.HIGH_WATERMARK

    def leader_only(self, rules: Rules) -> bool:
        return self.from_follower or not (self.rack and rules.followers_serve_consumers)


class Quota(Protocol):
    """A replication quota; both hold at the moment of asking."""

    def is_throttled(self, key: Hashable) -> bool: ...

    def is_exceeded(self) -> bool: ...


class FetchStatus(NamedTuple):
    """One partition of a waiting fetch, and where its first read started."""

    fetch: FetchPartition
    start: LogOffset


class DelayedFetch(DelayedOperation):
    """Completes when a check finds one of its cases; why is in `reason` (None: its time ran out).

    Args:
        find: finds a partition for its key.
        throttles: must a follower's bytes of this partition be held back now (``shouldLeaderThrottle``)?
        respond: called once; it reads again, and answers with what there is.
    """

    def __init__(
        self,
        rules: Rules,
        params: FetchParams,
        statuses: list[FetchStatus],
        find: Callable[[Hashable], PartitionState | Error],
        respond: Callable[[], None],
        quota: Quota | None = None,
        throttles: Callable[[PartitionState, Hashable], bool] = lambda partition, key: False,
    ) -> None:
        super().__init__(rules, params.max_wait_ms)
        self.params = params
        self.statuses = statuses
        self.reason: str | None = None
        self._find, self._respond, self._quota, self._throttles = find, respond, quota, throttles

    def try_complete(self) -> bool:
        """Check in the order of the request; the first case that answers it ends the check.

        Raises:
            MessageOnlyOffset: before 3.8, where an end has no position.
        """
        accumulated, throttled = 0, 0
        for status in self.statuses:
            if status.start == UNKNOWN:
                continue
            try:
                reason, readable, apart = self._check(status)
            except KafkaError as error:
                reason, readable, apart = error.error.name.lower(), 0, 0
            if reason is not None:
                return self._complete(reason)
            accumulated, throttled = accumulated + readable, throttled + apart
        if accumulated >= self.params.min_bytes:
            return self._complete("min_bytes")
        if self.rules.throttles_in_sync_replicas and accumulated + throttled >= self.params.min_bytes:
            return not (self._quota is not None and self._quota.is_exceeded()) and self._complete("min_bytes")
        return False

    def on_complete(self) -> None:
        self._respond()

    def on_expiration(self) -> None:
        """Nothing but a metric."""

    def _complete(self, reason: str) -> bool:
        if not self.is_completed:
            self.reason = reason
        return self.force_complete()

    def _check(self, status: FetchStatus) -> tuple[str | None, int, int]:
        """One partition: the case that completes the fetch, bytes readable, and bytes readable but throttled.

        Raises:
            KafkaError: cases A to E: not leader, unknown, offline, fenced.
        """
        fetch = status.fetch
        partition = self._find(fetch.key)
        if isinstance(partition, Error):
            raise KafkaError(partition)
        ends = snapshot(partition, fetch.leader_epoch, self.params.leader_only(self.rules))
        reason, readable, apart = self._available(partition, status, ends.of(self.params.isolation(self.rules)))
        if reason is None and self.rules.answers_fetches_for_high_watermark and self.params.from_follower:
            replica = partition.replicas.get(self.params.replica_id)
            if replica is not None and ends.high_watermark.offset > replica.high_watermark_sent:
                reason = "high_watermark"
        if reason is None and diverging(partition, fetch, log_start_offset=0) is not None:
            reason = "diverging_epoch"
        return reason, readable, apart

    def _available(self, partition: PartitionState, status: FetchStatus, end: LogOffset) -> tuple[str | None, int, int]:
        """Case F, a fetch that another segment than the last answers, and the bytes that count for case G."""
        start, tolerant = status.start, self.rules.fetches_beyond_the_end_complete
        if start.offset == end.offset:
            return None, 0, 0  # a high watermark may still point into the segment before
        if start.offset > end.offset if tolerant else end.on_older_segment(start):
            return "later_segment", 0, 0
        throttled = self._holds_back(partition, status.fetch.key)
        if start.on_older_segment(end, tolerant):
            return (None, 0, 0) if throttled else ("older_segment", 0, 0)
        if start.offset < end.offset and start.on_same_segment(end, tolerant):
            readable = min(end.position_diff(start), status.fetch.bytes_max)
            if self.rules.throttles_in_sync_replicas:
                apart = self._quota is not None and self._quota.is_throttled(status.fetch.key)
                return (None, 0, readable) if apart else (None, readable, 0)
            return None, 0 if throttled else readable, 0
        return None, 0, 0

    def _holds_back(self, partition: PartitionState, key: Hashable) -> bool:
        return self.params.from_follower and self._throttles(partition, key)
