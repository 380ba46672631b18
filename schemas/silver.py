"""Silver: one table per kind of fact, typed, each row pointing at its bronze record.

Rows of these tables are what the grammars in ``pipelines/silver`` produce. Every row carries the columns of
`SOURCE`; together with `fact_no` (several facts can stand in one record) they are its key.
"""

from __future__ import annotations

from pyspark.sql.types import StructField

from schemas.table import (
    BOOLEAN,
    DOUBLE,
    INT,
    INTS,
    LONG,
    STRING,
    TIMESTAMP,
    TableSpec,
    column,
    required,
    structs,
)

#: Where a fact comes from. The parse stage fills these; a grammar produces only the columns after them.
SOURCE = (
    required("cluster_id", STRING, "Cluster, 'unknown' where no line says it"),
    column("broker_id", INT, "Broker whose log this is"),
    required("time", TIMESTAMP, "Time of the log line (when the logger wrote it), UTC"),
    required("file_id", STRING, "bronze.log_files.file_id"),
    required("byte_offset", LONG, "bronze.log_lines.byte_offset"),
    required("line_no", LONG, "bronze.log_lines.line_no"),
    required("fact_no", INT, "Which fact of that record this is, from 0"),
)
SOURCE_NAMES = tuple(field.name for field in SOURCE)
KEYS = ("file_id", "byte_offset", "fact_no")
CLUSTER_BY = ("cluster_id", "broker_id", "time")

_TOPIC = required("topic", STRING, "Topic")
_PARTITION = required("partition", INT, "Partition index")


def _silver(name: str, comment: str, *columns: StructField) -> TableSpec:
    return TableSpec("silver", name, comment, (*SOURCE, *columns), KEYS, CLUSTER_BY)


LEADER_AND_ISR = _silver(
    "leader_and_isr",
    "A broker, or the controller, says who leads a partition: epoch starts of leaders and followers, ISR samples.",
    _TOPIC,
    _PARTITION,
    required(
        "role",
        STRING,
        "leader_start: this broker became leader of a new epoch; follower_start: it follows; leader_update: the leader "
        "took newer metadata within its epoch (Skipped the become-leader state change); request: state received in a "
        "LeaderAndIsr request; controller: the controller's own decision; metadata: UpdateMetadata cache",
    ),
    column("topic_id", STRING, "Topic id, where the version has them"),
    column("leader", INT, "Leader's broker id; -1 for none"),
    column("leader_epoch", INT, "Leader epoch"),
    column("partition_epoch", INT, "Partition epoch (KRaft) or zkVersion (ZooKeeper)"),
    column("start_offset", LONG, "Log end offset at which the broker starts the epoch"),
    column("high_watermark", LONG, "High watermark that the line shows"),
    column("isr", INTS, "In-sync replicas"),
    column("replicas", INTS, "Assigned replicas"),
    column("adding_replicas", INTS, "Replicas being added by a reassignment"),
    column("removing_replicas", INTS, "Replicas being removed by a reassignment"),
    column("previous_leader", INT, "Previous leader, where the line names it (wrong in followers' lines since 3.6)"),
    column("previous_leader_epoch", INT, "Previous leader epoch, as logged"),
    column("controller_id", INT, "Controller that sent it"),
    column("controller_epoch", INT, "Its epoch"),
    column("is_new", BOOLEAN, "isNew of the partition state"),
)

ISR_CHANGES = _silver(
    "isr_changes",
    "What a leader did to its ISR.",
    _TOPIC,
    _PARTITION,
    required(
        "change",
        STRING,
        "shrink / expand: proposed (P1, P2 lines); pending_shrink / pending_expand: sent to the controller (DEBUG "
        "lines); committed: ISR updated; refused: the update failed and was ignored or will be retried",
    ),
    column("isr", INTS, "ISR after the change (proposed or committed)"),
    column("previous_isr", INTS, "ISR before, where the line says it"),
    column("leader_epoch", INT, "Leader epoch, where the line says it"),
    column("partition_epoch", INT, "Partition epoch or zkVersion after the change"),
    column("high_watermark", LONG, "Leader's high watermark that the line shows"),
    column("leader_end_offset", LONG, "Leader's log end offset that the line shows"),
    column(
        "out_of_sync",
        structs(
            required("replica_id", INT, "Replica"),
            column("end_offset", LONG, "Its log end offset as the leader knows it"),
            column("last_caught_up_time_ms", LONG, "When it was last caught up, Unix ms (3.6 and later)"),
        ),
        "Replicas that the line calls out of sync",
    ),
    column("detail", STRING, "Reason or state, as logged"),
)

