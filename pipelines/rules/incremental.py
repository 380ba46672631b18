"""Resuming the rules of a run: from where, with which rows of the tables, and what the next run gets.

Facts that are not final yet are in files that were added since, or behind the windows of the earlier run. If those
files are unknown, or what judging depends on has changed, everything is judged again. Three more reasons make a broker
be judged again: its replay went back (`pipelines.kafka.seals`), its log continues after it had ended, or days of its
cluster were dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import first_of, look_up, when
from highwater.pipelines.base.config import AuditConfig
from highwater.pipelines.base.fingerprint import compute_audit_fingerprint
from highwater.pipelines.base.values import instant
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.seals import NEW, UNCHANGED, Broker, Seal
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import Stored, read_files
from highwater.pipelines.lake.readings import Reading, RowsOf
from highwater.pipelines.replay.carried import ReplayPlan
from highwater.pipelines.rules.partition_audit import FREEZER
from highwater.pipelines.rules.rule import Rule
from highwater.pipelines.rules.worker import Windows
from highwater.schemas import audit_facts as a
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.gold import DELAYED_OPERATIONS
from highwater.schemas.isr import ISR_TIMELINE
from highwater.schemas.replicas import REPLICA_TRUNCATIONS
from highwater.schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from highwater.schemas.state import AUDITED, RUNS
from highwater.schemas.table import TableSpec

#: Microseconds before the end of another log of the cluster after which a log counts as ended: judged to its end.
ENDED_US: Final = 3_600_000_000
#: Partitions with facts of these are judged whole. New files of them make all partitions be judged again.
_OF_FILES: Final = (CHECKPOINTS, METADATA_RECORDS, LOG_BATCHES)
#: Column with the time from which a row of a replay is final.
_FINAL: Final = {DELAYED_OPERATIONS.name: "line_time", ISR_TIMELINE.name: "decided_time"}
#: Slack of row filters, microseconds: they compare lines' times in milliseconds. Facts are then filtered exactly.
_SLACK_US: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class AuditState(NamedTuple):
    """State that the rules of a run save, in addition to ``state.audited``."""

    fingerprint: str  #: of everything that judging depends on, except the facts
    windows: Windows  #: by broker, up to where the judgement of its log is final
    ended: frozenset[Broker]  #: brokers whose logs had ended
    versions: Mapping[str, int]  #: by name, the Delta version of each table that was read
    closed: Mapping[str, int]  #: by cluster, the instant before which days were closed

    def of_broker(self, broker: Broker) -> dict[str, Any]:
        """Return the columns of ``state.runs`` for a broker."""
        judged_us, closed_us = self.windows.get(broker), self.closed.get(broker[0], 0)
        return {
            "judged_time": None if judged_us is None else instant(judged_us),
            "log_ended": broker in self.ended,
            "closed_time": instant(closed_us) if closed_us else None,
        }


def judged_by(lake: Lake, run_number: int) -> AuditState | None:
    """Return the state that the rules of a run saved. None if the run applied no rules."""
    names = ("run_number", "cluster_id", "broker_id", "rules", "judged_time", "log_ended", "closed_time")
    rows = lake.dicts(RUNS, *names, "silver_versions", where=pc.field("run_number") == run_number)
    if not rows or rows[0]["silver_versions"] is None:
        return None
    of_brokers = {(row["cluster_id"], row["broker_id"]): row for row in rows if row["judged_time"] is not None}
    return AuditState(
        rows[0]["rules"],
        {broker: row["judged_time"] for broker, row in of_brokers.items()},
        frozenset(broker for broker, row in of_brokers.items() if row["log_ended"]),
        orjson.loads(rows[0]["silver_versions"]),
        {cluster_id: row["closed_time"] or 0 for (cluster_id, _), row in of_brokers.items()},
    )


class Resume(NamedTuple):
    """State of the last run, from which the rules resume."""

    run_number: int  #: of the run before
    state: tuple[Stored, ...]  #: files of ``state.audited`` with its rows
    windows: Windows  #: of the brokers that resume
    back: tuple[Broker, ...]  #: brokers whose partitions are judged again
    added: Mapping[str, tuple[Stored, ...]]  #: by table, the files that no earlier run has read


def fingerprint_of(lake: Lake, config: AuditConfig, rules: Iterable[Rule]) -> str:
    """Return a hash of rules, code and configuration. Saved state with another hash is not reused."""
    files = lake.rows(DATA_FILES, "file_id", "run_id").to_pylist()
    parts = (
        compute_audit_fingerprint(),
        FREEZER.shape(),
        sorted(rule.rule_id for rule in rules),
        config.clock_skew_max_ms,
        sorted((file["file_id"], file["run_id"]) for file in files),
    )
    return sha256(repr(parts).encode()).hexdigest()[:16]


def since_of(
    lake: Lake, premises: Premises, todo: ReplayPlan, fingerprint: str, tables: Iterable[TableSpec]
) -> Resume | None:
    """Return the last run's state to resume from. None if all facts must be judged again.

    Args:
        todo: what the replay of this run reads.
        tables: tables whose rows become facts.
    """
    number = todo.runs[0].number if todo.runs else 0
    left = judged_by(lake, number)
    if left is None:
        return None
    of_run = pc.field("run_number") == number
    state = lake.files(AUDITED, of_run)
    windows = {
        broker: us
        for broker, us in left.windows.items()
        if (start := todo.starts.get(broker)) is not None
        and start.seal is not None
        and start.reason in (NEW, UNCHANGED)
        and not (broker in left.ended and broker in todo.new_files)
        and left.closed.get(broker[0], 0) == lake.closed.of(broker[0])
    }
    if left.fingerprint != fingerprint or not windows or _has_named(state, of_run, premises):
        return None
    added: dict[str, tuple[Stored, ...]] = {}
    for spec in tables:
        if spec.layer != "silver" or spec in _OF_FILES or not lake.has_rows(spec):
            continue
        files = lake.find_added_files(spec, left.versions.get(spec.name, 0))
        if files is None:
            return None
        added[spec.name] = files
    return Resume(number, tuple(state), windows, tuple(sorted(todo.starts.keys() - windows.keys())), added)


def _has_named(state: Sequence[Stored], of_run: pc.Expression, premises: Premises) -> bool:
    """Return True if a topic that was judged by its id has a known name now."""
    by_id = of_run & pc.starts_with(pc.field("topic"), "id:")
    rows = read_files(AUDITED, [file.place for file in state], ("cluster_id", "topic"), by_id).to_pylist()
    return any((row["cluster_id"], row["topic"].removeprefix("id:")) in premises.topic_names for row in rows)


def left_by(
    lake: Lake,
    todo: ReplayPlan,
    seals: Mapping[Broker, Seal],
    fingerprint: str,
    since: Resume | None,
    tables: Iterable[TableSpec],
) -> AuditState:
    """Return the state for the next run: by broker, up to when its log is judged, never earlier than before.

    Args:
        seals: time up to which this run's replay is final, by broker.
        since: state that this run resumed from. None for a full run.
        tables: tables whose rows become facts.
    """
    last_us: dict[str, int] = {}
    for (cluster_id, _), us in todo.window.last_us.items():
        last_us[cluster_id] = max(us, last_us.get(cluster_id, us))
    windows, ended = {}, set()
    for broker, seal in seals.items():
        end_us = todo.window.last_us.get(broker, 0)
        windows[broker] = min(seal.sealed_us, seal.waiting_us)
        if end_us < last_us.get(broker[0], 0) - ENDED_US:
            windows[broker] = end_us + 1
            ended.add(broker)
        if since is not None and broker in since.windows:
            windows[broker] = max(windows[broker], since.windows[broker])
    versions = lake.versions()
    read = {spec.name: versions.get(spec.full_name, 0) for spec in tables if spec.layer == "silver"}
    closed = {cluster_id: lake.closed.of(cluster_id) for cluster_id, _ in windows}
    return AuditState(fingerprint, windows, frozenset(ended), read, closed)


# ---------------------------------------------------------------------------------------------------- readings


def states(since: Resume, rows_of: RowsOf) -> Reading:
    """Return the scan of the saved rule state of each partition."""
    of_run = pc.field("run_number") == since.run_number
    return Reading(AUDITED, AUDITED.column_names, rows_of, of_run, since.state)


def parts(lake: Lake, reading: Reading, since: Resume) -> list[Reading]:
    """Return the scans of a table's rows whose facts are not yet judged finally."""
    spec = reading.spec
    if spec in _OF_FILES:
        return []
    if spec is REPLICA_TRUNCATIONS or not lake.has_rows(spec):
        return [reading]
    behind = reading._replace(where=_behind(spec, since), rows_of=_behind_windows(reading.rows_of, since.windows))
    return [behind] if spec.layer != "silver" else new_and_old(lake, reading, behind, since)


