"""The command: arguments to configuration to a step to an exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from highwater.jobs.configuration import check_config
from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.help import COMPLETE_VARIABLE, Highwater, Verbs, complain_of_use, complete
from highwater.jobs.help import generate_completion as completion_of
from highwater.jobs.inquiry_verbs import VERBS
from highwater.jobs.options import ALERT_FORMATS, DAYS, PLACE, SECTION_NAMES, SEVERITIES, options
from highwater.jobs.redaction import read_redaction_key
from highwater.jobs.streams import leave_stdout, open_closed
from highwater.pipelines.base.config import Config, load_config
from highwater.pipelines.base.console import RichConsole, escape_text
from highwater.pipelines.base.errors import HighwaterError, InputError
from highwater.pipelines.base.fingerprint import code_version
from highwater.pipelines.base.zones import Localizer
from highwater.pipelines.storage.place import Place, Uri, place_of
from highwater.pipelines.storage.store import store_of

DEBUG_VARIABLE = "HIGHWATER_DEBUG"
#: Objects that are made before garbage is looked for. With Python's 700, looking took an eighth of the driver's time.
_GC_THRESHOLD: Final = 200_000


def _check_days(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    if text is not None and not DAYS.fullmatch(text):
        raise click.BadParameter(f"invalid number of days {text!r}; expected for example 90d")
    return text


@click.group(cls=Highwater, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(code_version(), message="highwater %(version)s")
def highwater() -> None:
    """Audit how Apache Kafka replicated, from the logs of its brokers.

    Results go to stdout, progress to stderr.
    """


@highwater.command()
@options("logs", "lake", "out", "from", "until", "format", "verbose", "redact", "redact key", "cluster name", "master")
@options("log format", "catalog", "conf", "open", "tz")
def audit(logs: tuple[Place, ...], opens: bool, **given: Any) -> ExitCode:
    """Read LOGS (files or folders), replay them and write the report."""
    from highwater.jobs import steps

    return _open_result(opens, given["out"], lambda: steps.audit(_run(**given), _check_present(logs)))


@highwater.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default="./highwater-demo",
    show_default=True,
    help="Folder for its lake and its report.",
)
@click.option("--open/--no-open", "opens", default=None, help="Open the page; by default in a terminal.")
@options("master", "conf")
def demo(folder: Path, opens: bool | None, master: str | None, conf: Path | None) -> ExitCode:
    """Audit the bundled logs of a cluster that lost an acknowledged record, and say what to look at."""
    from highwater.jobs import demo as bundled

    run = _run(lake=folder / "lake", out=folder / "report", master=master, conf=conf)
    return bundled.demo(run, sys.stdout.isatty() if opens is None else opens)


@highwater.command()
@options("logs", "lake", "out", "cluster name", "master", "conf", "tz")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(min=1),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="From the start of a round to the start of the next one.",
)
@click.option("--webhook", metavar="URL", help="Send each incident that begins or ends to this address.")
@click.option(
    "--webhook-format",
    "webhook_form",
    type=click.Choice(ALERT_FORMATS),
    default="json",
    show_default=True,
    help="PagerDuty's routing key is taken from HIGHWATER_PAGERDUTY_KEY.",
)
@click.option("--command", help="Run this, without a shell, for each of them, with the incident as JSON on its stdin.")
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default="major",
    show_default=True,
    help="Minimum severity to send.",
)
@click.option("--openmetrics", type=PLACE, metavar="FILE", help="File for Prometheus, rewritten each round.")
@click.option("--rounds", type=click.IntRange(min=1), help="Stop after this many rounds (default: never).")
def watch(
    logs: tuple[Place, ...],
    every_s: float,
    webhook: str | None,
    webhook_form: str,
    command: str | None,
    severity: str,
    openmetrics: Place | None,
    rounds: int | None,
    **given: Any,
) -> ExitCode:
    """Audit LOGS as they grow, print incidents as they begin and end, and send alerts."""
    from highwater.jobs import watch as verb

    if click.get_current_context().get_parameter_source("webhook_form") is ParameterSource.COMMANDLINE and not webhook:
        raise click.UsageError("--webhook-format is for --webhook")
    recipients = verb.Recipients(webhook, webhook_form, command, severity, openmetrics)
    return verb.watch(_run(**given), _check_present(logs), every_s, recipients, rounds or 0)


@highwater.command()
@options("logs", "lake", "no span", "cluster name", "master", "catalog", "conf")
def ingest(logs: tuple[Place, ...], **given: Any) -> ExitCode:
    """Read LOGS (files or folders) into the bronze tables; a backlog is replayed up to its last batch."""
    from highwater.jobs import steps

    return steps.ingest(_run(**given), _check_present(logs))


@highwater.command()
@options("lake", "no span", "master", "catalog", "conf")
def parse(**given: Any) -> ExitCode:
    """Turn bronze lines into the typed silver tables."""
    from highwater.jobs import steps

    return steps.parse(_run(**given))


@highwater.command()
@options("lake", "no span", "master", "catalog", "conf")
def replay(**given: Any) -> ExitCode:
    """Replay Kafka's rules over the silver tables."""
    from highwater.jobs import steps

    return steps.replay(_run(**given))


