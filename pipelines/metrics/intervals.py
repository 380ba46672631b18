"""The intervals that metrics are given for, and gauges as they step from value to value. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class RunSpan(NamedTuple):
    """A stretch in which a broker ran, microseconds, the end exclusive."""

    start_us: int
    end_us: int
    from_start: bool  #: its log tells how it started, so nothing came before


class RunningInterval(NamedTuple):
    """An interval in which a broker ran."""

    start_us: int  #: a multiple of the length
    #: first_us, last_us: when the broker first and last ran within it, the latter exclusive
    first_us: int
    last_us: int
    from_start: bool  #: as of the last span in it


#: A log that says nothing for longer does not show that its broker ran on: the intervals after that are left out.
SILENCE_MAX_US = 7 * 86_400_000_000


def logged_spans(spans: Iterable[RunSpan], instants_us: Iterable[int]) -> Iterator[RunSpan]:
    """Spans without what lies further than `SILENCE_MAX_US` behind the last instant of which a log tells."""
    ordered = sorted(instants_us)
    for span in sorted(spans):
        within = ordered[bisect_left(ordered, span.start_us) : bisect_left(ordered, span.end_us)]
        start_us = before_us = span.start_us
        for instant_us in (*within, span.end_us):
            if instant_us - before_us > SILENCE_MAX_US:
                yield span._replace(start_us=start_us, end_us=before_us + SILENCE_MAX_US)
                start_us = instant_us
            before_us = instant_us
        if start_us < span.end_us:
            yield span._replace(start_us=start_us)


def intervals_of(spans: Iterable[RunSpan], length_us: int, since_us: int = 0) -> list[RunningInterval]:
    """Intervals in which a broker ran at all, in order.

    Args:
        since_us: only those from here on; a multiple of the length.
    """
    merged: dict[int, RunningInterval] = {}
    for span in sorted(spans):
        first = max(span.start_us, since_us)
        for start_us in range(first // length_us * length_us, span.end_us, length_us):
            begun = max(span.start_us, start_us)
            earlier = merged.get(start_us)
            first_us = begun if earlier is None else earlier.first_us
            merged[start_us] = RunningInterval(
                start_us, first_us, min(span.end_us, start_us + length_us), span.from_start
            )
    return [merged[start_us] for start_us in sorted(merged)]


@dataclass(frozen=True)
class Steps:
    """A number that changes at instants; before the first it is zero."""

    times_us: Sequence[int]  #: ascending; of several at one instant the last holds
    values: Sequence[int]  #: from each instant on

    @classmethod
    def of_changes(cls, changes: Iterable[tuple[int, int]]) -> Steps:
        """Steps of a sum, from what is added when."""
        times_us, values, total = [], [], 0
        for time_us, change in sorted(changes):
            total += change
            times_us.append(time_us)
            values.append(total)
        return cls(times_us, values)

    def at(self, time_us: int) -> int:
        """The value as of an instant."""
        place = bisect_right(self.times_us, time_us)
        return self.values[place - 1] if place else 0

    def highest(self, first_us: int, last_us: int) -> int:
        """The highest value that lasts into an interval or begins within it, its end exclusive."""
        begin, end = bisect_right(self.times_us, first_us), bisect_left(self.times_us, last_us)
        # Of several at one instant the last holds.
        values = (self.at(self.times_us[place]) for place in range(begin, end))
        return max([self.at(first_us), *values])

    def over(self, intervals: Iterable[RunningInterval]) -> Iterator[tuple[RunningInterval, int, int]]:
        """Of each interval the value at its end and the highest in it."""
        for interval in intervals:
            yield interval, self.at(interval.last_us - 1), self.highest(interval.first_us, interval.last_us)
