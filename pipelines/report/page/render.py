"""The page: a shell that Jinja escapes, the report as data that no parser takes for markup, and scripts of its own.

Logs are hostile input. What comes from them is either escaped by Jinja here, or set as text by the scripts; the page's
policy lets nothing run or be fetched but the one script and the one style sheet within it, named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipelines.base import plain
from pipelines.report.classes import WORDS
from pipelines.report.correctness import rule_state
from pipelines.report.detail import NO_DETAIL
from pipelines.report.happened import bug, commands, window
from pipelines.report.model import Report
from pipelines.report.page.first_screen import anchor, first_screen
from pipelines.report.ticket import ticket_text

#: Findings of each severity on the page, and characters of all their lines; ``report.json`` has more.
FINDINGS_MAX = 300
EVIDENCE_CHARS_MAX = 2_000_000
LINE_CHARS_MAX = 2500
INPUTS_MAX = 500

_SCRIPTS = ("dom.js", "cubes.js", "table.js", "chart.js", "waiting.js", "stories.js", "logs.js", "main.js")
_ISSUE = re.compile(r"\b(KAFKA-\d{1,6})\b", re.ASCII)
_ESCAPED = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def render_html(report: Report) -> str:
    """The report as one page, with nothing outside it."""
    script, style = _text(_SCRIPTS), _text(("page.css",))
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            first=first_screen(report),
            ticket=ticket_text(report),
            words=WORDS,
            window=window,
            bug=bug,
            anchor=anchor,
            # Our own, and no value of a report goes into them.
            script=Markup(script),
            style=Markup(style),
            policy=_policy(script, style),
            data=Markup(embedded(page_data(report))),
        )
    )


def linked(text: str) -> Markup:
    """Text with its issues of Kafka as links; what is clicked on is all that the page ever asks for."""
    link = r'<a href="https://issues.apache.org/jira/browse/\1" rel="noreferrer noopener" target="_blank">\1</a>'
    return Markup(_ISSUE.sub(link, str(escape(text))))


def embedded(value: object) -> str:
    """JSON that may stand in a script element: the same value, in which nothing is markup."""
    text = orjson.dumps(value).decode()
    for char, number in _ESCAPED.items():
        text = text.replace(char, number)
    return text


def page_data(report: Report) -> dict[str, Any]:
    """What the scripts read: the report, cut where the page has limits, each cut said."""
    data = report.model_dump(mode="json")
    budget = EVIDENCE_CHARS_MAX
    left_out = 0
    for severity in ("violations", "open_cases", "observations"):
        left_out += max(0, len(data[severity]) - FINDINGS_MAX)
        data[severity] = data[severity][:FINDINGS_MAX]
        for finding in data[severity]:
            budget = _cut(finding, budget)
    inputs = data["provenance"]["inputs"]
    data["provenance"]["inputs"] = inputs[:INPUTS_MAX]
    for rule, shown in zip(report.rules, data["rules"], strict=True):
        shown["state"] = rule_state(rule, report.coverage.not_checkable)
    for incident, shown in zip(report.incidents, data["incidents"], strict=True):
        shown["word"] = WORDS[incident.class_]
        shown["commands"] = commands(incident, bool(report.operations.produce.observed))
    data["page"] = {"findings_left_out": left_out, "inputs_left_out": max(0, len(inputs) - INPUTS_MAX)}
    data["detail"] = (report.detail or NO_DETAIL).model_dump(mode="json")
    return data


def _cut(finding: dict[str, Any], budget: int) -> int:
    """Shorten lines, and leave them out once all findings have used up what there is; gives what is left of it."""
    lines = []
    for line in finding["evidence"]:
        if len(line["text"]) > LINE_CHARS_MAX:
            line["text"] = f"{line['text'][:LINE_CHARS_MAX]}… ({len(line['text']) - LINE_CHARS_MAX} more characters)"
        if len(line["text"]) <= budget:
            budget -= len(line["text"])
            lines.append(line)
    finding["evidence_left_out"] = len(finding["evidence"]) - len(lines)
    finding["evidence"] = lines
    for other in finding["implied"]:
        budget = _cut(other, budget)
    return budget


def _policy(script: str, style: str) -> str:
    """Nothing from anywhere, nothing but these two runs."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _text(names: Iterable[str]) -> str:
    folder = files(__package__)
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__.rpartition(".")[0]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    # Three times the length of other texts: a command is no use if it is cut.
    environment.filters["shown"] = lambda text: plain.plain(text, 3 * plain.TEXT_MAX)
    environment.filters["linked"] = lambda text: linked(plain.plain(text, 3 * plain.TEXT_MAX))
    environment.filters["count"] = plain.count
    environment.filters["share"] = plain.share
    return environment
