"""Produces: what is answered at once, what waits, what completes it, and which event looks."""

from __future__ import annotations

import pytest

from tests.unit.replay.conformance.brokers import FOLLOWER, KEY, LAG_MS, OTHER, Client, append, leader, state
from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.delayed_produce import DelayedProduce, ProduceStatus
from tests.unit.replay.model.errors import Error
from tests.unit.replay.model.replica_manager import Batch
from tests.unit.replay.model.rules import Rules

TABLE = Table()
LOST = Error.NOT_LEADER_OR_FOLLOWER
MANAGER = "ReplicaManagerTest"


@TABLE.scenario(f"{MANAGER}.testIllegalRequiredAcks", ([("p", Error.INVALID_REQUIRED_ACKS)], 0))
def acks_other_than_none_one_and_all_are_refused(rules: Rules) -> object:
    client = Client(rules)
    client.produce("p", acks=3)
    return client.answers, client.partition.log.end_offset


@TABLE.scenario("ReplicaManager.appendRecords", [("none", Error.NONE), ("leader", Error.NONE)])
def who_does_not_ask_for_all_never_waits(rules: Rules) -> object:
    client = Client(rules)
    client.produce("none", acks=0)
    client.produce("leader", acks=1)
    return client.answers


@TABLE.scenario("Partition.appendRecordsToLeader", ([("p", Error.NOT_ENOUGH_REPLICAS)], 0))
def with_too_few_in_sync_nothing_is_appended(rules: Rules) -> object:
    client = Client(rules, isr=(1,), min_isr=2)
    client.produce("p")
    return client.answers, client.partition.log.end_offset


@TABLE.scenario("Partition.appendRecordsToLeader", [("p", Error.NONE)])
def with_too_few_in_sync_only_acks_all_is_refused(rules: Rules) -> object:
    client = Client(rules, isr=(1,), min_isr=2)
    client.produce("p", acks=1)
    return client.answers


@TABLE.scenario(f"{MANAGER}.testClearPurgatoryOnBecomingFollower", [("p", LOST)])
def a_waiting_produce_ends_when_the_leader_steps_down(rules: Rules) -> object:
    client = Client(rules)
    client.produce("p", timeout_ms=60_000)
    assert not client.answers
    client.broker.make_follower(KEY, state(2, leader=2))
    return client.answers


@TABLE.scenario(f"{MANAGER}.testDeltaToFollowerCompletesProduce", ([("p", LOST), ("f", LOST)], 0))
def stepping_down_answers_produces_before_fetches(rules: Rules) -> object:
    client = Client(rules)
    client.fetch("f", 0, wait_ms=60_000)
    client.produce("p", timeout_ms=60_000)
    client.broker.make_follower(KEY, state(2, leader=2))
    return client.answers, client.broker.produces.delayed


@TABLE.scenario(f"{MANAGER}.testClearProducePurgatoryOnStopReplica", [("p", LOST)], since="2.4.0")
@TABLE.scenario(f"{MANAGER}.testClearProducePurgatoryOnStopReplica (KAFKA-9198)", [], until="2.4.0")
def a_waiting_produce_ends_when_the_replica_is_stopped(rules: Rules) -> object:
    client = Client(rules)
    client.produce("p", timeout_ms=60_000)
    client.broker.stop_replica(KEY)
    return client.answers


def _lost(rules: Rules, offline: bool, known: bool) -> list[tuple[str, object]]:
    client = Client(rules)
    client.produce("p", timeout_ms=60_000)
    del client.broker.partitions[KEY]
    client.broker.known = {KEY} if known else set()
    client.broker.offline = {KEY} if offline else set()
    client.broker.produces.check_and_complete(KEY)
    return client.answers


@TABLE.scenario("DelayedProduce (case A)", [("p", Error.UNKNOWN_TOPIC_OR_PARTITION)])
def a_waiting_produce_of_a_deleted_topic_ends_as_unknown(rules: Rules) -> object:
    return _lost(rules, offline=False, known=False)


@TABLE.scenario("DelayedProduce (case A)", [("p", Error.UNKNOWN_TOPIC_OR_PARTITION)], until="2.4.0")
@TABLE.scenario("DelayedProduce (case A, KAFKA-9198)", [("p", LOST)], since="2.4.0")
def a_waiting_produce_whose_partition_went_elsewhere(rules: Rules) -> object:
    return _lost(rules, offline=False, known=True)


@TABLE.scenario("DelayedProduce (case B)", [("p", Error.KAFKA_STORAGE_ERROR)])
def a_waiting_produce_whose_disk_failed(rules: Rules) -> object:
    return _lost(rules, offline=True, known=True)


@TABLE.scenario("DelayedProduce.tryComplete", [[], [], [("p", Error.NONE)]])
def a_produce_is_answered_when_the_last_of_the_isr_fetches_beyond_it(rules: Rules) -> object:
    client, found = Client(rules), []
    client.produce("p", records=3)
    for replica_id, offset in ((FOLLOWER, 3), (OTHER, 2), (OTHER, 3)):
        client.fetch("f", offset, replica_id, wait_ms=0)
        found.append([answer for answer in client.answers if answer[0] == "p"])
    return found


