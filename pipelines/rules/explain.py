"""Explanations of rules for readers: one rule as plain text, all of them as Markdown. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import orjson

from highwater.pipelines.base.plain import PROSE_WIDTH
from highwater.pipelines.rules.known_bugs import KNOWN_BUGS, KnownBug
from highwater.pipelines.rules.rule import WITNESSES_MIN, Rule
from highwater.pipelines.rules.texts import WAYS

WIDTH = 100
#: Witnesses that a violation needs.
WITNESSES = (
    f"{WITNESSES_MIN} that are independent: lines of two brokers, or of two kinds; a line and a file; two requests "
    "with their responses. With fewer it stays undecided: one misread line proves nothing."
)
#: Findings of real corpora, made by ``python -m tests.bench.rule_examples``.
EXAMPLES = "examples.json"


@cache
def examples() -> Mapping[str, Mapping[str, Any]]:
    """Return by rule one example from a real cluster: corpus, message, and its lines as file, line number and text."""
    loaded: Mapping[str, Mapping[str, Any]] = orjson.loads(files(__package__).joinpath(EXAMPLES).read_bytes())
    return loaded


def explain(rule: Rule) -> str:
    """Return one rule as plain text, as wide as a terminal, and at most 100 columns."""
    return "\n".join(_make_lines(rule))


def _make_lines(rule: Rule) -> Iterator[str]:
    yield rule.rule_id
    facts = _list_facts(rule)
    for name, text in facts[:3]:
        yield ""
        yield from _wrap(f"{name}: ", text)
    yield from ("", "findings:")
    for severity, text in rule.texts.shows:
        yield from _wrap(f"  {severity}: ", text)
    bugs = known_bugs(rule)
    if bugs:
        yield from ("", "known bugs with this signature:")
        for bug in bugs:
            yield from _wrap(f"  {bug.jira}: ", f"{bug.title} ({_format_affected(bug)})")
    yield from ("", "how it is proven")
    for name, text in facts[3:]:
        yield from _wrap(f"  {name}: ", text)
    yield from ("", "looks alike and is legal:")
    for way, reason in rule.texts.silent.items():
        yield from _wrap(f"  {way}: ", reason)
    yield ""
    yield from _show_example(rule, PROSE_WIDTH)


def _list_facts(rule: Rule) -> Sequence[tuple[str, str]]:
    """Return (heading, text) for the sections of a rule's description: impact first, proof last."""
    texts = rule.texts
    return (
        ("what it means for your data", texts.data),
        ("what to do now", texts.act),
        ("guarantee", texts.guarantee),
        ("source", texts.source),
        ("versions", texts.versions),
        ("evidence", f"{texts.tier}: {texts.needs}"),
        ("why missing lines cannot make it", texts.proof),
        ("witnesses", WITNESSES),
    )


def known_bugs(rule: Rule) -> tuple[KnownBug, ...]:
    """Return the known Kafka bugs, of any version, whose effects the rule finds. In table order."""
    return tuple(bug for bug in KNOWN_BUGS if rule.rule_id in bug.rule_ids)


def _format_affected(bug: KnownBug) -> str:
    since = f"since {_format_version(bug.broken_from)}, " if bug.broken_from else ""
    fixed = ", ".join(map(_format_version, bug.fixed_in))
    return f"{since}fixed in {fixed}" if fixed else f"{since}not fixed in any version looked at"


def _format_version(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _show_example(rule: Rule, width: int = WIDTH) -> Iterator[str]:
    example = examples().get(rule.rule_id)
    if example is None:
        yield "example: none of the corpora at hand breaks it"
        return
    yield f"example, from the corpus {example['corpus']} ({example['severity']}):"
    yield from textwrap.wrap(example["message"], width, initial_indent="  ", subsequent_indent="  ")
    for line in example["lines"]:
        yield f"  {line['file']}:{line['line_no']}"
        yield from textwrap.wrap(line["text"], width, initial_indent="    ", subsequent_indent="    ", max_lines=3)


def _wrap(head: str, text: str) -> Iterator[str]:
    indent = " " * (len(head) - len(head.lstrip()) + 2)
    yield from textwrap.wrap(head + text, PROSE_WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def rules_markdown(rules: Sequence[Rule]) -> str:
    """Return all rules as the document docs/rules.md."""
    return "\n".join(_make_document(rules)) + "\n"


_HEAD = (
    "# Rules",
    "",
    "Made from the rules themselves by `highwater explain --markdown`; a test compares the two.",
    "",
    "A rule's verdict is *violated*, *inconclusive* or *clean*; it is called *not checkable* where its "
    "evidence is not in "
    "the logs, and *not applicable* where the evidence is there and shows nothing that the rule is "
    "about. Missing lines can "
    "hide a violation or leave a case open, but never cause a false one.",
    "",
    "| rule | tier | guarantee |",
    "|---|---|---|",
)
_WAYS = (
    "",
    "## Legal ways",
    "",
    "What Kafka does by itself, or on request, that looks like a fault. Each rule says why it is silent then.",
    "",
    "| way | what happens | source |",
    "|---|---|---|",
)


def _make_document(rules: Sequence[Rule]) -> Iterator[str]:
    yield from _HEAD
    for rule in rules:
        yield f"| [{rule.rule_id}](#{rule.rule_id}) | {rule.texts.tier} | {rule.texts.guarantee} |"
    yield from _WAYS
    for name, way in WAYS.items():
        yield f"| {name} | {way.what} | {way.source} |"
    for rule in rules:
        yield from ("", f"## {rule.rule_id}")
        for name, text in _list_facts(rule):
            yield from ("", f"**{name[0].upper()}{name[1:]}.** {text}")
        yield ""
        for severity, text in rule.texts.shows:
            yield f"- *{severity}*: {text}"
        yield from ("", "Looks alike and is legal:", "")
        for name, reason in rule.texts.silent.items():
            yield f"- [{name}](#legal-ways): {reason}"
        bugs = known_bugs(rule)
        if bugs:
            yield from ("", "Known bugs with this signature:", "")
            for bug in bugs:
                yield f"- {bug.jira}: {bug.title} ({_format_affected(bug)})"
        yield from ("", "```", *_show_example(rule), "```")
