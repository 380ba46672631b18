"""Repeated cases: the first one of each place is reported, with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from highwater.pipelines.rules.rule import Case, unless_anew


class Repeated:
    """Collects cases by key and reports the first of each key, with their number.

    Args:
        of_many: text for several cases, for example ``{} times in this epoch``.
    """

    def __init__(self, of_many: str) -> None:
        self._of_many = of_many
        self._first: dict[Any, Case] = {}
        self._times: Counter[Any] = Counter()

    def add(self, place: tuple[Any, ...], make: Callable[[], Case]) -> None:
        """Count a case under `place`. `make` is called for the first one; its message has no full stop."""
        if place not in self._first:
            self._first[place] = make()
        self._times[place] += 1

    def cases(self) -> Iterator[Case]:
        """Yield the first case of each key, in key order, with the number of cases."""
        for place, case in sorted(self._first.items(), key=lambda item: item[0]):
            times = self._times[place]
            more = f"; {self._of_many.format(times)}" if times > 1 else ""
            yield replace(case, message=f"{case.message}{more}{unless_anew(case.severity)}.", records=times)
