"""The worst cases of each rule in a cluster, as many as are shown; the others are counted. Pure.

A rule that finds more has found one thing. Tasks cut what they find before it is collected, and the driver once more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

#: Cases of one rule that are shown.
CASES_MAX: Final = 1000
SEVERITIES: Final = {"violation": 0, "open": 1, "observation": 2}

Case = Mapping[str, Any]
One = TypeVar("One")


def cut(cases: list[One], place: Callable[[One], tuple[str, tuple[Any, ...]]]) -> Counter[str]:
    """Sort the cases, the worst first, and drop those beyond `CASES_MAX`. Return the number dropped by severity.

    Args:
        place: returns severity and sort key of a case.
    """
    cases.sort(key=lambda case: place(case)[1])
    dropped = Counter(place(case)[0] for case in cases[CASES_MAX:])
    del cases[CASES_MAX:]
    return dropped


class WorstCases:
    """Collects the worst cases, at most twice `CASES_MAX` per rule and cluster in memory.

    Attributes:
        left_out: number of dropped cases, by (cluster, rule, severity).
    """

    def __init__(self) -> None:
        self.left_out: Counter[tuple[str, str, str]] = Counter()
        self._cases: dict[tuple[str, str], list[Case]] = defaultdict(list)

    def add(self, case: Case) -> None:
        """Add a row of `CASE`."""
        key = case["cluster_id"], case["rule_id"]
        self._cases[key].append(case)
        if len(self._cases[key]) >= 2 * CASES_MAX:
            self._cut(key)

    def ordered(self) -> Iterator[Case]:
        """Yield the kept cases by cluster and rule, the worst first. The order of `add` does not matter."""
        for key in sorted(self._cases):
            self._cut(key)
            yield from self._cases[key]

    def _cut(self, key: tuple[str, str]) -> None:
        for severity, count in cut(self._cases[key], _place).items():
            self.left_out[*key, severity] += count


def _place(case: Case) -> tuple[str, tuple[Any, ...]]:
    """Return (severity, total sort key) of a case."""
    severity = case["severity"]
    place = (case["cluster_id"], case["topic"] or "", case["partition"] or 0)
    within = (case["offset_start"] or 0, case["time_us"] or 0, case["message"])
    return severity, (SEVERITIES[severity], *place, *within)
