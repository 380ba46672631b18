"""Controllers and brokers."""

from __future__ import annotations

from schemas import columns as c
from schemas.silver.source import silver_table
from schemas.table import BOOLEAN, INT, INTS, STRING, column, required

_PARTITION_STATES = "NonExistentPartition NewPartition OnlinePartition OfflinePartition"
_REPLICA_STATES = (
    "NonExistentReplica NewReplica OnlineReplica OfflineReplica ReplicaDeletionStarted ReplicaDeletionSuccessful "
    "ReplicaDeletionIneligible"
)

CONTROLLER_EVENTS = silver_table(
    "controller_events",
    "What a controller said: elections, brokers that came and went, fencing, topics, leader elections, ISR handling.",
    required(
        "event",
        STRING,
        "Kind, in snake case: controller_elected, controller_resigned, brokers_changed, "
        "broker_failed, log_dir_failed, broker_registered, broker_fenced, broker_unfenced, controlled_shutdown, "
        "partition_created, topic_created, topic_deleted, election, unclean_election, "
        "config_changed, reassignment, other",
    ),
    c.CONTROLLER_EPOCH,
    column("subject_broker_id", INT, "Broker that the event is about"),
    column("brokers", INTS, "Brokers that the event is about, where several"),
    column("topic", STRING, "Topic, where one"),
    column("partition", INT, "Partition, where one"),
    column("topic_id", STRING, "Topic id"),
    column("leader", INT, "Leader chosen"),
    c.LEADER_EPOCH,
    column("isr", INTS, "ISR"),
    column("replicas", INTS, "Replicas"),
    c.DETAIL,
    words={
        "event": "controller_elected controller_resigned brokers_changed broker_failed log_dir_failed "
        "broker_registered broker_fenced broker_unfenced controlled_shutdown partition_created topic_created "
        "topic_deleted election unclean_election config_changed reassignment other"
    },
)

PARTITION_STATES = silver_table(
    "partition_states",
    "Partition state machine of the ZooKeeper controller.",
    *(c.TOPIC, c.PARTITION),
    required("from_state", STRING, "NonExistentPartition, NewPartition, OnlinePartition, OfflinePartition"),
    required("to_state", STRING, "As from_state"),
    column("succeeded", BOOLEAN, "False where the controller says that it failed"),
    column("leader", INT, "Leader"),
    c.LEADER_EPOCH,
    column("isr", INTS, "ISR"),
    column("partition_epoch", INT, "zkVersion"),
    c.CONTROLLER_EPOCH,
    words={"from_state": _PARTITION_STATES, "to_state": _PARTITION_STATES},
)

REPLICA_STATES = silver_table(
    "replica_states",
    "Replica state machine of the ZooKeeper controller.",
    *(c.TOPIC, c.PARTITION),
    required("replica_id", INT, "Replica"),
    required("from_state", STRING, "NonExistentReplica, NewReplica, OnlineReplica, OfflineReplica, ReplicaDeletion..."),
    required("to_state", STRING, "As from_state"),
    column("succeeded", BOOLEAN, "False where the controller says that it failed"),
    c.CONTROLLER_EPOCH,
    words={"from_state": _REPLICA_STATES, "to_state": _REPLICA_STATES},
)

BROKER_LIFECYCLE = silver_table(
    "broker_lifecycle",
    "A broker started, registered, was fenced, began or ended its shutdown; sessions and elections of KRaft nodes.",
    required(
        "event",
        STRING,
        "starting, version, started, shutting_down, controlled_shutdown, shut_down, registered, "
        "fenced, unfenced, zookeeper_connected, zookeeper_expired, log_dir_failure, state_change, "
        "fatal, signal, log_loading, high_watermarks_loaded, stopping_replicas (it begins to stop hosting replicas; "
        "which ones, leader_and_isr says under the role stopped), stepped_down (as it shuts down, it has let go of the "
        "replicas whose leaders are elsewhere by now), fetcher_stopping (a thread that fetches from the broker of "
        "detail), clock_set_back (by at least so many seconds as detail says; the "
        "row stands at a line soon after)",
    ),
    column("kafka_version", STRING, "Kafka version"),
    column("mode", STRING, "zookeeper or kraft"),
    c.DETAIL,
    words={
        "event": "starting version started shutting_down controlled_shutdown shut_down registered fenced unfenced "
        "zookeeper_connected zookeeper_expired log_dir_failure state_change fatal signal log_loading "
        "high_watermarks_loaded stopping_replicas stepped_down fetcher_stopping clock_set_back",
        "mode": "zookeeper kraft",
    },
)

BROKER_CONFIGS = silver_table(
    "broker_configs",
    "One configuration value: the dump at start, topic overrides, values changed at run time. A line that lists all "
    "overrides of an entity gives rows that share file_id and byte_offset: a key that is not among them is not set any "
    "more; an empty list gives one row with an empty key.",
    required(
        "scope",
        STRING,
        "broker: dump of all values, at start and after each change (dynamic values included); topic: all overrides of "
        "a topic; broker_dynamic: all dynamic values of a broker, or of <default>; log: all overrides with which a log "
        "was created; log_all: all properties with which a log was created, defaults included (up to 2.8.0); "
        "topic_record, broker_record: one value as the controller replays it, no statement of what a broker applies",
    ),
    column("entity", STRING, "Topic, or broker; <default> for all brokers"),
    required("key", STRING, "Configuration key; empty where a line says that there are no overrides"),
    column("value", STRING, "Value as logged; secrets are logged as [hidden] by Kafka itself"),
    words={"scope": "broker topic broker_dynamic log log_all topic_record broker_record"},
)
