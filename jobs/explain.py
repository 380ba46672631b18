"""``highwater explain``: a rule, a kind of incident, an exception or log lines, and the stages of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from io import BytesIO
from typing import BinaryIO

import orjson

from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base.config import IngestConfig
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.plain import PROSE_WIDTH
from highwater.pipelines.messages.atlas import Message
from highwater.pipelines.messages.exceptions import Cause, causes
from highwater.pipelines.messages.explain import RECORD_MAX, explain_lines, format_texts
from highwater.pipelines.storage.place import Place

STDIN = "-"


def explain(console: Console, subject: str | None, form: str = "text") -> ExitCode:
    """Explain a rule, a kind of incident, an exception, a log line, or the lines of stdin.

    Args:
        subject: what to explain. ``-`` reads stdin. None lists all rules.

    Raises:
        InputError: the subject is a single word that names none of these, or stdin is not text.
    """
    if subject is not None and any(sign.isspace() for sign in subject.strip()):
        lines = [subject] if "\n" not in subject else _read_plain_lines(BytesIO(subject.encode()))
        return _explain_text(console, lines, form, is_single=True)
    if subject == STDIN:
        return _explain_text(console, _read_plain_lines(sys.stdin.buffer), form, is_single=False)
    # A log line needs no rule: their modules take half a second to load.
    from highwater.pipelines.rules.explain import explain as explain_rule
    from highwater.pipelines.rules.registry import BY_ID, RULES

    if subject is None:
        width = max(len(rule.rule_id) for rule in RULES)
        for rule in RULES:
            console.prose(f"{rule.rule_id:{width}}  {rule.texts.tier}  {rule.texts.guarantee}", hang=width + 6)
        return ExitCode.CLEAN
    if subject in BY_ID:
        console.result(explain_rule(BY_ID[subject]))
        return ExitCode.CLEAN
    if (cause := _find_exception(subject)) is not None:
        console.prose(f"{subject}\n\nmeaning: {cause.meaning}" + (f"\ndo: {cause.action}" if cause.action else ""))
        return ExitCode.CLEAN
    return _explain_kind(console, subject, [*BY_ID])


def _read_plain_lines(content: BinaryIO) -> Iterator[str]:
    from highwater.pipelines.bronze.explain_file import plain_lines

    try:
        yield from plain_lines(content, RECORD_MAX)
    except ValueError as error:
        raise InputError("stdin", str(error), "expected lines of a log, plain or compressed with gzip") from None


def _find_exception(name: str) -> Cause | None:
    simple = name.rpartition(".")[2]
    named = [cause for cause in causes().values() if simple in cause.classes]
    return min(named, key=lambda cause: bool(cause.texts), default=None)


def _explain_kind(console: Console, name: str, rule_ids: list[str]) -> ExitCode:
    from highwater.pipelines.incidents.kinds import BY_NAME

    if name in BY_NAME:
        kind = BY_NAME[name]
        console.prose(f"{name}\n\nmeaning: {kind.meaning}\nsource: {kind.source}")
        return ExitCode.CLEAN
    exceptions = [simple for cause in causes().values() for simple in cause.classes]
    near = get_close_matches(name, [*rule_ids, *BY_NAME, *exceptions], 3)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    raise InputError(
        name,
        "unknown rule, incident kind or exception",
        f"{guess}expected one of those, a log line in quotes, or - for lines on stdin; see `highwater explain`",
    )


def _find_quiet(record: str) -> tuple[str, Message] | None:
    # Grammars and kinds take most of a second to load. A line at WARN or above needs neither.
    from highwater.pipelines.incidents.quiet_text import find_quiet

    return find_quiet(record)


def _explain_text(console: Console, lines: Iterable[str], form: str, *, is_single: bool) -> ExitCode:
    explained = explain_lines(lines, is_single, find_quiet=_find_quiet)
    if form == "json":
        console.result(orjson.dumps([one.as_json() for one in explained], option=orjson.OPT_INDENT_2).decode())
    elif explained:
        console.result(format_texts(explained, PROSE_WIDTH))
    else:
        console.result("No line at WARN or above, and no other line that the atlas knows.")
    return ExitCode.CLEAN


def explain_markdown(console: Console) -> ExitCode:
    """Print all rules as the document docs/rules.md."""
    from highwater.pipelines.rules.explain import rules_markdown
    from highwater.pipelines.rules.registry import RULES

    console.result(rules_markdown(RULES).rstrip("\n"))
    return ExitCode.CLEAN


def explain_reading(console: Console, file: Place, config: IngestConfig) -> ExitCode:
    """Print how a file is read.

    Raises:
        InputError: the file cannot be read.
    """
    from highwater.pipelines.bronze import explain_file as reading

    try:
        for name, value in reading.explain_file(str(file), config.timezone, config.record_bytes_max, config.log_format):
            console.prose(f"{name:12}  {value}", hang=14)
    except OSError as error:
        raise InputError(file, f"cannot be read ({error.strerror or error})", "name a log file") from None
    return ExitCode.CLEAN


def explain_flow(console: Console) -> ExitCode:
    """Print the stages of a run, with a diagram first."""
    from highwater.schemas.flow import describe_steps, format_figure

    console.result(format_figure())
    console.result("")
    console.result(describe_steps())
    return ExitCode.CLEAN
