"""Output of ``highwater`` and ``--help``: verbs by purpose, and examples that a test runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

import click

from highwater.jobs.exit_codes import EXIT_CODES_HELP
from highwater.schemas.package_data import read_toml

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

#: Of each verb.
EXAMPLES: dict[str, list[str]] = read_toml(__package__ or "", "examples.toml")


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
    """The command. Its help groups verbs by purpose. Without a verb, it prints the first steps."""

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
    """Print the error of a command line in one sentence, and where to find help.

    A group of verbs without a verb prints its verbs.
    """
    if isinstance(error, NoVerb | click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    said = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    complain(f"{said[:1].lower()}{said[1:]}; see `{context.command_path if context else 'highwater'} --help`")


def generate_completion(shell: str, group: click.Group) -> str:
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
    """Write commands with the first sentence of their help, not shortened."""
    with formatter.section(title):
        formatter.write_dl([(verb.name or "", verb.get_short_help_str(limit=1000)) for verb in verbs])


def _write_examples(context: click.Context, formatter: click.HelpFormatter) -> None:
    verb = context.command_path.removeprefix("highwater ")
    with formatter.section("Examples"):
        for example in EXAMPLES[verb]:
            formatter.write(f"{'':{formatter.current_indent}}{example}\n")
