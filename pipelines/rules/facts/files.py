"""Facts of files: checkpoints, leader epochs, the KRaft metadata log and segments of topics."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipelines.data_dir.discover import CURRENT
from pipelines.data_dir.ingest import current_files
from pipelines.data_dir.properties import PARTITION_METADATA
from pipelines.lake import Lake
from pipelines.rules.facts.columns import fact, micros
from schemas import audit_facts as a
from schemas.silver.data_dir import CHECKPOINTS

#: Checkpoints whose offsets are compared.
_OFFSETS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint")
_LEADER_EPOCHS = "leader-epoch-checkpoint"


def checkpoints(lake: Lake, rows: DataFrame) -> DataFrame:
    """Entries of checkpoints of offsets, and of leader-epoch-checkpoints; files have no time."""
    rows = _current(lake, rows).where("problem IS NULL AND topic IS NOT NULL AND broker_id IS NOT NULL")
    offsets = rows.where(F.col("kind").isin(*_OFFSETS))
    epochs = _with_topic_ids(lake, rows.where((F.col("kind") == _LEADER_EPOCHS) & (F.col("replica_state") == CURRENT)))
    same, no_time = "broker_id offset file_id byte_offset", F.lit(a.NO_TIME_US)
    return fact(offsets, a.CHECKPOINT, same, name="kind", time_us=no_time).unionByName(
        fact(epochs, a.EPOCH_ENTRY, f"leader_epoch topic_id {same}", name="kind", time_us=no_time)
    )


def metadata(lake: Lake, rows: DataFrame) -> DataFrame:
    """The controller's own history of a partition: each change once, from the node with the lowest id that has it."""
    rows = _current(lake, rows)
    rows = rows.where("source = 'log' AND applied AND partition IS NOT NULL AND topic IS NOT NULL AND time IS NOT NULL")
    copies = Window.partitionBy("cluster_id", "offset", "change_no").orderBy("broker_id", "file_id")
    return fact(
        rows.withColumn("copy", F.row_number().over(copies)).where("copy = 1"),
        a.METADATA,
        "broker_id leader leader_epoch partition_epoch isr replicas topic_id controller_epoch file_id byte_offset",
        time_us=micros("time"),
        name="record",
        previous="offset",
        detail=F.when(F.col("leader_recovery_state") == 1, a.RECOVERING),
    )


def batches(lake: Lake, rows: DataFrame) -> DataFrame:
    """Record batches of topics' segments."""
    rows = _current(lake, rows).where(F.col("replica_state") == CURRENT)
    return fact(
        _with_topic_ids(lake, rows.where("base_offset IS NOT NULL AND broker_id IS NOT NULL")),
        a.BATCH,
        "broker_id leader_epoch size_bytes topic_id file_id byte_offset",
        time_us=F.lit(a.NO_TIME_US),
        name=F.when(F.col("crc_ok"), "intact").otherwise("corrupt"),
        offset="base_offset",
        end_offset=F.col("last_offset") + 1,
        checksum="crc",
        error_code="magic",
        log_append_time_us=micros("max_time"),
        detail=F.when(F.col("is_log_append_time"), "LogAppendTime").otherwise("CreateTime"),
    )


def _with_topic_ids(lake: Lake, rows: DataFrame) -> DataFrame:
    """Rows with the topic id that stands beside them in the partition's folder; null where there is none."""
    if not lake.has_rows(CHECKPOINTS):
        return rows.withColumn("topic_id", F.lit(None).cast("string"))
    folder = ["cluster_id", "broker_id", "directory", "topic", "partition", "replica_state"]
    files = current_files(lake).select("file_id", *folder)
    values = lake.read(CHECKPOINTS).where(F.col("kind") == PARTITION_METADATA).where("key = 'topic_id'")
    ids = values.select("file_id", F.col("value").alias("topic_id")).join(files, "file_id").drop("file_id")
    by_file = files.join(ids, folder).select("file_id", "topic_id").dropDuplicates(["file_id"])
    return rows.join(F.broadcast(by_file), "file_id", "left")


def _current(lake: Lake, rows: DataFrame) -> DataFrame:
    """Rows of the files as they were read last."""
    return rows.join(F.broadcast(current_files(lake).select("file_id")), "file_id", "left_semi")
