"""Records whose parts are fields of a JSON object: which field is the time, the level, the logger, the message.

Fields are found by their values, never by their names. A name of a layout is an object itself,
``{"@timestamp":"%d","log.level":"%p",...}``: its keys are paths of fields. Rows of other containers (tables, stanzas,
arrays of records) become such objects first (`pipelines.bronze.wrappers.rows`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from itertools import product
from json import JSONDecodeError
from typing import Any

from highwater.pipelines.base.json_text import loads
from highwater.pipelines.bronze.layout import Clock, Layout, Parser, RecordHead
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION, has_anchor, is_context, share_of_anchors
from highwater.pipelines.bronze.layouts.literals import load_object
from highwater.pipelines.bronze.layouts.loggers import Loggers, is_kafka, is_trait
from highwater.pipelines.bronze.layouts.patterns import LEVEL_ALIASES, pattern_layout
from highwater.pipelines.bronze.layouts.times import DEFAULT_FORM, form_of, reader, spelled
from highwater.pipelines.grammars.grammar import parse_context

#: Leaves of a value by their paths: ``a.b`` in objects, ``a[0]`` in arrays, ``a[name]`` in arrays of names and values.
Row = dict[str, Any]
_OBJECT = re.compile(rb"\{")
_DEPTH_MAX = 12
_SAMPLE = 40
#: Items of an array of scalars that are leaves of their own.
_ITEMS_MAX = 40
_FRAME = re.compile(r"\n[^\S\n]*at |(?:Exception|Error)\b(?:(?!(?:Exception|Error)\b)[^\n])*\n")
_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w$]*\.)+[\w$]+(?:Exception|Error)")
_HAS_EXCEPTION = re.compile(rb'"' + _EXCEPTION.pattern.encode() + rb'"')
_DIGITS = re.compile(r"\d{10,19}(?:\.\d{1,9})?")
_KEY = rb"(?<![\w.@/-])[A-Za-z_@][\w.@/-]*+="
_PAIR = re.compile(rb"(" + _KEY + rb")(\"(?:[^\"\\]|\\.)*\"|[^\s\"]*)")
#: A line of pairs, as in logfmt, with what a frame may have behind it.
_PAIRS = re.compile(rb"(?:" + _PAIR.pattern + rb"[ \t]+){2,}" + _PAIR.pattern + rb"(?=\W{0,3}\Z)")
_BEGINS = re.compile(rb'\{["\']|(?=' + _KEY + rb")")
#: A name, and not a time or a text.
_NAME = re.compile(r"(?!\d)[\w.@:/-]{1,80}")
#: Rows that lack a path which this share of the others has are of other programs.
_COMMON = 0.7
#: Errors of values that are no times.
_NO_TIME = (ValueError, TypeError, KeyError, OverflowError)
_LEVELS = frozenset(name.decode() for name in LEVEL_ALIASES)
#: Fields that are tried as the message, at most.
_MESSAGES_MAX = 3


def parsed(text: bytes) -> dict[str, Any]:
    """Return the object of a line. Empty if the line is not an object."""
    try:
        fields = load_object(text)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def pairs(text: bytes) -> dict[str, Any]:
    """Return the key-value pairs of a line. Empty if the line has anything else."""
    found = _PAIRS.match(text)
    if found is None or text[found.end() :].strip():
        return {}
    return {name[:-1].decode(errors="replace"): _unquoted(said) for name, said in _PAIR.findall(text)}


def _unquoted(text: bytes) -> str:
    if text.startswith(b'"'):
        try:
            return str(loads(text))
        except JSONDecodeError:
            text = text[1:-1]
    return text.decode(errors="replace")


def object_at(line: bytes, within: int) -> int:
    """Return the index at which a JSON object or key-value pairs begin that fill the rest of the line. -1 if none."""
    for begins in _BEGINS.finditer(line, 0, within):
        start = begins.start()
        if begins[0]:
            end = line.rfind(b"}") + 1
            if len(line) - end < 4 and parsed(line[start:end]):
                return start
        elif _PAIRS.match(line, start):
            return start
    return -1


def value(fields: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path of keys separated by dots. None if there is none."""
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


