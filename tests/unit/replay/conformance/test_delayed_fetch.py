"""Fetches: what is answered at once, what waits, and which case completes it."""

from __future__ import annotations

import pytest

from highwater.pipelines.replay.truncation import EpochEnd
from tests.unit.replay.conformance.brokers import FOLLOWER, KEY, OTHER, Client, append, follow, hw, leader, state
from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.delayed_fetch import DelayedFetch, FetchParams, FetchStatus
from tests.unit.replay.model.errors import Error, KafkaError
from tests.unit.replay.model.log import LogOffset, MessageOnlyOffset
from tests.unit.replay.model.reads import FetchPartition, snapshot
from tests.unit.replay.model.rules import Rules

TABLE = Table()
LOST = Error.NOT_LEADER_OR_FOLLOWER


@TABLE.scenario("ReplicaManagerTest.testFetchBeyondHighWatermark", [("follower", 100), ("consumer", 0)])
def a_follower_sees_what_is_not_committed_and_a_consumer_does_not(rules: Rules) -> object:
    client = Client(rules)
    for replica_id in (FOLLOWER, OTHER):
        client.partition.replicas[replica_id].caught_up_ms = 0
    append(client.partition, 10)
    client.fetch("follower", 0, FOLLOWER, wait_ms=0)
    client.fetch("consumer", 0, wait_ms=0)
    return client.answers


@TABLE.scenario(
    "UnifiedLogTest.testFetchUpToHighWatermark", [0, 0, Error.OFFSET_OUT_OF_RANGE, Error.OFFSET_OUT_OF_RANGE]
)
def a_consumer_between_high_watermark_and_end_reads_nothing(rules: Rules) -> object:
    """The log has offsets 2 to 9, the high watermark is 5: fetches from 5, 9, 11 and 1."""
    client = Client(rules)
    append(client.partition, 10)
    client.partition.log.high_watermark = LogOffset(5)
    client.partition.log.start_offset = 2
    for offset in (5, 9, 11, 1):
        client.fetch(str(offset), offset, wait_ms=0)
    return [answer for _, answer in client.answers]


@TABLE.scenario("ReplicaManagerTest.testReadCommittedFetchLimitedAtLSO", [("all", 40), ("committed", 20)], "0.11.0")
@TABLE.scenario(
    "ReplicaManagerTest.testReadCommittedFetchLimitedAtLSO", [("all", 40), ("committed", 40)], until="0.11.0"
)
def a_consumer_of_committed_transactions_stops_at_an_open_one(rules: Rules) -> object:
    client = Client(rules)
    for _ in range(2):
        append(client.partition, 2)
    for replica_id in (FOLLOWER, OTHER):
        follow(client.partition, replica_id, 4, 0)
    client.partition.log.first_unstable = 2
    client.fetch("all", 0, wait_ms=0)
    client.fetch("committed", 0, wait_ms=0, committed_only=True)
    return client.answers


@TABLE.scenario("ReplicaManagerTest.testOffsetOutOfRangeExceptionWhenFetchMessages", [("f", Error.OFFSET_OUT_OF_RANGE)])
def an_error_is_answered_at_once(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 99, min_bytes=1_000, wait_ms=10_000)
    return client.answers


@TABLE.scenario("DelayedFetch (case G)", [("f", 10)])
def a_fetch_waits_for_its_least_bytes(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 0, FOLLOWER, min_bytes=1)
    assert not client.answers
    client.produce("p", acks=1)
    return [answer for answer in client.answers if answer[0] == "f"]


@TABLE.scenario("DelayedFetch (case G)", [[], [("f", 30)]])
def bytes_add_up_to_the_least(rules: Rules) -> object:
    client, found = Client(rules), []
    client.fetch("f", 0, FOLLOWER, min_bytes=25)
    for _ in range(3):
        client.produce("p", acks=0)
        found.append([answer for answer in client.answers if answer[0] == "f"])
    return found[1:]


@TABLE.scenario("DelayedFetch (case G)", [])
def no_more_bytes_count_than_a_partition_may_give(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 0, FOLLOWER, min_bytes=25, bytes_max=20)
    for _ in range(5):
        client.produce("p", acks=0)
    return [answer for answer in client.answers if answer[0] == "f"]


