"""When a broker that becomes follower has answered what waited at it, as the lines of its fetchers tell. Pure.

What waits is completed partition by partition once all partitions of the change have become followers: under ZooKeeper
between the lines that fetchers are removed and added (``ReplicaManager.makeFollowers``), under KRaft after the fetchers
of all of them were added, or, while the broker shuts down, removed (``ReplicaManager.applyLocalFollowersDelta``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

#: Topic and partition.
Place = tuple[str, int]
#: A fetcher that starts later than this after its partition became a follower has other reasons.
STEP_DOWN_MAX_US: Final = 5_000_000


class Move(NamedTuple):
    """A partition was added to a fetcher, or removed from its fetcher (`action`)."""

    time_us: int
    place: Place
    action: str


def stepped_down_us(
    followers: Sequence[tuple[int, Place]], moves: Iterable[Move], starts_us: Sequence[int]
) -> list[int | None]:
    """By when each new follower had stepped down; None where no line tells.

    Args:
        followers: when a partition of a broker became follower, in the order of time, and which.
        moves: of that broker's fetchers, in the order of time.
        starts_us: when the broker started, ascending: what it logs from then on belongs to another life.
    """
    instants: dict[tuple[Place, str], list[int]] = defaultdict(list)
    for move in moves:
        instants[move.place, move.action].append(move.time_us)
    moved = [_moved_us(time_us, place, instants, starts_us) for time_us, place in followers]
    # A change begins with a follower that comes after all fetchers of the change before it.
    changes: list[int] = []
    last_us: int | None = None
    for (time_us, _), moved_us in zip(followers, moved, strict=True):
        begins = last_us is None or time_us > last_us
        changes.append(time_us if begins or not changes else changes[-1])
        if moved_us is not None:
            last_us = moved_us if last_us is None else max(last_us, moved_us)
    by_change: dict[int, int] = {}
    for change, moved_us in zip(changes, moved, strict=True):
        if moved_us is not None:
            by_change[change] = max(by_change.get(change, moved_us), moved_us)
    return [None if moved_us is None else by_change[change] for change, moved_us in zip(changes, moved, strict=True)]


def _moved_us(
    time_us: int, place: Place, instants: dict[tuple[Place, str], list[int]], starts_us: Sequence[int]
) -> int | None:
    """When a follower's fetcher was first added after it, or else removed, within the same life and change."""
    at = bisect_left(starts_us, time_us)
    until_us = starts_us[at] if at < len(starts_us) else None
    for action in ("added", "removed"):
        of_partition = instants.get((place, action), [])
        at = bisect_left(of_partition, time_us)
        if at < len(of_partition):
            moved_us = of_partition[at]
            if moved_us - time_us <= STEP_DOWN_MAX_US and (until_us is None or moved_us < until_us):
                return moved_us
    return None
