"""The records of a partition that members of a share group can acquire, and since when. Pure.

Kafka's rules (KIP-932; ``SharePartition``, ``DelayedShareFetch``): a record below the high watermark (below the last
stable offset, for groups that read committed records) is delivered to one member, and locked for it. It is delivered
again once the member has released it, or its lock has expired.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

RECORDS: Final = "records"
RELEASED: Final = "released"
LOCK_TIMEOUT: Final = "lock_timeout"
#: Kept batches of a partition. Members wait only for new batches, not for older ones.
_BATCHES_MAX: Final = 8_192
#: How late a lock's timer may run.
_TIMER_SLACK_US: Final = 2_000


class Available(NamedTuple):
    """The time from which records could be acquired."""

    #: lowest_us, highest_us: between them
    lowest_us: int
    highest_us: int
    cause: str  #: what made them available
    holder: str | None = None  #: whose lock had run out


class _Lock(NamedTuple):
    member: str | None
    lowest_us: int
    highest_us: int
    timeout_us: int


@dataclass(slots=True)
class ShareGroup:
    """Records of one partition that are locked for, or released by, members of a share group (KIP-932)."""

    locks: dict[int, _Lock] = field(default_factory=dict)  #: by offset, who acquired it when
    #: by offset, between which instants it was given back
    released: dict[int, tuple[int, int]] = field(default_factory=dict)
    #: fetches that were answered records of the partition, the last ones: between which instants
    fetched: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=64))


class SharePartition:
    """Batches of one partition on its leader, for share groups: when each became readable."""

    def __init__(self) -> None:
        self.groups: dict[str, ShareGroup] = {}
        #: When the high watermark moved, the last times: it has waiting fetches checked.
        self.moves: deque[tuple[int, int]] = deque(maxlen=64)
        self._bases: list[int] = []
        self._batches: dict[int, tuple[int, int, bool]] = {}
        self._stable: deque[tuple[int, int, int]] = deque(maxlen=1_024)

    def batch(self, base_offset: int, lowest_us: int, highest_us: int, unstable: bool) -> None:
        """Record that the high watermark passed a batch between two times.

        Args:
            unstable: the batch belongs to an open transaction.
        """
        if base_offset not in self._batches:
            at = bisect_left(self._bases, base_offset)
            self._bases.insert(at, base_offset)
        self._batches[base_offset] = lowest_us, highest_us, unstable
        self.moves.append((lowest_us, highest_us))
        if len(self._bases) > _BATCHES_MAX:
            del self._batches[self._bases.pop(0)]

    def stable(self, below: int, lowest_us: int, highest_us: int) -> None:
        """Record that the last stable offset moved to `below` between two times."""
        self._stable.append((below, lowest_us, highest_us))

    def records(self, offset: int) -> Available | None:
        """Return when a record first became readable: the high watermark or last stable offset passed it. None if
        unknown.
        """
        at = bisect_right(self._bases, offset) - 1
        if at < 0:
            return None
        base = self._bases[at]
        lowest_us, highest_us, unstable = self._batches[base]
        if unstable:
            # Requests do not show whether the group reads committed records only.
            stable = (latest for below, _, latest in self._stable if below > base and latest >= lowest_us)
            freed = next(stable, highest_us)
            highest_us = max(highest_us, freed)
        return Available(lowest_us, highest_us, RECORDS)

    def again(self, group: ShareGroup, offset: int, completed_us: int) -> Available | None:
        """Return when a record that was already delivered could be delivered again. None if unknown.

        Args:
            completed_us: answer time of the fetch that delivered it again.
        """
        released = group.released.get(offset)
        if released is not None:
            return Available(*released, RELEASED)
        lock = group.locks.get(offset)
        if lock is None or lock.lowest_us + lock.timeout_us - _TIMER_SLACK_US > completed_us:
            return None
        lowest_us, highest_us = lock.lowest_us + lock.timeout_us, lock.highest_us + lock.timeout_us + _TIMER_SLACK_US
        return Available(lowest_us, highest_us, LOCK_TIMEOUT, lock.member)

    def acquired(
        self, group: ShareGroup, first: int, last: int, member: str | None, instants: tuple[int, int], timeout_us: int
    ) -> None:
        """Lock the records from `first` to `last` for a member.

        Args:
            instants: (earliest, latest) time of the acquisition, us.
            timeout_us: duration of the lock.
        """
        for offset in range(first, last + 1):
            group.locks[offset] = _Lock(member, *instants, timeout_us)
            group.released.pop(offset, None)

    def given_back(self, group: ShareGroup, first: int, last: int, instants: tuple[int, int], kind: int) -> None:
        """Apply a member's acknowledgement of records. A gap (0) and a renewal (4) keep the records locked.

        Args:
            instants: (earliest, latest) time of the acknowledgement, us.
            kind: of ``AcknowledgeType``: 1 accept, 2 release, 3 reject, 4 renew.
        """
        for offset in range(first, last + 1):
            lock = group.locks.get(offset)
            if kind == RENEW:
                if lock is not None:
                    group.locks[offset] = lock._replace(lowest_us=instants[0], highest_us=instants[1])
                continue
            group.locks.pop(offset, None)
            if kind == RELEASE:
                group.released[offset] = instants


GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
