"""Quantiles of durations in answers, equal to report.json for the same requests. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from highwater.pipelines.report import queries
from highwater.pipelines.report.figures import TICKS_PER_MS

#: Names of quantiles in answers.
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


def build_quantile_sql(duration_ms: str) -> str:
    """Return SQL for all `QUANTILES`, the input of `name_quantiles`."""
    return queries.compute_quantile(duration_ms, *QUANTILES.values())


def name_quantiles(ticks: Sequence[float] | None) -> dict[str, float | None]:
    """Return quantiles by name, milliseconds; None without a duration."""
    if ticks is None:
        return dict.fromkeys(QUANTILES)
    return {name: value / TICKS_PER_MS for name, value in zip(QUANTILES, ticks, strict=True)}
