"""Histograms that can be added up: of durations, in buckets whose width grows with the duration.

A quantile read off them is within `accuracy` of the exact one, whatever is added to what.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

#: Upper bound of bucket 0, ms. Shorter durations are not distinguished.
SHORTEST_MS = 0.01
#: Largest error of a quantile in relation to it, as long as no buckets are merged.
FINEST = 0.02
#: Buckets of all histograms of a page; beyond it two neighbours at a time become one.
ENTRIES_MAX = 3_000_000
#: Buckets of one histogram are merged at most so often: beyond it quantiles would say nothing.
MERGES_MAX = 4


def growth(accuracy: float) -> float:
    """Return the growth factor between the bounds of neighbouring histogram buckets, for a relative error."""
    return (1 + accuracy) / (1 - accuracy)


def compute_accuracy(ratio: float) -> float:
    """Return the largest relative error of a quantile for buckets that grow by `ratio`."""
    return (ratio - 1) / (ratio + 1)


def compute_bucket(duration_ms: str) -> str:
    """Return the SQL expression for the bucket of a duration. Bucket n > 0 begins at ``SHORTEST_MS * growth ** (n -
    1)``.

    Args:
        duration_ms: SQL expression of the duration, ms.
    """
    place = (
        f"floor(ln(greatest({duration_ms}, {SHORTEST_MS / 2}) / {SHORTEST_MS}) / {math.log(growth(FINEST))!r}) + 1.0"
    )
    return f"greatest({place}, 0.0)::INTEGER"


def merge_buckets(histogram: Mapping[int, int]) -> Counter[int]:
    """Return the histogram with each two neighbouring buckets merged. Remaining bounds do not move."""
    counts: Counter[int] = Counter()
    for bucket, count in histogram.items():
        counts[(bucket + 1) // 2] += count
    return counts


def count_merges(histograms: Iterable[Mapping[int, int]]) -> int:
    """Return how often all histograms must be merged pairwise to fit the page, at most `MERGES_MAX`."""
    coarser = list(histograms)
    for times in range(MERGES_MAX):
        if sum(len(histogram) for histogram in coarser) <= ENTRIES_MAX:
            return times
        coarser = [merge_buckets(histogram) for histogram in coarser]
    return MERGES_MAX


def pack_buckets(histogram: Mapping[int, int], merges: int) -> list[int]:
    """Return the counts from bucket 0 on, after `merges` pairwise merges. -n replaces n empty buckets."""
    counts = Counter(histogram)
    for _ in range(merges):
        counts = merge_buckets(counts)
    numbers: list[int] = []
    following = 0
    for bucket, count in sorted(counts.items()):
        if bucket > following:
            numbers.append(following - bucket)
        numbers.append(count)
        following = bucket + 1
    return numbers
