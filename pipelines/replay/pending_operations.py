"""Operations that are decided, until the offsets around them are known as well. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.required import RequiredOffsets

#: How many batches are remembered, at least, before those that nobody asks for any more are dropped.
_REMEMBERED = 4_096
#: For so long after its end an operation waits for a batch that follows.
_UNFOLLOWED_US: Final = 3_600_000_000


class PendingOperations:
    """Decided operations by the instant from which they can be given away.

    An operation waits `settle_us` of log time for the batch that follows its own, because lines come late. One that
    nothing follows waits on, for an hour: its required offset is not known before something does.
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
        """An operation is decided."""
        decided_us = _decided_us(operation)
        self._oldest_us = min(self._oldest_us, decided_us)
        self._push(decided_us, operation)

    def doubt(self, since_us: int, offset: int) -> None:
        """A replica outside the ISR was at an offset, some time since an instant: if counted, it held these back.

        Its fetch is placed at the latest instant that fits it; what was decided before can have come after it.
        """
        for _, _, operation in self._due:
            decided_us, base_offset = operation.highest_us, operation.base_offset
            if decided_us is not None and decided_us >= since_us and base_offset is not None and base_offset >= offset:
                operation.missing = operation.missing or o.LATE_LOG_LINE

    def release(
        self, before_us: int, settle_us: int, required: RequiredOffsets, oldest_waiting: int | None
    ) -> list[PartitionOutcome]:
        """Operations that were decided before an instant and whose required offset is known.

        Args:
            oldest_waiting: lowest base offset of the operations that are not decided yet.
        """
        ready: list[PartitionOutcome] = []
        while self._due and self._due[0][0] <= before_us:
            decided_us, _, operation = heapq.heappop(self._due)
            if _complete(operation, required):
                ready.append(operation)
            else:
                self._push(max(decided_us, before_us) + max(settle_us, 1), operation)
        if ready and len(required) > self._forget_at:
            bases = [entry[2].base_offset for entry in self._due]
            asked_for = [base for base in (*bases, oldest_waiting) if base is not None]
            required.forget_below(min(asked_for, default=None))
            # Twice what is needed, so that dropping costs the same per batch however many are needed.
            self._forget_at = max(_REMEMBERED, 2 * len(required))
        return ready

    def give_up(self, now_us: int, required: RequiredOffsets) -> list[PartitionOutcome]:
        """Operations that nothing has followed for an hour.

        Where it is asked at an instant at which nothing happens, later answers stay as they were: what is given up then
        would have been given up, as it is, by whatever comes next.
        """
        before_us = now_us - _UNFOLLOWED_US
        if self._oldest_us > before_us:
            return []
        unfollowed = [entry[2] for entry in self._due if _decided_us(entry[2]) <= before_us]
        self._due = [entry for entry in self._due if _decided_us(entry[2]) > before_us]
        heapq.heapify(self._due)
        self._oldest_us = min((_decided_us(entry[2]) for entry in self._due), default=NEVER_US)
        for operation in unfollowed:
            _complete(operation, required)
        return sorted(unfollowed, key=_decided_us)

    def drain(self, required: RequiredOffsets) -> Iterator[PartitionOutcome]:
        """All that is left, at the end of the log."""
        while self._due:
            operation = heapq.heappop(self._due)[2]
            _complete(operation, required)
            yield operation

    def _push(self, due_us: int, operation: PartitionOutcome) -> None:
        self._count += 1
        heapq.heappush(self._due, (due_us, self._count, operation))


def _decided_us(operation: PartitionOutcome) -> int:
    return operation.highest_us or operation.completed_us


def _complete(operation: PartitionOutcome, required: RequiredOffsets) -> bool:
    """Fill in what the offsets tell; False if the batch after it has not been seen yet."""
    if operation.base_offset is None:
        return True
    if operation.marker is not None:
        placed = required.offset_of(operation.marker)
        operation.base_offset = operation.base_offset if placed is None else placed
    logged, derived = required.of(operation.base_offset, operation.handled_us)
    operation.required_offset_logged, operation.required_offset_derived = logged, derived
    operation.awaiting_logged = required.last_awaited(operation.required_offset)
    return derived is not None
