"""Conversion patterns of log4j as layouts: the pattern is the layout's name, and defines it completely.

Supported conversions are ``%d`` with a time format, ``%p``, ``%c``, ``%C``, ``%F``, ``%L``, ``%t``, ``%X``, ``%m``
once, and literal text. ``%c`` is a full name; `Loggers` resolves ``%c{1}``, the class ``%C`` and the file ``%F``.
``%L``, ``%t`` and ``%X`` are skipped. A space matches several, and levels may be padded. Text behind ``%m`` ends the
last line of the message. A stack trace follows after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from highwater.pipelines.bronze.known import KNOWN
from highwater.pipelines.bronze.layout import CACHE_MAX, START_BYTES_MAX, Clock, Layout, Parser, RecordHead
from highwater.pipelines.bronze.layouts.loggers import Loggers
from highwater.pipelines.bronze.layouts.times import DEFAULT_FORM, reader, time_regex

#: The layout that Kafka ships, and without its brackets.
KAFKA = "[%d] %p %m (%c)"

LEVELS = {name.encode(): name for name in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")}
LEVEL_ALIASES = {**LEVELS, **{alias.encode(): name for name, those in KNOWN.levels.items() for alias in those.split()}}

#: Longer names first, since shorter ones may be their beginning.
LEVEL = b"(?:" + b"|".join(sorted(LEVEL_ALIASES, reverse=True)) + b")"
LOGGER = rb"[A-Za-z_][\w.$/-]*"
_FIELD = re.compile(r"%(-?\d+)?([dpctXmCFL])(?:\{((?:[^}'])*(?:'[^']*'[^}']*)*)\})?|( +)|(%%|[^% ])")

#: Where records in Kafka's own layout start.
_KAFKA_START = rb"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[^\]\n]{0,16}\] (?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "


class Names:
    """Logger names as str, decoded once each."""

    def __init__(self) -> None:
        self._names: dict[bytes, str | None] = {}

    def get(self, name: bytes) -> str | None:
        """Return the name as str. None if it is not the name of a logger. ``(name:42)`` loses its line number."""
        try:
            return self._names[name]
        except KeyError:
            pass
        match = _LOGGER_NAME.fullmatch(name)
        if len(self._names) >= CACHE_MAX:
            self._names.clear()
        known = self._names[name] = match.group(1).decode() if match else None
        return known


_LOGGER_NAME = re.compile(rb"(" + LOGGER + rb")(?::\d+)?")
_TAIL = re.compile(rb" \((" + LOGGER + rb"(?::\d+)?)\)(?: \[[^\]\n]{0,200}\])?(?=\n|\Z)")
_THROWABLE = re.compile(rb"\n(?:Caused by: )?(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?:: |\n|\Z)")
#: Bound of texts in a tail, for example threads: a tail is searched for in the whole record.
_TAIL_BOUND = "{0,200}"
_FRAME = re.compile(rb"\n[^\S\n]+at |\n[^\S\n]*\.\.\. \d+ ")


def split_tail(body: bytes, names: Names) -> tuple[str | None, bytes]:
    """Return the logger and message of a record in the layout ``%m (%c)%n%throwable``.

    The logger is at the end of the message's last line. This is the last line of the record, or the last line before a
    stack trace.
    """
    if body.endswith(b")") and b"\n" not in body:
        cut = body.rfind(b" (")
        logger = names.get(body[cut + 2 : -1]) if cut >= 0 else None
        return (logger, body[:cut]) if logger is not None else (None, body)
    name, message = _at_the_end(body, _TAIL)
    return (names.get(name) if name else None), message


def _at_the_end(body: bytes, tail: re.Pattern[bytes]) -> tuple[bytes, bytes]:
    """Return (logger name at the end of a record, message without it). The name is empty if there is none."""
    frame = _FRAME.search(body)
    ends = list(tail.finditer(body, 0, frame.start() if frame else len(body)))
    if not ends:
        return b"", body
    # An exception without frames (Kafka's ApiException) follows its line directly: prefer what it follows.
    chosen = next((end for end in ends if _THROWABLE.match(body, end.end())), ends[-1])
    name = chosen[1] if chosen.re.groups else b""
    return name, body[: chosen.start()] + body[chosen.end() :]


def _kafka(clock: Clock) -> Parser:
    """Return a parser for ``[%d] %p %m (%c)``, Kafka's default layout, without regular expressions for speed."""
    names = Names()
    read, levels, split = clock.read, LEVELS, split_tail

    def parse(text: bytes) -> RecordHead | None:
        end = text.find(b"] ")
        space = text.find(b" ", end + 2)
        level = levels.get(text[end + 2 : space])
        if level is None or end < 20:
            return None
        try:
            time_us = read(text[1:end])
        except ValueError:
            return None
        padded = text[space + 1 : space + 2] == b" " and len(level) == 4  # %-5p
        logger, message = split(text[space + 1 + padded :], names)
        return RecordHead(time_us, level, logger, message)

    return parse


class _Token(NamedTuple):
    """A token of a conversion pattern."""

    name: str  #: of a field; empty for literal text, one blank for spaces
    text: str  #: option of the field, or the literal text


def _tokens(pattern: str) -> Iterator[_Token]:
    position = 0
    while position < len(pattern):
        field = _FIELD.match(pattern, position)
        if field is None:
            raise ValueError(f"no layout: {pattern}")
        _, name, option, spaces, literal = field.groups()
        if name:
            yield _Token("c", "1") if name in "CF" else _Token(name, option or "")
        else:
            yield _Token(" " if spaces else "", spaces or literal.replace("%%", "%"))
        position = field.end()


