"""Layouts that a user names: a log4j pattern, or a regular expression with named groups. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from highwater.pipelines.bronze.known import KNOWN
from highwater.pipelines.bronze.layout import Clock, Item, Layout, Parser, RecordHead
from highwater.pipelines.bronze.layouts.loggers import Loggers
from highwater.pipelines.bronze.layouts.patterns import LEVEL_ALIASES, pattern_layout
from highwater.pipelines.bronze.layouts.times import form_of, reader, spelled

REGEX = "regex "
GROUPS = ("time", "level", "logger", "thread", "message", "source")
_EXAMPLE = r"expected for example '%d{ISO8601} %-5p [%t] %c: %m' or '(?P<time>\S+ \S+) (?P<level>\w+) (?P<message>.*)'"
_SHORT = {long: short for short, names in KNOWN.conversions.items() for long in names.split()}
_PASSED = frozenset(("n", "ex", "exception", "throwable", "rEx", "xEx", "xThrowable", "wEx"))
_CONVERSION = re.compile(r"%(-?\d+)?(?:\.-?\d+)?([A-Za-z]+)((?:\{(?:[^{}']|'[^']*')*\})*)|%%")
_NAMED_DATES = {"": "", "ISO8601": "", "DEFAULT": "", "ISO8601_OFFSET_DATE_TIME_HHMM": ""}


def given_layout(text: str) -> Layout:
    """Return the layout for a pattern given by the user.

    Raises:
        ValueError: the text is neither a log4j pattern nor a regular expression with the groups of a record.
    """
    try:
        if "(?" in text:
            return regex_layout(REGEX + text)
        return pattern_layout(normalised(text))
    except (ValueError, re.error) as error:
        raise ValueError(f"invalid log format {text!r} ({error}); {_EXAMPLE}") from None


def normalised(pattern: str) -> str:
    """Return a log4j, log4j2 or logback pattern with the conversion words that layouts use."""

    def short(found: re.Match[str]) -> str:
        width, name, options = found.groups()
        if name is None:
            return "%%"
        name = _SHORT.get(name, name)
        option = options.partition("}")[0].removeprefix("{")
        if name in _PASSED:
            return ""
        if name == "d":
            form = _NAMED_DATES.get(option, option)
            return f"%d{{{form}}}" if form else "%d"
        if name == "c":
            return "%c{1}" if option else "%c"
        return "%-5p" if name == "p" and width else f"%{name}"

    return _CONVERSION.sub(short, pattern).rstrip()


def regex_layout(name: str) -> Layout:
    """Return the layout of a regular expression; its name is `REGEX` and the expression.

    Raises:
        ValueError: a group for the time or the message is missing, or a group has another name.
    """
    pattern = re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", name.removeprefix(REGEX)).encode())
    groups = set(pattern.groupindex)
    if not {"time", "message"} <= groups or not groups <= set(GROUPS):
        raise ValueError(f"groups {sorted(groups)}; needed are time and message, known are {', '.join(GROUPS)}")
    last = b""

    def unwrap(line: bytes) -> list[Item] | None:
        nonlocal last
        if "source" in groups and (found := pattern.match(line)) is not None:
            last = found["source"] or b""
        return [(last, line, False, 0)]

    def make(clock: Clock) -> Parser:
        readers: dict[str, Callable[[bytes], int]] = {}
        loggers = Loggers()

        def parse(text: bytes) -> RecordHead | None:
            first, end, rest = text.partition(b"\n")
            found = pattern.match(first)
            time = spelled(found["time"], len(found["time"])) if found else None
            if found is None or time is None or not time.shape:
                return None
            if time.shape not in readers:
                form, _ = form_of([time])
                if form is None:
                    return None
                readers[time.shape] = reader(form, clock)
            try:
                time_us = readers[time.shape](found["time"][time.start : time.end])
            except ValueError:
                return None
            level = (found["level"] or b"").strip().upper() if "level" in groups else b""
            logger = (found["logger"] or b"").strip() if "logger" in groups else b""
            message = (found["message"] or b"") + end + rest
            return RecordHead(time_us, LEVEL_ALIASES.get(level), loggers.resolve(logger, message), message)

        return parse

    return Layout(name, pattern, make, unwrap=unwrap)
