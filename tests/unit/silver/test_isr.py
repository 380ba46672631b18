"""ISR changes of the leader, in the wordings of every version."""

from typing import Any

import pytest

from tests.unit.silver.lines import fact, facts, parse

PARTITION = "kafka.cluster.Partition"


@pytest.mark.parametrize(
    ("text", "isr", "version"),
    [
        ("ISR updated to [1,13,2] and zkVersion updated to [17]", [1, 13, 2], 17),  # 2.4 to 2.7, from source
        ("ISR updated from AlterIsr to 1,2,3 and version updated to [2]", [1, 2, 3], 2),  # 2.7
        ("ISR updated to 1,2 and version updated to [1]", [1, 2], 1),  # 2.8 to 3.0
        ("ISR updated to 1,2 and version updated to 14", [1, 2], 14),  # 3.1 to 3.4, from source
        ("ISR updated to 2,1,3  and version updated to 7", [2, 1, 3], 7),  # 3.5 and later
        ("ISR updated to 1001,1002  and version updated to 70", [1001, 1002], 70),
    ],
)
def test_committed(text: str, isr: list[int], version: int) -> None:
    assert facts(PARTITION, f"[Partition ops.orders-12 broker=1] {text}") == [
        (
            "isr_changes",
            {"topic": "ops.orders", "partition": 12, "change": "committed", "isr": isr, "partition_epoch": version},
        )
    ]


def test_committed_under_min_isr() -> None:
    parsed = parse(PARTITION, "[Partition clicks-2 broker=1] ISR updated to 1 (under-min-isr) and version updated to 6")
    assert parsed.facts[0].row["isr"] == [1]
    assert parsed.facts[0].row["partition_epoch"] == 6
    assert parsed.facts[0].row["detail"] == "(under-min-isr)"


def test_committed_in_0_10() -> None:
    line = (
        "Partition [ledger,2] on broker 1: ISR updated to [ReplicaId: 1; Topic: ledger; Partition: 2; isLocal: true; "
        "lastCaughtUpTimeMs: 0; Highwatermark: 121 [0 : 13549],ReplicaId: 3; Topic: ledger; Partition: 2; isLocal: "
        "false; lastCaughtUpTimeMs: 1795189342895] and zkVersion updated to [7]"
    )
    row = fact(PARTITION, line)
    assert (row["topic"], row["partition"], row["isr"], row["partition_epoch"]) == ("ledger", 2, [1, 3], 7)


def test_shrink_in_3_9() -> None:
    line = (
        "[Partition orders-3 broker=1] Shrinking ISR from 1,3,2 to 1. Leader: (highWatermark: 857, endOffset: 858). "
        "Out of sync replicas: (brokerId: 3, endOffset: 857, lastCaughtUpTimeMs: 1795188871975) (brokerId: 2, "
        "endOffset: unknown, lastCaughtUpTimeMs: unknown)."
    )
    assert fact(PARTITION, line) == {
        "topic": "orders",
        "partition": 3,
        "change": "shrink",
        "isr": [1],
        "previous_isr": [1, 3, 2],
        "high_watermark": 857,
        "leader_end_offset": 858,
        "out_of_sync": [
            {"replica_id": 3, "end_offset": 857, "last_caught_up_time_ms": 1795188871975},
            {"replica_id": 2, "end_offset": None, "last_caught_up_time_ms": None},
        ],
    }


def test_shrink_in_2_8() -> None:
    line = (
        "[Partition payments-0 broker=1] Shrinking ISR from 1,3,2 to 1,2. Leader: (highWatermark: 433, endOffset: "
        "438). Out of sync replicas: (brokerId: 3, endOffset: 433)."
    )
    row = fact(PARTITION, line)
    assert (row["isr"], row["previous_isr"], row["leader_end_offset"]) == ([1, 2], [1, 3, 2], 438)
    assert row["out_of_sync"] == [{"replica_id": 3, "end_offset": 433, "last_caught_up_time_ms": None}]


@pytest.mark.parametrize(
    "line",
    [
        "Partition [ledger,1] on broker 2: Shrinking ISR for partition [ledger,1] from 2,3,1 to 2",
        "[Partition ledger-1 broker=2] Shrinking ISR from 2,3,1 to 2",  # 0.11 to 2.1, from source
    ],
)
def test_shrink_without_offsets(line: str) -> None:
    assert fact(PARTITION, line) == {
        "topic": "ledger",
        "partition": 1,
        "change": "shrink",
        "isr": [2],
        "previous_isr": [2, 3, 1],
    }