def _regex(tokens: list[_Token], number: int, bound: str) -> tuple[bytes, int]:
    """Return (regular expression of a token, maximum number of bytes that it matches).

    Args:
        number: index of the token.
        bound: quantifier for texts of any length: ``*``, or ``{0,n}``.
    """
    name, text = tokens[number]
    after = next(iter(tokens[number + 1 :]), _Token("", ""))
    if name == " ":
        # Behind a padded level there may be none.
        is_padding = number > 0 and tokens[number - 1].name == "p"
        most = b"20" if bound != "*" else b"60"
        return (rb"[ \t]{0," if is_padding else rb"[ \t]{1,") + most + b"}", 20
    if name == "d":
        return time_regex(text or DEFAULT_FORM), 40
    if name == "L":
        return rb"\d{1,6}", 6
    if name == "p":
        return rb" {0,6}(?:(?i:" + LEVEL + rb")) {0,6}", 20
    if name == "c":
        return (rb"[A-Za-z_][\w.$/-]" + bound.encode() + rb"(?:<\w+>)?(?::\d{1,6})?"), 90
    if name in ("t", "X"):
        if after.name == "" and after.text and after.text not in "-":
            return rb"[^" + re.escape(after.text.encode()) + rb"\n]" + bound.encode(), 60
        return (rb"[^\n]" + bound.encode() + b"?" if after.name == " " else rb"\S" + bound.encode()), 60
    return re.escape(text.encode()), len(text.encode())


def _compiled(tokens: list[_Token], bound: str = "*") -> bytes:
    pieces = []
    for number, token in enumerate(tokens):
        piece, _ = _regex(tokens, number, bound)
        group = {"d": b"time", "c": b"logger"}.get(token.name)
        if token.name == "p":
            piece = rb" {0,6}(?P<level>(?i:" + LEVEL + rb")) {0,6}"
        pieces.append(b"(?P<" + group + b">" + piece + b")" if group else piece)
    return b"".join(pieces)


def _start(tokens: list[_Token]) -> re.Pattern[bytes]:
    """Return a regular expression for the start of a record, up to its time and the level after it."""
    pieces, length, is_timed = [], 0, False
    for number, token in enumerate(tokens):
        if is_timed and token.name in ("t", "X", "c"):
            break
        piece, most = _regex(tokens, number, "{0,80}" if token.name == "c" else "{0,50}")
        if length + most > START_BYTES_MAX:
            break
        pieces.append(piece)
        length += most
        is_timed = is_timed or token.name == "d"
        if is_timed and token.name == "p":
            break
    if not is_timed:
        raise ValueError("too much text before the time")
    return re.compile(b"".join(pieces))


@lru_cache(maxsize=256)
def pattern_layout(pattern: str) -> Layout:
    """Return the layout of a conversion pattern.

    Raises:
        ValueError: the pattern is not supported.
    """
    if pattern == KAFKA:
        return Layout(pattern, re.compile(_KAFKA_START), _kafka, tail=_TAIL)
    tokens = list(_tokens(pattern))
    at = next((number for number, token in enumerate(tokens) if token.name == "m"), None)
    form = next((token.text or DEFAULT_FORM for token in tokens[:at] if token.name == "d"), None)
    if at is None or form is None:
        raise ValueError(f"no layout: {pattern}")
    is_short = any(token == _Token("c", "1") for token in tokens)
    tail = None
    if tokens[at + 1 :]:
        tail = re.compile(re.sub(rb"\?P<logger>", b"", _compiled(tokens[at + 1 :], _TAIL_BOUND)) + rb"(?=\n|\Z)")
    is_named = any(token.name == "c" for token in tokens[at + 1 :])
    head = re.compile(_compiled(tokens[:at]))

    def make(clock: Clock) -> Parser:
        return _parser(head, tail, form, is_short, is_named, clock)

    # Only loggers in round brackets can be distinguished from a client's text (`pipelines.bronze.record_ends`).
    return Layout(pattern, _start(tokens[:at]), make, tail=tail if "(%c" in pattern.partition("%m")[2] else None)


def _parser(
    head: re.Pattern[bytes], tail: re.Pattern[bytes] | None, form: str, is_short: bool, is_named: bool, clock: Clock
) -> Parser:
    read = reader(form, clock)
    match, groups = head.match, head.groupindex
    name_of, level_of = _name_of(is_short or ("logger" not in groups and not is_named)), LEVEL_ALIASES
    has_logger, has_level = "logger" in groups, "level" in groups

    def parse(text: bytes) -> RecordHead | None:
        head = match(text)
        if head is None:
            return None
        try:
            time_us = read(head["time"])
        except ValueError:
            return None
        message = text[head.end() :]
        name = head["logger"] if has_logger else b""
        if tail is not None:
            found, message = _at_the_end(message, tail)
            name = found or name
            if is_named and not found:
                return RecordHead(time_us, level_of[head["level"].upper()] if has_level else None, None, message)
        return RecordHead(
            time_us, level_of[head["level"].upper()] if has_level else None, name_of(name, message), message
        )

    return parse


def _name_of(is_short: bool) -> Callable[[bytes, bytes], str | None]:
    """Return a function that resolves the logger from a name and a message."""
    if not is_short:
        names = Names()
        return lambda name, _: names.get(name)
    loggers = Loggers()

    def resolve(name: bytes, message: bytes) -> str | None:
        class_name, _, line = name.rpartition(b":")
        return loggers.resolve(class_name if line.isdigit() else name, message)

    return resolve
