"""A broker's life and its configuration."""

from typing import Any

import pytest

from tests.unit.silver.lines import fact, facts, parse


@pytest.mark.parametrize(
    ("logger", "line", "expected"),
    [
        (
            "org.apache.kafka.common.utils.AppInfoParser",
            "Kafka version: 2.8.2",
            {"event": "version", "kafka_version": "2.8.2"},
        ),
        (
            "org.apache.kafka.common.utils.AppInfoParser",
            "Kafka version : 0.10.2.2",
            {"event": "version", "kafka_version": "0.10.2.2"},
        ),
        ("kafka.server.KafkaServer", "starting", {"event": "starting", "mode": "zookeeper"}),
        ("kafka.server.KafkaServer", "[KafkaServer id=1] started", {"event": "started", "mode": "zookeeper"}),
        ("kafka.server.KafkaServer", "[Kafka Server 1], started", {"event": "started", "mode": "zookeeper"}),
        ("kafka.server.BrokerServer", "[BrokerServer id=1] Starting broker", {"event": "starting", "mode": "kraft"}),
        (
            "kafka.server.KafkaRaftServer",
            "[KafkaRaftServer nodeId=1] Kafka Server started",
            {"event": "started", "mode": "kraft"},
        ),
        (
            "kafka.server.KafkaServer",
            "[KafkaServer id=1] shut down completed",
            {"event": "shut_down", "mode": "zookeeper"},
        ),
        (
            "kafka.server.BrokerServer",
            "[BrokerServer id=1] Transition from STARTING to STARTED",
            {"event": "state_change", "mode": "kraft"},
        ),
        (
            "org.apache.kafka.server.BrokerLifecycleManager",
            "[BrokerLifecycleManager id=1] The broker has been unfenced. Transitioning from RECOVERY to RUNNING.",
            {"event": "unfenced", "mode": "kraft"},
        ),
        (
            "kafka.server.BrokerLifecycleManager",
            "[BrokerLifecycleManager id=1] Successfully registered broker 1 with broker epoch 6",
            {"event": "registered", "mode": "kraft"},
        ),
        (
            "kafka.zk.KafkaZkClient",
            "Registered broker 1 at path /brokers/ids/1 with addresses: PLAINTEXT://127.0.0.1:19093, czxid (broker "
            "epoch): 60",
            {"event": "registered", "mode": "zookeeper"},
        ),
        (
            "kafka.zookeeper.ZooKeeperClient",
            "[ZooKeeperClient Kafka server] Session expired.",
            {"event": "zookeeper_expired", "mode": "zookeeper"},
        ),
        (
            "org.apache.kafka.common.utils.LoggingSignalHandler",
            "Terminating process due to signal SIGTERM",
            {"event": "signal"},
        ),
        (
            "kafka.log.LogManager",
            "Recovering 18 logs from /var/lib/kafka/broker-2 since no clean shutdown file was found",
            {"event": "log_loading"},
        ),
        (
            "kafka.log.LogManager",
            "Loaded 18 logs in 360ms (unclean log dirs = ArrayBuffer(/d))",
            {"event": "log_loading"},
        ),
        ("kafka.log.LogManager", "Shutdown broker because all log dirs in /d have failed", {"event": "fatal"}),
        (
            "kafka.server.ReplicaManager",
            "[ReplicaManager broker=1] Stopping serving replicas in dir /d",
            {"event": "log_dir_failure"},
        ),
    ],
)
def test_lifecycle(logger: str, line: str, expected: dict[str, Any]) -> None:
    assert facts(logger, line) == [("broker_lifecycle", expected)]


