"""Retention: old days are dropped, and what is told of the days that stay does not change. Nothing here needs Spark.

What is as small as metadata is stays for good: leaderships, ISRs, settings, the register of files. What grows with
traffic goes: lines of logs (bronze), requests, fetches, checks (silver), answers (gold).

- *The cut* is a midnight, in UTC. Days before it are **closed**: every writer of gold leaves their rows as they are
  (`pipelines.lake.Lake`), since what made them is gone. So they may be kept for longer than what they were made of.
- *The anchor* is what a run carried to the next one (``state.anchors``, once a day), the newest one whose seals lie
  before the cut. Where a replay would begin at the beginning, it begins there, with the folds of then.
- *From the anchor on*, and from an hour before it, everything stays: of each broker by its own seal, as each log has
  a clock of its own. A broker that the anchor does not know keeps all.
- *Findings* that were known stay (`pipelines.rules.known_findings`): a rule may rest on what is gone.

The ledger, ``state.expiries``, comes first: from then on days are closed, and a run that was cut off is made again by
the next one with the same bounds or later ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dated import Wanted, from_on, part_of, rows_left_out
from pipelines.delta_commits import Fence, append, drop
from pipelines.delta_log import read_log, table_version
from pipelines.errors import ConfigError, InputError
from pipelines.fingerprint import TABLES as MADE_ANEW
from pipelines.lake_tables import create_table
from pipelines.parquet import read_files
from pipelines.replay.bounds import Bounds, instant
from pipelines.replay.connections import GONE_US
from pipelines.replay.seals import Broker, Stamp
from pipelines.stamps import stamps_of
from pipelines.storage.place import Place, resolved
from pipelines.table_files import rows_table, write_rows
from schemas import silver
from schemas.audit import EVIDENCE, VIOLATIONS
from schemas.bronze import LOG_FILES, LOG_LINES
from schemas.catalog import TABLES
from schemas.quality import QUARANTINED_FILES
from schemas.state import ANCHORS, EXPIRIES, REPLAYS, STAMP
from schemas.table import TableSpec

_DAY_US: Final = 86_400_000_000
#: Sources of `silver.high_watermarks` that are as rare as restarts.
_RARE_WATERMARKS: Final = ("loaded", "non_monotonic")


class Keep(NamedTuple):
    """How many days of each layer are kept; None: all."""

    bronze: int | None
    silver: int | None
    gold: int | None


class Cuts(NamedTuple):
    """Midnights before which days are dropped, microseconds; None: none is.

    Attributes:
        closed_us: days before it are closed.
    """

    bronze_us: int | None
    silver_us: int | None
    gold_us: int | None
    closed_us: int


class Anchor(NamedTuple):
    """What replays begin with.

    Attributes:
        needed_us: by broker, the earliest instant of which a replay may read anything.
    """

    run_id: str
    needed_us: Mapping[Broker, int]


class Stays(NamedTuple):
    """Which rows of a table stay.

    Attributes:
        columns: those that `wanted` looks at.
    """

    spec: TableSpec
    wanted: Wanted
    columns: tuple[str, ...]


class Plan(NamedTuple):
    """What is dropped.

    Attributes:
        known_us: findings of before, which is all that was read, are known.
        stays: of each table that loses rows, or may.
    """

    cuts: Cuts
    anchor: Anchor
    known_us: int
    stays: tuple[Stays, ...]


def keep_of(keep: str | None, by_layer: Mapping[str, str | None]) -> Keep:
    """How long layers are kept: as the configuration says of each, else as the command line says of all.

    Args:
        keep: ``--keep``, as ``90d``.
        by_layer: of the configuration.

    Raises:
        ConfigError: nothing says it, or a layer is kept for less than the one that it is made of.
    """
    days = {layer: _days(by_layer.get(layer) or keep) for layer in Keep._fields}
    if not any(days.values()):
        raise ConfigError("command line", "--keep", "is missing: say how many days are kept, as in --keep 90d")
    lasting = [count or float("inf") for count in days.values()]
    if lasting != sorted(lasting):
        problem = "is kept for less than what it is made of: bronze_keep <= silver_keep <= gold_keep"
        raise ConfigError("configuration", "retention", problem)
    return Keep(**days)


def _days(text: str | None) -> int | None:
    return None if text is None else int(text.removesuffix("d"))


def plan_expiry(root: Place, keep: Keep, now: datetime) -> Plan | None:
    """What would be dropped; None if the lake holds nothing that is so old.

    Raises:
        InputError: the lake holds no audit, or not of all its files; or no anchor is as old as the cut.
    """
    root = resolved(root)
    files = _rows(root, LOG_FILES, "file_id", "cluster_id", "broker_id", "record_count", "first_time", "last_time")
    last = _last_replay(root, files)
    today_us = int(now.timestamp() * 1_000_000) // _DAY_US * _DAY_US
    bronze_us, silver_us, gold_us = (None if days is None else today_us - days * _DAY_US for days in keep)
    closed_us = max([us for us in (bronze_us, silver_us, gold_us) if us is not None], default=0)
    begun = [row["first_time"] for row in files if row["first_time"] is not None]
    if not begun or min(begun) >= closed_us:
        return None
    anchor = _anchor(root, closed_us, last)
    cuts = Cuts(bronze_us, silver_us, gold_us, closed_us)
    known_us = max(row["last_time"] for row in files if row["last_time"] is not None) + 1
    stays: list[Stays] = []
    if bronze_us is not None:
        bounds = _bounds(files, anchor, bronze_us)
        gone = [row["file_id"] for row in files if _is_over(row, bounds, bronze_us)]
        stays.append(Stays(LOG_LINES, partial(_is_none_of, ids=gone), ("file_id",)))
    if silver_us is not None:
        bounds = _bounds(files, anchor, silver_us)
        for spec in (spec for spec in silver.TABLES if spec.dated_by):
            rare = _RARE.get(spec.full_name, ())
            wanted = partial(_stays, bounds=bounds, cut_us=silver_us, is_rare=_IS_RARE.get(spec.full_name))
            stays.append(Stays(spec, wanted, ("cluster_id", "broker_id", "time", *rare)))
    if gold_us is not None:
        for spec in (spec for spec in TABLES if spec.layer == "gold" and spec.dated_by):
            stays.append(Stays(spec, from_on(spec, gold_us), spec.dated_by))
        findings = _rows(root, VIOLATIONS, "finding_id", "time")
        ids = [row["finding_id"] for row in findings if row["time"] is None or row["time"] >= gold_us]
        stays += [Stays(spec, partial(_is_one_of, ids=ids), ("finding_id",)) for spec in (VIOLATIONS, EVIDENCE)]
    return Plan(cuts, anchor, known_us, tuple(each for each in stays if _version(root, each.spec)))


def counted(root: Place, plan: Plan) -> list[tuple[str, int]]:
    """Rows that go, by table; nothing is written."""
    root = resolved(root)
    counts = []
    for spec, wanted, names in plan.stays:
        count = rows_left_out(_folder(root, spec), spec, _paths(root, spec), wanted, names)
        counts += [(spec.full_name, count)] if count else []
    return counts


def expire(root: Place, plan: Plan, now: datetime, fence: Fence) -> list[tuple[str, int]]:
    """Close days and drop rows; gives how many rows went, by table. Safe to repeat."""
    root = resolved(root)
    _note(root, plan, now, fence)
    counts = []
    for spec, wanted, names in plan.stays:
        count = _drop(root, spec, wanted, names, fence)
        counts += [(spec.full_name, count)] if count else []
    younger = _anchors_from(root, plan.anchor.run_id)
    _drop(root, ANCHORS, partial(_is_run_of, run_ids=younger), ("run_id",), fence)
    return counts


def _note(root: Place, plan: Plan, now: datetime, fence: Fence) -> None:
    """Add to the ledger that days are closed, unless that is what it says already."""
    cuts = plan.cuts
    rows = _rows(root, EXPIRIES, *EXPIRIES.column_names)
    bounds = (cuts.closed_us, cuts.bronze_us, cuts.silver_us, cuts.gold_us)
    if rows:
        newest = max(rows, key=lambda row: row["expired_time"])
        same = tuple(newest[name] for name in ("closed_time", "bronze_time", "silver_time", "gold_time"))
        if (*same, newest["run_id"]) == (*bounds, plan.anchor.run_id):
            return
    times = [None if us is None else instant(us) for us in (*bounds, plan.known_us)]
    row = (now, *times, plan.anchor.run_id)
    folder = _folder(root, EXPIRIES)
    if _version(root, EXPIRIES) is None:
        fence()
        create_table(folder, EXPIRIES)
    append(folder, write_rows(folder, EXPIRIES, rows_table(EXPIRIES, [row])), f"{cuts.closed_us}", fence)


def _drop(root: Place, spec: TableSpec, wanted: Wanted, names: tuple[str, ...], fence: Fence) -> int:
    folder = _folder(root, spec)
    part = part_of(folder, spec, _paths(root, spec), wanted, names)
    if part.rows_left_out:
        drop(folder, part.whole, part.written, part.rows_left_out, fence)
    return part.rows_left_out


def _last_replay(root: Place, files: list[dict[str, Any]]) -> Stamp:
    """The ledger's last word.

    Raises:
        InputError: there is none, or not of all files.
    """
    stamp = next((text for _, text in stamps_of(_folder(root, REPLAYS))), None)
    if stamp is None:
        raise InputError(root, "holds no audit", "ingest, parse and replay logs into it first")
    last = Stamp.from_json(stamp)
    replayed = {file_id for row in _rows(root, REPLAYS, "file_ids") for file_id in row["file_ids"]}
    held = {row["file_id"] for row in _rows(root, QUARANTINED_FILES, "file_id")}
    waiting = [
        row
        for row in files
        if row["record_count"] and row["broker_id"] is not None and row["first_time"] is not None
        if row["file_id"] not in replayed and row["file_id"] not in held
    ]
    if waiting or last.fingerprint == MADE_ANEW:
        problem = "holds files that were not replayed yet, or tables that have to be made anew"
        raise InputError(root, problem, "run `highwater parse` and `highwater replay` on it, then expire again")
    return last


def _anchor(root: Place, closed_us: int, last: Stamp) -> Anchor:
    """The newest anchor of which all is final before the cut."""
    rows = _rows(root, ANCHORS, "run_id", "kind", "row")
    stamps = [Stamp.from_json(row["row"]) for row in rows if row["kind"] == STAMP]
    since = _begun_since(root)
    fitting = [
        stamp
        for stamp in stamps
        if all(_is_valid(stamp, broker, since) for broker in stamp.seals) and _final_us(stamp) <= closed_us
    ]
    if not fitting:
        oldest = min(map(_final_us, stamps), default=max((seal.sealed_us for seal in last.seals.values()), default=0))
        problem = (
            f"has no state of a replay from before {instant(closed_us):%Y-%m-%d}, to replay the days after it from; "
            f"the oldest is of {instant(oldest):%Y-%m-%d %H:%M}"
        )
        raise InputError(root, problem, "keep more days; every day on which an audit runs leaves such a state")
    chosen = max(fitting, key=_final_us)
    needed = {
        broker: min(seal.sealed_us, seal.sessions_us, seal.waiting_us) - GONE_US
        for broker, seal in chosen.seals.items()
    }
    return Anchor(chosen.run_id, needed)


def _final_us(stamp: Stamp) -> int:
    """Up to where the replay of any broker's log was final."""
    return max(seal.sealed_us for seal in stamp.seals.values())


