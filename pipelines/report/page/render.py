"""The page: a shell that Jinja escapes, the report as data that no parser takes for markup, and scripts of its own.

Logs are hostile input. What comes from them is either escaped by Jinja here, or set as text by the scripts; the page's
policy lets nothing run or be fetched but the one script and the one style sheet within it, named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from shlex import quote as shell_quoted
from typing import Any
from urllib.parse import quote

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from highwater.pipelines.base import plain
from highwater.pipelines.base.plain import count
from highwater.pipelines.base.recurrence import BY_WEIGHT
from highwater.pipelines.incidents.incident import releases_of
from highwater.pipelines.report.classes import WORDS
from highwater.pipelines.report.correctness import count_rule_states, derive_rule_state
from highwater.pipelines.report.detail import NO_DETAIL
from highwater.pipelines.report.happened import (
    IncidentSummary,
    describe_report,
    describe_verdict,
    has_requests,
    list_commands,
    make_verdict_sentence,
    show_bug,
    show_window,
    sort_by_harm,
    summarize_incidents,
)
from highwater.pipelines.report.lines import COMMAND
from highwater.pipelines.report.model import INCONCLUSIVE, ClusterVerdict, Finding, Report
from highwater.pipelines.report.summary import list_gaps
from highwater.pipelines.report.ticket import write_ticket
from highwater.pipelines.report.tiers import DELAYED_OPERATIONS, FINER_TIMES, TIER_WORDS

#: Entries of each list.
SHOWN_MAX = 6


@dataclass(frozen=True)
class Item:
    """One line: a bold lead and a text."""

    lead: str
    text: str = ""


@dataclass(frozen=True)
class FirstScreen:
    """The first screen of the page, as text."""

    verdict: str
    headline: str
    about: str
    when: str
    made: str
    clusters: tuple[Item, ...]
    tier: str
    tiers: str
    rules: str
    gaps: tuple[Item, ...]
    story: IncidentSummary
    next: tuple[Item, ...]


def make_first_screen(report: Report) -> FirstScreen:
    """Return the first screen of a report."""
    first = min((broker.first_time for broker in report.brokers if broker.first_time), default=None)
    made = report.detail.cost.made if report.detail else None
    tiers = Counter(report.tier_by_broker.values())
    return FirstScreen(
        verdict=describe_verdict(report),
        headline=make_verdict_sentence(report),
        about=", ".join(describe_report(report)),
        when=first[:16].replace("T", " ") if first else "",
        made=made[:19].replace("T", " ") if made else "",
        clusters=tuple(_list_clusters(report)),
        tier=TIER_WORDS[report.tier],
        tiers=", ".join(f"{number} at {tier}" for tier, number in sorted(tiers.items())) if len(tiers) > 1 else "",
        rules=_describe_rules(report),
        gaps=tuple(Item(what, needs) for what, needs in list_gaps(report.coverage))[:SHOWN_MAX],
        story=summarize_incidents(report),
        next=tuple(_list_next(report))[:SHOWN_MAX],
    )


def make_anchor(kind: str, name: str) -> str:
    """Return the id of an element of the page. It equals the id that ``dom.js`` makes."""
    quoted = quote(name.encode("utf-8", "replace"), safe="!'()*~")
    return f"{kind}-" + "".join(char if char.isalnum() or char in "._-" else f".{ord(char):x}" for char in quoted)


def _describe_rules(report: Report) -> str:
    if not report.rules:
        return "No rule of correctness was run."
    states = count_rule_states(report)
    counts = [f"{number} {state}" for state, number in states.items()]
    judged = sum(rule.checked for rule in report.rules)
    of_all = ", of all logs read" if report.window.since or report.window.until else ""
    return f"{len(report.rules)} rules{of_all}: {', '.join(counts)}; {count(judged)} facts judged."


def _list_clusters(report: Report) -> Iterator[Item]:
    """Yield the clusters of a report with several, the cluster with most to report first."""
    if len(report.clusters) < 2:
        return
    parts = _sort_worst_first(report.clusters)
    for part in parts[:SHOWN_MAX]:
        reasons = f": {'; '.join(part.inconclusive[:2])}" if part.inconclusive else ""
        others = len(part.inconclusive) - 2
        more = f"; and {others} more reason{'s' if others > 1 else ''}" if others > 0 else ""
        yield Item(f"{part.cluster_id}: {part.verdict}, {part.tier}", f"{reasons}{more}".lstrip(": "))
    if len(parts) > SHOWN_MAX:
        yield Item(f"{count(len(parts) - SHOWN_MAX)} more clusters", "in report.json")


def _sort_worst_first(parts: Sequence[ClusterVerdict]) -> list[ClusterVerdict]:
    return sorted(parts, key=lambda part: -BY_WEIGHT.index(part.verdict))


def _group_by_rule(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule_id].append(finding)
    return by_rule


# --------------------------------------------------------------------- what next


def _list_next(report: Report) -> Iterator[Item]:
    if len(report.clusters) > 1:
        name = shell_quoted(_sort_worst_first(report.clusters)[0].cluster_id)
        yield Item("This page adds clusters up. One cluster by itself:", f"highwater report --cluster {name}")
    for rule_id in list(_group_by_rule((*report.violations, *report.open_cases)))[:2]:
        yield Item("What the rule is, and how it is proven:", f"highwater explain {rule_id}")
    bugs = {finding.known_bug for finding in report.violations if finding.known_bug}
    for known in sorted({*bugs, *report.operations.produce.known_bugs})[:2]:
        fixed = releases_of(known)
        yield Item(f"{known} is a known bug of the running version{f', fixed in {fixed}' if fixed else ''}.")
    for chain in summarize_incidents(report).chains[:1]:
        for command in chain.list_commands(has_requests(report))[:2]:
            yield Item(f"{show_window(chain)} UTC, in figures:", command)
    gaps = [gap for gap in report.coverage.not_checkable if gap.needs != FINER_TIMES]
    if len(gaps) < len(report.coverage.not_checkable):
        yield Item(f"For waits and what was late, {FINER_TIMES}.")
    if any(gap.rule_id == DELAYED_OPERATIONS for gap in gaps):
        yield Item("Log requests on every broker (see what cannot be shown): waits and lost writes need them.")
    elif gaps:
        yield Item("Raise the log levels named above, for what cannot be shown.")
    if report.verdict == INCONCLUSIVE and not report.coverage.not_checkable:
        yield Item("Add the logs that are missing (see the reasons above), and audit again.")
    for rule_id in list(_group_by_rule(report.observations))[:1]:
        yield Item("What the observation means:", f"highwater explain {rule_id}")


#: Findings of each severity on the page, and characters of all their lines; ``report.json`` has more.
FINDINGS_MAX = 300
EVIDENCE_CHARS_MAX = 2_000_000
LINE_CHARS_MAX = 2500
#: Characters of a line of a request's story; `highwater trace request` has all.
STORY_CHARS_MAX = 240
#: Characters of a line of an incident; report.json has all that is stored.
INCIDENT_LINE_CHARS_MAX = 600
INPUTS_MAX = 500

_SCRIPTS = ("dom.js", "cubes.js", "table.js", "chart.js", "waiting.js", "stories.js", "logs.js", "main.js")
_COMMENT = re.compile(r"^ *//.*\n|^ +", re.MULTILINE)
_ISSUE = re.compile(r"\b(KAFKA-\d{1,6})\b", re.ASCII)
_ESCAPED = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def render_html(report: Report) -> str:
    """Return the report as one self-contained HTML page."""
    script, style = _read_text(_SCRIPTS), _read_text(("page.css",))
    return (
        _make_environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            first=make_first_screen(report),
            ticket=write_ticket(report),
            words=WORDS,
            window=show_window,
            bug=show_bug,
            anchor=make_anchor,
            # Our own, and no value of a report goes into them.
            script=Markup(script),
            style=Markup(style),
            policy=_make_policy(script, style),
            data=Markup(encode_value(make_page_data(report))),
        )
    )


def _find_last_command(action: str) -> str:
    """Return the last command of an action. The whole action if it has no command."""
    return [action, *(match[0].rstrip(".,;:") for match in COMMAND.finditer(action))][-1]


def link_text(text: str) -> Markup:
    """Return the text with links to Kafka's issues. Only a click on such a link makes the page load anything."""
    link = r'<a href="https://issues.apache.org/jira/browse/\1" rel="noreferrer noopener" target="_blank">\1</a>'
    return Markup(_ISSUE.sub(link, str(escape(text))))


