"""A line of any layout as level, logger and message, as well as one line alone shows them."""

from __future__ import annotations

import re
from typing import NamedTuple

from highwater.pipelines.grammars.grammar import parse_bare_context, shorten_logger
from highwater.pipelines.messages.atlas import LOUD, Atlas, Found

_LEVEL = re.compile(r"(?<![\w.])(TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)(?![\w.=])")
_TAIL = re.compile(r" \(([A-Za-z_][\w.$]*)\)(?: \[[^\]\n]{0,200}\])?\s*$")
_LOGGER = re.compile(r"\b(?:kafka|org\.apache\.kafka|org\.apache\.zookeeper|state\.change)(?:\.\w+)*\.[A-Za-z][\w$]*")
_CONTEXT = re.compile(r"\[[^\]\n]*\]:?,? ?")
_FRAME = re.compile(r"^\s*(?:at \S+\(|\.\.\. \d+ (?:more|common)|Caused by: |Suppressed: )")


class Line(NamedTuple):
    """Level, logger and message of one line."""

    level: str | None  #: None if the line has no level
    logger: str | None  #: simple name; None if the line names no logger
    message: str  #: text behind the level, without the logger at its end


def is_frame(line: str) -> bool:
    """Return True if a line belongs to a stack trace."""
    return _FRAME.match(line) is not None


def read_line(line: str) -> Line:
    """Return level, logger and message of a line."""
    level = _LEVEL.search(line)
    message = line[level.end() :] if level is not None else line
    tail = _TAIL.search(message)
    if tail is not None:
        logger: str | None = shorten_logger(tail[1])
        message = message[: tail.start()]
    else:
        named = _LOGGER.search(line)
        logger = shorten_logger(named[0]) if named is not None else None
    name = None if level is None else "WARN" if level[1] == "WARNING" else level[1]
    return Line(name, logger, message.strip())


def bare_texts(message: str) -> list[str]:
    """Return the message without its ``[...]`` prefixes: one text per removed prefix, the full message first."""
    texts = [message]
    text = message
    while (context := _CONTEXT.match(text)) is not None:
        text = text[context.end() :]
        texts.append(text)
    _, start = parse_bare_context(text)
    if start:
        texts.append(text[start:])
    return texts


def find_message(atlas: Atlas, message: str, logger: str | None, level: str | None = None) -> Found | None:
    """Return the catalogue entry of a message with or without its prefixes. None if there is none."""
    first = message.partition("\n")[0]
    found = (atlas.find(text, logger, level) for text in bare_texts(first))
    return next((entry for entry in found if entry is not None), None)


def find_record(atlas: Atlas, record: str) -> Found | None:
    """Return the catalogue entry of a record in any layout, with its stack trace. None if there is none."""
    first, _, rest = record.partition("\n")
    read = read_line(first)
    found = find_message(atlas, read.message, read.logger, read.level) or atlas.find_within(first, read.level)
    if (
        found is None
        and read.level in (None, *LOUD)
        and read.logger is not None
        and any(map(is_frame, rest.split("\n")))
    ):
        return atlas.find_thrown(read.logger)
    return found
