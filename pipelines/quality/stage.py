"""The quality stage on Spark: what new batches brought in is checked before anything is computed from it.

The cheap pass comes first (`pipelines.quality.screen`); only what it finds is asked in detail, of Great Expectations.
Results go to ``quality.results``, one commit per batch, stamped with the batch and with what the registers said when
it was made: if they say the same, nothing is new, and no table is even opened.

A failed critical expectation quarantines the files whose rows failed it and ends the run. The results are written
first, then the quarantine, then silver loses the rows. A run that was killed in between is found by its results, and
finished by the next one, which ends as the killed one would have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipelines.config import QualityConfig
from pipelines.errors import QualityError
from pipelines.lake import Lake
from pipelines.quality.expectation import UNIQUE, Expectation, Severity
from pipelines.quality.ledger import (
    BROKERS,
    COLUMNS,
    DATA,
    KINDS,
    LEDGERS,
    LOGS,
    DataFile,
    LogFile,
    Measured,
    Rows,
    broker_ledger,
    data_ledger,
    kind_ledger,
    log_ledger,
)
from pipelines.quality.quarantine import Custody, custody, put, remove_rows
from pipelines.quality.screen import Chosen, batch_rows, count_broken, prepared, screen
from pipelines.quality.suites import ASKED, SUITES, chosen
from schemas import bronze, silver
from schemas.data_files import DATA_FILES
from schemas.quality import QUALITY_RESULTS, QUARANTINED_FILES
from schemas.silver import data_dir

MET, FAILED = "met", "failed"
_FILES_MAX = 3


class Batch(NamedTuple):
    """What one ingest, or one release, brought in, without what is in quarantine."""

    batch_id: str
    logs: tuple[LogFile, ...]
    data: tuple[DataFile, ...]

    @property
    def file_ids(self) -> list[str]:
        return [file.file_id for file in self.logs] + [file.file_id for file in self.data]


class Finding(NamedTuple):
    """What came of one expectation."""

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
    """What a check did: batches and expectations that were checked, and the warnings that failed."""

    batches: int
    expectations: int
    warnings: tuple[Finding, ...]


def check(lake: Lake, config: QualityConfig) -> QualitySummary:
    """Check every batch that is parsed and was not checked.

    Raises:
        QualityError: a critical expectation failed; its files are in quarantine by then.
    """
    _finish(lake)
    token = _token(lake)
    told = (lake.stamp(QUALITY_RESULTS) or "").split(" ")
    if told[-1] == token:
        return QualitySummary(0, 0, ())
    batches, earlier = _pending(lake)
    warnings: list[Finding] = []
    count = 0
    for number, batch in enumerate(batches, 1):
        found = _check_batch(lake, config, batch, [file for file in earlier if file.file_id not in batch.file_ids])
        earlier += batch.logs
        count += len(found)
        critical = [item for item in found if item.failed and item.severity == "critical"]
        warnings += [item for item in found if item.failed and item.severity == "warning"]
        stamp = f"{batch.batch_id} {FAILED if critical else MET} {token if number == len(batches) else '-'}"
        rows = [_row(batch.batch_id, item) for item in found]
        lake.append_once(QUALITY_RESULTS, _results(rows), stamp)
        if critical:
            _quarantine(lake, batch.batch_id, rows)
    return QualitySummary(len(batches), count, tuple(warnings))


def _token(lake: Lake) -> str:
    """What the registers were last told: the same for as long as there is nothing new."""
    return "|".join(
        lake.stamp(spec) or "" for spec in (bronze.LOG_FILES, DATA_FILES, silver.LINE_COUNTS, QUARANTINED_FILES)
    )


def _finish(lake: Lake) -> None:
    """Finish the quarantine that a killed run began: its results are there, but rows of its files still in silver."""
    batch_id, outcome, *_ = [*(lake.stamp(QUALITY_RESULTS) or "").split(" "), "", ""]
    if outcome != FAILED:
        return
    rows = [row.asDict() for row in lake.read(QUALITY_RESULTS).where(F.col("batch_id") == batch_id).collect()]
    ids = {file_id for row in rows if _is_critical(row) for file_id in row["file_ids"]}
    state = custody(lake)
    later = {file_id for file_id, released in state.released.items() if released > batch_id}
    if ids - later and (ids - later - state.quarantined.keys() or _in_silver(lake, state.quarantined)):
        _quarantine(lake, batch_id, rows)


def _in_silver(lake: Lake, file_ids: Iterable[str]) -> bool:
    counted = lake.read(silver.LINE_COUNTS).where(F.col("file_id").isin(list(file_ids)))
    return not counted.isEmpty()


def _is_critical(row: dict[str, Any]) -> bool:
    return bool(row["outcome"] == FAILED and row["severity"] == "critical")


def _pending(lake: Lake) -> tuple[list[Batch], list[LogFile]]:
    """Batches that were parsed and not checked, in their order, and the log files of those that were."""
    state = custody(lake)
    done: set[str] = set()
    if lake.has_rows(QUALITY_RESULTS):
        done = {row["batch_id"] for row in lake.read(QUALITY_RESULTS).select("batch_id").distinct().collect()}
    logs, earlier = _logs(lake, state, done)
    data: dict[str, list[DataFile]] = defaultdict(list)
    if lake.has_rows(DATA_FILES):
        for row in lake.read(DATA_FILES).select("file_id", "path", "row_count", "run_id").collect():
            if row["run_id"] not in done and row["file_id"] not in state.quarantined:
                data[row["run_id"]].append(DataFile(row["file_id"], row["path"], row["row_count"]))
    wanted = {file.file_id for files in logs.values() for file in files if file.record_count}
    parsed = _parsed(lake, wanted) if wanted else set()
    open_batches = {
        batch_id for batch_id, files in logs.items() if any(f.record_count and f.file_id not in parsed for f in files)
    }
    batches = [
        Batch(batch_id, tuple(logs.get(batch_id, ())), tuple(data.get(batch_id, ())))
        for batch_id in sorted((logs.keys() | data.keys()) - open_batches)
    ]
    return batches, earlier


def _logs(lake: Lake, state: Custody, done: set[str]) -> tuple[dict[str, list[LogFile]], list[LogFile]]:
    logs: dict[str, list[LogFile]] = defaultdict(list)
    earlier = []
    if lake.has_rows(bronze.LOG_FILES):
        times = [F.unix_micros(name).alias(name) for name in ("first_time", "last_time")]
        names = ("file_id", "path", "kind", "cluster_id", "broker_id", "line_count", "record_count")
        for row in lake.read(bronze.LOG_FILES).select(*names, *times, "run_id").collect():
            batch_id = state.batch_of(row["file_id"], row["run_id"])
            file = LogFile(*row[:-1])
            if batch_id in done:
                earlier.append(file)
            elif file.file_id not in state.quarantined:
                logs[batch_id].append(file)
    return logs, earlier


def _parsed(lake: Lake, file_ids: set[str]) -> set[str]:
    if not lake.has_rows(silver.LINE_COUNTS):
        return set()
    counted = lake.read(silver.LINE_COUNTS).select("file_id").distinct().collect()
    return {row["file_id"] for row in counted} & file_ids


def _check_batch(lake: Lake, config: QualityConfig, batch: Batch, earlier: Sequence[LogFile]) -> list[Finding]:
    tables = {}
    suites: Chosen = {name: chosen(suite, config.severity) for name, suite in (SUITES | LEDGERS).items()}
    for spec in ASKED:
        rows = batch_rows(lake, spec, batch.file_ids, _stamp(spec.full_name, batch))
        if rows is not None and suites[spec.full_name]:
            tables[spec.full_name] = rows
    measured = screen(tables, suites)
    found = [*_table_findings(tables, suites, measured)]
    ledgers: dict[str, Rows] = {
        LOGS: log_ledger(batch.logs, measured, config.time_slack_ms * 1000),
        DATA: data_ledger(batch.data, measured, [spec.full_name for spec in data_dir.TABLES]),
        KINDS: kind_ledger(batch.logs, measured, config.parsed_share_min),
        BROKERS: broker_ledger(batch.logs, earlier),
    }
    for name, kept in ledgers.items():
        found += _ledger_findings(name, kept, suites[name])
    return _detailed(lake, found, tables, ledgers)


def _stamp(table: str, batch: Batch) -> str:
    """Stamp of the commit that brought the batch's rows: bronze lines are known by their contents."""
    if table != bronze.LOG_LINES.full_name:
        return batch.batch_id
    read = sorted(file.file_id for file in batch.logs if file.line_count)
    return sha256("\n".join(read).encode()).hexdigest()