@TABLE.scenario("DelayedFetch.onComplete", [[], [("f", 10)]])
def a_fetch_whose_time_runs_out_returns_what_there_is(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 0, FOLLOWER, min_bytes=1_000, wait_ms=500)
    client.produce("p", acks=0)
    found = []
    for now_ms in (499, 500):
        client.at(now_ms)
        found.append([answer for answer in client.answers if answer[0] == "f"])
    return found


@TABLE.scenario("ReplicaManagerTest.testFetchMessagesWhenNotFollowerForOnePartition", [0, 1])
def the_high_watermark_of_an_answer_is_from_before_its_fetch(rules: Rules) -> object:
    client = Client(rules)
    append(client.partition, 1)
    follow(client.partition, OTHER, 1, 0)
    fetched = client.fetch("f", 1, FOLLOWER, wait_ms=0)
    assert fetched is not None
    return [fetched.high_watermark, hw(client.partition)]


NOBODY = "ReplicaManagerTest.testFetchMessagesWhenNotFollowerForOnePartition"


@TABLE.scenario(f"{NOBODY} (KAFKA-13837)", [Error.UNKNOWN_LEADER_EPOCH, LOST], since="3.3.0")
@TABLE.scenario(f"{NOBODY} (KAFKA-5758)", [0, 0], until="3.3.0")
def a_fetch_from_a_broker_that_is_no_replica(rules: Rules) -> object:
    client = Client(rules)
    append(client.partition, 1)
    client.fetch("named", 0, 9, wait_ms=0, epoch=1)
    client.fetch("unnamed", 0, 9, wait_ms=0)
    return [answer for _, answer in client.answers]


@TABLE.scenario("ReplicaManagerTest.testFollowerStateNotUpdatedIfLogReadFails", [4, 4], since="2.4.0")
@TABLE.scenario("ReplicaManagerTest.testFollowerStateNotUpdatedIfLogReadFails (KAFKA-8400)", [4, -1], until="2.4.0")
def a_fetch_that_fails_leaves_the_followers_position(rules: Rules) -> object:
    client = Client(rules)
    append(client.partition, 4)
    found = []
    for offset in (4, 99):
        client.fetch("f", offset, FOLLOWER, wait_ms=0)
        found.append(client.partition.replicas[FOLLOWER].end.offset)
    return found


COUNTED = "ReplicaManagerTest.testFollowerStateNotUpdatedIfLogReadFails"


@TABLE.scenario(f"{COUNTED}, PartitionTest.testLastFetchedOffsetValidation", (EpochEnd(1, 4), -1), since="2.7.2")
@TABLE.scenario(f"{COUNTED} (KAFKA-13141)", (EpochEnd(1, 4), 5), since="2.7.0", until="2.7.2")
def a_fetch_that_diverges_is_told_so_and_counts_for_nothing(rules: Rules) -> object:
    """Epochs 1 from 0 and 2 from 4, then 4 offsets more; the follower says that 5 was still of epoch 1."""
    client = Client(rules)
    append(client.partition, 4)
    client.broker.make_leader(KEY, state(2))
    append(client.partition, 4)
    fetched = client.fetch("f", 5, FOLLOWER, epoch=2, last_fetched_epoch=1)
    assert fetched is not None
    return fetched.diverging, client.partition.replicas[FOLLOWER].end.offset


EPOCHS = "PartitionTest.testLeaderEpochValidationOnLeader"


@TABLE.scenario(EPOCHS, [Error.FENCED_LEADER_EPOCH, 0, Error.UNKNOWN_LEADER_EPOCH], since="2.1.0")
@TABLE.scenario(f"{EPOCHS} (KAFKA-7395)", [0, 0, 0], until="2.1.0")
def a_fetch_that_believes_in_another_epoch_is_refused(rules: Rules) -> object:
    client = Client(rules)
    for epoch in (0, 1, 2):
        client.fetch(str(epoch), 0, wait_ms=0, epoch=epoch)
    return [answer for _, answer in client.answers]


