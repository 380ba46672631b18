"""The replay stage on Spark: silver becomes ``gold.delayed_operations``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipelines.blobs import BLOBS, Batches, Tables, shape
from pipelines.config import ReplayConfig
from pipelines.folds import fold
from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.replay import coordinators
from pipelines.replay import fetch_timeline as fetches
from pipelines.replay.context import Contexts, History, value_at
from pipelines.replay.isr_stage import Evidences, collect_evidence, isr_events
from pipelines.replay.judge import Tolerances
from pipelines.replay.operations import produce_operation
from pipelines.replay.operator import stateful_fold
from pipelines.replay.partition_worker import (
    CARRIED,
    KEY_TYPES,
    OPEN,
    OUTCOME_TYPES,
    OUTCOMES,
    SHAPES,
    WAKE_TYPES,
    WAKES,
    PartitionWorker,
)
from pipelines.replay.seals import Broker, Seal
from pipelines.replay.session_worker import FOLDS, SessionWorker
from pipelines.replay.session_worker import SHAPES as SESSION_SHAPES
from pipelines.replay.timeline import EVENT_TYPES, KEY, ORDER, operation_id, timeline
from pipelines.replay.unsettled import OPERATION_SHAPES, table_of
from pipelines.replay.window import WHOLE, Window
from pipelines.staged import Staged, staging
from pipelines.threads import concurrently
from schemas import gold, silver
from schemas.state import OUTCOME, PARTITION, WAKE
from schemas.table import TableSpec

_BROKER = ("cluster_id", "broker_id")
#: Instants of two lines are off against each other by a little; what wakes fetches is not sealed as early as the rest.
_WAKE_SLACK_US = 5_000_000
_OUTCOME = shape(KEY_TYPES | OUTCOME_TYPES)
_WAKE = shape(KEY_TYPES | WAKE_TYPES)
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
_REPEATED = (*_COPIED, "line_time", "wait_ms")
_FOLDED = ("handled_us", "completed_us", "partitions", "outcomes")


class Replayed(NamedTuple):
    """What a replay gives, as files: they last until its block ends, but for those of gold's own tables.

    Attributes:
        partitions: tables of `pipelines.replay.partition_worker.SHAPES`.
        sessions: tables of `pipelines.replay.session_worker.SHAPES`; None where there are no fetches.
        operations: tables of `pipelines.replay.unsettled.OPERATION_SHAPES`: those of the window, and of requests that
            it may have changed.
        seals: up to where the replay is final, by broker.
    """

    partitions: Staged
    sessions: Staged | None
    operations: Staged
    seals: Mapping[Broker, Seal]


@contextmanager
def replayed(
    lake: Lake,
    config: ReplayConfig,
    premises: Premises,
    evidence: Evidences | None = None,
    window: Window = WHOLE,
    into: Sequence[TableSpec] = (),
) -> Iterator[Replayed]:
    """Every delayed produce and every fetch in silver, and every change of an ISR.

    Args:
        evidence: of `pipelines.replay.isr_stage.collect_evidence`; collected here if None.
        window: which part of silver, and what is carried from before; all of it, from the beginning, if not given.
        into: tables of gold whose files are written into their own folders, for the caller to commit.
    """
    with staging(lake) as folder:
        lake.create(into)

        def tables(shapes: Mapping[str, StructType], *bounded_by: str) -> list[TableSpec]:
            of_gold = {spec.name: spec for spec in into}
            return [of_gold.get(spec.name, spec) for spec in folder.tables(shapes, *bounded_by)]

        operation_tables = tables(OPERATION_SHAPES, "arrival_time", "highest_time")
        partitions = folder.write(replay_partitions(lake, premises, config, evidence, window), tables(SHAPES))
        limits = Tolerances(config.tolerance_ms * 1000, config.late_ms * 1000)
        seals = _seals(partitions, window, premises)

        def produces() -> Staged:
            blobs = _produces(lake, partitions, limits, premises.contexts, window)
            return folder.write(blobs, operation_tables) if blobs is not None else Staged(lake, operation_tables, [])

        def sessions() -> Staged | None:
            blobs = _sessions(lake, partitions, limits, premises, window, seals)
            if blobs is None:
                return None
            (folds,) = folder.tables({FOLDS: SESSION_SHAPES[FOLDS]})
            return folder.write(blobs, [*operation_tables, folds])

        of_requests, of_fetches = concurrently([produces, sessions])
        operations = of_requests if of_fetches is None else of_requests + of_fetches
        yield Replayed(partitions, of_fetches, operations, seals)


def replay_partitions(
    lake: Lake,
    premises: Premises,
    config: ReplayConfig,
    evidence: Evidences | None = None,
    window: Window = WHOLE,
) -> DataFrame:
    """Blobs of `pipelines.replay.partition_worker.SHAPES`: what the kernel gives, partition by partition."""
    events = timeline(lake, premises, config.evidence_tier_max, window)
    isr_lines = isr_events(lake, config.evidence_tier_max, window)
    if isr_lines is not None:
        events = events.unionByName(isr_lines)
    events = events.withColumn("carried", F.lit(None).cast("binary"))
    carried = window.states_of(PARTITION)
    folds = None if carried is None else _folds(carried)
    is_stateful = config.driver == "stateful"
    if folds is not None:
        # The operator has the folds as its state.
        events = events.unionByName(folds.drop("carried") if is_stateful else folds, allowMissingColumns=True)
    evidence = collect_evidence(lake, premises, window) if evidence is None else evidence
    since_us = {broker: seal.sealed_us for broker, seal in window.seals.items()}
    worker = PartitionWorker(premises.contexts, evidence, window.until, since_us)
    if is_stateful:
        return stateful_fold(events, folds, worker)
    return fold(events, KEY, ORDER, (*EVENT_TYPES, "carried"), worker)


def _folds(carried: DataFrame) -> DataFrame:
    """Carried folds as events that come before all others of their partition."""
    name = F.regexp_extract("name", r"^(.*)-(\d+)$", 1), F.regexp_extract("name", r"^(.*)-(\d+)$", 2).cast("int")
    return carried.select(
        "cluster_id",
        name[0].alias("topic"),
        name[1].alias("partition"),
        "broker_id",
        F.lit(CARRIED).alias("kind"),
        F.lit(-1).cast("long").alias("time_us"),
        F.lit(-1).alias("rank"),
        F.col("state").alias("carried"),
    )


def _seals(partitions: Staged, window: Window, premises: Premises) -> dict[Broker, Seal]:
    """Up to where this run is final: fetches where nothing may wake them yet, requests where all is settled."""
    if not window.until:
        return {}
    by_broker = partitions.rows(OPEN).groupBy(*_BROKER)
    rows = by_broker.agg(F.min("wakes_us").alias("wakes_us"), F.min("waiting_us").alias("waiting_us")).collect()
    found = {(row["cluster_id"], row["broker_id"]): row for row in rows}
    seals = {}
    for broker, sealed_us in window.until.items():
        before, row = window.seals.get(broker), found.get(broker)
        wakes_us = (row["wakes_us"] if row else None) or sealed_us
        waiting_us = (row["waiting_us"] if row else None) or sealed_us
        sessions_us = min(sealed_us - _WAKE_SLACK_US, wakes_us)
        seals[broker] = Seal(
            sealed_us,
            max(sessions_us, before.sessions_us) if before else sessions_us,
            min(sealed_us, waiting_us),
            premises.digest(broker, sealed_us),
            before.sealed_us if before else 0,
        )
    return seals


def outcomes_of(partitions: Staged, window: Window, only_final: bool = False) -> DataFrame:
    """Outcomes of the window, and those carried of requests that may have others in it."""
    rows = partitions.rows(OUTCOMES)
    rows = (rows.where("final") if only_final else rows).drop("final")
    carried = window.rows_of(OUTCOME, _OUTCOME)
    return rows if carried is None else rows.unionByName(carried)


def wakes_of(partitions: Staged, window: Window) -> DataFrame:
    """Wakes of the window, and those carried, which may matter to fetches that are not final."""
    rows = partitions.rows(WAKES)
    carried = window.rows_of(WAKE, _WAKE)
    return rows if carried is None else rows.unionByName(carried.withColumn("final", F.lit(True)))


def _produces(
    lake: Lake, partitions: Staged, limits: Tolerances, contexts: Contexts, window: Window
) -> DataFrame | None:
    """Blobs of `OPERATION_SHAPES`; None where nobody waits for an append."""
    requests = _requests(lake, contexts, window)
    if requests is None:
        return None
    outcomes = outcomes_of(partitions, window)
    by_request = outcomes.groupBy("cluster_id", "broker_id", F.col("request_id").alias("operation_id")).agg(
        F.collect_list(F.struct("topic", "partition", *OUTCOME_TYPES)).alias("outcomes")
    )
    joined = requests.join(by_request, ["cluster_id", "broker_id", "operation_id"], "left")
    return joined.mapInArrow(_operations(limits, contexts.eras), BLOBS)


def _sessions(
    lake: Lake,
    partitions: Staged,
    limits: Tolerances,
    premises: Premises,
    window: Window,
    seals: Mapping[Broker, Seal],
) -> DataFrame | None:
    """Blobs of `SESSION_SHAPES`; None where there are no fetches."""
    events = fetches.fetch_timeline(lake, wakes_of(partitions, window), premises, window)
    if events is None:
        return None
    sealed_us = {broker: seal.sessions_us for broker, seal in seals.items()}
    worker = SessionWorker(limits, premises.contexts.eras, sealed_us)
    return fold(events, fetches.KEY, fetches.ORDER, (*fetches.EVENT_TYPES, "carried"), worker)


def _requests(lake: Lake, contexts: Contexts, window: Window) -> DataFrame | None:
    """Requests whose answer waits in the produce purgatory: acks=all produces, and those of coordinators."""
    kinds = []
    if lake.has_rows(silver.PRODUCE_REQUESTS):
        kinds.append(window.waiting.rows(lake.read(silver.PRODUCE_REQUESTS).where("acks = -1"), "handled_time"))
    if lake.has_rows(silver.REQUESTS):
        requests = window.waiting.rows(lake.read(silver.REQUESTS), "handled_time")
        marking = requests.where("api = 'WRITE_TXN_MARKERS' AND broker_id IS NOT NULL AND size(partitions) > 0")
        kinds += [coordinators.records(requests, contexts), marking]
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


def _operations(limits: Tolerances, eras: Mapping[Broker, History]) -> Callable[[Batches], Batches]:
    def build(batches: Batches) -> Batches:
        tables = Tables(OPERATION_SHAPES)
        for batch in batches:
            copied = [_micros(column).to_pylist() for column in batch.select(_REPEATED).columns]
            for *values, handled_us, completed_us, partitions, outcomes in zip(
                *copied, *[batch.column(name).to_pylist() for name in _FOLDED], strict=True
            ):
                row = dict(zip(_REPEATED, values, strict=True))
                request = row | {"handled_us": handled_us, "completed_us": completed_us, "partitions": partitions}
                version = value_at(eras.get((row["cluster_id"], row["broker_id"]), ()), row["line_time"])
                operation = produce_operation(request, outcomes or [], limits, version)
                row |= _columns(operation)
                tables.add_named(table_of(row), row)
            yield from tables.take()
        yield from tables.rest()

    return build


def _micros(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _columns(made: dict[str, Any]) -> dict[str, Any]:
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
