"""Quantiles of durations off counts of rounded values, so that memory holds values and not rows. Pure.

They are those of report.json for the same requests: a figure has one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipelines.report.figures import TICKS_PER_MS

#: Names of quantiles in answers.
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


def rounded(expression: str) -> str:
    """SQL of a duration in milliseconds, to 0.01 ms: what `pipelines.report.queries` takes quantiles of, too."""
    return f"round_even(CAST({expression} AS DOUBLE) * {TICKS_PER_MS}, 0) / {TICKS_PER_MS}"


def quantile(counts: Iterable[tuple[float, int]], share: float) -> float | None:
    """The quantile of values with how often each occurs; None of none. Between two values it lies on the line."""
    ordered = sorted(counts)
    total = sum(count for _, count in ordered)
    if not total:
        return None
    place = (total - 1) * share
    low, below = int(place), 0
    for number, (value, count) in enumerate(ordered):
        below += count
        if low < below:
            at_end = low == below - 1 and number + 1 < len(ordered)
            following = ordered[number + 1][0] if at_end else value
            return value + (following - value) * (place - low)
    return ordered[-1][0]


def quantiles(counts: Iterable[tuple[float, int]]) -> dict[str, float | None]:
    """All of `QUANTILES`."""
    values = list(counts)
    return {name: quantile(values, share) for name, share in QUANTILES.items()}
