"""The high watermark: who it waits for, where it points, and what it says to a produce."""

from __future__ import annotations

import pytest

from tests.unit.replay.conformance.brokers import FOLLOWER, LAG_MS, OTHER, append, commit, follow, hw, leader, state
from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.log import LogOffset, ReplicaLog
from tests.unit.replay.model.rules import Rules

TABLE = Table()


@TABLE.scenario("Partition.maybeIncrementLeaderHW", [0, 3, 5])
def it_is_the_least_position_of_the_isr(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 5)
    found = []
    for replica_id, offset in ((FOLLOWER, 5), (OTHER, 3), (OTHER, 5)):
        follow(partition, replica_id, offset, 10)
        found.append(hw(partition))
    return found


@TABLE.scenario("Partition.maybeIncrementLeaderHW", 2)
def a_leader_alone_commits_on_append(rules: Rules) -> object:
    partition = leader(rules, isr=(1,), now_ms=100_000)
    append(partition, 2, now_ms=100_000)
    return hw(partition)


@TABLE.scenario("PartitionTest.testHighWatermarkIncreasesWithFencedOrShutdownFollower", [0, 5])
def it_waits_for_a_caught_up_replica_outside_the_isr(rules: Rules) -> object:
    """Since 0.10.2; its lag time lets it through."""
    partition = leader(rules, isr=(1, 2), records=0)
    follow(partition, OTHER, 0, 10)
    partition.isr = partition.isr._replace(proposal=None, committed=frozenset({1, 2}))
    append(partition, 5, now_ms=20)
    found = []
    for now_ms in (10 + LAG_MS, 11 + LAG_MS):
        follow(partition, FOLLOWER, 5 if now_ms == 11 + LAG_MS else 4, now_ms)
        found.append(hw(partition))
    return found


@TABLE.scenario("PartitionTest.testHighWatermarkIncreasesWithFencedOrShutdownFollower", 5, since="3.6.0")
@TABLE.scenario("PartitionTest (KAFKA-15021)", 0, until="3.6.0")
def it_does_not_wait_for_a_caught_up_replica_that_is_fenced(rules: Rules) -> object:
    partition = leader(rules, isr=(1, 2))
    follow(partition, OTHER, 0, 10)
    partition.isr = partition.isr._replace(proposal=None, committed=frozenset({1, 2}))
    partition.ineligible.add(OTHER)
    append(partition, 5, now_ms=20)
    follow(partition, FOLLOWER, 5, 30)
    return hw(partition)


ADVANCE = "PartitionTest.testHighWatermarkAdvanceShouldNotAdvanceWhenUnderMinISR"


@TABLE.scenario(ADVANCE, [0, 0, 6], since="3.7.0")
@TABLE.scenario(f"{ADVANCE} (KAFKA-15583)", [6, 6, 6], until="3.7.0")
def it_stands_still_under_the_minimum_of_the_committed_isr(rules: Rules) -> object:
    partition = leader(rules, isr=(1, 2), min_isr=3)
    partition.replicas[OTHER].caught_up_ms = -LAG_MS
    append(partition, 6)
    follow(partition, FOLLOWER, 6, 1)
    found = [hw(partition)]
    follow(partition, OTHER, 6, 2)
    found.append(hw(partition))
    commit(partition, 3)
    return [*found, hw(partition)]


@TABLE.scenario("Partition.effectiveMinIsr (KIP-966)", Error.NONE, since="3.7.0")
@TABLE.scenario("Partition.effectiveMinIsr (KIP-966)", Error.NOT_ENOUGH_REPLICAS, until="3.7.0")
def a_minimum_above_the_number_of_replicas_counts_as_that_number(rules: Rules) -> object:
    partition = leader(rules, min_isr=5)
    try:
        partition.append(1, 10, -1, 0)
    except KafkaError as error:
        return error.error
    return Error.NONE


@TABLE.scenario("Partition.updateFollowerFetchState (KAFKA-8841)", True, until="2.4.0")
@TABLE.scenario("Partition.updateFollowerFetchState (KAFKA-8841)", False, since="2.4.0")
def a_fetch_that_moves_no_position_moves_it_only_before_24(rules: Rules) -> object:
    """What changed meanwhile: the replica outside the ISR has run out of its lag time."""
    partition = leader(rules, isr=(1, 2))
    follow(partition, OTHER, 0, 10)
    partition.isr = partition.isr._replace(proposal=None, committed=frozenset({1, 2}))
    append(partition, 5, now_ms=20)
    follow(partition, FOLLOWER, 5, 30)
    return follow(partition, FOLLOWER, 5, 11 + LAG_MS)