def leaves(item: Any, path: str, row: Row, depth: int = _DEPTH_MAX) -> Row:
    """Add all scalar values below `item` to a row, by path, and return the row."""
    if isinstance(item, dict) and depth:
        if _is_instant(item):
            row[path] = item
            return row
        for key, inner in item.items():
            leaves(inner, f"{path}.{key}" if path else key, row, depth - 1)
    elif isinstance(item, list) and depth:
        if item and all(isinstance(byte, int) and 0 <= byte < 256 for byte in item):
            row[path] = bytes(item).decode(errors="replace")
        elif (named := _named_values(item)) is not None:
            for name, inner in named:
                leaves(inner, f"{path}[{name}]", row, depth - 1)
        elif len(item) <= _ITEMS_MAX:
            for number, inner in enumerate(item):
                if not isinstance(inner, dict | list):
                    leaves(inner, f"{path}[{number}]", row, depth - 1)
    elif item is not None:
        row[path] = item
    return row


def _named_values(items: Sequence[Any]) -> list[tuple[str, Any]] | None:
    """Return (name, value) of an array of pairs, such as OTLP attributes. None for other arrays."""
    named = [tuple(item.values()) for item in items if isinstance(item, dict) and len(item) == 2]
    names = {name for name, _ in named if isinstance(name, str) and _NAME.fullmatch(name)}
    if len(names) < len(items) or not named:
        return None
    # Records with their sources are pairs, too.
    records = sum(isinstance(inner, str) and has_anchor(inner.encode(errors="replace")) for _, inner in named)
    return named if 2 * records < len(named) else None


def _is_instant(item: Mapping[str, Any]) -> bool:
    """Return True for a log4j2 instant object."""
    return "epochSecond" in item


def arrays(item: Any, path: str = "", depth: int = _DEPTH_MAX) -> Iterator[str]:
    """Yield the paths of arrays whose elements may be records, outer arrays first.

    An empty path is the value itself.
    """
    if not path:
        yield ""
    if not depth:
        return
    if isinstance(item, dict):
        for key, inner in item.items():
            yield from arrays(inner, f"{path}.{key}" if path else key, depth - 1)
    elif isinstance(item, list) and item and _named_values(item) is None and not isinstance(item[0], int):
        yield f"{path}[]"
        yield from (inner for inner in arrays(item[0], f"{path}[]", depth - 1) if inner)


def rows(item: Any, array: str, path: str = "", outer: Row | None = None) -> Iterator[Row]:
    """Yield a row per element of an array, with the scalar values of the objects around the array."""
    if path == array:
        yield leaves(item, path, dict(outer or {}))
    elif isinstance(item, dict):
        row, inner = dict(outer or {}), None
        for key, below in item.items():
            at = f"{path}.{key}" if path else key
            if array.startswith((f"{at}.", f"{at}[]")):
                inner = below, at
            else:
                leaves(below, at, row)
        if inner is not None:
            yield from rows(inner[0], array, inner[1], row)
    elif isinstance(item, list):
        for element in item:
            yield from rows(element, array, f"{path}[]", outer)


def columns_of(table: Sequence[Row]) -> dict[str, list[Any]]:
    """Return by path the values of all rows. None where a row has no value."""
    paths = dict.fromkeys(path for row in table for path in row)
    return {path: [row.get(path) for row in table] for path in paths}


