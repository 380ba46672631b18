"""Layouts: where a record starts in a file, and how its text splits into time, level, logger and message.

The layout of a file is inferred, not configured (`pipelines.bronze.layouts`). Layouts work on bytes. The writer of the
rows decodes the texts, once per batch. Times without a zone are read in the configured zone. In an hour that a zone
repeats, the file's `Clock` is set to the first or second pass (by `pipelines.bronze.repeated_hour`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

#: No start pattern matches more bytes than this: the reader relies on it when it cuts what it holds.
START_BYTES_MAX = 256

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
CACHE_MAX = 10_000

ISO_TIME = rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"


class RecordHead(NamedTuple):
    """A record split into its parts."""

    time_us: int  #: microseconds since the epoch
    level: str | None  #: TRACE to FATAL; None if the layout has none
    logger: str | None  #: logger name as logged; None if the text was cut before it
    message: bytes  #: the rest; continuation lines follow newlines


Parser = Callable[[bytes], RecordHead | None]
#: A line or an entry as it was logged (`pipelines.bronze.wrappers`): its stream, its text, True if the text continues
#: in the stream's next item, and the byte of the piece at which it begins.
Item = tuple[bytes, bytes, bool, int]
#: Items of a piece of a file. None if the piece is not of the log; none at all if it belongs to the frame alone.
Unwrap = Callable[[bytes], list[Item] | None]


@dataclass(frozen=True)
class Layout:
    """How records are written in a file: where they start, and how to parse them."""

    #: its conversion pattern, behind its wrappers' names: stored in ``bronze.log_files.layout``, it rebuilds it
    name: str
    start: re.Pattern[bytes]  #: matches the beginning of a record's first line, at most `START_BYTES_MAX` bytes of it
    make: Callable[[Clock], Parser]  #: builds a parser for one file; parsers hold caches and are not shared
    unwrap: Unwrap | None = None  #: removes the wrapper of each line; None if there is none
    #: matches the logger at the end of a line; None if the message does not end with its logger
    tail: re.Pattern[bytes] | None = None
    pieces: str = ""  #: how a file falls into what is unwrapped (`pipelines.bronze.wrappers.pieces`); empty: into lines
    is_entry: bool = False  #: each item is an entry of a container, which may be in another order than its neighbours
    order: str = ""  #: order of the records in the file (`pipelines.bronze.wrappers.order`); empty: by time

    @property
    def is_structured(self) -> bool:
        """Return True if the parts of a record are fields of a JSON object."""
        return self.name.endswith("}")

    def parser(self, zone: tzinfo) -> Parser:
        """Return a function that parses the text of a record to a `RecordHead`, or None if the text does not fit."""
        return self.make(Clock(zone))


class Clock:
    """Parses the times of one file. It caches recent seconds, because neighbouring lines share them."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._fold = 0
        self.seconds: dict[bytes, int] = {}

    def set_pass(self, is_second: bool) -> None:
        """Read repeated local times (clock set back) as the second pass if `is_second` from now on."""
        if is_second != self._fold:
            self._fold = int(is_second)
            self.seconds.clear()

    def read(self, text: bytes) -> int:
        """Return a time such as ``2026-11-20 15:33:21,101`` as microseconds since the epoch.

        Raises:
            ValueError: the text is not a time.
        """
        second = self.seconds.get(text[:19])
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
        return self.remember(text, (year, month, day, hour, minute, second))

    def remember(
        self, text: bytes, moment: tuple[int, int, int, int, int, int], offset: timedelta | None = None
    ) -> int:
        """Return a second as microseconds since the epoch, and cache it under ``text``.

        Args:
            offset: offset from UTC. None: the offset of the configured zone.

        Raises:
            ValueError: the second does not exist.
        """
        zone = self._zone if offset is None else timezone(offset)
        micros = (datetime(*moment, tzinfo=zone, fold=self._fold) - EPOCH) // MICROSECOND
        if len(self.seconds) >= CACHE_MAX:
            self.seconds.clear()
        self.seconds[text] = micros
        return micros

    def _general(self, text: bytes, second: int) -> int:
        """Return the time of a text of unusual length: no fraction, micro- or nanoseconds, or a zone at the end."""
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
