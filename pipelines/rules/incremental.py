"""Where the rules of a run go on, what of the tables that takes, and what is left to the next run.

Facts that no earlier run has judged for good stand in files that were added since, or behind the windows of that run.
Where it cannot be told which files those are, or what judging depends on has changed, all is judged anew; so is what is
of a broker whose replay went back (`pipelines.kafka.seals`), whose log comes back after it had ended, or of whose
cluster days were dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import first_of, look_up, when
from pipelines.base.config import AuditConfig
from pipelines.base.fingerprint import audit_fingerprint
from pipelines.cluster.premises import Premises
from pipelines.kafka.seals import NEW, UNCHANGED, Broker, Seal, Stamp
from pipelines.lake.lake import Lake
from pipelines.lake.parquet import Stored, read_files
from pipelines.lake.readings import Reading, RowsOf
from pipelines.replay.carried import Plan
from pipelines.rules.partition_audit import FREEZER
from pipelines.rules.rule import Rule
from pipelines.rules.worker import Windows
from schemas import audit_facts as a
from schemas.data_files import DATA_FILES
from schemas.gold import DELAYED_OPERATIONS
from schemas.isr import ISR_TIMELINE
from schemas.replicas import REPLICA_TRUNCATIONS
from schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from schemas.state import AUDITED, REPLAYS
from schemas.table import TableSpec

#: A log that ends so long before another one of its cluster has ended: all of it is judged, and not read again.
ENDED_US: Final = 3_600_000_000
#: Partitions with facts of these are judged whole; new files of them have all judged anew (`_fingerprint`).
_OF_FILES: Final = (CHECKPOINTS, METADATA_RECORDS, LOG_BATCHES)
#: Of rows that a replay makes anew: when one was final.
_FINAL: Final = {DELAYED_OPERATIONS.name: "line_time", ISR_TIMELINE.name: "decided_time"}
#: Rows are chosen by their lines, whose times are cut to milliseconds; facts then to the microsecond.
_SLACK_US: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class AuditedStamp(NamedTuple):
    """What a run left with its commit of ``state.audited``.

    Attributes:
        fingerprint: of all that judging depends on, beside the facts.
        windows: by broker, up to where its log is judged for good.
        ended: brokers whose logs had ended.
        versions: by name, the Delta version of each table that it read.
        closed: by cluster, the instant before which days were closed.
    """

    fingerprint: str
    windows: Windows
    ended: frozenset[Broker]
    versions: Mapping[str, int]
    closed: Mapping[str, int]

    def to_json(self) -> str:
        """As text."""
        windows = [[*broker, us, broker in self.ended] for broker, us in sorted(self.windows.items())]
        return json.dumps([self.fingerprint, windows, self.versions, self.closed], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> AuditedStamp:
        """What `to_json` gives; earlier versions of highwater had the closed days in the fingerprint."""
        fingerprint, rows, versions, *closed = json.loads(text)
        windows = {(cluster_id, broker_id): us for cluster_id, broker_id, us, _ in rows}
        ended = frozenset((cluster_id, broker_id) for cluster_id, broker_id, _, is_over in rows if is_over)
        return cls(fingerprint, windows, ended, versions, *(closed or [{}]))


class Resume(NamedTuple):
    """What a run goes on from.

    Attributes:
        state: files of ``state.audited``.
        windows: of the brokers whose logs went on.
        back: brokers whose partitions are judged anew.
        added: by table, the files that no earlier run has read.
    """

    state: tuple[Stored, ...]
    windows: Windows
    back: tuple[Broker, ...]
    added: Mapping[str, tuple[Stored, ...]]


def fingerprint_of(lake: Lake, config: AuditConfig, rules: Iterable[Rule]) -> str:
    """Hash of what judging a partition depends on beside its facts, and what earlier lines tell of its brokers."""
    files = lake.rows(DATA_FILES, "file_id", "run_id").to_pylist()
    parts = (
        audit_fingerprint(),
        FREEZER.shape(),
        sorted(rule.rule_id for rule in rules),
        config.clock_skew_max_ms,
        sorted((file["file_id"], file["run_id"]) for file in files),
    )
    return sha256(repr(parts).encode()).hexdigest()[:16]


def since_of(
    lake: Lake, premises: Premises, todo: Plan, fingerprint: str, tables: Iterable[TableSpec]
) -> Resume | None:
    """What the last run left to go on from; None where all is judged anew.

    Args:
        tables: whose rows become facts.
    """
    text = lake.stamp(REPLAYS)
    version = None if text is None else Stamp.from_json(text).audited_version
    stamp = None if version is None else dict(lake.stamps(AUDITED)).get(version)
    if version is None or stamp is None or not lake.keeps(AUDITED, version):
        return None
    left = AuditedStamp.from_json(stamp)
    state = lake.files(AUDITED, version=version)
    windows = {
        broker: us
        for broker, us in left.windows.items()
        if (start := todo.starts.get(broker)) is not None
        and start.seal is not None
        and start.reason in (NEW, UNCHANGED)
        and not (broker in left.ended and broker in todo.new_files)
        and left.closed.get(broker[0], 0) == lake.closed.of(broker[0])
    }
    if left.fingerprint != fingerprint or state is None or not windows or _has_named(state, premises):
        return None
    added: dict[str, tuple[Stored, ...]] = {}
    for spec in tables:
        if spec.layer != "silver" or spec in _OF_FILES or not lake.has_rows(spec):
            continue
        files = lake.added_since(spec, left.versions.get(spec.name, 0))
        if files is None or lake.files(spec) is None:
            return None
        added[spec.name] = files
    return Resume(tuple(state), windows, tuple(sorted(todo.starts.keys() - windows.keys())), added)


def _has_named(state: Sequence[Stored], premises: Premises) -> bool:
    """Whether a line tells by now the name of a topic that was judged by its id."""
    by_id = pc.starts_with(pc.field("topic"), "id:")
    rows = read_files(AUDITED, [file.place for file in state], ("cluster_id", "topic"), by_id).to_pylist()
    return any((row["cluster_id"], row["topic"].removeprefix("id:")) in premises.topic_names for row in rows)


def left_by(
    lake: Lake,
    todo: Plan,
    seals: Mapping[Broker, Seal],
    fingerprint: str,
    since: Resume | None,
    tables: Iterable[TableSpec],
) -> AuditedStamp:
    """What the next run is told: windows where the replay is final, further on only for those that went on.

    Args:
        seals: of this run's replay.
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
    return AuditedStamp(fingerprint, windows, frozenset(ended), read, closed)


