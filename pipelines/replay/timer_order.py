"""Timers run one after the other, in the order of their deadlines: a late one makes those behind it late.

One thread of the purgatory runs what expires (``SystemTimer.taskExecutor``, a pool of one), in the order in which the
timing wheel's buckets were due. So a fetch is not answered by its timer before one that was due a tick earlier has
been, and that one's line tells when. The first one of a stall stays late: no other line says what held it up.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay import outcome as o
from pipelines.replay.judge import EXPLAINED, JITTER, LATE, TICK_US, Tolerances
from schemas import gold, silver

_BROKER = ("cluster_id", "broker_id")
_KEY = gold.DELAYED_OPERATIONS.keys
#: What is taken for late, and so for something that can have held up another.
_HELD_UP_US: Final = 5_000


def _expired_late() -> Column:
    """Rows of ``gold.delayed_operations`` that another timer can have held up."""
    return (F.col("operation") == "fetch") & (F.col("cause") == o.TIMER) & F.col("class").isin(JITTER, LATE)


def behind_earlier_timers(lake: Lake, operations: DataFrame, limits: Tolerances, since: datetime) -> DataFrame:
    """Rows of ``gold.delayed_operations`` whose late expiries end no sooner than those before them.

    Args:
        since: before the predicted end of any of them.
    """
    if not lake.has_rows(silver.FETCH_REQUESTS):
        return operations
    fetches = lake.read(silver.FETCH_REQUESTS).where(F.col("time") >= F.lit(since)).where("max_wait_ms > 0")
    expired = _expired_late()
    return operations.where(~F.coalesce(expired, F.lit(False))).unionByName(
        held_up(operations.where(expired), fetches, limits)
    )


def held_up(expired: DataFrame, fetches: DataFrame, limits: Tolerances) -> DataFrame:
    """Late expiries, judged by what the timer ran before them.

    Args:
        expired: fetches that their timer answered late.
        fetches: rows of ``silver.fetch_requests``.
    """
    due_us = F.unix_micros("handled_time") + F.col("max_wait_ms") * 1000
    ran = fetches.select(
        *_BROKER, due_us.cast("long").alias("due_us"), F.unix_micros("completed_time").alias("ran_us")
    ).where(F.col("ran_us") - F.col("due_us") > _HELD_UP_US)
    # The interval of a timer ends a tick after the deadline.
    waited = expired.select(*_KEY, (F.unix_micros("highest_time") - TICK_US).alias("due_us"))
    before = Window.partitionBy(*_BROKER).orderBy("due_us").rangeBetween(Window.unboundedPreceding, -TICK_US - 1)
    ended = (
        waited.unionByName(ran, allowMissingColumns=True)
        .withColumn("before_us", F.max("ran_us").over(before))
        .where("operation_id IS NOT NULL")
        .select(*_KEY, "before_us")
    )
    rows = expired.join(ended, list(_KEY))
    highest_us = F.greatest(F.unix_micros("highest_time"), "before_us")
    residual_us = F.greatest(F.unix_micros("completed_time") - highest_us - TICK_US, F.lit(0))
    rows = rows.withColumn("residual_us", residual_us)
    told = (
        F.when(F.col("residual_us") <= limits.tolerance_us, EXPLAINED)
        .when(F.col("residual_us") < limits.late_us, JITTER)
        .otherwise(LATE)
    )
    return rows.withColumns(
        {
            "highest_time": F.timestamp_micros(highest_us),
            "interval_width_ms": (highest_us - F.unix_micros("lowest_time")) / 1000,
            "residual_ms": F.col("residual_us") / 1000,
            "class": told,
        }
    ).select(*gold.DELAYED_OPERATIONS.column_names)
