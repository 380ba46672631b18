"""What happened as plain text for a ticket or a chat. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from highwater.pipelines.base.plain import number as counted
from highwater.pipelines.base.plain import plain
from highwater.pipelines.report.classes import WORDS
from highwater.pipelines.report.happened import (
    EFFECTS_MAX,
    WHOLE_MAX,
    Chain,
    describe_report,
    describe_verdict,
    get_account,
    make_verdict_sentence,
    show_window,
    summarize_incidents,
    take_sentence,
)
from highwater.pipelines.report.model import Report

#: Characters of a line. A ticket takes long lines.
_LINE_MAX = 1200


def write_ticket(report: Report) -> str:
    """Return headline, verdict, and the worst chains with their next actions, as plain text for a ticket."""
    return "\n".join(plain(line, _LINE_MAX) for line in _write_lines(report))


def _write_lines(report: Report) -> Iterator[str]:
    yield from report.headline.text
    yield ""
    yield f"Kafka replication audit: {describe_verdict(report)}"
    yield ", ".join(describe_report(report))
    yield make_verdict_sentence(report)
    summary = summarize_incidents(report)
    for number, (chain, action) in enumerate(zip(summary.chains, summary.actions, strict=True), 1):
        if number <= WHOLE_MAX:
            yield ""
            yield from _write_chain(number, chain, action)
        else:
            yield f"{number}. {WORDS[chain.harm]}, {show_window(chain)} UTC: {take_sentence(chain.head.sentence)}"
    if summary.left_out:
        yield ""
        yield f"{counted(len(summary.left_out), 'more incident')}: report.html, or `highwater incidents`."


def _write_chain(number: int, chain: Chain, action: str) -> Iterator[str]:
    yield f"{number}. {WORDS[chain.harm]}, {show_window(chain)} UTC: {get_account(chain.head)}"
    for cause in chain.because:
        yield f"   because: {get_account(cause)}"
    for effect in chain.also[:EFFECTS_MAX]:
        yield f"   also: {get_account(effect)}"
    yield f"   What to do: {action}"
