"""Entry point of the text grammars: every log of a broker except the request log.

`parse_text` finds the grammar by the record's logger and never fails: an unknown record returns with its text masked,
to be counted with similar texts.
"""

from __future__ import annotations

import re
from collections import defaultdict

from highwater.pipelines.grammars.grammar import Grammar, Template, shorten_logger
from highwater.pipelines.grammars.record import KNOWN, UNPARSED, LogRecord, Parsed
from highwater.pipelines.grammars.templates import SHARED, TEMPLATES, find_known_logger

#: Length of a masked text.
MAX_MASKED = 200

#: Loggers remembered; a broker has some hundred, garbage may have any number.
_MAX_LOGGERS = 4_096

#: Loggers whose old versions put a prefix without brackets before the text.
_BARE_LOGGERS = frozenset({"Partition", "state.change.logger"})

_by_logger: dict[str, list[Template]] = defaultdict(list)
for _template in TEMPLATES:
    for _name in _template.loggers:
        _by_logger[_name].append(_template)

_grammars: dict[str, Grammar] = {}
_resolved: dict[str, tuple[Grammar, Parsed | None]] = {}


def _resolve(logger: str) -> tuple[Grammar, Parsed | None]:
    """Return (templates of a logger, result for unmatched records if the whole logger is known, else None).

    Patterns are compiled when their logger first occurs, because a task that reads one file needs few of them.
    """
    name = shorten_logger(logger)
    if name not in _by_logger:
        name = ""
    grammar = _grammars.get(name)
    if grammar is None:
        grammar = Grammar((*_by_logger.get(name, ()), *SHARED), bare=name in _BARE_LOGGERS)
        _grammars[name] = grammar
    template = find_known_logger(logger)
    resolved = grammar, None if template is None else Parsed(template, KNOWN)
    if len(_resolved) < _MAX_LOGGERS:
        _resolved[logger] = resolved
    return resolved


def parse_text(record: LogRecord) -> Parsed:
    """Parse one record of server.log, state-change.log, controller.log or log-cleaner.log. Never raises."""
    grammar, otherwise = _resolved.get(record.logger) or _resolve(record.logger)
    parsed = grammar.parse(record)
    if parsed is None:
        return otherwise or Parsed(mask(record.message), UNPARSED, (), "no_grammar")
    if parsed.template:
        return parsed
    return parsed._replace(template=mask(record.message))


def parse_own_text(record: LogRecord) -> Parsed | None:
    """Parse a record with the templates of its own logger. None if no template matches."""
    grammar, _ = _resolved.get(record.logger) or _resolve(record.logger)
    return grammar.parse(record)


_MASK = re.compile(
    r"(?P<done><(?:uuid|id|hash|path|address|partition|n)>)"
    r"|(?P<uuid>(?<![\w>-])[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![\w<-]))"
    r"|(?P<path>(?<![\w>./-])/(?!\d{1,3}(?:\.\d{1,3}){3})(?:[\w.@+-]+/)*[\w.@+-]+)"
    r"|(?P<address>(?<![\w>.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?![\w<]))"
    r"|(?P<id>(?<![\w>-])(?=[\w-]{0,21}\d)(?=[\w-]{0,21}[A-Z])[\w-]{22}(?![\w<-]))"
    r"|(?P<hash>(?<=@)[0-9a-f]+(?![\w<]))"
    r"|(?P<partition>(?<![\w>.-])(?=[\d.-]*[A-Za-z_])[\w.-]+-\d+(?![\w<-]))"
    r"|(?P<n>\d+(?:\.\d+)*)",
    re.ASCII,
)


def _replace_value(match: re.Match[str]) -> str:
    return match[0] if match.lastgroup == "done" else f"<{match.lastgroup}>"


def mask(message: str) -> str:
    """Return the first line of a message with placeholders for ids, addresses, paths, partitions and numbers.

    The length is limited. Masking a masked text changes nothing.
    """
    text = message.partition("\n")[0].strip()
    for _ in range(4):  # a cut can make a new match at the end of the text; a second pass settles it
        masked = _MASK.sub(_replace_value, text[: 4 * MAX_MASKED])[:MAX_MASKED].strip()
        if masked == text:
            break
        text = masked
    return text