@TABLE.scenario("UnifiedLogTest.testHighWatermarkMaintenance", (True, False, 4, "beyond"))
def a_leaders_never_goes_back_nor_beyond_the_log(rules: Rules) -> object:
    log = ReplicaLog(rules)
    log.append(6, 60, 0)
    forward, back = log.increment_high_watermark(log.locate(4)), log.increment_high_watermark(log.locate(2))
    try:
        log.increment_high_watermark(LogOffset(7))
    except ValueError:
        return forward, back, log.high_watermark.offset, "beyond"
    return None


@TABLE.scenario(
    "UnifiedLogTest.testMaybeUpdateHighWatermarkAsFollower", [(True, 99), (False, 99), (True, 100), (False, 100)]
)
def a_followers_is_its_leaders_up_to_its_own_end(rules: Rules) -> object:
    log = ReplicaLog(rules)
    log.append(100, 100, 0)
    return [(log.set_high_watermark(offset), log.high_watermark.offset) for offset in (99, 99, 100, 101)]


@TABLE.scenario("UnifiedLogTest.testHighWatermarkMaintenance", (5, 5))
def a_followers_lies_between_its_logs_start_and_a_truncation(rules: Rules) -> object:
    log = ReplicaLog(rules, start_offset=5)
    log.append(10, 100, 0)
    log.set_high_watermark(2)
    low = log.high_watermark.offset
    log.set_high_watermark(15)
    log.truncate_to(5)
    return low, log.high_watermark.offset


@TABLE.scenario("UnifiedLogTest.testHighWatermarkMetadataUpdatedAfterSegmentRoll", LogOffset(5, 5, 0), since="2.4.0")
@TABLE.scenario("UnifiedLogTest.testHighWatermarkMetadataUpdatedAfterSegmentRoll", LogOffset(5, 0, 50), until="2.4.0")
def a_roll_takes_one_at_the_end_along(rules: Rules) -> object:
    partition = leader(rules, isr=(1,), now_ms=100_000)
    append(partition, 5, now_ms=100_000)
    partition.log.roll()
    return partition.log.high_watermark


@TABLE.scenario("UnifiedLogTest.testHighWatermarkMetadataUpdatedAfterSegmentRoll", (True, 5))
def one_at_the_same_offset_moves_onto_a_newer_segment(rules: Rules) -> object:
    log = ReplicaLog(rules)
    log.append(5, 50, 0)
    old_end = log.end
    log.roll()
    log.high_watermark = old_end
    return log.increment_high_watermark(log.end), log.high_watermark.segment


@TABLE.scenario("PartitionTest.testMonotonicOffsetsAfterLeaderChange", (3, 5))
def a_new_leader_starts_from_its_own_and_never_goes_back(rules: Rules) -> object:
    partition = leader(rules, records=5)
    partition.log.set_high_watermark(3)
    partition.make_follower(state(2, leader=2))
    partition.make_leader(state(3), 100)
    first = hw(partition)
    for replica_id in (FOLLOWER, OTHER):
        follow(partition, replica_id, 5, 110)
    return first, hw(partition)


def _committed(rules: Rules, isr: tuple[int, ...], min_isr: int) -> object:
    partition = leader(rules, isr=(1, 2, 3), min_isr=1)
    append(partition, 2, now_ms=1)
    for replica_id in (FOLLOWER, OTHER):
        follow(partition, replica_id, 2, 2)
    partition.isr = partition.isr._replace(committed=frozenset(isr))
    partition.min_isr = min_isr
    return partition.check_enough_replicas(2)


@TABLE.scenario("Partition.checkEnoughReplicasReachOffset", (True, Error.NONE))
def a_produce_below_it_is_done(rules: Rules) -> object:
    return _committed(rules, (1, 2), min_isr=2)


@TABLE.scenario("Partition.checkEnoughReplicasReachOffset", (True, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
def a_produce_below_it_fails_if_the_isr_shrank_under_the_minimum(rules: Rules) -> object:
    return _committed(rules, (1,), min_isr=2)


@TABLE.scenario("Partition.checkEnoughReplicasReachOffset", [(False, Error.NONE), (True, Error.NONE)])
def a_produce_waits_until_it_has_its_last_offset_too(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 4)
    found = []
    for offset in (3, 4):
        for replica_id in (FOLLOWER, OTHER):
            follow(partition, replica_id, offset, 1)
        found.append(partition.check_enough_replicas(4))
    return found


@TABLE.scenario("Partition.checkEnoughReplicasReachOffset", (False, Error.NOT_LEADER_OR_FOLLOWER))
def a_follower_answers_that_it_does_not_lead(rules: Rules) -> object:
    partition = leader(rules)
    partition.make_follower(state(2, leader=2))
    return partition.check_enough_replicas(0)


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_partition_high_watermark(scenario: Scenario, version: str) -> None:
    check(scenario, version)
