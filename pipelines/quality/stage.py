"""The quality stage on Spark: new batches are checked before results are computed from them.

The cheap pass comes first (`pipelines.quality.stage`); where it finds what would end the run, Great Expectations is
asked of the same rows. A warning is what the screen says: a second opinion took 14 s of an audit of 218 MB.
Results go to ``quality.results``, one commit per batch, stamped with the batch and with what the registers said when
it was made: if they say the same, nothing is new, and no table is even opened.

A failed critical expectation quarantines the files whose rows failed it. The run continues without these files, and
its verdict names them. The results are written first, then the quarantine, then silver loses the rows. A run that was
killed in between is found by its results, and finished by the next one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.config import QualityConfig
from highwater.pipelines.base.errors import QualityError
from highwater.pipelines.base.task_sizes import balance
from highwater.pipelines.bronze.quarantine import custody, put, quarantined, remove_rows
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import Stored, read_files, select_schema
from highwater.pipelines.quality.expectation import Expectation, Severity, add_derived
from highwater.pipelines.quality.ledger import LEDGERS, IngestedDataFile, IngestedLogFile, build_ledgers
from highwater.pipelines.quality.measure import Measured, list_columns, measure, pack_measures, parse_measure, show_rows
from highwater.pipelines.quality.suites import ASKED, BY_TABLE, EXPECTATIONS, SUITES, choose_severities
from highwater.pipelines.silver.parse import list_dropped_files
from highwater.pipelines.spark.tasks import run_in_tasks
from highwater.schemas import bronze, silver
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.quality import QUALITY_RESULTS, QUARANTINED_FILES
from highwater.schemas.table import TableSpec

# The screen on Spark: how many rows of each file break an expectation, in one query whatever the number of tables.
#
# Tasks read the Parquet files that a batch added, of each only the columns asked, and ask them as Arrow has them. What
# goes over several rows is asked within a Parquet file; only where two of them hold rows of the same part of a log, as
# after a compaction, the table's files are read together. In good data nothing breaks, and nothing else is read. Where
# something does, Great Expectations looks at it.

Chosen = Mapping[str, Sequence[tuple[Expectation, Severity]]]
#: Parquet files by table.
Files = Mapping[str, Sequence[Stored]]
#: A table, and Parquet files of it that are measured together. Plain, so that tasks need not load this module.
Unit = tuple[str, tuple[Stored, ...]]
_MEASURED = shape({"measured": "string"})


def find_files(lake: Lake, specs: Iterable[TableSpec], done: Set[str]) -> Files:
    """Return by table the Parquet files with rows of a batch.

    Only the newest commits are searched, so a long history costs nothing. Bronze lines of a file released from
    quarantine are in an earlier commit.

    Args:
        specs: tables that may have rows of the batch.
        done: ids of earlier batches.
    """
    added = [(spec, lake.find_unsettled_files(spec, done.__contains__)) for spec in specs if lake.has_rows(spec)]
    there = [(spec, files) for spec, files in added if files != () or spec.layer != "silver"]
    return {spec.full_name: files or lake.files(spec) for spec, files in there}


def read_rows(
    lake: Lake, spec: TableSpec, files: Sequence[Stored] | None, suite: Sequence[Expectation], wanted: pc.Expression
) -> DataFrame:
    """Return rows of a table with derived columns.

    Args:
        files: files of the table. None if only Delta can read them: the driver then does.
        wanted: filter for the rows.
    """
    columns = list_columns(spec, suite)
    if files is None:
        return lake.spark.createDataFrame(add_derived(lake.rows(spec, *columns, where=wanted), suite))

    def work(file: Stored) -> Iterator[pa.RecordBatch]:
        yield from add_derived(read_files(spec, [file.place], columns, wanted), suite).to_batches()

    none = add_derived(select_schema(spec, columns).empty_table(), suite)
    return run_in_tasks(lake.spark, [[file] for file in files], work, from_arrow_schema(none.schema))


def measure_files(lake: Lake, files: Files, chosen: Chosen, file_ids: Sequence[str]) -> list[Measured]:
    """Measure the rows of some log files, by table and file. A log file may have several measures per table.

    Args:
        files: Parquet files to read, by table.
        chosen: checks and severities, by table.
        file_ids: ids of the log files.
    """
    suites = {name: [item for item, _ in chosen[name]] for name in files}
    wanted = pc.field("file_id").isin(list(file_ids))
    units: list[Unit] = [(name, (file,)) for name, listed in files.items() for file in listed]
    measured = _measure_units(lake.spark, units, suites, wanted)
    if torn := _find_torn(measured):
        units = [(name, tuple(files[name])) for name in sorted(torn)]
        measured = [item for item in measured if item.table not in torn]
        measured += _measure_units(lake.spark, units, suites, wanted)
    return measured


def _find_torn(measured: Sequence[Measured]) -> set[str]:
    """Return the tables in which equal keys may be in two Parquet files."""
    ordered = sorted(measured, key=lambda item: (item.table, item.file_id, item.lowest))
    return {
        after.table
        for before, after in pairwise(ordered)
        if (after.table, after.file_id) == (before.table, before.file_id) and after.lowest <= before.highest
    }


def _measure_units(
    spark: SparkSession, units: Sequence[Unit], suites: Mapping[str, Sequence[Expectation]], wanted: pc.Expression
) -> list[Measured]:
    if not units:
        return []
    sized = [(unit, sum(file.size_bytes for file in unit[1])) for unit in units]
    plan = balance(sized, spark.sparkContext.defaultParallelism)

    def work(unit: Unit) -> Iterator[pa.RecordBatch]:
        table, files = unit
        spec, suite = BY_TABLE[table], suites[table]
        rows = read_files(spec, [file.place for file in files], list_columns(spec, suite), wanted)
        yield pack_measures(measure(spec, rows, suite))

    rows = run_in_tasks(spark, plan, work, _MEASURED).toArrow()
    return [parse_measure(text) for text in rows.column("measured").to_pylist()]


MET, FAILED = "met", "failed"


class IngestedBatch(NamedTuple):
    """Files of one ingest or release, without those in quarantine."""

    batch_id: str
    logs: tuple[IngestedLogFile, ...]
    data: tuple[IngestedDataFile, ...]

    @property
    def file_ids(self) -> list[str]:
        return [file.file_id for file in self.logs] + [file.file_id for file in self.data]


class ExpectationResult(NamedTuple):
    """Result of one check."""

    expectation: Expectation
    severity: Severity
    row_count: int
    unexpected_count: int = 0
    file_ids: tuple[str, ...] = ()
    sample: str | None = None
    detailed: bool = False

    @property
    def failed(self) -> bool:
        return self.unexpected_count > 0


class QualitySummary(NamedTuple):
    """Result of a quality run: batches and checks done, and failures."""

    batches: int
    expectations: int
    warnings: tuple[ExpectationResult, ...]
    #: Files that were quarantined: path and problem, sorted.
    quarantined: tuple[tuple[str, str], ...] = ()


def check(lake: Lake, config: QualityConfig) -> QualitySummary:
    """Check every parsed batch that was not checked. Files that fail a critical check are quarantined.

    Raises:
        QualityError: no file with records is left.
    """
    failed = _finish(lake)
    token = _read_token(lake)
    # Stamps of batches have a space within.
    if (lake.stamp(QUALITY_RESULTS) or "").split(" ", 2)[-1] == token:
        return QualitySummary(0, 0, (), _require_files(lake, failed))
    done = set(lake.rows(QUALITY_RESULTS, "batch_id")["batch_id"].to_pylist())
    batches, earlier = _find_pending(lake, done)
    warnings: list[ExpectationResult] = []
    count = 0
    for number, batch in enumerate(batches, 1):
        before = [file for file in earlier if file.file_id not in batch.file_ids]
        findings = _check_batch(lake, config, batch, before, done)
        earlier += batch.logs
        done.add(batch.batch_id)
        count += len(findings)
        critical = [item for item in findings if item.failed and item.severity == "critical"]
        warnings += [item for item in findings if item.failed and item.severity == "warning"]
        stamp = f"{batch.batch_id} {FAILED if critical else MET} {token if number == len(batches) else '-'}"
        rows = [_build_row(batch.batch_id, item) for item in findings]
        lake.append_once(QUALITY_RESULTS, _results(rows), stamp)
        if critical:
            failed |= _quarantine(lake, batch.batch_id, rows)
    return QualitySummary(len(batches), count, tuple(warnings), _require_files(lake, failed))


def _read_token(lake: Lake) -> str:
    """Return the commit tags of the tables involved: equal as long as nothing is new."""
    return "|".join(
        lake.stamp(spec) or "" for spec in (bronze.LOG_FILES, DATA_FILES, silver.LINE_COUNTS, QUARANTINED_FILES)
    )


def _finish(lake: Lake) -> set[str]:
    """Finish a quarantine that a killed run began: results are stored, but rows are still in silver.

    Returns:
        Ids of the quarantined files.
    """
    batch_id, outcome, *_ = [*(lake.stamp(QUALITY_RESULTS) or "").split(" "), "", ""]
    if outcome != FAILED:
        return set()
    of_batch = pc.field("batch_id") == batch_id
    rows = lake.rows(QUALITY_RESULTS, *QUALITY_RESULTS.column_names, where=of_batch).to_pylist()
    ids = {file_id for row in rows if _is_critical(row) for file_id in row["file_ids"]}
    state = custody(lake)
    later = {file_id for file_id, released in state.released.items() if released > batch_id}
    if ids - later and (ids - later - state.quarantined.keys() or _has_silver_rows(lake, state.quarantined)):
        return _quarantine(lake, batch_id, rows)
    return set()


def _has_silver_rows(lake: Lake, file_ids: Iterable[str]) -> bool:
    return not set(file_ids).isdisjoint(lake.rows(silver.LINE_COUNTS, "file_id")["file_id"].to_pylist())


def _is_critical(row: dict[str, Any]) -> bool:
    return bool(row["outcome"] == FAILED and row["severity"] == "critical")


def _find_pending(lake: Lake, done: Set[str]) -> tuple[list[IngestedBatch], list[IngestedLogFile]]:
    """Return (parsed batches that were not checked, in order; log files of checked batches)."""
    state = custody(lake)
    dropped = set(list_dropped_files(lake))
    logs: dict[str, list[IngestedLogFile]] = defaultdict(list)
    earlier = []
    names = ("file_id", "path", "kind", "cluster_id", "broker_id", "line_count", "record_count")
    for row in lake.dicts(bronze.LOG_FILES, *names, "first_time", "last_time", "run_id"):
        *values, run_id = row.values()
        file = IngestedLogFile(*values)
        batch_id = state.batch_of(file.file_id, run_id)
        if batch_id in done or file.file_id in dropped:
            earlier.append(file)
        elif file.file_id not in state.quarantined:
            logs[batch_id].append(file)
    data: dict[str, list[IngestedDataFile]] = defaultdict(list)
    for row in lake.rows(DATA_FILES, *IngestedDataFile._fields, "run_id").to_pylist():
        if row["run_id"] not in done and row["file_id"] not in state.quarantined:
            data[row.pop("run_id")].append(IngestedDataFile(**row))
    parsed = set(lake.rows(silver.LINE_COUNTS, "file_id")["file_id"].unique().to_pylist()) if logs else set()
    open_batches = {
        batch_id for batch_id, files in logs.items() if any(f.record_count and f.file_id not in parsed for f in files)
    }
    batches = [
        IngestedBatch(batch_id, tuple(logs.get(batch_id, ())), tuple(data.get(batch_id, ())))
        for batch_id in sorted((logs.keys() | data.keys()) - open_batches)
    ]
    return batches, earlier


def _check_batch(
    lake: Lake, config: QualityConfig, batch: IngestedBatch, earlier: Sequence[IngestedLogFile], done: Set[str]
) -> list[ExpectationResult]:
    suites: Chosen = {name: choose_severities(suite, config.severity) for name, suite in (SUITES | LEDGERS).items()}
    files = find_files(lake, ASKED if batch.file_ids else (), done)
    measured = measure_files(lake, files, suites, batch.file_ids)
    slack_us = config.time_slack_ms * 1000
    tables = build_ledgers(batch.logs, batch.data, earlier, measured, slack_us, config.parsed_share_min)
    findings = [*_judge_tables(files, suites, measured)]
    for name, rows in tables.items():
        findings += _judge_ledger(rows, suites[name])
    if not any(item.failed and item.severity == "critical" for item in findings):
        return findings

    def rows_of(name: str, suite: Sequence[Expectation]) -> DataFrame:
        if name in tables:
            return lake.spark.createDataFrame(tables[name])
        return read_rows(lake, BY_TABLE[name], files[name], suite, pc.field("file_id").isin(batch.file_ids))

    return _add_details(findings, rows_of)


def _judge_tables(tables: Iterable[str], suites: Chosen, measured: Sequence[Measured]) -> Iterable[ExpectationResult]:
    for name in tables:
        files = [item for item in measured if item.table == name]
        row_count = sum(item.row_count for item in files)
        for expectation, severity in suites[name] if row_count else ():
            key = expectation.expectation_id
            failing = [item for item in files if key in item.broken]
            yield ExpectationResult(
                expectation,
                severity,
                row_count,
                sum(item.broken[key] for item in failing),
                tuple(sorted({item.file_id for item in failing})),
                failing[0].shown[key] if failing else None,
            )


def _judge_ledger(rows: pa.Table, suite: Sequence[tuple[Expectation, Severity]]) -> Iterable[ExpectationResult]:
    for expectation, severity in suite if rows.num_rows else ():
        broken = rows.filter(expectation.broken(rows))
        files = tuple(sorted({file_id for ids in broken["file_ids"].to_pylist() for file_id in ids}))
        shown = show_rows(rows, expectation) if broken.num_rows else None
        yield ExpectationResult(expectation, severity, rows.num_rows, broken.num_rows, files, shown)


def _add_details(
    findings: Sequence[ExpectationResult], rows_of: Callable[[str, Sequence[Expectation]], DataFrame]
) -> list[ExpectationResult]:
    """Return the results, with the failures of critical checks counted by Great Expectations.

    Args:
        rows_of: returns the rows of a table for some checks.
    """
    from highwater.pipelines.quality.great import GreatExpectations

    great = GreatExpectations()
    details: dict[str, ExpectationResult] = {}
    critical = [item for item in findings if item.failed and item.severity == "critical"]
    for name in dict.fromkeys(item.expectation.table for item in critical):
        items = [item for item in critical if item.expectation.table == name]
        rows = rows_of(name, [item.expectation for item in items]).persist()
        try:
            answers = great.ask(name, rows, [(item.expectation, item.severity) for item in items])
        finally:
            rows.unpersist()
        for item in items:
            key = item.expectation.expectation_id
            count = max(item.unexpected_count, answers[key])
            details[key] = item._replace(unexpected_count=count, detailed=True)
    return [details.get(item.expectation.expectation_id, item) for item in findings]


def _build_row(batch_id: str, item: ExpectationResult) -> dict[str, Any]:
    return {
        "batch_id": batch_id,
        "expectation_id": item.expectation.expectation_id,
        "table_name": item.expectation.table,
        "severity": item.severity,
        "outcome": FAILED if item.failed else MET,
        "decided_by": "detail" if item.detailed else "screen",
        "row_count": item.row_count,
        "unexpected_count": item.unexpected_count,
        "file_ids": list(item.file_ids),
        "sample": item.sample,
        "validated_time": datetime.now(UTC),
    }


def _results(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, QUALITY_RESULTS.arrow_schema)


def _quarantine(lake: Lake, batch_id: str, rows: Sequence[dict[str, Any]]) -> set[str]:
    """Quarantine the files that failed critical checks, and return their ids. Safe to repeat.

    Args:
        rows: rows of the results table.
    """
    failed = sorted((row for row in rows if _is_critical(row)), key=lambda row: row["expectation_id"])
    ids = sorted({file_id for row in failed for file_id in row["file_ids"]})
    paths = _read_paths(lake)
    words = {row["expectation_id"]: _find_question(row["expectation_id"]) for row in failed}
    files = []
    for file_id in ids:
        broken = [row["expectation_id"] for row in failed if file_id in row["file_ids"]]
        files.append((file_id, paths[file_id], broken, words[broken[0]]))
    put(lake, batch_id, files)
    remove_rows(lake, ids)
    return set(ids)


def _require_files(lake: Lake, failed: Set[str]) -> tuple[tuple[str, str], ...]:
    """Return (path, problem) of quarantined files.

    Raises:
        QualityError: no other file has records.
    """
    if not failed:
        return ()
    in_quarantine = quarantined(lake)
    ids = {file.file_id for file in in_quarantine}
    files = tuple((file.path, file.problem) for file in in_quarantine if file.file_id in failed)
    with_records = lake.rows(bronze.LOG_FILES, "file_id", where=pc.field("record_count") > 0)
    if ids.issuperset(with_records["file_id"].to_pylist()):
        raise QualityError(files)
    return files


def _find_question(expectation_id: str) -> str:
    known = EXPECTATIONS.get(expectation_id)
    return known.question if known else expectation_id


def _read_paths(lake: Lake) -> dict[str, str]:
    paths: dict[str, str] = defaultdict(lambda: "unknown")
    for spec in (bronze.LOG_FILES, DATA_FILES):
        paths |= {row["file_id"]: row["path"] for row in lake.rows(spec, "file_id", "path").to_pylist()}
    return paths


def write_docs(lake: Lake, config: QualityConfig, folder: Path) -> Path:
    """Check all rows of the lake with Great Expectations and write Data Docs. Return the page to open."""
    from highwater.pipelines.quality.great import GreatExpectations

    great = GreatExpectations()
    for spec in ASKED:
        suite = choose_severities(SUITES[spec.full_name], config.severity)
        if suite and lake.has_rows(spec):
            rows = read_rows(lake, spec, lake.files(spec), [item for item, _ in suite], pc.scalar(True)).persist()
            try:
                great.ask(spec.full_name, rows, suite)
            finally:
                rows.unpersist()
    return great.write_docs(folder)
