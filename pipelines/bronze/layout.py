"""log4j layouts: where a record starts in a file, and how its text splits into time, level, logger and message.

The layout of a file is probed, not configured. Layouts work on bytes: decoding is left to the writer of the rows,
which can do it once per batch. Times without a zone are taken in the configured zone; a time that it has twice is of
the pass that the file's `Clock` is set to (`pipelines.bronze.repeated_hour` tells which).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Any, NamedTuple

from pipelines.json_text import loads

LEVELS = {name.encode(): name for name in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")}
LEVEL_ALIASES = {**LEVELS, b"WARNING": "WARN", b"SEVERE": "ERROR", b"FINE": "DEBUG", b"CRITICAL": "FATAL"}

#: No start pattern matches more bytes than this: the reader relies on it when it cuts what it holds.
START_BYTES_MAX = 128

#: At least this share of the sampled lines that start with a time has to parse.
FIT_SHARE = 0.9

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
CACHE_MAX = 10_000

_TIME = rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_LEVEL = rb"(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)"
_LOGGER = rb"[A-Za-z_][\w.$/-]*"
_THREAD = rb"\[[^\]\n]{0,200}\]"


class Head(NamedTuple):
    """A record taken apart.

    Attributes:
        time_us: microseconds since the epoch.
        level: TRACE to FATAL; None if the layout has none.
        logger: logger name as logged; None if the text was cut before it.
        message: the rest; continuation lines follow newlines.
    """

    time_us: int
    level: str | None
    logger: str | None
    message: bytes


Parser = Callable[[bytes], Head | None]
#: A line without what a wrapper puts around it (`pipelines.bronze.wrappers`): the stream it belongs to, its text, and
#: whether the text goes on in that stream's next line.
Unwrapped = tuple[bytes, bytes, bool]
Unwrap = Callable[[bytes], Unwrapped | None]


@dataclass(frozen=True)
class Layout:
    """One named layout.

    Attributes:
        name: stored in ``bronze.log_files.layout``.
        pattern: the log4j conversion pattern, or a description: documentation.
        start: matches the beginning of a record's first line, at most `START_BYTES_MAX` bytes of it.
        strict: probe it only if every sampled record fits: it would also fit a part of another layout's records.
        make: builds a parser for one file; parsers hold caches and are not shared.
        unwrap: what each line has to go through first; None if lines stand as they were logged.
        tail: matches the logger at the end of a line; None if it does not stand at the end of the message.
    """

    name: str
    pattern: str
    start: re.Pattern[bytes]
    strict: bool
    make: Callable[[Clock], Parser]
    unwrap: Unwrap | None = None
    tail: re.Pattern[bytes] | None = None

    def parser(self, zone: tzinfo) -> Parser:
        """A parser of this layout's records: whole text in, `Head` or None if it does not fit."""
        return self.make(Clock(zone))


class Clock:
    """Reads the times of one file; remembers the last seconds, since neighbours share theirs."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._fold = 0
        self._seconds: dict[bytes, int] = {}

    def set_pass(self, is_second: bool) -> None:
        """Take times that the zone has twice for those of the second pass from now on, or of the first."""
        if is_second != self._fold:
            self._fold = int(is_second)
            self._seconds.clear()

    def read(self, text: bytes) -> int:
        """Microseconds since the epoch of ``2026-11-20 15:33:21,101`` and its like; ValueError if it is no time."""
        second = self._seconds.get(text[:19])
        if second is None:
            second = self._second(text[:19])
        if len(text) == 23:
            return second + int(text[20:23]) * 1000
        return self._general(text, second)

    def _second(self, text: bytes) -> int:
        if len(text) != 19:
            raise ValueError(f"not a time: {text!r}")
        year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
        hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=self._zone, fold=self._fold)
        if len(self._seconds) >= CACHE_MAX:
            self._seconds.clear()
        micros = self._seconds[text] = (moment - EPOCH) // MICROSECOND
        return micros

    def _general(self, text: bytes, second: int) -> int:
        """Other lengths: no fraction, micro- or nanoseconds, a zone at the end."""
        rest = text[19:]
        digits = 0
        while digits + 1 < len(rest) and rest[digits + 1 : digits + 2].isdigit():
            digits += 1
        fraction = 0
        if rest[:1] in (b".", b",") and digits:
            fraction = int(rest[1 : digits + 1][:6].ljust(6, b"0"))
            rest = rest[digits + 1 :]
        if not rest:
            return second + fraction
        return (datetime.fromisoformat((text[:19] + rest).decode()) - EPOCH) // MICROSECOND + fraction


class Names:
    """Logger names as str, decoded once each."""

    def __init__(self) -> None:
        self._names: dict[bytes, str | None] = {}

    def get(self, name: bytes) -> str | None:
        """The name, or None if this is not a logger's name. ``(name:42)`` loses its line number."""
        try:
            return self._names[name]
        except KeyError:
            pass
        found = _LOGGER_NAME.fullmatch(name)
        if len(self._names) >= CACHE_MAX:
            self._names.clear()
        known = self._names[name] = found.group(1).decode() if found else None
        return known


