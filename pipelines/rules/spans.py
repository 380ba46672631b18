"""Spans of time, in microseconds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: (since, until) in order, without overlaps, in microseconds.
Spans = Sequence[tuple[int, int]]


class Silence(NamedTuple):
    """A span without lines, during work that was logged before."""

    since_us: int
    until_us: int
    work: str


def merge(spans: Iterable[tuple[int, int]], gap_us: int) -> Spans:
    """Return (start, end) pairs sorted, and merged if at most `gap_us` apart."""
    merged: list[tuple[int, int]] = []
    for since, until in sorted(spans):
        if merged and since <= merged[-1][1] + gap_us:
            merged[-1] = merged[-1][0], max(merged[-1][1], until)
        else:
            merged.append((since, until))
    return merged


def length_of(span: tuple[int, int]) -> int:
    """Return end minus start."""
    return span[1] - span[0]


def covered_time(spans: Spans, span: tuple[int, int]) -> int:
    """Return how many microseconds of `span` the `spans` cover."""
    return sum(max(0, min(until, span[1]) - max(since, span[0])) for since, until in spans)
