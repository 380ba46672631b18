"""Retention: old days are dropped, and results of the days that stay do not change. Nothing here needs Spark.

Data as small as metadata stays for good: leaderships, ISRs, settings, the register of files. Data that grows with
traffic goes: lines of logs (bronze), requests, fetches, checks (silver), answers (gold). Clusters are independent.

- *The cut* is a midnight in UTC, by the clock of the machine that drops days. Days before it are **closed**: every
  writer of gold keeps their rows (`lake.lake.Lake`), since their inputs are gone. So gold may be kept for longer.
- *The anchor* is the newest run with folds (``state.folds``, of one run a day) whose seals of the cluster are all
  before the cut. A replay from the beginning starts at the anchor, with its folds.
- *From the anchor*, and from an hour before it, all rows stay: of each broker by its own seal, since each log has
  its own clock. All rows of a broker without a seal in the anchor stay.
- *Known findings* stay (`pipelines.rules.findings`): their evidence may be gone.

A file is rewritten once for all clusters, and only if some of its rows go and some stay. The ledger,
``state.expiries``, is written first and closes the days. The next run with the same or later bounds repeats an
interrupted one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import is_in, look_up
from highwater.pipelines.base.errors import ConfigError, InputError
from highwater.pipelines.base.fingerprint import TABLES as MADE_ANEW
from highwater.pipelines.base.values import UNKNOWN_CLUSTER, instant
from highwater.pipelines.kafka.seals import Broker, list_valid_runs
from highwater.pipelines.lake.changes import write_deletions
from highwater.pipelines.lake.clusters import ClusterInstants, FileCluster, find_cluster
from highwater.pipelines.lake.delta_commits import Fence, append, replace
from highwater.pipelines.lake.row_parts import Wanted, count_wanted, select_old, split_rows
from highwater.pipelines.lake.stored_tables import StoredTables
from highwater.pipelines.lake.table_files import build_table, write_rows
from highwater.pipelines.lake.tables import create_table
from highwater.pipelines.replay.connections import GONE_US
from highwater.pipelines.replay.runs import runs_of, with_folds
from highwater.pipelines.storage.place import Place, relative
from highwater.schemas import silver
from highwater.schemas.audit import EVIDENCE, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.catalog import TABLES
from highwater.schemas.quality import QUARANTINED_FILES
from highwater.schemas.state import EXPIRIES
from highwater.schemas.table import TableSpec

_REPLAY_FIRST: Final = "run `highwater parse` and `highwater replay` on it, then expire again"

#: A row of a small table; its instants are microseconds.
Row = Mapping[str, Any]


class Anchor(NamedTuple):
    """The run whose saved state replays of a cluster resume from when older days are dropped."""

    run_id: str  #: empty where none of it was ever replayed
    run_number: int  #: 0 likewise
    needed_us: Mapping[Broker, int]  #: by broker, the earliest time that a replay may read
    known_us: int  #: findings of before, which is all that was read, are known


class Anchors:
    """Finds for each cluster the run from which replays resume after days were dropped.

    Raises:
        InputError: nothing was ever replayed, or everything must be replayed again.
    """

    def __init__(self, lake: StoredTables) -> None:
        self._root = root = lake.root
        self._runs = runs_of(lake)
        if not self._runs:
            raise InputError(root, "holds no audit", "ingest, parse and replay logs into it first")
        if self._runs[0].components == MADE_ANEW:
            raise InputError(root, "holds tables that have to be made anew", _REPLAY_FIRST)
        self._with_folds = with_folds(lake)
        self._settled = {file_id for run in self._runs for file_id in run.file_ids}
        self._settled |= {row["file_id"] for row in lake.dicts(QUARANTINED_FILES, "file_id")}

    def of(self, cluster_id: str, files: Sequence[Row], closed_us: int) -> Anchor:
        """Return the newest run of a cluster whose saved states are final before `closed_us`.

        Raises:
            InputError: not all files of the cluster are replayed, or no run qualifies.
        """
        replayed = [row for row in files if row["broker_id"] is not None and row["first_time"] is not None]
        if any(row["record_count"] and row["file_id"] not in self._settled for row in replayed):
            raise InputError(
                self._root, f"holds files of cluster {cluster_id} that were not replayed yet", _REPLAY_FIRST
            )
        known_us = max(row["last_time"] or row["first_time"] or 0 for row in files) + 1
        if not replayed:
            return Anchor("", 0, {}, known_us)
        there = [run for run in list_valid_runs(self._runs, cluster_id) if run.folds_run in self._with_folds]
        finals = [(run.find_final(cluster_id) or 0, run) for run in there]
        chosen = max(((us, run) for us, run in finals if us <= closed_us), key=lambda each: each[0], default=None)
        if chosen is None:
            problem = f"has no state of a replay of cluster {cluster_id} from before {instant(closed_us):%Y-%m-%d}"
            if finals:
                problem += f"; the oldest is of {instant(min(us for us, _ in finals)):%Y-%m-%d %H:%M}"
            raise InputError(
                self._root, problem, "keep more days; every day on which an audit runs leaves a state to replay from"
            )
        run = chosen[1]
        needed = {
            broker: min(seal.sealed_us, seal.sessions_us, seal.waiting_us) - GONE_US
            for broker, seal in run.seals.items()
            if broker[0] == cluster_id
        }
        return Anchor(run.run_id, run.number, needed, known_us)


_DAY_US: Final = 86_400_000_000
#: Sources of `silver.high_watermarks` that are as rare as restarts.
_RARE_WATERMARKS: Final = ("loaded", "non_monotonic")


class Keep(NamedTuple):
    """For how many days each layer is kept. None for ever."""

    bronze: int | None
    silver: int | None
    gold: int | None


class Cuts(NamedTuple):
    """Midnights before which days are dropped, us since the epoch. None drops nothing."""

    bronze_us: int | None
    silver_us: int | None
    gold_us: int | None
    closed_us: int  #: days before it are closed


class Retained(NamedTuple):
    """The rows of a table that are kept."""

    spec: TableSpec
    wanted: Wanted
    #: which rows may go, for files without such a row, which are not opened; None: any
    among: pc.Expression | None = None


class ExpiryPlan(NamedTuple):
    """Tables and bounds of an expiry."""

    cuts: Cuts
    anchors: Mapping[str, Anchor]  #: by cluster that loses days
    refused: Mapping[str, InputError]  #: why others that hold so old days keep them, by cluster
    stays: tuple[Retained, ...]  #: of each table that loses rows, or may


def resolve_keep(keep: str | None, by_layer: Mapping[str, str | None]) -> Keep:
    """Return for how long layers are kept: as configured, else `keep`.

    Args:
        keep: option ``--keep``, for example ``90d``. None if not given.
        by_layer: configured values.

    Raises:
        ConfigError: nothing is given, or a layer is kept for less time than a layer that is made from it.
    """
    days = {layer: _parse_days(by_layer.get(layer) or keep) for layer in Keep._fields}
    if not any(days.values()):
        raise ConfigError("command line", "--keep", "is missing; say how many days are kept, as in --keep 90d")
    lasting = [count or float("inf") for count in days.values()]
    if lasting != sorted(lasting):
        problem = "is kept for less than what it is made of; have bronze_keep <= silver_keep <= gold_keep"
        raise ConfigError("configuration", "retention", problem)
    return Keep(**days)


def _parse_days(text: str | None) -> int | None:
    return None if text is None else int(text.removesuffix("d"))


def plan_expiry(root: Place, keep: Keep, now: datetime, name: str | None = None) -> ExpiryPlan | None:
    """Return what would be dropped. None if nothing is old enough.

    Args:
        name: name or id of the cluster that loses days. None for all clusters.

    Raises:
        InputError: the lake has no audit or no such cluster; or no cluster can lose days: files are not all replayed,
            or no saved state is old enough.
    """
    lake = StoredTables(root)
    names = ("file_id", "cluster_id", "broker_id", "logged_cluster_id", "record_count", "first_time", "last_time")
    files: dict[str, list[Row]] = defaultdict(list)
    for row in lake.dicts(LOG_FILES, *names):
        files[row["cluster_id"] or UNKNOWN_CLUSTER].append(row)
    of_runs = Anchors(lake)
    if name is not None:
        there = (FileCluster(*map(row.get, names[1:4])) for rows in files.values() for row in rows)
        chosen = find_cluster(lake.root, there, name)
        files = defaultdict(list, {chosen: files[chosen]})
    cuts = _compute_cuts(keep, now)
    old = {cluster_id: rows for cluster_id, rows in files.items() if _has_old_lines(rows, cuts.closed_us)}
    if not old:
        return None
    anchors: dict[str, Anchor] = {}
    refused: dict[str, InputError] = {}
    for cluster_id, rows in sorted(old.items()):
        try:
            anchors[cluster_id] = of_runs.of(cluster_id, rows, cuts.closed_us)
        except InputError as problem:
            refused[cluster_id] = problem
    if not anchors:
        raise next(iter(refused.values()))
    stays = _select_rows(lake, cuts, anchors, [row for cluster_id in anchors for row in old[cluster_id]])
    return ExpiryPlan(cuts, anchors, refused, tuple(each for each in stays if lake.has_rows(each.spec)))


def _compute_cuts(keep: Keep, now: datetime) -> Cuts:
    today_us = int(now.timestamp() * 1_000_000) // _DAY_US * _DAY_US
    bronze_us, silver_us, gold_us = (None if days is None else today_us - days * _DAY_US for days in keep)
    closed_us = max(us for us in (bronze_us, silver_us, gold_us) if us is not None)
    return Cuts(bronze_us, silver_us, gold_us, closed_us)


def _has_old_lines(files: Sequence[Row], cut_us: int) -> bool:
    return any(row["first_time"] is not None and row["first_time"] < cut_us for row in files)


def _select_rows(
    lake: StoredTables, cuts: Cuts, anchors: Mapping[str, Anchor], files: Sequence[Row]
) -> Iterator[Retained]:
    """Yield the rows of each table that are kept.

    Args:
        files: log files of the clusters that lose days.
    """
    of_clusters = reduce(or_, (pc.field("cluster_id") == cluster_id for cluster_id in anchors))
    if cuts.bronze_us is not None:
        bounds = _compute_bounds(files, anchors, cuts.bronze_us)
        gone = [row["file_id"] for row in files if _is_old(row, bounds)]
        yield Retained(LOG_LINES, Wanted(("file_id",), lambda rows: pc.invert(is_in(rows.column("file_id"), gone))))
    if cuts.silver_us is not None:
        bounds = _compute_bounds(files, anchors, cuts.silver_us)
        for spec in (spec for spec in silver.TABLES if spec.dated_by):
            young, rare = _select_young(bounds), _RARE.get(spec.full_name)
            among = of_clusters & (pc.field("time") < instant(cuts.silver_us))
            yield Retained(spec, young if rare is None else young.beside(rare), among)
    if cuts.gold_us is not None:
        instants = ClusterInstants(dict.fromkeys(anchors, cuts.gold_us))
        for spec in (spec for spec in TABLES if spec.layer == "gold" and spec.dated_by):
            old = reduce(or_, (pc.field(name) < instant(cuts.gold_us) for name in spec.dated_by))
            yield Retained(spec, select_old(spec, instants).invert(), of_clusters & old)
        findings = lake.dicts(VIOLATIONS, "finding_id", "cluster_id", "time")
        ids = [
            row["finding_id"]
            for row in findings
            if row["cluster_id"] not in anchors or row["time"] is None or row["time"] >= cuts.gold_us
        ]
        for spec in (VIOLATIONS, EVIDENCE):
            yield Retained(spec, Wanted(("finding_id",), lambda rows: is_in(rows.column("finding_id"), ids)))


def count_rows(root: Place, plan: ExpiryPlan) -> list[tuple[str, int]]:
    """Return (table, number of rows that would be dropped). Nothing is written."""
    lake = StoredTables(root)
    counts = []
    for spec, wanted, among in plan.stays:
        count = count_wanted(lake.path(spec), spec, _list_paths(lake, spec, among), wanted.invert())
        counts += [(spec.full_name, count)] if count else []
    return counts


def expire(root: Place, plan: ExpiryPlan, now: datetime, fence: Fence) -> list[tuple[str, int]]:
    """Close days and drop rows. Return (table, number of dropped rows). Safe to repeat."""
    lake = StoredTables(root)
    _note(lake, plan, now, fence)
    counts = []
    for stays in plan.stays:
        count = _drop(lake, stays, fence)
        counts += [(stays.spec.full_name, count)] if count else []
    return counts


def _note(lake: StoredTables, plan: ExpiryPlan, now: datetime, fence: Fence) -> None:
    """Record closed days in `state.expiries` for clusters whose latest entry differs."""
    cuts = plan.cuts
    bounds = (cuts.closed_us, cuts.bronze_us, cuts.silver_us, cuts.gold_us)
    names = ("closed_time", "bronze_time", "silver_time", "gold_time", "run_number")
    newest = {cluster_id: tuple(row[name] for name in names) for cluster_id, row in _read_newest(lake).items()}
    rows = [
        (
            now,
            *(None if us is None else instant(us) for us in (*bounds, anchor.known_us)),
            *(anchor.run_id, cluster_id, anchor.run_number),
        )
        for cluster_id, anchor in plan.anchors.items()
        if newest.get(cluster_id, newest.get(None)) != (*bounds, anchor.run_number)
    ]
    if not rows:
        return
    folder = lake.path(EXPIRIES)
    if not lake.exists(EXPIRIES):
        create_table(folder, EXPIRIES, fence)
    append(folder, write_rows(folder, EXPIRIES, build_table(EXPIRIES, rows)), f"{cuts.closed_us}", fence)


def _read_newest(lake: StoredTables) -> dict[str | None, Row]:
    """Return the latest row of `state.expiries` by cluster. Key None is the row that applies to all clusters."""
    rows = sorted(lake.dicts(EXPIRIES, *EXPIRIES.column_names), key=lambda row: row["expired_time"])
    return {row["cluster_id"]: row for row in rows}


def _drop(lake: StoredTables, stays: Retained, fence: Fence) -> int:
    spec, wanted, among = stays
    folder, searched = lake.path(spec), _list_paths(lake, spec, among)
    part = split_rows(folder, spec, searched, wanted)
    there, written = {*_list_paths(lake, spec)}, part.written
    gone = {*searched}.difference(part.whole)
    if part.mixed and spec.feeds_changes:
        # By itself: where a commit names changed rows, readers of the feed look at these alone.
        changes = [write_deletions(folder, spec, part.mixed, wanted)]
        replace(folder, written, None, fence, there.difference(part.mixed), changes)
        there.update(file.path for file in written)
        there, gone, written = there.difference(part.mixed), gone.difference(part.mixed), ()
    if gone:
        replace(folder, written, None, fence, there - gone)
    return part.rows_left_out


def _list_paths(lake: StoredTables, spec: TableSpec, where: pc.Expression | None = None) -> list[str]:
    return [relative(file.place, lake.path(spec)) for file in lake.files(spec, where)]


def _compute_bounds(files: Sequence[Row], anchors: Mapping[str, Anchor], cut_us: int) -> dict[str, int]:
    """Return by ``<cluster>|<broker>`` the time from which rows are kept, us. A broker without a saved state keeps all.

    Rows without a broker (-1) are not needed by any replay.
    """
    bounds = {f"{cluster_id}|-1": cut_us for cluster_id in anchors}
    for row in files:
        cluster_id = row["cluster_id"] or UNKNOWN_CLUSTER
        if row["broker_id"] is not None:
            needed_us = anchors[cluster_id].needed_us.get((cluster_id, row["broker_id"]), 0)
            bounds[f"{cluster_id}|{row['broker_id']}"] = min(cut_us, needed_us)
    return bounds


def _is_old(row: Row, bounds: Mapping[str, int]) -> bool:
    """Return True if a file ends before the rows of its broker that stay."""
    last_us = row["last_time"] if row["last_time"] is not None else row["first_time"]
    broker_id = -1 if row["broker_id"] is None else row["broker_id"]
    return last_us is not None and last_us < bounds[f"{row['cluster_id'] or UNKNOWN_CLUSTER}|{broker_id}"]


def _select_young(bounds: Mapping[str, int]) -> Wanted:
    """Return a selection of rows at or after the time of their broker."""

    def mask_young(rows: pa.RecordBatch) -> pa.Array:
        broker = pc.fill_null(rows.column("broker_id"), -1).cast(pa.string())
        bound = look_up(bounds, pc.binary_join_element_wise(rows.column("cluster_id"), broker, "|"), pa.int64())
        return pc.fill_null(pc.greater_equal(rows.column("time").cast(pa.int64()), bound), True)

    return Wanted(("cluster_id", "broker_id", "time"), mask_young)


#: Rows of traffic that stay whatever their age: what premises rest on, and what followers truncate by.
_RARE: Final[Mapping[str, Wanted]] = {
    silver.REQUESTS.full_name: Wanted(("transactional_id",), lambda rows: pc.is_valid(rows.column("transactional_id"))),
    silver.HIGH_WATERMARKS.full_name: Wanted(
        ("source",), lambda rows: pc.is_in(rows.column("source"), pa.array(_RARE_WATERMARKS))
    ),
}
