"""A leader's view of its followers, the ISR, and the high watermark."""

from __future__ import annotations

import pytest

from tests.unit.replay.conformance.brokers import FOLLOWER, LAG_MS, OTHER, append, commit, follow, hw, leader, state
from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.partition import Partition
from tests.unit.replay.model.replica import Proposal
from tests.unit.replay.model.rules import Rules

TABLE = Table()
ISR = {1, 2, 3}


def _isr(partition: Partition) -> tuple[set[int], set[int]]:
    """Committed, and maximal."""
    return set(partition.isr.committed), set(partition.isr.maximal)


@TABLE.scenario("PartitionTest.testUpdateFollowerFetchState", [(3, 0), (6, 20)])
def a_follower_is_caught_up_when_it_asks_for_the_end(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 6)
    replica, seen = partition.replicas[FOLLOWER], []
    for offset, now_ms in ((3, 10), (6, 20)):
        follow(partition, FOLLOWER, offset, now_ms)
        seen.append((replica.end.offset, replica.caught_up_ms))
    return seen


@TABLE.scenario("ReplicaTest.testUpdateFetchState", [0, 10, 20])
def a_follower_that_has_what_there_was_at_its_last_fetch_was_caught_up_then(rules: Rules) -> object:
    partition = leader(rules)
    end = append(partition, 3)
    replica, seen = partition.replicas[FOLLOWER], []
    follow(partition, FOLLOWER, 0, 10)
    seen.append(replica.caught_up_ms)
    append(partition, 3)
    follow(partition, FOLLOWER, end, 20)
    seen.append(replica.caught_up_ms)
    follow(partition, FOLLOWER, end + 3, 30)
    append(partition, 3)
    replica.caught_up_ms = 20
    return [*seen, replica.caught_up_ms]


@TABLE.scenario("ReplicaTest.testResetReplicaStateWhenNewLeaderIsElectedAndReplicaIsInSync", [(-1, 50), (-1, 0)])
def a_new_leader_knows_no_position_and_gives_the_isr_time(rules: Rules) -> object:
    partition = leader(rules, isr=(1, 2), now_ms=50)
    return [(replica.end.offset, replica.caught_up_ms) for replica in partition.replicas.values()]


@TABLE.scenario(
    "ReplicaTest.testResetReplicaStateWhenLeaderIsReelectedAndReplicaIsInSync", [(6, 70, 70), (6, 0, 70)], until="3.3.0"
)
@TABLE.scenario(
    "ReplicaTest.testResetReplicaStateWhenLeaderIsReelectedAndReplicaIsInSync", [(6, 70, 70), (6, 0, 0)], since="3.3.0"
)
def a_leader_elected_again_keeps_the_positions(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 6)
    follow(partition, FOLLOWER, 6, 10)
    follow(partition, OTHER, 6, 10)
    partition.make_leader(state(2, isr=(1, 2)), 70)
    replicas = partition.replicas.values()
    return [(replica.end.offset, replica.caught_up_ms, replica.last_fetch_ms) for replica in replicas]


@TABLE.scenario("PartitionTest.testDoNotResetReplicaStateIfLeaderEpochIsNotBumped", (True, 10, {1, 2}), since="3.3.0")
@TABLE.scenario("PartitionTest.testDoNotResetReplicaStateIfLeaderEpochIsNotBumped", (False, 10, ISR), until="3.3.0")
def state_within_an_epoch_changes_the_isr_alone(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 6)
    follow(partition, FOLLOWER, 6, 10)
    became = partition.make_leader(state(1, isr=(1, 2), partition_epoch=5), 70)
    return became.accepted, partition.replicas[FOLLOWER].caught_up_ms, _isr(partition)[0]


@TABLE.scenario("PartitionTest.testDoNotUpdateEpochStartOffsetIfLeaderEpochIsNotBumped", (0, 6))
def the_start_of_an_epoch_stays_where_it_was(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 6)
    partition.make_leader(state(1, partition_epoch=5), 70)
    first = partition.epoch_start_offset
    partition.make_leader(state(2, partition_epoch=6), 80)
    return first, partition.epoch_start_offset


