"""Delayed operations: the ground truth of the replay."""

import pytest

from tests.unit.silver.lines import fact, facts, parse

PRODUCE = "kafka.server.DelayedProduce"
FETCH = "kafka.server.DelayedFetch"
PURGATORY = "kafka.server.DelayedOperationPurgatory"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("Initial partition status for {} is {}", "initial"),
        ("Checking produce satisfaction for {}, current status {}", "check"),
        ("Expiring produce request for partition {} with status {}", "expired"),
    ],
)
@pytest.mark.parametrize(
    ("logger", "name"),
    [
        (PRODUCE, "ops.orders-1"),
        ("org.apache.kafka.server.purgatory.DelayedProduce", "9Za0zO_TSsWU_Yh-8h27Jw:ops.orders-1"),  # 4.1, from source
    ],
)
def test_produce_status(text: str, step: str, logger: str, name: str) -> None:
    line = text.format(name, "[acksPending: true, error: 7, startOffset: 381, requiredOffset: 382]")
    assert facts(logger, line) == [
        (
            "delayed_operation_checks",
            {
                "topic": "ops.orders",
                "partition": 1,
                "operation": "produce",
                "step": step,
                "acks_pending": True,
                "error_code": 7,
                "start_offset": 381,
                "required_offset": 382,
            },
        )
    ]


def test_produce_that_failed_to_append() -> None:
    line = (
        "Initial partition status for payments-1 is [acksPending: false, error: 6, startOffset: -1, requiredOffset: 0]"
    )
    row = fact(PRODUCE, line)
    assert (row["acks_pending"], row["error_code"], row["start_offset"], row["required_offset"]) == (False, 6, -1, 0)


@pytest.mark.parametrize(
    ("text", "acked", "awaiting"),
    [
        ("acked: Set(broker 1: 1), awaiting Set(broker 2: 0, broker 3: -1)", [(1, 1)], [(2, 0), (3, -1)]),
        ("acked: HashSet(broker 1: 2), awaiting HashSet(broker 2: 0)", [(1, 2)], [(2, 0)]),
        ("acked: Set(broker 2: 1, broker 3: 1, broker 11: 1), awaiting Set()", [(2, 1), (3, 1), (11, 1)], []),
        ("acked: Set(), awaiting Set(broker 2: 1)", [], [(2, 1)]),
        ("acked: [broker 1: 2], awaiting []", [(1, 2)], []),
    ],
)
def test_progress(text: str, acked: list[tuple[int, int]], awaiting: list[tuple[int, int]]) -> None:
    row = fact("kafka.cluster.Partition", f"[Partition t-0 broker=1] Progress awaiting ISR acks for offset 1: {text}")
    assert (row["operation"], row["step"], row["required_offset"]) == ("produce", "progress", 1)
    assert row["acked"] == [{"replica_id": replica, "log_end_offset": offset} for replica, offset in acked]
    assert row["awaiting"] == [{"replica_id": replica, "log_end_offset": offset} for replica, offset in awaiting]


def test_progress_before_2_0() -> None:
    row = fact("kafka.cluster.Partition", "Partition [ledger,0] on broker 1: Replica 2 of ledger-0 received offset 1")
    assert (row["required_offset"], row["acked"]) == (1, [{"replica_id": 2, "log_end_offset": None}])


@pytest.mark.parametrize(
    ("logger", "line", "operation", "count"),
    [
        (PURGATORY, "Request key TopicPartitionOperationKey(scratch-1,4) unblocked 0 Produce operations", "produce", 0),
        (PURGATORY, "Request key TopicPartitionOperationKey(scratch-1,4) unblocked 12 Fetch operations", "fetch", 12),
        (
            "org.apache.kafka.server.purgatory.DelayedOperationPurgatory",  # as Java prints a record or a label
            "Request key TopicPartitionOperationKey[topic=scratch-1, partition=4] unblocked 1 Fetch operations",
            "fetch",
            1,
        ),
        (PURGATORY, "Request key scratch-1-4 unblocked 1 Produce operations", "produce", 1),
        (
            "kafka.server.ReplicaManager",
            "[Replica Manager on Broker 1]: Request key scratch-1-4 unblocked 1 producer requests.",
            "produce",
            1,
        ),
        (
            "kafka.server.ReplicaManager",
            "[Replica Manager on Broker 1]: Request key scratch-1-4 unblocked 2 fetch requests.",
            "fetch",
            2,
        ),
    ],
)
def test_unblocked(logger: str, line: str, operation: str, count: int) -> None:
    row = fact(logger, line)
    assert (row["topic"], row["partition"]) == ("scratch-1", 4)
    assert (row["operation"], row["step"], row["unblocked"]) == (operation, "unblocked", count)


@pytest.mark.parametrize(
    ("line", "topic", "partition", "detail"),
    [
        (
            "Satisfying fetch DelayedFetch(params=FetchParams(replicaId=-1, replicaEpoch=-1, maxWaitMs=1000, "
            "minBytes=20000, maxBytes=52428800, isolation=HIGH_WATERMARK, "
            "clientMetadata=Optional[DefaultClientMetadata{rackId='', clientId='c4', clientAddress=/127.0.0.1, "
            "principal=User:ANONYMOUS, listenerName='PLAINTEXT'}], shareFetchRequest=false), numPartitions=3) since "
            "it is fetching later segments of partition LWON8hjYRVed54JCMofXCQ:clicks-2.",
            "clicks",
            2,
            "since it is fetching later segments (replicaId=-1)",
        ),
        (
            "Broker is the leader of partition __transaction_state-0, but the requested epoch Optional[0] is fenced "
            "by the latest leader epoch, satisfy FetchMetadata(minBytes=1, maxBytes=10485760, onlyLeader=true, "
            "fetchIsolation=FetchLogEnd, replicaId=2, "
            "partitionStatus=ArrayBuffer((__transaction_state-0,[startOffsetMetadata: (offset=169 segment=[0:24007]), "
            "fetchInfo: PartitionData(fetchOffset=169)]))) immediately",
            "__transaction_state",
            0,
            "but the requested epoch Optional[0] is fenced by the latest leader epoch (replicaId=2)",
        ),
        (
            "Broker is no longer the leader or follower of t-0, satisfy FetchMetadata(minBytes=1, replicaId=3) "
            "immediately",
            "t",
            0,
            "Broker is no longer the leader or follower of (replicaId=3)",
        ),
    ],
)
def test_fetch_satisfied(line: str, topic: str, partition: int, detail: str) -> None:
    (only,) = parse(FETCH, line).facts
    assert only.row == {
        "topic": topic,
        "partition": partition,
        "operation": "fetch",
        "step": "satisfied",
        "detail": detail,
    }


@pytest.mark.parametrize(
    "line",
    [
        "Request key TopicPartitionOperationKey(orders,2) unblocked 0 DeleteRecords operations",
        "Request key MemberKey(g4,c4-7d6efb35-9248-4c5b-a281-4eaaad073b15) unblocked 1 Heartbeat operations",
        "Request key GroupJoinKey(g4) unblocked 0 Rebalance operations",
        "Begin purging watch lists",
        "Purged 315 elements from watch lists.",
    ],
)
def test_lines_that_carry_nothing(line: str) -> None:
    assert parse(PURGATORY, line).outcome == "known"
