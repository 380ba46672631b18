"""JSON objects and rows of CSV as layouts: which key or column is the time, the level, the logger, the message.

The layout's name is an object itself, ``{"@timestamp":"%d","log.level":"%p",...}``; a key with dots is one of an object
within, or has dots. Of CSV it is ``csv`` and the fields of the columns, ``csv %d,%p,%c,%m``.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from json import JSONDecodeError
from typing import Any

from pipelines.base.json_text import loads
from pipelines.bronze.layout import Clock, Layout, Parser, RecordHead
from pipelines.bronze.layouts.loggers import Loggers, is_kafka
from pipelines.bronze.layouts.patterns import LEVEL_ALIASES, pattern_layout
from pipelines.bronze.layouts.times import DEFAULT_FORM, form_of, reader, spelled

CSV = "csv "
_OBJECT = re.compile(rb"\{")
_DEPTH_MAX = 4
_SAMPLE = 40
#: Keys of shippers and layouts that are preferred where several have values of a kind: the first one that is there.
_TIMES = ("instant", "@timestamp", "timestamp", "timeMillis", "time", "ts", "datetime", "date", "asctime")
_MESSAGES = ("message", "msg", "short_message", "text", "log", "body")
_LOGGERS = ("logger", "loggerName", "logger_name", "log.logger", "name", "class")
#: What follows a message, if it is there, and how it looks then.
_TRACES = (
    *("stack_trace", "error.stack_trace", "stacktrace", "stackTrace", "exception", "exception.stacktrace", "thrown"),
    *("thrown.extendedStackTrace", "throwable", "full_message", "trace", "ex", "exc_info", "error.stack"),
)
_OUTER_TRACES = frozenset(key.partition(".")[0] for key in _TRACES)
_THROWABLE = re.compile(r"\n[^\S\n]*at |(?:Exception|Error)\b")
#: A field of a column, or one that is passed over.
_COLUMN = re.compile(r"%\w(?:\{[^{}]*\})?|-")
_IN_TRACE = ("extendedStackTrace", "stacktrace", "stack_trace", "message")


def parsed(text: bytes) -> dict[str, Any]:
    """The object of a line; an empty one if it is none."""
    try:
        fields = loads(text)
    except JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}


def value(fields: Mapping[str, Any], path: str) -> Any:
    """What stands under a key, or under one of an object within."""
    if path in fields:
        return fields[path]
    outer, dot, inner = path.partition(".")
    while dot:
        nested = fields.get(outer)
        if isinstance(nested, dict):
            return value(nested, inner)
        head, dot, inner = inner.partition(".")
        outer = f"{outer}.{head}"
    return None


def flat(fields: Mapping[str, Any], depth: int = _DEPTH_MAX, before: str = "") -> Iterator[tuple[str, Any]]:
    """Keys, those of objects within behind their objects' keys, with what stands under them."""
    for key, item in fields.items():
        if isinstance(item, dict) and depth > 1:
            yield f"{before}{key}", item
            yield from flat(item, depth - 1, f"{before}{key}.")
        else:
            yield f"{before}{key}", item


def layouts(lines: Sequence[bytes]) -> Iterator[Layout]:
    """Layouts that lines of objects, or of rows, may be of."""
    objects = [fields for line in lines if line.startswith(b"{") and (fields := parsed(line))]
    if objects and 4 * len(objects) >= len(lines):
        yield from map(structured_layout, _of_objects(objects[:_SAMPLE]))
    rows = [row for line in lines if b"," in line[:200] and (row := _row(line)) and len(row) > 2]
    if rows:
        yield from map(structured_layout, _of_rows(rows))