TOPICS = _silver(
    "topics",
    "A topic id and the name that a line gives it.",
    required("topic", STRING, "Topic"),
    required("topic_id", STRING, "Topic id"),
)

REPLICA_FETCHES = _silver(
    "replica_fetches",
    "A follower's position as its leader saw it: a fetch request (T1) or a 'Recorded replica' line (T2).",
    required("topic", STRING, "Topic; 'id:<topic id>' where no line names it"),
    _PARTITION,
    column("topic_id", STRING, "Topic id of the request (fetch version 13 and later)"),
    required("source", STRING, "request: FETCH in the request log; recorded: 'Recorded replica' line of the leader"),
    required("replica_id", INT, "Follower"),
    column("fetch_offset", LONG, "Offset asked for = follower's log end offset; null if the session did not repeat it"),
    column("leader_epoch", INT, "currentLeaderEpoch of the request"),
    column("last_fetched_epoch", INT, "lastFetchedEpoch of the request"),
    column("log_start_offset", LONG, "Follower's log start offset"),
    column("session_id", INT, "Fetch session of the response (0: none)"),
    column("session_epoch", INT, "Fetch session epoch of the request"),
    column("correlation_id", INT, "Correlation id of the request"),
    column("connection", STRING, "Connection of the request"),
    column("arrival_time", TIMESTAMP, "Request read from the socket (upper bound: line time - totalTimeMs)"),
    column("dequeued_time", TIMESTAMP, "arrival + requestQueueTimeMs"),
    column("handled_time", TIMESTAMP, "dequeued + localTimeMs: the leader has seen the offset by now"),
    column("completed_time", TIMESTAMP, "handled + remoteTimeMs: the response was ready"),
    column("sent_time", TIMESTAMP, "Response sent"),
    column("response_error_code", INT, "Error code for the partition; 0 also where the response omits it"),
    column("response_high_watermark", LONG, "High watermark in the response"),
    column("response_bytes", LONG, "Records in the response, in bytes"),
    column("diverging_epoch", INT, "divergingEpoch.epoch of the response"),
    column("diverging_end_offset", LONG, "divergingEpoch.endOffset of the response"),
)

HIGH_WATERMARKS = _silver(
    "high_watermarks",
    "A high watermark (or a log end offset) that a broker logged, as leader or as follower.",
    _TOPIC,
    _PARTITION,
    required(
        "source",
        STRING,
        "updated: leader moved it (T2); skipped: leader could not (T3); set: log layer (T3); follower: it took it "
        "from a fetch response (T3); loaded: initial value at log loading; non_monotonic: WARN, it went back; "
        "under_min_isr: not increased, too few in-sync replicas (T3)",
    ),
    column("high_watermark", LONG, "High watermark after the line"),
    column("previous_high_watermark", LONG, "Before, where the line says it"),
    column("log_end_offset", LONG, "Log end offset that the line shows"),
    column("leader_high_watermark", LONG, "Leader's high watermark in a follower's line"),
    column(
        "replica_end_offsets",
        structs(
            required("replica_id", INT, "Replica"),
            column("log_end_offset", LONG, "Its log end offset"),
        ),
        "Log end offsets of the replicas, where the line lists them",
    ),
)

APPENDS = _silver(
    "appends",
    "Records appended to a log, as the broker's TRACE lines say (T3).",
    _TOPIC,
    _PARTITION,
    required("source", STRING, "log: the log layer; replica_manager: 'written to log'; follower: replica fetcher"),
    column("first_offset", LONG, "First offset"),
    column("last_offset", LONG, "Last offset"),
    column("size_bytes", LONG, "Size of the records"),
)

