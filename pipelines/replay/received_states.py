"""Leadership and ISRs of ZooKeeper clusters up to 2.5, whose leaders log less of their own state than later ones.

Up to 2.5 a broker logs each LeaderAndIsr request that it receives, with the whole state, at its default level
(``state.change.logger``, KAFKA-8470). What it makes of it is told in part: when it becomes leader since 0.11, without
the ISR, and not when it becomes follower. And up to 2.3 it logs the change of an ISR that it makes, and if ZooKeeper
refuses it, but not that it was made (``Partition.updateIsr``, INFO since 2.4).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipelines.replay.context import Contexts
from pipelines.shapes import in_spans

_KEY = ("cluster_id", "topic", "partition", "broker_id")
_STARTS = ("leader_start", "follower_start")
#: ZooKeeper answers a change of the ISR within this time, if at all (zookeeper.session.timeout.ms is 18 s at most).
_ANSWERED_US = 18_000_000


def with_received_states(leadership: DataFrame) -> DataFrame:
    """Leadership rows, with what the requests that a broker received say beyond its other lines.

    A leader's line without an ISR gets that of the last request of its epoch. The first request of an epoch that no
    line of the broker says it took up stands for that line (``ReplicaManager.becomeLeaderOrFollower`` takes up what is
    newer than what it has).

    Args:
        leadership: rows of ``silver.leader_and_isr``, of all roles.
    """
    is_request = F.col("role") == "request"
    by_time = Window.partitionBy(*_KEY).orderBy("time")
    until_now = by_time.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    last = F.last(F.when(is_request, F.struct("leader_epoch", "isr")), ignorenulls=True).over(until_now)
    before = (
        Window.partitionBy(*_KEY)
        .orderBy("time", "leader_epoch", "partition_epoch")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    newest = F.coalesce(F.max(F.when(is_request, F.col("leader_epoch"))).over(before), F.lit(-1))
    told = F.max(F.col("role").isin(*_STARTS)).over(Window.partitionBy(*_KEY, "leader_epoch"))
    rows = leadership.withColumns({"last": last, "newest": newest, "told": told})
    taken_up = rows.where(is_request & ~F.col("told") & (F.col("leader_epoch") > F.col("newest")))
    leads = F.col("leader") == F.col("broker_id")
    taken_up = taken_up.withColumn("role", F.when(leads, "leader_start").otherwise("follower_start"))
    same_epoch = F.coalesce("leader_epoch", "last.leader_epoch") == F.col("last.leader_epoch")
    lacking = F.col("role").isin("leader_start", "leader_update") & F.col("isr").isNull() & same_epoch
    filled = rows.withColumn("isr", F.when(lacking, F.col("last.isr")).otherwise(F.col("isr")))
    return filled.unionByName(taken_up).drop("last", "newest", "told")


def with_made_changes(changes: DataFrame, contexts: Contexts) -> DataFrame:
    """Changes of ISRs, with a committed one for each that a broker of up to 2.3 made and that was not refused.

    Args:
        changes: rows of ``silver.isr_changes``.
    """
    silent = contexts.spans(lambda rules: not rules.logs_isr_commits)
    if not silent:
        return changes
    ordered = Window.partitionBy(*_KEY).orderBy("time", "file_id", "byte_offset")
    answer, answered = F.lead("change").over(ordered), F.lead(F.unix_micros("time")).over(ordered)
    rows = changes.withColumns({"answer": answer, "answered": answered - F.unix_micros("time")})
    told = F.col("answer").isin("refused", "committed") & (F.col("answered") <= _ANSWERED_US)
    made = rows.where(F.col("change").isin("shrink", "expand") & ~F.coalesce(told, F.lit(False)))
    made = made.where(in_spans(silent, F.unix_micros("time"))).withColumn("change", F.lit("committed"))
    return rows.unionByName(made).drop("answer", "answered")
