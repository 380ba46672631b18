"""Logs of one cluster as tables of bronze and silver, and what the audit finds in them, without Spark.

Tables of gold that the replay fills are not there, so rules find at most what a whole audit finds.
"""

from __future__ import annotations

import gzip
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import micros
from highwater.pipelines.base.blobs import read_blobs, unpack
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.base.config import load_config
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.passes import HowRead, batches, profiles, span_of
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.register import identify
from highwater.pipelines.bronze.rows import FileSpan
from highwater.pipelines.cluster import configs
from highwater.pipelines.cluster import premises as p
from highwater.pipelines.cluster import rows as pr
from highwater.pipelines.cluster.premises import Premises, build_premises
from highwater.pipelines.cluster.stage import list_readings, make_config_fold
from highwater.pipelines.grammars.facts import named, parse_lines
from highwater.pipelines.lake.readings import RowsOf, map_batches
from highwater.pipelines.rules.assumptions import doubts
from highwater.pipelines.rules.facts import history, traffic
from highwater.pipelines.rules.facts.columns import in_seconds
from highwater.pipelines.rules.facts.timeline import FACTS
from highwater.pipelines.rules.findings import CLEAN, INCONCLUSIVE, VIOLATED, findings_of
from highwater.pipelines.rules.holes import Hole, NumberGap, holes_of_numbers, holes_of_requests, missing_kinds
from highwater.pipelines.rules.holes_stage import NUMBERED, SQL, logging_kinds
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.rule import OPEN, VIOLATION
from highwater.pipelines.rules.silences import (
    Leadership,
    Unpaired,
    silent_logs,
    unlogged_leaderships,
    unpaired_silences,
)
from highwater.pipelines.rules.unread import holes_of_losses, stretches_of
from highwater.pipelines.rules.worker import CASES, NAMED, RESULTS, auditor
from highwater.schemas import bronze, silver
from highwater.schemas.table import TableSpec

LINES: Final = bronze.LOG_LINES.name
_CONFIG: Final = load_config()
_SKEW_MAX_US: Final = _CONFIG.audit.clock_skew_max_ms * 1000
_HOW: Final = HowRead("UTC", 1 << 20, tuple(_CONFIG.ingest.include), tuple(_CONFIG.ingest.exclude))
#: Facts of silver alone. Where topics are named by their ids only, the premises name them.
_FACTS: Final[Mapping[str, RowsOf]] = {
    silver.LEADER_AND_ISR.name: map_batches(history.leadership),
    silver.ISR_CHANGES.name: map_batches(history.isr_changes),
    silver.PARTITION_STATES.name: map_batches(history.partition_states),
    silver.CONTROLLER_EVENTS.name: map_batches(history.elections, ()),
    silver.TRUNCATIONS.name: map_batches(history.truncations),
    silver.REPLICA_FETCHES.name: map_batches(traffic.fetches),
    silver.HIGH_WATERMARKS.name: traffic.high_watermarks,
}


@dataclass(frozen=True, eq=False)
class LogTables:
    """One log, as rows of bronze and silver."""

    span: FileSpan
    kafka_version: str | None
    path: str
    kind: str
    tables: Mapping[str, pa.Table]  #: By name. Each row has the place of its record.
    changed: bytes | None = None  #: Content of the file. None if its path has it.

    @property
    def content(self) -> bytes:
        """The content in which records have their places."""
        stored = Path(self.span.log.path).read_bytes() if self.changed is None else self.changed
        return gzip.decompress(stored) if stored.startswith(b"\x1f\x8b") else stored

    @property
    def lines(self) -> pa.Table:
        """The records."""
        return self.tables[LINES]

    @cached_property
    def times_us(self) -> Any:
        """Times of the records as a numpy array. -1 if a record has none."""
        return pc.fill_null(micros(self.lines.column("time")), -1).to_numpy()

    def kept(self, is_kept: Any, path: str | None = None) -> LogTables:
        """Return the log with some of its records only.

        Args:
            is_kept: a boolean for each record.
            path: another path of the file.
        """
        lines = self.lines.filter(pa.array(is_kept, pa.bool_()))
        places = lines.column("byte_offset").combine_chunks()
        others = {
            name: table.filter(pc.is_in(table.column("byte_offset"), value_set=places))
            for name, table in self.tables.items()
            if name not in (LINES, silver.LINE_COUNTS.name)
        }
        counts = self.tables[silver.LINE_COUNTS.name]
        seen = {(row["level"], row["logger"]) for row in _distinct(lines, "level", "logger")}
        is_seen = [(row["level"], row["logger"]) in seen for row in counts.select(["level", "logger"]).to_pylist()]
        counted = {silver.LINE_COUNTS.name: counts.filter(pa.array(is_seen, pa.bool_()))}
        tables = {LINES: lines, **others, **counted}
        return LogTables(self.span, self.kafka_version, path or self.path, self.kind, tables, self.changed)

    @cached_property
    def premise_rows(self) -> list[dict[str, Any]]:
        """Rows of the premises, but for settings."""
        times = self.times_us[self.times_us >= 0]
        names = {"file_id": self.span.log.content_id, "path": self.path, "file_kind": self.kind, "kind": p.FILE}
        owner = {"cluster_id": self.span.cluster_id, "broker_id": self.span.broker_id}
        span = {"first_us": int(times.min()), "last_us": int(times.max()), "kafka_version": self.kafka_version}
        rows = [dict.fromkeys(pr.SHAPE) | names | owner | (span if len(times) else {})]
        for reading in list_readings():
            table = self.tables.get(reading.spec.name)
            if table is None or reading.spec is bronze.LOG_FILES:
                continue
            for batch in _batches(table, reading.where):
                rows += [row for made in reading.rows_of(batch) for row in made.to_pylist()]
        return rows