@pytest.mark.parametrize("logger", ["kafka.server.KafkaConfig", "org.apache.kafka.common.config.AbstractConfig"])
def test_configuration_dump(logger: str) -> None:
    line = (
        "KafkaConfig values: \n\tbroker.id = 12\n\tlisteners = "
        "PLAINTEXT://127.0.0.1:19093,CONTROLLER://127.0.0.1:19193\n"
        "\tmin.insync.replicas = 2\n\tlog.dir = /tmp/a = b\n\tssl.key = \n\tsasl.jaas.config = [hidden]\n"
        "\tprincipal.rules = RULE:a\nRULE:b\n\tzookeeper.connect = null\n "
    )
    rows = [row for _, row in facts(logger, line)]
    assert {row["entity"] for row in rows} == {"12"}
    assert {row["scope"] for row in rows} == {"broker"}
    assert {row["key"]: row["value"] for row in rows} == {
        "broker.id": "12",
        "listeners": "PLAINTEXT://127.0.0.1:19093,CONTROLLER://127.0.0.1:19193",
        "min.insync.replicas": "2",
        "log.dir": "/tmp/a = b",
        "ssl.key": "",
        "sasl.jaas.config": "[hidden]",
        "principal.rules": "RULE:a\nRULE:b",
        "zookeeper.connect": "null",
    }


def test_node_id_names_the_broker_of_a_dump() -> None:
    line = "KafkaConfig values: \n\tbroker.id = -1\n\tnode.id = 3\n"
    assert [row["entity"] for _, row in facts("kafka.server.KafkaConfig", line)] == ["3", "3"]


def test_dumps_of_other_things_are_known() -> None:
    parsed = parse("org.apache.kafka.common.config.AbstractConfig", "AbstractConfig values: \n\tgroup.consumer.x = 1\n")
    assert (parsed.template, parsed.outcome) == ("configs.other_dump", "known")


