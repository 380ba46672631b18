"""The steps behind the verbs: one function each, from arguments to an exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from highwater.jobs.exit_codes import OF_VERDICT, ExitCode
from highwater.jobs.freshness import HOUR_US, Newest, describe_freshness, describe_stale, find_newest_lines
from highwater.jobs.gate import choose_gate_code, describe_gate, doubted, outdated
from highwater.jobs.lakes import choose_cluster, explain_no_lines, list_closed_days, list_cluster_files, list_tables
from highwater.jobs.run_ledger import is_noted, note_run
from highwater.jobs.sessions import spark_session
from highwater.pipelines.base import fingerprint
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.plain import number
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.base.values import micros
from highwater.pipelines.bronze.data_files import DataSummary, ingest_data
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.ingest import Inputs, ingest_batches, read_inputs
from highwater.pipelines.bronze.log_source import configured_folders, how_of
from highwater.pipelines.bronze.quarantine import quarantined
from highwater.pipelines.bronze.text_sizes import new_bytes, waiting_bytes
from highwater.pipelines.gold import gold
from highwater.pipelines.lake.catalog_tables import register_tables, require_schema
from highwater.pipelines.lake.clusters import find_cluster
from highwater.pipelines.lake.contents import remove_if_unread
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.tables import make_lake
from highwater.pipelines.lake.writer import hold_lake
from highwater.pipelines.quality.stage import check
from highwater.pipelines.redact.known_names import build_pseudonyms
from highwater.pipelines.redact.text import Redactor
from highwater.pipelines.redact.values import redact_report
from highwater.pipelines.report import first_words
from highwater.pipelines.report.collect import collect_report
from highwater.pipelines.report.collect_detail import collect_detail
from highwater.pipelines.report.model import Report, RunInfo
from highwater.pipelines.report.printed import print_report
from highwater.pipelines.report.write import prepare_folder, write_report
from highwater.pipelines.rules.holes_stage import unread
from highwater.pipelines.silver.parse import parse as parse_lines
from highwater.pipelines.spark.session import list_scratch_folders
from highwater.pipelines.spark.spark_jobs import name_jobs
from highwater.pipelines.storage.machine_faults import translate_faults
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.unmade import undo_folders
from highwater.pipelines.upkeep.upgrade import note_version, require_up_to_date, upgrade
from highwater.schemas.audit import RULE_RESULTS
from highwater.schemas.catalog import TABLES

#: Of verbs that take long, for who watches.
STAGES = {"audit": ("start Spark", "ingest", "parse", "quality", "replay", "report")}
#: Paths, and what is wrong with each.
Problems = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Run:
    """Options and console of a command."""

    config: Config
    console: Console
    lake: Place  #: folder of the Delta tables
    out: Place = Path("highwater-report")  #: folder that receives the report
    time_from: datetime | None = None  #: only what arrived at or after this is reported; None for no bound
    time_until: datetime | None = None  #: only what arrived before this is reported; None for no bound
    form: str = "text"  #: what is printed of the report, a name of `pipelines.report.printed.PRINTED`
    redact_key: bytes | None = None  #: names are replaced in the report, under this key; None: they are not
    catalog: str | None = None  #: ``catalog.schema`` that gets the names of the lake's tables and views; None for none
    cluster: str | None = None  #: only this cluster is reported, by its name or its id; None: all of them
    #: parts of the report that are printed, names of `pipelines.report.printed.SECTIONS`
    sections: tuple[str, ...] = ()
    has_output: bool = True  #: the report is written and printed

    def cluster_id(self, lake: Lake) -> str | None:
        """Return the id of the reported cluster in the lake.

        Raises:
            InputError: the lake has no cluster of this name.
        """
        return None if self.cluster is None else find_cluster(self.lake, list_cluster_files(lake), self.cluster)


def audit(run: Run, logs: Sequence[Place]) -> ExitCode:
    """Run all steps in order. The exit code is the verdict."""
    return OF_VERDICT[audited(run, logs).verdict]


def audited(run: Run, logs: Sequence[Place]) -> Report:
    """Run all steps in order and return the report."""
    started = datetime.now(UTC)
    problems: dict[tuple[str, str], None] = {}
    with _made_out(run), _opened_for(run, "audit", logs) as (lake, inputs):
        for of_batch, is_last, clusters in _ingested(run, lake, inputs):
            problems |= dict.fromkeys(of_batch)
            if is_last:
                run = replace(run, cluster=choose_cluster(lake, clusters, run.console.note))
                if problem := explain_no_lines(lake, run.time_from, run.time_until, run.cluster):
                    run.console.warn(problem)
            run_id = _replay_batch(run, lake)
            if is_last:
                report = _report(run, lake, run_id, list(problems), started)
            elif is_noted(lake, run_id):
                continue
            else:
                with stage(run, lake, "judge"):
                    report = _collect(run, lake, run_id, list(problems))
            note_run(lake, run.config, report, run_id, started)
            started = datetime.now(UTC)
    return report


def ingest(run: Run, logs: Sequence[Place]) -> ExitCode:
    """Ingest files into bronze. If the text is more than a batch, replay all batches but the last.

    The exit code is inconclusive if a file of the lake could not be read completely.
    """
    with _opened_for(run, "ingest", logs) as (lake, inputs):
        for _, is_last, _ in _ingested(run, lake, inputs):
            if not is_last:
                _replay_batch(run, lake)
        lost = [hole.message for hole in unread(lake)]
    for message in lost:
        run.console.warn(f"inconclusive: {message}")
    return ExitCode.INCONCLUSIVE if lost else ExitCode.CLEAN


def parse(run: Run) -> ExitCode:
    """Parse bronze lines into the silver tables."""
    with open_lake(run, "parse", writes=True, text_bytes=lambda: waiting_bytes(run.lake)) as lake:
        _parse(run, lake)
    return ExitCode.CLEAN


def replay(run: Run) -> ExitCode:
    """Replay the silver tables into gold."""
    with open_lake(run, "replay", writes=True, text_bytes=lambda: waiting_bytes(run.lake)) as lake:
        _replay(run, lake)
    return ExitCode.CLEAN


def report(run: Run) -> ExitCode:
    """Write the report from the gold tables. The exit code is the verdict."""
    return OF_VERDICT[make_report(run).verdict]


def make_report(run: Run) -> Report:
    """Return the report from the gold tables."""
    started = datetime.now(UTC)
    with _made_out(run), open_lake(run, "report") as lake:
        return _report(run, lake, run_id_of(run, lake), (), started)


def _made_out(run: Run) -> AbstractContextManager[None]:
    return prepare_folder(run.out, "report") if run.has_output else nullcontext()


def gate(run: Run, fail_on: str, only_new: bool = False, stale_after_hours: float | None = None) -> ExitCode:
    """Print the verdict over the gold tables of the last audit, and what is new since the previous audit.

    Writes nothing.

    Args:
        fail_on: lowest verdict that fails.
        only_new: ignore violations that the previous run had already.
        stale_after_hours: maximum age of a broker's newest line at the end of the window. None: twice the length of the
            window if it has both ends, else no limit. 0: no limit.

    Raises:
        InputError: the lake holds no audit.
    """
    with open_lake(run, "gate") as lake:
        audited = lake.stamp(RULE_RESULTS)
        if audited is None:
            raise InputError(run.lake, "holds no audit", "ingest, parse and replay logs into it first")
        with stage(run, lake, "gate"):
            judged = _collect(run, lake, audited, ())
            if not gold.is_current(lake, run_id_of(run, lake)):
                judged = outdated(judged)
        newest = find_newest_lines(lake, run.cluster_id(lake))
    stale = _describe_stale(run, newest, stale_after_hours)
    for line in describe_gate(judged, fail_on, only_new, run.cluster, stale):
        run.console.prose(line)
    run.console.prose(describe_freshness(newest))
    return choose_gate_code(judged, fail_on, only_new, stale)


def _describe_stale(run: Run, newest: Sequence[Newest], hours: float | None) -> list[str]:
    until = run.time_until or datetime.now(UTC)
    if hours is None:
        span = until - run.time_from if run.time_from and run.time_until else timedelta()
        hours = 2 * span / timedelta(hours=1)
    if not hours:
        return []
    return describe_stale(newest, micros(until), round(hours * HOUR_US))


@contextmanager
def open_lake(
    run: Run,
    verb: str,
    *,
    logs: Sequence[Place] | None = None,
    writes: bool = False,
    text_bytes: Callable[[], int] = int,
    look: Callable[[Lake], None] = lambda _: None,
) -> Iterator[Lake]:
    """Yield the lake of a command.

    A writing command waits for the lake's lock, upgrades the lake to this version, and starts Spark. A reading command
    starts no Spark.

    Args:
        logs: logs to ingest. With logs, the lake need not exist.
        writes: True if the command writes to the lake.
        text_bytes: returns the approximate size of the text that a writing command reads. Not called if there are logs.
        look: called with the lake of a writing command, before Spark starts.

    Raises:
        InputError: the lake does not exist, a log is missing or invalid, or a folder in a store is unknown.
    """
    ingest = run.config.ingest
    files: Sequence[str] = ()
    if logs is not None:
        configured_folders(ingest)
        files = discover(logs, ingest.include, ingest.exclude).files
    else:
        list_tables(run.lake)
    faults = translate_faults(run.lake, list_scratch_folders(run.config.session))
    if logs is None and not writes:
        with faults:
            require_up_to_date(run.lake)
            yield Lake(None, run.lake)
        return
    with undo_folders(run.lake):
        make_lake(run.lake)
        with (
            hold_lake(run.lake, verb, run.config.session, run.console.note) as fence,
            remove_if_unread(run.lake),
            faults,
        ):
            for what in upgrade(run.lake, fence):
                run.console.note(f"  {what}")
            size_bytes = text_bytes() if logs is None else new_bytes(files, run.lake, ingest.batch_bytes)
            run.console.plan(STAGES.get(verb, ()), size_bytes)
            look(Lake(None, run.lake, fence))
            with spark_session(run.config, run.console, verb, run.lake, files, True, size_bytes) as spark:
                if run.catalog is not None:
                    require_schema(spark, run.catalog)
                lake = Lake(spark, run.lake, fence)
                try:
                    yield lake
                except Exception:
                    # What fails in a run that may not write any more fails for that reason, whatever it says.
                    fence()
                    raise
                note_version(run.lake)
                if run.catalog is not None:
                    with stage(run, lake, "catalog"):
                        names = register_tables(spark, run.lake, run.catalog)
                    run.console.note(f"  {len(names)} tables and views in {run.catalog}")


@contextmanager
def stage(run: Run, lake: Lake, name: str) -> Iterator[None]:
    """Show a named step on the console and in Spark's UI while the context is open."""
    with run.console.stage(name), name_jobs(lake.spark, name) if lake.has_spark else nullcontext():
        yield