def _table_findings(tables: dict[str, DataFrame], suites: Chosen, measured: Sequence[Measured]) -> Iterable[Finding]:
    broken = {item.table for item in measured if item.broken}
    counts = count_broken({name: rows for name, rows in tables.items() if name in broken}, suites)
    for name in tables:
        own = [item for item in measured if item.table == name]
        repeated = {item.file_id: item.repeated for item in own if item.repeated}
        for expectation, severity in suites[name]:
            files = repeated if expectation.kind == UNIQUE else counts.get(expectation.expectation_id, {})
            total = sum(item.row_count for item in own)
            yield Finding(expectation, severity, total, sum(files.values()), tuple(sorted(files)))


def _ledger_findings(name: str, rows: Rows, suite: Sequence[tuple[Expectation, Severity]]) -> Iterable[Finding]:
    for expectation, severity in suite if rows else ():
        broken = [row for row in rows if expectation.breaks(row)]
        files = sorted({file_id for row in broken for file_id in row["file_ids"]})
        yield Finding(expectation, severity, len(rows), len(broken), tuple(files))


def _detailed(
    lake: Lake, found: Sequence[Finding], tables: dict[str, DataFrame], ledgers: dict[str, Rows]
) -> list[Finding]:
    """What the screen found, as Great Expectations sees it."""
    failed: dict[str, list[Finding]] = defaultdict(list)
    for item in found:
        if item.failed:
            failed[item.expectation.table].append(item)
    if not failed:
        return list(found)
    from pipelines.quality.great import GreatExpectations

    great = GreatExpectations()
    details: dict[str, Finding] = {}
    for name, items in failed.items():
        files = sorted({file_id for item in items for file_id in item.file_ids})
        if name in tables:
            rows = prepared(tables[name].where(F.col("file_id").isin(files)), [item.expectation for item in items])
        else:
            kept = [tuple(row[column] for column in _names(name)) for row in ledgers[name]]
            rows = lake.spark.createDataFrame(kept, COLUMNS[name])
        rows.persist()
        try:
            answers = great.ask(name, rows, [(item.expectation, item.severity) for item in items])
            for item in items:
                answer = answers[item.expectation.expectation_id]
                details[item.expectation.expectation_id] = item._replace(
                    unexpected_count=0 if answer.met else max(item.unexpected_count, answer.unexpected_count),
                    file_ids=() if answer.met else item.file_ids,
                    sample=None if answer.met else _sample(rows, item.expectation, answer.shown),
                    detailed=True,
                )
        finally:
            rows.unpersist()
    return [details.get(item.expectation.expectation_id, item) for item in found]


