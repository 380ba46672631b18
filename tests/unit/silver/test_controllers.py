"""Controllers: ZooKeeper (kafka.controller) and KRaft (org.apache.kafka.controller)."""

from typing import Any

import pytest

from tests.unit.silver.lines import fact, facts, parse

ZK = "kafka.controller.KafkaController"
REPLICATION = "org.apache.kafka.controller.ReplicationControlManager"
CLUSTER = "org.apache.kafka.controller.ClusterControlManager"
HEARTBEATS = "org.apache.kafka.controller.BrokerHeartbeatManager"
QUORUM = "org.apache.kafka.controller.QuorumController"
NODE = "[QuorumController id=1] "


@pytest.mark.parametrize(
    ("logger", "line", "expected"),
    [
        (
            ZK,
            "[Controller id=3] 3 successfully elected as the controller. Epoch incremented to 2 and epoch zk version "
            "is now 2",
            {"event": "controller_elected", "subject_broker_id": 3, "controller_epoch": 2},
        ),
        (
            ZK,
            "[Controller 1]: Controller 1 incremented epoch to 2",
            {"event": "controller_elected", "subject_broker_id": 1, "controller_epoch": 2},
        ),
        (
            ZK,
            "[Controller id=1] Incremented epoch to 2",  # 1.0
            {"event": "controller_elected", "subject_broker_id": 1, "controller_epoch": 2},
        ),
        (
            ZK,
            "[Controller id=3] Epoch incremented to 1",  # 1.1, 2.0
            {"event": "controller_elected", "subject_broker_id": 3, "controller_epoch": 1},
        ),
        (
            ZK,
            "[Controller 2]: 2 successfully elected as the controller",  # 0.11 to 2.0
            {"event": "controller_elected", "subject_broker_id": 2},
        ),
        (ZK, "[Controller id=1] Resigned", {"event": "controller_resigned", "subject_broker_id": 1}),
        (
            ZK,
            "[Controller id=1] Newly added brokers: , deleted brokers: 3, bounced brokers: , all live brokers: 1,2",
            {"event": "brokers_changed", "brokers": [1, 2]},
        ),
        (
            ZK,
            "[Controller id=1] Broker failure callback for 2,3",
            {"event": "broker_failed", "brokers": [2, 3]},
        ),
        (ZK, "[Controller id=1] Shutting down broker 12", {"event": "controlled_shutdown", "subject_broker_id": 12}),
        (
            ZK,
            "[Controller id=1] Partition orders-0 completed preferred replica leader election. New leader is 2",
            {"event": "election", "topic": "orders", "partition": 0, "leader": 2},
        ),
        (
            "kafka.controller.OfflinePartitionLeaderSelector",  # from source
            "[OfflinePartitionLeaderSelector]: No broker in ISR is alive for [orders,0]. Elect leader 2 from live "
            "brokers 2,3. There's potential data loss.",
            {"event": "unclean_election", "topic": "orders", "partition": 0, "leader": 2},
        ),
        (
            REPLICATION,
            NODE + "Directories [rmHcS9RQ44qjhn76WlSWww] in broker 2 marked offline, remaining directories: "
            "[wREabQa5P2cGN9xjAooiYA]",
            {"event": "log_dir_failed", "subject_broker_id": 2},
        ),
        (
            ZK,
            "[Controller id=1] Handling log directory failure for brokers 2,3",  # from source
            {"event": "log_dir_failed", "brokers": [2, 3]},
        ),
        (
            REPLICATION,
            NODE + "Fencing broker 2 because its session has timed out.",
            {"event": "broker_fenced", "subject_broker_id": 2},
        ),
        (
            REPLICATION,
            NODE + "Fencing broker 2 at epoch 190 because its session has timed out.",
            {"event": "broker_fenced", "subject_broker_id": 2},
        ),
        (
            REPLICATION,
            NODE + "enterControlledShutdown[3]: changing 18 partition(s)",
            {"event": "other", "subject_broker_id": 3},
        ),
        (
            REPLICATION,
            NODE
            + (
                "Rejecting AlterPartition request from node 2 for payments-2 because the current partition epoch is "
                "4, not 3."
            ),
            {"event": "other", "topic": "payments", "partition": 2, "subject_broker_id": 2},
        ),
        (
            REPLICATION,
            NODE
            + (
                "AlterPartition request from node 1 for ops.orders-1 completed the ongoing partition reassignment. "
                "isr: [1, 2, 5] -> [1, 2, 4, 5], replicaSet: [3, 4, 5, 1, 2] -> [3, 4, 5], partitionEpoch: 3 -> 4, "
                "leaderEpoch: 1 -> 2"
            ),
            {
                "event": "reassignment",
                "topic": "ops.orders",
                "partition": 1,
                "subject_broker_id": 1,
                "isr": [1, 2, 4, 5],
                "replicas": [3, 4, 5],
                "leader_epoch": 2,
            },
        ),
        (
            "org.apache.kafka.controller.PartitionChangeBuilder",  # 3.6 and later, from source
            "Setting new leader for topicId 0V_0lTx2Rzi0bfK055WW7g, partition 3 to 2 using an unclean election",
            {"event": "unclean_election", "topic_id": "0V_0lTx2Rzi0bfK055WW7g", "partition": 3, "leader": 2},
        ),
        (
            CLUSTER,
            NODE
            + (
                "Replayed initial RegisterBrokerRecord for broker 4: RegisterBrokerRecord(brokerId=4, "
                "isMigratingZkBroker=false, incarnationId=lvcDFexOTryDxqEuyXNpgQ, brokerEpoch=10)"
            ),
            {"event": "broker_registered", "subject_broker_id": 4},
        ),
        (
            CLUSTER,
            NODE
            + (
                "Replayed BrokerRegistrationChangeRecord modifying the registration for broker 2: "
                "BrokerRegistrationChangeRecord(brokerId=2, brokerEpoch=5, fenced=1, inControlledShutdown=0, "
                "logDirs=[])"
            ),
            {"event": "broker_fenced", "subject_broker_id": 2},
        ),
        (
            CLUSTER,
            NODE
            + (
                "Replayed BrokerRegistrationChangeRecord modifying the registration for broker 2: "
                "BrokerRegistrationChangeRecord(brokerId=2, brokerEpoch=5, fenced=-1, inControlledShutdown=0, "
                "logDirs=[])"
            ),
            {"event": "broker_unfenced", "subject_broker_id": 2},
        ),
        (
            CLUSTER,
            NODE
            + (
                "Replayed BrokerRegistrationChangeRecord modifying the registration for broker 2: "
                "BrokerRegistrationChangeRecord(brokerId=2, brokerEpoch=5, fenced=0, inControlledShutdown=1, "
                "logDirs=[])"
            ),
            {"event": "controlled_shutdown", "subject_broker_id": 2},
        ),
        (
            HEARTBEATS,
            NODE
            + (
                "The request from broker 2 to unfence has been granted because it has caught up with the offset of "
                "its register broker record 173."
            ),
            {"event": "broker_unfenced", "subject_broker_id": 2},
        ),
        (
            HEARTBEATS,
            NODE + "Unfenced broker 3 has requested and been granted a controlled shutdown.",
            {"event": "controlled_shutdown", "subject_broker_id": 3},
        ),
        (
            QUORUM,
            NODE + "Becoming the active controller at epoch 7, next write offset 100.",
            {"event": "controller_elected", "subject_broker_id": 1, "controller_epoch": 7},
        ),
        (
            QUORUM,  # 3.3 to 3.5, from source
            NODE + "Becoming the active controller at epoch 7, committed offset 99, committed epoch 6",
            {"event": "controller_elected", "subject_broker_id": 1, "controller_epoch": 7},
        ),
        (
            QUORUM,
            NODE + "In the new epoch 12, the leader is 3.",
            {"event": "controller_elected", "subject_broker_id": 3, "controller_epoch": 12},
        ),
        (QUORUM, NODE + "In the new epoch 1, the leader is (none).", {"event": "other", "controller_epoch": 1}),
        (
            QUORUM,
            NODE
            + (
                "Renouncing the leadership due to a metadata log event. We were the leader at epoch 1, but in the "
                "new epoch 2, the leader is (none). Reverting to last stable offset 98."
            ),
            {"event": "controller_resigned", "subject_broker_id": 1},
        ),
    ],
)
def test_events(logger: str, line: str, expected: dict[str, Any]) -> None:
    assert facts(logger, line) == [("controller_events", expected)]


