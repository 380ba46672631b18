"""One partition on one broker: leadership, ISR, high watermark. Exact, at instants the caller names.

Methods say what they changed; `tests.unit.replay.model.replica_manager` checks the purgatories for it.

Source: ``kafka.cluster.Partition``; the rules that differ between versions are in `pipelines.kafka.versions`.
"""

from __future__ import annotations

from typing import NamedTuple

from highwater.pipelines.replay.truncation import restarts_fetcher
from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.log import LogOffset
from tests.unit.replay.model.partition_state import PartitionState
from tests.unit.replay.model.replica import IsrState, Proposal, Replica

_BACK_TO_COMMITTED = (Error.OPERATION_NOT_ATTEMPTED, Error.INELIGIBLE_REPLICA)
_STAYS_PENDING = (
    Error.UNKNOWN_TOPIC_OR_PARTITION,
    Error.FENCED_LEADER_EPOCH,
    Error.INVALID_UPDATE_VERSION,
    Error.NEW_LEADER_ELECTED,
)


class LeaderState(NamedTuple):
    """Leadership as the controller tells it (``LeaderAndIsrPartitionState``)."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


class Became(NamedTuple):
    """What taking up new leadership state did."""

    accepted: bool = False  #: False: it was older than what is known, and nothing changed
    newly_leader: bool = False  #: this broker did not lead before
    high_watermark_moved: bool = False  #: requests that wait have to be checked
    #: as follower, it stops, truncates and fetches anew; requests that wait have to be checked
    restarts_fetcher: bool = False


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    high_watermark_moved: bool


class AlterResult(NamedTuple):
    """What a controller's answer to a proposal did; `retry`: it is sent again as it was."""

    high_watermark_moved: bool = False
    retry: bool = False


