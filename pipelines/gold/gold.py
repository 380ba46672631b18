"""The gold stage: silver becomes the answers.

A run replays lines after the seals of the last one and merges the results; small tables are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import partial, reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from highwater.pipelines.base.config import Config
from highwater.pipelines.base.errors import LakeError
from highwater.pipelines.base.fingerprint import compute_inputs_fingerprint, compute_replay_fingerprint
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.base.values import instant
from highwater.pipelines.bronze.quarantine import batches_without, custody
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.gold.audit_stage import audit
from highwater.pipelines.gold.ledger import note_run
from highwater.pipelines.incidents.stage import write_incidents
from highwater.pipelines.kafka.seals import Broker, Seal, Start
from highwater.pipelines.lake.digests import drop_outdated
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, read_in_tasks, write_in_tasks
from highwater.pipelines.lake.staged import Beside, remove_staging
from highwater.pipelines.replay.carried import ReplayPlan, plan, write_folds
from highwater.pipelines.replay.follower_worker import SPECS as FOLLOWER_TABLES
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.late import UNDECIDED
from highwater.pipelines.replay.late_stage import settled
from highwater.pipelines.replay.runs import runs_of
from highwater.pipelines.replay.stage import replayed
from highwater.pipelines.silver.parse import read_grammar
from highwater.pipelines.spark.session_settings import ONE_TASK_A_TABLE, local_cores
from highwater.pipelines.timing.clocks.stage import write_clock_bounds
from highwater.pipelines.timing.latency.stage import (
    deduplicate_requests,
    has_requests,
    list_request_scans,
    make_blame_fold,
)
from highwater.schemas import bronze, gold, shares, silver
from highwater.schemas.catalog import TABLES
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.isr import ISR_TIMELINE
from highwater.schemas.shares import SHARE_OPERATIONS
from highwater.schemas.state import AUDITED, FOLDS
from highwater.schemas.table import TableSpec

_INSTANT = pa.timestamp("us", "UTC")

#: Tables that each run adds files to; what continues from run to run is in files of its own.
GATHERED = tuple(spec for spec in TABLES if spec not in (FOLDS, AUDITED))


def is_current(lake: Lake, run_id: str) -> bool:
    """Return True if the latest run in ``state.runs`` is this audit."""
    runs = runs_of(lake)
    return bool(runs) and runs[0].run_id == run_id


def compute_fingerprint(lake: Lake, config: Config) -> str:
    """Return the fingerprint of replay code, grammars and settings. State with another fingerprint is not reused."""
    return compute_replay_fingerprint(config.replay_hash, read_grammar(lake))


def compute_inputs(lake: Lake, config: Config) -> str:
    """Return a hash of an audit's inputs: files read, files not read, replay code and settings."""
    registers = [lake.rows(spec, "file_id")["file_id"].to_pylist() for spec in (bronze.LOG_FILES, DATA_FILES)]
    held = custody(lake).quarantined
    ids = [file_id for register in registers for file_id in register if file_id not in held]
    unread = lake.rows(bronze.UNREAD_FILES, "path", "problem").to_pylist()
    ids += [f"{row['path']}: {row['problem']}" for row in unread]
    return compute_inputs_fingerprint(ids, compute_fingerprint(lake, config))


def refresh(lake: Lake, config: Config, run_id: str, inputs: str = "") -> Mapping[Broker, Start]:
    """Update the gold tables from silver. Return where each broker's replay started, and why.

    A run that was killed and restarted gives the same rows. It continues from the checkpoints of the last completed run
    in ``state.runs`` and replaces everything written after them. ``state.runs`` is written last.

    Args:
        run_id: result of `pipelines.base.fingerprint.run_id`.
        inputs: result of `base.fingerprint.compute_inputs_fingerprint`. If the last run had the same inputs, only the
            rules run. Empty if unknown.
    """
    remove_staging(lake.root)
    premises = collect_premises(lake, config.replay.settle_ms * 1000)
    fingerprint = compute_fingerprint(lake, config)
    todo = plan(lake, premises, fingerprint, config.replay.seal_lag_ms * 1000)
    replay = ExitStack()
    last = todo.runs[0] if todo.runs and inputs else None
    rest: list[tuple[Mapping[Broker, Seal], Callable[[], None] | None, list[Beside]]] = []

    def run_operations() -> None:
        rest.append(_write_operations(lake, config, premises, todo, run_id, replay))

    def run_phases() -> None:
        if todo.whole:
            _write_phases(lake, premises.has_overlapping_request_logs, run_id)
        elif has_requests(lake) and (new := {file_id for ids in todo.new_files.values() for file_id in ids}):
            _merge_phases(lake, new, run_id)

    in_process = local_cores(lake.spark.sparkContext.master) is not None
    with lake.settings(ONE_TASK_A_TABLE if in_process else {}), replay:
        if last is not None and last.inputs == inputs:
            rest.append((last.seals, None, []))
        else:
            run_concurrently([run_operations, run_phases])
        ((seals, carry, beside),) = rest
        judged, *_ = run_concurrently(
            [
                lambda: audit(lake, premises, config.audit, run_id, todo, seals, beside),
                lambda: write_clock_bounds(lake, premises.contexts.coarse, run_id),
                *([] if carry is None else [carry]),
            ]
        )
        write_incidents(lake, config, run_id)
        drop_outdated(lake, (bronze.LOG_LINES, *silver.TABLES, gold.DELAYED_OPERATIONS))
    note_run(lake, todo, seals, run_id, fingerprint, inputs, judged, carry is not None)
    run_concurrently([partial(_gather, lake, spec) for spec in GATHERED])
    return todo.starts