def _replay_batch(run: Run, lake: Lake) -> str:
    """Parse and replay the ingested lines into gold. Return the id of the audit."""
    _parse(run, lake)
    if run.config.quality.enabled:
        check_quality(run, lake)
    return _replay(run, lake)


@contextmanager
def _opened_for(run: Run, verb: str, logs: Sequence[Place]) -> Iterator[tuple[Lake, Inputs]]:
    """Yield the lake and the logs to ingest. Print a summary of the logs; if they are short, before Spark starts."""
    config = run.config.ingest
    found: list[Inputs] = []

    def look(lake: Lake) -> None:
        inputs = read_inputs(lake.spark if lake.has_spark else None, lake, logs, config)
        if inputs is not None:
            found.append(inputs)
            new, owners = inputs.new, inputs.identities
            texts = first_words.describe_new_texts(new, owners, how_of(config)) if first_words.is_short(new) else ()
            for line in (*first_words.describe_profiles(new, owners, inputs.problems), *texts):
                run.console.note(f"  {line}")

    with open_lake(run, verb, logs=logs, look=look) as lake:
        if not found:
            with stage(run, lake, "profile"):
                look(lake)
        yield lake, found[0]


def _ingested(run: Run, lake: Lake, inputs: Inputs) -> Iterator[tuple[Problems, bool, set[str]]]:
    """Write files to bronze. Yield (problems, is last batch, all cluster ids) after each batch.

    Data directories are read with the last batch. If a directory does not show its owner, all logs are searched for it.
    """
    config = run.config.ingest
    waiting = waiting_bytes(run.lake)
    batches = ingest_batches(lake.spark, lake, inputs, config, generate_id, config.batch_bytes, waiting)
    is_last = False
    while not is_last:
        data = DataSummary()
        with stage(run, lake, "ingest"):
            lake.create(TABLES)
            summary = next(batches)
            is_last = not summary.files_waiting
            if is_last:
                folders = configured_folders(config)
                data = ingest_data(lake.spark, lake, inputs.paths, summary.run_id, folders, config.cluster)
        new = f"{summary.files_new:,} new: {number(summary.records, 'record')} in {number(summary.lines, 'line')}"
        later = "" if is_last else f"; {summary.files_waiting:,} more in later batches"
        texts = () if first_words.is_short(inputs.new) else first_words.describe_texts(lake)
        for line in (f"{number(summary.files_found, 'log file')}, {new}{later}", *texts):
            run.console.note(f"  {line}")
        if data.files_found:
            files = number(data.files_found, "file")
            run.console.note(f"  {files} of data directories, {data.files_new:,} new")
        problems = (*summary.problems, *data.problems)
        for path, problem in problems:
            run.console.warn(f"{path}: {problem}")
        yield problems, is_last, {broker.cluster_id for broker in summary.brokers}


