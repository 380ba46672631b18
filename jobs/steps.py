"""The steps behind the verbs: one function each, from arguments to an exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Thread
from uuid import uuid4

import pyarrow as pa

from jobs.executors import meet_executors
from jobs.exit_codes import OF_VERDICT, ExitCode
from jobs.gate import gate_code, gate_lines, outdated
from jobs.lakes import no_lake
from pipelines import fingerprint, gold, local_tasks
from pipelines.bronze.discover import discover
from pipelines.bronze.ingest import ingest as ingest_files
from pipelines.bronze.unread import new_bytes, waiting_bytes
from pipelines.catalog_tables import register_in, require_schema
from pipelines.config import Config
from pipelines.console import Console
from pipelines.data_dir.ingest import ingest_data
from pipelines.errors import InputError
from pipelines.lake import Lake
from pipelines.lake_tables import make_lake
from pipelines.lake_writer import NO_WRITER, Writer, writer_of
from pipelines.machine_faults import machine_faults
from pipelines.quality.quarantine import custody, quarantined
from pipelines.quality.stage import check
from pipelines.redact.known_names import pseudonyms
from pipelines.redact.text import Redactor
from pipelines.redact.values import redacted
from pipelines.report.collect import collect_report
from pipelines.report.collect_detail import collect_detail
from pipelines.report.model import Report, RunInfo
from pipelines.report.printed import PRINTED
from pipelines.report.write import make_report_folder, write_report
from pipelines.session import build_session, in_process_cores, lock_in_jvm, scratch_folders
from pipelines.silver.parse import parse as parse_lines
from pipelines.spark_jobs import step
from pipelines.storage.place import Place
from pipelines.storage.store import store_of
from pipelines.threads import concurrently
from schemas import bronze
from schemas.audit import RULE_RESULTS
from schemas.catalog import TABLES
from schemas.data_files import DATA_FILES
from schemas.gold import RUNS


@dataclass(frozen=True)
class Run:
    """What every step is given.

    Attributes:
        lake: folder of the Delta tables.
        out: folder that receives the report.
        time_from: only what arrived at or after this is reported; None for no bound.
        time_until: only what arrived before this is reported; None for no bound.
        form: what is printed of the report, a name of `pipelines.report.printed.PRINTED`.
        redact_key: names are replaced in the report, under this key; None: they are not.
        catalog: ``catalog.schema`` that gets the names of the lake's tables and views; None for none.
    """

    config: Config
    console: Console
    lake: Place
    out: Place
    time_from: datetime | None = None
    time_until: datetime | None = None
    form: str = "text"
    redact_key: bytes | None = None
    catalog: str | None = None


def audit(run: Run, logs: Sequence[Place]) -> ExitCode:
    """All steps in a row; the code is the verdict."""
    started = datetime.now(UTC)
    files = _look(run, logs)
    make_report_folder(run.out)
    with written(run, "audit", lambda: new_bytes(files, run.lake), files, makes=True) as lake:
        problems = _ingest(run, lake, logs)
        _parse(run, lake)
        if run.config.quality.enabled:
            check_quality(run, lake)
        run_id = _replay(run, lake)
        report = _report(run, lake, run_id, problems, started)
        _note_run(lake, run, report, run_id, started)
    return OF_VERDICT[report.verdict]


def ingest(run: Run, logs: Sequence[Place]) -> ExitCode:
    """Files to bronze."""
    files = _look(run, logs)
    with written(run, "ingest", lambda: new_bytes(files, run.lake), files, makes=True) as lake:
        _ingest(run, lake, logs)
    return ExitCode.CLEAN


def parse(run: Run) -> ExitCode:
    """Bronze to silver."""
    with written(run, "parse", lambda: waiting_bytes(run.lake)) as lake:
        _parse(run, lake)
    return ExitCode.CLEAN


def replay(run: Run) -> ExitCode:
    """Silver to gold."""
    with written(run, "replay", lambda: waiting_bytes(run.lake)) as lake:
        _replay(run, lake)
    return ExitCode.CLEAN


def report(run: Run) -> ExitCode:
    """Gold to the report; the code is the verdict."""
    started = datetime.now(UTC)
    make_report_folder(run.out)
    with lake_of(run, "report") as lake:
        made = _report(run, lake, run_id_of(run, lake), (), started)
    return OF_VERDICT[made.verdict]


def gate(run: Run, fail_on: str, only_new: bool = False) -> ExitCode:
    """The verdict over the gold tables of the last audit, and what is new since the one before; writes nothing.

    Raises:
        InputError: the lake holds no audit.
    """
    with lake_of(run, "gate") as lake:
        audited = lake.stamp(RULE_RESULTS)
        if audited is None:
            raise InputError(run.lake, "holds no audit", "ingest, parse and replay logs into it first")
        with stage(run, lake, "gate"):
            judged = _collect(run, lake, audited, ())
            if not gold.is_current(lake, run_id_of(run, lake)):
                judged = outdated(judged)
    for line in gate_lines(judged, fail_on, only_new):
        run.console.result(line)
    return gate_code(judged, fail_on, only_new)


def _look(run: Run, logs: Sequence[Place]) -> Sequence[str]:
    """Told before Spark starts: an input that is missing, or holds no log. Gives the files."""
    return discover(logs, run.config.ingest.include, run.config.ingest.exclude).files


def _nothing() -> int:
    return 0


@contextmanager
def written(
    run: Run,
    verb: str,
    text_bytes: Callable[[], int] = _nothing,
    files: Sequence[str] = (),
    makes: bool = False,
) -> Iterator[Lake]:
    """The lake of a verb that writes; waited for before Spark starts.

    Args:
        text_bytes: tells how much text the verb has before it, roughly.
        files: logs that it reads.
        makes: the lake need not be there.
    """
    if makes:
        make_lake(run.lake)
    elif not store_of(run.lake).is_folder(run.lake):
        raise no_lake(run.lake)
    with (
        writer_of(run.lake, verb, run.config.session, run.console.note) as writer,
        lake_of(run, verb, text_bytes, files, writer) as lake,
        lock_in_jvm(lake.spark, writer.jvm_lock),
    ):
        if run.catalog is not None:
            require_schema(lake.spark, run.catalog)
        try:
            yield lake
        except Exception:
            # What fails in a run that may not write any more fails for that reason, whatever it says.
            writer.fence()
            raise
        if run.catalog is not None:
            with stage(run, lake, "catalog"):
                names = register_in(lake.spark, run.lake, run.catalog)
            run.console.note(f"  {len(names)} tables and views in {run.catalog}")


@contextmanager
def lake_of(
    run: Run,
    verb: str,
    text_bytes: Callable[[], int] = _nothing,
    files: Sequence[str] = (),
    writer: Writer = NO_WRITER,
) -> Iterator[Lake]:
    """The lake, with a session of its own."""
    with machine_faults(run.lake, scratch_folders(run.config.session)):
        with run.console.stage("start Spark"):
            # A second of parsing, while Python waits for the JVM.
            Thread(target=fingerprint.rules_fingerprint, daemon=True).start()
            if run.config.session.local_mb and (cores := in_process_cores(run.config.session)):
                local_tasks.start(cores)
            spark = build_session(run.config, f"highwater {verb}", text_bytes(), run.lake)
        try:
            meet_executors(run.console, spark, run.lake, files, writer is not NO_WRITER)
            yield Lake(spark, run.lake, writer.fence)
        finally:
            spark.stop()


@contextmanager
def stage(run: Run, lake: Lake, name: str) -> Iterator[None]:
    """A step of the work, for whoever watches it here and for whoever watches Spark."""
    with run.console.stage(name), step(lake.spark, name):
        yield


def _ingest(run: Run, lake: Lake, logs: Sequence[Place]) -> tuple[tuple[str, str], ...]:
    """Logs first: they tell whose the data directories are that do not say it themselves. Gives the problems."""
    ingest_id = new_id()
    with stage(run, lake, "ingest"):
        lake.create(TABLES)
        summary = ingest_files(lake.spark, lake, logs, run.config.ingest, ingest_id)
        data = ingest_data(lake.spark, lake, logs, ingest_id, run.config.ingest.cluster)
    new = f"{summary.files_new} new: {summary.records} records in {summary.lines} lines"
    run.console.note(f"  {summary.files_found} log files, {new}")
    if data.files_found:
        run.console.note(f"  {data.files_found} files of data directories, {data.files_new} new")
    problems = (*summary.problems, *data.problems)
    for path, problem in problems:
        run.console.warn(f"{path}: {problem}")
    return problems


def new_id() -> str:
    """An id of what is done now. Ingests are parsed in the order of theirs."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{uuid4().hex[:8]}"


