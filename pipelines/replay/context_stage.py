"""Versions and configuration of all brokers, collected from silver in one Spark job."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.replay.context import (
    BROKER,
    DYNAMIC,
    KEYS,
    LOG,
    LOG_ALL,
    STARTED,
    TOPIC,
    ConfigLine,
    Contexts,
    contexts_of,
)
from schemas import silver

#: A topic's logs are created within seconds on a broker, all with the same properties: one row of them is enough.
_CREATION_US = 60_000_000


def collect_contexts(lake: Lake, settle_us: int) -> Contexts:
    """Versions and configuration histories by broker: small, whatever the size of the logs.

    Args:
        settle_us: how long after its completion an operation waits for the offsets that follow it, microseconds.
    """
    parts = [*_lives(lake), *_configs(lake)]
    if not parts:
        return Contexts(settle_us=settle_us)
    starts: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
    begun_us: dict[tuple[str, int], int] = {}
    lines: dict[tuple[str, int], list[ConfigLine]] = defaultdict(list)
    for row in sorted(
        reduce(DataFrame.unionByName, parts).collect(), key=lambda row: (row["time_us"], row["position"])
    ):
        broker = row["cluster_id"], row["broker_id"]
        if row["scope"] == STARTED:
            begun_us[broker] = row["time_us"]
        if row["kafka_version"] is not None:
            # A broker names its version some seconds after it began to start.
            starts[broker].append((begun_us.pop(broker, row["time_us"]), row["kafka_version"]))
        if row["scope"] is not None:
            values = {told["key"]: told["value"] for told in row["told"] or ()}
            lines[broker].append(ConfigLine(row["time_us"], row["scope"], row["entity"], values))
    return contexts_of({broker: tuple(told) for broker, told in starts.items()}, lines, settle_us)


def _lives(lake: Lake) -> list[DataFrame]:
    """Starts of brokers, and lines that tell a version."""
    if not lake.has_rows(silver.BROKER_LIFECYCLE):
        return []
    told = lake.read(silver.BROKER_LIFECYCLE).where(
        "broker_id IS NOT NULL AND (event = 'starting' OR kafka_version IS NOT NULL)"
    )
    return [
        told.select(
            "cluster_id",
            "broker_id",
            F.unix_micros("time").alias("time_us"),
            F.when(F.col("event") == "starting", STARTED).alias("scope"),
            F.col("mode").alias("entity"),
            "kafka_version",
            F.expr("CAST(NULL AS array<struct<key: string, value: string>>)").alias("told"),
            F.struct("file_id", "byte_offset").alias("position"),
        )
    ]


def _configs(lake: Lake) -> list[DataFrame]:
    """One row per line: which of `KEYS` it gives, with their values; none is an answer too."""
    if not lake.has_rows(silver.BROKER_CONFIGS):
        return []
    kept = F.col("key").isin(*sorted(KEYS))
    # Dumps list whatever there is, so a key that they lack says nothing; the other lines list what is set.
    rows = lake.read(silver.BROKER_CONFIGS).where(
        F.col("broker_id").isNotNull()
        & ((kept & F.col("scope").isin(BROKER, LOG_ALL)) | F.col("scope").isin(DYNAMIC, TOPIC, LOG))
    )
    value = F.when(kept & F.col("value").isNotNull(), F.struct("key", "value"))
    lines = rows.groupBy(
        "cluster_id", "broker_id", F.unix_micros("time").alias("time_us"), "scope", "entity", "file_id", "byte_offset"
    ).agg(F.sort_array(F.collect_list(value)).alias("told"))
    creation = F.when(F.col("scope").isin(LOG, LOG_ALL), F.floor(F.col("time_us") / _CREATION_US))
    alike = lines.groupBy(
        "cluster_id", "broker_id", "scope", "entity", "told", F.coalesce(creation, "time_us").alias("span")
    ).agg(F.min(F.struct("time_us", "file_id", "byte_offset")).alias("first"))
    return [
        alike.select(
            "cluster_id",
            "broker_id",
            F.col("first.time_us").alias("time_us"),
            "scope",
            "entity",
            F.lit(None).cast("string").alias("kafka_version"),
            "told",
            F.struct("first.file_id", "first.byte_offset").alias("position"),
        )
    ]