def test_isr_written_by_the_zookeeper_controller() -> None:
    line = "[Controller id=1] ISR for partition __transaction_state-0 updated to [1,3,2] and zkVersion updated to [4]"
    assert fact(ZK, line) == {
        "topic": "__transaction_state",
        "partition": 0,
        "role": "controller",
        "controller_id": 1,
        "isr": [1, 3, 2],
        "partition_epoch": 4,
    }
    line = (
        "[Controller id=1] ISR for partition t-0 updated to LeaderAndIsr(leader=1, leaderEpoch=3, "
        "isrWithBrokerEpoch=List(BrokerState(brokerId=1, brokerEpoch=-1), BrokerState(brokerId=2, brokerEpoch=-1)), "
        "leaderRecoveryState=RECOVERED, partitionEpoch=4)."
    )
    row = fact(ZK, line)
    assert (row["leader"], row["leader_epoch"], row["isr"], row["partition_epoch"]) == (1, 3, [1, 2], 4)


def test_new_topics_of_the_zookeeper_controller() -> None:
    line = (
        "[Controller id=2] New topics: [Set(orders)], deleted topics: [HashSet(old.one)], new partition replica "
        "assignment [Set(TopicIdReplicaAssignment(orders,Some(elG0CMoWRtCU6qa-3Jc1xw),HashMap(orders-0 -> "
        "ReplicaAssignment(replicas=2,3,1, addingReplicas=, removingReplicas=), orders-3 -> "
        "ReplicaAssignment(replicas=2,1,3, addingReplicas=, removingReplicas=))))]"
    )
    assert facts(ZK, line) == [
        ("controller_events", {"event": "topic_created", "topic": "orders", "topic_id": "elG0CMoWRtCU6qa-3Jc1xw"}),
        ("topics", {"topic": "orders", "topic_id": "elG0CMoWRtCU6qa-3Jc1xw"}),
        ("controller_events", {"event": "topic_deleted", "topic": "old.one"}),
        ("controller_events", {"event": "partition_created", "topic": "orders", "partition": 0, "replicas": [2, 3, 1]}),
        ("controller_events", {"event": "partition_created", "topic": "orders", "partition": 3, "replicas": [2, 1, 3]}),
    ]