_LOGGER_NAME = re.compile(rb"(" + _LOGGER + rb")(?::\d+)?")
_TAIL = re.compile(rb" \((" + _LOGGER + rb"(?::\d+)?)\)(?: " + _THREAD + rb")?(?=\n|\Z)")
_THROWABLE = re.compile(rb"\n(?:Caused by: )?(?:[A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*(?:: |\n|\Z)")
_FRAME = re.compile(rb"\n\s+at |\n\s*\.\.\. \d+ ")


def split_tail(body: bytes, names: Names) -> tuple[str | None, bytes]:
    """Splits ``%m (%c)%n%throwable``: the logger stands at the end of the message's own last line.

    That is the end of the record, unless a stack trace follows; then it is the last line before the throwable.
    """
    if body.endswith(b")") and b"\n" not in body:
        cut = body.rfind(b" (")
        logger = names.get(body[cut + 2 : -1]) if cut >= 0 else None
        return (logger, body[:cut]) if logger is not None else (None, body)
    frame = _FRAME.search(body)
    candidates = list(_TAIL.finditer(body, 0, frame.start() if frame else len(body)))
    if not candidates:
        return None, body
    # An exception without frames (Kafka's ApiException) follows its line directly: prefer what it follows.
    chosen = next((tail for tail in candidates if _THROWABLE.match(body, tail.end())), candidates[-1])
    return names.get(chosen.group(1)), body[: chosen.start()] + body[chosen.end() :]


def _kafka(clock: Clock) -> Parser:
    """``[%d] %p %m (%c)%n``, the layout that Kafka ships; the hot path, hence no regular expression."""
    names = Names()
    read, levels, split = clock.read, LEVELS, split_tail

    def parse(text: bytes) -> Head | None:
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
        return Head(time_us, level, logger, message)

    return parse


def _matched(pattern: re.Pattern[bytes], clock: Clock) -> Parser:
    """Layouts whose pattern matches time and level at the start; without a logger there, it ends the message."""
    names = Names()
    logger_first = "logger" in pattern.groupindex

    def parse(text: bytes) -> Head | None:
        head = pattern.match(text)
        if not head:
            return None
        try:
            time_us = clock.read(head["time"])
        except ValueError:
            return None
        message = text[head.end() :]
        logger, message = (names.get(head["logger"]), message) if logger_first else split_tail(message, names)
        return Head(time_us, LEVELS[head["level"]], logger, message)

    return parse


def _json(clock: Clock) -> Parser:
    """One JSON object per record: log4j2 JsonLayout, JsonTemplateLayout (ECS, GELF), logstash encoders."""

    def parse(text: bytes) -> Head | None:
        try:
            fields = loads(text)
            time_us = _json_time(fields, clock)
        except (ValueError, TypeError, KeyError, OverflowError, AttributeError):
            return None
        if time_us is None:
            return None
        level = LEVEL_ALIASES.get(str(_first(fields, "level", "log.level", "severity", "levelname")).upper().encode())
        logger = _first(fields, "logger", "loggerName", "logger_name", "log.logger")
        message = str(_first(fields, "message", "msg", "short_message") or "")
        trace = _first(fields, "stack_trace", "error.stack_trace", "exception", "thrown", "full_message")
        if isinstance(trace, dict):
            trace = _first(trace, "extendedStackTrace", "stacktrace", "stack_trace", "message")
        if isinstance(trace, str) and trace:
            message += "\n" + trace
        return Head(time_us, level, str(logger) if logger is not None else None, message.encode())

    return parse


