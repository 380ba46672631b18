"""The purgatory: operations watched under keys, checked when something happens to a key, expired by a timer.

Source: ``DelayedOperationPurgatory``, ``Watchers``, ``ExpiredOperationReaper``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from tests.unit.replay.model.operation import DelayedOperation
from tests.unit.replay.model.timing_wheel import SystemTimer

#: Completed operations that may stay in watch lists before the reaper sweeps them out (``purgeInterval``).
PURGE_INTERVAL = 1_000

Op = TypeVar("Op", bound=DelayedOperation)


class Watchers(Generic[Op]):
    """Operations under one key, in the order in which they were watched."""

    def __init__(self) -> None:
        self.operations: list[Op] = []

    def watch(self, operation: Op) -> None:
        self.operations.append(operation)

    def try_complete_watched(self) -> int:
        """Check each once, first come first; drops the completed ones, returns how many this call completed."""
        completed = 0
        checked: set[int] = set()
        # What is watched meanwhile is checked too: Kafka iterates over a concurrent queue.
        while unchecked := [operation for operation in self.operations if id(operation) not in checked]:
            for operation in unchecked:
                checked.add(id(operation))
                completed += not operation.is_completed and operation.safe_try_complete()
        self.purge_completed()
        return completed

    def purge_completed(self) -> int:
        before = len(self.operations)
        self.operations = [operation for operation in self.operations if not operation.is_completed]
        return before - len(self.operations)


class DelayedOperationPurgatory(Generic[Op]):
    """One purgatory, with its own timer.

    Args:
        now_ms: the clock's start.
        purge_interval: see `PURGE_INTERVAL`.
    """

    def __init__(self, now_ms: int = 0, purge_interval: int = PURGE_INTERVAL) -> None:
        self.now_ms = now_ms
        self.purge_interval = purge_interval
        self._watchers: dict[Hashable, Watchers[Op]] = {}
        self._timer: SystemTimer[Op] = SystemTimer(lambda operation: operation.expire(), now_ms)
        self._estimated_total = 0

    @property
    def watched(self) -> int:
        """Entries in all watch lists; an operation counts once per key, and until its list is next looked through."""
        return sum(len(watchers.operations) for watchers in self._watchers.values())

    @property
    def delayed(self) -> int:
        """Operations that the timer holds (``numDelayed``)."""
        return self._timer.size

    def try_complete_else_watch(self, operation: Op, keys: Sequence[Hashable]) -> bool:
        """Check an operation; if it has to wait, watch it under its keys, check again, and start its timer.

        The second check is for what happened between the first one and the watching. The timer starts after both:
        the operation's deadline is this instant plus its delay.

        Returns:
            True if this call completed it.

        Raises:
            ValueError: without keys.
        """
        if not keys:
            raise ValueError("an operation is watched under one key at least")
        if operation.safe_try_complete():
            return True
        for key in keys:
            self._watchers.setdefault(key, Watchers()).watch(operation)
        self._estimated_total += 1
        if operation.safe_try_complete():
            return True
        if not operation.is_completed:
            task = self._timer.add(operation, operation.delay_ms, self.now_ms)
            operation.cancel_timer = lambda: self._timer.cancel(task)
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Something happened to a key: check what waits under it; returns how many operations that completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = watchers.try_complete_watched()
        if not watchers.operations:
            self._watchers.pop(key, None)
        return completed

    def advance_clock(self, now_ms: int) -> None:
        """Time has come to `now_ms`: expire what is due, bucket by bucket, and sweep if there is enough to sweep."""
        self.now_ms = max(self.now_ms, now_ms)
        self._timer.advance_clock(self.now_ms)
        if self._estimated_total - self.delayed > self.purge_interval:
            self._estimated_total = self.delayed
            for key in list(self._watchers):
                self._watchers[key].purge_completed()
                if not self._watchers[key].operations:
                    del self._watchers[key]
