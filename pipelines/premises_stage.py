"""The premises of an audit on Spark: all that is asked of small tables before the heavy work, in one query."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines import premises as p
from pipelines.controllers.plan import EVENTS, LEADER_CHANGE
from pipelines.lake import Lake
from pipelines.premises import Premises, premises_of
from pipelines.replay.context import BROKER, DYNAMIC, KEYS, LOG, LOG_ALL, TOPIC
from schemas import bronze, silver
from schemas.silver.data_dir import METADATA_RECORDS
from schemas.table import TableSpec

#: A topic's logs are created within seconds on a broker, all with the same properties: one row of them is enough.
_CREATION_US = 60_000_000
_PLACE = ("cluster_id", "broker_id", "file_id", "byte_offset")
_NODE = ("node_id", "node_epoch", "fenced", "in_controlled_shutdown")


def collect_premises(lake: Lake, settle_us: int) -> Premises:
    """The premises of a lake; none without a query where it holds nothing.

    Args:
        settle_us: see `premises_of`.
    """
    sources: list[tuple[TableSpec, str, Callable[[DataFrame], DataFrame]]] = [
        (silver.BROKER_LIFECYCLE, p.LIFE, _lives),
        (silver.BROKER_CONFIGS, p.CONFIG, _configs),
        (silver.CONTROLLER_EVENTS, p.EVENT, _events),
        (METADATA_RECORDS, p.RECORD, _records),
        (METADATA_RECORDS, p.SNAPSHOT, _snapshots),
        (silver.TOPICS, p.NAME, _names),
        (bronze.LOG_FILES, p.FILE, _files),
        (silver.FETCH_REQUESTS, p.THREAD, _threads),
        (silver.LINE_COUNTS, p.PARSED, lambda rows: rows.select("file_id").distinct()),
    ]
    parts = [
        select(lake.read(spec)).withColumn("kind", F.lit(kind)) for spec, kind, select in sources if lake.has_rows(spec)
    ]
    if not parts:
        return premises_of([], settle_us)
    union = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
    return premises_of((row.asDict() for row in union.collect()), settle_us)


def topic_names(lake: Lake, premises: Premises) -> DataFrame | None:
    """(cluster_id, topic_id, name) of every topic id that a line names, to be broadcast; None if none does."""
    if not premises.topic_names:
        return None
    ids = premises.topic_names.items()
    rows = [{"cluster_id": cluster_id, "topic_id": topic_id, "name": name} for (cluster_id, topic_id), name in ids]
    # From Arrow it is a relation of the driver's, which is broadcast without a job.
    return lake.spark.createDataFrame(pa.Table.from_pylist(rows))


def _lives(rows: DataFrame) -> DataFrame:
    matters = "event IN ('{}', '{}', '{}') OR kafka_version IS NOT NULL OR mode IS NOT NULL"
    rows = rows.where("broker_id IS NOT NULL").where(matters.format(p.STARTING, p.SHUT_DOWN, p.CLOCK_SET_BACK))
    return rows.select(
        *_PLACE, "line_no", F.unix_micros("time").alias("time_us"), "event", "mode", "kafka_version", "detail"
    )


def _configs(rows: DataFrame) -> DataFrame:
    """One row per line: which of `KEYS` it gives, with their values; none is an answer too."""
    known = F.col("key").isin(*sorted(KEYS))
    # Dumps list whatever there is, so a key that they lack says nothing; the other lines list what is set.
    rows = rows.where(
        F.col("broker_id").isNotNull()
        & ((known & F.col("scope").isin(BROKER, LOG_ALL)) | F.col("scope").isin(DYNAMIC, TOPIC, LOG))
    )
    value = F.when(known & F.col("value").isNotNull(), F.struct("key", "value"))
    lines = rows.groupBy(*_PLACE, F.unix_micros("time").alias("time_us"), "scope", "entity").agg(
        F.sort_array(F.collect_list(value)).alias("settings")
    )
    creation = F.when(F.col("scope").isin(LOG, LOG_ALL), F.floor(F.col("time_us") / _CREATION_US))
    alike = lines.groupBy(
        "cluster_id", "broker_id", "scope", "entity", "settings", F.coalesce(creation, "time_us").alias("span")
    ).agg(F.min(F.struct("time_us", "file_id", "byte_offset")).alias("first"))
    return alike.select("cluster_id", "broker_id", "scope", "entity", "settings", "first.*")


def _events(rows: DataFrame) -> DataFrame:
    rows = rows.where(F.col("broker_id").isNotNull() & F.col("partition").isNull() & F.col("event").isin(*EVENTS))
    subject = ("controller_epoch", "subject_broker_id", "brokers", "topic", "topic_id", "leader", "detail")
    return rows.select(*_PLACE, "line_no", F.unix_micros("time").alias("time_us"), "event", *subject)


def _records(rows: DataFrame) -> DataFrame:
    """Records about nodes, and about who is the active controller."""
    rows = rows.where("broker_id IS NOT NULL AND applied")
    rows = rows.where(f"node_id IS NOT NULL OR (source = 'log' AND record = '{LEADER_CHANGE}')")
    names = ("source", "offset", "record", "record_no", "leader", "controller_epoch", *_NODE)
    return rows.select(*_PLACE, F.unix_micros("time").alias("time_us"), *names)


def _snapshots(rows: DataFrame) -> DataFrame:
    newest = rows.where("broker_id IS NOT NULL AND source = 'snapshot'").groupBy("cluster_id", "broker_id")
    return newest.agg(F.max("offset").alias("offset"))


def _names(rows: DataFrame) -> DataFrame:
    return rows.groupBy("cluster_id", "topic_id").agg(F.max("topic").alias("topic"))


def _threads(rows: DataFrame) -> DataFrame:
    """The thread that each connection of a follower belongs to, by its client id."""
    of_followers = rows.where(F.col("client_id").rlike(p.FETCHER_CLIENT))
    thread = F.regexp_extract("client_id", p.FETCHER_CLIENT, 2).cast("int")
    return of_followers.groupBy("cluster_id", "broker_id", "connection").agg(F.min(thread).alias("fetcher_id"))


def _files(rows: DataFrame) -> DataFrame:
    first, last = (F.unix_micros(f"{name}_time").alias(f"{name}_us") for name in ("first", "last"))
    return rows.select("file_id", "path", F.col("kind").alias("file_kind"), "cluster_id", "broker_id", first, last)
