"""Saved state between runs, on Spark: where a run resumes, and what it saves for the next run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.base.arrow_rows import both, is_in, micros, one_batch, shaped, when
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.base.values import instant
from highwater.pipelines.cluster.premises import REQUEST_FILE, Premises
from highwater.pipelines.kafka.seals import (
    CONFIGURATION,
    Broker,
    Seal,
    Start,
    StoredRun,
    compute_seal_us,
    limit_start,
    starts,
)
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.lake.folds import Fold, collect_tables, fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import (
    Reading,
    keep_rows,
    map_batches,
    read_few_rows,
    read_in_tasks,
    write_in_tasks,
)
from highwater.pipelines.lake.staged import Staged
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.replay import partition_worker, session_worker, silences
from highwater.pipelines.replay.carried_rows import (
    LEFT_WAKES,
    OpenRows,
    carried_folds,
    carried_rows,
    wakes_left,
    wakes_to_carry,
)
from highwater.pipelines.replay.connections import GONE_US, LAST_FETCHES, WATCHES
from highwater.pipelines.replay.runs import (
    among,
    folds_shape,
    pinned_runs,
    pinned_seals,
    replaced_folds,
    runs_of,
    with_folds,
)
from highwater.pipelines.replay.stage import Replayed
from highwater.pipelines.replay.window import CarriedFolds, ReplayWindow
from highwater.schemas import flow, silver, state
from highwater.schemas.state import FOLDS

_BROKER = ("cluster_id", "broker_id")
_REQUESTS = (silver.PRODUCE_REQUESTS, silver.FETCH_REQUESTS, silver.REQUESTS)
_LEAST = shape({"cluster_id": "string", "broker_id": "int", "time_us": "long"})


@dataclass(frozen=True)
class ReplayPlan:
    """The time ranges of silver that a run replays, and where each broker resumes and why."""

    window: ReplayWindow
    starts: Mapping[Broker, Start]  #: by broker
    new_files: Mapping[Broker, list[str]]  #: by broker, the files that no run has replayed
    last_us: Mapping[Broker, int]  #: by broker, when its log ends
    runs: Sequence[StoredRun] = ()  #: valid runs, the newest first
    #: by cluster with dropped days: the run that its replay starts from
    pinned: Mapping[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Return True if every broker is replayed from its first line. All tables are then rebuilt."""
        return all(start.is_first for start in self.starts.values())

    @property
    def run_number(self) -> int:
        """Return the number of this run: 1, or one more than the newest valid run."""
        return self.runs[0].number + 1 if self.runs else 1


def plan(lake: Lake, premises: Premises, fingerprint: str, lag_us: int) -> ReplayPlan:
    """Decide for each broker from which checkpoint the replay resumes.

    Args:
        premises: versions, settings, topic ids and files of the lake.
        fingerprint: hash of code, rules and configuration. State with another fingerprint is not reused.
        lag_us: the replay of the last `lag_us` microseconds of a log is not final.
    """
    files = _list_parsed_files(premises)
    runs = runs_of(lake)
    known = {file_id for run in runs for file_id in run.file_ids}
    new_files: dict[Broker, list[str]] = defaultdict(list)
    ends: dict[Broker, dict[bool, int]] = defaultdict(dict)
    for file_id, broker, is_request, _, last_us in files:
        if file_id not in known:
            new_files[broker].append(file_id)
        ends[broker][is_request] = max(ends[broker].get(is_request, 0), last_us)
    # A request's line is logged after the facts that it proves, so a request log decides how far the log is complete.
    last = {broker: by_kind.get(True, by_kind.get(False, 0)) for broker, by_kind in ends.items()}
    last_seals = runs[0].seals if runs else {}
    earliest = _find_earliest(lake, new_files, files, last_seals) if known else {}
    is_late = any(broker in last_seals and us < last_seals[broker].sealed_us for broker, us in earliest.items())
    pinned = pinned_runs(lake, {cluster_id for cluster_id, _ in last})
    pins = pinned_seals(runs, pinned)
    there = with_folds(lake) if is_late else None
    begins = starts(last, runs, fingerprint, folds_shape(), earliest, premises.digest, lag_us, pins, there)
    for broker in _find_renamed(lake, premises, runs, begins):
        begins[broker] = limit_start(Start(None, None, CONFIGURATION, is_first=True), pins.get(broker))
    seals = {broker: start.seal for broker, start in begins.items() if start.seal is not None}
    until = {}
    for broker, last_us in last.items():
        seal = seals.get(broker)
        until[broker] = compute_seal_us(last_us, lag_us, seal.sealed_us if seal else None)
    logs_end = {broker: max(by_kind.values()) for broker, by_kind in ends.items()}
    window = ReplayWindow(seals, until, logs_end, _locate_state(lake, begins))
    return ReplayPlan(window, begins, new_files, last, runs, pinned)


