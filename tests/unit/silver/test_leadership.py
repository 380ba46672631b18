"""Who leads, since when, with whom: the state change log. Lines are real, or marked as from source."""

import pytest

from tests.unit.silver.lines import fact, facts, parse

STATE = "state.change.logger"


def test_leader_starts_in_2_8() -> None:
    line = (
        "[Broker id=1] Leader orders-5 starts at leader epoch 4 from offset 1374 with high watermark 1373 ISR [1,3,2] "
        "addingReplicas [] removingReplicas []. Previous leader epoch was -1."
    )
    assert facts(STATE, line) == [
        (
            "leader_and_isr",
            {
                "topic": "orders",
                "partition": 5,
                "role": "leader_start",
                "leader": 1,
                "leader_epoch": 4,
                "start_offset": 1374,
                "high_watermark": 1373,
                "isr": [1, 3, 2],
                "adding_replicas": [],
                "removing_replicas": [],
                "previous_leader_epoch": -1,
            },
        )
    ]


@pytest.mark.parametrize(
    ("tail", "previous"),
    [
        (" . Previous leader None and previous leader epoch was -1.", {"previous_leader_epoch": -1}),
        (
            " (under-min-isr). Previous leader Some(12) and previous leader epoch was 7.",
            {"previous_leader": 12, "previous_leader_epoch": 7},
        ),
        (". Previous leader epoch was 7.", {"previous_leader_epoch": 7}),  # 3.3 and 3.4, from source
    ],
)
def test_leader_starts_since_3_3(tail: str, previous: dict[str, int]) -> None:
    line = (
        "[Broker id=10] Leader ops.orders-5 with topic id Some(0V_0lTx2Rzi0bfK055WW7g) starts at leader epoch 8 from "
        "offset "
        "982 with partition epoch 21, high watermark 980, ISR [10,4,13], adding replicas [4] and removing replicas "
        "[5,6]" + tail
    )
    assert facts(STATE, line) == [
        (
            "leader_and_isr",
            {
                "topic": "ops.orders",
                "partition": 5,
                "role": "leader_start",
                "topic_id": "0V_0lTx2Rzi0bfK055WW7g",
                "leader": 10,
                "leader_epoch": 8,
                "partition_epoch": 21,
                "start_offset": 982,
                "high_watermark": 980,
                "isr": [10, 4, 13],
                "adding_replicas": [4],
                "removing_replicas": [5, 6],
                **previous,
            },
        ),
        ("topics", {"topic": "ops.orders", "topic_id": "0V_0lTx2Rzi0bfK055WW7g"}),
    ]


@pytest.mark.parametrize(
    ("logger", "line", "high_watermark"),
    [
        (
            "kafka.cluster.Partition",  # 2.4, from source
            "[Partition t-0 broker=2] t-0 starts at leader epoch 3 from offset 7 with high watermark 6. Previous "
            "leader epoch was 1.",
            6,
        ),
        (
            "kafka.cluster.Partition",  # 0.11 to 2.3, from source
            "[Partition t-0 broker=2] t-0 starts at Leader Epoch 3 from offset 7. Previous Leader Epoch was: 1",
            None,
        ),
    ],
)
def test_leader_starts_in_the_server_log_before_2_6(logger: str, line: str, high_watermark: int | None) -> None:
    row = fact(logger, line)
    assert (row["role"], row["leader"], row["leader_epoch"], row["start_offset"]) == ("leader_start", 2, 3, 7)
    assert row.get("high_watermark") == high_watermark
    assert row["previous_leader_epoch"] == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[Broker id=1] Follower orders-4 starts at leader epoch 0 from offset 0 with high watermark 0. Previous "
            "leader epoch was -1.",
            {"previous_leader_epoch": -1},
        ),
        (
            "[Broker id=1] Follower orders-4 starts at leader epoch 0 from offset 0 with partition epoch 3 and high "
            "watermark 0. "
            "Current leader is 2. Previous leader epoch was -1.",  # 3.3 to 3.5, from source
            {"leader": 2, "partition_epoch": 3, "previous_leader_epoch": -1},
        ),
        (
            "[Broker id=1] Follower orders-4 starts at leader epoch 0 from offset 0 with partition epoch 0 and high "
            "watermark 0. "
            "Current leader is 2. Previous leader Some(2) and previous leader epoch was 0.",
            {"leader": 2, "partition_epoch": 0, "previous_leader": 2, "previous_leader_epoch": 0},
        ),
    ],
)
def test_follower_starts(line: str, expected: dict[str, int]) -> None:
    assert fact(STATE, line) == {
        "topic": "orders",
        "partition": 4,
        "role": "follower_start",
        "leader_epoch": 0,
        "start_offset": 0,
        "high_watermark": 0,
        **expected,
    }


