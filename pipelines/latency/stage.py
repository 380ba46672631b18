"""The latency stage on Spark: where every request's time went, and whom acks=all appends waited for.

Blame goes to the replica that held the high watermark back last (design section 5): a member of the ISR, a caught-up
replica outside it, one whose leaving the ISR ended the wait, or the leader itself.

A replica is *singled out* in an interval if the waiting beyond ``slow_ms`` per operation

* is at least two thirds its own (`SINGLED_OUT_SHARE`),
* is more than its share of operations explains (`SINGLED_OUT_EXCESS` above it), and
* amounts to at least a twentieth of the interval (`SINGLED_OUT_WAIT`): a few slow answers name nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.config import LatencyConfig
from pipelines.lake import Lake
from schemas import gold, silver

SINGLED_OUT_SHARE = 2 / 3
SINGLED_OUT_EXCESS = 0.2
SINGLED_OUT_WAIT = 0.05

_PHASES = (
    "request_queue_time_ms",
    "local_time_ms",
    "remote_time_ms",
    "throttle_time_ms",
    "response_queue_time_ms",
    "send_time_ms",
)


def request_phases(lake: Lake, repeated: bool, file_ids: Sequence[str] | None = None) -> DataFrame:
    """Rows of ``gold.request_phases`` for every completed request in silver.

    Args:
        repeated: a line may stand in two files.
        file_ids: only those of these files.
    """
    tables = []
    for spec in (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS):
        if lake.has_rows(spec):
            rows = lake.read(spec)
            if file_ids is not None:
                new = lake.spark.createDataFrame([(file_id,) for file_id in file_ids], "file_id string")
                rows = rows.join(F.broadcast(new), "file_id", "left_semi")
            acks = F.col("acks") if spec is silver.PRODUCE_REQUESTS else F.lit(None).cast("int")
            replica = F.col("replica_id") if spec is silver.FETCH_REQUESTS else F.lit(None).cast("int")
            tables.append(rows.withColumn("acks", acks).withColumn("replica_id", replica).select(*_phase_columns()))
    if not tables:
        raise ValueError("there are no requests in silver")
    phases = reduce(DataFrame.unionByName, tables)
    # Rows of one request are equal in all columns; looking for them costs a shuffle of all requests.
    return phases.dropDuplicates(list(gold.REQUEST_PHASES.keys)) if repeated else phases


def _micros(name: str) -> Column:
    return F.round(F.col(name) * 1000).cast("long")


def has_requests(lake: Lake) -> bool:
    """Whether any request log was parsed."""
    return any(lake.has_rows(spec) for spec in (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS))


def _phase_columns() -> list[Column]:
    phases = reduce(lambda left, right: left + right, [F.col(name) for name in _PHASES])
    made = {
        "broker_id": F.coalesce("broker_id", F.lit(-1)),
        "line_time": F.col("time"),
        "unaccounted_ms": F.round(F.col("total_time_ms") - phases, 3),
    }
    return [made.get(name, F.col(name)).alias(name) for name in gold.REQUEST_PHASES.column_names]


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
