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
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay.judge import LATE, LEADER_STALLED, LOST_WAKE_UP, Tolerances
from pipelines.replay.timer_order import behind_earlier_timers
from pipelines.replay.unsettled import UNSETTLED
from pipelines.staged import Staged
from schemas import gold, silver

#: What was answered this shortly before a late operation was answered as the broker resumed.
RESUME_MS = 100

_KEY = gold.DELAYED_OPERATIONS.keys
_BROKER = ["cluster_id", "broker_id"]


def settled(lake: Lake, operations: Staged, limits: Tolerances) -> DataFrame | None:
    """Rows of ``gold.delayed_operations``: those that were not settled by themselves; None where there are none.

    Args:
        operations: tables of `pipelines.replay.unsettled.OPERATION_SHAPES`.
        limits: what is explained and what is late.
    """
    since = operations.least("highest_time", UNSETTLED)
    if since is None:
        return None
    return tell_late_apart(lake, behind_earlier_timers(lake, operations.rows(UNSETTLED), limits, since), since)


def tell_late_apart(lake: Lake, operations: DataFrame, since: datetime) -> DataFrame:
    """Rows of ``gold.delayed_operations`` where every late one has its reason.

    Args:
        since: before the predicted end of any of them.
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
    # As a broker resumes it answers what has piled up, within moments of the late ones.
    resumed_us = F.unix_micros("completed_time") - RESUME_MS * 1000
    waited = late.select(*_KEY, F.unix_micros("highest_time").alias("at_us"), resumed_us.alias("resumed_us"))
    others = requests.join(F.broadcast(waited.select(*_BROKER).distinct()), _BROKER, "left_semi").select(
        *_BROKER, F.unix_micros("arrival_time").alias("at_us"), F.unix_micros("line_time").alias("answered_us")
    )
    # Of what came after an operation should have ended, the first answer: one pass, from the last arrival back. A join
    # would compare each operation of an incident with each request of it.
    came_later = Over.partitionBy(*_BROKER).orderBy(F.col("at_us").desc()).rangeBetween(Over.unboundedPreceding, -1)
    alive = (
        waited.unionByName(others, allowMissingColumns=True)
        .withColumn("first_answer_us", F.min("answered_us").over(came_later))
        .where("first_answer_us < resumed_us")
        .select(*_KEY, F.lit(True).alias("alive"))
    )
    told = late.join(alive, list(_KEY), "left")
    lost = F.coalesce("alive", F.lit(False))
    return (
        told.withColumn("class_reason", F.when(lost, LOST_WAKE_UP).otherwise(LEADER_STALLED))
        .withColumn("known_bug", F.when(lost, F.col("known_bug")))
        .select(*gold.DELAYED_OPERATIONS.column_names)
    )