@highwater.command()
@options("lake", "out", "cluster", "from", "until", "format", "verbose", "section", "redact", "redact key", "master")
@options("conf", "open", "tz")
def report(opens: bool, **given: Any) -> ExitCode:
    """Write the report from the gold tables."""
    from highwater.jobs import steps

    return _open_result(opens, given["out"], lambda: steps.report(_run(**given)))


@highwater.command()
@options("lake", "cluster", "from", "until", "redact", "redact key", "master", "conf")
@click.option(
    "--out", type=PLACE, default="./highwater-bundle.zip", show_default=True, help="The archive to be written."
)
def bundle(**given: Any) -> ExitCode:
    """Write the report with the tables behind it into one archive."""
    from highwater.jobs.bundle import bundle as pack

    return pack(_run(**given))


@highwater.command()
@options("lake", "cluster", "from", "until", "master", "conf")
@click.option(
    "--fail-on",
    type=click.Choice(["violated", "inconclusive"]),
    default="inconclusive",
    show_default=True,
    help="Lowest verdict that fails (exit code other than 0).",
)
@click.option("--only-new", is_flag=True, help="Ignore violations that the previous run already reported.")
@click.option(
    "--stale-after",
    "stale_after_hours",
    type=click.FloatRange(min=0),
    metavar="HOURS",
    help="Fail where a broker has no line of the last HOURS before --until (or now); 0: never. "
    "Not given: twice the time from --from to --until.",
)
def gate(fail_on: str, only_new: bool, stale_after_hours: float | None, **given: Any) -> ExitCode:
    """Judge the last audit: its verdict as exit code, a line per violation, and which are new. Writes nothing."""
    from highwater.jobs import steps

    return steps.gate(_run(**given), fail_on, only_new, stale_after_hours)


@highwater.command()
@options("lake", "master", "conf")
@click.option("--docs", type=PLACE, help="Ask everything of the whole lake; write Data Docs into this folder.")
@click.option("--release", multiple=True, metavar="FILE_ID|all", help="Let files out of quarantine, to be read again.")
@click.option("--markdown", is_flag=True, help="What is asked of each table, as the document docs/quality.md.")
def quality(docs: Place | None, release: tuple[str, ...], markdown: bool, **given: Any) -> ExitCode:
    """Check what was read; what was read wrongly goes into quarantine."""
    if markdown:
        from highwater.pipelines.quality.document import build_suites_markdown

        return _print_document(build_suites_markdown())
    from highwater.jobs import quality as verb

    return verb.quality(_run(**given), docs, release)


@highwater.command()
@click.argument("name", required=False)
@options("lake")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.option("--markdown", is_flag=True, help="All tables that there can be, as the document docs/tables.md.")
def tables(name: str | None, lake: Place, as_json: bool, markdown: bool) -> ExitCode:
    """List views and tables of the lake, or the columns of NAME, which is a view or a table."""
    if markdown:
        from highwater.pipelines.lake.table_docs import build_tables_markdown
        from highwater.schemas.catalog import TABLES
        from highwater.schemas.views import VIEWS

        return _print_document(build_tables_markdown(TABLES, VIEWS))
    from highwater.jobs.tables import show_tables

    return show_tables(RichConsole(), lake, name, as_json)


@highwater.command()
@click.argument("statement", required=False)
@options("lake", "master", "conf")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "csv", "json", "parquet"]),
    default="text",
    show_default=True,
    help="Output format (text rounds numbers).",
)
@click.option("--out", type=PLACE, help="File for the rows, instead of printing them.")
@click.option("--spark", "by_spark", is_flag=True, help="Have Spark answer, rather than DuckDB.")
@click.option("--duckdb-views", is_flag=True, help="Print the statements that make the same views in DuckDB.")
@click.option("--registered", is_flag=True, help="With --duckdb-views: the tables are registered there already.")
def sql(
    statement: str | None,
    lake: Place,
    master: str | None,
    conf: Path | None,
    form: str,
    out: Place | None,
    by_spark: bool,
    duckdb_views: bool,
    registered: bool,
) -> ExitCode:
    """Answer the query STATEMENT over the lake's tables and views; without one list them. Without Spark."""
    from highwater.jobs.sql import answer, show_duckdb_views, show_names

    if statement is not None and duckdb_views:
        raise click.UsageError("--duckdb-views takes no statement")
    if duckdb_views:
        return show_duckdb_views(RichConsole(), lake, registered)
    if statement is None:
        return show_names(RichConsole(), lake)
    if master is not None and not by_spark:
        raise click.UsageError("--master is for --spark")
    return answer(RichConsole(), lake, statement, form, out, _load_config(conf, master) if by_spark else None)


