"""The worst cases of each rule, as many as are shown; the others are counted. Pure.

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
    """Put the worst first and drop what is beyond `CASES_MAX`; gives how many of each severity that were.

    Args:
        place: severity of a case, and where it belongs.
    """
    cases.sort(key=lambda case: place(case)[1])
    dropped = Counter(place(case)[0] for case in cases[CASES_MAX:])
    del cases[CASES_MAX:]
    return dropped


class WorstCases:
    """Cases as they come, at most twice `CASES_MAX` of a rule in memory.

    Attributes:
        left_out: cases that are only counted, by rule and severity.
    """

    def __init__(self) -> None:
        self.left_out: Counter[tuple[str, str]] = Counter()
        self._cases: dict[str, list[Case]] = defaultdict(list)

    def add(self, case: Case) -> None:
        """Take a case, with its cluster, topic and partition."""
        cases = self._cases[case["rule_id"]]
        cases.append(case)
        if len(cases) >= 2 * CASES_MAX:
            self._cut(case["rule_id"])

    def ordered(self) -> Iterator[Case]:
        """What is left, the worst first of each rule; the same in whatever order they came."""
        for rule_id in sorted(self._cases):
            self._cut(rule_id)
            yield from self._cases[rule_id]

    def _cut(self, rule_id: str) -> None:
        for severity, count in cut(self._cases[rule_id], _place).items():
            self.left_out[rule_id, severity] += count


def _place(case: Case) -> tuple[str, tuple[Any, ...]]:
    """By severity, then by place; total, whatever the order of the input."""
    severity = case["severity"]
    place = (case["cluster_id"], case["topic"] or "", case["partition"] or 0)
    within = (case["offset_start"] or 0, case["time_us"] or 0, case["message"])
    return severity, (SEVERITIES[severity], *place, *within)