def new_and_old(lake: Lake, new: Reading, behind: Reading, since: Resume) -> list[Reading]:
    """Return scans of all rows in added files, and of rows in other files that are not yet judged finally."""
    spec = new.spec
    added, where = since.added[spec.name], _behind(spec, since)
    known = {file.place for file in added}
    old = tuple(file for file in lake.files(spec, where) if file.place not in known)
    return [new._replace(files=added), behind._replace(files=old, where=where)]


def _behind(spec: TableSpec, since: Resume) -> pc.Expression:
    """Return a filter for rows not yet judged finally: late in their broker's log, or of a broker judged again."""
    instant = pc.field(_FINAL.get(spec.name, "time"))
    where = instant.is_null() | (instant >= _EPOCH + timedelta(microseconds=min(since.windows.values()) - _SLACK_US))
    for cluster_id, broker_id in since.back if spec.layer != "silver" else ():
        where |= (pc.field("cluster_id") == cluster_id) & (pc.field("broker_id") == broker_id)
    return where


def _behind_windows(rows_of: RowsOf, windows: Windows) -> RowsOf:
    """Return `rows_of` with a filter: only facts that are not yet judged finally, see `windows.is_before`."""
    by_name = {f"{cluster_id}|{broker_id}": us for (cluster_id, broker_id), us in windows.items()}

    def behind(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for facts in rows_of(rows):
            broker = facts["broker_id"].cast(pa.string())
            window = look_up(by_name, pc.binary_join_element_wise(facts["cluster_id"], broker, "|"), pa.int64())
            is_operation = pc.equal(facts["kind"], a.OPERATION)
            instant = when(is_operation, first_of(facts["latest_us"], facts["time_us"]), facts["time_us"])
            decided = first_of(facts["log_append_time_us"], pa.scalar(a.NO_TIME_US, pa.int64()))
            instant = when(pc.equal(facts["kind"], a.ISR_REPLAY), decided, instant)
            yield facts.filter(pc.fill_null(pc.greater_equal(instant, window), True))

    return behind