def test_partition_of_a_kraft_topic() -> None:
    line = NODE + (
        "Replayed PartitionRecord for new partition ops.orders-0 with topic ID 0V_0lTx2Rzi0bfK055WW7g and "
        "PartitionRegistration(replicas=[4, 5, 1], directories=[pIQ8U8TOS9btkeI8uojzLQ, Kuajs5nJgTyEUgwMfm0POQ, "
        "g_MiCFYIDSsFun8q73ysuQ], isr=[4, 5, 1], removingReplicas=[], addingReplicas=[], elr=[], "
        "lastKnownElr=[], leader=4, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)."
    )
    row = fact(REPLICATION, line, "leader_and_isr")
    assert (row["role"], row["controller_id"], row["leader"], row["isr"]) == ("controller", 1, 4, [4, 5, 1])
    assert (row["leader_epoch"], row["partition_epoch"], row["replicas"]) == (0, 0, [4, 5, 1])
    assert fact(REPLICATION, line, "controller_events")["event"] == "partition_created"
    assert fact(REPLICATION, line, "topics") == {"topic": "ops.orders", "topic_id": "0V_0lTx2Rzi0bfK055WW7g"}


def test_partition_of_a_kraft_topic_before_3_6() -> None:
    """From source."""
    line = NODE + (
        "Created partition t-0 with topic ID 0V_0lTx2Rzi0bfK055WW7g and PartitionRegistration(replicas=[4, 5], "
        "isr=[4, 5], removingReplicas=[], addingReplicas=[], leader=4, leaderRecoveryState=RECOVERED, "
        "leaderEpoch=0, partitionEpoch=0)."
    )
    assert fact(REPLICATION, line, "leader_and_isr")["isr"] == [4, 5]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (
            " (isr: [1, 4, 5] -> [1, 4], replicaSet: [4, 5, 1] -> [2, 3, 4, 1, 5], partitionEpoch: 3, leaderEpoch: 7)",
            {"isr": [1, 4], "partition_epoch": 3, "leader_epoch": 7},
        ),
        ("", {}),
    ],
)
def test_assignment_changed(tail: str, expected: dict[str, Any]) -> None:
    line = (
        NODE
        + (
            "Replayed partition assignment change PartitionChangeRecord(partitionId=0, "
            "topicId=0V_0lTx2Rzi0bfK055WW7g, isr=null, leader=-2, replicas=[2, 3, 4, 1, 5], removingReplicas=[1, 5], "
            "addingReplicas=[2, 3], leaderRecoveryState=-1, directories=[L1vpXgbX97ea7iw63cE6nw], "
            "eligibleLeaderReplicas=null, lastKnownElr=null) for topic ops.orders"
        )
        + ("." + tail if tail else "")
    )
    assert fact(REPLICATION, line, "leader_and_isr") == {
        "topic": "ops.orders",
        "partition": 0,
        "role": "controller",
        "topic_id": "0V_0lTx2Rzi0bfK055WW7g",
        "replicas": [2, 3, 4, 1, 5],
        "adding_replicas": [2, 3],
        "removing_replicas": [1, 5],
        "controller_id": 1,
        **expected,
    }
    assert fact(REPLICATION, line, "controller_events")["event"] == "reassignment"