@highwater.command()
@options("lake", "master", "conf")
@click.option(
    "--retention-hours",
    type=click.IntRange(min=0),
    default=168,
    show_default=True,
    help="Older versions than this go, with the files that only they need.",
)
@click.option("--force", is_flag=True, help="Allow less than 24 hours: nothing else may read the lake meanwhile.")
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
def maintain(
    lake: Place, master: str | None, conf: Path | None, retention_hours: int, force: bool, dry_run: bool
) -> ExitCode:
    """Compact small files of the lake's tables and remove files that no version in use needs."""
    from highwater.jobs.maintain import maintain as look_after

    return look_after(_load_config(conf, master), RichConsole(), lake, retention_hours, force, dry_run)


@highwater.command()
@options("lake", "cluster", "conf")
@click.option(
    "--keep",
    metavar="DAYS",
    callback=_check_days,
    help="How long to keep data, e.g. 90d, unless [retention] sets it per layer.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be dropped.")
def expire(lake: Place, cluster: str | None, conf: Path | None, keep: str | None, dry_run: bool) -> ExitCode:
    """Drop old days of each cluster of the lake; reports of the days that stay do not change."""
    from highwater.jobs.expire import expire as drop

    return drop(_load_config(conf), RichConsole(), lake, keep, cluster, dry_run)


@highwater.command()
@options("lake", "cluster", "from", "until")
@click.option(
    "--out", type=PLACE, default="./highwater-metrics", show_default=True, help="Folder for the files that are made."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["openmetrics"]),
    default="openmetrics",
    show_default=True,
    help="For promtool tsdb create-blocks-from openmetrics.",
)
@click.option("--markdown", is_flag=True, help="All metrics as the table of the document docs/metrics.md.")
@click.option("--dashboard", is_flag=True, help="A Grafana dashboard of what `highwater watch --openmetrics` writes.")
def metrics(out: Place, markdown: bool, dashboard: bool, **given: Any) -> ExitCode:
    """Write brokers' metrics, rebuilt from their logs, for Prometheus."""
    if dashboard:
        from highwater.pipelines.metrics.live import build_dashboard as grafana

        return _print_document(grafana())
    if markdown:
        from highwater.schemas.metrics import build_metrics_markdown

        return _print_document(build_metrics_markdown())
    from highwater.jobs.metrics import export
    from highwater.jobs.question import Question

    return export(Question(RichConsole(), **given), out)


@highwater.command()
@click.argument("subject", required=False)
@options("answer format")
@click.option("--markdown", is_flag=True, help="All rules as the document docs/rules.md.")
@click.option(
    "--flow", is_flag=True, help="The stages of a run instead: inputs, grouping key, worker, outputs of each."
)
@click.option("--file", "file", type=PLACE, metavar="FILE", help="How this file is read, and what of it is not.")
@options("log format", "conf")
def explain(
    subject: str | None,
    form: str,
    markdown: bool,
    flow: bool,
    file: Place | None,
    log_format: str | None,
    conf: Path | None,
) -> ExitCode:
    """Explain a rule, an incident kind, an exception, a log line in quotes, or lines on stdin (-); alone list rules."""
    from highwater.jobs import explain as explained

    if file is not None:
        _check_present([file])
        config = load_config(conf, {"ingest.log_format": log_format}).ingest
        return explained.explain_reading(RichConsole(), file, config)
    if flow:
        return explained.explain_flow(RichConsole())
    if markdown:
        return explained.explain_markdown(RichConsole())
    return explained.explain(RichConsole(), subject, form)


@highwater.command()
@options("lake", "conf")
@click.option("--fetch", "fetches", is_flag=True, help="Download Delta's jars now, for offline use.")
def doctor(lake: Place, conf: Path | None, fetches: bool) -> ExitCode:
    """Check this machine: Java, packages, jars, disk, memory. Prints everything that is wrong."""
    from highwater.jobs.doctor import doctor as examine

    return examine(conf, RichConsole(), lake, fetches)


@highwater.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> ExitCode:
    """Print the script that completes verbs and options in SHELL; put it where the shell starts."""
    return _print_document(completion_of(shell, highwater))


@highwater.group(cls=Verbs)
def airflow() -> None:
    """DAGs for Airflow 2.11 and 3."""


@airflow.command()
@click.argument("folder", metavar="DAGS_FOLDER", type=click.Path(path_type=Path))
def install(folder: Path) -> ExitCode:
    """Put the DAGs into DAGS_FOLDER, Airflow's folder of DAGs."""
    from highwater.jobs.airflow import install as put

    return put(RichConsole(), folder)


