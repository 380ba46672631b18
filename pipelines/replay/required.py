"""What the offsets and TRACE lines around an append tell of it, above all its required offset: last offset + 1.

Pure. A produce response gives the base offset only. The next batch of the epoch starts at the required offset, and so
does every position that a follower fetches from: batches are appended and replicated whole. Of all such offsets
beyond the base, the smallest is the required one, unless a transaction marker lies in between: a marker is one control
record (``MemoryRecords.writeEndTransactionalMarker``) whose offset no request shows.
"""

from __future__ import annotations

from bisect import bisect_right, insort


class RequiredOffsets:
    """Offsets at which batches start, as far as they are known lately."""

    def __init__(self) -> None:
        self._boundaries: list[int] = []
        self._bases: list[tuple[int, int, int]] = []
        self._markers: list[tuple[int, int]] = []
        self._logged: dict[int, int] = {}
        self._awaited: dict[int, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._bases)

    def append(self, base_offset: int, earliest_us: int, time_us: int) -> None:
        """A produced batch starts at `base_offset`; it was appended between the two instants."""
        entry = (base_offset, earliest_us, time_us)
        at = bisect_right(self._bases, entry)
        if at == 0 or self._bases[at - 1][0] != base_offset:
            self._bases.insert(at, entry)

    def knows(self, base_offset: int) -> bool:
        """Whether a produced batch is known to start at `base_offset`."""
        at = bisect_right(self._bases, (base_offset,))
        return at < len(self._bases) and self._bases[at][0] == base_offset

    def boundary(self, offset: int) -> None:
        """A follower fetches from `offset`."""
        at = bisect_right(self._boundaries, offset)
        if at == 0 or self._boundaries[at - 1] != offset:
            self._boundaries.insert(at, offset)

    def marker(self, earliest_us: int, time_us: int) -> None:
        """A transaction marker was appended between the two instants."""
        insort(self._markers, (time_us, earliest_us))

    def logged(self, base_offset: int, required_offset: int) -> None:
        """The broker logged both (T3)."""
        self._logged[base_offset] = required_offset

    def awaited(self, required_offset: int, replicas: tuple[int, ...]) -> None:
        """The broker logged whom an operation still waits for (T3); the last such line that names anyone counts."""
        if replicas:
            self._awaited[required_offset] = replicas

    def last_awaited(self, required_offset: int | None) -> tuple[int, ...] | None:
        """Whom the broker last logged as awaited for a required offset."""
        return None if required_offset is None else self._awaited.get(required_offset)

    def epoch_starts(self, start_offset: int | None) -> None:
        """A new epoch: what an older one appended beyond its start is gone."""
        if start_offset is not None:
            self._bases = [entry for entry in self._bases if entry[0] < start_offset]
            self._boundaries = [offset for offset in self._boundaries if offset < start_offset]
            self.boundary(start_offset)

    def of(self, base_offset: int, handled_us: int) -> tuple[int | None, int | None]:
        """Required offset of the batch at `base_offset`: (logged, derived), each None where unknown."""
        candidates: list[int] = []
        at = bisect_right(self._boundaries, base_offset)
        if at < len(self._boundaries):
            candidates.append(self._boundaries[at])
        at = bisect_right(self._bases, (base_offset, 1 << 62, 1 << 62))
        if at < len(self._bases):
            next_base, _, next_handled_us = self._bases[at]
            between = sum(1 for time_us, earliest_us in self._markers if handled_us <= time_us <= next_handled_us)
            candidates.append(max(base_offset + 1, next_base - between))
        return self._logged.get(base_offset), min(candidates, default=None)

    def forget_below(self, base_offset: int | None) -> None:
        """Nothing below a base offset is asked for any more; None: nothing below the newest batch."""
        if not self._bases:
            return
        floor = self._bases[-1][0] if base_offset is None else base_offset
        last_us = next((entry[1] for entry in self._bases if entry[0] >= floor), 0)
        self._bases = [entry for entry in self._bases if entry[0] >= floor]
        self._boundaries = [offset for offset in self._boundaries if offset > floor]
        self._markers = [entry for entry in self._markers if entry[0] >= last_us]
        self._logged = {base: required for base, required in self._logged.items() if base >= floor}
        self._awaited = {required: names for required, names in self._awaited.items() if required > floor}
