"""Lines below WARN, for which the atlas has no entry: what is read from them, by grammars and signatures. Pure."""

from __future__ import annotations

import re
from functools import cache

from highwater.pipelines.bronze.layouts.loggers import by_template, candidates
from highwater.pipelines.grammars.record import UNPARSED, LogRecord
from highwater.pipelines.grammars.templates import SHARED, TEMPLATES
from highwater.pipelines.grammars.text_log import parse_text
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.messages.atlas import Message
from highwater.pipelines.messages.lines import read_line


def find_quiet(record: str) -> tuple[str, Message] | None:
    """Return id and catalogue entry of a log record in any layout. None if no known message matches it."""
    line = read_line(record.partition("\n")[0])
    full = candidates(line.logger)[:1] if line.logger is not None else [by_template(line.message.encode()) or ""]
    logger = (full or [line.logger or ""])[0]
    parsed = parse_text(LogRecord("server", 0, line.level or "INFO", logger, line.message))
    shown = [
        (signature, kind)
        for kind in KINDS
        for signature in kind.signatures
        if (line.level is None or line.level in signature.levels)
        and (not signature.loggers or {logger, line.logger} & {*signature.loggers})
        and re.fullmatch(signature.pattern, line.message)
    ]
    if parsed.outcome == UNPARSED and not shown:
        return None
    tables = sorted({fact.table for fact in parsed.facts})
    meanings = [f"Part of the incident {kind.name}: {kind.meaning}" for _, kind in shown]
    meanings += [f"highwater reads rows of {', '.join(tables)} from this line."] if tables else []
    sources = [signature.source for signature, _ in shown]
    template_id = shown[0][0].name if parsed.outcome == UNPARSED else parsed.template
    return template_id, Message(
        source=(_sources().get(template_id) or next(iter(sources), logger),),
        levels=(line.level or "INFO",),
        texts=(),
        meaning=" ".join(meanings) or "A known line that shows no trouble, and from which highwater reads no fact.",
        harm="none",
        severity="info",
        action="",
    )


@cache
def _sources() -> dict[str, str]:
    """Return the class and method that log each template of a message, by id of the template."""
    sources: dict[str, dict[str, None]] = {}
    for template in (*SHARED, *TEMPLATES):
        sources.setdefault(template.id, {})[template.source] = None
    return {template_id: "; ".join(of_id) for template_id, of_id in sources.items()}
