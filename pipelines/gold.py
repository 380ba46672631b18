"""The gold stage: silver becomes the answers, all gold tables of one audit under one stamp."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config import Config
from pipelines.lake import Lake, concurrently
from pipelines.latency.stage import has_requests, replica_blame, request_phases
from pipelines.replay.checks_stage import checked_produces
from pipelines.replay.context_stage import collect_contexts
from pipelines.replay.followers_stage import replayed_followers
from pipelines.replay.isr_stage import collect_evidence
from pipelines.replay.late import tell_late_apart
from pipelines.replay.stage import replayed
from pipelines.rules.audit_stage import audit
from schemas import controllers, gold, replicas, silver
from schemas.audit import TABLES as AUDIT_TABLES
from schemas.checks import PURGATORY_CHECKS
from schemas.isr import ISR_TIMELINE
from schemas.table import TableSpec

#: Written by every audit, and stamped with its id.
ANSWERS = (
    gold.DELAYED_OPERATIONS,
    gold.REQUEST_PHASES,
    gold.REPLICA_BLAME,
    gold.COVERAGE,
    ISR_TIMELINE,
    PURGATORY_CHECKS,
    replicas.REPLICA_TRUNCATIONS,
    replicas.FETCHER_TIMELINE,
    *controllers.TABLES,
    *AUDIT_TABLES,
)


def is_current(lake: Lake, run_id: str) -> bool:
    """Whether the gold tables are what this audit would write."""
    return all(lake.stamp(spec) == run_id for spec in ANSWERS)


def refresh(lake: Lake, config: Config, run_id: str) -> None:
    """Recompute the gold tables from silver."""

    settle_us = config.replay.settle_ms * 1000
    contexts, evidence = concurrently([lambda: collect_contexts(lake, settle_us), lambda: collect_evidence(lake)])

    def operations() -> None:
        if has_requests(lake) or lake.has_rows(silver.LEADER_AND_ISR):
            with replayed(lake, config.replay, contexts, evidence) as made:
                lake.replace(gold.DELAYED_OPERATIONS, made.operations, stamp=run_id)
                lake.replace(ISR_TIMELINE, made.isr_changes, stamp=run_id)
        else:
            for spec in (gold.DELAYED_OPERATIONS, ISR_TIMELINE):
                lake.replace(spec, _none(lake, spec), stamp=run_id)
        blame = replica_blame(lake.read(gold.DELAYED_OPERATIONS), config.latency)
        lake.replace(gold.REPLICA_BLAME, blame.coalesce(1), stamp=run_id)

    def phases() -> None:
        rows = request_phases(lake) if has_requests(lake) else _none(lake, gold.REQUEST_PHASES)
        lake.replace(gold.REQUEST_PHASES, rows, stamp=run_id)

    def coverage() -> None:
        rows = _coverage(lake) if lake.has_rows(silver.LINE_COUNTS) else _none(lake, gold.COVERAGE)
        lake.replace(gold.COVERAGE, rows.coalesce(1), stamp=run_id)

    def followers() -> None:
        with replayed_followers(lake, contexts) as found:
            lake.replace(replicas.REPLICA_TRUNCATIONS, found.truncations, stamp=run_id)
            lake.replace(replicas.FETCHER_TIMELINE, found.stays, stamp=run_id)

    def checks() -> None:
        logged = checked_produces(lake, contexts) if config.replay.evidence_tier_max == "T3" else None
        rows = logged if logged is not None else _none(lake, PURGATORY_CHECKS)
        lake.replace(PURGATORY_CHECKS, rows, stamp=run_id)

    concurrently([operations, phases, followers, checks, coverage])
    tell_late_apart(lake, run_id)
    audit(lake, contexts, config.audit, run_id)


def _coverage(lake: Lake) -> DataFrame:
    rows = lake.read(silver.LINE_COUNTS).withColumn("broker_id", F.coalesce("broker_id", F.lit(-1)))
    keys = gold.COVERAGE.keys
    return rows.groupBy(*keys).agg(F.sum("line_count").alias("line_count")).select(*gold.COVERAGE.column_names)


def _none(lake: Lake, spec: TableSpec) -> DataFrame:
    return lake.spark.createDataFrame([], spec.worker_schema)
