"""Output of ``highwater`` and ``--help``: verbs by purpose, and examples that a test runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

import click

from highwater.jobs.exit_codes import EXIT_CODES_HELP

#: What `highwater` alone prints.
FIRST_STEPS = """\
highwater reads Kafka brokers' logs: what was lost, who waited for whom, and why
  highwater demo           audits a bundled log: an acknowledged record is lost
  highwater audit LOGS     audits a folder of logs
  highwater incidents      what happened, the most harmful first
  highwater trace ...      a request, write, partition or finding, and its lines
  highwater report --open  the page; also of some hours, or in another format
  highwater sql "..."      your own question; highwater tables lists of what
highwater --help lists all verbs, highwater VERB --help has examples of one"""

#: Verbs in the order in which one needs them.
GROUPS: dict[str, tuple[str, ...]] = {
    "Begin": ("demo", "audit", "watch", "doctor", "completion"),
    "What happened": ("incidents", "report", "trace", "survivors", "compare", "whatif", "explain"),
    "Tables and files": ("tables", "sql", "metrics", "bundle"),
    "One step at a time, for a scheduler": ("ingest", "parse", "quality", "replay", "gate", "airflow"),
    "Look after a lake": ("maintain", "expire"),
}

#: Two of each verb. They work as printed, in this order, where `logs` is the folder of the bundled logs.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "demo": ("highwater demo", "highwater demo --no-open --folder demo"),
    "audit": ("highwater audit logs", "highwater audit logs --from 2026-11-20T15:39 --until 2026-11-20T15:41"),
    "watch": (
        "highwater watch logs --openmetrics highwater.prom --rounds 1",
        "highwater watch logs --command 'logger -t highwater' --severity critical --rounds 1",
    ),
    "doctor": ("highwater doctor", "highwater doctor --fetch"),
    "completion": ('eval "$(highwater completion bash)"', "highwater completion fish | source"),
    "incidents": ("highwater incidents", "highwater incidents --broker 1 --from 2026-11-20T15:39:50"),
    "report": ("highwater report --open", "highwater report --format pager"),
    "trace": ("highwater trace partition ledger-0", "highwater trace finding committed-data-lost"),
    "trace request": (
        "highwater trace request --broker 1 --correlation-id 120 --connection 39812",
        "highwater trace request --broker 1 --correlation-id 120 --connection 39812 --format json",
    ),
    "trace write": ("highwater trace write ledger-0", "highwater trace write ledger --until 2026-11-20T15:39:45"),
    "trace partition": (
        "highwater trace partition ledger-0",
        "highwater trace partition ledger-1 --from 2026-11-20T15:39:50",
    ),
    "trace finding": (
        "highwater trace finding committed-data-lost",
        "highwater trace finding committed-data-lost --full",
    ),
    "survivors": ("highwater survivors ledger-0", "highwater survivors ledger-0 --at 2026-11-20T15:40:30"),
    "compare": (
        "highwater compare 2026-11-20T15:39..2026-11-20T15:40 2026-11-20T15:40..2026-11-20T15:41:30",
        "highwater compare ..2026-11-20T15:40 2026-11-20T15:40..",
    ),
    "whatif": ("highwater whatif", "highwater whatif --until 2026-11-20T15:40"),
    "explain": (
        "highwater explain committed-data-lost",
        "highwater explain OutOfMemoryError",
    ),
    "tables": ("highwater tables", "highwater tables gold.violations"),
    "sql": ("highwater sql", 'highwater sql "select rule_id, topic, partition, offset_start from findings"'),
    "metrics": ("highwater metrics", "highwater metrics --format openmetrics --out metrics"),
    "bundle": ("highwater bundle", "highwater bundle --redact --out redacted.zip"),
    "ingest": ("highwater ingest logs", "highwater ingest logs/broker-1 logs/broker-2"),
    "parse": ("highwater parse", "highwater parse --lake highwater-lake"),
    "quality": ("highwater quality", "highwater quality --docs data-docs"),
    "replay": ("highwater replay", "highwater replay --master 'local[2]'"),
    "gate": (
        "highwater gate --fail-on violated",
        "highwater gate --from 2026-11-20T15:00 --until 2026-11-20T16:00 --stale-after 2",
    ),
    "airflow": ("highwater airflow install dags", "highwater airflow install ~/airflow/dags"),
    "airflow install": ("highwater airflow install dags", "highwater airflow install ~/airflow/dags"),
    "maintain": ("highwater maintain --dry-run", "highwater maintain --retention-hours 48"),
    "expire": ("highwater expire --keep 90d --dry-run", "highwater expire --keep 90d"),
}


class Verb(click.Command):
    """A verb whose help ends with its examples."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(context, formatter)


class Verbs(click.Group):
    """A verb with verbs of its own."""

    command_class = Verb

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        _write_verbs(formatter, "Commands", self.commands.values())

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        _write_examples(context, formatter)


class Highwater(click.Group):
    """The command: verbs by what people want of them, in whole sentences; alone, what to do first."""

    command_class = Verb

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args and not context.resilient_parsing:
            raise NoVerb(context)
        return super().parse_args(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in GROUPS.items():
            _write_verbs(formatter, title, map(self.commands.__getitem__, verbs))

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(EXIT_CODES_HELP)


class NoVerb(click.UsageError):
    """Error of a call without a verb."""

    def __init__(self, context: click.Context) -> None:
        super().__init__("no verb", context)

    def show(self, file: object = None) -> None:
        """Print the first steps instead of an error."""
        click.echo(FIRST_STEPS, err=True)


def complain_of_use(error: click.ClickException, complain: Callable[[str], None]) -> None:
    """Show the error of a command line in one sentence, and where to find help. Verbs alone list their verbs."""
    if isinstance(error, NoVerb | click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    said = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    complain(f"{said[:1].lower()}{said[1:]}; see `{context.command_path if context else 'highwater'} --help`")


def completion(shell: str, group: click.Group) -> str:
    """Return the script that completes verbs and options in a shell."""
    from click.shell_completion import get_completion_class

    of_shell = get_completion_class(shell)
    assert of_shell is not None
    return of_shell(group, {}, "highwater", COMPLETE_VARIABLE).source()


def complete(group: click.Group, instruction: str) -> NoReturn:
    """Answer a shell that completes a line, and end."""
    from click.shell_completion import shell_complete

    raise SystemExit(shell_complete(group, {}, "highwater", COMPLETE_VARIABLE, instruction))


#: With it a shell asks for completions.
COMPLETE_VARIABLE = "_HIGHWATER_COMPLETE"


def _write_verbs(formatter: click.HelpFormatter, title: str, verbs: Iterable[click.Command]) -> None:
    """Return verbs with their first sentence, whole."""
    with formatter.section(title):
        formatter.write_dl([(verb.name or "", verb.get_short_help_str(limit=1000)) for verb in verbs])


def _write_examples(context: click.Context, formatter: click.HelpFormatter) -> None:
    verb = context.command_path.removeprefix("highwater ")
    with formatter.section("Examples"):
        for example in EXAMPLES[verb]:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")
