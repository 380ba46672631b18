"""Decides in which pass of a repeated hour a line was written. Pure.

log4j writes local time without an offset. When clocks are set back, usually in October, the last hour repeats, and a
local time in it means two instants. Lines of a file are in order, and so are files of a series (``server.log.2``,
``server.log.1``, ``server.log``). The second pass begins where time decreases by at least half of the repeated span.
Without such a step, the decision assumes that a log is not silent for the whole span. A log that begins in the hour and
continues after it is in the second pass. A log that begins before the hour and ends in it is in the first pass. If the
log may have been silent for half of the span, the first pass is assumed, and the uncertainty is reported.

A `Passage` holds what a file's lines show alone, and `placed` decides for a series.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from pathlib import PurePath
from typing import NamedTuple

from highwater.pipelines.base.values import instant

_SECOND_US = 1_000_000
_HOUR_US = 3_600 * _SECOND_US
#: Lines may be out of order by so much: a pause of the process.
DISORDER_US = 60 * _SECOND_US


class Repeat(NamedTuple):
    """A span of local time that occurs twice, because clocks are set back."""

    start_us: int  #: instant at which its first pass begins
    switch_us: int  #: instant at which clocks are set back: the second pass begins
    offset_us: int  #: of local time from UTC in the first pass

    @property
    def span_us(self) -> int:
        return self.switch_us - self.start_us

    @property
    def end_us(self) -> int:
        """Return when the second pass ends, us since the epoch."""
        return self.switch_us + self.span_us

    @property
    def hours(self) -> list[bytes]:
        """Return the local hours of the span as logs write them, with a blank and with a T: ``2026-10-25 02``."""
        first, last = self.start_us + self.offset_us, self.switch_us - 1 + self.offset_us
        hours = range(first // _HOUR_US, last // _HOUR_US + 1)
        texts = [instant(hour * _HOUR_US).strftime(f"%Y-%m-%d{sign}%H") for hour in hours for sign in " T"]
        return [text.encode() for text in texts]


@lru_cache(maxsize=256)
def repeats(zone: tzinfo, year: int) -> tuple[Repeat, ...]:
    """Return the repeated spans of a zone for clock changes in a UTC year."""
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    last = int(datetime(year + 1, 1, 1, tzinfo=UTC).timestamp())
    spans = []
    for day in range(first, last, 86_400):
        low, high = day, day + 86_400
        before, after = _offset_s(zone, low), _offset_s(zone, high)
        if after >= before:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _offset_s(zone, middle) == before else (low, middle)
        start = high - (before - after)
        spans.append(Repeat(start * _SECOND_US, high * _SECOND_US, before * _SECOND_US))
    return tuple(spans)


def _offset_s(zone: tzinfo, time_s: int) -> int:
    offset = datetime.fromtimestamp(time_s, zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


# ------------------------------------------------------------------------ one file


class Passage(NamedTuple):
    """What the lines of a file show about a repeated span. Times belong to the first pass."""

    #: start_us, span_us: of the `Repeat`
    start_us: int
    span_us: int
    first_us: int  #: of its first line in the span
    highest_us: int  #: of the last line there but for disorder
    begins: bool  #: whether the file has no line before, and after it
    begin_offset: int  #: byte of the first of these lines
    ends: bool = True  #: whether the file has no line before, and after it
    #: bytes of lines from which on they are of the other pass than those before: where time goes back by half of the
    #: span, and around lines of the first pass that come late
    flips: tuple[int, ...] = ()
    is_stepped: bool = False  #: time goes back so far between these lines
    #: its first line is of the second pass, as a line of the first that comes late behind it shows
    is_after: bool = False
    is_torn: bool = False  #: time went back so far more than once, or from the beginning of the span to its end at once
    disorder_us: int = 0  #: by how much it went back otherwise, at most
    #: the longest time without a line, from the last line before to the first line after the span, in local time
    silence_us: int = 0


class PassageWatch:
    """Collects what a file's lines near repeated spans show, in order."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._repeats: list[Repeat] = []
        self._passages: list[Passage] = []
        self._before_us: int | None = None
        #: Logged end of the first pass, in the current span.
        self._first_pass_us: int | None = None
        self._is_late = False
        #: First line of the span that is near its end, after lines near its beginning.
        self._leap_offset: int | None = None

    def hours(self, time_us: int) -> list[bytes]:
        """Return the hours, as logs write them, whose lines must be passed to `see`.

        Args:
            time_us: first time of the log, us since the epoch.
        """
        year = instant(time_us).year
        self._repeats = [span for near in range(year - 1, year + 3) for span in repeats(self._zone, near)]
        return [hour for span in self._repeats for hour in span.hours]

    def passages(self) -> list[Passage]:
        """Return what was found about each repeated span, in order."""
        return list(self._passages)

    def is_repeated(self, time_us: int) -> bool:
        """Return True if a time is in a first pass, so that the second pass has the same local time."""
        return any(span.start_us <= time_us < span.switch_us for span in self._repeats)

    def see(self, byte_offset: int, time_us: int, is_repeated: bool) -> None:
        """Add the next line.

        Args:
            byte_offset: offset of the line in the file.
            time_us: time of the line in the first pass, us since the epoch.
            is_repeated: True if the line may be in the second pass instead.
        """
        if not is_repeated:
            self._outside(time_us)
            return
        span = next(span for span in self._repeats if span.start_us <= time_us < span.switch_us)
        if self._passages and self._passages[-1].start_us == span.start_us:
            self._passages[-1] = self._within(self._passages[-1], byte_offset, time_us)
            return
        silence_us = 0 if self._before_us is None else time_us - self._before_us
        begun = Passage(span.start_us, span.span_us, time_us, time_us, self._before_us is None, byte_offset)
        self._passages.append(begun._replace(silence_us=silence_us))
        self._first_pass_us, self._is_late, self._leap_offset = None, False, None

    def _outside(self, time_us: int) -> None:
        last = self._passages[-1] if self._passages else None
        if last is not None and last.ends and time_us >= last.start_us + 2 * last.span_us:
            silence_us = time_us - last.span_us - last.highest_us
            self._passages[-1] = last._replace(ends=False, silence_us=max(last.silence_us, silence_us))
        self._before_us = time_us

    def _within(self, passage: Passage, byte_offset: int, time_us: int) -> Passage:
        flips = (*passage.flips, byte_offset) if self._is_late else passage.flips
        passage, self._is_late = passage._replace(flips=flips, ends=True), False
        back_us = passage.highest_us - time_us
        if 2 * back_us >= passage.span_us:
            if self._first_pass_us is not None:
                return passage._replace(is_torn=True)
            self._first_pass_us = passage.highest_us
            if self._leap_offset is not None and time_us <= passage.start_us + DISORDER_US:
                # The file begins with the second pass: the lines between are late, and there was no silence.
                flips = (self._leap_offset, byte_offset)
                return passage._replace(flips=flips, is_after=True, is_torn=False, highest_us=time_us, silence_us=0)
            return passage._replace(flips=(*flips, byte_offset), is_stepped=True, highest_us=time_us)
        if (
            self._first_pass_us is not None
            and time_us >= self._first_pass_us - DISORDER_US
            and -2 * back_us >= passage.span_us
        ):
            self._is_late = True
            return passage._replace(flips=(*flips, byte_offset))
        is_near = passage.highest_us <= passage.start_us + DISORDER_US
        if is_near and time_us >= passage.start_us + passage.span_us - DISORDER_US:
            self._leap_offset = byte_offset
        return passage._replace(
            is_torn=passage.is_torn or self._leap_offset == byte_offset,
            highest_us=max(passage.highest_us, time_us),
            disorder_us=max(passage.disorder_us, back_us),
            silence_us=max(passage.silence_us, -back_us),
        )


