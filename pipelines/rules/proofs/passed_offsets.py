"""Offsets that a high watermark has passed over, whatever the order in which that was told."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from schemas.audit_facts import Fact

#: Stretches that are kept; the lowest ones are forgotten, so that fewer second passes are seen and never more.
STRETCHES_MAX: Final = 4096


class PassedOffsets:
    """Disjoint stretches of offsets, each with a fact that passed over part of it.

    A high watermark that only grows passes over every offset once. Steps whose lines are missing leave holes.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._facts: list[Fact] = []

    def add(self, fact: Fact) -> Fact | None:
        """Pass from ``previous`` to ``high_watermark``; gives the fact of a stretch that had been passed already."""
        assert fact.previous is not None
        assert fact.high_watermark is not None
        start, end = fact.previous, fact.high_watermark
        if start >= end:
            return None
        at = bisect_right(self._starts, start)
        if at and self._ends[at - 1] > start:
            return self._facts[at - 1]
        if at < len(self._starts) and self._starts[at] < end:
            return self._facts[at]
        joins_left = at > 0 and self._ends[at - 1] == start
        joins_right = at < len(self._starts) and self._starts[at] == end
        if joins_left:
            self._ends[at - 1], self._facts[at - 1] = end, fact
            if joins_right:
                self._ends[at - 1] = self._ends[at]
                self._drop(at)
        elif joins_right:
            self._starts[at] = start
        else:
            self._starts.insert(at, start)
            self._ends.insert(at, end)
            self._facts.insert(at, fact)
            if len(self._starts) > STRETCHES_MAX:
                self._drop(0)
        return None

    def _drop(self, at: int) -> None:
        del self._starts[at], self._ends[at], self._facts[at]