def test_leader_takes_newer_metadata_in_3_9() -> None:
    line = (
        "[Broker id=1] Skipped the become-leader state change for __consumer_offsets-0 with topic id "
        "Some(6JiT1h5sT_K_1CjKZsfmfQ) and "
        "partition state LeaderAndIsrPartitionState(topicName='__consumer_offsets', partitionIndex=0, "
        "controllerEpoch=-1, leader=1, "
        "leaderEpoch=0, isr=[1, 3], partitionEpoch=1, replicas=[1, 2, 3], addingReplicas=[], removingReplicas=[], "
        "isNew=false, "
        "leaderRecoveryState=0) since it is already the leader with leader epoch 0. Current high watermark 19, ISR "
        "[3,1], adding "
        "replicas [] and removing replicas []."
    )
    assert fact(STATE, line, "leader_and_isr") == {
        "topic": "__consumer_offsets",
        "partition": 0,
        "role": "leader_update",
        "topic_id": "6JiT1h5sT_K_1CjKZsfmfQ",
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 1,
        "isr": [1, 3],
        "replicas": [1, 2, 3],
        "adding_replicas": [],
        "removing_replicas": [],
        "high_watermark": 19,
        "is_new": False,
    }
    assert fact(STATE, line, "topics") == {"topic": "__consumer_offsets", "topic_id": "6JiT1h5sT_K_1CjKZsfmfQ"}


def test_leader_takes_newer_metadata_in_4_3() -> None:
    line = (
        "[Broker id=1] Skipped the become-leader state change for scratch-1-3 with topic id "
        "Some(0V_0lTx2Rzi0bfK055WW7g), partition "
        "registration PartitionRegistration(replicas=[1, 4, 3], directories=[g_MiCFYIDSsFun8q73ysuQ, "
        "pIQ8U8TOS9btkeI8uojzLQ, "
        "llx6knDI3DEYDKfrmXxCqA], isr=[1, 4], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], "
        "leader=1, "
        "leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=1) and isNew=false since it is already the "
        "leader with leader "
        "epoch 0. Current high watermark 126, ISR [1,4], adding replicas [] and removing replicas []."
    )
    row = fact(STATE, line, "leader_and_isr")
    assert (row["topic"], row["partition"], row["role"], row["high_watermark"]) == (
        "scratch-1",
        3,
        "leader_update",
        126,
    )
    assert (row["isr"], row["replicas"], row["leader"]) == ([1, 4], [1, 4, 3], 1)
    assert (row["leader_epoch"], row["partition_epoch"]) == (0, 1)


def test_follower_takes_newer_metadata() -> None:
    line = (
        "[Broker id=1] Skipped the become-follower state change for payments-0 with topic id "
        "Some(S9o5dLJeQvGFTf8kHnpwBQ) and partition "
        "state LeaderAndIsrPartitionState(topicName='payments', partitionIndex=0, controllerEpoch=-1, leader=3, "
        "leaderEpoch=0, "
        "isr=[3, 1], partitionEpoch=1, replicas=[3, 1, 2], addingReplicas=[], removingReplicas=[], isNew=false, "
        "leaderRecoveryState=0) "
        "since it is already a follower with leader epoch 0."
    )
    row = fact(STATE, line, "leader_and_isr")
    assert (row["role"], row["leader"], row["isr"], row["partition_epoch"]) == ("metadata", 3, [3, 1], 1)
    assert "controller_epoch" not in row


def test_stale_metadata_tells_the_topic_id_only() -> None:
    line = (
        "[Broker id=1] Skipped the become-leader state change for t-0 with topic id Some(S9o5dLJeQvGFTf8kHnpwBQ) and "
        "partition state "
        "LeaderAndIsrPartitionState(topicName='t', partitionIndex=0, controllerEpoch=-1, leader=3, leaderEpoch=0, "
        "isr=[3, 1], "
        "partitionEpoch=1, replicas=[3, 1]) since the leader is already at a newer partition epoch 4."
    )
    assert facts(STATE, line) == [("topics", {"topic": "t", "topic_id": "S9o5dLJeQvGFTf8kHnpwBQ"})]