@TABLE.scenario("DelayedProduce.tryComplete", [("p", Error.NONE)])
def a_leader_alone_answers_at_once(rules: Rules) -> object:
    client = Client(rules, isr=(1,)).at(100_000)
    client.produce("p")
    return client.answers


@TABLE.scenario("DelayedProduce.tryComplete", [("p", Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)], until="3.7.0")
@TABLE.scenario("DelayedProduce.tryComplete (KAFKA-15583)", [], since="3.7.0")
def an_isr_that_shrank_under_the_minimum_after_the_append(rules: Rules) -> object:
    client = Client(rules, isr=(1, 2), min_isr=2)
    client.produce("p", timeout_ms=60_000)
    client.partition.isr = client.partition.isr._replace(committed=frozenset({1}))
    client.at(LAG_MS + 1)
    if client.partition.increment_high_watermark(LAG_MS + 1):
        client.broker.high_watermark_moved(KEY)
    return client.answers


@TABLE.scenario("DelayedProduce.onExpiration", [[], [("p", Error.REQUEST_TIMED_OUT)], [("p", Error.REQUEST_TIMED_OUT)]])
def a_produce_whose_time_runs_out_is_answered_once(rules: Rules) -> object:
    client, found = Client(rules), []
    client.produce("p", timeout_ms=1_000)
    for now_ms in (999, 1_000):
        found.append(list(client.at(now_ms).answers))
    for replica_id in (FOLLOWER, OTHER):
        client.fetch("f", 1, replica_id, wait_ms=0)
    return [*found, [answer for answer in client.answers if answer[0] == "p"]]


@TABLE.scenario("DelayedProduce.onExpiration", ["b"], since="2.0.0")
@TABLE.scenario("DelayedProduce.onExpiration", [], until="2.0.0")
def an_expired_produce_names_what_was_pending_since_20(rules: Rules) -> object:
    partition = leader(rules, isr=(1,), now_ms=100_000)
    append(partition, 1, now_ms=100_000)
    statuses = {"a": ProduceStatus(1), "b": ProduceStatus(99)}
    operation = DelayedProduce(rules, 10, statuses, lambda _: partition, lambda _: None)
    operation.try_complete()
    operation.expire()
    return operation.expired


@TABLE.scenario("DelayedProduce.tryComplete", ({"a": (False, 0), "b": (True, 7), "c": (False, 3)}, 0))
def partitions_of_a_produce_are_settled_one_by_one(rules: Rules) -> object:
    """One is committed, one waits, one failed when it was appended."""
    partition = leader(rules, isr=(1,), now_ms=100_000)
    append(partition, 1, now_ms=100_000)
    answered: list[object] = []
    statuses = {
        "a": ProduceStatus(1),
        "b": ProduceStatus(99),
        "c": ProduceStatus(0, Error.UNKNOWN_TOPIC_OR_PARTITION),
    }
    operation = DelayedProduce(rules, 10, statuses, lambda _: partition, answered.append)
    operation.try_complete()
    return {key: (status.acks_pending, int(status.error)) for key, status in statuses.items()}, len(answered)


@TABLE.scenario("ReplicaManager.delayedProduceRequestRequired", [Error.UNKNOWN_TOPIC_OR_PARTITION])
def a_produce_that_failed_everywhere_does_not_wait(rules: Rules) -> object:
    client, answers = Client(rules), []
    client.broker.produce({"nowhere": Batch()}, -1, 60_000, lambda given: answers.extend(given.values()))
    return [status.error for status in answers]


@TABLE.scenario("ReplicaManager.delayedProduceRequestRequired", (False, [(False, 3), (False, 0)]))
def a_produce_that_failed_in_part_waits_for_the_rest(rules: Rules) -> object:
    client, answers = Client(rules), []
    client.broker.produce({"nowhere": Batch(), KEY: Batch()}, -1, 60_000, lambda given: answers.extend(given.values()))
    early = bool(answers)
    for replica_id in (FOLLOWER, OTHER):
        client.fetch("f", 1, replica_id, wait_ms=0)
    return early, [(status.acks_pending, int(status.error)) for status in answers]


@TABLE.scenario("DelayedProduce.tryComplete", ["first", "second"])
def produces_are_answered_in_the_order_in_which_they_came(rules: Rules) -> object:
    client = Client(rules)
    for name in ("first", "second"):
        client.produce(name)
    for replica_id in (FOLLOWER, OTHER):
        client.fetch("f", 2, replica_id, wait_ms=0)
    return [name for name, _ in client.answers if name != "f"]