@pytest.mark.parametrize(
    ("logger", "line", "scope", "entity", "values"),
    [
        (
            "kafka.log.LogManager",
            "Created log for partition a-b-1 in /d/a-b-1 with properties {cleanup.policy=compact, "
            'compression.type="producer", segment.bytes=104857600}',
            "log",
            "a-b",
            {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
        ),
        (
            "kafka.log.LogManager",
            "Created log for partition orders-4 in /d/orders-4 with properties {compression.type -> producer, "
            "min.insync.replicas -> 2, cleanup.policy -> [compact, delete], message.format.version -> 2.7-IV2}.",
            "log_all",
            "orders",
            {
                "compression.type": "producer",
                "min.insync.replicas": "2",
                "cleanup.policy": "[compact, delete]",
                "message.format.version": "2.7-IV2",
            },
        ),
        (
            "kafka.server.metadata.DynamicConfigPublisher",
            "[DynamicConfigPublisher broker id=2] Updating topic ops.orders with new configuration : "
            "min.insync.replicas -> 3,cleanup.policy -> compact",
            "topic",
            "ops.orders",
            {"min.insync.replicas": "3", "cleanup.policy": "compact"},
        ),
        (
            "kafka.server.metadata.DynamicConfigPublisher",
            "[DynamicConfigPublisher broker id=2] Updating topic ops.orders with new configuration : ",
            "topic",
            "ops.orders",
            {"": None},
        ),
        (
            "kafka.server.metadata.DynamicConfigPublisher",
            "[DynamicConfigPublisher controller id=3] Updating cluster configuration : min.insync.replicas -> 2",
            "broker_dynamic",
            "<default>",
            {"min.insync.replicas": "2"},
        ),
        (
            "kafka.server.DynamicConfigManager",  # ZooKeeper, from source
            "Processing override for entityPath: topics/ops.orders with config: Map(min.insync.replicas -> 3)",
            "topic",
            "ops.orders",
            {"min.insync.replicas": "3"},
        ),
        (
            "kafka.server.DynamicConfigManager$ConfigChangedNotificationHandler$",  # ZooKeeper, from source
            "Processing override for entityPath: brokers/<default> with config: HashMap(min.insync.replicas -> 3)",
            "broker_dynamic",
            "<default>",
            {"min.insync.replicas": "3"},
        ),
        (
            "kafka.server.ZkAdminManager",  # ZooKeeper, from source
            "[Admin Manager on Broker 1]: Updating topic ops.orders with new configuration : min.insync.replicas -> 3",
            "topic",
            "ops.orders",
            {"min.insync.replicas": "3"},
        ),
    ],
)
def test_values(logger: str, line: str, scope: str, entity: str, values: dict[str, str | None]) -> None:
    parsed = parse(logger, line)
    assert {fact.row["key"]: fact.row["value"] for fact in parsed.facts} == values
    assert {(fact.table, fact.row["scope"], fact.row["entity"]) for fact in parsed.facts} == {
        ("broker_configs", scope, entity)
    }


def test_value_replayed_by_a_kraft_controller() -> None:
    logger = "org.apache.kafka.controller.ConfigurationControlManager"
    line = (
        "[QuorumController id=1] Replayed ConfigRecord for ConfigResource(type=TOPIC, name='ops.orders') which set "
        "configuration min.insync.replicas to 3"
    )
    assert fact(logger, line, "broker_configs") == {
        "scope": "topic_record",
        "entity": "ops.orders",
        "key": "min.insync.replicas",
        "value": "3",
    }
    assert fact(logger, line, "controller_events") == {"event": "config_changed", "topic": "ops.orders"}


def test_a_log_without_overrides_says_that_there_are_none() -> None:
    line = "Created log for partition orders-5 in /d/orders-5 with properties {}"
    assert fact("kafka.log.LogManager", line) == {"scope": "log", "entity": "orders", "key": ""}


@pytest.mark.parametrize(
    "line",
    [
        "[Broker id=1] Deleting 2 partition(s).",
        "[Broker id=3] Handling StopReplica request correlationId 25 from controller 1 for 19 partitions",
        "[Broker id=1] Handling stop replica (delete=true) for partition ledger-0",  # from source
        "Broker 1 handling stop replica (delete=true) for partition ledger-0",  # from source
    ],
)
def test_a_broker_begins_to_stop_replicas(line: str) -> None:
    assert facts("state.change.logger", line) == [("broker_lifecycle", {"event": "stopping_replicas"})]


def test_a_broker_that_shuts_down_has_stepped_down() -> None:
    line = "[Broker id=1] Stopped fetchers as part of controlled shutdown for 8 partitions"
    assert facts("state.change.logger", line) == [("broker_lifecycle", {"event": "stepped_down"})]


@pytest.mark.parametrize(
    ("logger", "line", "topic"),
    [
        (
            "kafka.log.LogManager",
            "Log for partition scratch-1-0 is renamed to "
            "/var/lib/kafka/broker-2/scratch-1-0.104b0f62ad0540bb8f735987d42bfe13-delete and is scheduled for deletion",
            "scratch-1",
        ),
        (
            "state.change.logger",
            "[Broker id=1] Finished handling stop replica (delete=true) for partition ledger-0",  # from source
            "ledger",
        ),
        (
            "state.change.logger",
            "Broker 1 finished handling stop replica (delete=true) for partition ledger-0",  # from source
            "ledger",
        ),
    ],
)
def test_a_broker_stopped_hosting_a_replica(logger: str, line: str, topic: str) -> None:
    where = {"log_dir": "/var/lib/kafka/broker-2"} if " renamed to " in line else {}
    assert facts(logger, line) == [("leader_and_isr", {"topic": topic, "partition": 0, "role": "stopped", **where})]


@pytest.mark.parametrize(
    ("logger", "line"),
    [
        ("state.change.logger", "[Broker id=1] Finished handling stop replica (delete=false) for partition ledger-0"),
        (
            "kafka.log.LogManager",
            "Log for partition a-0 is marked as stray and renamed to /d/a-0.104b0f62ad0540bb8f735987d42bfe13-stray",
        ),
    ],
)
def test_lines_about_replicas_that_say_nothing_of_hosting(logger: str, line: str) -> None:
    parsed = parse(logger, line)
    assert (parsed.outcome, parsed.facts) == ("known", ())