def _parse(run: Run, lake: Lake) -> None:
    with stage(run, lake, "parse"):
        summary = parse_lines(lake)
    run.console.note(f"  {summary.total} facts in {len(summary.rows)} tables")


def check_quality(run: Run, lake: Lake) -> None:
    """Check what is new in silver; a critical failure ends the run."""
    with stage(run, lake, "quality"):
        checked = check(lake, run.config.quality)
    for finding in checked.warnings:
        count = f"{finding.unexpected_count} of {finding.row_count} rows"
        run.console.warn(f"{finding.expectation.expectation_id}: {count} break: {finding.expectation.question}")
    run.console.note(f"  {checked.expectations} expectations of {checked.batches} batches")


def _replay(run: Run, lake: Lake) -> str:
    run_id = run_id_of(run, lake)
    if gold.is_current(lake, run_id):
        run.console.note("  nothing new: the gold tables are up to date")
        return run_id
    with stage(run, lake, "replay"):
        starts = gold.refresh(lake, run.config, run_id)
    for (_, broker_id), start in sorted(starts.items()):
        run.console.note(f"  broker {broker_id}: {start.told()}")
    return run_id


def _report(run: Run, lake: Lake, run_id: str, problems: Sequence[tuple[str, str]], started: datetime) -> Report:
    with stage(run, lake, "report"):
        made = whole_report(run, lake, run_id, problems, started)
        if run.redact_key is not None:
            made = redacted(made, Redactor(pseudonyms(lake, run.redact_key)))
        files = write_report(made, run.out)
    run.console.result(PRINTED[run.form](made).rstrip("\n"))
    run.console.note("wrote " + ", ".join(str(path) for path in files))
    return made