@TABLE.scenario("ReplicaManager.appendRecords (KAFKA-8334)", (["old", "new"], ["new", "old"]), since="2.7.0")
@TABLE.scenario("Partition.appendRecordsToLeader", (["old", "new"], ["old", "new"]), until="2.7.0")
def an_append_that_commits_wakes_others_before_or_after_its_own_request(rules: Rules) -> object:
    """A waiting produce is committed by an append that finds the ISR shrunk; first without, then with the wake-up."""
    found = []
    for noticed in (True, False):
        client = Client(rules)
        client.produce("old", timeout_ms=600_000)
        client.partition.isr = client.partition.isr._replace(committed=frozenset({1}))
        client.at(2 * LAG_MS)
        if noticed and client.partition.increment_high_watermark(2 * LAG_MS):
            client.broker.high_watermark_moved(KEY)
        client.produce("new")
        found.append([name for name, _ in client.answers])
    return tuple(found)


@TABLE.scenario("ReplicaManager.appendRecords (KAFKA-8334)", [[], ["f"]], since="2.7.0")
@TABLE.scenario("Partition.appendRecordsToLeader", [["f"], ["f"]], until="2.7.0")
def an_append_wakes_fetches_within_it_or_when_its_request_is_over(rules: Rules) -> object:
    client, found = Client(rules), []
    client.broker.defer_actions = True
    client.fetch("f", 0, FOLLOWER, wait_ms=60_000)
    client.produce("p", timeout_ms=60_000)
    found.append([name for name, _ in client.answers])
    client.broker.complete_actions()
    return [*found, [name for name, _ in client.answers]]


@TABLE.scenario("Partition.appendRecordsToLeader (KAFKA-7697)", ["fetch"], until="2.1.1")
@TABLE.scenario("Partition.appendRecordsToLeader (KAFKA-7697)", ["fetch", "produce"], "2.1.1", "2.7.0")
@TABLE.scenario("ReplicaManager.appendRecords (KAFKA-8334)", ["produce", "fetch"], since="2.7.0")
def who_is_looked_at_after_an_append_that_moves_the_high_watermark(rules: Rules) -> object:
    """Up to the first check of a produce, or of a fetch after one."""
    client, looked = Client(rules, isr=(1,)).at(100_000), []
    client.broker.fetches.check_and_complete = lambda key: looked.append("fetch") or 0  # type: ignore[method-assign]
    client.broker.produces.check_and_complete = lambda key: looked.append("produce") or 0  # type: ignore[method-assign]
    client.produce("p", acks=1)
    return looked[:1] if rules.append_checks_fetches_first else looked


@TABLE.scenario("ReplicaManager.updateFollowerLogReadResults", ["produce"], until="1.0.0")
@TABLE.scenario("ReplicaManager.updateFollowerLogReadResults (KAFKA-5758)", [], since="1.0.0")
def a_follower_fetch_that_moves_nothing_looks_at_produces(rules: Rules) -> object:
    client, looked = Client(rules), []
    client.produce("p", timeout_ms=60_000)
    client.fetch("f", 0, FOLLOWER, wait_ms=0)
    client.broker.produces.check_and_complete = lambda key: looked.append("produce") or 0  # type: ignore[method-assign]
    client.fetch("f", 0, FOLLOWER, wait_ms=0)
    return looked


@TABLE.scenario("DelayedOperations.checkAndCompleteAll", ["fetch", "produce"])
def a_high_watermark_that_moves_looks_at_fetches_first(rules: Rules) -> object:
    client, looked = Client(rules), []
    append(client.partition, 1)
    client.fetch("f", 1, FOLLOWER, wait_ms=0)
    client.broker.fetches.check_and_complete = lambda key: looked.append("fetch") or 0  # type: ignore[method-assign]
    client.broker.produces.check_and_complete = lambda key: looked.append("produce") or 0  # type: ignore[method-assign]
    client.fetch("f", 1, OTHER, wait_ms=0)
    return looked[:2]


@TABLE.scenario("PartitionTest.testMaybeShrinkIsr", [("p", Error.NONE)], since="3.1.0")
@TABLE.scenario("PartitionTest.testMaybeShrinkIsr (KAFKA-13091)", [], since="2.7.0", until="3.1.0")
@TABLE.scenario("PartitionTest.testMaybeShrinkIsr", [("p", Error.NONE)], until="2.7.0")
def a_produce_is_answered_when_the_replica_it_waits_for_has_left(rules: Rules) -> object:
    client = Client(rules)
    client.produce("p", timeout_ms=600_000)
    client.at(LAG_MS).fetch("f", 1, FOLLOWER, wait_ms=0)
    client.at(LAG_MS + 1).broker.shrink_isrs()
    proposal = client.partition.isr.proposal
    if proposal is not None:
        client.broker.alter_committed(KEY, proposal, 1, 2)
    return [answer for answer in client.answers if answer[0] == "p"]


@TABLE.scenario("Partition.makeLeader", [("p", Error.NONE)])
def a_leader_elected_again_with_a_smaller_isr_answers_what_it_can(rules: Rules) -> object:
    client = Client(rules)
    client.produce("p", timeout_ms=600_000)
    client.fetch("f", 1, FOLLOWER, wait_ms=0)
    client.at(LAG_MS + 1).broker.make_leader(KEY, state(2, isr=(1, 2)))
    return [answer for answer in client.answers if answer[0] == "p"]


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_delayed_produce(scenario: Scenario, version: str) -> None:
    check(scenario, version)