# ------------------------------------------------------------------------ a series


class SeriesLog(NamedTuple):
    """A file of a series."""

    path: str
    #: first_us, last_us: times of its first and last record; in a repeated span read as in the first pass
    first_us: int
    last_us: int
    #: passages of a file of this run; None if the lake has the true times of the file
    passages: tuple[Passage, ...] | None


@dataclass(frozen=True)
class Placed:
    """How the times of a file are read."""

    #: bytes from which on repeated times are of the second pass, then of the first again, and so on
    flips: tuple[int, ...]
    #: first_us, last_us: instants of its first and its last record
    first_us: int
    last_us: int
    undecided: tuple[int, ...] = ()  #: starts of the spans whose pass is undecided


def placed(logs: Iterable[SeriesLog]) -> dict[str, Placed]:
    """Return by path how the times of files with lines in a repeated span are read."""
    series: dict[tuple[str, ...], list[SeriesLog]] = defaultdict(list)
    of_run = []
    for log in logs:
        series[_series(log.path)].append(log)
        of_run += [log] if log.passages else []
    decisions = {}
    for name in {_series(log.path) for log in of_run}:
        spans = {(p.start_us, p.span_us) for log in series[name] for p in log.passages or ()}
        for start_us, span_us in spans:
            for path, is_second in _decided(series[name], start_us, span_us).items():
                decisions[path, start_us] = is_second
    return {log.path: _placed(log, decisions) for log in of_run}