def encode_value(value: object) -> str:
    """Return JSON for a script element, with markup characters escaped."""
    text = orjson.dumps(value).decode()
    for char, number in _ESCAPED.items():
        text = text.replace(char, number)
    return text


def make_page_data(report: Report) -> dict[str, Any]:
    """Return the data for the page's scripts: the report, truncated to the limits of the page. Cuts are recorded."""
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
        shown["state"] = derive_rule_state(rule, report.coverage.not_checkable)
    places = {id(incident): place for place, incident in enumerate(report.incidents)}
    data["chains"] = [
        {"head": places[id(chain.head)], "parts": [places[id(part)] for part in chain.parts]}
        for chain in sort_by_harm(report.incidents)
    ]
    for incident, shown in zip(report.incidents, data["incidents"], strict=True):
        shown["word"] = WORDS[incident.class_]
        for line in shown["evidence"]:
            del line["byte_length"]
            line["text"] = _shorten(line["text"], INCIDENT_LINE_CHARS_MAX)
        shown["commands"] = list_commands(incident, bool(report.operations.produce.observed))
    data["page"] = {"findings_left_out": left_out, "inputs_left_out": max(0, len(inputs) - INPUTS_MAX)}
    data["detail"] = (report.detail or NO_DETAIL).model_dump(mode="json")
    for request in data["detail"]["cluster"]["stories"]:
        for step in request["steps"]:
            step["text"] = _shorten(step["text"], STORY_CHARS_MAX)
        request["steps"] = [
            {name: value for name, value in step.items() if value is not None} for step in request["steps"]
        ]
    for cells in (data["detail"]["cubes"] or {}).values():
        if isinstance(cells, dict):
            cells.update({name: _number_names(column) for name, column in cells.items() if _is_of_names(column)})
    return data