@pytest.mark.parametrize(
    "line",
    [
        "Partition [ledger,2] on broker 1: Expanding ISR for partition ledger-2 from 1 to 1,3",
        "[Partition ledger-2 broker=1] Expanding ISR from 1 to 1,3",  # 0.11 to 2.7, from source
    ],
)
def test_expand(line: str) -> None:
    row = fact(PARTITION, line)
    assert (row["change"], row["previous_isr"], row["isr"]) == ("expand", [1], [1, 3])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Enqueued ISR change to state LeaderAndIsr(leader=1, leaderEpoch=5, isr=List(1, 2), zkVersion=0) after "
            "transition to PendingShrinkIsr(isr=Set(1, 3, 2), outOfSyncReplicaIds=Set(3))",
            {"change": "pending_shrink", "isr": [1, 2], "previous_isr": [1, 3, 2], "leader_epoch": 5},
        ),
        (
            # 2.7, from source
            "Sent `AlterIsr` request to change state to LeaderAndIsr(leader=1, leaderEpoch=5, isr=List(1, 2), "
            "zkVersion=0) after transition to PendingExpandIsr(isr=Set(1), newInSyncReplicaId=2)",
            {"change": "pending_expand", "isr": [1, 2], "previous_isr": [1], "leader_epoch": 5},
        ),
        (
            "Submitting ISR state change PendingExpandIsr(isr=Set(1, 2), newInSyncReplicaId=3)",  # 3.1, from source
            {"change": "pending_expand", "isr": [1, 2, 3], "previous_isr": [1, 2]},
        ),
        (
            # 3.2, from source
            "Submitting ISR state change PendingShrinkIsr(isr=Set(1, 2, 3), outOfSyncReplicaIds=Set(3), "
            "sentLeaderAndIsr=LeaderAndIsr(leader=1, leaderEpoch=4, isr=List(1, 2), leaderRecoveryState=RECOVERED, "
            "partitionEpoch=8), leaderRecoveryState=RECOVERED)",
            {"change": "pending_shrink", "isr": [1, 2], "previous_isr": [1, 2, 3], "leader_epoch": 4},
        ),
        (
            # 3.3, from source
            "Submitting ISR state change PendingExpandIsr(newInSyncReplicaId=2, "
            "sentLeaderAndIsr=LeaderAndIsr(leader=1, leaderEpoch=4, isr=List(1, 3, 2), leaderRecoveryState=RECOVERED, "
            "partitionEpoch=8), leaderRecoveryState=RECOVERED, lastCommittedState=CommittedPartitionState(isr=Set(1, "
            "3), leaderRecoveryState=RECOVERED))",
            {"change": "pending_expand", "isr": [1, 3, 2], "previous_isr": [1, 3], "leader_epoch": 4},
        ),
        (
            "Submitting ISR state change PendingExpandIsr(newInSyncReplicaId=2, "
            "sentLeaderAndIsr=LeaderAndIsr(leader=1, leaderEpoch=0, isrWithBrokerEpoch=[BrokerState(brokerId=1, "
            "brokerEpoch=11), BrokerState(brokerId=2, brokerEpoch=190), BrokerState(brokerId=3, brokerEpoch=12)], "
            "leaderRecoveryState=RECOVERED, partitionEpoch=1), leaderRecoveryState=RECOVERED, "
            "lastCommittedState=CommittedPartitionState[isr=[1, 3], leaderRecoveryState=RECOVERED])",
            {"change": "pending_expand", "isr": [1, 2, 3], "previous_isr": [1, 3], "leader_epoch": 0},
        ),
    ],
)
def test_pending(text: str, expected: dict[str, Any]) -> None:
    assert fact(PARTITION, f"[Partition t-0 broker=1] {text}") == {"topic": "t", "partition": 0, **expected}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Failed to alter partition to PendingExpandIsr(newInSyncReplicaId=3, "
            "sentLeaderAndIsr=LeaderAndIsr(leader=1, leaderEpoch=2, isrWithBrokerEpoch=List(BrokerState(brokerId=1, "
            "brokerEpoch=6), BrokerState(brokerId=3, brokerEpoch=355)), leaderRecoveryState=RECOVERED, "
            "partitionEpoch=7), leaderRecoveryState=RECOVERED, lastCommittedState=CommittedPartitionState(isr=Set(1), "
            "leaderRecoveryState=RECOVERED)) since the controller rejected the request with OPERATION_NOT_ATTEMPTED. "
            "Partition state has been reset to the latest committed state CommittedPartitionState(isr=Set(1), "
            "leaderRecoveryState=RECOVERED).",
            {"isr": [1, 3], "previous_isr": [1], "leader_epoch": 2},
        ),
        (
            "Ignoring failed ISR update to PendingShrinkIsr(isr=Set(1, 2, 3), outOfSyncReplicaIds=Set(2)) since we "
            "have already updated state to CommittedIsr(isr=Set(1, 3))",
            {"isr": [1, 3], "previous_isr": [1, 2, 3]},
        ),
        (
            # 2.8, from source
            "Failed to update ISR to PendingExpandIsr(isr=Set(1), newInSyncReplicaId=2) due to unexpected "
            "UNKNOWN_SERVER_ERROR. Retrying.",
            {"isr": [1, 2], "previous_isr": [1]},
        ),
        (
            # 3.3, from source
            "Ignoring new ISR LeaderAndIsr(leader=1, leaderEpoch=3, isr=List(1, 2), leaderRecoveryState=RECOVERED, "
            "partitionEpoch=2) since we have a newer version 4.",
            {"isr": [1, 2], "leader_epoch": 3},
        ),
        ("Cached zkVersion [0] not equal to that in zookeeper, skip updating ISR", {}),
    ],
)
def test_refused(text: str, expected: dict[str, Any]) -> None:
    row = fact(PARTITION, f"[Partition t-0 broker=1] {text}")
    assert row == {"topic": "t", "partition": 0, "change": "refused", **expected}