def _list_parsed_files(premises: Premises) -> list[tuple[str, Broker, bool, int, int]]:
    """Return (file id, broker, is request log, first time, last time) of each parsed file. Times in us."""
    return [
        (file.file_id, (file.cluster_id, file.broker_id), file.kind == REQUEST_FILE, file.first_us, file.last_us)
        for file in premises.files
        if file.parsed and file.broker_id is not None and file.first_us is not None and file.last_us is not None
    ]


def _find_earliest(
    lake: Lake,
    new_files: Mapping[Broker, list[str]],
    files: list[tuple[str, Broker, bool, int, int]],
    seals: Mapping[Broker, Seal],
) -> dict[Broker, int]:
    """Return by broker the earliest time whose replay the new files can change, us since the epoch.

    A request counts from when it was dequeued. A connection that continues after a silence counts from the start of
    that silence.

    Args:
        new_files: ids of files that no run has replayed, by broker.
        files: see `_list_parsed_files`.
        seals: by broker, the checkpoint it could resume from.
    """
    new = {file_id for ids in new_files.values() for file_id in ids}
    earliest: dict[Broker, int] = {}
    for file_id, broker, _, first_us, _ in files:
        if file_id in new:
            earliest[broker] = min(earliest.get(broker, first_us), first_us)
    # A broker without a seal starts from the beginning; its files are no reason to scan the others.
    going_on = earliest.keys() & seals.keys()
    if not going_on:
        return earliest
    looked_at = sorted(file_id for broker in going_on for file_id in new_files[broker])
    since = min(earliest[broker] for broker in going_on)
    for broker, taken_up_us in _find_first_requests(lake, looked_at, since).items():
        earliest[broker] = min(earliest.get(broker, taken_up_us), taken_up_us)
    for broker, silent_us in silence_starts(
        lake, looked_at, {broker: seals[broker].sealed_us for broker in going_on}
    ).items():
        earliest[broker] = min(earliest[broker], silent_us)
    return earliest


