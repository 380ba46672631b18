"""The gold stage: silver becomes the answers.

A run replays what lies behind the seals of the last one and merges it; the tables that are small are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.clocks.stage import write_clock_bounds
from pipelines.config import Config
from pipelines.digests import drop_outdated
from pipelines.fingerprint import replay_fingerprint
from pipelines.lake import Lake
from pipelines.lake_tables import sql_text
from pipelines.latency.stage import has_requests, once, replica_blame, request_phases
from pipelines.metrics.stage import write_broker_metrics
from pipelines.premises import Premises
from pipelines.premises_stage import collect_premises
from pipelines.quality.quarantine import batches_without
from pipelines.readings import Reading, read_in_tasks, write_in_tasks
from pipelines.replay.carried import Plan, keep_anchor, note_replays, plan, write_carried
from pipelines.replay.checks_stage import checked_blobs
from pipelines.replay.follower_worker import SPECS as FOLLOWER_TABLES
from pipelines.replay.followers_stage import follower_blobs
from pipelines.replay.judge import Tolerances
from pipelines.replay.late_stage import settled
from pipelines.replay.seals import OF_ANCHOR, Broker, Seal, Stamp, Start
from pipelines.replay.stage import replayed
from pipelines.rows import as_frame
from pipelines.rules.audit_stage import audit
from pipelines.session_settings import ONE_TASK_A_TABLE, local_cores
from pipelines.silver.parse import parsed_by
from pipelines.staged import as_declared, remove_staging
from pipelines.threads import concurrently
from schemas import clocks, controllers, gold, metrics, replicas, silver
from schemas.audit import TABLES as AUDIT_TABLES
from schemas.checks import PURGATORY_CHECKS
from schemas.isr import ISR_TIMELINE
from schemas.state import CARRIED, REPLAYS
from schemas.table import TableSpec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: Written by every audit.
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
    *metrics.TABLES,
    *clocks.TABLES,
    *AUDIT_TABLES,
)


def is_current(lake: Lake, run_id: str) -> bool:
    """Whether the gold tables are what this audit would write: its last commit, in the ledger, names it."""
    stamp = lake.stamp(REPLAYS)
    return stamp is not None and Stamp.from_json(stamp).run_id == run_id


def fingerprint_of(lake: Lake, config: Config) -> str:
    """What decides what a replay of the lake carries and merges."""
    return replay_fingerprint(config.replay_hash, parsed_by(lake))


def refresh(lake: Lake, config: Config, run_id: str, inputs: str = "") -> Mapping[Broker, Start]:
    """Bring the gold tables up to what silver holds.

    Killed at any point and run again it gives the same rows: a run goes on from the seals that the last *whole* run has
    left in the ledger, which is written last, and replaces what came after them.

    Args:
        run_id: of `pipelines.fingerprint.run_id`.
        inputs: of `pipelines.fingerprint.inputs_fingerprint`. If the last run had the same, only rules have changed
            since, and nothing else is asked; empty: not known.

    Returns:
        Where each broker's replay began, and why.
    """
    remove_staging(lake.root)
    premises = collect_premises(lake, config.replay.settle_ms * 1000)
    fingerprint = fingerprint_of(lake, config)
    todo = plan(lake, premises, fingerprint, config.replay.seal_lag_ms * 1000)
    replay = ExitStack()
    before = lake.stamp(REPLAYS)
    last = Stamp.from_json(before) if before is not None and inputs else None
    rest: list[tuple[Mapping[Broker, Seal], Callable[[], int]]] = []

    def operations() -> None:
        rest.append(_operations(lake, config, premises, todo, run_id, replay))

    def phases() -> None:
        if todo.whole:
            _phases_anew(lake, premises.has_overlapping_request_logs, run_id)
        elif has_requests(lake) and (new := {file_id for ids in todo.new_files.values() for file_id in ids}):
            rows = once(_phases_of_files(lake, new)).persist()
            # Without a bound each hour's merge would join the whole of the largest gold table.
            first = rows.agg(F.unix_micros(F.min("line_time"))).collect()[0][0]
            if first is not None:
                lake.merge(gold.REQUEST_PHASES, rows, since={"line_time": _EPOCH + timedelta(microseconds=first)})
            rows.unpersist()

    def coverage() -> None:
        _replace(lake, gold.COVERAGE, _coverage(lake) if lake.has_rows(silver.LINE_COUNTS) else None, run_id)

    def followers() -> None:
        lake.replace_blobs(follower_blobs(lake, premises), FOLLOWER_TABLES, run_id)

    def checks() -> None:
        blobs = checked_blobs(lake, premises) if config.replay.evidence_tier_max == "T3" else None
        if blobs is None:
            lake.empty(PURGATORY_CHECKS, run_id)
        else:
            lake.replace_blobs(blobs, [PURGATORY_CHECKS], run_id)

    in_process = local_cores(lake.spark.sparkContext.master) is not None
    with lake.settings(ONE_TASK_A_TABLE if in_process else {}), lake.stamped(run_id), replay:
        if last is not None and last.inputs == inputs:
            version = last.carried_version
            rest.append((last.seals, lambda: version))
        else:
            concurrently([operations, phases, followers, checks, coverage])
        ((seals, carry),) = rest
        carried, audited, _ = concurrently(
            [
                carry,
                lambda: audit(lake, premises, config.audit, run_id, todo, seals),
                lambda: write_clock_bounds(lake, run_id),
            ]
        )
        # Metrics are also of what the rules' pass writes: windows without leader, elections.
        write_broker_metrics(lake, config, premises, _provisional_us(todo), run_id)
        drop_outdated(lake, (*silver.TABLES, gold.DELAYED_OPERATIONS))
    note_replays(lake, todo, seals, carried, run_id, fingerprint, inputs, audited)
    keep_anchor(lake)
    return todo.starts


def _operations(
    lake: Lake, config: Config, premises: Premises, todo: Plan, run_id: str, stack: ExitStack
) -> tuple[Mapping[Broker, Seal], Callable[[], int]]:
    """Write what the replay of partitions and fetches gives; what is left to do asks for nothing that others write.

    Args:
        stack: closed when that is done, too.

    Returns:
        Up to where the replay is final, and what is left to do, which gives the version of ``state.carried``.
    """
    if not has_requests(lake) and not lake.has_rows(silver.LEADER_AND_ISR):
        for spec in (gold.DELAYED_OPERATIONS, ISR_TIMELINE, gold.REPLICA_BLAME):
            lake.empty(spec, run_id)
        return {}, lambda: lake.empty(CARRIED, run_id)
    limits = Tolerances(config.replay.tolerance_ms * 1000, config.replay.late_ms * 1000)
    made_anew = (gold.DELAYED_OPERATIONS, ISR_TIMELINE) if todo.whole else ()
    made = stack.enter_context(replayed(lake, config.replay, premises, todo.window, made_anew))
    files = made.operations.files(gold.DELAYED_OPERATIONS.name)
    late = settled(lake, made.operations, limits)
    since = None
    if todo.whole:
        if late is not None:
            files += lake.write_rows(gold.DELAYED_OPERATIONS, late)
        lake.replace_files(gold.DELAYED_OPERATIONS, files, run_id)
        lake.replace_files(ISR_TIMELINE, made.partitions.files(ISR_TIMELINE.name), run_id)
    else:
        since = made.operations.least("arrival_time")
        if since is not None:
            rows = made.operations.rows(gold.DELAYED_OPERATIONS.name)
            if late is not None:
                rows = rows.unionByName(as_frame(lake.spark, late, gold.DELAYED_OPERATIONS.worker_schema))
            rows = as_declared(gold.DELAYED_OPERATIONS, rows)
            lake.merge(gold.DELAYED_OPERATIONS, rows, since={"arrival_time": since})
        changes = as_declared(ISR_TIMELINE, made.partitions.rows(ISR_TIMELINE.name))
        lake.replace(ISR_TIMELINE, changes, where=_undecided(todo), stamp=run_id)

    def rest() -> int:
        _blame(lake, config, since, run_id)
        return write_carried(lake, todo.window, made, run_id)

    return made.seals, rest


def _provisional_us(todo: Plan) -> int:
    """The earliest instant of which new files may tell something new; 0: all is made anew."""
    anew = (
        start.seal
        for broker, start in todo.starts.items()
        if broker in todo.new_files or start.carried_version in (None, OF_ANCHOR)
    )
    return min((0 if seal is None else seal.sealed_us for seal in anew), default=0)


def _undecided(todo: Plan) -> str:
    """SQL: rows of the ISR's timeline that this run decides anew."""
    parts = []
    for (cluster_id, broker_id), start in sorted(todo.starts.items()):
        part = f"cluster_id = {sql_text(cluster_id)} AND broker_id = {broker_id}"
        if start.seal is not None:
            sealed = f"timestamp_micros({start.seal.sealed_us})"
            part += f" AND (decided_time IS NULL OR decided_time >= {sealed})"
        parts.append(f"({part})")
    return " OR ".join(parts)