def text_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the paths whose texts may be records or messages, the most likely first."""
    shares = {}
    for path, items in columns.items():
        texts = [item.encode(errors="replace") for item in items if isinstance(item, str) and len(item) > 7]
        if 4 * len(texts) > len(items) and len(set(texts)) > len(texts) / 20:
            shares[path] = share_of_anchors(texts) * len(texts) / len(items)
    likely = [path for path, share in shares.items() if share > 0.01]
    lengths = {path: sum(len(item) for item in columns[path] if isinstance(item, str)) for path in likely}
    return sorted(likely, key=lambda path: (-round(shares[path], 1), -lengths[path]))


def layouts(table: Sequence[Row]) -> Iterator[Layout]:
    """Yield layouts that rows of a container may have."""
    columns = columns_of(_of_one_program(table[:: max(1, len(table) // _SAMPLE)]))
    whole = {path: items for path, items in columns.items() if None not in items}
    levels = [path for path, items in whole.items() if all(str(item).upper().strip() in _LEVELS for item in items)]
    loggers = [path for path, items in columns.items() if 2 * sum(map(_is_logger, items)) >= len(items)]
    contexts = [path for path, items in columns.items() if 2 * sum(map(names_node, items)) > len(items)]
    times = _times(whole)
    if not times:
        return
    messages = [path for path in text_columns(columns) if path not in {*times, *loggers}]
    if not messages:
        texts = [path for path in whole if path not in {*times, *loggers, *levels} and all(map(_is_text, whole[path]))]
        messages = sorted(texts, key=lambda path: -sum(map(len, whole[path])))
    named = [(path, _logger_form(columns[path])) for path in loggers[:2]] or [("", "")]
    for message, (logger, field) in product(messages[:_MESSAGES_MAX], named):
        time = next(iter(times))
        form = times[time]
        roles = {time: f"%d{{{form}}}" if form and form != DEFAULT_FORM else "%d", message: "%m"}
        if levels:
            roles[levels[0]] = "%p"
        if logger:
            roles[logger] = field
        if context := next((path for path in contexts if path not in roles), None):
            roles[context] = "%x"
        ordered = {path: roles[path] for path in columns if path in roles}
        if {"%m", "%p"} & set(roles.values()) and len(ordered) > 1:
            yield structured_layout(json.dumps(ordered, separators=(",", ":")))


def _of_one_program(table: Sequence[Row]) -> list[Row]:
    """Return the rows that have all the paths which most rows have."""
    counts = Counter(path for row in table for path in row)
    common = [path for path, count in counts.items() if count >= _COMMON * len(table)]
    return [row for row in table if all(path in row for path in common)] or list(table)


def _times(columns: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Return the time format by path of fields with times, the record's own first: it is the earliest.

    A field that hardly changes is not a record time.
    """
    forms = {path: form for path, items in columns.items() if (form := _form(items)) is not None}
    most = max((len(set(map(str, columns[path]))) for path in forms), default=0)
    kept = {path: form for path, form in forms.items() if 2 * len(set(map(str, columns[path]))) > most}
    whole = {path: sorted(us) for path, form in kept.items() if (us := _instants(columns[path], form))}
    first = sorted(whole, key=lambda path: whole[path][len(whole[path]) // 2] // 1000)
    return {path: forms[path] for path in first}


def _instants(items: Sequence[Any], form: str) -> list[int]:
    """Return times of one field in microseconds. Empty if one of them is not a time."""
    read = reader(form or DEFAULT_FORM, Clock(UTC))
    try:
        return [_instant(item, read) for item in items]
    except _NO_TIME:
        return []


def _form(items: Sequence[Any]) -> str | None:
    """Return the time format of values. None if one is not a time. Empty for numbers and log4j2 instants."""
    if all(isinstance(item, dict) and _is_instant(item) for item in items):
        return ""
    numbers = [_number(item) for item in items]
    if all(number is not None and 1e9 < number < 2e18 for number in numbers):
        return ""
    times = []
    for item in items:
        text = item.strip().encode() if isinstance(item, str) else b""
        time = spelled(text, len(text))
        if time is None or not time.shape or (time.start, time.end) != (0, len(text)):
            return None
        times.append(time)
    if not times or len({re.sub("S+", "S", time.shape) for time in times}) > 1:
        return None
    return form_of(times)[0]


def _number(item: Any) -> int | float | None:
    if isinstance(item, str) and _DIGITS.fullmatch(item):
        return float(item) if "." in item else int(item)
    return item if isinstance(item, int | float) and not isinstance(item, bool) else None


def _is_logger(item: Any) -> bool:
    return isinstance(item, str) and is_kafka(item)


def _logger_form(names: Sequence[Any]) -> str:
    """Return the layout field for names: full logger names, or names that need the message to resolve."""
    kafkas = [name for name in names if _is_logger(name)]
    if any(map(is_trait, kafkas)) or not any("." in name for name in kafkas):
        return "%c{1}"
    return "%c"


def layout_of_name(name: str) -> Layout:
    """Return the layout for its name, which may be a conversion pattern.

    Raises:
        ValueError: no layout has the name.
    """
    return structured_layout(name) if name.startswith("{") else pattern_layout(name)


@lru_cache(maxsize=256)
def structured_layout(name: str) -> Layout:
    """Return the layout for a name that `layouts` created.

    Raises:
        ValueError: the name is invalid.
    """
    keys = parsed(name.encode())
    role_of = {role: key for key, role in keys.items() if isinstance(role, str)}
    if not any(role.startswith("%d") for role in role_of) or "%m" not in role_of:
        raise ValueError(f"invalid layout {name!r}; expected an object with %d and %m")
    return Layout(name, _OBJECT, _maker(role_of))


def _maker(key_of: Mapping[str, str]) -> Callable[[Clock], Parser]:
    time_role = next(role for role in key_of if role.startswith("%d"))
    form = time_role[3:-1] or DEFAULT_FORM
    time, message, level = key_of[time_role], key_of["%m"], key_of.get("%p")
    logger_role = next((role for role in key_of if role.startswith("%c")), "%c{1}")
    logger, context = key_of.get(logger_role), key_of.get("%x")

    def make(clock: Clock) -> Parser:
        read, loggers = reader(form, clock), Loggers()

        def parse(text: bytes) -> RecordHead | None:
            # A line of another program may follow the record's own.
            fields, rest = parsed(text), b""
            if not fields:
                first, _, rest = text.partition(b"\n")
                fields = parsed(first[: first.rfind(b"}") + 1])
            try:
                time_us = _instant(value(fields, time), read)
            except _NO_TIME:
                return None
            said = value(fields, message)
            if not isinstance(said, str):
                return None
            follows = _trace(fields, said) or (_exception(fields) if _HAS_EXCEPTION.search(text) else None)
            if follows is not None:
                said = follows if follows.startswith(said) else f"{said}\n{follows}"
            component = value(fields, context) if context else None
            if isinstance(component, str) and is_context(component.encode(errors="replace")):
                said = f"[{component}] {said}"
            body = said.encode(errors="replace")
            if CONTINUATION.match(rest):
                body += b"\n" + rest
            name = value(fields, logger) if logger else ""
            if isinstance(name, str) and logger_role != "%c":
                name = loggers.resolve(name.encode(errors="replace"), body)
            about = value(fields, level) if level else None
            known = LEVEL_ALIASES.get(str(about).strip().upper().encode(errors="replace"))
            return RecordHead(time_us, known, name if isinstance(name, str) else None, body)

        return parse

    return make


def _instant(item: Any, read: Callable[[bytes], int]) -> int:
    if isinstance(item, dict):
        return int(item["epochSecond"]) * 1_000_000 + int(item.get("nanoOfSecond", 0)) // 1000
    number = _number(item)
    if number is None:
        if not isinstance(item, str):
            raise TypeError(f"not a time: {item!r}")
        return read(item.strip().encode())
    # Seconds, milliseconds, microseconds or nanoseconds: no broker logged before 2001.
    for most, factor in ((1e11, 1_000_000), (1e14, 1000), (1e17, 1)):
        if number < most:
            return int(number * factor)
    return int(number // 1000)


def _trace(fields: Mapping[str, Any], said: str) -> str | None:
    """Return the stack trace in a field other than the message. None if there is none."""
    found = ""
    for item in fields.values():
        if isinstance(item, dict):
            item = _trace(item, said)
        if isinstance(item, str) and item != said and len(item) > len(found) and _is_trace(item):
            found = item
    return found or None


def _exception(fields: Mapping[str, Any]) -> str | None:
    """Return the first line of a stack trace, from an object with class and message. None if there is none."""
    row = leaves(fields, "", {})
    for path, name in row.items():
        outer = path.rpartition(".")[0]
        if not outer or not isinstance(name, str) or not _EXCEPTION.fullmatch(name):
            continue
        others = [item for other, item in row.items() if other != path and other.rpartition(".")[0] == outer]
        return f"{name}: {max((item for item in others if isinstance(item, str)), key=len, default='')}"
    return None


def names_node(item: Any) -> bool:
    """Return True if a value is a Kafka component with its node or partition."""
    return isinstance(item, str) and any(part is not None for part in parse_context(item)[:6])


def _is_text(item: Any) -> bool:
    return isinstance(item, str) and not _is_trace(item)


def _is_trace(text: str) -> bool:
    return "\n" in text and _FRAME.search(text) is not None