def test_unclean_partition_change() -> None:
    """From source (PartitionRegistration.maybeLogPartitionChange)."""
    line = NODE + (
        "UNCLEAN partition change for t-0 with topic ID 0V_0lTx2Rzi0bfK055WW7g: isr: [1] -> [2], leader: -1 -> "
        "2, leaderEpoch: 3 -> 4, partitionEpoch: 5 -> 6"
    )
    row = fact(REPLICATION, line, "leader_and_isr")
    assert (row["isr"], row["leader"], row["leader_epoch"], row["partition_epoch"]) == ([2], 2, 4, 6)
    assert fact(REPLICATION, line, "controller_events") == {
        "event": "unclean_election",
        "topic": "t",
        "partition": 0,
        "topic_id": "0V_0lTx2Rzi0bfK055WW7g",
        "leader": 2,
        "leader_epoch": 4,
        "isr": [2],
    }
    assert [table for table, _ in facts(REPLICATION, line.replace("UNCLEAN ", ""))] == ["leader_and_isr", "topics"]


def test_topics_of_kraft() -> None:
    line = NODE + "Replayed TopicRecord for topic scratch-1 with topic ID NO2Ez8FXS0SO1LyaKn6DIQ."
    assert [table for table, _ in facts(REPLICATION, line)] == ["controller_events", "topics"]
    line = NODE + "DeleteTopics result(s): {id: NO2Ez8FXS0SO1LyaKn6DIQ, name: scratch-1, result: SUCCESS}"
    assert fact(REPLICATION, line, "controller_events")["event"] == "topic_deleted"
    line = NODE + (
        "CreateTopics result(s): CreatableTopic(name='a', numPartitions=6, replicationFactor=3, assignments=[], "
        "configs=[]): SUCCESS, CreatableTopic(name='b', numPartitions=6, replicationFactor=3, assignments=[], "
        "configs=[]): TOPIC_ALREADY_EXISTS (Topic 'b' already exists.)"
    )
    assert [row["topic"] for _, row in facts(REPLICATION, line)] == ["a"]


@pytest.mark.parametrize(
    ("logger", "line"),
    [
        (ZK, "[Controller id=1] Partitions undergoing preferred replica election: "),
        (ZK, "[Controller id=1] Live brokers: "),
        (
            ZK,
            "[Controller id=1] All leaders = t-0 -> (Leader:3,ISR:3,2,LeaderEpoch:2,ZkVersion:5,ControllerEpoch:2)",
        ),
        (
            "kafka.controller.RequestSendThread",
            "[RequestSendThread controllerId=1] Controller 1's connection to broker h:1 (id: 3 rack: null) was "
            "unsuccessful\njava.io.IOException: x",
        ),
        (
            "kafka.controller.ZkPartitionStateMachine",
            "[PartitionStateMachine controllerId=1] Triggering online partition state changes",
        ),
        (QUORUM, NODE + "Creating new QuorumController with clusterId W-CQybfSRP-OafW0EWRB0Q."),
        (CLUSTER, NODE + "Ignoring no-op registration change for BrokerRegistration(id=3)"),
        ("org.apache.kafka.raft.KafkaRaftClient", "[RaftManager id=1] Beginning graceful shutdown"),
        (
            REPLICATION,
            NODE + "Removing heartbeat tracker entry for broker 3 at previous epoch 10. Current epoch is 266",
        ),
        (REPLICATION, NODE + "Removing heartbeat tracker entry for unknown broker 3 at epoch 10."),
        (
            "org.apache.kafka.server.controller.ControllerRegistrationManager",
            "[ControllerRegistrationManager id=1 incarnation=dB9rk_0YRYeHN5jI2_Mn9g] initialized channel manager.",
        ),
        (
            "org.apache.kafka.server.logger.Log4jControllerRegistration",
            "Registered `kafka:type=kafka.Log4jController` MBean",
        ),
        (
            "kafka.log.Log",  # 0.10.2: the folder of a replica that was deleted before the broker restarted
            "Completed load of log scratch-0.531d347e244248cfa691073e5bffa09e-delete with 1 log segments and log end "
            "offset 72 in 3 ms",
        ),
    ],
)
def test_lines_that_carry_nothing(logger: str, line: str) -> None:
    assert parse(logger, line).outcome == "known"