@TABLE.scenario(
    "PartitionTest.testFetchOffsetSnapshotEpochValidationForFollower",
    [LOST, "read", Error.FENCED_LEADER_EPOCH],
    "2.1.0",
)
def a_follower_shows_its_offsets_to_who_does_not_insist_on_the_leader(rules: Rules) -> object:
    partition = leader(rules)
    partition.make_follower(state(2, leader=2))
    found: list[object] = []
    for epoch, leader_only in ((2, True), (2, False), (1, False)):
        try:
            snapshot(partition, epoch, leader_only)
            found.append("read")
        except KafkaError as error:
            found.append(error.error)
    return found


@TABLE.scenario("ReplicaManagerTest.testBecomeFollowerWhileOldClientFetchInPurgatory", [("f", LOST)])
def a_waiting_fetch_ends_when_the_leader_steps_down(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 0, min_bytes=1, wait_ms=10_000)
    client.broker.make_follower(KEY, state(2, leader=2))
    return client.answers


@TABLE.scenario(
    "ReplicaManagerTest.testBecomeFollowerWhileNewClientFetchInPurgatory", [("f", Error.FENCED_LEADER_EPOCH)], "2.1.0"
)
def a_waiting_fetch_that_names_its_epoch_ends_fenced(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 0, min_bytes=1, wait_ms=10_000, epoch=1, rack=True)
    client.broker.make_follower(KEY, state(2, leader=2))
    return client.answers


@TABLE.scenario("ReplicaManagerTest.testClearFetchPurgatoryOnStopReplica", [("f", LOST)], since="2.4.0")
@TABLE.scenario("ReplicaManagerTest.testClearFetchPurgatoryOnStopReplica (KAFKA-9198)", [], until="2.4.0")
def a_waiting_fetch_ends_when_the_replica_is_stopped(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 0, min_bytes=1, wait_ms=10_000)
    client.broker.stop_replica(KEY)
    return client.answers


PROPAGATION = "ReplicaManagerTest.testFollowerFetchWithDefaultSelectorNoForcedHwPropagation"


def _waits_at_the_end(rules: Rules) -> list[tuple[str, object]]:
    """A follower waits at the end of the log while the other one moves the high watermark."""
    client = Client(rules)
    append(client.partition, 1)
    client.fetch("first", 1, FOLLOWER, wait_ms=500, min_bytes=1)
    client.fetch("other", 1, OTHER, wait_ms=0)
    return [answer for answer in client.answers if answer[0] == "first"]


@TABLE.scenario(PROPAGATION, [], since="2.6.0")
@TABLE.scenario(PROPAGATION, [], until="2.4.0")
@TABLE.scenario(f"{PROPAGATION} (KAFKA-9952)", [("first", 0)], since="2.4.0", until="2.6.0")
def a_follower_at_the_end_is_not_woken_for_the_high_watermark(rules: Rules) -> object:
    return _waits_at_the_end(rules)


@TABLE.scenario(PROPAGATION, [("again", 0)], since="2.4.0", until="2.6.0")
@TABLE.scenario(PROPAGATION, [], since="2.6.0")
@TABLE.scenario(PROPAGATION, [], until="2.4.0")
def a_follower_that_lags_in_the_high_watermark_does_not_even_wait(rules: Rules) -> object:
    client = Client(rules)
    append(client.partition, 1)
    for replica_id in (FOLLOWER, OTHER):
        client.fetch("f", 1, replica_id, wait_ms=0)
    client.fetch("again", 1, FOLLOWER, wait_ms=500)
    return [answer for answer in client.answers if answer[0] == "again"]


@TABLE.scenario("DelayedFetchTest.testDivergingEpoch", ("diverging_epoch", True), since="2.7.0")
def a_waiting_fetch_ends_when_its_epoch_turns_out_to_diverge(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 4)
    partition.make_leader(state(2), 10)
    append(partition, 4)
    fetch = FetchPartition(KEY, 5, leader_epoch=2, last_fetched_epoch=1)
    operation = _waiting(rules, partition, fetch, partition.log.locate(5), FOLLOWER)
    operation.try_complete()
    return operation.reason, operation.is_completed


def _waiting(
    rules: Rules,
    partition: object,
    fetch: FetchPartition,
    start: LogOffset,
    replica_id: int = -1,
    min_bytes: int = 1_000,
) -> DelayedFetch:
    params = FetchParams(replica_id, min_bytes)
    return DelayedFetch(rules, params, [FetchStatus(fetch, start)], lambda _: partition, lambda: None)  # type: ignore[arg-type, return-value]