for _verb in VERBS:
    highwater.add_command(_verb)


def _open_result(opens: bool, out: Place, make: Callable[[], ExitCode]) -> ExitCode:
    """Run `make`, which writes a report, then open the page if `opens` is True."""
    from highwater.jobs.page import open_page, require_local

    if opens:
        require_local(out)
    code = make()
    if opens:
        open_page(RichConsole(), out)
    return code


def _print_document(document: str) -> ExitCode:
    RichConsole().result(document.rstrip("\n"))
    return ExitCode.CLEAN


def _load_config(conf: Path | None, master: str | None = None) -> Config:
    return check_config(conf, {"session.master": master})


def _run(
    *,
    conf: Path | None,
    master: str | None,
    cluster_name: str | None = None,
    log_format: str | None = None,
    redact: bool = False,
    redact_key_file: Path | None = None,
    is_verbose: bool = False,
    sections: tuple[str, ...] = (),
    localizer: Localizer | None = None,
    **given: Any,
) -> Any:
    """Return the input of a step. Options that need no conversion have the names of its fields."""
    from highwater.jobs.steps import Run

    if redact_key_file is not None and not redact:
        raise click.UsageError("--redact-key-file is for --redact")
    if (sections or is_verbose) and given.get("form", "text") != "text":
        raise click.UsageError("--verbose and --section are for --format text")
    key = read_redaction_key(redact_key_file) if redact else None
    config = check_config(
        conf, {"session.master": master, "ingest.cluster": cluster_name, "ingest.log_format": log_format}
    )
    console = RichConsole(localizer=localizer)
    return Run(config, console, redact_key=key, sections=SECTION_NAMES if is_verbose else sections, **given)


def _check_present(logs: Sequence[Place]) -> tuple[Place, ...]:
    """Return the logs, after a check that they can be read, before Spark starts."""
    for place in logs:
        store = store_of(place)
        if not store.is_there(place):
            raise InputError(place, "there is no such file or folder", "give the folder that holds the brokers' logs")
        if not store.can_read(place):
            raise InputError(place, "cannot be read", "check the permissions of it and of its folders")
    return tuple(logs)


def run(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code. Every exception is handled here."""
    try:
        # Not click's own main(): it ends a broken pipe with 1, which would read as "violated".
        with highwater.make_context("highwater", list(arguments)) as context:
            code = highwater.invoke(context)
        sys.stdout.flush()
        return int(code or ExitCode.CLEAN)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        complain_of_use(error, _complain)
        return ExitCode.USAGE
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        leave_stdout()
        return ExitCode.BROKEN_PIPE
    except HighwaterError as error:
        _complain(str(error))
        return error.exit_code
    except OSError as error:
        if isinstance(error.filename, str) and isinstance(place_of(error.filename), Uri):
            remedy = "check its name, and the credentials and the endpoint in the environment"
        elif error.errno in _REMEDIES:
            remedy = _REMEDIES[error.errno]
        else:
            return _get_machine_code(error)
        _complain(f"{_get_file(error)}: {error.strerror}; {remedy}")
        return ExitCode.USAGE
    except Exception as error:
        return _get_machine_code(error)


#: What a user can do about files that the system refuses.
_REMEDIES: Final = {
    errno.EACCES: "check the permissions of it and of its folders",
    errno.EPERM: "check who owns it",
    errno.EROFS: "choose a place that can be written",
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
}


def _get_file(error: OSError) -> str:
    """Return the file that could not be read or written. Return the name of the output if the error names no file."""
    if error.filename is not None:
        return str(error.filename)
    leave_stdout()
    return "stdout"


def _get_machine_code(error: Exception) -> int:
    """Print the error of a process limit, which may be reached anywhere, or of a defect. Return the exit code."""
    from highwater.pipelines.storage.machine_faults import limit_fault

    problem = limit_fault(error, is_set=True)
    if problem is None:
        return _report_internal(error)
    _complain(str(problem))
    return problem.exit_code


def _report_internal(error: Exception) -> ExitCode:
    text = str(error).strip() or "no message"
    hint = "" if _is_debugging() else f" (set {DEBUG_VARIABLE}=1 to see where)"
    _complain(f"internal error: {type(error).__name__}: {text.splitlines()[0]}{hint}")
    return ExitCode.INTERNAL


def _complain(text: str) -> None:
    """Print one line on stderr, after the traceback in debug mode."""
    if _is_debugging():
        traceback.print_exc()
    click.echo(f"highwater: {escape_text(' '.join(text.split()))}", err=True)


def _is_debugging() -> bool:
    return os.environ.get(DEBUG_VARIABLE) == "1"


def main() -> None:
    """Run the command as a console script."""
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        complete(highwater, instruction)
    open_closed()
    gc.set_threshold(_GC_THRESHOLD)
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