def _placed(log: SeriesLog, decisions: dict[tuple[str, int], bool | None]) -> Placed:
    """Return how the times of a file are read.

    Args:
        decisions: (path, span) → True if the file's first line in the span is in the second pass. None if undecided.
    """
    passages = log.passages or ()
    flips: list[int] = []
    first_us, last_us = log.first_us, log.last_us
    for passage in passages:
        is_second = decisions[log.path, passage.start_us]
        # A span before this one has left the reading where it was.
        if bool(is_second) != len(flips) % 2:
            flips.append(passage.begin_offset)
        if passage.begins and is_second:
            first_us += passage.span_us
        flips += passage.flips
        if passage.ends and len(flips) % 2:
            last_us += passage.span_us
    undecided = tuple(p.start_us for p in passages if decisions[log.path, p.start_us] is None)
    return Placed(tuple(flips), first_us, last_us, undecided)


def _decided(series: Sequence[SeriesLog], start_us: int, span_us: int) -> dict[str, bool | None]:
    """Return by path True if the file's first line in a span is in the second pass. None if undecided.

    Only files of this run with lines in the span are included.
    """
    switch_us, end_us = start_us + span_us, start_us + 2 * span_us
    known = sorted((log for log in series if log.passages is None), key=lambda log: log.last_us)
    read = sorted((log for log in series if log.passages is not None), key=lambda log: _rotation(log.path))
    within = [(log.path, p) for log in read for p in log.passages or () if p.start_us == start_us]
    began_second = any(switch_us <= log.last_us < end_us for log in known)
    began_first = any(start_us <= log.last_us < switch_us for log in known)
    before = [log for log in series if start_us - span_us // 2 < log.last_us < start_us]
    after = [log for log in series if end_us <= log.first_us < end_us + span_us // 2]

    is_second: bool | None = began_second
    decided: dict[str, bool | None] = {}
    steps, disorder_us, silence_us = 0, 0, 0
    highest_us = max((log.last_us for log in known if start_us <= log.last_us < switch_us), default=None)
    for path, passage in within:
        if highest_us is not None:
            back_us = highest_us - passage.first_us
            if 2 * back_us >= span_us and not began_second:
                steps, is_second = steps + 1, True
            else:
                disorder_us, silence_us = max(disorder_us, back_us), max(silence_us, -back_us)
        if passage.is_after and not is_second:
            steps, is_second = steps + 1, True
        # The last lines of the first pass may come late, behind the first of the second, in the next file.
        is_late = is_second and passage.is_stepped and passage.first_us >= switch_us - DISORDER_US
        decided[path] = is_second and not is_late
        if passage.is_stepped and not is_late:
            steps, is_second = steps + 1, True
        disorder_us, silence_us = max(disorder_us, passage.disorder_us), max(silence_us, passage.silence_us)
        highest_us = passage.highest_us
    if (
        disorder_us > DISORDER_US
        or steps > 1
        or (steps and began_second)
        or any(passage.is_torn for _, passage in within)
    ):
        return dict.fromkeys(decided)
    if steps or began_second:
        return decided
    begins = within[0][1].begins and not before and not began_first
    ends = within[-1][1].ends and not after
    if 2 * silence_us >= span_us or begins == ends:
        return dict.fromkeys(decided)
    return dict.fromkeys(decided, begins)


_NUMBER = re.compile(r"\d+")
_ENDING = r"(?:\.(?:gz|bz2|xz|zst|lz4|zip))?"
#: ``server.log.2026-11-20-14``, ``server.log.3.gz``; ``server-2026-11-20-1.log.gz``.
_MARKED = re.compile(
    r"(?P<name>.+?)(?:-(?P<date>\d{4}-\d\d-\d\d[\d-]{0,20}))?(?P<end>\.(?:log|out))(?:[.-](?P<mark>\d[\d:.T-]*))?"
    + _ENDING
)


def _series(path: str) -> tuple[str, ...]:
    """Return the key of a file's rotation series. A file without one is its own series."""
    folder, name = str(PurePath(path).parent), PurePath(path).name
    match = _MARKED.fullmatch(name)
    return (folder, match["name"] + match["end"]) if match else (folder, name)


def _rotation(path: str) -> tuple[int, list[int]]:
    """Return the sort key of a file in its series, the oldest first.

    Files with higher numbers are older. A file without a number is last.
    """
    match = _MARKED.fullmatch(PurePath(path).name)
    mark = (match["mark"] or match["date"] or "") if match else ""
    if not mark:
        return 1, []
    return 0, [-int(mark)] if len(mark) <= 4 and mark.isdigit() else [int(digits) for digits in _NUMBER.findall(mark)]