def _of_objects(objects: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns: dict[str, list[Any]] = {}
    for fields in objects:
        for key, item in flat(fields):
            columns.setdefault(key, []).append(item)
    whole = {key: items for key, items in columns.items() if len(items) == len(objects)}
    roles = _roles(whole)
    if roles is not None:
        names = {key: role for role, key in roles.items()}
        ordered = {key: names[key] for key in whole if key in names}
        yield json.dumps(ordered, separators=(",", ":"))


def _of_rows(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max({len(row) for row in rows}, key=[len(row) for row in rows].count)
    same = [row for row in rows if len(row) == width]
    timed = [[_form("", [item]) is not None for item in row] for row in same]
    place = max(range(width), key=lambda number: sum(row[number] for row in timed))
    # Others are the head of the table, and what goes on of a row with line ends in it.
    begun = [row for row, is_time in zip(same, timed, strict=True) if is_time[place]][:_SAMPLE]
    roles = _roles({str(number): list(column) for number, column in enumerate(zip(*begun, strict=True))})
    if roles is not None:
        names = {int(key): role for role, key in roles.items()}
        yield CSV + ",".join(names.get(number, "-") for number in range(width))


def _roles(columns: Mapping[str, Sequence[Any]]) -> dict[str, str] | None:
    """The key of each field; None if one is not there."""
    times = {key: form for key, items in columns.items() if (form := _form(key, items)) is not None}
    levels = [key for key, items in columns.items() if all(_level(item) for item in items)]
    loggers = [key for key, items in columns.items() if 2 * sum(_is_logger(item) for item in items) >= len(items)]
    if not loggers:
        loggers = [key for key in _LOGGERS if key in columns]
    texts = [key for key, items in columns.items() if all(isinstance(item, str) for item in items)]
    used = {*times, *levels[:1]}
    time, logger = _first(list(times), _TIMES), _first(loggers, _LOGGERS)
    messages = [key for key in texts if key not in used and key != logger]
    longest = max(messages, key=lambda key: sum(map(len, columns[key])), default=None)
    message = next((key for key in _MESSAGES if key in messages), longest)
    if time is None or logger is None or message is None or not levels:
        return None
    form = times[time]
    return {
        f"%d{{{form}}}" if form and form != DEFAULT_FORM else "%d": time,
        "%p": levels[0],
        _logger_field(columns[logger]): logger,
        "%m": message,
    }


def _first(keys: Sequence[str], preferred: Sequence[str]) -> str | None:
    return next((key for key in preferred if key in keys), keys[0] if keys else None)


def _form(key: str, items: Sequence[Any]) -> str | None:
    """The form of times, or of nothing else than times; empty for numbers and for log4j2's instant."""
    if all(isinstance(item, dict) and "epochSecond" in item for item in items):
        return ""
    if all(isinstance(item, int | float) and not isinstance(item, bool) for item in items):
        return "" if all(1e9 < item < 2e18 for item in items) else None
    times = []
    for item in items:
        text = item.encode() if isinstance(item, str) else b""
        time = spelled(text, len(text))
        if time is None or not time.shape or (time.start, time.end) != (0, len(text)):
            return None
        times.append(time)
    if not times or len({re.sub("S+", "S", time.shape) for time in times}) > 1:
        return None
    return form_of(times)[0]


def _level(item: Any) -> bool:
    return isinstance(item, str) and item.upper().strip().encode() in LEVEL_ALIASES


def _is_logger(item: Any) -> bool:
    return isinstance(item, str) and is_kafka(item)


def _logger_field(names: Sequence[str]) -> str:
    return "%c" if any("." in name for name in names if is_kafka(name)) else "%c{1}"


def layout_of_name(name: str) -> Layout:
    """The layout that has a name, which may be a conversion pattern; ValueError if none has it."""
    return structured_layout(name) if name.startswith(("{", CSV)) else pattern_layout(name)


@lru_cache(maxsize=256)
def structured_layout(name: str) -> Layout:
    """The layout of a name that `layouts` gave; ValueError if it is none."""
    if name.startswith(CSV):
        columns = _COLUMN.findall(name.removeprefix(CSV))
        role_of = {role: str(number) for number, role in enumerate(columns) if role != "-"}
        begun = rb'"?[^",\n]{0,40}"?,' * min(2, columns.index(next(role for role in columns if role.startswith("%d"))))
        return Layout(name, re.compile(begun + rb'"?[ \w]{0,4}\d[^"\n]{5,30}'), _maker(role_of, _fields_of_row))
    keys = parsed(name.encode())
    if not keys or not all(isinstance(role, str) for role in keys.values()):
        raise ValueError(f"no layout: {name}")
    return Layout(name, _OBJECT, _maker({role: key for key, role in keys.items()}, parsed))


def _row(text: bytes) -> list[str]:
    try:
        return next(csv.reader(text.decode(errors="replace").split("\n"), strict=False), [])
    except csv.Error:
        return []


def row_of(text: bytes) -> list[str]:
    """The cells of a row of CSV; none if it is not one row."""
    try:
        rows = list(csv.reader(text.decode(errors="replace").splitlines(keepends=True)))
    except csv.Error:
        return []
    return rows[0] if len(rows) == 1 else []


def _fields_of_row(text: bytes) -> dict[str, Any]:
    return {str(number): item for number, item in enumerate(row_of(text))}


def _maker(key_of: Mapping[str, str], fields_of: Callable[[bytes], dict[str, Any]]) -> Callable[[Clock], Parser]:
    time_role = next(role for role in key_of if role.startswith("%d"))
    form = time_role[3:-1] or DEFAULT_FORM
    time, level, message = key_of[time_role], key_of["%p"], key_of["%m"]
    logger_role = "%c" if "%c" in key_of else "%c{1}"
    logger = key_of[logger_role]
    traces = [key for key in _TRACES if key not in key_of.values()]

    def make(clock: Clock) -> Parser:
        read, loggers = reader(form, clock), Loggers()

        def parse(text: bytes) -> RecordHead | None:
            fields = fields_of(text)
            try:
                time_us = _instant(value(fields, time), read)
            except (ValueError, TypeError, KeyError, OverflowError):
                return None
            said = value(fields, message)
            if not isinstance(said, str):
                return None
            follows = None
            if not _OUTER_TRACES.isdisjoint(fields):
                follows = next((trace for key in traces if (trace := _trace(value(fields, key)))), None)
            if follows:
                said = follows if follows.startswith(said) else f"{said}\n{follows}"
            body = said.encode(errors="replace")
            name = value(fields, logger)
            if isinstance(name, str) and logger_role != "%c":
                name = loggers.resolve(name.encode(errors="replace"), body)
            about = LEVEL_ALIASES.get(str(value(fields, level)).strip().upper().encode(errors="replace"))
            return RecordHead(time_us, about, name if isinstance(name, str) else None, body)

        return parse

    return make


def _instant(item: Any, read: Callable[[bytes], int]) -> int:
    if isinstance(item, dict):
        return int(item["epochSecond"]) * 1_000_000 + int(item.get("nanoOfSecond", 0)) // 1000
    if isinstance(item, str):
        return read(item.encode())
    if isinstance(item, bool) or not isinstance(item, int | float):
        raise TypeError
    # Seconds, milliseconds, microseconds or nanoseconds: no broker logged before 2001.
    for most, factor in ((1e11, 1_000_000), (1e14, 1000), (1e17, 1)):
        if item < most:
            return int(item * factor)
    return int(item // 1000)


def _trace(item: Any) -> str | None:
    if isinstance(item, dict):
        item = next((item[key] for key in _IN_TRACE if key in item), None)
    return item if isinstance(item, str) and _THROWABLE.search(item) else None