MESSAGE_ONLY = "DelayedFetchTest.testDelayedFetchWithMessageOnlyHighWatermark"


@TABLE.scenario(MESSAGE_ONLY, ["later_segment", False], since="3.8.0")
@TABLE.scenario(f"{MESSAGE_ONLY} (KAFKA-16452)", ["no position", "no position"], until="3.8.0")
def an_end_without_a_position_counts_as_no_bytes(rules: Rules) -> object:
    """A fetch from 450; the end it may see is 0, or 500, and not in the log."""
    found: list[object] = []
    for end in (0, 500):
        partition = leader(rules)
        partition.log.start_offset = partition.log.end_offset = 600
        partition.log.high_watermark = LogOffset(end)
        operation = _waiting(rules, partition, FetchPartition(KEY, 450), LogOffset(450, 0, 0), min_bytes=1)
        try:
            found.append(operation.try_complete() and operation.reason)
        except MessageOnlyOffset:
            found.append("no position")
    return found


@TABLE.scenario("DelayedFetch (case F)", ("older_segment", None))
def a_fetch_from_an_older_segment_is_answered_with_what_that_has_left(rules: Rules) -> object:
    found = []
    for offset in (3, 5):
        partition = leader(rules)
        append(partition, 5)
        start = partition.log.locate(offset)
        if offset == 5:
            partition.log.roll()
        operation = _waiting(rules, partition, FetchPartition(KEY, offset), start, FOLLOWER)
        if offset == 3:
            partition.log.roll()
        operation.try_complete()
        found.append(operation.reason)
    return tuple(found)


@TABLE.scenario("DelayedFetch (case F)", "later_segment")
def a_fetch_from_beyond_a_truncated_log_is_answered(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 5)
    partition.log.roll()
    append(partition, 5)
    operation = _waiting(rules, partition, FetchPartition(KEY, 10), partition.log.locate(10), FOLLOWER)
    partition.log.truncate_to(3)
    operation.try_complete()
    return operation.reason


@TABLE.scenario("DelayedFetch (case F, KAFKA-16452)", "later_segment", since="3.8.0")
@TABLE.scenario("DelayedFetch (case F)", None, until="3.8.0")
def a_consumer_beyond_the_high_watermark_on_the_same_segment(rules: Rules) -> object:
    partition = leader(rules)
    append(partition, 5)
    operation = _waiting(rules, partition, FetchPartition(KEY, 4), partition.log.locate(4))
    operation.try_complete()
    return operation.reason


@TABLE.scenario("ReplicaFetcherThreadTest (KAFKA-14334)", [("c", 10)], since="3.3.2")
@TABLE.scenario("ReplicaFetcherThreadTest (KAFKA-14334)", [], since="2.4.0", until="3.3.2")
def a_consumer_that_waits_at_a_follower_is_woken_by_its_high_watermark(rules: Rules) -> object:
    client = Client(rules)
    client.broker.make_follower(KEY, state(2, leader=2))
    client.partition.log.append(1, 10, 2)
    client.fetch("c", 0, rack=True, wait_ms=500)
    client.broker.follower_high_watermark(KEY, 1)
    return client.answers


@TABLE.scenario("ReplicaManagerTest.testFetchFollowerNotAllowedForOlderClients", [("c", LOST)])
def a_consumer_that_tells_no_rack_must_ask_the_leader(rules: Rules) -> object:
    client = Client(rules)
    client.broker.make_follower(KEY, state(2, leader=2))
    client.fetch("c", 0)
    return client.answers


REFERRED = "ReplicaManagerTest.testFetchShouldReturnImmediatelyWhenPreferredReadReplicaIsDefined"


@TABLE.scenario(REFERRED, [("c", 0)], since="3.2.0")
@TABLE.scenario(f"{REFERRED} (KAFKA-13767)", [], since="2.4.0", until="3.2.0")
def a_consumer_that_is_referred_to_another_replica(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("c", 0, rack=True, referred=True)
    return client.answers


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_delayed_fetch(scenario: Scenario, version: str) -> None:
    check(scenario, version)
