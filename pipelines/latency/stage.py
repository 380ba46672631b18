"""The latency stage on Spark: where every request's time went, and whom acks=all appends waited for.

Blame goes to the replica that held the high watermark back last (design section 5): a member of the ISR, a caught-up
replica outside it, one whose leaving the ISR ended the wait, or the leader itself.

A replica is *singled out* in an interval if the waiting beyond ``slow_ms`` per operation

* is at least two thirds its own (`SINGLED_OUT_SHARE`),
* is more than its share of operations explains (`SINGLED_OUT_EXCESS` above it), and
* amounts to at least a twentieth of the interval (`SINGLED_OUT_WAIT`): a few slow answers name nobody.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.config import LatencyConfig
from pipelines.lake import Lake
from pipelines.latency.phases import TABLES, columns_of, phases
from pipelines.readings import Reading, by_batch
from schemas import gold

SINGLED_OUT_SHARE = 2 / 3
SINGLED_OUT_EXCESS = 0.2
SINGLED_OUT_WAIT = 0.05


def request_phases() -> list[Reading]:
    """What makes the rows of ``gold.request_phases``, for every completed request in silver."""
    return [Reading(spec, columns_of(spec), by_batch(phases)) for spec in TABLES]


def once(rows: DataFrame) -> DataFrame:
    """Rows of ``gold.request_phases``, of which a line that stands in two files gives two that are equal."""
    return rows.dropDuplicates(list(gold.REQUEST_PHASES.keys))


def _micros(name: str) -> Column:
    return F.round(F.col(name) * 1000).cast("long")


def has_requests(lake: Lake) -> bool:
    """Whether any request log was parsed."""
    return any(lake.has_rows(spec) for spec in TABLES)


def blamed_replica() -> Column:
    """Who closed an operation; the leader where nobody else was waited for, and -1 where nothing tells."""
    return F.coalesce("closing_replica", F.when(F.col("closing_role") == "leader", F.col("broker_id")), F.lit(-1))


def role() -> Column:
    """The role of `blamed_replica`."""
    return F.coalesce("closing_role", F.lit("unknown"))


def replica_blame(operations: DataFrame, config: LatencyConfig) -> DataFrame:
    """Rows of ``gold.replica_blame`` from ``gold.delayed_operations``: appends answered without error.

    What clients produce and what coordinators append are told apart: each kind is counted, and stands out, on its own.
    """
    slow = F.greatest(F.col("wait_ms") - config.slow_ms, F.lit(0.0))
    seconds = config.interval_s
    blamed = operations.where("operation = 'produce' AND succeeded").select(
        "cluster_id",
        F.when(F.col("api") == "PRODUCE", "produce").otherwise("coordinator").alias("kind"),
        F.timestamp_seconds(F.floor(F.unix_seconds("arrival_time") / seconds) * seconds).alias("interval_start"),
        blamed_replica().alias("replica_id"),
        role().alias("role"),
        "wait_ms",
        slow.alias("slow_wait_ms"),
    )
    totals = blamed.groupBy("cluster_id", "kind", "interval_start", "replica_id", "role").agg(
        F.count("*").alias("operations"),
        F.sum((F.col("slow_wait_ms") > 0).cast("long")).alias("slow_operations"),
        # In whole microseconds: sums of fractions depend on the order of the rows.
        F.sum(_micros("wait_ms")).alias("wait_us"),
        F.sum(_micros("slow_wait_ms")).alias("slow_wait_us"),
        F.percentile("wait_ms", F.lit(0.5)).alias("wait_ms_p50"),
        F.percentile("wait_ms", F.lit(0.99)).alias("wait_ms_p99"),
    )
    interval = Window.partitionBy("cluster_id", "kind", "interval_start")
    replica = Window.partitionBy("cluster_id", "kind", "interval_start", "replica_id")
    rows = totals.withColumn("interval_s", F.lit(seconds))
    for share, measure in (
        ("share_operations", "operations"),
        ("share_wait", "wait_us"),
        ("share_slow_wait", "slow_wait_us"),
    ):
        total = F.sum(measure).over(interval)
        rows = rows.withColumn(share, F.when(total > 0, F.col(measure) / total).otherwise(0.0))
    # Whatever its roles, a broker stands out or not as a whole.
    of_replica = {name: F.round(F.sum(name).over(replica), 6) for name in ("share_slow_wait", "share_operations")}
    stands_out = (
        (F.col("replica_id") >= 0)
        & (of_replica["share_slow_wait"] >= SINGLED_OUT_SHARE)
        & (of_replica["share_slow_wait"] >= of_replica["share_operations"] + SINGLED_OUT_EXCESS)
        & (F.sum("slow_wait_us").over(replica) >= SINGLED_OUT_WAIT * seconds * 1_000_000)
    )
    for name in ("wait", "slow_wait"):
        rows = rows.withColumn(f"{name}_ms_total", F.col(f"{name}_us") / 1000)
    return rows.withColumn("singled_out", stands_out).select(*gold.REPLICA_BLAME.column_names)