def _gather(lake: Lake, spec: TableSpec) -> None:
    try:
        lake.gather(spec)
    except LakeError:
        # Maintenance has written the table meanwhile, and gathers more than this.
        return


def _write_operations(
    lake: Lake, config: Config, premises: Premises, todo: ReplayPlan, run_id: str, stack: ExitStack
) -> tuple[Mapping[Broker, Seal], Callable[[], None], list[Beside]]:
    """Write the replay results. Return (checkpoints by broker, remaining work, stages for the rules' query).

    The remaining work reads no table that other steps write, so it can run at the same time.

    Args:
        stack: closed after the remaining work.
    """
    if not has_requests(lake) and not lake.has_rows(silver.LEADER_AND_ISR):
        for spec in (gold.DELAYED_OPERATIONS, ISR_TIMELINE, gold.REPLICA_BLAME, *shares.TABLES, *FOLLOWER_TABLES):
            lake.empty(spec, run_id)
        return {}, lambda: None, []
    limits = Tolerances(config.replay.tolerance_ms * 1000, config.replay.late_ms * 1000)
    into = (gold.DELAYED_OPERATIONS, SHARE_OPERATIONS, ISR_TIMELINE)
    made = stack.enter_context(replayed(lake, config.replay, premises, todo.window, into))
    files = made.operations.files(gold.DELAYED_OPERATIONS.name)
    if (late := settled(lake, made.operations, limits, premises.contexts)) is not None:
        files += lake.write_rows(gold.DELAYED_OPERATIONS, late)
    of_shares, isr = made.operations.files(SHARE_OPERATIONS.name), made.partitions.files(ISR_TIMELINE.name)
    for spec in FOLLOWER_TABLES:
        lake.replace_files(spec, made.ground.tables.files(spec.name), run_id)
    since = None
    if todo.whole:
        lake.replace_files(gold.DELAYED_OPERATIONS, files, run_id)
        lake.replace_files(SHARE_OPERATIONS, of_shares, run_id)
        lake.replace_files(ISR_TIMELINE, isr, run_id)
    else:
        since = made.operations.least("arrival_time", gold.DELAYED_OPERATIONS.name, UNDECIDED)
        lake.merge_files(gold.DELAYED_OPERATIONS, files, "arrival_time", run_id)
        lake.merge_files(SHARE_OPERATIONS, of_shares, "arrival_time", run_id)
        lake.replace_part(ISR_TIMELINE, isr, _match_undecided(todo), run_id)

    blame = make_blame_fold(lake, config.latency, since, run_id)
    return made.seals, partial(write_folds, lake, todo, made, run_id), [blame]


def _match_undecided(todo: ReplayPlan) -> pc.Expression:
    """Return a filter for the rows of ``gold.isr_timeline`` that this run replaces. They were not final before."""
    of_brokers = []
    for (cluster_id, broker_id), start in sorted(todo.starts.items()):
        of_broker = (pc.field("cluster_id") == cluster_id) & (pc.field("broker_id") == broker_id)
        if start.seal is not None:
            decided = pc.field("decided_time")
            of_broker &= decided.is_null() | (decided >= pa.scalar(instant(start.seal.sealed_us), _INSTANT))
        of_brokers.append(of_broker)
    return reduce(or_, of_brokers)


def _write_phases(lake: Lake, repeated: bool, run_id: str) -> None:
    """Write ``gold.request_phases`` for all requests.

    Args:
        repeated: a line may be in two files. Duplicates are then removed, which shuffles all requests.
    """
    if not has_requests(lake):
        lake.empty(gold.REQUEST_PHASES, run_id)
    elif repeated:
        lake.replace(gold.REQUEST_PHASES, deduplicate_requests(_read_phases(lake, list_request_scans())), run_id)
    else:
        files = write_in_tasks(lake, gold.REQUEST_PHASES, list_request_scans())
        lake.replace_files(gold.REQUEST_PHASES, files, run_id)


def _read_new_phases(lake: Lake, file_ids: Set[str]) -> DataFrame:
    batches = batches_without(lake, file_ids)
    of_files = pc.field("file_id").isin(list(file_ids))
    return _read_phases(
        lake,
        [
            reading._replace(where=of_files, files=lake.find_unsettled_files(reading.spec, batches.__contains__))
            for reading in list_request_scans()
            if lake.has_rows(reading.spec)
        ],
    )


def _read_phases(lake: Lake, readings: Sequence[Reading]) -> DataFrame:
    columns = gold.REQUEST_PHASES.worker_schema
    rows = read_in_tasks(lake, readings, columns)
    return lake.spark.createDataFrame([], columns) if rows is None else rows


def _merge_phases(lake: Lake, file_ids: Set[str], run_id: str) -> None:
    """Merge the requests of some files into ``gold.request_phases``."""
    lake.merge(gold.REQUEST_PHASES, deduplicate_requests(_read_new_phases(lake, file_ids)), "line_time", run_id)
