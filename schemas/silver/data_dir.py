"""What data directories witness: checkpoints, batches of segments, and the history in the metadata log.

Rows point into ``bronze.data_files``. They have no time of a log line, so they do not have the columns of
`schemas.silver.source.SOURCE`.
"""

from __future__ import annotations

from schemas import columns as c
from schemas.data_files import FOLDER_STATES
from schemas.table import BOOLEAN, INT, INTS, LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required

_CLUSTER = required("cluster_id", STRING, "Cluster, 'unknown' where nothing tells")
_BROKER = column("broker_id", INT, "Broker (node) whose data directory this is")
_FILE_ID = required("file_id", STRING, "bronze.data_files.file_id")

CHECKPOINTS = TableSpec(
    layer="silver",
    name="checkpoints",
    comment="One row per entry of a checkpoint or properties file of a data directory, and per fault in one.",
    columns=(
        _CLUSTER,
        _BROKER,
        required(
            "kind",
            STRING,
            "replication-offset-checkpoint, recovery-point-offset-checkpoint, log-start-offset-checkpoint, "
            "cleaner-offset-checkpoint, leader-epoch-checkpoint, partition.metadata, meta.properties; with .tmp for "
            "what an interrupted write left over",
        ),
        column("topic", STRING, "Topic: of the entry, or of the partition's folder"),
        column("partition", INT, "Partition index"),
        column("leader_epoch", INT, "Leader epoch, in a leader-epoch-checkpoint"),
        column("offset", LONG, "Checkpointed offset; start offset of the leader epoch"),
        column("key", STRING, "Property: broker.id, cluster.id, topic_id, ..."),
        column("value", STRING, "Value of the property"),
        column("problem", STRING, "What is wrong with the line or the file; the values were read all the same"),
        column("replica_state", STRING, "current, delete, future, stray: what the name of the partition's folder says"),
        _FILE_ID,
        required("byte_offset", LONG, "Offset of the line's first byte in the decompressed file"),
        required("line_no", LONG, "Number of the line, from 1; the one after the last for what is missing"),
        required("entry_no", INT, "Which row of its file this is, from 0"),
        column("text", STRING, "The line"),
    ),
    keys=("file_id", "entry_no"),
    bounded_by=("cluster_id", "broker_id", "kind", "topic"),
    words={"replica_state": FOLDER_STATES},
)

LOG_BATCHES = TableSpec(
    layer="silver",
    name="log_batches",
    comment="One row per record batch of a topic's segment; before 0.11, per message with what it wraps.",
    columns=(
        _CLUSTER,
        _BROKER,
        *(c.TOPIC, c.PARTITION),
        column("base_offset", LONG, "Offset of the first record; null for an old compressed message not looked into"),
        required("last_offset", LONG, "Offset of the last record"),
        column("leader_epoch", INT, "Partition leader epoch; null where the format has none (magic 0 and 1)"),
        required("crc", LONG, "Checksum as stored: CRC-32C for magic 2, CRC-32 before; unsigned"),
        required("crc_ok", BOOLEAN, "Whether the bytes have this checksum"),
        required("magic", INT, "Format: 0, 1 or 2"),
        required("codec", STRING, "Compression: none, gzip, snappy, lz4, zstd"),
        required("size_bytes", LONG, "Size, with its offset and size fields"),
        column("producer_id", LONG, "Producer id; null if the producer is not idempotent"),
        column("producer_epoch", INT, "Producer epoch"),
        column("base_sequence", INT, "Sequence number of the first record"),
        column("record_count", INT, "Records; null for an old compressed message not looked into"),
        required("is_control", BOOLEAN, "Holds a transaction marker, not data"),
        required("is_transactional", BOOLEAN, "Part of a transaction"),
        required("is_log_append_time", BOOLEAN, "Timestamps were set by the broker"),
        column("first_time", TIMESTAMP, "Timestamp of the first record"),
        column("max_time", TIMESTAMP, "Largest timestamp"),
        column("problem", STRING, "What is wrong with the batch: checksum, order of offsets, counts"),
        required(
            "replica_state", STRING, "current, delete, future, stray: what the name of the partition's folder says"
        ),
        _FILE_ID,
        required("byte_offset", LONG, "Offset of its first byte in the decompressed segment: its position"),
    ),
    keys=("file_id", "byte_offset"),
    bounded_by=("cluster_id", "broker_id", "topic", "partition"),
    words={"replica_state": FOLDER_STATES},
)