def _blame(lake: Lake, config: Config, since: datetime | None, run_id: str) -> None:
    """Aggregate the intervals that operations from an instant on fall into; None: all."""
    needed, where = None, None
    seconds = config.latency.interval_s
    first = 0 if since is None else int(since.timestamp()) // seconds * seconds
    if since is not None:
        needed = pc.field("arrival_time") >= datetime.fromtimestamp(first, UTC)
    operations = lake.read(gold.DELAYED_OPERATIONS, needed=needed)
    if since is not None:
        operations = operations.where(F.col("arrival_time") >= F.timestamp_seconds(F.lit(first)))
        where = f"interval_start >= timestamp_seconds({first})"
    rows = replica_blame(operations, config.latency).coalesce(1)
    lake.replace(gold.REPLICA_BLAME, rows, where=where, stamp=run_id)


def _phases_anew(lake: Lake, repeated: bool, run_id: str) -> None:
    """Write the phases of all requests.

    Args:
        repeated: a line may stand in two files; looking for those costs a shuffle of all requests.
    """
    if not has_requests(lake):
        lake.empty(gold.REQUEST_PHASES, run_id)
    elif repeated:
        lake.replace(gold.REQUEST_PHASES, once(_phases_frame(lake, request_phases())), stamp=run_id)
    else:
        files = write_in_tasks(lake, gold.REQUEST_PHASES, request_phases())
        lake.replace_files(gold.REQUEST_PHASES, files, run_id)


