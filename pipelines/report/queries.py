"""The report's queries: from tables of operations and requests to aggregates. Nothing here starts a job.

Quantiles are exact (Spark's ``percentile``, which interpolates linearly) of values rounded to 0.01 ms: that bounds the
distinct values that a quantile has to keep, and, unlike an approximate quantile, the answer does not depend on how the
rows are spread over tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.latency.stage import blamed_replica, role
from pipelines.report.figures import (
    COORDINATOR,
    COORDINATOR_APIS,
    FETCH,
    PHASES,
    PRODUCE,
    SPLIT,
    TICKS_PER_MS,
    WITHIN_MS,
)
from pipelines.report.small_tables import Bounds
from pipelines.report.tiers import Node
from pipelines.report.values import UNKNOWN_BROKER
from schemas.gold import CLASSES

WORST_MAX = 10
#: Classes of a fetch that are worth a look.
_WORTH_A_LOOK = ("contradicted", "late", "jitter")
#: Columns of an operation that the report's queries see changed.
_REMADE = ("min_bytes",)
#: Quantiles of a total: its median, then its tail.
TOTAL_QUANTILES = (0.5, 0.95, 0.99, 0.999)


def arrived(rows: DataFrame, bounds: Bounds) -> DataFrame:
    """The rows that arrived within the window."""
    if bounds.since_us is not None:
        rows = rows.where(F.col("arrival_time") >= F.timestamp_micros(F.lit(bounds.since_us)))
    if bounds.until_us is not None:
        rows = rows.where(F.col("arrival_time") < F.timestamp_micros(F.lit(bounds.until_us)))
    return rows


# ---------------------------------------------------------------- operations


def operations(table: DataFrame, slow_ms: int) -> DataFrame:
    """Operations with what several queries need of them.

    Of a follower's fetch neither min.bytes nor isolation level are told apart: followers are one kind of reader.
    """
    arrival_us = F.unix_micros("arrival_time")
    total = (F.unix_micros("completed_time") - arrival_us) / 1000
    parts = [F.col(name) for name in SPLIT.values()]
    wait = F.col("wait_ms")
    is_fetch = F.col("operation") == "fetch"
    by_client = is_fetch & (F.col("replica_id") < 0)
    kind = F.when(is_fetch, FETCH).when(F.col("api") == "PRODUCE", PRODUCE).otherwise(COORDINATOR)
    return table.select(
        *[name for name in table.columns if name not in _REMADE],
        kind.alias("kind"),
        F.when(is_fetch, ~by_client).alias("by_follower"),
        F.when(by_client, F.col("min_bytes")).alias("min_bytes"),
        F.when(by_client, F.coalesce("isolation_level", F.lit(0)) == 1).alias("read_committed"),
        # Of all fetches, but only of those produces that were answered without error, it is asked how close they are.
        (is_fetch | F.col("succeeded")).alias("measured"),
        blamed_replica().alias("blamed"),
        role().alias("role"),
        arrival_us.alias("arrival_us"),
        total.alias("total_ms"),
        # Never longer than it was: nobody is slower for one replica less.
        F.least(total, total - wait + F.col("wait_without_closing_ms")).alias("total_without_ms"),
        F.abs("residual_ms").alias("distance_ms"),
        (F.col("class") != "unobservable").alias("replayed"),
        (wait > slow_ms).alias("slow"),
        F.greatest(wait - slow_ms, F.lit(0.0)).alias("slow_wait_ms"),
        reduce(lambda left, right: left | right, [part.isNotNull() for part in parts]).alias("is_split"),
    )


def groups(operations: DataFrame) -> DataFrame:
    """Counts and sums per combination of the columns that have few values, none of which grows with the input."""
    within = [
        F.count_if(F.col("measured") & F.col("replayed") & (F.col("distance_ms") <= n)).alias(f"within_{n}")
        for n in WITHIN_MS
    ]
    return operations.groupBy(
        *("kind", "api", "cluster_id", "blamed", "role", "class", "class_reason", "known_bug", "cause", "succeeded"),
        *("by_follower", "min_bytes", "read_committed", "parked"),
    ).agg(
        F.count("*").alias("operations"),
        F.count_if("slow").alias("slow"),
        F.sum("wait_ms").alias("wait_ms"),
        F.sum("slow_wait_ms").alias("slow_wait_ms"),
        F.min("arrival_us").alias("first_us"),
        F.max("arrival_us").alias("last_us"),
        *within,
    )


def _quantile(value: Column, *shares: float) -> Column:
    """Exact quantiles, in ticks of 0.01 ms: see the module. `pipelines.report.figures.from_ticks` undoes the unit."""
    return F.percentile(F.rint(value * TICKS_PER_MS), list(shares))


def quantiles(operations: DataFrame, blamed: Sequence[Node]) -> DataFrame:
    """All quantiles of operations, in one row per kind; ``parked_*`` are of fetches that waited."""
    answered = (F.col("kind") != FETCH) & F.col("succeeded")
    columns = [
        _quantile(F.when(answered, F.col("total_ms")), 0.99).alias("actual"),
        F.count_if("is_split").alias("split"),
    ]
    width, distance = F.col("interval_width_ms"), F.when(F.col("replayed"), F.col("distance_ms"))
    for prefix, among in (("", F.lit(True)), ("parked_", F.col("parked"))):
        columns += [
            _quantile(F.when(among, width), 0.5, 0.99).alias(f"{prefix}width"),
            _quantile(F.when(among, distance), 0.5, 0.95, 0.99, 0.999).alias(f"{prefix}distance"),
            F.max(F.when(among, distance)).alias(f"{prefix}distance_max"),
        ]
    for name, column in SPLIT.items():
        part = F.when(F.col("is_split"), F.coalesce(column, F.lit(0.0)))
        columns += [F.mean(part).alias(f"mean_{name}"), _quantile(part, 0.99).alias(f"p99_{name}")]
    for number, (cluster_id, broker_id) in enumerate(blamed):
        closed = answered & (F.col("cluster_id") == cluster_id) & (F.col("blamed") == broker_id)
        without = F.when(closed & F.col("total_without_ms").isNotNull(), F.col("total_without_ms"))
        without = without.otherwise(F.col("total_ms"))
        columns += [
            _quantile(F.when(closed, F.col("wait_ms")), 0.99).alias(f"wait_{number}"),
            _quantile(F.when(answered, without), 0.99).alias(f"without_{number}"),
        ]
    nobody = answered & (F.col("blamed") == UNKNOWN_BROKER)
    columns.append(_quantile(F.when(nobody, F.col("wait_ms")), 0.99).alias("wait_unknown"))
    return operations.groupBy("kind").agg(*columns)


def timeline(operations: DataFrame, interval_s: int) -> DataFrame:
    """Acks=all produces, counted per interval."""
    number = F.floor(F.col("arrival_us") / (interval_s * 1_000_000))
    return (
        operations.where(F.col("kind") == PRODUCE)
        .groupBy((number * interval_s).alias("start_s"))
        .agg(
            F.count("*").alias("observed"),
            *[F.count_if(F.col("class") == name).alias(name) for name in CLASSES],
            F.count_if(~F.col("succeeded")).alias("with_error"),
            F.count_if("slow").alias("slow"),
            _quantile(F.col("total_ms"), 0.99).alias("total_p99"),
        )
    )


def worst(operations: DataFrame) -> DataFrame:
    """Of each kind the operations most worth looking at; a fetch that was answered in time is not, however long."""
    rank = F.when(F.col("class") == "contradicted", 0).when(F.col("class") == "late", 1).otherwise(2)
    size = F.when(rank < 2, F.coalesce("distance_ms", F.lit(0.0))).otherwise(F.col("wait_ms"))
    place = F.row_number().over(Window.partitionBy("kind").orderBy(rank, size.desc(), "operation_id"))
    return (
        operations.where((F.col("kind") != FETCH) | F.col("class").isin(*_WORTH_A_LOOK))
        .withColumn("place", place)
        .where(F.col("place") <= WORST_MAX)
        .select(
            *("kind", "place", "broker_id", "client_id", "correlation_id", "arrival_us", "wait_ms", "residual_ms"),
            *("cause", "closing_topic", "closing_partition", "closing_replica", "closing_role", "class"),
            *("class_reason", "api"),
        )
    )


# ------------------------------------------------------------------ requests


def latency(phases: DataFrame) -> DataFrame:
    """One row per kind of request; kind is null for the other APIs."""
    produce, fetch = F.col("api") == "PRODUCE", F.col("api") == "FETCH"
    kind = (
        F.when(produce & (F.col("acks") == -1), "produce_acks_all")
        .when(produce, "produce_acks_1")
        .when(fetch & (F.col("replica_id") >= 0), "fetch_follower")
        .when(fetch, "fetch_consumer")
        .when(F.col("api").isin(*COORDINATOR_APIS), F.lower("api"))
    )
    measured = []
    for name, column in PHASES.items():
        # The other APIs are only counted: their phases would be quantiles of a mixture.
        value = F.when(F.col("kind").isNotNull(), F.col(column))
        measured += [F.mean(value).alias(f"mean_{name}"), _quantile(value, 0.99).alias(f"p99_{name}")]
    total = F.when(F.col("kind").isNotNull(), F.col("total_time_ms"))
    return (
        phases.withColumn("kind", kind)
        .groupBy("kind")
        .agg(
            F.count("*").alias("requests"),
            # A thousandth for figures that are decimal fractions: 1.0000000001 is 1.
            F.count_if(F.abs("unaccounted_ms") <= 1.0005).alias("within_1"),
            _quantile(total, *TOTAL_QUANTILES).alias("total"),
            *measured,
        )
    )
