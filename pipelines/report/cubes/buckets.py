"""Histograms that can be added up: of durations, in buckets whose width grows with the duration.

A quantile read off them is within `accuracy` of the exact one, whatever is added to what.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

#: Shorter durations, ms, are told apart by nothing: they are all in bucket 0.
SHORTEST_MS = 0.01
#: Largest error of a quantile in relation to it, as long as no buckets are merged.
FINEST = 0.02
#: Buckets of all histograms of a page; beyond it two neighbours at a time become one.
ENTRIES_MAX = 3_000_000
#: Buckets of one histogram are merged at most so often: beyond it quantiles would say nothing.
MERGES_MAX = 4


def growth(accuracy: float) -> float:
    """Return the ratio of the durations of a bucket to the bucket before it."""
    return (1 + accuracy) / (1 - accuracy)


def accuracy_of(ratio: float) -> float:
    """Return the largest error of a quantile, where buckets grow by a ratio."""
    return (ratio - 1) / (ratio + 1)


def bucket(duration_ms: str) -> str:
    """Return SQL of the bucket of a duration: bucket n > 0 has those from ``SHORTEST_MS * growth ** (n - 1)`` on."""
    place = (
        f"floor(ln(greatest({duration_ms}, {SHORTEST_MS / 2}) / {SHORTEST_MS}) / {math.log(growth(FINEST))!r}) + 1.0"
    )
    return f"greatest({place}, 0.0)::INTEGER"


def merged(histogram: Mapping[int, int]) -> Counter[int]:
    """Merge two neighbours at a time: growth is squared, and no bucket gets a bound that was none before."""
    counts: Counter[int] = Counter()
    for bucket, count in histogram.items():
        counts[(bucket + 1) // 2] += count
    return counts


def merges_needed(histograms: Iterable[Mapping[int, int]]) -> int:
    """Return how often all histograms have to be merged, at most `MERGES_MAX` times, until they are few enough."""
    coarser = list(histograms)
    for times in range(MERGES_MAX):
        if sum(len(histogram) for histogram in coarser) <= ENTRIES_MAX:
            return times
        coarser = [merged(histogram) for histogram in coarser]
    return MERGES_MAX


def packed(histogram: Mapping[int, int], merges: int) -> list[int]:
    """Return counts of the buckets in order from bucket 0 on; a negative number skips as many empty ones."""
    counts = Counter(histogram)
    for _ in range(merges):
        counts = merged(counts)
    numbers: list[int] = []
    following = 0
    for bucket, count in sorted(counts.items()):
        if bucket > following:
            numbers.append(following - bucket)
        numbers.append(count)
        following = bucket + 1
    return numbers
