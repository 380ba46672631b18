"""One broker: what it holds, what becomes of it, and which event checks which purgatory.

Source: ``ReplicaManager``, ``DelayedOperations``; the versions of each rule are in
`pipelines.kafka.versions`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from tests.unit.replay.model.delayed_fetch import DelayedFetch, Quota
from tests.unit.replay.model.delayed_produce import DelayedProduce
from tests.unit.replay.model.errors import Error
from tests.unit.replay.model.partition import AlterResult, Became, LeaderState, Partition
from tests.unit.replay.model.purgatory import DelayedOperationPurgatory
from tests.unit.replay.model.replica import Proposal
from tests.unit.replay.model.rules import Rules


class Broker:
    """A broker.

    Attributes:
        partitions: partitions it holds, by key.
        offline: keys whose log directory failed.
        known: keys that the cluster has, whether this broker does or not.
        quota: replication quota of followers that are not in sync.
        defer_actions: keep the checks of appends back until `complete_actions`, as while other requests run.
    """

    def __init__(self, rules: Rules, broker_id: int, now_ms: int = 0) -> None:
        self.rules, self.broker_id, self.now_ms = rules, broker_id, now_ms
        self.partitions: dict[Hashable, Partition] = {}
        self.offline: set[Hashable] = set()
        self.known: set[Hashable] = set()
        self.quota: Quota | None = None
        self.defer_actions = False
        self.produces: DelayedOperationPurgatory[DelayedProduce] = DelayedOperationPurgatory(now_ms)
        self.fetches: DelayedOperationPurgatory[DelayedFetch] = DelayedOperationPurgatory(now_ms)
        self.actions: list[Callable[[], None]] = []

    def find(self, key: Hashable) -> Partition | Error:
        if key in self.offline:
            return Error.KAFKA_STORAGE_ERROR
        if key in self.partitions:
            return self.partitions[key]
        known = key in self.known and self.rules.names_known_topics
        return Error.NOT_LEADER_OR_FOLLOWER if known else Error.UNKNOWN_TOPIC_OR_PARTITION

    def advance_to(self, now_ms: int) -> None:
        """Let time pass; timers fire in the order of their deadlines."""
        self.now_ms = now_ms
        self.produces.advance_clock(now_ms)
        self.fetches.advance_clock(now_ms)

    def complete_actions(self) -> None:
        """A request handler has handled its request (``tryCompleteActions``): check what its appends may wake."""
        while self.actions:
            self.actions.pop(0)()

    # --- leadership and ISR ---------------------------------------------------------------------------------------

    def make_leader(self, key: Hashable, state: LeaderState) -> Became:
        became = self.partitions[key].make_leader(state, self.now_ms)
        if became.high_watermark_moved:
            self.high_watermark_moved(key)
        return became

    def make_follower(self, key: Hashable, state: LeaderState) -> Became:
        """Follow; what waits is answered with NOT_LEADER_OR_FOLLOWER if the fetcher restarts."""
        became = self.partitions[key].make_follower(state)
        if became.restarts_fetcher:
            self.no_longer_leader(key)
        return became

    def stop_replica(self, key: Hashable) -> None:
        """This broker gives the partition up, and its log with it."""
        self.partitions.pop(key, None)
        if self.rules.stop_replica_checks_operations:
            self.no_longer_leader(key)

    def shrink_isrs(self) -> None:
        for key, partition in self.partitions.items():
            if partition.maybe_shrink(self.now_ms):
                self.high_watermark_moved(key)

    def alter_committed(
        self, key: Hashable, proposal: Proposal, leader_epoch: int, partition_epoch: int
    ) -> AlterResult:
        """The controller accepts a proposal."""
        partition = self.partitions[key]
        result = partition.alter_committed(proposal, proposal.isr, leader_epoch, partition_epoch, self.now_ms)
        if result.high_watermark_moved:
            self.high_watermark_moved(key)
        return result

    def follower_high_watermark(self, key: Hashable, leaders: int) -> None:
        """As follower: a fetch response brought the leader's high watermark."""
        if self.partitions[key].log.set_high_watermark(leaders) and self.rules.follower_checks_fetches:
            self.fetches.check_and_complete(key)

    # --- which event checks what ----------------------------------------------------------------------------------

    def high_watermark_moved(self, key: Hashable) -> None:
        self.fetches.check_and_complete(key)
        self.produces.check_and_complete(key)

    def no_longer_leader(self, key: Hashable) -> None:
        self.produces.check_and_complete(key)
        self.fetches.check_and_complete(key)

    def appended(self, key: Hashable, high_watermark_moved: bool) -> None:
        """The checks of an append, from the action queue."""
        if high_watermark_moved:
            self.produces.check_and_complete(key)
        self.fetches.check_and_complete(key)
