"""What the page works out of a range, as ``cubes.js`` does it: sums over intervals, quantiles off added histograms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from highwater.pipelines.report.cubes.buckets import FINEST, SHORTEST_MS, growth
from highwater.pipelines.report.cubes.parts import Cubes
from highwater.schemas.gold import CLASSES


@dataclass
class Sums:
    """Figures of some cells."""

    counts: Counter[str] = field(default_factory=Counter)
    wait: Counter[int] = field(default_factory=Counter)
    total: Counter[int] = field(default_factory=Counter)
    without: Counter[int] = field(default_factory=Counter)


def bucket_of(duration_ms: float) -> int:
    """Return the bucket of a duration."""
    size = max(duration_ms, SHORTEST_MS / 2) / SHORTEST_MS
    return max(math.floor(math.log(size) / math.log(growth(FINEST))) + 1, 0)


def unpacked(numbers: list[int]) -> dict[int, int]:
    """Counts by bucket."""
    counts = {}
    bucket = 0
    for number in numbers:
        if number < 0:
            bucket -= number
        else:
            counts[bucket] = number
            bucket += 1
    return counts


def quantile(histogram: Counter[int], share: float, growth: float) -> float | None:
    """Linear between the two nearest ranks."""
    number = sum(histogram.values())
    if not number:
        return None
    place = share * (number - 1)
    low = int(place)
    first, second = (value_at(histogram, rank, growth) for rank in (low, min(low + 1, number - 1)))
    return first + (second - first) * (place - low)


def value_at(histogram: Counter[int], rank: int, growth: float) -> float:
    passed = 0
    for bucket in sorted(histogram):
        passed += histogram[bucket]
        if passed > rank:
            return 0.005 if bucket == 0 else 2 * 0.01 * growth**bucket / (growth + 1)
    raise AssertionError("no such rank")


def operations(cubes: Cubes, kind: str, first: int, last: int) -> dict[Any, Sums]:
    """Figures of a range: of all, by ``None``; and of each replica, by its id, of what was answered without error."""
    cells = cubes.operations
    found: dict[Any, Sums] = {None: Sums()}
    for at, interval in enumerate(cells.interval):
        if not first <= interval < last or cells.kind[at] != kind:
            continue
        keys: Iterable[Any] = [None]
        if cells.succeeded[at]:
            keys = [None, cubes.nodes[cells.replica[at]].broker_id]
        for key in keys:
            add(found.setdefault(key, Sums()), cubes, at)
    totals = cubes.totals
    for at, interval in enumerate(totals.interval):
        if first <= interval < last and totals.kind[at] == kind and totals.succeeded[at]:
            for key in (None, cubes.nodes[totals.replica[at]].broker_id):
                found[key].total.update(unpacked(totals.total[at]))
                found[key].without.update(unpacked(totals.without[at]))
    return found


def add(sums: Sums, cubes: Cubes, at: int) -> None:
    cells = cubes.operations
    sums.counts["observed"] += cells.operations[at]
    for name in (*CLASSES, "within_1", "within_5", "within_20", "split"):
        sums.counts[name] += getattr(cells, name)[at]
    for place, part in enumerate(cells.parts_us[at]):
        sums.counts[f"part {place}"] += part
    if not cells.succeeded[at]:
        sums.counts["with_error"] += cells.operations[at]
        return
    for name in ("slow", "wait_us", "slow_wait_us"):
        sums.counts[name] += getattr(cells, name)[at]
    sums.wait.update(unpacked(cells.wait[at]))


def without(cubes: Cubes, of: dict[Any, Sums], broker_id: int) -> Counter[int]:
    """Totals had a broker not been waited for."""
    histogram = Counter(of[None].total)
    histogram.subtract(of[broker_id].total)
    histogram.update(of[broker_id].without)
    return +histogram
