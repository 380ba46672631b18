"""What a broker holds of one partition, and the two questions asked of it: how far is it committed, and for whom.

Source: ``kafka.cluster.Partition``; the rules that differ between versions are in `pipelines.kafka.versions`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.unit.replay.model.errors import Error
from tests.unit.replay.model.log import ReplicaLog
from tests.unit.replay.model.replica import IsrState, Replica
from tests.unit.replay.model.rules import Rules


@dataclass
class PartitionState:
    """A partition as one of its replicas holds it."""

    rules: Rules
    broker_id: int
    log: ReplicaLog
    min_isr: int = 1  #: min.insync.replicas of the topic
    lag_time_max_ms: int | None = None  #: replica.lag.time.max.ms
    ineligible: set[int] = field(default_factory=set)  #: brokers that the controller keeps fenced, or that shut down
    #: broker id to the epoch of its present life, as the metadata say
    broker_epochs: dict[int, int] = field(default_factory=dict)
    zookeeper_refuses: bool = False  #: writing the ISR to ZooKeeper fails, its version having moved on (before 2.7)
    leader: int | None = None
    leader_epoch: int = -1
    partition_epoch: int = -1
    #: log end offset at which this broker took up its leader epoch; None: not leader
    epoch_start_offset: int | None = None
    isr: IsrState = field(default_factory=IsrState)
    replicas: dict[int, Replica] = field(default_factory=dict)

    @property
    def lag_max_ms(self) -> int:
        return self.rules.lag_time_max_ms if self.lag_time_max_ms is None else self.lag_time_max_ms

    @property
    def is_leader(self) -> bool:
        return self.leader == self.broker_id

    @property
    def effective_min_isr(self) -> int:
        return min(self.min_isr, len(self.replicas) + 1) if self.rules.caps_min_isr_at_replicas else self.min_isr

    def is_eligible(self, replica: Replica) -> bool:
        """May the controller accept it into the ISR, as far as the leader knows (``isReplicaIsrEligible``)?"""
        if replica.broker_id in self.ineligible:
            return False
        if not self.rules.expansion_needs_broker_epoch:
            return True
        current = self.broker_epochs.get(replica.broker_id)
        return current is None or replica.broker_epoch in (None, current)

    def increment_high_watermark(self, now_ms: int) -> bool:
        """Move the high watermark as far as the counted replicas allow (``maybeIncrementLeaderHW``); True if moved."""
        if not self.is_leader:
            return False
        if self.rules.high_watermark_needs_min_isr and len(self.isr.committed) < self.effective_min_isr:
            return False
        to = self.log.end
        for replica in self.replicas.values():
            if replica.end.offset < to.offset and self.counts(replica, now_ms):
                to = replica.end
        return self.log.increment_high_watermark(to)

    def counts(self, replica: Replica, now_ms: int) -> bool:
        """Does the high watermark wait for a replica?"""
        if replica.broker_id in (self.isr.maximal if self.rules.maximal_isr else self.isr.committed):
            return True
        # Since 3.3 one at the end of the log counts as caught up whenever it fetched; it then bounds nothing anyway.
        if not self.rules.waits_for_caught_up_replicas or not replica.is_caught_up(now_ms, self.lag_max_ms):
            return False
        return not self.rules.caught_up_must_be_eligible or self.is_eligible(replica)

    def check_enough_replicas(self, required_offset: int) -> tuple[bool, Error]:
        """Is everything before an offset committed, and what is to be answered (``checkEnoughReplicasReachOffset``)?"""
        if not self.is_leader:
            return False, Error.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark.offset < required_offset:
            return False, Error.NONE
        enough = self.effective_min_isr <= len(self.isr.maximal)
        return True, Error.NONE if enough else Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
