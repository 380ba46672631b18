"""Late answers: was a wake-up lost, or did the whole leader stand still?

An operation is late if its rule was satisfied and the answer came much later. If the broker took in and answered
other requests in between, it was alive, and only this operation was forgotten: a lost wake-up (KAFKA-13091,
KAFKA-6653). If it answered nothing that came in between, it stood still: a pause, a full stop of the JVM, a stopped
process.
"""

from __future__ import annotations

from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay.judge import LATE, LEADER_STALLED, LOST_WAKE_UP
from schemas import gold, silver

#: What was answered this shortly before a late operation was answered as the broker resumed.
RESUME_MS = 100

_KEY = gold.DELAYED_OPERATIONS.keys


def tell_late_apart(lake: Lake, operations: DataFrame, since: datetime) -> DataFrame:
    """Rows of ``gold.delayed_operations`` where every late one has its reason.

    Args:
        since: the earliest predicted end of a late one.
    """
    requests = [
        lake.read(spec)
        .where(F.col("time") >= F.lit(since))
        .select(
            "cluster_id",
            F.coalesce("broker_id", F.lit(-1)).alias("broker_id"),
            "arrival_time",
            F.col("time").alias("line_time"),
        )
        for spec in (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS)
        if lake.has_rows(spec)
    ]
    late = F.col("class") == LATE
    told = with_reasons(operations.where(late), reduce(DataFrame.unionByName, requests))
    return operations.where(~late).unionByName(told)


def with_reasons(late: DataFrame, requests: DataFrame) -> DataFrame:
    """Late operations with their ``class_reason``; a known bug stays named only where a wake-up was lost."""
    waited = late.select(*_KEY, "highest_time", "completed_time")
    others = requests.select(
        "cluster_id", "broker_id", F.col("arrival_time").alias("came"), F.col("line_time").alias("left")
    )
    alive = (
        others.join(F.broadcast(waited), ["cluster_id", "broker_id"])
        # As a broker resumes it answers what has piled up, within moments of the late ones.
        .where(f"came > highest_time AND left < completed_time - INTERVAL '{RESUME_MS}' MILLISECOND")
        .select(*_KEY)
        .distinct()
        .withColumn("alive", F.lit(True))
    )
    told = late.join(alive, list(_KEY), "left")
    lost = F.coalesce("alive", F.lit(False))
    return (
        told.withColumn("class_reason", F.when(lost, LOST_WAKE_UP).otherwise(LEADER_STALLED))
        .withColumn("known_bug", F.when(lost, F.col("known_bug")))
        .select(*gold.DELAYED_OPERATIONS.column_names)
    )