def read_logs(folder: Path) -> list[LogTables]:
    """Read the logs below a folder."""
    paths = discover([folder], _HOW.include, _HOW.exclude).files
    items = [item for path in paths for item in profiles(path, frozenset(), {}, _HOW) if isinstance(item, Profile)]
    identities, _ = identify(items, [], [])
    logs = []
    for item in items:
        if item.readable:
            identity = identities[item.path]
            span = span_of(item, identity)
            logs.append(LogTables(span, identity.kafka_version, item.path, item.kind, _tables_of(span)))
    return logs


def read_again(log: LogTables, damaged: Path) -> LogTables | None:
    """Read another content of a log. None if it is not readable."""
    (item,) = profiles(str(damaged), frozenset(), {}, _HOW)
    if not isinstance(item, Profile) or not item.readable:
        return None
    span = FileSpan(item, log.span.cluster_id, log.span.broker_id, is_shared=log.span.is_shared)
    return LogTables(span, log.kafka_version, log.path, log.kind, _tables_of(span), damaged.read_bytes())


def write_logs(logs: Iterable[LogTables], whole: Iterable[LogTables], corpus: Path, folder: Path) -> None:
    """Write the records of logs as files, without compression.

    Args:
        whole: the logs before some of their records were lost.
        corpus: the folder of the logs.
        folder: the folder to write.
    """
    starts = {_id(log): [*log.lines.column("byte_offset").to_pylist(), None] for log in whole}
    for log in logs:
        path = folder / Path(log.path.removesuffix(".gz")).relative_to(os.path.abspath(corpus))
        path.parent.mkdir(parents=True, exist_ok=True)
        content = log.content
        if log.changed is None:
            kept = set(log.lines.column("byte_offset").to_pylist())
            content = b"".join(content[begin:end] for begin, end in pairwise(starts[_id(log)]) if begin in kept)
        path.write_bytes(content)


def _tables_of(span: FileSpan) -> dict[str, pa.Table]:
    lines = list(batches([span], _HOW))
    parts: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    for blob in parse_lines(iter(lines)):
        parts[blob.column("table")[0].as_py()] += unpack([blob])
    return {LINES: pa.Table.from_batches(lines)} | {name: pa.Table.from_batches(of) for name, of in parts.items()}


class Judged(NamedTuple):
    """What the audit finds in logs."""

    holes: tuple[str, ...]  #: What is missing, one message each.
    violations: frozenset[tuple[str, str, int]]  #: Rule, topic and partition.
    open_cases: tuple[str, ...]  #: One message each.
    verdict: str


def judge(logs: Sequence[LogTables]) -> Judged:
    """Return what the audit finds in the logs of a cluster."""
    told = _premises(logs)
    named, found = _ask_rules(logs, told)
    holes = find_holes(logs, told, named)
    starts = [(life.cluster_id, life.broker_id, life.time_us) for life in told.lives if life.event == p.STARTING]
    doubted = doubts(
        {log.span.cluster_id for log in logs},
        told.files,
        named,
        told.contexts.versions,
        [
            (one.cluster_id, one.broker_id, float(one.detail or 0))
            for one in told.lives
            if one.event == p.CLOCK_SET_BACK
        ],
        (),
        holes,
        told.stretches,
        starts,
    )
    findings = findings_of(found[CASES], {})
    errors = {(row["cluster_id"], row["rule_id"]): row["error"] for row in found[RESULTS] if row["error"] is not None}
    messages = tuple(message for of_cluster in doubted.values() for message in of_cluster)
    violations = {(one.rule_id, one.topic, one.partition) for one in findings if one.severity == VIOLATION}
    # As `pipelines.report.assemble.decide`.
    produces = _table(logs, silver.PRODUCE_REQUESTS)
    has_produces = pc.any(pc.equal(produces.column("acks"), -1)).as_py()
    open_cases = tuple(one.message for one in findings if one.severity == OPEN)
    is_open = messages or errors or open_cases or not has_produces
    verdict = VIOLATED if violations else INCONCLUSIVE if is_open else CLEAN
    return Judged(messages, frozenset(violations), open_cases, verdict)