_REQUEST_HEADER = (
    required("api", STRING, "API name: PRODUCE, FETCH, ..."),
    column("api_version", INT, "API version"),
    column("correlation_id", INT, "Correlation id"),
    column("client_id", STRING, "Client id"),
    column("connection", STRING, "Connection: local address - remote address - index"),
    column("listener", STRING, "Listener name"),
    column("principal", STRING, "Principal"),
    required("arrival_time", TIMESTAMP, "Request read from the socket: line time - total_time_ms (an upper bound)"),
    required("dequeued_time", TIMESTAMP, "arrival + request_queue_time_ms"),
    required("handled_time", TIMESTAMP, "dequeued + local_time_ms"),
    required("completed_time", TIMESTAMP, "handled + remote_time_ms: the purgatory (or the handler) answered"),
    required("total_time_ms", DOUBLE, "totalTimeMs"),
    required("request_queue_time_ms", DOUBLE, "Waiting for a request handler"),
    required("local_time_ms", DOUBLE, "In the request handler"),
    required("remote_time_ms", DOUBLE, "Waiting in purgatory or for another broker"),
    required("throttle_time_ms", DOUBLE, "Throttled by a quota"),
    required("response_queue_time_ms", DOUBLE, "Waiting for a network thread"),
    required("send_time_ms", DOUBLE, "Sending the response"),
)
REQUEST_HEADER_NAMES = tuple(field.name for field in _REQUEST_HEADER)

PRODUCE_REQUESTS = _silver(
    "produce_requests",
    "One completed PRODUCE request.",
    *_REQUEST_HEADER,
    required("acks", INT, "acks of the request; -1 is all"),
    column("timeout_ms", INT, "timeoutMs of the request"),
    column("transactional_id", STRING, "transactionalId"),
    required(
        "partitions",
        structs(
            required("topic", STRING, "Topic"),
            required("partition", INT, "Partition"),
            column("size_bytes", LONG, "Size of the records"),
            column("error_code", INT, "Error code of the response; null where the log has no response"),
            column("base_offset", LONG, "Base offset of the response; -1 where it failed"),
            column("log_append_time_ms", LONG, "logAppendTimeMs of the response"),
            column("log_start_offset", LONG, "logStartOffset of the response"),
        ),
        "Partitions of the request with what was answered",
    ),
)

FETCH_REQUESTS = _silver(
    "fetch_requests",
    "One completed FETCH request of a consumer or a follower.",
    *_REQUEST_HEADER,
    required("replica_id", INT, "Follower's broker id; -1 for consumers"),
    column("max_wait_ms", INT, "maxWaitMs"),
    column("min_bytes", INT, "minBytes"),
    column("max_bytes", INT, "maxBytes"),
    column("isolation_level", INT, "0 read_uncommitted, 1 read_committed"),
    column("session_id", INT, "sessionId of the request; 0 for none"),
    column("session_epoch", INT, "sessionEpoch of the request"),
    column("response_session_id", INT, "sessionId of the response"),
    column("error_code", INT, "Top-level error code of the response"),
    required(
        "partitions",
        structs(
            column("topic", STRING, "Topic; null where only a topic id is known"),
            column("topic_id", STRING, "Topic id"),
            required("partition", INT, "Partition"),
            column("current_leader_epoch", INT, "currentLeaderEpoch"),
            column("fetch_offset", LONG, "fetchOffset"),
            column("last_fetched_epoch", INT, "lastFetchedEpoch"),
            column("log_start_offset", LONG, "Follower's logStartOffset"),
            column("max_bytes", INT, "partitionMaxBytes"),
        ),
        "Partitions that the request lists; an incremental session omits unchanged ones",
    ),
    required(
        "forgotten",
        structs(
            column("topic", STRING, "Topic"),
            column("topic_id", STRING, "Topic id"),
            required("partition", INT, "Partition"),
        ),
        "Partitions that leave the session",
    ),
    required(
        "responses",
        structs(
            column("topic", STRING, "Topic; null where only a topic id is known"),
            column("topic_id", STRING, "Topic id"),
            required("partition", INT, "Partition"),
            column("error_code", INT, "errorCode"),
            column("high_watermark", LONG, "highWatermark"),
            column("last_stable_offset", LONG, "lastStableOffset"),
            column("log_start_offset", LONG, "logStartOffset"),
            column("size_bytes", LONG, "Size of the records"),
            column("preferred_read_replica", INT, "preferredReadReplica"),
            column("diverging_epoch", INT, "divergingEpoch.epoch"),
            column("diverging_end_offset", LONG, "divergingEpoch.endOffset"),
        ),
        "Partitions that the response lists",
    ),
)

