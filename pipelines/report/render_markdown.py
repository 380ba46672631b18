"""The report as Markdown. The template ``templates/report.md.j2`` defines content and order.

Logs are hostile input: every value that a template prints is escaped, unless this module formats it as a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from highwater.pipelines.base import plain
from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.report.classes import WORDS
from highwater.pipelines.report.correctness import derive_rule_state, place_of
from highwater.pipelines.report.figures import PHASES, SPLIT
from highwater.pipelines.report.happened import (
    describe_report,
    describe_verdict,
    make_verdict_sentence,
    show_bug,
    show_window,
    summarize_incidents,
)
from highwater.pipelines.report.model import Report
from highwater.pipelines.report.summary import choose_most_useful, list_costs

#: Input files listed; report.json has all.
INPUTS_MAX = 100
#: Findings listed of each severity; report.json has more.
FINDINGS_MAX = 100

#: Characters of the sentence about an incident, at most.
SENTENCE_MAX = 1200

HEADER_LABELS = {
    "request_queue": "Request queue",
    "local": "Request handler (local)",
    "remote": "Waiting (remote)",
    "throttle": "Throttled by a quota",
    "response_queue": "Response queue",
    "send": "Sending",
    "unaccounted": "Unaccounted",
}
#: The others are requests of one API, and have its name.
KIND_LABELS = {
    "produce_acks_all": "Produce, acks=all",
    "produce_acks_1": "Produce, other acks",
    "fetch_follower": "Fetch of followers",
    "fetch_consumer": "Fetch of consumers",
}
SPLIT_LABELS = {
    "wait_for_fetch": "(1) Waiting for the follower's next fetch",
    "carry": "(2) The fetch that carried the records to the follower",
    "follower": "(3) The follower's append, until its next fetch",
    "closing_fetch": "(4) Follower's next fetch queued and handled",
    "completion": "(5) Response sent",
    "isr_change": "Instead of (1) to (4): waiting for the ISR change",
}


class _Formatted(str):
    """A number that this module formatted. It needs no escaping."""

    __slots__ = ()


def render_markdown(report: Report) -> str:
    """Return the report as one Markdown document."""
    produce, latency = report.operations.produce, report.latency
    keys = {key: None for broker in report.brokers for key in broker.config}
    template = _make_environment().get_template("report.md.j2")
    text = template.render(
        report=report,
        produce=produce,
        fetch=report.operations.fetch,
        coordinator=report.operations.coordinator,
        configured=sorted(keys),
        tallies=(
            ("Cause of completion", produce.by_cause),
            ("Reason of being late", produce.late_reasons),
            ("Reason of being unobservable", produce.unobservable_reasons),
            ("Signature of a known bug", produce.known_bugs),
        ),
        kinds=[(KIND_LABELS.get(name, name.upper()), kind) for name, kind in latency.by_kind.items()],
        header_phases=[(name, HEADER_LABELS[name]) for name in PHASES],
        split_phases=[(name, SPLIT_LABELS[name]) for name in SPLIT],
        sections=(
            ("Violations", "Broken Kafka guarantees.", report.violations),
            ("Undecided cases", "These logs do not decide them: each may be a violation.", report.open_cases),
            ("Observations", "Allowed by Kafka, worth knowing.", report.observations),
        ),
        verdict=make_verdict_sentence(report),
        about=", ".join(describe_report(report)),
        verdict_words=describe_verdict(report),
        words=WORDS,
        best=choose_most_useful(report.coverage),
        story=summarize_incidents(report),
        window=show_window,
        rule_state=derive_rule_state,
        costs=list_costs,
        bug=show_bug,
        inputs_max=INPUTS_MAX,
        findings_max=FINDINGS_MAX,
    )
    # Parts that are absent leave empty lines behind, or none before a heading; values have no line ends.
    return re.sub(r"\n{3,}", "\n\n", text.replace("\n## ", "\n\n## ")).rstrip("\n") + "\n"


@cache
def _make_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=False,  # this is not HTML: finalize escapes everything, for Markdown
        finalize=_write_value,
        undefined=StrictUndefined,
    )
    formats: dict[str, Callable[..., str]] = {
        "count": plain.count,
        "ms": plain.ms,
        "share": lambda value: plain.share(value).replace("<", "&lt;").replace(">", "&gt;"),
        "broker": lambda broker_id: "unknown" if broker_id == UNKNOWN_BROKER else str(broker_id),
    }
    environment.filters["dash"] = _show_dash
    environment.filters["place"] = place_of
    environment.filters["long"] = lambda text: _Formatted(plain.markdown(text, SENTENCE_MAX))
    for name, form in formats.items():
        environment.filters[name] = _wrap_form(form)
    return environment


def _wrap_form(form: Callable[..., str]) -> Callable[..., _Formatted]:
    return lambda value: _Formatted(form(value))


def _show_dash(value: object) -> object:
    """Return a dash for an empty value. Other values are returned as they are, and escaped later."""
    return _Formatted("-") if value is None or value == "" else value


def _write_value(value: object) -> str:
    return value if isinstance(value, _Formatted) else plain.markdown(value)
