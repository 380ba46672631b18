"""The replay stage on Spark: silver becomes ``gold.delayed_operations``."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config import ReplayConfig
from pipelines.lake import Lake
from pipelines.replay.context import LAG_TIME_MAX, MIN_ISR, Contexts, History
from pipelines.replay.judge import Tolerances
from pipelines.replay.operations import produce_operation
from pipelines.replay.operator import OUTCOME_SCHEMA, OUTCOME_TYPES, PartitionReplay
from pipelines.replay.timeline import KEY, ORDER, operation_id, timeline
from schemas import gold, silver

_BROKER = ("cluster_id", "broker_id")
#: Columns of silver.produce_requests that gold repeats as they are.
_COPIED = (
    "cluster_id",
    "broker_id",
    "arrival_time",
    "operation_id",
    "client_id",
    "connection",
    "correlation_id",
    "handled_time",
    "completed_time",
    "timeout_ms",
    "transactional_id",
)


def replay_operations(lake: Lake, config: ReplayConfig) -> DataFrame:
    """Rows of ``gold.delayed_operations`` for every acks=all produce in silver.

    Lazy: nothing is computed before the rows are asked for, but for the small contexts of the brokers.
    """
    contexts = collect_contexts(lake, config.settle_ms * 1000)
    outcomes = _outcomes(lake, contexts, config.evidence_tier_max)
    by_request = outcomes.groupBy("cluster_id", "broker_id", F.col("request_id").alias("operation_id")).agg(
        F.collect_list(F.struct("topic", "partition", *OUTCOME_TYPES)).alias("outcomes")
    )
    requests = _acks_all(lake)
    joined = requests.join(by_request, ["cluster_id", "broker_id", "operation_id"], "left")
    limits = Tolerances(config.tolerance_ms * 1000, config.late_ms * 1000)
    return joined.mapInArrow(_operations(limits, dict(contexts.versions)), gold.DELAYED_OPERATIONS.worker_schema)


def collect_contexts(lake: Lake, settle_us: int) -> Contexts:
    """Versions and configuration by broker: small, whatever the size of the logs."""
    versions: dict[tuple[str, int], str] = {}
    if lake.has_rows(silver.BROKER_LIFECYCLE):
        told = lake.read(silver.BROKER_LIFECYCLE).where("kafka_version IS NOT NULL AND broker_id IS NOT NULL")
        for row in told.groupBy(*_BROKER).agg(F.max_by("kafka_version", "time").alias("version")).collect():
            versions[row["cluster_id"], row["broker_id"]] = row["version"]
    broker: dict[tuple[str, int, str], History] = {}
    topic: dict[tuple[str, int, str, str], History] = {}
    if lake.has_rows(silver.BROKER_CONFIGS):
        told = lake.read(silver.BROKER_CONFIGS).where(
            F.col("key").isin(LAG_TIME_MAX, MIN_ISR) & F.col("broker_id").isNotNull() & F.col("value").isNotNull()
        )
        changes = told.groupBy(*_BROKER, "scope", "entity", "key", "value", F.unix_micros("time").alias("at")).agg(
            F.count("*").alias("n")
        )
        for row in sorted(changes.collect(), key=lambda row: (row["at"], row["value"])):
            at = ((row["at"], row["value"]),)
            if row["scope"] in ("topic", "log"):
                key = (row["cluster_id"], row["broker_id"], row["entity"], row["key"])
                topic[key] = topic.get(key, ()) + at
            else:
                own = (row["cluster_id"], row["broker_id"], row["key"])
                broker[own] = broker.get(own, ()) + at
    return Contexts(versions, broker, topic, settle_us)


def _outcomes(lake: Lake, contexts: Contexts, tier_max: str) -> DataFrame:
    partitions = int(lake.spark.conf.get("spark.sql.shuffle.partitions") or 200)
    events = timeline(lake, tier_max)
    ordered = events.repartition(partitions, *KEY).sortWithinPartitions(*KEY, *ORDER)
    return ordered.groupBy(*KEY).transformWithStateInPandas(
        PartitionReplay(contexts), OUTCOME_SCHEMA, outputMode="append", timeMode="none"
    )


def _acks_all(lake: Lake) -> DataFrame:
    rows = lake.read(silver.PRODUCE_REQUESTS).where("acks = -1")
    rows = rows.withColumn("operation_id", operation_id()).withColumn("broker_id", F.coalesce("broker_id", F.lit(-1)))
    rows = rows.dropDuplicates([*_BROKER, "operation_id"])  # a line can stand in two overlapping files
    instants = [F.unix_micros(f"{name}_time").alias(f"{name}_us") for name in ("handled", "completed")]
    return rows.select(
        *_COPIED,
        F.col("time").alias("line_time"),
        F.col("remote_time_ms").alias("wait_ms"),
        *instants,
        "partitions",
    )


def _operations(limits: Tolerances, versions: dict[tuple[str, int], str]):  # type: ignore[no-untyped-def]
    schema = gold.DELAYED_OPERATIONS.arrow_schema

    def build(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = []
            copied = batch.select([*_COPIED, "line_time", "wait_ms"]).to_pylist()
            for kept, part in zip(
                copied, batch.select(["handled_us", "completed_us", "partitions", "outcomes"]).to_pylist(), strict=True
            ):
                version = versions.get((kept["cluster_id"], kept["broker_id"]))
                request = {**kept, **part}
                made = produce_operation(request, part["outcomes"] or [], limits, version)
                rows.append({**kept, **_columns(made, part["handled_us"])})
            yield pa.RecordBatch.from_pylist(rows, schema=schema)

    return build


def _columns(made: dict, handled_us: int) -> dict:  # type: ignore[type-arg]
    """An operation's instants and durations as gold's columns."""
    split, lowest, highest = made.pop("split"), made.pop("lowest_us"), made.pop("highest_us")
    residual, without = made.pop("residual_us"), made.pop("without_closing_us")
    made["lowest_time"], made["highest_time"] = lowest, highest
    made["interval_width_ms"] = None if lowest is None else (highest - lowest) / 1000
    made["residual_ms"] = None if residual is None else residual / 1000
    made["wait_without_closing_ms"] = None if without is None else without / 1000
    if split is not None:
        for name, value in zip(split._fields, split, strict=True):
            made[f"wait_{name.removeprefix('wait_').removesuffix('_us')}_ms"] = None if value is None else value / 1000
    return made