REQUESTS = _silver(
    "requests",
    "One completed request of any other API, with the facts that the replay needs from its body.",
    *_REQUEST_HEADER,
    column("is_forwarded", BOOLEAN, "Forwarded to the controller in an envelope"),
    column("error_codes", INTS, "Distinct error codes found in the response, ascending"),
    required(
        "partitions",
        structs(
            column("topic", STRING, "Topic; null where only a topic id is known"),
            column("topic_id", STRING, "Topic id"),
            required("partition", INT, "Partition"),
            column("error_code", INT, "Error code of the response"),
            column("leader_epoch", INT, "Leader epoch asked for, proposed or told"),
            column("partition_epoch", INT, "Partition epoch or zkVersion"),
            column("isr", INTS, "ISR proposed (AlterPartition, AlterIsr) or told (LeaderAndIsr)"),
            column("end_offset", LONG, "End offset answered (OffsetForLeaderEpoch)"),
            column("producer_id", LONG, "Producer whose transaction is marked (WriteTxnMarkers)"),
            column("committed", BOOLEAN, "Transaction result (WriteTxnMarkers): true commit, false abort"),
        ),
        "Partitions of WriteTxnMarkers, OffsetForLeaderEpoch, AlterPartition, AlterIsr, LeaderAndIsr, StopReplica",
    ),
    column(
        "body", STRING, "Request and response as logged, for APIs whose body no column holds; cut at 4,000 characters"
    ),
)

DELAYED_OPERATION_CHECKS = _silver(
    "delayed_operation_checks",
    "What a broker logged of its delayed operations (T3): initial status, each check, awaiting sets, expiry.",
    _TOPIC,
    _PARTITION,
    required("operation", STRING, "produce or fetch"),
    required(
        "step",
        STRING,
        "initial: status on creation; check: tryComplete looked at it; progress: replicas that acked and that are "
        "awaited; expired: the timer fired; unblocked: a key unblocked operations; satisfied: a fetch was satisfied "
        "for the reason in detail",
    ),
    column("acks_pending", BOOLEAN, "acksPending"),
    column("error_code", INT, "Error held in the status"),
    column("start_offset", LONG, "startOffset: base offset of the append"),
    column("required_offset", LONG, "requiredOffset: last offset + 1"),
    column(
        "acked",
        structs(
            required("replica_id", INT, "Replica"),
            column("log_end_offset", LONG, "Its log end offset"),
        ),
        "Replicas that have the required offset",
    ),
    column(
        "awaiting",
        structs(
            required("replica_id", INT, "Replica"),
            column("log_end_offset", LONG, "Its log end offset"),
        ),
        "Replicas that have not",
    ),
    column("unblocked", INT, "Operations unblocked"),
    column("detail", STRING, "Reason, as logged"),
)

TRUNCATIONS = _silver(
    "truncations",
    "A replica truncated its log, or said why it did not.",
    _TOPIC,
    _PARTITION,
    required(
        "source",
        STRING,
        "log: the log layer truncated; fetcher: the replica fetcher decided; no_effect: nothing "
        "to truncate; below_high_watermark: WARN; out_of_range: reset of the fetch offset; "
        "epoch_reply: what the leader said of an epoch",
    ),
    column("offset", LONG, "Offset truncated to, or reset to"),
    column("previous_end_offset", LONG, "Log end offset before, where the line says it"),
    column("high_watermark", LONG, "High watermark that the line shows"),
    column("reason", STRING, "high_watermark, leader_epoch, out_of_range, full, ... as far as the line says"),
    column("leader_epoch", INT, "Leader epoch that the line shows"),
    column("detail", STRING, "As logged"),
)