@TABLE.scenario("PartitionTest.testIgnoreLeaderPartitionStateChangeWithOlderPartitionEpoch", (False, 7, 1), "3.3.0")
def a_leader_ignores_an_older_partition_epoch(rules: Rules) -> object:
    partition = leader(rules)
    partition.make_leader(state(1, partition_epoch=7), 10)
    became = partition.make_leader(state(2, partition_epoch=6), 20)
    return became.accepted, partition.partition_epoch, partition.leader_epoch


@TABLE.scenario("PartitionTest.testIgnoreFollowerPartitionStateChangeWithOlderPartitionEpoch", (False, True), "3.3.0")
def a_follower_ignores_an_older_partition_epoch(rules: Rules) -> object:
    partition = leader(rules)
    partition.make_leader(state(1, partition_epoch=7), 10)
    became = partition.make_follower(state(2, leader=2, partition_epoch=6))
    return became.accepted, partition.is_leader


@TABLE.scenario("PartitionTest.testMakeLeaderUpdatesEpochCache", ((0, 0), (3, 4)), since="2.0.1")
@TABLE.scenario("PartitionTest.testMakeLeaderUpdatesEpochCache (KAFKA-7415)", ((0, 0),), until="2.0.1")
def an_elected_leader_notes_its_epoch_before_it_appends(rules: Rules) -> object:
    return leader(rules, records=4, epoch=3).log.epochs


@TABLE.scenario(
    "PartitionTest.testFollowerDoesNotJoinISRUntilCaughtUpToOffsetWithinCurrentLeaderEpoch", [ISR - {3}, ISR], "2.0.1"
)
@TABLE.scenario("PartitionTest (KAFKA-7128)", [ISR, ISR], until="2.0.1")
def a_follower_joins_only_from_within_the_leaders_epoch(rules: Rules) -> object:
    """The high watermark is at 2, the epoch starts at 5."""
    partition = leader(rules, isr=(1, 2), records=5)
    follow(partition, FOLLOWER, 2, 1)
    append(partition, 5)
    found = []
    for offset in (3, 5):
        follow(partition, OTHER, offset, 2)
        commit(partition, 3)
        found.append(_isr(partition)[0])
    return found


@TABLE.scenario("PartitionTest.testIsrExpansion", [({1, 2}, {1, 2}), ({1, 2}, ISR), (ISR, ISR)], since="2.7.0")
@TABLE.scenario("PartitionTest.testIsrExpansion", [({1, 2}, {1, 2}), (ISR, ISR), (ISR, ISR)], until="2.7.0")
def a_follower_at_the_high_watermark_is_proposed_and_counts_until_it_is_decided(rules: Rules) -> object:
    partition = leader(rules, isr=(1, 2))
    partition.replicas[OTHER].caught_up_ms = -LAG_MS
    append(partition, 6)
    follow(partition, FOLLOWER, 6, 1)
    found = []
    for offset in (3, 6):
        follow(partition, OTHER, offset, 2)
        found.append(_isr(partition))
    commit(partition, 3)
    return [*found, _isr(partition)]


@TABLE.scenario("PartitionTest.testIsrNotExpandedIfUpdateFails", ({1, 2}, ISR, None), since="2.7.0")
def a_proposal_with_an_old_version_stays_in_flight(rules: Rules) -> object:
    partition, proposal = _expanding(rules)
    result = partition.alter_refused(proposal, Error.INVALID_UPDATE_VERSION)
    follow(partition, OTHER, 6, 9)
    assert partition.isr.proposal is proposal, "one at a time"
    return *_isr(partition), True if result.retry else None


@TABLE.scenario("PartitionTest.testIsrNotExpandedIfUpdateFails", {1, 2}, until="2.7.0")
def an_isr_that_zookeeper_refuses_stays_as_it_was(rules: Rules) -> object:
    partition = leader(rules, isr=(1, 2))
    partition.zookeeper_refuses = True
    follow(partition, OTHER, 0, 1)
    return _isr(partition)[0]


