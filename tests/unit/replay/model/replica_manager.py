"""One broker's requests: what is answered at once, what waits, and which event checks which purgatory.

Every call is one event at `ReplicaManager.now_ms`; answers arrive in the callbacks, in the order in which the broker
would send them.

Source: ``ReplicaManager``, ``KafkaApis.handle``, ``DelayedOperations``; the versions of each rule are in
`pipelines.kafka.versions`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from highwater.pipelines.replay.truncation import EpochEnd
from tests.unit.replay.model.broker import Broker
from tests.unit.replay.model.delayed_fetch import DelayedFetch, FetchParams, FetchStatus
from tests.unit.replay.model.delayed_produce import DelayedProduce, ProduceStatus
from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.log import UNKNOWN
from tests.unit.replay.model.partition_state import PartitionState
from tests.unit.replay.model.reads import FetchPartition, ReadInfo, read


class Batch(NamedTuple):
    """A batch to append: how many records, and how many bytes they are together."""

    records: int = 1
    size: int = 100


class Fetched(NamedTuple):
    """One partition of a fetch response; the high watermark is from before the fetch counted for its follower."""

    error: Error
    size: int = 0
    high_watermark: int = -1
    diverging: EpochEnd | None = None


ProduceResponse = Mapping[Hashable, ProduceStatus]
FetchResponse = Mapping[Hashable, Fetched]


class ReplicaManager(Broker):
    """A broker that is sent requests."""

    def produce(
        self,
        batches: Mapping[Hashable, Batch],
        acks: int,
        timeout_ms: int,
        respond: Callable[[ProduceResponse], None],
    ) -> None:
        """A produce request (``appendRecords``)."""
        if acks not in (-1, 0, 1):
            respond({key: ProduceStatus(0, Error.INVALID_REQUIRED_ACKS) for key in batches})
            return
        statuses = {key: self._append(key, batch, acks) for key, batch in batches.items()}
        if acks == -1 and any(status.error is Error.NONE for status in statuses.values()):
            operation = DelayedProduce(self.rules, timeout_ms, statuses, self.find, respond)
            self.produces.try_complete_else_watch(operation, list(statuses))
        else:
            respond(statuses)
        if not self.defer_actions:
            self.complete_actions()

    def fetch(
        self, params: FetchParams, fetches: list[FetchPartition], respond: Callable[[FetchResponse], None]
    ) -> None:
        """A fetch request (``fetchMessages``). A follower's positions are taken before it is answered or waits."""
        wakes_follower = False
        results: dict[Hashable, tuple[Error, ReadInfo | None]] = self._read(params, fetches)
        if params.from_follower:
            wakes_follower = self._sends_newer_high_watermark(params, results)
            results = {fetch.key: self._record(params, fetch, results[fetch.key]) for fetch in fetches}
        reads = [info for _, info in results.values() if info is not None]
        if (
            params.max_wait_ms <= 0
            or not fetches
            or sum(info.size for info in reads) >= params.min_bytes
            or any(error is not Error.NONE for error, _ in results.values())
            or any(info.diverging is not None for info in reads)
            or wakes_follower
            or (params.referred and self.rules.preferred_replica_answers_at_once)
        ):
            respond(_response(results))
            return
        statuses = [
            FetchStatus(fetch, info.at if (info := results[fetch.key][1]) is not None else UNKNOWN) for fetch in fetches
        ]
        operation = DelayedFetch(
            self.rules,
            params,
            statuses,
            self.find,
            lambda: respond(_response(self._read(params, fetches))),
            self.quota,
            lambda partition, key: self._throttles(partition, key, params.replica_id),
        )
        self.fetches.try_complete_else_watch(operation, [fetch.key for fetch in fetches])
        if not self.defer_actions:
            self.complete_actions()

    def _append(self, key: Hashable, batch: Batch, acks: int) -> ProduceStatus:
        partition = self.find(key)
        if isinstance(partition, Error):
            return ProduceStatus(0, partition)
        try:
            partition.check_can_append(acks)
        except KafkaError as error:
            return ProduceStatus(0, error.error)
        first, last = partition.append_to_log(batch.records, batch.size)
        if self.rules.append_checks_fetches_first:
            self.fetches.check_and_complete(key)
        moved = partition.increment_high_watermark(self.now_ms)
        if self.rules.has_action_queue:
            self.actions.append(lambda: self.appended(key, moved))
        elif moved:
            self.high_watermark_moved(key)
        elif not self.rules.append_checks_fetches_first:
            self.fetches.check_and_complete(key)
        return ProduceStatus(last + 1, Error.NONE, first)

    def _read(
        self, params: FetchParams, fetches: list[FetchPartition]
    ) -> dict[Hashable, tuple[Error, ReadInfo | None]]:
        results: dict[Hashable, tuple[Error, ReadInfo | None]] = {}
        left, min_one_message = params.max_bytes, True
        for fetch in fetches:
            try:
                partition = self.find(fetch.key)
                if isinstance(partition, Error):
                    raise KafkaError(partition)
                if self.rules.unassigned_followers_are_errors:
                    _check_assigned(partition, params, fetch)
                isolation, leader_only = params.isolation(self.rules), params.leader_only(self.rules)
                info = read(partition, fetch, isolation, left, min_one_message, leader_only)
            except KafkaError as error:
                results[fetch.key] = (error.error, None)
                continue
            if params.referred:
                info = info._replace(at=UNKNOWN, size=0)
            if params.from_follower and self._throttles(partition, fetch.key, params.replica_id):
                info = info._replace(size=0)
            min_one_message = min_one_message and info.size == 0
            left = max(0, left - info.size)
            results[fetch.key] = (Error.NONE, info)
        return results

    def _record(
        self, params: FetchParams, fetch: FetchPartition, result: tuple[Error, ReadInfo | None]
    ) -> tuple[Error, ReadInfo | None]:
        """Take a follower's position from its fetch."""
        partition = self.partitions.get(fetch.key)
        replica = partition.replicas.get(params.replica_id) if partition is not None else None
        if partition is None or replica is None:
            return result[0], result[1]._replace(size=0) if result[1] is not None else None
        error, info = result
        if info is None:
            if self.rules.failed_reads_reset_followers:
                replica.end = UNKNOWN
            return result
        if info.diverging is not None and not self.rules.counts_diverging_fetches:
            return result
        try:
            moved = partition.follower_fetched(replica, info.at, self.now_ms, info.log_end_offset, params.broker_epoch)
        except KafkaError as stale:
            return stale.error, None
        replica.high_watermark_sent = info.high_watermark
        if moved:
            self.high_watermark_moved(fetch.key)
        if self.rules.every_fetch_checks_produces:
            self.produces.check_and_complete(fetch.key)
        return error, info

    def _sends_newer_high_watermark(
        self, params: FetchParams, results: Mapping[Hashable, tuple[Error, ReadInfo | None]]
    ) -> bool:
        if not self.rules.answers_fetches_for_high_watermark:
            return False
        for key, (_, info) in results.items():
            partition = self.partitions.get(key)
            replica = partition.replicas.get(params.replica_id) if partition is not None else None
            if info is not None and replica is not None and replica.high_watermark_sent < info.high_watermark:
                return True
        return False

    def _throttles(self, partition: PartitionState, key: Hashable, replica_id: int) -> bool:
        in_sync = replica_id in partition.isr.committed
        return not in_sync and self.quota is not None and self.quota.is_throttled(key) and self.quota.is_exceeded()


def _check_assigned(partition: PartitionState, params: FetchParams, fetch: FetchPartition) -> None:
    if params.from_follower and params.replica_id not in partition.replicas:
        named = fetch.leader_epoch is not None
        raise KafkaError(Error.UNKNOWN_LEADER_EPOCH if named else Error.NOT_LEADER_OR_FOLLOWER)


def _response(results: Mapping[Hashable, tuple[Error, ReadInfo | None]]) -> dict[Hashable, Fetched]:
    return {
        key: Fetched(error, info.size, info.high_watermark, info.diverging) if info is not None else Fetched(error)
        for key, (error, info) in results.items()
    }
