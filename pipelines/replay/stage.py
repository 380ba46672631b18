"""The replay stage on Spark: silver becomes ``gold.delayed_operations``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from pipelines.config import ReplayConfig
from pipelines.lake import Lake
from pipelines.replay import coordinators
from pipelines.replay import fetch_timeline as fetches
from pipelines.replay.context import Contexts
from pipelines.replay.context_stage import collect_contexts as collect_contexts
from pipelines.replay.fetch_operator import FETCH_SCHEMA, SessionReplay
from pipelines.replay.isr_stage import Evidences, collect_evidence, isr_events
from pipelines.replay.judge import Tolerances
from pipelines.replay.operations import produce_operation
from pipelines.replay.operator import OUTCOME_TYPES, REPLAY_SCHEMA, PartitionReplay
from pipelines.replay.timeline import KEY, ORDER, operation_id, timeline
from pipelines.silver.parse import topic_names
from schemas import gold, silver
from schemas.isr import ISR_TIMELINE

_BROKER = ("cluster_id", "broker_id")
#: Columns of a request that gold repeats as they are.
_COPIED = (
    "cluster_id",
    "broker_id",
    "arrival_time",
    "operation_id",
    "api",
    "client_id",
    "connection",
    "correlation_id",
    "handled_time",
    "completed_time",
    "timeout_ms",
    "transactional_id",
)


class Replayed(NamedTuple):
    """Rows of ``gold.delayed_operations`` and of ``gold.isr_timeline``."""

    operations: DataFrame
    isr_changes: DataFrame


@contextmanager
def replayed(
    lake: Lake, config: ReplayConfig, contexts: Contexts, evidence: Evidences | None = None
) -> Iterator[Replayed]:
    """Every delayed produce and every fetch in silver, and every change of an ISR.

    Lazy: nothing is computed before rows are asked for, but for small evidence per broker. The replay of the
    partitions, which all of it needs, is kept until the block ends.

    Args:
        evidence: of `pipelines.replay.isr_stage.collect_evidence`; collected here if None.
    """
    partitions = replay_partitions(lake, contexts, config.evidence_tier_max, evidence).persist()
    try:
        limits = Tolerances(config.tolerance_ms * 1000, config.late_ms * 1000)
        kinds = (_produces(lake, partitions, limits, contexts), _fetches(lake, partitions, limits, contexts))
        operations = [rows for rows in kinds if rows is not None]
        nothing = lake.spark.createDataFrame([], gold.DELAYED_OPERATIONS.worker_schema)
        yield Replayed(reduce(DataFrame.unionByName, operations or [nothing]), _isr_changes(partitions))
    finally:
        partitions.unpersist()


def replay_partitions(lake: Lake, contexts: Contexts, tier_max: str, evidence: Evidences | None = None) -> DataFrame:
    """Rows of `pipelines.replay.operator.REPLAY_SCHEMA`: what the kernel gives, partition by partition."""
    partitions = int(lake.spark.conf.get("spark.sql.shuffle.partitions") or 200)
    events = timeline(lake, tier_max, contexts.versions)
    isr_lines = isr_events(lake, tier_max)
    if isr_lines is not None:
        events = events.unionByName(isr_lines)
    ordered = events.repartition(partitions, *KEY).sortWithinPartitions(*KEY, *ORDER)
    return ordered.groupBy(*KEY).transformWithStateInPandas(
        PartitionReplay(contexts, collect_evidence(lake) if evidence is None else evidence),
        REPLAY_SCHEMA,
        outputMode="append",
        timeMode="none",
    )


def _isr_changes(partitions: DataFrame) -> DataFrame:
    types = {field.name: field.dataType for field in ISR_TIMELINE.worker_schema.fields}
    told = StructType([StructField(n, LongType() if t == TimestampType() else t) for n, t in types.items()])
    rows = partitions.where("isr_change IS NOT NULL").select(F.from_json("isr_change", told).alias("row"))
    return rows.select(
        *[
            (F.timestamp_micros(f"row.{name}") if type_ == TimestampType() else F.col(f"row.{name}")).alias(name)
            for name, type_ in types.items()
        ]
    )


def _produces(lake: Lake, partitions: DataFrame, limits: Tolerances, contexts: Contexts) -> DataFrame | None:
    requests = _requests(lake)
    if requests is None:
        return None
    outcomes = partitions.where("request_id IS NOT NULL")
    by_request = outcomes.groupBy("cluster_id", "broker_id", F.col("request_id").alias("operation_id")).agg(
        F.collect_list(F.struct("topic", "partition", *OUTCOME_TYPES)).alias("outcomes")
    )
    joined = requests.join(by_request, ["cluster_id", "broker_id", "operation_id"], "left")
    return joined.mapInArrow(_operations(limits, dict(contexts.versions)), gold.DELAYED_OPERATIONS.worker_schema)


def _fetches(lake: Lake, partitions: DataFrame, limits: Tolerances, contexts: Contexts) -> DataFrame | None:
    events = fetches.fetch_timeline(lake, partitions.where("wake IS NOT NULL"), contexts.versions)
    if events is None:
        return None
    number = int(lake.spark.conf.get("spark.sql.shuffle.partitions") or 200)
    ordered = events.repartition(number, *fetches.KEY).sortWithinPartitions(*fetches.KEY, *fetches.ORDER)
    judged = ordered.groupBy(*fetches.KEY).transformWithStateInPandas(
        SessionReplay(limits, dict(contexts.versions)), FETCH_SCHEMA, outputMode="append", timeMode="none"
    )
    names = topic_names(lake)
    if names is not None:
        named = names.select("cluster_id", F.col("topic_id").alias("closing_topic"), "name")
        judged = judged.join(F.broadcast(named), ["cluster_id", "closing_topic"], "left")
        judged = judged.withColumn("closing_topic", F.coalesce("name", "closing_topic"))
    return judged.select(*_fetch_columns(judged))


def _fetch_columns(judged: DataFrame) -> list[Column]:
    """Columns of gold for a judged fetch; what is only said of produces is null."""
    made: dict[str, Column] = {
        "operation": F.lit("fetch"),
        "api": F.lit("FETCH"),
        "line_time": F.timestamp_micros("line_us"),
        "succeeded": F.size("error_codes") == 0,
        "interval_width_ms": (F.col("highest_us") - F.col("lowest_us")) / 1000,
        "residual_ms": F.col("residual_us") / 1000,
        "partitions": F.array().cast(gold.DELAYED_OPERATIONS.worker_schema["partitions"].dataType),
    }
    for name in ("arrival", "handled", "completed", "lowest", "highest"):
        made[f"{name}_time"] = F.timestamp_micros(f"{name}_us")
    made |= {name: F.col(name) for name in judged.columns if name not in made}
    return [
        made.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name)
        for field in gold.DELAYED_OPERATIONS.worker_schema.fields
    ]


def _requests(lake: Lake) -> DataFrame | None:
    """Requests whose answer waits in the produce purgatory: acks=all produces, and those of coordinators."""
    kinds = []
    if lake.has_rows(silver.PRODUCE_REQUESTS):
        kinds.append(lake.read(silver.PRODUCE_REQUESTS).where("acks = -1"))
    if lake.has_rows(silver.REQUESTS):
        requests = lake.read(silver.REQUESTS)
        marking = requests.where("api = 'WRITE_TXN_MARKERS' AND broker_id IS NOT NULL AND size(partitions) > 0")
        kinds += [coordinators.records(requests, coordinators.partition_counts(lake)), marking]
    return reduce(DataFrame.unionByName, [_waiting(rows) for rows in kinds]) if kinds else None


def _waiting(rows: DataFrame) -> DataFrame:
    rows = rows.withColumn("operation_id", operation_id()).withColumn("broker_id", F.coalesce("broker_id", F.lit(-1)))
    rows = rows.dropDuplicates([*_BROKER, "operation_id"])  # a line can stand in two overlapping files
    instants = [F.unix_micros(f"{name}_time").alias(f"{name}_us") for name in ("handled", "completed")]
    has, types = set(rows.columns), gold.DELAYED_OPERATIONS.worker_schema
    return rows.select(
        *[F.col(name) if name in has else F.lit(None).cast(types[name].dataType).alias(name) for name in _COPIED],
        F.col("time").alias("line_time"),
        F.col("remote_time_ms").alias("wait_ms"),
        *instants,
        F.expr("transform(partitions, p -> struct(p.topic, p.partition, p.error_code))").alias("partitions"),
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