def _begun_since(root: Place) -> dict[str, list[dict[str, Any]]]:
    """Of each run, the runs after it that went back: rows of the ledger, for late files."""
    rows = _rows(root, REPLAYS, "run_id", "replayed_time", "cluster_id", "broker_id", "from_time", "reason")
    times = {row["run_id"]: row["replayed_time"] for row in rows}
    late = [row for row in rows if row["reason"] == "late"]
    return {run_id: [row for row in late if row["replayed_time"] > time] for run_id, time in times.items()}


def _is_valid(stamp: Stamp, broker: Broker, since: Mapping[str, list[dict[str, Any]]]) -> bool:
    """Whether no later run has gone back behind a seal: a late file has changed what lies before it."""
    sealed_us = stamp.seals[broker].sealed_us
    return not any(
        (row["cluster_id"], row["broker_id"]) == broker and (row["from_time"] or 0) < sealed_us
        for row in since.get(stamp.run_id, ())
    )


def _anchors_from(root: Place, run_id: str) -> pa.Array:
    """Runs whose anchors are not older than that of a run."""
    rows = [row for row in _rows(root, ANCHORS, "run_id", "kind", "row") if row["kind"] == STAMP]
    final = {row["run_id"]: _final_us(Stamp.from_json(row["row"])) for row in rows}
    return pa.array([other for other, us in final.items() if us >= final[run_id]], pa.string())


