"""Records whose times are far from those around them: a machine with a dead clock, a damaged line. Pure.

A clock that is wrong for single lines does not show when they were written. Such records are kept and counted, without
a time. Otherwise one line would stretch the time range of its broker. The order of a file shows which times are far. A
log may be silent for weeks and then continue; a clock may be set, and later lines have the new time. So the
times on which earlier and later lines agree are right, and a few records with other times are strays.

At the ends of a file, where one side is missing, a few records are strays if they are earlier than those before them,
or after a silence longer than `SILENCE_MAX_US`. Times before Kafka existed, and times centuries ahead, are never valid.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from highwater.pipelines.base.instants import DAY_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _compute_year_us(year: int) -> int:
    return (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).days * DAY_US


#: Kafka was published in January 2011; nothing of it logs in another century.
FIRST_US = _compute_year_us(2011)
END_US = _compute_year_us(2200)
#: Reason of a record whose time is left out.
TIME_OUT_OF_RANGE = "time_out_of_range"
#: Maximum distance of neighbouring times: brokers' zones in one file, and a day, as only days are compared.
FAR_US = 2 * DAY_US
#: Segments are rolled and expired every few days, so a running broker is never silent for this time.
SILENCE_MAX_US = 366 * DAY_US
#: Agreeing records that prove a time, as for a clock that was set (`pipelines.grammars.clock`).
RECORDS_MIN = 20
#: Undecided groups of times, at most.
_GROUPS_MAX = 50
#: Places that a file's profile lists at most.
STRAYS_MAX = 10_000

_DATE = re.compile(rb"\d{4}-\d\d-\d\d")
#: The first digits of a number of seconds or milliseconds are about a day.
_JSON_DAY = re.compile(
    rb'"(?:@timestamp|timestamp|timeMillis|time|ts|datetime|epochSecond)" ?: ?"?(?:\d{4}-\d\d-\d\d|\d{5})'
)
_DAY_BYTES_MAX = 128


def is_possible(time_us: int) -> bool:
    """Return True if a time is plausible for a Kafka log, between `FIRST_US` and `END_US`."""
    return FIRST_US <= time_us < END_US


class _Group:
    """Consecutive records with times near each other, fewer than `RECORDS_MIN`."""

    __slots__ = ("first_us", "last_us", "offsets")

    def __init__(self, offset: int, time_us: int) -> None:
        self.offsets = [offset]
        self.first_us = self.last_us = time_us


class StrayWatch:
    """Finds records of one file whose times are far from those around them. Most are skipped by their first bytes.

    Attributes:
        first_us: time of the first valid record. None before one is found.
        offsets: byte offsets of records with a stray time.
    """

    def __init__(self) -> None:
        self.first_us: int | None = None
        self.offsets: list[int] = []
        #: Time that is certain.
        self._now_us: int | None = None
        self._groups: list[_Group] = []
        #: Text up to the day of a record at that time.
        self._day: bytes | None = None

    @property
    def is_waiting(self) -> bool:
        """Return True while it is undecided if the last records have stray times."""
        return bool(self._groups)

    def asks(self, text: bytes) -> bool:
        """Return True if the next record must be passed to `see`. False if its day equals the last record's."""
        day = self._day
        return day is None or text[: len(day)] != day

    def see(self, offset: int, time_us: int, text: bytes) -> None:
        """Add the next record. Its time must be plausible (`is_possible`)."""
        now_us = self._now_us
        if not self._groups and now_us is not None and abs(time_us - now_us) <= FAR_US:
            self._now_us = time_us
            self._day = _cut_to_day(text, time_us)
            return
        self._day = None
        group = next((group for group in self._groups if abs(time_us - group.last_us) <= FAR_US), None)
        if group is None:
            self._groups.append(_Group(offset, time_us))
            if len(self._groups) > _GROUPS_MAX:
                self._settle(_find_chain(self._groups, now_us, None))
            return
        group.offsets.append(offset)
        group.last_us = time_us
        if len(group.offsets) >= RECORDS_MIN:
            self._settle(self._list_certain(group))

    def end(self) -> int | None:
        """End the file. Return the time of the last record if it was undecided, else None."""
        last_us = None
        if self._groups:
            chosen = _find_chain(self._groups, self._now_us, None)
            last_us = max(chosen, key=lambda group: group.offsets[-1]).last_us if chosen else None
            self._settle(chosen)
        return last_us

    def _list_certain(self, certain: _Group) -> list[_Group]:
        """Return the groups with valid times, given one group that is certain."""
        if self._now_us is None:
            return _find_chain(self._groups, None, certain)
        low, high = sorted((self._now_us, certain.last_us))
        return [group for group in self._groups if low - FAR_US <= group.first_us <= high + FAR_US or group is certain]

    def _settle(self, chosen: Sequence[_Group]) -> None:
        strays = [offset for group in self._groups if group not in chosen for offset in group.offsets]
        self.offsets += strays[: STRAYS_MAX - len(self.offsets)]
        if chosen:
            if self.first_us is None:
                self.first_us = min(chosen, key=lambda group: group.offsets[0]).first_us
            self._now_us = max(chosen, key=lambda group: group.offsets[-1]).last_us
        self._groups = []


def _find_chain(groups: Sequence[_Group], before_us: int | None, certain: _Group | None) -> list[_Group]:
    """Return the groups in time order that together have the most records.

    Args:
        before_us: last certain time before the groups. None at the start of a file.
        certain: group that must be the last one. None for any.
    """
    best: list[tuple[int, int, list[_Group]]] = []
    for number, group in enumerate(groups):
        gap_us = 0 if before_us is None else group.first_us - before_us
        candidates = [(len(group.offsets), -abs(gap_us), [group])] if -FAR_US <= gap_us <= SILENCE_MAX_US else []
        for (records, gaps_us, chain), earlier in zip(best, groups[:number], strict=True):
            gap_us = group.first_us - earlier.last_us
            if chain and -FAR_US <= gap_us <= SILENCE_MAX_US:
                candidates.append((records + len(group.offsets), gaps_us - abs(gap_us), [*chain, group]))
        best.append(max(candidates, key=lambda candidate: candidate[:2], default=(0, 0, [])))
    if certain is None:
        return max(best, key=lambda candidate: candidate[:2], default=(0, 0, []))[2]
    return best[[group is certain for group in groups].index(True)][2]


def _cut_to_day(text: bytes, time_us: int) -> bytes | None:
    """Return the first bytes of a record that contain its date. None if they show none near `time_us`."""
    if text.startswith(b"{"):
        match = _JSON_DAY.search(text, 0, _DAY_BYTES_MAX)
        return None if match is None else text[: match.end()]
    match = _DATE.search(text, 0, _DAY_BYTES_MAX)
    if match is None:
        return None
    try:
        day_us = (datetime.fromisoformat(match[0].decode()).replace(tzinfo=UTC) - _EPOCH).days * DAY_US
    except ValueError:
        return None
    return text[: match.end()] if abs(time_us - day_us) <= FAR_US else None