@TABLE.scenario("PartitionTest.testIsrNotExpandedIfReplicaIsFencedOrShutdown", ({1, 2}, False), since="3.1.0")
@TABLE.scenario("PartitionTest (KAFKA-13254)", (ISR, True), since="2.7.0", until="3.1.0")
def a_proposal_that_was_not_attempted_is_taken_back(rules: Rules) -> object:
    partition, proposal = _expanding(rules)
    result = partition.alter_refused(proposal, Error.OPERATION_NOT_ATTEMPTED)
    return _isr(partition)[1], result.retry


@TABLE.scenario("PartitionTest.testPartitionShouldRetryAlterPartitionRequest", (True, ISR), since="2.7.0")
def an_unexpected_error_has_the_proposal_sent_again(rules: Rules) -> object:
    partition, proposal = _expanding(rules)
    result = partition.alter_refused(proposal, Error.REQUEST_TIMED_OUT)
    return result.retry, _isr(partition)[1]


@TABLE.scenario("PartitionTest.testAlterIsrLeaderAndIsrRace", (False, {1, 2, 3}), since="2.7.0")
def an_answer_to_a_proposal_of_an_earlier_epoch_is_ignored(rules: Rules) -> object:
    partition, proposal = _expanding(rules)
    partition.make_leader(state(2, isr=(1, 2, 3), partition_epoch=9), 10)
    result = partition.alter_committed(proposal, frozenset({1, 2}), 1, 9, 11)
    return result.high_watermark_moved, _isr(partition)[0]


def _expanding(rules: Rules) -> tuple[Partition, Proposal]:
    partition = leader(rules, isr=(1, 2))
    append(partition, 6)
    follow(partition, FOLLOWER, 6, 1)
    follow(partition, OTHER, 6, 1)
    assert partition.isr.proposal is not None
    return partition, partition.isr.proposal


@TABLE.scenario("PartitionTest.testIsrNotExpandedIfReplicaIsFencedOrShutdown", {1, 2}, since="3.3.0")
@TABLE.scenario("PartitionTest (KAFKA-13916)", ISR, until="3.3.0")
def a_fenced_follower_is_not_proposed(rules: Rules) -> object:
    partition = leader(rules, isr=(1, 2))
    partition.ineligible.add(OTHER)
    follow(partition, OTHER, 0, 1)
    return _isr(partition)[1]


@TABLE.scenario(
    "PartitionTest.testIsrCanExpandedIfBrokerEpochsMatchWithKraftMetadataCache", [{1, 2}, ISR], "3.5.0", "3.7.0"
)
@TABLE.scenario("PartitionTest (KIP-903)", [ISR, ISR], until="3.5.0")
def a_follower_is_proposed_for_its_present_life_only(rules: Rules) -> object:
    partition = leader(rules, isr=(1, 2))
    partition.broker_epochs[OTHER] = 8
    found = []
    for broker_epoch in (7, 8):
        follow(partition, OTHER, 0, 1, broker_epoch)
        found.append(_isr(partition)[1])
    return found


@TABLE.scenario(
    "PartitionTest.testFenceFollowerFetchWithStaleBrokerEpoch (KAFKA-15221)",
    (Error.NOT_LEADER_OR_FOLLOWER, -1),
    "3.7.0",
)
@TABLE.scenario("PartitionTest.testFenceFollowerFetchWithStaleBrokerEpoch (KAFKA-15221)", (None, 0), until="3.7.0")
def a_fetch_from_an_earlier_life_is_refused(rules: Rules) -> object:
    partition = leader(rules)
    partition.broker_epochs[OTHER] = 8
    error = None
    try:
        follow(partition, OTHER, 0, 1, broker_epoch=7)
    except KafkaError as refused:
        error = refused.error
    return error, partition.replicas[OTHER].end.offset