# ---------------------------------------------------------------------------------------------------- readings


def states(since: Resume, rows_of: RowsOf) -> Reading:
    """What the run before left of each partition."""
    return Reading(AUDITED, AUDITED.column_names, rows_of, files=since.state)


def parts(lake: Lake, reading: Reading, since: Resume) -> list[Reading]:
    """What of a table may become facts that were not judged for good."""
    spec = reading.spec
    if spec in _OF_FILES:
        return []
    if spec is REPLICA_TRUNCATIONS or not lake.has_rows(spec):
        return [reading]
    behind = reading._replace(where=_behind(spec, since), rows_of=_behind_windows(reading.rows_of, since.windows))
    return [behind] if spec.layer != "silver" else new_and_old(lake, reading, behind, since)


def new_and_old(lake: Lake, new: Reading, behind: Reading, since: Resume) -> list[Reading]:
    """All rows of files that were added since, and of the others, which a run has read, what may be behind windows."""
    spec = new.spec
    added, where = since.added[spec.name], _behind(spec, since)
    known = {file.place for file in added}
    old = tuple(file for file in lake.files(spec, where) or () if file.place not in known)
    return [new._replace(files=added), behind._replace(files=old, where=where)]


def _behind(spec: TableSpec, since: Resume) -> pc.Expression:
    """Rows that may lie behind the window of their broker, or are of one whose rows were made anew."""
    instant = pc.field(_FINAL.get(spec.name, "time"))
    where = instant.is_null() | (instant >= _EPOCH + timedelta(microseconds=min(since.windows.values()) - _SLACK_US))
    for cluster_id, broker_id in since.back if spec.layer != "silver" else ():
        where |= (pc.field("cluster_id") == cluster_id) & (pc.field("broker_id") == broker_id)
    return where


def _behind_windows(rows_of: RowsOf, windows: Windows) -> RowsOf:
    """Facts that do not lie before the windows, as `pipelines.rules.windows.is_before` has it."""
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
