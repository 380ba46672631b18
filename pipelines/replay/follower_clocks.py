"""Bounds of the clock offset between a follower and its leader, from high watermarks that both logs show. Pure.

The leader's log has the answers to the follower's fetches. The follower's log has the answers to consumers that read
from it. The follower shows a high watermark after the leader has answered it, and before it fetches again. For the
follower's clock minus the leader's clock this means:

    first shown at the follower  -  first answered by the leader    is more, and
    last time an older one was shown  -  the fetch after the answer  is less.

This holds where one leader answered the last two high watermarks. Lines are stamped a moment late, some much later, and
a follower that led meanwhile shows high watermarks without an answer. So one in a hundred of these differences is
ignored.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import each, groups
from highwater.pipelines.base.instants import NEVER_US
from highwater.schemas.fields import Int, Long, map_spark_types

#: Length of a window on the leader's clock, microseconds. Clocks drift, so bounds hold for one window.
WINDOW_US: Final = 600_000_000
#: One in `_ASIDE` differences is ignored, and one of a few. Fewer than `_FEW` give no bound.
_ASIDE: Final = 100
_FEW: Final = 20
_KEPT: Final = 64


class ToldHighWatermark(NamedTuple):
    """A high watermark that a leader sent to a follower, or that a follower sent to a consumer."""

    high_watermark: Long
    leader_id: Int | None  #: the answering leader; None for a high watermark shown by a follower
    #: first_us, last_us: of an answer, its time and the follower's next fetch; else when it was read and answered
    first_us: Long
    last_us: Long | None


KEY_TYPES: Final = {"cluster_id": "string", "topic": "string", "partition": "int", "broker_id": "int"}
TOLD_TYPES: Final = map_spark_types(ToldHighWatermark)
ORDER: Final = ("high_watermark", "first_us", "leader_id", "last_us")
APART: Final = "apart"
_APART_TYPES: Final = {
    "cluster_id": "string",
    "leader_id": "int",
    "broker_id": "int",
    "window_us": "long",
    "lowest_us": "long",
    "highest_us": "long",
}
SHAPES: Final = {APART: shape(_APART_TYPES)}

#: (cluster, leader, follower): by window, the follower's clock less the leader's: at least, at most.
Apart = Mapping[tuple[str, int, int], Mapping[int, tuple[int, int]]]


def apart_by_partition(batches: Batches) -> Batches:
    """Yield bounds of the clock offset per partition, leader and time window.

    Args:
        batches: columns `KEY_TYPES` and `TOLD_TYPES`, sorted by `ORDER`. Signature of ``mapInArrow``.
    """
    tables = Tables(SHAPES)
    for (cluster_id, _, _, broker_id), rows in groups(batches, len(KEY_TYPES), each(ToldHighWatermark._make)):
        for leader_id, window_us, lowest_us, highest_us in _derive_bounds(rows):
            tables.add(APART, (cluster_id, leader_id, broker_id, window_us, lowest_us, highest_us))
        yield from tables.take()
    yield from tables.rest()


class _Least:
    """The minimum of many clock differences. Outliers of lines with a late timestamp are ignored."""

    def __init__(self) -> None:
        self._least: list[int] = []
        self._count = 0

    def add(self, value: int) -> None:
        self._count += 1
        insort(self._least, value)
        del self._least[_KEPT:]

    @property
    def value(self) -> int | None:
        aside = min(max(self._count // _ASIDE, 1), _KEPT - 1)
        return self._least[aside] if self._count >= _FEW else None


def _derive_bounds(rows: Iterable[ToldHighWatermark]) -> Iterator[tuple[int, int, int | None, int | None]]:
    """Yield (leader, window start, lowest, highest) bounds of follower minus leader clock for a partition, us."""
    sides: dict[tuple[int, int], tuple[_Least, _Least]] = defaultdict(lambda: (_Least(), _Least()))
    older_us: int | None = None
    leader_id: int | None = None
    for _, of_offset in groupby(rows, key=attrgetter("high_watermark")):
        by_leader: dict[int, ToldHighWatermark] = {}
        first_us: int | None = None
        last_us: int | None = None
        for row in of_offset:
            if row.leader_id is not None:
                by_leader.setdefault(row.leader_id, row)
            else:
                first_us = min(first_us or NEVER_US, row.last_us or NEVER_US)
                last_us = max(last_us or 0, row.first_us)
        if len(by_leader) == 1 and leader_id in by_leader:
            answer = by_leader[leader_id]
            before, behind = sides[leader_id, answer.first_us // WINDOW_US]
            if first_us is not None:
                behind.add(first_us - answer.first_us)
            if older_us is not None and answer.last_us is not None:
                before.add(answer.last_us - older_us)
        older_us = max(older_us or 0, last_us or 0) or None
        if by_leader:
            leader_id = max(by_leader, key=lambda known: by_leader[known].first_us)
    for (leader_id, window), (before, behind) in sides.items():
        lowest_us = None if before.value is None else -before.value
        yield leader_id, window * WINDOW_US, lowest_us, behind.value


def apart_of(rows: Iterable[Mapping[str, Any]]) -> Apart:
    """Return the clock offset bounds of each (cluster, leader, follower) and window, over all partitions.

    If lines with a late timestamp make the bounds contradict, both values are taken as possible.
    """
    sides: dict[tuple[str, int, int], dict[int, tuple[list[int], list[int]]]] = defaultdict(dict)
    for row in rows:
        of_pair = sides[row["cluster_id"], row["leader_id"], row["broker_id"]]
        of_window = of_pair.setdefault(row["window_us"], ([], []))
        for values, name in zip(of_window, ("lowest_us", "highest_us"), strict=True):
            if row[name] is not None:
                values.append(row[name])
    apart: dict[tuple[str, int, int], dict[int, tuple[int, int]]] = {}
    for pair, windows in sides.items():
        bounded = {at: (max(low), min(high)) for at, (low, high) in windows.items() if low and high}
        if bounded:
            apart[pair] = {at: (min(both), max(both)) for at, both in bounded.items()}
    return apart


def apart_at(apart: Apart, pair: tuple[str, int, int], leader_us: int) -> tuple[int, int] | None:
    """Return (lowest, highest) clock offset, us, in the window of `leader_us` or the nearest one. None if unknown.

    Args:
        pair: cluster, leader id, follower id.
        leader_us: time on the leader's clock.
    """
    windows = apart.get(pair)
    if not windows:
        return None
    at = leader_us // WINDOW_US * WINDOW_US
    return windows.get(at) or windows[min(windows, key=lambda window: abs(window - at))]