def whole_report(
    run: Run, lake: Lake, run_id: str, problems: Sequence[tuple[str, str]], started: datetime | None
) -> Report:
    """The report with all that the page shows."""
    # Beside each other: while a query is planned, a core has nothing to do.
    collected, detail = concurrently(
        [
            lambda: _collect(run, lake, run_id, problems),
            lambda: collect_detail(lake, run.config, run.time_from, run.time_until, started),
        ]
    )
    made: Report = collected.model_copy(update={"detail": detail})
    return made


def _collect(run: Run, lake: Lake, run_id: str, problems: Sequence[tuple[str, str]]) -> Report:
    info = RunInfo(
        run_id=run_id,
        code_version=fingerprint.code_version(),
        config_hash=run.config.config_hash,
        rules_fingerprint=fingerprint.rules_fingerprint(),
        problems=(*problems, *((file.path, file.problem) for file in quarantined(lake))),
    )
    return collect_report(lake.spark, lake, run.config, run=info, since=run.time_from, until=run.time_until)


def run_id_of(run: Run, lake: Lake) -> str:
    registers = [lake.rows(spec, "file_id")["file_id"].to_pylist() for spec in (bronze.LOG_FILES, DATA_FILES)]
    held = custody(lake).quarantined
    ids = (file_id for register in registers for file_id in register if file_id not in held)
    return fingerprint.run_id(ids, run.config.config_hash)


def _note_run(lake: Lake, run: Run, report: Report, run_id: str, started: datetime) -> None:
    if run_id in lake.rows(RUNS, "run_id")["run_id"].to_pylist():
        return
    row = {
        "run_id": run_id,
        "started_time": started,
        "ended_time": datetime.now(UTC),
        "code_version": fingerprint.code_version(),
        "config_hash": run.config.config_hash,
        "rules_fingerprint": fingerprint.rules_fingerprint(),
        "verdict": report.verdict,
        "files": len(report.provenance.inputs),
        "lines": report.coverage.lines,
        "operations": report.operations.produce.observed,
    }
    lake.append_once(RUNS, pa.Table.from_pylist([row], RUNS.arrow_schema), run_id)