def _phases_of_files(lake: Lake, file_ids: Set[str]) -> DataFrame:
    batches = batches_without(lake, file_ids)
    of_files = pc.field("file_id").isin(list(file_ids))
    return _phases_frame(
        lake,
        [
            reading._replace(where=of_files, files=lake.added_until(reading.spec, batches.__contains__))
            for reading in request_phases()
            if lake.has_rows(reading.spec)
        ],
    )


def _phases_frame(lake: Lake, readings: Sequence[Reading]) -> DataFrame:
    columns = gold.REQUEST_PHASES.worker_schema
    rows = read_in_tasks(lake, readings, columns)
    return lake.spark.createDataFrame([], columns) if rows is None else as_frame(lake.spark, rows, columns)


def _coverage(lake: Lake) -> DataFrame:
    rows = lake.read(silver.LINE_COUNTS).withColumn("broker_id", F.coalesce("broker_id", F.lit(-1)))
    keys = gold.COVERAGE.keys
    counted = rows.groupBy(*keys).agg(F.sum("line_count").alias("line_count"))
    return counted.select(*gold.COVERAGE.column_names).coalesce(1)


def _replace(lake: Lake, spec: TableSpec, rows: DataFrame | None, run_id: str) -> None:
    """Make a table what rows say, or empty."""
    if rows is None:
        lake.empty(spec, run_id)
    else:
        lake.replace(spec, rows, stamp=run_id)
