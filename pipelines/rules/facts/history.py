"""Facts of a partition's history: leaderships, ISRs, states, truncations. As small as metadata is."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.rules.facts.columns import fact, line_fact, micros, rows_of
from schemas import audit_facts as a
from schemas import isr, replicas, silver


def leadership(lake: Lake) -> list[DataFrame]:
    rows = rows_of(lake, silver.LEADER_AND_ISR)
    if rows is None:
        return []
    return [
        line_fact(
            rows,
            a.LEADERSHIP,
            name="role",
            leader=F.when(F.col("role") == "leader_start", F.coalesce("leader", "broker_id")).otherwise(
                F.col("leader")
            ),
            leader_epoch="leader_epoch",
            partition_epoch="partition_epoch",
            offset="start_offset",
            high_watermark="high_watermark",
            previous="previous_leader_epoch",
            replica_id="previous_leader",
            isr="isr",
            replicas="replicas",
            topic_id="topic_id",
            controller_epoch="controller_epoch",
        )
    ]


def isr_changes(lake: Lake) -> list[DataFrame]:
    rows = rows_of(lake, silver.ISR_CHANGES)
    if rows is None:
        return []
    return [
        line_fact(
            rows,
            a.ISR_CHANGE,
            name="change",
            leader_epoch="leader_epoch",
            partition_epoch="partition_epoch",
            high_watermark="high_watermark",
            offset="leader_end_offset",
            isr="isr",
            replicas="previous_isr",
            detail="detail",
        )
    ]


def partition_states(lake: Lake) -> list[DataFrame]:
    rows = rows_of(lake, silver.PARTITION_STATES)
    if rows is None:
        return []
    return [
        line_fact(
            rows.where("succeeded IS NULL OR succeeded"),
            a.PARTITION_STATE,
            name="to_state",
            detail="from_state",
            leader="leader",
            leader_epoch="leader_epoch",
            partition_epoch="partition_epoch",
            isr="isr",
            controller_epoch="controller_epoch",
        )
    ]


#: A tool's request for an election, and the controller's line of it, are no further apart.
_ASKED_US = 5_000_000


def elections(lake: Lake) -> list[DataFrame]:
    """Unclean elections as controllers say them; ``name`` is the API of a request for it, which a tool had sent."""
    rows = rows_of(lake, silver.CONTROLLER_EVENTS)
    if rows is None:
        return []
    rows = rows.where("event = 'unclean_election' AND topic IS NOT NULL AND partition IS NOT NULL")
    asked_for = F.lit(None).cast("string")
    requests = rows_of(lake, silver.REQUESTS)
    if requests is not None:
        asked = requests.where("api = 'ELECT_LEADERS'").select(
            F.col("cluster_id").alias("asked_cluster"), micros("arrival_time").alias("asked_us")
        )
        near = F.abs(micros("time") - F.col("asked_us")) <= _ASKED_US
        rows = rows.join(F.broadcast(asked), (F.col("cluster_id") == F.col("asked_cluster")) & near, "left")
        rows = rows.dropDuplicates(["cluster_id", "topic", "partition", "file_id", "byte_offset"])
        asked_for = F.when(F.col("asked_us").isNotNull(), "ELECT_LEADERS")
    return [
        line_fact(
            rows,
            a.ELECTION,
            name=asked_for,
            leader="leader",
            leader_epoch="leader_epoch",
            isr="isr",
            controller_epoch="controller_epoch",
            detail="detail",
        )
    ]


def truncations(lake: Lake) -> list[DataFrame]:
    """Lines of truncations; and, named ``replayed``, what rule they followed: ``detail``, leader and epoch."""
    made = []
    rows = rows_of(lake, silver.TRUNCATIONS)
    if rows is not None:
        made.append(
            line_fact(
                rows.where("source <> 'epoch_reply'"),
                a.TRUNCATION,
                name="source",
                offset="offset",
                end_offset="previous_end_offset",
                high_watermark="high_watermark",
                leader_epoch="leader_epoch",
                detail="reason",
            )
        )
    replayed = rows_of(lake, replicas.REPLICA_TRUNCATIONS)
    if replayed is not None:
        made.append(
            fact(
                replayed.where("logged_offset IS NOT NULL"),
                a.TRUNCATION,
                name=F.lit("replayed"),
                time_us=micros("logged_time"),
                broker_id="broker_id",
                leader="leader",
                leader_epoch="leader_epoch",
                offset="logged_offset",
                end_offset="log_end_offset",
                high_watermark="high_watermark_at_truncation",
                detail="rule",
                client="known_bug",
                derived=F.lit(a.REPLAYED),
            )
        )
    return made


def isr_replay(lake: Lake) -> list[DataFrame]:
    rows = rows_of(lake, isr.ISR_TIMELINE)
    if rows is None:
        return []
    return [
        fact(
            rows,
            a.ISR_REPLAY,
            name="class",
            client="change",
            detail="class_reason",
            time_us=micros("change_time"),
            broker_id="broker_id",
            leader_epoch="leader_epoch",
            replica_id="replica_id",
            isr="isr_after",
            replicas="isr_before",
            earliest_us=micros("lowest_time"),
            latest_us=micros("highest_time"),
            offset="end_offset_predicted",
            derived=F.lit(a.REPLAYED),
        )
    ]