def _bounds(files: list[dict[str, Any]], anchor: Anchor, cut_us: int) -> Bounds:
    """By broker, from when on its rows stay; all of a broker that the anchor does not know."""
    brokers = {(row["cluster_id"], row["broker_id"]) for row in files if row["broker_id"] is not None}
    return Bounds({broker: min(cut_us, anchor.needed_us.get(broker, 0)) for broker in brokers})


def _is_over(row: Mapping[str, Any], bounds: Bounds, cut_us: int) -> bool:
    """Whether a file ends before what stays of its broker's rows."""
    last_us = row["last_time"] if row["last_time"] is not None else row["first_time"]
    bound_us = cut_us if row["broker_id"] is None else bounds.instants[row["cluster_id"], row["broker_id"]]
    return last_us is not None and last_us < bound_us


def _stays(rows: pa.RecordBatch, bounds: Bounds, cut_us: int, is_rare: Wanted | None) -> pa.Array:
    brokers = {f"{cluster_id}|{broker_id}": us for (cluster_id, broker_id), us in bounds.instants.items()}
    broker = pc.fill_null(rows.column("broker_id"), -1).cast(pa.string())
    keys = pc.binary_join_element_wise(rows.column("cluster_id"), broker, "|")
    bound = pc.fill_null(_looked_up(brokers, keys), cut_us)
    young = pc.greater_equal(rows.column("time").cast(pa.int64()), bound)
    return young if is_rare is None else pc.or_(young, is_rare(rows))


