"""Facts of files: checkpoints, leader epochs, the KRaft metadata log and segments of topics."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.data_dir.discover import CURRENT
from pipelines.data_dir.ingest import current_files
from pipelines.data_dir.properties import PARTITION_METADATA
from pipelines.lake import Lake
from pipelines.rules.facts.columns import fact, micros, rows_of
from schemas import audit_facts as a
from schemas.data_files import DATA_FILES
from schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from schemas.table import TableSpec

#: Checkpoints whose offsets are compared.
_OFFSETS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint")
_LEADER_EPOCHS = "leader-epoch-checkpoint"
_SOURCE: dict[str, Column | str] = {"file_id": "file_id", "byte_offset": "byte_offset"}


def checkpoints(lake: Lake) -> list[DataFrame]:
    """Entries of checkpoints of offsets, and of leader-epoch-checkpoints; files have no time."""
    rows = _current(lake, CHECKPOINTS)
    if rows is None:
        return []
    rows = rows.where("problem IS NULL AND topic IS NOT NULL AND broker_id IS NOT NULL")
    same: dict[str, Column | str] = {
        "time_us": F.lit(a.NO_TIME_US),
        "broker_id": "broker_id",
        "offset": "offset",
        "name": "kind",
    }
    epochs = _with_topic_ids(lake, rows.where((F.col("kind") == _LEADER_EPOCHS) & (F.col("replica_state") == CURRENT)))
    return [
        fact(rows.where(F.col("kind").isin(*_OFFSETS)), a.CHECKPOINT, **same, **_SOURCE),
        fact(epochs, a.EPOCH_ENTRY, leader_epoch="leader_epoch", topic_id="topic_id", **same, **_SOURCE),
    ]


def metadata(lake: Lake) -> list[DataFrame]:
    """The controller's own history of a partition: each change once, from the node with the lowest id that has it."""
    rows = _current(lake, METADATA_RECORDS)
    if rows is None:
        return []
    rows = rows.where("source = 'log' AND applied AND partition IS NOT NULL AND topic IS NOT NULL AND time IS NOT NULL")
    copies = Window.partitionBy("cluster_id", "offset", "change_no").orderBy("broker_id", "file_id")
    once = rows.withColumn("copy", F.row_number().over(copies)).where("copy = 1")
    return [
        fact(
            once,
            a.METADATA,
            time_us=micros("time"),
            broker_id="broker_id",
            name="record",
            leader="leader",
            leader_epoch="leader_epoch",
            partition_epoch="partition_epoch",
            previous="offset",
            isr="isr",
            replicas="replicas",
            detail=F.when(F.col("leader_recovery_state") == 1, a.RECOVERING),
            topic_id="topic_id",
            controller_epoch="controller_epoch",
            **_SOURCE,
        )
    ]


def batches(lake: Lake) -> list[DataFrame]:
    """Record batches of topics' segments."""
    rows = _current(lake, LOG_BATCHES)
    if rows is None:
        return []
    rows = rows.where(F.col("replica_state") == CURRENT).where("base_offset IS NOT NULL AND broker_id IS NOT NULL")
    return [
        fact(
            _with_topic_ids(lake, rows),
            a.BATCH,
            time_us=F.lit(a.NO_TIME_US),
            broker_id="broker_id",
            name=F.when(F.col("crc_ok"), "intact").otherwise("corrupt"),
            leader_epoch="leader_epoch",
            offset="base_offset",
            end_offset=F.col("last_offset") + 1,
            size_bytes="size_bytes",
            checksum="crc",
            error_code="magic",
            log_append_time_us=micros("max_time"),
            detail=F.when(F.col("is_log_append_time"), "LogAppendTime").otherwise("CreateTime"),
            topic_id="topic_id",
            **_SOURCE,
        )
    ]


def _with_topic_ids(lake: Lake, rows: DataFrame) -> DataFrame:
    """Rows with the topic id that stands beside them in the partition's folder; null where there is none."""
    if not lake.has_rows(CHECKPOINTS):
        return rows.withColumn("topic_id", F.lit(None).cast("string"))
    folder = ["cluster_id", "broker_id", "directory", "topic", "partition", "replica_state"]
    files = current_files(lake).select("file_id", *folder)
    told = lake.read(CHECKPOINTS).where(F.col("kind") == PARTITION_METADATA).where("key = 'topic_id'")
    ids = told.select("file_id", F.col("value").alias("topic_id")).join(files, "file_id").drop("file_id")
    by_file = files.join(ids, folder).select("file_id", "topic_id").dropDuplicates(["file_id"])
    return rows.join(F.broadcast(by_file), "file_id", "left")


def _current(lake: Lake, spec: TableSpec) -> DataFrame | None:
    """Rows of the files as they were read last."""
    rows = rows_of(lake, spec)
    if rows is None or not lake.has_rows(DATA_FILES):
        return None
    return rows.join(F.broadcast(current_files(lake).select("file_id")), "file_id", "left_semi")