def _names(ledger: str) -> list[str]:
    return [part.split()[0] for part in COLUMNS[ledger].split(", ")]


def _sample(rows: DataFrame, expectation: Expectation, shown: Sequence[Any]) -> str:
    """Some of the rows, with their places as far as the table has them."""
    if expectation.broken is None:
        return orjson.dumps(list(shown), default=str).decode()
    places = [name for name in ("file_id", "path", "line_no", "byte_offset") if name in rows.columns]
    columns = list(dict.fromkeys([*places, *expectation.columns]))
    some = rows.where(expectation.broken).select(*columns).limit(_FILES_MAX).collect()
    return orjson.dumps([row.asDict() for row in some], default=str).decode()


def _row(batch_id: str, item: Finding) -> dict[str, Any]:
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


def _quarantine(lake: Lake, batch_id: str, rows: Sequence[dict[str, Any]]) -> None:
    """Quarantine the files of a batch's critical failures, and end the run; safe to repeat."""
    failed = sorted((row for row in rows if _is_critical(row)), key=lambda row: row["expectation_id"])
    ids = sorted({file_id for row in failed for file_id in row["file_ids"]})
    paths = _paths(lake, ids)
    words = {row["expectation_id"]: _words(row["expectation_id"]) for row in failed}
    files = []
    for file_id in ids:
        own = [row["expectation_id"] for row in failed if file_id in row["file_ids"]]
        files.append((file_id, paths[file_id], own, words[own[0]]))
    put(lake, batch_id, files)
    remove_rows(lake, ids)
    first = failed[0]
    named = ", ".join(paths[file_id] for file_id in first["file_ids"][:_FILES_MAX])
    more = len(ids) - min(_FILES_MAX, len(first["file_ids"]))
    raise QualityError(
        first["table_name"],
        first["expectation_id"],
        f"{first['unexpected_count']} of {first['row_count']} rows break it ({words[first['expectation_id']]})"
        + (f", and {len(failed) - 1} more expectations failed" if len(failed) > 1 else ""),
        named + (f" and {more} more" if more else ""),
        ids[0] if len(ids) == 1 else "all",
    )


def _words(expectation_id: str) -> str:
    known = {item.expectation_id: item.question for suite in (*SUITES.values(), *LEDGERS.values()) for item in suite}
    return known.get(expectation_id, expectation_id)


def _paths(lake: Lake, file_ids: Sequence[str]) -> dict[str, str]:
    paths = dict.fromkeys(file_ids, "unknown")
    for spec in (bronze.LOG_FILES, DATA_FILES):
        if lake.has_rows(spec):
            rows = lake.read(spec).where(F.col("file_id").isin(list(file_ids))).select("file_id", "path").collect()
            paths |= {row["file_id"]: row["path"] for row in rows}
    return paths


def write_docs(lake: Lake, config: QualityConfig, folder: Path) -> Path:
    """Ask Great Expectations everything, of all rows of the lake, and write its Data Docs; gives the page to open."""
    from pipelines.quality.great import GreatExpectations

    great = GreatExpectations()
    for spec in ASKED:
        suite = chosen(SUITES[spec.full_name], config.severity)
        if suite and lake.has_rows(spec):
            rows = prepared(lake.read(spec), [item for item, _ in suite]).persist()
            try:
                great.ask(spec.full_name, rows, suite)
            finally:
                rows.unpersist()
    return great.write_docs(folder)
