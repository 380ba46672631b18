"""What happened as plain text for a ticket or a chat. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.base.plain import count, plain
from pipelines.report.happened import Chain, account_of, headline, story, verdict_sentence, window
from pipelines.report.model import Report

#: Of a sentence; a ticket takes long lines.
_LINE_MAX = 1200


def ticket_text(report: Report) -> str:
    """Verdict, what it is about, and the chains of the first screen with what to do: lines that are pasted anywhere."""
    return "\n".join(plain(line, _LINE_MAX) for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"Kafka replication audit: {report.verdict}"
    yield ", ".join(headline(report))
    yield verdict_sentence(report)
    summary = story(report)
    for number, chain in enumerate(summary.chains, 1):
        yield ""
        yield from _of_chain(number, chain)
    if summary.left_out:
        yield ""
        yield f"And {count(summary.left_out)} more: report.html, or `highwater incidents`."


def _of_chain(number: int, chain: Chain) -> Iterator[str]:
    cause = chain.cause
    yield f"{number}. {chain.severity}, {window(cause)} UTC: {account_of(cause)}"
    for effect in chain.effects:
        yield f"   - {window(effect)}: {account_of(effect)}"
    if chain.advice:
        yield f"   What to do: {chain.advice}"