def find_holes(logs: Sequence[LogTables], told: Premises, named: Mapping[str, set[int]]) -> list[Hole]:
    """Return the holes in the logs of a cluster."""
    tables = {
        **{spec.full_name: _table(logs, spec) for spec in (*_ASKED, *NUMBERED)},
        bronze.LOG_FILES.full_name: pa.Table.from_pylist([{"file_id": _id(log), "kind": log.kind} for log in logs]),
    }

    def ask(sql: str, **parameters: int) -> list[dict[str, Any]]:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, table in tables.items():
                connection.register(name.replace(".", "_"), table)
            return connection.sql(sql, params=parameters or None).to_arrow_table().to_pylist()

    files = {row["file_id"]: row for log in logs for row in [file_row(log)]}
    return [
        *holes_of_losses(stretches_of(ask(SQL["lost"])), files),
        *holes_of_requests(told.files, told.lives, told.runs, told.fetch_ends),
        *holes_of_numbers([NumberGap(**row) for row in ask(SQL["number_gaps"], part=0, parts=1)]),
        *silent_logs(told.stretches, told.runs, told.topic_names),
        *unlogged_leaderships([Leadership(**row) for row in ask(SQL["leaderships"])], told.stretches, told.lives),
        *unpaired_silences([Unpaired(**row) for row in ask(SQL["unpaired"])], told.stretches, told.lives),
        *missing_kinds(logging_kinds(tables[silver.LINE_COUNTS.full_name], told.files), told.files, named),
    ]


_ASKED: Final = (silver.LEADER_AND_ISR, silver.FETCHER_EVENTS, silver.LINE_COUNTS, silver.UNPARSED_LINES)


def _id(log: LogTables) -> str:
    return log.span.log.content_id


def file_row(log: LogTables) -> dict[str, Any]:
    """Return a row of `bronze.log_files`, with its times in microseconds."""
    (row, *_) = log.premise_rows
    return row | {
        "kind": log.kind,
        "record_count": len(log.lines),
        "first_time": row["first_us"],
        "last_time": row["last_us"],
    }


def _table(logs: Iterable[LogTables], spec: TableSpec) -> pa.Table:
    tables = [log.tables[spec.name] for log in logs if spec.name in log.tables]
    return pa.concat_tables(tables) if tables else spec.arrow_schema.empty_table()


def _premises(logs: Sequence[LogTables]) -> Premises:
    rows = [row for log in logs for row in log.premise_rows]
    fold = make_config_fold()
    (reading,) = fold.sources
    batches_of_settings = [made for batch in _table(logs, reading.spec).to_batches() for made in reading.rows_of(batch)]
    blobs = configs.merge_lines(_in_order(fold.rows, batches_of_settings))
    told = read_blobs((row["table"], row["rows"]) for blob in blobs for row in blob.to_pylist())
    rows += [{"kind": p.CONFIG, **line} for line in configs.deduplicate_lines(told[configs.LINES])]
    return build_premises(rows, _CONFIG.replay.settle_ms * 1000)


def _in_order(keyed: Keyed, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows as a worker of a fold gets them."""
    chunks = [(row["place"], row["rows"]) for chunk in keyed.make_chunks(rows, [0]) for row in chunk.to_pylist()]
    return keyed.merge_chunks(sorted(chunks))


def _ask_rules(logs: Sequence[LogTables], told: Premises) -> tuple[dict[str, set[int]], Mapping[str, Any]]:
    """Return the brokers that facts name, and what rules found in them."""
    makers = dict(_FACTS) | {silver.PRODUCE_REQUESTS.name: map_batches(traffic.answers, told.topic_names)}
    if old := traffic.without_retries(told.contexts.versions):
        makers[silver.APPENDS.name] = map_batches(traffic.appends, old)
    facts = [
        in_seconds(made, told.contexts.coarse) if told.contexts.coarse else made
        for log in logs
        for name, make in makers.items()
        if name in log.tables
        for batch in _batches(log.tables[name])
        for made in make(named(batch, told.topic_names) if name == silver.REPLICA_FETCHES.name else batch)
    ]
    blobs = auditor(told.contexts, RULES, _SKEW_MAX_US)(_in_order(FACTS, facts))
    found = read_blobs((row["table"], row["rows"]) for blob in blobs for row in blob.to_pylist())
    brokers: dict[str, set[int]] = defaultdict(set)
    for row in found[NAMED]:
        brokers[row["cluster_id"]].add(row["broker_id"])
    return brokers, found


def _batches(table: pa.Table, where: pc.Expression | None = None) -> Iterator[pa.RecordBatch]:
    yield from (table if where is None else table.filter(where)).combine_chunks().to_batches()


def _distinct(table: pa.Table, *names: str) -> list[dict[str, Any]]:
    return table.select(names).group_by(list(names)).aggregate([]).to_pylist()
