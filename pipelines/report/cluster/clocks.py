"""How far brokers' clocks are apart, a row per pair. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.report.cluster.parts import ClockPair

#: Of 100 brokers there are 4,950 pairs.
PAIRS_MAX = 200

Row = Mapping[str, Any]


def make_clocks(windows: Sequence[Row]) -> tuple[tuple[ClockPair, ...], int]:
    """Return (broker pairs with the bounds of their clock difference, number of pairs beyond the limit).

    Pairs whose clock difference changed come first, then pairs by the largest possible difference.

    Args:
        windows: rows of ``gold.clock_bounds``.
    """
    of_pairs: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for row in windows:
        of_pairs[row["cluster_id"], row["broker_a"], row["broker_b"]].append(row)
    pairs = sorted((_pair(*names, rows) for names, rows in sorted(of_pairs.items())), key=_rank_worst)
    return tuple(pairs[:PAIRS_MAX]), max(0, len(pairs) - PAIRS_MAX)


def _pair(cluster_id: str, broker_a: int, broker_b: int, windows: Sequence[Row]) -> ClockPair:
    narrowest = min(windows, key=lambda row: (_measure_width(row), row["window_start"]))
    changed = max(windows, key=lambda row: abs(row["changed_ms"]))
    is_changed = changed["changed_ms"] != 0
    until = changed["lowest_time" if changed["changed_ms"] > 0 else "highest_time"]
    return ClockPair(
        cluster_id=cluster_id,
        broker_a=broker_a,
        broker_b=broker_b,
        windows=len(windows),
        links=sum(row["links"] for row in windows),
        lowest_ms=narrowest["lowest_ms"],
        highest_ms=narrowest["highest_ms"],
        time=iso_utc(narrowest["lowest_time"] or narrowest["highest_time"]),
        changes=sum(row["changed_ms"] != 0 for row in windows),
        changed_ms=changed["changed_ms"] if is_changed else None,
        changed_since=iso_utc(changed["changed_since"]) if is_changed else None,
        changed_until=iso_utc(until) if is_changed else None,
        drift_ppm=_compute_ppm(changed["changed_ms"], until - changed["changed_since"]) if is_changed else None,
    )


def _measure_width(row: Row) -> float:
    """Return the width of the interval between both bounds, ms. Infinite if a bound is missing or the bounds
    contradict.
    """
    if row["lowest_ms"] is None or row["highest_ms"] is None:
        return float("inf")
    width = float(row["highest_ms"] - row["lowest_ms"])
    return width if width >= 0 else float("inf")


def _compute_ppm(changed_ms: float, apart_us: int) -> float | None:
    return round(changed_ms * 1e9 / apart_us, 1) if apart_us > 0 else None


def _rank_worst(pair: ClockPair) -> tuple[float, float, str, int, int]:
    apart = max(abs(bound) for bound in (pair.lowest_ms, pair.highest_ms) if bound is not None)
    return (-abs(pair.changed_ms or 0.0), -apart, pair.cluster_id, pair.broker_a, pair.broker_b)