def test_leader_and_isr_request_in_2_8() -> None:
    line = (
        "[Broker id=1] Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='orders', partitionIndex=0, "
        "controllerEpoch=1, leader=2, leaderEpoch=0, isr=[2, 3, 1], zkVersion=7, replicas=[2, 3, 1], "
        "addingReplicas=[], "
        "removingReplicas=[], isNew=true) correlation id 1 from controller 2 epoch 5"
    )
    assert fact(STATE, line) == {
        "topic": "orders",
        "partition": 0,
        "role": "request",
        "leader": 2,
        "leader_epoch": 0,
        "partition_epoch": 7,
        "isr": [2, 3, 1],
        "replicas": [2, 3, 1],
        "adding_replicas": [],
        "removing_replicas": [],
        "controller_id": 2,
        "controller_epoch": 5,
        "is_new": True,
    }


def test_leader_and_isr_request_in_0_10() -> None:
    line = (
        "Broker 1 received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=2, leaderEpoch=0, isr=[2, 3, "
        "1], zkVersion=0, "
        "replicas=[1, 2, 3]) correlation id 2 from controller 4 epoch 1 for partition [ledger,1]"
    )
    row = fact(STATE, line)
    assert (row["topic"], row["partition"], row["role"], row["leader"]) == ("ledger", 1, "request", 2)
    assert (row["isr"], row["controller_id"]) == ([2, 3, 1], 4)


def test_a_leader_that_is_not_there() -> None:
    line = (
        "[Broker id=1] Received LeaderAndIsrRequest with correlation id 3 from controller 1 epoch 2 for partition "
        "__consumer_offsets-2 "
        "(last update controller epoch 2) but cannot become follower since the new leader -1 is unavailable."
    )
    row = fact(STATE, line)
    assert (row["topic"], row["partition"], row["leader"]) == ("__consumer_offsets", 2, -1)


@pytest.mark.parametrize(
    ("line", "isr", "replicas"),
    [
        (
            "[Broker id=1] Cached leader info UpdateMetadataPartitionState(topicName='orders', partitionIndex=0, "
            "controllerEpoch=1, "
            "leader=2, leaderEpoch=0, isr=[2, 3, 1], zkVersion=0, replicas=[2, 3, 1], offlineReplicas=[]) for "
            "partition orders-0 in "
            "response to UpdateMetadata request sent by controller 2 epoch 1 with correlation id 2",
            [2, 3, 1],
            [2, 3, 1],
        ),
        (
            "Broker 1 cached leader info (LeaderAndIsrInfo:(Leader:2,ISR:2,3,LeaderEpoch:0,ControllerEpoch:1),"
            "ReplicationFactor:3),"
            "AllReplicas:1,2,3) for partition orders-0 in response to UpdateMetadata request sent by controller 2 "
            "epoch 1 with "
            "correlation id 3",
            [2, 3],
            [1, 2, 3],
        ),
    ],
)
def test_metadata_cache(line: str, isr: list[int], replicas: list[int]) -> None:
    row = fact(STATE, line)
    assert (row["topic"], row["partition"], row["role"], row["leader"]) == ("orders", 0, "metadata", 2)
    assert (row["leader_epoch"], row["isr"], row["replicas"], row["controller_id"]) == (0, isr, replicas, 2)


def test_topic_ids_of_new_partitions() -> None:
    line = "[Broker id=1] Creating new partition ops.orders-5 with topic id 0V_0lTx2Rzi0bfK055WW7g."
    assert fact(STATE, line, "topics") == {"topic": "ops.orders", "topic_id": "0V_0lTx2Rzi0bfK055WW7g"}
    line = (
        "[Broker id=2] Expected partition ops.orders-0 with topic id 0V_0lTx2Rzi0bfK055WW7g to exist, but it was "
        "missing. Creating..."
    )
    assert fact(STATE, line, "topics")["topic"] == "ops.orders"


