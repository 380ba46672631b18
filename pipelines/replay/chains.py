"""Chains of fetches: what the correlation ids of a follower's connection tell of its fetches' order, on Spark.

A follower has one fetch under way at a time, and a new one is read from its connection only after the response to the
one before has left it. So the correlation ids of a connection count its fetches without a gap (a gap is a line that is
missing), and every instant of a fetch lies before the arrival of the next one: that mends lines that were logged late.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay.window import WHOLE, SparkBounds
from pipelines.replay.window import Window as Part
from schemas import silver
from schemas.state import CONNECTION

#: Instants of a fetch that the fetch after it is told.
FETCH_INSTANTS = ("arrival_time", "dequeued_time", "handled_time", "completed_time")
_CONNECTION = ("cluster_id", "broker_id", "connection", "replica_id")
_CARRIED = (
    "cluster_id string, broker_id int, connection string, replica_id int, correlation_id int, "
    "arrival_us long, dequeued_us long, handled_us long, completed_us long, sent_us long, carried_chain_no int"
)
#: A connection on which nothing was fetched for so long is gone: brokers close idle ones after ten minutes.
GONE_US = 3_600_000_000


def chained(fetches: DataFrame) -> DataFrame:
    """Fetches with their place in the chain of their connection.

    Args:
        fetches: columns cluster_id, broker_id, connection, replica_id, correlation_id, `FETCH_INSTANTS` and sent_time;
            ``carried_chain_no`` is the chain of a fetch that an earlier run has seen. A fetch has a row per partition,
            so its neighbours are found by number, not by row.

    Returns:
        The same rows with ``previous`` (struct of the instants of the fetch before), ``next`` (when the one after it
        arrived), ``chain_no`` (correlation id of the chain's first fetch), ``chain_end`` (when its last one arrived).
    """
    connection = Window.partitionBy(*_CONNECTION).orderBy("correlation_id")
    # A port can be used again, by another connection of the same name: what does not fit in time is none of this one.
    before = F.max(F.struct(*FETCH_INSTANTS, "sent_time")).over(connection.rangeBetween(-1, -1))
    previous = F.when(_follows(F.col("arrival_time"), before["arrival_time"]), before)
    after = F.max("arrival_time").over(connection.rangeBetween(1, 1))
    following = F.when(_follows(after, F.col("arrival_time")), after)
    until_now = connection.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    first = F.coalesce("carried_chain_no", F.when(F.col("previous").isNull(), F.col("correlation_id")))
    rows = (
        fetches.withColumn("previous", previous)
        .withColumn("next", following)
        .withColumn("chain_no", F.max(first).over(until_now))
    )
    chain = Window.partitionBy(*_CONNECTION, "chain_no")
    return rows.withColumn("chain_end", F.max("arrival_time").over(chain))


def _follows(later: Column, earlier: Column) -> Column:
    return (F.unix_micros(later) - F.unix_micros(earlier)).between(0, GONE_US)


def silent_since(fetches: DataFrame, sealed: SparkBounds) -> DataFrame:
    """Connections on which the first new fetch came after a silence that began before the seal.

    What was replayed within the silence was replayed without knowing that the connection would go on.

    Args:
        fetches: columns cluster_id, broker_id, connection, arrival_us, is_new (no earlier run knew it).

    Returns:
        cluster_id, broker_id, connection, ``silent_us``: when the last fetch before the silence arrived.
    """
    connection = ["cluster_id", "broker_id", "connection"]
    resumed = fetches.where("is_new").groupBy(*connection).agg(F.min("arrival_us").alias("resumed_us"))
    known = fetches.where("NOT is_new").join(resumed, connection)
    known = known.where(F.col("arrival_us").between(F.col("resumed_us") - GONE_US, F.col("resumed_us") - 1))
    silent = known.groupBy(*connection).agg(F.max("arrival_us").alias("silent_us"))
    return silent.where(sealed.before(F.col("silent_us")))


def carried_fetches(window: Part) -> DataFrame | None:
    """The last fetch of each connection before the seals, as rows for `chained`; None where nothing is carried."""
    rows = window.rows_of(CONNECTION, _CARRIED)
    if rows is None:
        return None
    instants = [F.timestamp_micros(f"{name.removesuffix('_time')}_us").alias(name) for name in FETCH_INSTANTS]
    sent = F.timestamp_micros("sent_us").alias("sent_time")
    return rows.select(*_CONNECTION, "correlation_id", *instants, sent, "carried_chain_no")


def follower_fetches(lake: Lake, window: Part = WHOLE) -> DataFrame:
    """Followers' fetches of the window, one row each, chained, the carried ones before them."""
    rows = window.sealed.rows(lake.read(silver.FETCH_REQUESTS).where("broker_id IS NOT NULL"), "handled_time")
    sending_us = F.round((F.col("throttle_time_ms") + F.col("response_queue_time_ms") + F.col("send_time_ms")) * 1000)
    sent = F.timestamp_micros(F.unix_micros("completed_time") + sending_us.cast("long"))
    listed = (F.size("partitions") > 0) | (F.size("responses") > 0)
    rows = rows.where("replica_id >= 0").select(
        *_CONNECTION,
        "correlation_id",
        *FETCH_INSTANTS,
        F.when(listed, sent).otherwise(F.col("arrival_time")).alias("sent_time"),
        F.lit(None).cast("int").alias("carried_chain_no"),
    )
    before = carried_fetches(window)
    return chained(rows if before is None else before.unionByName(rows))


def last_fetches(fetches: DataFrame, window: Part) -> DataFrame:
    """The last fetch of each connection before this run's seals, for the next run to carry.

    Args:
        fetches: of `follower_fetches`.
    """
    handled_us = F.unix_micros("handled_time")
    sealed = fetches.where(window.ends.before(handled_us))
    columns = [F.unix_micros(name).alias(f"{name.removesuffix('_time')}_us") for name in (*FETCH_INSTANTS, "sent_time")]
    last = F.max_by(F.struct("correlation_id", *columns, F.col("chain_no").alias("carried_chain_no")), "arrival_time")
    rows = sealed.groupBy(*_CONNECTION).agg(last.alias("last")).select(*_CONNECTION, "last.*")
    return rows.where(~window.ends.before(F.col("handled_us") + GONE_US))
