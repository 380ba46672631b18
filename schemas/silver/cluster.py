"""Controllers and brokers."""

from __future__ import annotations

from schemas.silver.source import PARTITION, TOPIC, silver_table
from schemas.table import BOOLEAN, INT, INTS, STRING, column, required

CONTROLLER_EVENTS = silver_table(
    "controller_events",
    "What a controller said: elections, brokers that came and went, fencing, topics, leader elections, ISR handling.",
    required(
        "event",
        STRING,
        "Kind, in snake case: controller_elected, controller_resigned, brokers_changed, "
        "broker_failed, broker_registered, broker_fenced, broker_unfenced, controlled_shutdown, "
        "partition_created, topic_created, topic_deleted, election, unclean_election, "
        "config_changed, reassignment, other",
    ),
    column("controller_epoch", INT, "Controller epoch"),
    column("subject_broker_id", INT, "Broker that the event is about"),
    column("brokers", INTS, "Brokers that the event is about, where several"),
    column("topic", STRING, "Topic, where one"),
    column("partition", INT, "Partition, where one"),
    column("topic_id", STRING, "Topic id"),
    column("leader", INT, "Leader chosen"),
    column("leader_epoch", INT, "Leader epoch"),
    column("isr", INTS, "ISR"),
    column("replicas", INTS, "Replicas"),
    column("detail", STRING, "As logged"),
)

PARTITION_STATES = silver_table(
    "partition_states",
    "Partition state machine of the ZooKeeper controller.",
    TOPIC,
    PARTITION,
    required("from_state", STRING, "NonExistentPartition, NewPartition, OnlinePartition, OfflinePartition"),
    required("to_state", STRING, "As from_state"),
    column("succeeded", BOOLEAN, "False where the controller says that it failed"),
    column("leader", INT, "Leader"),
    column("leader_epoch", INT, "Leader epoch"),
    column("isr", INTS, "ISR"),
    column("partition_epoch", INT, "zkVersion"),
    column("controller_epoch", INT, "Controller epoch"),
)

REPLICA_STATES = silver_table(
    "replica_states",
    "Replica state machine of the ZooKeeper controller.",
    TOPIC,
    PARTITION,
    required("replica_id", INT, "Replica"),
    required("from_state", STRING, "NonExistentReplica, NewReplica, OnlineReplica, OfflineReplica, ReplicaDeletion..."),
    required("to_state", STRING, "As from_state"),
    column("succeeded", BOOLEAN, "False where the controller says that it failed"),
    column("controller_epoch", INT, "Controller epoch"),
)

BROKER_LIFECYCLE = silver_table(
    "broker_lifecycle",
    "A broker started, registered, was fenced, began or ended its shutdown; sessions and elections of KRaft nodes.",
    required(
        "event",
        STRING,
        "starting, version, started, shutting_down, controlled_shutdown, shut_down, registered, "
        "fenced, unfenced, zookeeper_connected, zookeeper_expired, log_dir_failure, state_change, "
        "fatal, signal, log_loading, high_watermarks_loaded",
    ),
    column("kafka_version", STRING, "Kafka version"),
    column("mode", STRING, "zookeeper or kraft"),
    column("detail", STRING, "As logged"),
)

BROKER_CONFIGS = silver_table(
    "broker_configs",
    "One configuration value: the dump at start, topic overrides, values changed at run time.",
    required(
        "scope",
        STRING,
        "broker: dump at start; topic: override; broker_dynamic: changed at run time; "
        "log: properties a log was created with",
    ),
    column("entity", STRING, "Topic, or broker"),
    required("key", STRING, "Configuration key"),
    column("value", STRING, "Value as logged; secrets are logged as [hidden] by Kafka itself"),
)
