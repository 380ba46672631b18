"""Where partitions are hosted, as their brokers log it: when one stopped hosting a replica, and who is assigned.

A replica leaves a broker when its topic is deleted or a reassignment moves it away. Then the broker, without becoming a
follower first, takes the partition out of its map, answers what waits for it, and renames the log's directory
(``ReplicaManager.stopPartitions``; ``stopReplica`` up to 2.7, which answers after the renaming). The directory is what
the log names at the default level; a line before it says that the broker begins.

A topic that is created again under the same name is another topic: its leader starts at offset 0 after such an end.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.lake import Lake
from schemas import silver

_BROKER = ("cluster_id", "broker_id")
_KEY = ("cluster_id", "topic", "partition", "broker_id")
#: Roles under which a broker's own lines show the state of a partition that it hosts.
_OWN_ROLES = ("leader_start", "leader_update", "metadata", "request")

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6


def partition_ends(lake: Lake) -> DataFrame | None:
    """When brokers stopped hosting partitions; None where the lake has no leadership at all.

    Returns:
        Columns cluster_id, topic, partition, broker_id; ``earliest_us`` and ``time_us``, between which the replica was
        taken out and what waited for it was answered (microseconds, the broker's clock); ``error_code``, with which:
        NOT_LEADER_OR_FOLLOWER where the partition was moved away, UNKNOWN_TOPIC_OR_PARTITION where its topic is gone
        (``ReplicaManager.getPartitionOrError``, from 2.4 on, KAFKA-9198).
    """
    if not lake.has_rows(silver.LEADER_AND_ISR):
        return None
    rows = lake.read(silver.LEADER_AND_ISR).where("broker_id IS NOT NULL").withColumn("time_us", F.unix_micros("time"))
    stopped = _with_start_of_stop(lake, _stopped(rows))
    # Up to 2.5 there are two lines: the directory was renamed, then the replica had been stopped.
    ended = stopped.groupBy(*_KEY, "earliest_us").agg(
        F.max("time_us").alias("time_us"), F.bool_or("moved").alias("moved")
    )
    ended = ended.unionByName(_replaced(rows))
    error = F.when(F.col("moved"), NOT_LEADER_OR_FOLLOWER).otherwise(UNKNOWN_TOPIC_OR_PARTITION)
    return ended.select(*_KEY, "earliest_us", "time_us", error.cast("int").alias("error_code"))


def _stopped(rows: DataFrame) -> DataFrame:
    """Rows of the role ``stopped``, with ``moved``: the state before names the broker as a replica being removed."""
    kept = rows.where(F.col("role").isin("stopped", *_OWN_ROLES))
    before = Window.partitionBy(*_KEY).orderBy("time_us").rowsBetween(Window.unboundedPreceding, -1)
    removing = F.last(F.when(F.col("role") != "stopped", F.col("removing_replicas")), ignorenulls=True).over(before)
    moved = F.coalesce(F.array_contains(removing, F.col("broker_id")), F.lit(False))
    return kept.withColumn("moved", moved).where("role = 'stopped'").select(*_KEY, "time_us", "moved")


def _with_start_of_stop(lake: Lake, stopped: DataFrame) -> DataFrame:
    """``earliest_us``: the broker's last line by then that says it begins to stop replicas, else the row's own time."""
    if not lake.has_rows(silver.BROKER_LIFECYCLE):
        return stopped.withColumn("earliest_us", F.col("time_us"))
    begins = lake.read(silver.BROKER_LIFECYCLE).where("event = 'stopping_replicas' AND broker_id IS NOT NULL")
    begins = begins.select(*_BROKER, F.unix_micros("time").alias("time_us"), F.lit(True).alias("begins"))
    until_now = (
        Window.partitionBy(*_BROKER).orderBy("time_us").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    began_us = F.max(F.when(F.col("begins"), F.col("time_us"))).over(until_now)
    both = stopped.unionByName(begins, allowMissingColumns=True)
    both = both.withColumn("earliest_us", F.coalesce(began_us, "time_us"))
    return both.where("begins IS NULL").drop("begins")


def _replaced(rows: DataFrame) -> DataFrame:
    """Ends that no line tells: the broker leads a topic of that name, and of another id than before (KIP-516)."""
    told = rows.where("topic_id IS NOT NULL AND role IN ('leader_start', 'leader_update')")
    before = F.lag("topic_id").over(Window.partitionBy(*_KEY).orderBy("time_us"))
    replaced = told.withColumn("other", before != F.col("topic_id")).where("other")
    return replaced.select(*_KEY, F.col("time_us").alias("earliest_us"), "time_us", F.lit(False).alias("moved"))


def with_assigned_replicas(leadership: DataFrame) -> DataFrame:
    """Leadership rows with ``assigned``: the replicas assigned as of each row, as far as the broker's log tells.

    Lines that start an epoch name the replicas that are added and removed, not all of them. So the assignment is that
    of the last line which names it, less what a reassignment has removed when it is no longer under way: the removed
    replicas if it was completed, the added ones if it was cancelled (KIP-455: a cancelled one leaves no added replica
    in the ISR; ``PartitionReassignmentReplicas``, ``PartitionReassignmentRevert``).

    Args:
        leadership: rows of ``silver.leader_and_isr``, of all roles.
    """
    until_now = Window.partitionBy(*_KEY).orderBy("time").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    names = ("replicas", "adding_replicas", "removing_replicas")
    last = F.last(F.when(F.col("replicas").isNotNull(), F.struct(*names)), ignorenulls=True)
    rows = leadership.withColumn("last_assigned", last.over(until_now))
    adding, removing = (_listed(f"last_assigned.{name}") for name in names[1:])
    is_over = (F.size(_listed("adding_replicas")) == 0) & (F.size(_listed("removing_replicas")) == 0)
    was_under_way = (F.size(adding) > 0) | (F.size(removing) > 0)
    completed = F.arrays_overlap("isr", adding) | ~F.arrays_overlap("isr", removing)
    all_named = F.col("last_assigned.replicas")
    left = F.when(completed, F.array_except(all_named, removing)).otherwise(F.array_except(all_named, adding))
    derived = F.when((F.col("role") == "leader_start") & is_over & was_under_way, left).otherwise(all_named)
    return rows.withColumn("assigned", F.coalesce("replicas", derived)).drop("last_assigned")


def _listed(name: str) -> Column:
    return F.coalesce(F.col(name), F.array().cast("array<int>"))