METADATA_RECORDS = TableSpec(
    layer="silver",
    name="metadata_records",
    comment="The controllers' history, one row per change in the metadata log (KRaft) with what was so after it. Every "
    "node has a copy: of one cluster, (offset, change_no) with source 'log' is the same record on each. "
    "Records that change nothing (NoOpRecord, the frame of a snapshot) are left out.",
    columns=(
        _CLUSTER,
        _BROKER,
        column("topic", STRING, "Topic; null if no record named its id"),
        column("partition", INT, "Partition index"),
        required("offset", LONG, "Offset in the metadata log; for a snapshot the last offset that it covers"),
        required("change_no", INT, "Which change of that record this is, from 0"),
        column("time", TIMESTAMP, "Timestamp of the record, by the active controller's clock"),
        required("source", STRING, "log, snapshot, bootstrap"),
        required("record", STRING, "PartitionRecord, PartitionChangeRecord, TopicRecord, RegisterBrokerRecord, ..."),
        column("api_key", INT, "Type of the record; null for a control record"),
        column("record_version", INT, "Version of the record"),
        column("controller_epoch", INT, "Epoch of the active controller that wrote it"),
        required("applied", BOOLEAN, "False for what an aborted metadata transaction held"),
        column("topic_id", STRING, "Topic id"),
        column(
            "leader", INT, "Leader after the record, -1 for none; the new active controller in a LeaderChangeMessage"
        ),
        column("leader_epoch", INT, "Leader epoch after the record"),
        column("partition_epoch", INT, "Partition epoch after the record"),
        column("isr", INTS, "ISR after the record"),
        column("replicas", INTS, "Replicas after the record"),
        column("removing_replicas", INTS, "Replicas that a reassignment is removing"),
        column("adding_replicas", INTS, "Replicas that a reassignment is adding"),
        column("elr", INTS, "Eligible leader replicas after the record (KIP-966)"),
        column("last_known_elr", INTS, "Last known eligible leader replicas after the record"),
        column("leader_recovery_state", INT, "1 while the leader recovers from an unclean election"),
        column("directories", STRINGS, "Ids of the replicas' log directories (since 3.7)"),
        column("changed", STRINGS, "Fields that a PartitionChangeRecord carries"),
        column("node_id", INT, "Registered broker"),
        column("node_epoch", LONG, "Broker epoch of its registration"),
        column("incarnation_id", STRING, "Id of the broker's process"),
        column("fenced", BOOLEAN, "Whether the broker is fenced after the record"),
        column("in_controlled_shutdown", BOOLEAN, "Whether it is in controlled shutdown after the record"),
        column("resource_type", INT, "Of a ConfigRecord: 2 topic, 4 broker, 8 loggers, 16 client metrics, 32 group"),
        column("resource_name", STRING, "Of a ConfigRecord; empty for the default of all brokers"),
        column("key", STRING, "Setting, or feature"),
        column("value", STRING, "Value of the setting, null if it was taken back; level of the feature"),
        column("problem", STRING, "Why the record, or what follows from it, is not known"),
        _FILE_ID,
        required("byte_offset", LONG, "Offset of its batch's first byte in the decompressed segment: its position"),
        required("record_no", LONG, "Which record of the file, from 0"),
    ),
    keys=("file_id", "record_no", "change_no"),
    bounded_by=("cluster_id", "broker_id", "topic", "partition"),
    words={"source": ("log", "snapshot", "bootstrap")},
)

TABLES = (CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS)