def _find_first_requests(lake: Lake, file_ids: Sequence[str], since_us: int) -> dict[Broker, int]:
    """Return by broker when the first request in the files was dequeued, us. Only lines since `since_us` are read."""

    def first(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = rows.filter(both(pc.is_valid(rows.column("broker_id")), is_in(rows.column("file_id"), file_ids)))
        return _take_least(rows, micros(rows.column("dequeued_time")))

    columns = ("file_id", *_BROKER, "dequeued_time")
    written = pc.field("time") >= instant(since_us)
    rows = read_in_tasks(lake, [Reading(spec, columns, map_batches(first), written) for spec in _REQUESTS], _LEAST)
    if rows is None:
        return {}
    table = rows.toArrow()
    least = _take_least(table, table.column("time_us")).to_pylist()
    return {(row["cluster_id"], row["broker_id"]): row["time_us"] for row in least}


def _take_least(rows: pa.RecordBatch | pa.Table, time_us: pa.Array) -> pa.RecordBatch:
    table = pa.table({**{name: rows.column(name) for name in _BROKER}, "time_us": time_us})
    least = table.group_by(list(_BROKER)).aggregate([("time_us", "min")]).rename_columns(_LEAST.names)
    return one_batch(least)


def silence_starts(lake: Lake, file_ids: Sequence[str], sealed_us: Mapping[Broker, int]) -> dict[Broker, int]:
    """Return by broker the earliest start of a pause between fetches that the files end, us.

    Args:
        sealed_us: by broker, the checkpoint time. Only pauses that began before it are returned.
    """

    def fetches(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows = rows.filter(both(pc.is_valid(rows.column("broker_id")), pc.is_valid(rows.column("connection"))))
        is_new = is_in(rows.column("file_id"), file_ids)
        values = {name: rows.column(name) for name in silences.KEY_TYPES}
        values |= {"arrival_us": micros(rows.column("arrival_time")), "is_new": is_new, "rank": when(is_new, 0, 1)}
        return shaped(silences.SCHEMA, rows.num_rows, values)

    columns = ("file_id", *silences.KEY_TYPES, "arrival_time")
    written = pc.field("time") >= instant(min(sealed_us.values()) - GONE_US)
    reading = Reading(silver.FETCH_REQUESTS, columns, map_batches(fetches), written)
    rows = Keyed(shape(silences.ROW_TYPES), flow.key("silences"), silences.ORDER, tuple(silences.COLUMNS))
    folded = fold(lake, Fold([reading], rows, silences.SilenceWorker(sealed_us)))
    if folded is None:
        return {}
    earliest: dict[Broker, int] = {}
    for row in collect_tables(folded)[silences.SILENCES]:
        broker = row["cluster_id"], row["broker_id"]
        earliest[broker] = min(earliest.get(broker, row["silent_us"]), row["silent_us"])
    return earliest


def _find_renamed(
    lake: Lake, premises: Premises, runs: Sequence[StoredRun], begins: Mapping[Broker, Start]
) -> set[Broker]:
    """Return the brokers with a partition whose topic was known only by id when saved, and is now known by name."""
    if not premises.topic_names or not any(start.seal for start in begins.values()):
        return set()
    by_id = (pc.field("kind") == state.PARTITION) & pc.starts_with(pc.field("name"), "id:")
    of_last = by_id & (pc.field("run_number") == runs[0].folds_run)
    rows = read_few_rows(lake, Reading(FOLDS, FOLDS.column_names, keep_rows, of_last), FOLDS.worker_schema)
    topic_ids = pc.struct_field(pc.extract_regex(rows["name"], r"^id:(?P<topic_id>.*)-\d+$"), "topic_id")
    places = zip(*(rows[name].to_pylist() for name in _BROKER), topic_ids.to_pylist(), strict=True)
    return {
        (cluster_id, broker_id)
        for cluster_id, broker_id, topic_id in places
        if (cluster_id, topic_id) in premises.topic_names
    }


def _locate_state(lake: Lake, begins: Mapping[Broker, Start]) -> CarriedFolds | None:
    """Locate the saved state of the checkpoint that each broker resumes from. None if no broker resumes."""
    folds = {broker: start.folds_run for broker, start in begins.items() if start.folds_run is not None}
    if not folds:
        return None
    where = among(folds)
    return CarriedFolds(tuple(lake.files(FOLDS, where)), where)


def write_folds(lake: Lake, plan: ReplayPlan, replayed: Replayed, stamp: str) -> None:
    """Write the state that the next run resumes from, and delete state that no run needs.

    Rows are read only when ``state.runs`` names the run (`pipelines.gold.ledger.note_run`).
    """
    window, number = plan.window, plan.run_number
    sessions = Bounds({broker: seal.sessions_us for broker, seal in replayed.seals.items()})
    waiting = Bounds({broker: seal.waiting_us for broker, seal in replayed.seals.items()})
    # Partitions of brokers without a seal are never final.
    left = OpenRows(frozenset(window.until), sessions, waiting)
    partitions, ground = replayed.partitions, replayed.ground.tables
    of_outcomes = partial(_convert_rows, of_rows=left.outcomes, kind=state.OUTCOME, run_number=number)
    of_carried_outcomes = partial(_convert_rows, of_rows=left.carried_outcomes, kind=state.OUTCOME, run_number=number)
    readings = [
        partitions.reading(partition_worker.FOLDS, map_batches(carried_folds, state.PARTITION, number)),
        partitions.reading(partition_worker.OUTCOMES, map_batches(of_outcomes)),
        *window.carried_of(state.OUTCOME, map_batches(of_carried_outcomes)),
        replayed.operations.reading(session_worker.FOLDS, map_batches(carried_folds, state.SESSION, number)),
        ground.reading(LAST_FETCHES, map_batches(carried_rows, state.CONNECTION, number)),
        ground.reading(
            WATCHES, map_batches(partial(_convert_rows, of_rows=left.watches, kind=state.WATCH, run_number=number))
        ),
    ]
    wakes = carried_rows(_select_wakes(lake, window, partitions, left), state.WAKE, number)
    driver_rows = [_serialize_evidence(plan, replayed), pa.Table.from_batches([wakes])]
    files = write_in_tasks(lake, FOLDS, readings)
    table = pa.concat_tables([some.cast(FOLDS.arrow_schema) for some in driver_rows])
    files += lake.write_rows(FOLDS, table)
    lake.replace_part(FOLDS, files, replaced_folds(plan.runs, plan.pinned), stamp)


def _convert_rows(
    rows: pa.RecordBatch, of_rows: Callable[[pa.RecordBatch], pa.RecordBatch], kind: str, run_number: int
) -> pa.RecordBatch:
    return carried_rows(of_rows(rows), kind, run_number)


def _select_wakes(lake: Lake, window: ReplayWindow, partitions: Staged, left: OpenRows) -> pa.Table:
    readings = [
        partitions.reading(partition_worker.WAKES, left.wakes),
        *window.carried_of(state.WAKE, left.carried_wakes),
    ]
    rows = read_in_tasks(lake, readings, LEFT_WAKES, (wakes_left, LEFT_WAKES))
    return wakes_to_carry(to_arrow_schema(LEFT_WAKES).empty_table() if rows is None else rows.toArrow())


def _serialize_evidence(plan: ReplayPlan, replayed: Replayed) -> pa.Table:
    evidence = replayed.ground.evidence
    return build_table(
        FOLDS,
        [
            (plan.run_number, state.EVIDENCE, *broker, None, 0, None, None, evidence[broker].freeze())
            for broker in sorted(plan.window.until)
            if broker in evidence
        ],
    )