@TABLE.scenario("PartitionTest.testMaybeShrinkIsr", [(0, ISR), (6, {1, 2})], since="3.1.0")
@TABLE.scenario("PartitionTest.testMaybeShrinkIsr (KAFKA-13091)", [(0, ISR), (0, {1, 2})], "2.7.0", "3.1.0")
@TABLE.scenario("PartitionTest.testMaybeShrinkIsr", [(6, {1, 2}), (6, {1, 2})], until="2.7.0")
def a_replica_that_lags_leaves_and_the_high_watermark_moves_with_the_commit(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 6)
    follow(partition, FOLLOWER, 6, LAG_MS)
    found = []
    for step in (lambda: partition.maybe_shrink(LAG_MS + 1), lambda: commit(partition, LAG_MS + 2)):
        step()
        found.append((hw(partition), _isr(partition)[1]))
    return found


@TABLE.scenario("PartitionTest.testIsrNotShrunkIfUpdateFails", (0, ISR), since="2.7.0")
def a_shrink_that_is_refused_moves_nothing(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 6)
    follow(partition, FOLLOWER, 6, LAG_MS)
    partition.maybe_shrink(LAG_MS + 1)
    assert partition.isr.proposal is not None
    partition.alter_refused(partition.isr.proposal, Error.INVALID_UPDATE_VERSION)
    return hw(partition), _isr(partition)[1]


@TABLE.scenario("IsrExpirationTest.testIsrExpirationIfNoFetchRequestMade", [set(), {2, 3}])
def who_never_fetches_is_out_after_the_lag_time(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 6)
    return [set(partition.out_of_sync(now_ms)) for now_ms in (LAG_MS, LAG_MS + 1)]


@TABLE.scenario("IsrExpirationTest.testIsrExpirationForStuckFollowers", [set(), {3}])
def who_is_stuck_is_out_after_the_lag_time(rules: Rules) -> object:
    partition = leader(rules)
    follow(partition, OTHER, 0, 100)
    append(partition, 6, now_ms=100)
    follow(partition, FOLLOWER, 6, LAG_MS)
    return [set(partition.out_of_sync(now_ms)) for now_ms in (100 + LAG_MS, 101 + LAG_MS)]


@TABLE.scenario("IsrExpirationTest.testIsrExpirationForSlowFollowers", [set(), {3}])
def who_fetches_but_never_gets_to_the_end_is_out(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 20)
    follow(partition, FOLLOWER, 20, LAG_MS)
    for number, now_ms in enumerate(range(1_000, LAG_MS, 2_000)):
        follow(partition, OTHER, number, now_ms)
    return [set(partition.out_of_sync(now_ms)) for now_ms in (LAG_MS, LAG_MS + 1)]


@TABLE.scenario("PartitionTest.testShouldNotShrinkIsrIfPreviousFetchIsCaughtUp", set())
def who_had_all_of_the_previous_fetch_stays(rules: Rules) -> object:
    partition = leader(rules)
    for now_ms in (0, 15_000, 30_000):
        end = append(partition, 1, now_ms=now_ms)
        for replica_id in (FOLLOWER, OTHER):
            follow(partition, replica_id, end - 1, now_ms)
    return set(partition.out_of_sync(30_000 + 15_000))


@TABLE.scenario("PartitionTest.testShouldNotShrinkIsrIfFollowerCaughtUpToLogEnd", set(), since="2.1.0")
@TABLE.scenario("PartitionTest.testShouldNotShrinkIsrIfFollowerCaughtUpToLogEnd (KAFKA-7152)", {2, 3}, until="2.1.0")
def who_is_at_the_end_and_fetches_no_more_stays(rules: Rules) -> object:
    partition = leader(rules)
    end = append(partition, 5)
    for replica_id in (FOLLOWER, OTHER):
        follow(partition, replica_id, end, 1)
    return set(partition.out_of_sync(2 + LAG_MS))


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_partition_isr(scenario: Scenario, version: str) -> None:
    check(scenario, version)