LEADER_EPOCHS = _silver(
    "leader_epochs",
    "An entry of a replica's leader-epoch history that was written or removed.",
    _TOPIC,
    _PARTITION,
    required("action", STRING, "assigned or truncated"),
    column("leader_epoch", INT, "Epoch"),
    column("start_offset", LONG, "Its start offset"),
    column("detail", STRING, "As logged"),
)

FETCHER_EVENTS = _silver(
    "fetcher_events",
    "A partition joined, left or failed in a broker's replica fetcher.",
    _TOPIC,
    _PARTITION,
    required("action", STRING, "added, removed, failed, delayed, error, fenced"),
    column("leader", INT, "Broker fetched from"),
    column("fetcher_id", INT, "Fetcher thread"),
    column("leader_epoch", INT, "Leader epoch"),
    column("offset", LONG, "Initial or current fetch offset"),
    column("error", STRING, "Error, as logged"),
)

CONTROLLER_EVENTS = _silver(
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

PARTITION_STATES = _silver(
    "partition_states",
    "Partition state machine of the ZooKeeper controller.",
    _TOPIC,
    _PARTITION,
    required("from_state", STRING, "NonExistentPartition, NewPartition, OnlinePartition, OfflinePartition"),
    required("to_state", STRING, "As from_state"),
    column("succeeded", BOOLEAN, "False where the controller says that it failed"),
    column("leader", INT, "Leader"),
    column("leader_epoch", INT, "Leader epoch"),
    column("isr", INTS, "ISR"),
    column("partition_epoch", INT, "zkVersion"),
    column("controller_epoch", INT, "Controller epoch"),
)

REPLICA_STATES = _silver(
    "replica_states",
    "Replica state machine of the ZooKeeper controller.",
    _TOPIC,
    _PARTITION,
    required("replica_id", INT, "Replica"),
    required("from_state", STRING, "NonExistentReplica, NewReplica, OnlineReplica, OfflineReplica, ReplicaDeletion..."),
    required("to_state", STRING, "As from_state"),
    column("succeeded", BOOLEAN, "False where the controller says that it failed"),
    column("controller_epoch", INT, "Controller epoch"),
)

BROKER_LIFECYCLE = _silver(
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

BROKER_CONFIGS = _silver(
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

LINE_COUNTS = _silver(
    "line_counts",
    "How many records of a file fell to which template, per slice of a file that one task parsed.",
    required("kind", STRING, "Kind of file"),
    column("logger", STRING, "Logger"),
    column("level", STRING, "Level"),
    required("template", STRING, "Id of the grammar's template, or the masked text of an unparsed line"),
    required("outcome", STRING, "typed: became rows; known: carries nothing for the audit; unparsed"),
    required("line_count", LONG, "Records"),
)

UNPARSED_LINES = _silver(
    "unparsed_lines",
    "A record that no grammar knows, whole.",
    required("kind", STRING, "Kind of file"),
    column("logger", STRING, "Logger"),
    column("level", STRING, "Level"),
    required("template", STRING, "Text with numbers, ids and partitions masked: what it is counted by"),
    required("reason", STRING, "no_grammar, layout, binary, half_line, oversized, bad_json, bad_value, continuation"),
    column("problem", STRING, "What the grammar choked on"),
    column("message", STRING, "The record; cut at 4,000 characters"),
)

TABLES = (
    LEADER_AND_ISR,
    ISR_CHANGES,
    TOPICS,
    REPLICA_FETCHES,
    HIGH_WATERMARKS,
    APPENDS,
    PRODUCE_REQUESTS,
    FETCH_REQUESTS,
    REQUESTS,
    DELAYED_OPERATION_CHECKS,
    TRUNCATIONS,
    LEADER_EPOCHS,
    FETCHER_EVENTS,
    CONTROLLER_EVENTS,
    PARTITION_STATES,
    REPLICA_STATES,
    BROKER_LIFECYCLE,
    BROKER_CONFIGS,
    LINE_COUNTS,
    UNPARSED_LINES,
)
BY_NAME = {table.name: table for table in TABLES}
