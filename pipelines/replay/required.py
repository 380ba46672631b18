"""The offsets of an append from offsets and TRACE lines around it, above all its required offset: last offset + 1.

Pure. A produce response gives the base offset only. The next batch of the epoch starts at the required offset, and so
does every offset that a follower fetches from: batches are appended and replicated whole. The smallest such offset
beyond the base is the required one, unless a transaction marker comes in between. A marker is one control record
(``MemoryRecords.writeEndTransactionalMarker``) whose offset no request shows. It is in a hole: before the first produce
that may have been appended after it, and after all records of the produce before. An append that the broker has to
verify comes any time between its request's arrival and its answer (KIP-890, ``ReplicaManager.handleProduceAppend``).
The holes decide the order of two such appends.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple

#: Largest disorder of the appends of two requests, microseconds. Older appends are in their final order.
_OVERLAP_US = 10_000_000


class Marker(NamedTuple):
    """A transaction marker appended between two times. A WriteTxnMarkers request has one marker per producer."""

    latest_us: int
    earliest_us: int
    request_id: str
    producer: str


class RequiredOffsets:
    """Recent offsets at which batches start, and the required offsets (last offset + 1) that follow from them."""

    def __init__(self) -> None:
        self._boundaries: list[int] = []
        self._bases: list[tuple[int, int, int]] = []
        self._markers: list[Marker] = []
        self._starts: list[tuple[int, int]] = []
        self._logged: dict[int, int] = {}
        self._awaited: dict[int, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._bases)

    def append(self, base_offset: int, earliest_us: int, time_us: int) -> None:
        """Record that a produced batch starts at `base_offset` and was appended between the two times."""
        entry = (base_offset, earliest_us, time_us)
        at = bisect_right(self._bases, entry)
        if at == 0 or self._bases[at - 1][0] != base_offset:
            self._bases.insert(at, entry)

    def knows(self, base_offset: int) -> bool:
        """Return True if a produced batch is known to start at `base_offset`."""
        at = bisect_right(self._bases, (base_offset,))
        return at < len(self._bases) and self._bases[at][0] == base_offset

    def boundary(self, offset: int) -> None:
        """Record that a batch starts at `offset`, because a follower fetches from it."""
        at = bisect_right(self._boundaries, offset)
        if at == 0 or self._boundaries[at - 1] != offset:
            self._boundaries.insert(at, offset)

    def marker(self, marker: Marker) -> None:
        """Add an appended transaction marker."""
        insort(self._markers, marker)

    def offset_of(self, marker: Marker) -> int | None:
        """Return the offset of a transaction marker. None if no later produce is known.

        Markers fill, in order, the first gaps between produced batches that can contain them. A gap is proven by a
        follower that fetched from its start, or by the first produce that certainly came after the marker.
        """
        since_us = marker.earliest_us - _OVERLAP_US
        markers = self._markers[bisect_left(self._markers, (since_us,)) :]
        at = len(self._bases)
        while at and self._bases[at - 1][2] >= since_us:
            at -= 1
        holes: list[list[Marker]] = [[] for _ in range(len(self._bases) - at + 1)]
        place = 0
        for other in markers:
            place = self._find_hole(other, at, place, holes)
            holes[place].append(other)
            if other == marker:
                break
        # If only the hole's end is known, later markers in the hole push it towards the begin.
        for other in markers[markers.index(marker) + 1 :]:
            if self._find_hole(other, at, place, holes) != place:
                break
            holes[place].append(other)
        if at + place == len(self._bases):
            return None
        end = self._bases[at + place][0]
        begin = self._find_hole_begin(self._find_base_limit(at + place, marker))
        return min(end if begin is None else begin, end - len(holes[place])) + holes[place].index(marker)

    def _find_hole(self, marker: Marker, at: int, place: int, holes: Sequence[Sequence[Marker]]) -> int:
        """Return the index of the first gap, from `place` on, that can contain the marker.

        Args:
            at: index of the first produced batch after the gaps' start.
            holes: markers already placed in each gap.
        """
        perhaps = None
        for number in range(place, len(holes) - 1):
            end, earliest_us, latest_us = self._bases[at + number]
            if latest_us < marker.earliest_us:
                continue
            before, count = self._find_base_limit(at + number, marker), len(holes[number])
            begin, has_room = self._find_hole_begin(before), count < end - before - 1
            if begin is not None and count < end - begin:
                return number
            if marker.latest_us < earliest_us:
                # All later holes come after it.
                return number if has_room or perhaps is None else perhaps
            if has_room and perhaps is None:
                perhaps = number
        return len(holes) - 1

    def _find_base_limit(self, at: int, marker: Marker) -> int:
        """Return the base offset before the gap that ends at produce `at`, or the log end at a later leader start."""
        before, end = self._bases[at - 1][0] if at else -1, self._bases[at][0]
        starts = [start - 1 for start, since_us in self._starts if since_us <= marker.latest_us and start <= end]
        return max(before, *starts) if starts else before

    def _find_hole_begin(self, base_offset: int) -> int | None:
        """Return the end of the batch at an offset, if a follower fetched from that end. None otherwise."""
        at = bisect_right(self._boundaries, base_offset)
        return self._boundaries[at] if at < len(self._boundaries) else None

    def logged(self, base_offset: int, required_offset: int) -> None:
        """Record a batch's required offset (last offset + 1) as a TRACE line shows it."""
        self._logged[base_offset] = required_offset

    def awaited(self, required_offset: int, replicas: tuple[int, ...]) -> None:
        """Record the replicas that a TRACE line names as awaited. Lines without replicas are ignored."""
        if replicas:
            self._awaited[required_offset] = replicas

    def last_awaited(self, required_offset: int | None) -> tuple[int, ...] | None:
        """Return the replicas last logged as awaited for a required offset. None if unknown."""
        return None if required_offset is None else self._awaited.get(required_offset)

    def epoch_starts(self, start_offset: int | None, since_us: int) -> None:
        """Start an epoch at `start_offset`: drop offsets beyond it, which an older epoch appended."""
        if start_offset is not None:
            self._starts = [start for start in self._starts if start[0] < start_offset]
            self._starts.append((start_offset, since_us))
            self._bases = [entry for entry in self._bases if entry[0] < start_offset]
            self._boundaries = [offset for offset in self._boundaries if offset < start_offset]
            self.boundary(start_offset)

    def of(self, base_offset: int, handled_us: int) -> tuple[int | None, int | None]:
        """Return the required offset of the batch at `base_offset`: (logged, derived), each None if unknown."""
        candidates: list[int] = []
        at = bisect_right(self._boundaries, base_offset)
        if at < len(self._boundaries):
            candidates.append(self._boundaries[at])
        at = bisect_right(self._bases, (base_offset, 1 << 62, 1 << 62))
        if at < len(self._bases):
            next_base, _, next_handled_us = self._bases[at]
            between = sum(1 for marker in self._markers if handled_us <= marker.latest_us <= next_handled_us)
            candidates.append(max(base_offset + 1, next_base - between))
        return self._logged.get(base_offset), min(candidates, default=None)

    def forget_below(self, base_offset: int | None) -> None:
        """Drop offsets below `base_offset`, or below the newest batch if it is None."""
        if not self._bases:
            return
        floor = self._bases[-1][0] if base_offset is None else base_offset
        last_us = next((entry[1] for entry in self._bases if entry[0] >= floor), 0)
        self._bases = [entry for entry in self._bases if entry[0] >= floor]
        self._boundaries = [offset for offset in self._boundaries if offset > floor]
        self._starts = [start for start in self._starts if start[0] > floor]
        self._markers = [marker for marker in self._markers if marker.latest_us >= last_us]
        self._logged = {base: required for base, required in self._logged.items() if base >= floor}
        self._awaited = {required: names for required, names in self._awaited.items() if required > floor}
