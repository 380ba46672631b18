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
    about,
    account_of,
    first_sentence,
    story,
    verdict_sentence,
    verdict_words,
    window,
)
from highwater.pipelines.report.model import Report

#: Characters of a line. A ticket takes long lines.
_LINE_MAX = 1200


def ticket_text(report: Report) -> str:
    """Return headline, verdict, and the worst chains with their next actions, as plain text for a ticket."""
    return "\n".join(plain(line, _LINE_MAX) for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from report.headline.text
    yield ""
    yield f"Kafka replication audit: {verdict_words(report)}"
    yield ", ".join(about(report))
    yield verdict_sentence(report)
    summary = story(report)
    for number, (chain, action) in enumerate(zip(summary.chains, summary.actions, strict=True), 1):
        if number <= WHOLE_MAX:
            yield ""
            yield from _of_chain(number, chain, action)
        else:
            yield f"{number}. {WORDS[chain.harm]}, {window(chain)} UTC: {first_sentence(chain.head.sentence)}"
    if summary.left_out:
        yield ""
        yield f"{counted(len(summary.left_out), 'more incident')}: report.html, or `highwater incidents`."


def _of_chain(number: int, chain: Chain, action: str) -> Iterator[str]:
    yield f"{number}. {WORDS[chain.harm]}, {window(chain)} UTC: {account_of(chain.head)}"
    for cause in chain.because:
        yield f"   because: {account_of(cause)}"
    for effect in chain.also[:EFFECTS_MAX]:
        yield f"   also: {account_of(effect)}"
    yield f"   What to do: {action}"