def generate_id() -> str:
    """Return an id for this step. Ingests are parsed in the order of their ids."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{uuid4().hex[:8]}"


def _parse(run: Run, lake: Lake) -> None:
    with stage(run, lake, "parse"):
        summary = parse_lines(lake)
    if summary.again:
        run.console.note("  all lines again, since other grammars had parsed them")
    run.console.note(f"  {summary.total:,} facts in {len(summary.rows)} tables")
    for line in first_words.describe_restarts(lake):
        run.console.note(f"  {line}")


def check_quality(run: Run, lake: Lake) -> None:
    """Check the new rows in silver. Files that fail are quarantined, and the run continues without them."""
    with stage(run, lake, "quality"):
        checked = check(lake, run.config.quality)
    for path, problem in checked.quarantined:
        run.console.warn(f"{path}: {problem}")
    for finding in checked.warnings:
        count = f"{finding.unexpected_count} of {finding.row_count} rows"
        run.console.warn(f"{finding.expectation.expectation_id}: {count} break: {finding.expectation.question}")
    run.console.note(f"  {number(checked.expectations, 'data check')} in {number(checked.batches, 'batch', 'batches')}")


def _replay(run: Run, lake: Lake) -> str:
    run_id = run_id_of(run, lake)
    if gold.is_current(lake, run_id):
        run.console.note("  nothing new: the gold tables are up to date")
        return run_id
    with stage(run, lake, "replay"):
        starts = gold.refresh(lake, run.config, run_id, gold.compute_inputs(lake, run.config))
    several = len({cluster_id for cluster_id, _ in starts}) > 1
    for (cluster_id, broker_id), start in sorted(starts.items()):
        of_cluster = f" of cluster {cluster_id}" if several else ""
        run.console.note(f"  broker {broker_id}{of_cluster}: {start.in_words()}")
    return run_id


def _report(run: Run, lake: Lake, run_id: str, problems: Sequence[tuple[str, str]], started: datetime) -> Report:
    with stage(run, lake, "report"):
        if not run.has_output:
            return _collect(run, lake, run_id, problems)
        report = whole_report(run, lake, run_id, problems, started)
        if run.redact_key is not None:
            report = redact_report(report, Redactor(build_pseudonyms(lake, run.redact_key)))
        files = write_report(report, run.out)
    # Formats for programs are in UTC.
    show = run.console.prose if run.form in ("text", "pager") else run.console.result
    show(print_report(report, run.form, run.sections))
    run.console.note("wrote " + ", ".join(str(path) for path in files))
    return report


def whole_report(
    run: Run, lake: Lake, run_id: str, problems: Sequence[tuple[str, str]], started: datetime | None
) -> Report:
    """Return the report with all details that the page shows.

    Args:
        problems: (path, problem) of files that could not be read completely.
        started: start of the command. None if its duration is unknown.
    """
    cluster_id = run.cluster_id(lake)
    # Run concurrently: while a query is planned, a core has nothing to do.
    collected, detail = run_concurrently(
        [
            lambda: _collect(run, lake, run_id, problems),
            lambda: collect_detail(lake, run.config, run.time_from, run.time_until, started, cluster_id),
        ]
    )
    report: Report = collected.model_copy(update={"detail": detail})
    return report


def _collect(run: Run, lake: Lake, run_id: str, problems: Sequence[tuple[str, str]]) -> Report:
    cluster_id = run.cluster_id(lake)
    left_out = [(file.path, file.problem) for file in quarantined(lake)]
    info = RunInfo(
        run_id=run_id,
        code_version=fingerprint.code_version(),
        config_hash=run.config.config_hash,
        rules_fingerprint=fingerprint.rules_fingerprint(),
        problems=(*problems, *left_out, *list_closed_days(lake.root, lake.closed, cluster_id)),
    )
    report = collect_report(
        lake, run.config, run=info, since=run.time_from, until=run.time_until, cluster_id=cluster_id
    )
    problem = explain_no_lines(lake, run.time_from, run.time_until, cluster_id)
    return report if problem is None else doubted(report, problem)


def run_id_of(run: Run, lake: Lake) -> str:
    """Return the id of the audit. It depends on the lake's files, the configuration and the versions of the code."""
    return fingerprint.run_id(gold.compute_inputs(lake, run.config), run.config.rules_hash)