def _select_known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _is_of_names(column: object) -> bool:
    return isinstance(column, list) and bool(column) and all(isinstance(name, str) for name in column)


def _number_names(column: list[str]) -> dict[str, list[Any]]:
    """Return the distinct names of a column, and the index of each row's name among them."""
    places = {name: place for place, name in enumerate(dict.fromkeys(column))}
    return {"names": list(places), "at": [places[name] for name in column]}


def _shorten(text: str | None, limit: int) -> str | None:
    """Return a log line cut to `limit` characters, with the number of characters left out."""
    if text is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


def _cut(finding: dict[str, Any], budget: int) -> int:
    """Shorten the log lines of a finding to a budget of characters, and return the remaining budget.

    Lines beyond the budget are dropped.
    """
    lines = []
    for line in finding["evidence"]:
        del line["byte_length"]
        line["text"] = _shorten(line["text"], LINE_CHARS_MAX)
        if len(line["text"]) <= budget:
            budget -= len(line["text"])
            lines.append(line)
    finding["evidence_left_out"] = len(finding["evidence"]) - len(lines)
    finding["evidence"] = lines
    for other in finding["implied"]:
        budget = _cut(other, budget)
    return budget


def _make_policy(script: str, style: str) -> str:
    """Return a content security policy that loads nothing and allows these two scripts."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _read_text(names: Iterable[str]) -> str:
    folder = files(__package__)
    return _COMMENT.sub("", "\n".join((folder / name).read_text(encoding="utf-8") for name in names))


@cache
def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__.rpartition(".")[0]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    # Three times the length of other texts: a command that is cut does not run.
    environment.filters["shown"] = lambda text: plain.plain(text, 3 * plain.TEXT_MAX)
    environment.filters["linked"] = lambda text: link_text(plain.plain(text, 3 * plain.TEXT_MAX))
    environment.filters["last_command"] = _find_last_command
    environment.filters["count"] = plain.count
    environment.filters["share"] = plain.share
    return environment
