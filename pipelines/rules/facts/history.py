"""Facts of a partition's history: leaderships, ISRs, states, truncations. As small as metadata is."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.rules.facts.columns import fact, line_fact, micros
from schemas import audit_facts as a
from schemas import silver

#: A tool's request for an election, and the controller's line of it, are no further apart.
_ASKED_US = 5_000_000


def leadership(rows: DataFrame) -> DataFrame:
    """Facts of `silver.leader_and_isr`."""
    same = "leader_epoch partition_epoch high_watermark isr replicas topic_id controller_epoch"
    starter = F.when(F.col("role") == "leader_start", F.coalesce("leader", "broker_id"))
    return line_fact(
        rows,
        a.LEADERSHIP,
        same,
        name="role",
        leader=starter.otherwise(F.col("leader")),
        offset="start_offset",
        previous="previous_leader_epoch",
        replica_id="previous_leader",
    )


def isr_changes(rows: DataFrame) -> DataFrame:
    """Facts of `silver.isr_changes`."""
    same = "leader_epoch partition_epoch high_watermark isr detail"
    return line_fact(rows, a.ISR_CHANGE, same, name="change", offset="leader_end_offset", replicas="previous_isr")


def partition_states(rows: DataFrame) -> DataFrame:
    """Facts of `silver.partition_states`."""
    done = rows.where("succeeded IS NULL OR succeeded")
    same = "leader leader_epoch partition_epoch isr controller_epoch"
    return line_fact(done, a.PARTITION_STATE, same, name="to_state", detail="from_state")


def elections(lake: Lake, rows: DataFrame) -> DataFrame:
    """Unclean elections as controllers say them; ``name`` is the API of a request for it, which a tool had sent."""
    rows = rows.where("event = 'unclean_election' AND topic IS NOT NULL AND partition IS NOT NULL")
    asked_for = F.lit(None).cast("string")
    if lake.has_rows(silver.REQUESTS):
        asked = (
            lake.read(silver.REQUESTS)
            .where("api = 'ELECT_LEADERS'")
            .select(F.col("cluster_id").alias("asked_cluster"), micros("arrival_time").alias("asked_us"))
        )
        near = F.abs(micros("time") - F.col("asked_us")) <= _ASKED_US
        rows = rows.join(F.broadcast(asked), (F.col("cluster_id") == F.col("asked_cluster")) & near, "left")
        rows = rows.dropDuplicates(["cluster_id", "topic", "partition", "file_id", "byte_offset"])
        asked_for = F.when(F.col("asked_us").isNotNull(), "ELECT_LEADERS")
    return line_fact(rows, a.ELECTION, "leader leader_epoch isr controller_epoch detail", name=asked_for)


def truncations(rows: DataFrame) -> DataFrame:
    """Lines of truncations."""
    return line_fact(
        rows.where("source <> 'epoch_reply'"),
        a.TRUNCATION,
        "offset high_watermark leader_epoch",
        name="source",
        end_offset="previous_end_offset",
        detail="reason",
    )


def replayed_truncations(rows: DataFrame) -> DataFrame:
    """What rule truncations followed, as replayed: ``detail``, leader and epoch; named ``replayed``."""
    return fact(
        rows.where("logged_offset IS NOT NULL"),
        a.TRUNCATION,
        "broker_id leader leader_epoch",
        name=F.lit("replayed"),
        time_us=micros("logged_time"),
        offset="logged_offset",
        end_offset="log_end_offset",
        high_watermark="high_watermark_at_truncation",
        detail="rule",
        client="known_bug",
        derived=F.lit(a.REPLAYED),
    )


def isr_replay(rows: DataFrame) -> DataFrame:
    """Changes of ISRs as replayed: `gold.isr_timeline`."""
    return fact(
        rows,
        a.ISR_REPLAY,
        "broker_id leader_epoch replica_id",
        name="class",
        client="change",
        detail="class_reason",
        time_us=micros("change_time"),
        isr="isr_after",
        replicas="isr_before",
        earliest_us=micros("lowest_time"),
        latest_us=micros("highest_time"),
        offset="end_offset_predicted",
        derived=F.lit(a.REPLAYED),
    )
