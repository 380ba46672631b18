"""When a broker that becomes follower has answered what waited at it, as the lines of its fetchers tell.

What waits is completed partition by partition once all partitions of the change have become followers: under ZooKeeper
between the lines that fetchers are removed and added (``ReplicaManager.makeFollowers``), under KRaft after the fetchers
of all of them were added, or, while the broker shuts down, removed (``ReplicaManager.applyLocalFollowersDelta``).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

_KEY = ("cluster_id", "topic", "partition", "broker_id")
_BROKER = ("cluster_id", "broker_id")
#: A fetcher that starts later than this after its partition became a follower has other reasons.
STEP_DOWN_MAX_US: Final = 5_000_000


def with_step_down(leadership: DataFrame, fetchers: DataFrame | None, lifecycle: DataFrame | None) -> DataFrame:
    """Leadership rows with ``stepped_down_us``: by when a new follower had stepped down; null where no line tells.

    Args:
        leadership: rows with `_KEY`, ``time`` and ``role``.
        fetchers: rows of ``silver.fetcher_events``; None: there are none.
        lifecycle: rows of ``silver.broker_lifecycle``; None: there are none.
    """
    if fetchers is None:
        return leadership.withColumn("stepped_down_us", F.lit(None).cast("long"))
    moves = fetchers.where("action IN ('added', 'removed')").select(*_KEY, "time", "action")
    later = Over.partitionBy(*_KEY).orderBy("time").rangeBetween(Over.currentRow, Over.unboundedFollowing)
    both = leadership.unionByName(moves, allowMissingColumns=True)
    for action in ("added", "removed"):
        instant = F.when(F.col("action") == action, F.unix_micros("time"))
        both = both.withColumn(f"{action}_us", F.min(instant).over(later))
    rows = _with_next_start(both.where("action IS NULL").drop("action"), lifecycle)
    own_us = F.coalesce(_in_this_change("added_us"), _in_this_change("removed_us"))
    followers = rows.where("role = 'follower_start'").withColumn("own_us", own_us)
    by_time = Over.partitionBy(*_BROKER).orderBy("time")
    before = F.max("own_us").over(by_time.rowsBetween(Over.unboundedPreceding, -1))
    begins = F.when(F.coalesce(F.unix_micros("time") > before, F.lit(True)), F.unix_micros("time"))
    followers = followers.withColumn("begins", begins)
    change = F.max("begins").over(by_time.rowsBetween(Over.unboundedPreceding, Over.currentRow))
    followers = followers.withColumn("change", change)
    of_change = Over.partitionBy(*_BROKER, "change")
    stepped_down = F.when(F.col("own_us").isNotNull(), F.max("own_us").over(of_change))
    stepped = followers.withColumn("stepped_down_us", stepped_down)
    stepped = stepped.drop("own_us", "begins", "change")
    others = rows.where("role <> 'follower_start'").withColumn("stepped_down_us", F.lit(None).cast("long"))
    return stepped.unionByName(others).drop("added_us", "removed_us", "started_us")


def _with_next_start(rows: DataFrame, lifecycle: DataFrame | None) -> DataFrame:
    """``started_us``: when the broker next started; what it logs from then on belongs to another life."""
    if lifecycle is None:
        return rows.withColumn("started_us", F.lit(None).cast("long"))
    starts = lifecycle.where("event = 'starting'").select(*_BROKER, "time", F.lit(True).alias("starts"))
    later = Over.partitionBy(*_BROKER).orderBy("time").rangeBetween(Over.currentRow, Over.unboundedFollowing)
    next_us = F.min(F.when(F.col("starts"), F.unix_micros("time"))).over(later)
    both = rows.unionByName(starts, allowMissingColumns=True).withColumn("started_us", next_us)
    return both.where("starts IS NULL").drop("starts")


def _in_this_change(name: str) -> Column:
    instant = F.col(name)
    within = instant - F.unix_micros("time") <= STEP_DOWN_MAX_US
    return F.when(within & F.coalesce(instant < F.col("started_us"), F.lit(True)), instant)