def test_states_of_partitions_and_replicas() -> None:
    line = (
        "[Controller id=1 epoch=2] Changed partition clicks-1 from OfflinePartition to OnlinePartition with state "
        "LeaderAndIsr(leader=2, "
        "leaderEpoch=3, isr=List(2, 11), zkVersion=4)"
    )
    assert facts(STATE, line) == [
        (
            "partition_states",
            {
                "topic": "clicks",
                "partition": 1,
                "from_state": "OfflinePartition",
                "to_state": "OnlinePartition",
                "succeeded": True,
                "leader": 2,
                "leader_epoch": 3,
                "isr": [2, 11],
                "partition_epoch": 4,
                "controller_epoch": 2,
            },
        ),
        (
            "leader_and_isr",
            {
                "topic": "clicks",
                "partition": 1,
                "role": "controller",
                "leader": 2,
                "leader_epoch": 3,
                "isr": [2, 11],
                "partition_epoch": 4,
                "controller_id": 1,
                "controller_epoch": 2,
            },
        ),
    ]
    line = (
        "[Controller id=1 epoch=4] Controller 1 epoch 4 failed to change state for partition clicks-2 from "
        "OfflinePartition to OnlinePartition\nkafka.common.StateChangeFailedException: x\n\tat y"
    )
    row = fact(STATE, line)
    assert (row["succeeded"], row["from_state"], row["controller_epoch"]) == (False, "OfflinePartition", 4)
    line = (
        "[Controller id=1 epoch=2] Changed state of replica 1 for partition payments-0 from OnlineReplica to "
        "OfflineReplica"
    )
    assert fact(STATE, line) == {
        "topic": "payments",
        "partition": 0,
        "replica_id": 1,
        "from_state": "OnlineReplica",
        "to_state": "OfflineReplica",
        "succeeded": True,
        "controller_epoch": 2,
    }


def test_new_partition_names_its_replicas() -> None:
    line = (
        "[Controller id=2 epoch=1] Changed partition orders-0 state from NonExistentPartition to NewPartition with "
        "assigned replicas 2,3,1"
    )
    assert fact(STATE, line, "partition_states")["to_state"] == "NewPartition"
    created = fact(STATE, line, "controller_events")
    assert (created["event"], created["replicas"]) == ("partition_created", [2, 3, 1])


def test_offline_replica_leaves_the_isr() -> None:
    line = (
        "[Controller id=1 epoch=2] Partition orders-0 state changed to "
        "(Leader:-1,ISR:1,3,LeaderEpoch:1,ZkVersion:3,ControllerEpoch:2) "
        "after removing replica 2 from the ISR as part of transition to OfflineReplica"
    )
    row = fact(STATE, line)
    assert (row["role"], row["leader"], row["isr"]) == ("controller", -1, [1, 3])
    assert (row["leader_epoch"], row["partition_epoch"]) == (1, 3)


def test_controller_of_0_10() -> None:
    line = (
        "Controller 1 epoch 2 changed state of replica 1 for partition [ledger,2] from OnlineReplica to OfflineReplica"
    )
    assert fact(STATE, line)["controller_epoch"] == 2
    line = "Controller 4 epoch 1 changed partition [ledger,0] from OfflinePartition to OnlinePartition with leader 2"
    row = fact(STATE, line)
    assert (row["topic"], row["from_state"], row["leader"]) == ("ledger", "OfflinePartition", 2)
    line = (
        "Controller 1 epoch 2 sending become-leader LeaderAndIsr request "
        "(Leader:2,ISR:2,3,LeaderEpoch:6,ControllerEpoch:1) to broker 2 for partition [ledger,0]"
    )
    row = fact(STATE, line)
    assert (row["role"], row["isr"], row["controller_id"], row["controller_epoch"]) == ("controller", [2, 3], 1, 2)


@pytest.mark.parametrize(
    "line",
    [
        "[Broker id=1] Transitioning 2 partition(s) to local leaders.",
        "[Broker id=1] Stopped fetchers as part of become-follower request from controller 2 epoch 1 with correlation "
        "id 1 for 4 partitions",
        "[Broker id=1] Add 6 partitions and deleted 0 partitions from metadata cache in response to UpdateMetadata "
        "request sent by "
        "controller 2 epoch 1 with correlation id 2",
        "[Broker id=1] Ignoring LeaderAndIsr request from controller 2 with correlation id 17 epoch 1 for partition "
        "payments-0 since its "
        "associated leader epoch 0 matches the current leader epoch",
        "[Broker id=1] Finished LeaderAndIsr request in 620ms correlationId 1 from controller 2 for 6 partitions",
        "Broker 1 handling stop replica (delete=false) for partition ledger-0",
        "[Controller id=1 epoch=2] Sending LeaderAndIsr request to broker 1 with 7 become-leader and 11 "
        "become-follower partitions",
    ],
)
def test_lines_that_carry_nothing(line: str) -> None:
    parsed = parse(STATE, line)
    assert (parsed.outcome, parsed.facts) == ("known", ())