class Partition(PartitionState):
    """A partition as one of its replicas holds it, and what happens to it."""

    # --- leadership -----------------------------------------------------------------------------------------------

    def make_leader(self, state: LeaderState, now_ms: int) -> Became:
        """Take up, or stay in, the lead (``makeLeader``)."""
        if not self._takes(state):
            return Became()
        newly_leader, new_epoch = not self.is_leader, state.leader_epoch > self.leader_epoch
        self._assign(state, frozenset(state.isr))
        if new_epoch or not self.rules.partition_epoch_gates_state:
            self.epoch_start_offset = self.log.end_offset
            if self.rules.assigns_epoch_on_election:
                self.log.assign_epoch(state.leader_epoch, self.epoch_start_offset)
            for replica in self.replicas.values():
                in_sync = replica.broker_id in state.isr
                replica.reset(self.rules, now_ms, self.epoch_start_offset, newly_leader, in_sync)
        self.leader, self.leader_epoch, self.partition_epoch = self.broker_id, state.leader_epoch, state.partition_epoch
        return Became(True, newly_leader, self.increment_high_watermark(now_ms))

    def make_follower(self, state: LeaderState) -> Became:
        """Follow (``makeFollower``)."""
        if not self._takes(state):
            return Became()
        restarts = restarts_fetcher(self.rules, self.leader, state.leader, self.leader_epoch, state.leader_epoch)
        self._assign(state, frozenset())
        self.leader, self.leader_epoch, self.partition_epoch = state.leader, state.leader_epoch, state.partition_epoch
        self.epoch_start_offset = None
        return Became(True, restarts_fetcher=restarts)

    def _takes(self, state: LeaderState) -> bool:
        if self.rules.partition_epoch_gates_state:
            return state.partition_epoch >= self.partition_epoch
        return state.leader_epoch > self.leader_epoch

    def _assign(self, state: LeaderState, isr: frozenset[int]) -> None:
        others = [broker_id for broker_id in state.replicas if broker_id != self.broker_id]
        self.replicas = {broker_id: self.replicas.get(broker_id, Replica(broker_id)) for broker_id in others}
        self.isr = IsrState(isr)

    # --- appends and followers ------------------------------------------------------------------------------------

    def append(self, records: int, size: int, acks: int, now_ms: int) -> Appended:
        """Append a batch as leader (``appendRecordsToLeader``).

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER; NOT_ENOUGH_REPLICAS if acks=all and the ISR is too small.
        """
        self.check_can_append(acks)
        first, last = self.append_to_log(records, size)
        return Appended(first, last, self.increment_high_watermark(now_ms))

    def append_to_log(self, records: int, size: int) -> tuple[int, int]:
        """The append alone; returns first and last offset."""
        return self.log.append(records, size, self.leader_epoch)

    def check_can_append(self, acks: int) -> None:
        if not self.is_leader:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)
        if acks == -1 and len(self.isr.committed) < self.effective_min_isr:
            raise KafkaError(Error.NOT_ENOUGH_REPLICAS)

    def follower_fetched(
        self, replica: Replica, at: LogOffset, now_ms: int, leader_end_offset: int, broker_epoch: int | None = None
    ) -> bool:
        """A follower's fetch was read (``updateFollowerFetchState``); True if the high watermark moved.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, for a fetch from an earlier life of its broker.
        """
        current = self.broker_epochs.get(replica.broker_id)
        stale = broker_epoch is not None and current is not None and broker_epoch < current
        if stale and self.rules.rejects_stale_broker_epochs:
            raise KafkaError(Error.NOT_LEADER_OR_FOLLOWER)
        before = replica.end.offset
        replica.fetched(self.rules, at, now_ms, leader_end_offset)
        replica.broker_epoch = broker_epoch
        self._maybe_expand(replica)
        if before == replica.end.offset and not self.rules.every_fetch_moves_high_watermark:
            return False
        return self.increment_high_watermark(now_ms)

    # --- ISR ------------------------------------------------------------------------------------------------------

    def _maybe_expand(self, replica: Replica) -> None:
        if not self.is_leader or self.isr.in_flight or replica.broker_id in self.isr.committed:
            return
        if self.rules.expansion_needs_eligibility and not self.is_eligible(replica):
            return
        in_sync = replica.end.offset >= self.log.high_watermark.offset
        if in_sync and self.rules.epoch_start_gates_expansion:
            in_sync = self.epoch_start_offset is not None and replica.end.offset >= self.epoch_start_offset
        if in_sync:
            self._propose(Proposal(self.isr.committed, added=replica.broker_id))

    def out_of_sync(self, now_ms: int) -> frozenset[int]:
        """Members of the ISR that have not been caught up for too long (``getOutOfSyncReplicas``)."""
        if not self.is_leader or self.isr.in_flight:
            return frozenset()
        lagging = set()
        for broker_id in self.isr.committed - {self.broker_id}:
            replica = self.replicas.get(broker_id)
            at_end = replica is not None and replica.end.offset == self.log.end_offset
            if at_end and self.rules.shrink_spares_replicas_at_the_end:
                continue
            if replica is None or not replica.is_caught_up(now_ms, self.lag_max_ms):
                lagging.add(broker_id)
        return frozenset(lagging)

    def maybe_shrink(self, now_ms: int) -> bool:
        """The look every half of replica.lag.time.max.ms (``maybeShrinkIsr``); True if the high watermark moved."""
        removed = self.out_of_sync(now_ms)
        if not removed:
            return False
        self._propose(Proposal(self.isr.committed, removed=removed))
        # KAFKA-13091: until 3.1 the step came here, where a proposal changes nothing yet, and not with the commit.
        if self.isr.in_flight and not self.rules.loses_wake_up_on_isr_commit:
            return False
        return self.increment_high_watermark(now_ms)

    def _propose(self, proposal: Proposal) -> None:
        if self.rules.maximal_isr:
            self.isr = IsrState(self.isr.committed, proposal)
        elif not self.zookeeper_refuses:
            self.isr = IsrState(proposal.isr)
            self.partition_epoch += 1

    def alter_refused(self, proposal: Proposal, error: Error) -> AlterResult:
        """The controller refused a proposal (``handleAlterPartitionError``)."""
        if self.isr.proposal != proposal:
            return AlterResult()
        if error in _BACK_TO_COMMITTED and self.rules.undoes_refused_isr_changes:
            self.isr = IsrState(proposal.committed)
            return AlterResult()
        return AlterResult(retry=error not in _STAYS_PENDING)

    def alter_committed(
        self, proposal: Proposal, isr: frozenset[int], leader_epoch: int, partition_epoch: int, now_ms: int
    ) -> AlterResult:
        """The controller answers with a committed ISR (``handleAlterPartitionUpdate``)."""
        if self.isr.proposal != proposal:
            return AlterResult()
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return AlterResult()
        self.isr, self.partition_epoch = IsrState(isr), partition_epoch
        if self.rules.loses_wake_up_on_isr_commit:
            return AlterResult()
        return AlterResult(self.increment_high_watermark(now_ms))