def _first(fields: dict[str, Any], *names: str) -> Any:
    """The first of these keys that is there; ``log.level`` also means a nested object."""
    for name in names:
        if name in fields:
            return fields[name]
        outer, _, inner = name.partition(".")
        if inner and isinstance(nested := fields.get(outer), dict) and inner in nested:
            return nested[inner]
    return None


def _json_time(fields: dict[str, Any], clock: Clock) -> int | None:
    instant = fields.get("instant")
    if isinstance(instant, dict):
        return int(instant["epochSecond"]) * 1_000_000 + int(instant.get("nanoOfSecond", 0)) // 1000
    value = _first(fields, "@timestamp", "timestamp", "timeMillis", "time", "ts", "datetime")
    if isinstance(value, str):
        return clock.read(value.encode())
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Seconds or milliseconds: no broker logged before 2001 in milliseconds.
        return int(value * 1000) if value > 1e11 else int(value * 1_000_000)
    return None


def _re(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


_STAMP = rb"\[?(?P<time>" + _TIME + rb")\]?"
_MOMENT = rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
_NAMED = rb"(?P<logger>" + _LOGGER + rb")(?::\d+)?(?: - | ?: )"
_LEVELED = rb" {1,3}(?P<level>" + _LEVEL + rb") {1,3}"
_THREADED = _THREAD + rb" {1,3}"

# A start tells records from continuation lines, not layouts from each other: a record that starts like one and does
# not parse is then marked, and not swallowed by the record before it.
_BRACKETED = _re(rb"\[" + _MOMENT + rb"[^\]\n]{0,16}\] " + _LEVEL + rb" ")
_BARE = _re(rb"\[?" + _MOMENT + rb"[^ \n]{0,16} {1,3}" + _LEVEL + rb" ")
_BEFORE_THREAD = _re(rb"\[?" + _MOMENT + rb"[^ \n]{0,16} {1,3}\[")


def _strict(
    name: str,
    pattern: str,
    start: re.Pattern[bytes],
    make: Callable[[Clock], Parser],
    tail: re.Pattern[bytes] | None = None,
) -> Layout:
    return Layout(name, pattern, start, True, make, tail=tail)


#: Probed in this order; of equally good ones the first wins, so the more particular come first.
LAYOUTS = (
    _strict(
        "kafka-thread",
        "[%d] %p [%t] %m (%c)%n",
        _BRACKETED,
        partial(_matched, _re(_STAMP + _LEVELED + rb"\[[^\]=\s]+\] ")),
        _TAIL,
    ),
    Layout("kafka", "[%d] %p %m (%c)%n", _BRACKETED, False, _kafka, tail=_TAIL),
    _strict(
        "level-thread-logger",
        "%d %-5p [%t] %c - %m%n",
        _BARE,
        partial(_matched, _re(_STAMP + _LEVELED + _THREADED + _NAMED)),
    ),
    _strict("level-logger", "%d %p %c{1}: %m%n", _BARE, partial(_matched, _re(_STAMP + _LEVELED + _NAMED))),
    Layout("bare-time", "%d %p %m (%c) [%t]%n", _BARE, False, partial(_matched, _re(_STAMP + _LEVELED)), tail=_TAIL),
    _strict(
        "thread-level-logger",
        "%d [%t] %-5p %c - %m%n",
        _BEFORE_THREAD,
        partial(_matched, _re(_STAMP + rb" {1,3}" + _THREAD + _LEVELED + _NAMED)),
    ),
    Layout("json", "one JSON object per record", _re(rb"\{"), False, _json),
)
BY_NAME = {layout.name: layout for layout in LAYOUTS}


def probe(lines: Sequence[bytes]) -> Layout | None:
    """The layout that these lines, the beginning of a file without line ends, were written in; None if no known one.

    Continuation lines are judged with no layout: only lines on which a layout could start a record count, and the
    layout with the most fitting lines wins; a strict one needs all of its lines to fit.
    """
    best: tuple[int, Layout] | None = None
    for layout in LAYOUTS:
        starts = [line for line in lines if layout.start.match(line)]
        if not starts:
            continue
        parse = layout.parser(UTC)
        fits = sum(parse(line) is not None for line in starts)
        if not fits or fits < len(starts) * (1.0 if layout.strict else FIT_SHARE):
            continue
        if best is None or fits > best[0]:
            best = fits, layout
    return best[1] if best else None