def _looked_up(values: Mapping[str, int], keys: pa.Array) -> pa.Array:
    place = pc.index_in(keys, pa.array(list(values), pa.string()))
    return pa.array(list(values.values()), pa.int64()).take(place)


def _names_a_transaction(rows: pa.RecordBatch) -> pa.Array:
    return pc.is_valid(rows.column("transactional_id"))


def _is_of_a_restart(rows: pa.RecordBatch) -> pa.Array:
    return pc.is_in(rows.column("source"), pa.array(_RARE_WATERMARKS))


#: Rows of traffic that stay whatever their age: what premises rest on, and what followers truncate by.
_RARE: Final[Mapping[str, tuple[str, ...]]] = {
    silver.REQUESTS.full_name: ("transactional_id",),
    silver.HIGH_WATERMARKS.full_name: ("source",),
}
_IS_RARE: Final[Mapping[str, Wanted]] = {
    silver.REQUESTS.full_name: _names_a_transaction,
    silver.HIGH_WATERMARKS.full_name: _is_of_a_restart,
}


def _is_none_of(rows: pa.RecordBatch, ids: list[str]) -> pa.Array:
    return pc.invert(pc.is_in(rows.column("file_id"), pa.array(ids, pa.string())))


def _is_one_of(rows: pa.RecordBatch, ids: list[str]) -> pa.Array:
    return pc.is_in(rows.column("finding_id"), pa.array(ids, pa.string()))


def _is_run_of(rows: pa.RecordBatch, run_ids: pa.Array) -> pa.Array:
    return pc.is_in(rows.column("run_id"), run_ids)


def _folder(root: Place, spec: TableSpec) -> Place:
    return root / spec.layer / spec.name


def _version(root: Place, spec: TableSpec) -> int | None:
    return table_version(_folder(root, spec))


def _paths(root: Place, spec: TableSpec) -> list[str]:
    return [file.path for file in read_log(_folder(root, spec)).files]


def _rows(root: Place, spec: TableSpec, *names: str) -> list[dict[str, Any]]:
    """Rows of a small table; instants in microseconds. None where there is no table."""
    if _version(root, spec) is None:
        return []
    folder = _folder(root, spec)
    table = read_files(spec, [folder / path for path in _paths(root, spec)], names)
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.int64()))
    return list(table.to_pylist())
