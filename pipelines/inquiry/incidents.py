"""``highwater incidents``: chains of incidents, with the commands for details. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import orjson

from highwater.pipelines.base.plain import PROSE_WIDTH, WIDTH_MAX, plain
from highwater.pipelines.report.classes import WORDS
from highwater.pipelines.report.happened import Chain, get_account, make_chains, show_window
from highwater.pipelines.report.lines import indent_text
from highwater.pipelines.report.model import Incident

TEXT_MAX = 1200


def select_chains(incidents: Sequence[Incident], broker_id: int | None, topic: str | None) -> list[Chain]:
    """Return the chains with an incident about a broker, topic or partition. All if both are None."""

    def is_about(incident: Incident) -> bool:
        of_broker = broker_id is None or broker_id in incident.broker_ids
        names = incident.topic_partitions
        return of_broker and (topic is None or any(topic in (name, name.rpartition("-")[0]) for name in names))

    return [chain for chain in make_chains(incidents) if any(map(is_about, (chain.cause, *chain.effects)))]


def format_json(selection: Sequence[Chain]) -> str:
    """Return the incidents as in report.json, most harmful first."""
    rows = [incident.model_dump(mode="json") for chain in selection for incident in (chain.cause, *chain.effects)]
    return orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode()


def format_text(selection: Sequence[Chain], has_requests: bool, is_whole: bool) -> str:
    """Return all incidents as text, each chain with the log lines of its cause and the next commands.

    Args:
        has_requests: True if request logs were read, so that waits are known.
        is_whole: True to show log lines at full length.
    """
    if not selection:
        return "No incident in this selection."
    return "\n".join(line for chain in selection for line in _format_chain(chain, has_requests, is_whole)).rstrip()


def _format_chain(chain: Chain, has_requests: bool, is_whole: bool) -> Iterator[str]:
    head = chain.head
    yield plain(f"{WORDS[chain.harm]}  {show_window(chain)} UTC   {head.kind} {head.incident_id}", WIDTH_MAX)
    yield from indent_text(get_account(head), "  ", "  ")
    for cause in chain.because:
        yield from indent_text(get_account(cause), "  because  ", " " * 11)
    for effect in chain.also:
        yield from indent_text(get_account(effect), "  also     ", " " * 11)
    if chain.advice:
        yield from indent_text(chain.advice, "  do       ", " " * 11)
    for line in head.evidence:
        yield plain(f"    {line.file}:{line.line_no}", WIDTH_MAX)
        text = plain(line.text, TEXT_MAX)
        if is_whole:
            yield from textwrap.wrap(text, PROSE_WIDTH, initial_indent="    | ", subsequent_indent="    | ")
        else:
            yield plain(f"    | {text}", WIDTH_MAX)
    for command in chain.list_commands(has_requests):
        yield f"    $ {command}"
    yield ""
