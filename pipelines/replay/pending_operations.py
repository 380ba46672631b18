"""Operations that are decided, until the offsets around them are known as well. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.required import RequiredOffsets

#: Batches that are remembered, at least, before unneeded ones are dropped.
_REMEMBERED = 4_096
#: How long an operation waits after its end for a following batch, microseconds.
_UNFOLLOWED_US: Final = 3_600_000_000


class PendingOperations:
    """Decided produces that wait until their required offset is known.

    A produce waits `settle_us` of log time for the batch after its own, because lines come late. Without such a batch
    it waits for an hour.
    """

    def __init__(self) -> None:
        self._due: list[tuple[int, int, PartitionOutcome]] = []
        self._count = 0
        self._forget_at = _REMEMBERED
        # None of them was decided before it.
        self._oldest_us = NEVER_US

    def __len__(self) -> int:
        return len(self._due)

    def add(self, operation: PartitionOutcome) -> None:
        """Add a decided operation."""
        decided_us = _get_decided_us(operation)
        self._oldest_us = min(self._oldest_us, decided_us)
        self._add_due(decided_us, operation)

    def doubt(self, since_us: int, offset: int) -> None:
        """Mark produces as uncertain that were decided since `since_us` with a base offset of at least `offset`.

        A replica outside the ISR may have held back the high watermark. Its fetch counts at its latest possible time,
        so these produces may have completed after the fetch.
        """
        for _, _, operation in self._due:
            decided_us, base_offset = operation.highest_us, operation.base_offset
            if decided_us is not None and decided_us >= since_us and base_offset is not None and base_offset >= offset:
                operation.missing = operation.missing or o.LATE_LOG_LINE

    def release(
        self, before_us: int, settle_us: int, required: RequiredOffsets, oldest_waiting: int | None
    ) -> list[PartitionOutcome]:
        """Return the produces that were decided before `before_us` and have a known required offset.

        Args:
            settle_us: log time to wait for the next batch.
            required: offsets at which batches begin.
            oldest_waiting: lowest base offset of the undecided produces. None without any.
        """
        ready: list[PartitionOutcome] = []
        while self._due and self._due[0][0] <= before_us:
            decided_us, _, operation = heapq.heappop(self._due)
            if _fill_offsets(operation, required):
                ready.append(operation)
            else:
                self._add_due(max(decided_us, before_us) + max(settle_us, 1), operation)
        if ready and len(required) > self._forget_at:
            bases = [entry[2].base_offset for entry in self._due]
            asked_for = [base for base in (*bases, oldest_waiting) if base is not None]
            required.forget_below(min(asked_for, default=None))
            # Twice the needed number, so that dropping costs the same per batch for any number.
            self._forget_at = max(_REMEMBERED, 2 * len(required))
        return ready

    def give_up(self, now_us: int, required: RequiredOffsets) -> list[PartitionOutcome]:
        """Return produces after which no batch followed for an hour.

        A call between two events does not change later results: the next event would have returned the same produces.
        """
        before_us = now_us - _UNFOLLOWED_US
        if self._oldest_us > before_us:
            return []
        unfollowed = [entry[2] for entry in self._due if _get_decided_us(entry[2]) <= before_us]
        self._due = [entry for entry in self._due if _get_decided_us(entry[2]) > before_us]
        heapq.heapify(self._due)
        self._oldest_us = min((_get_decided_us(entry[2]) for entry in self._due), default=NEVER_US)
        for operation in unfollowed:
            _fill_offsets(operation, required)
        return sorted(unfollowed, key=_get_decided_us)

    def drain(self, required: RequiredOffsets) -> Iterator[PartitionOutcome]:
        """Yield all remaining operations at the end of the log."""
        while self._due:
            operation = heapq.heappop(self._due)[2]
            _fill_offsets(operation, required)
            yield operation

    def _add_due(self, due_us: int, operation: PartitionOutcome) -> None:
        self._count += 1
        heapq.heappush(self._due, (due_us, self._count, operation))


def _get_decided_us(operation: PartitionOutcome) -> int:
    return operation.highest_us or operation.completed_us


def _fill_offsets(operation: PartitionOutcome, required: RequiredOffsets) -> bool:
    """Set the values that offsets show. Return False if the next batch has not been seen."""
    if operation.base_offset is None:
        return True
    if operation.marker is not None:
        placed = required.offset_of(operation.marker)
        operation.base_offset = operation.base_offset if placed is None else placed
    logged, derived = required.of(operation.base_offset, operation.handled_us)
    operation.required_offset_logged, operation.required_offset_derived = logged, derived
    operation.awaiting_logged = required.last_awaited(operation.required_offset)
    return derived is not None
