"""Kafka's timer: hierarchical timing wheels.

A wheel has `WHEEL_SIZE` buckets of one tick each; what lies beyond its span goes to an overflow wheel whose tick is the
whole span of this one. When a bucket of an overflow wheel is due, its tasks are inserted again and land in a finer
wheel, so a task runs in the end with the precision of the lowest wheel: one tick, 1 ms.

Instants are whole milliseconds of the clock that the timer reads (``Time.hiResClockMs``: monotonic, cut off below the
millisecond).

Source: ``TimingWheel``, ``TimerTaskList``, ``SystemTimer`` (``kafka.utils.timer``, since 3.5
``org.apache.kafka.server.util.timer``), ``DelayedOperationPurgatory.advanceClock``; KAFKA-1989.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: ``SystemTimer``'s defaults.
TICK_MS = 1
WHEEL_SIZE = 20

T = TypeVar("T")


@dataclass(eq=False)
class TimerTask(Generic[T]):
    """A task and its deadline; a cancelled one never runs."""

    payload: T
    expiration_ms: int
    cancelled: bool = False
    bucket: _Bucket[T] | None = field(default=None, repr=False)


@dataclass(eq=False)
class _Bucket(Generic[T]):
    """Tasks that are due together, in the order in which they came (``TimerTaskList``)."""

    expiration_ms: int = -1
    tasks: list[TimerTask[T]] = field(default_factory=list)


class _Due(Generic[T]):
    """Buckets by the instant at which they are due (``DelayQueue``); of equal ones the one offered first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, _Bucket[T]]] = []
        self._offered = 0

    def offer(self, bucket: _Bucket[T]) -> None:
        self._offered += 1
        heapq.heappush(self._heap, (bucket.expiration_ms, self._offered, bucket))

    def poll(self, now_ms: int) -> _Bucket[T] | None:
        return heapq.heappop(self._heap)[2] if self._heap and self._heap[0][0] <= now_ms else None

    def next_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None


class TimingWheel(Generic[T]):
    """One wheel, and above it, once needed, its overflow wheel."""

    def __init__(self, start_ms: int, due: _Due[T], tick_ms: int = TICK_MS, wheel_size: int = WHEEL_SIZE) -> None:
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self.interval_ms = tick_ms * wheel_size
        self.current_ms = start_ms - start_ms % tick_ms
        self.overflow: TimingWheel[T] | None = None
        self._due = due
        self._buckets: list[_Bucket[T]] = [_Bucket() for _ in range(wheel_size)]

    def add(self, task: TimerTask[T]) -> bool:
        """Take a task; False if it is cancelled or due within the current tick, so that it runs at once."""
        if task.cancelled or task.expiration_ms < self.current_ms + self.tick_ms:
            return False
        if task.expiration_ms >= self.current_ms + self.interval_ms:
            if self.overflow is None:
                self.overflow = TimingWheel(self.current_ms, self._due, self.interval_ms, self.wheel_size)
            return self.overflow.add(task)
        tick = task.expiration_ms // self.tick_ms
        bucket = self._buckets[tick % self.wheel_size]
        bucket.tasks.append(task)
        task.bucket = bucket
        if bucket.expiration_ms != tick * self.tick_ms:
            bucket.expiration_ms = tick * self.tick_ms
            self._due.offer(bucket)
        return True

    def advance_to(self, now_ms: int) -> None:
        if now_ms >= self.current_ms + self.tick_ms:
            self.current_ms = now_ms - now_ms % self.tick_ms
            if self.overflow is not None:
                self.overflow.advance_to(self.current_ms)


class SystemTimer(Generic[T]):
    """A timer that hands expired tasks to `run` in the order in which its executor, one thread, runs them.

    Args:
        run: called with a task's payload.
        start_ms: now.
    """

    def __init__(
        self, run: Callable[[T], None], start_ms: int = 0, tick_ms: int = TICK_MS, wheel_size: int = WHEEL_SIZE
    ) -> None:
        self._run = run
        self._due: _Due[T] = _Due()
        self._wheel: TimingWheel[T] = TimingWheel(start_ms, self._due, tick_ms, wheel_size)
        self._size = 0

    @property
    def size(self) -> int:
        """Tasks in the wheels, neither run nor found cancelled yet."""
        return self._size

    def add(self, payload: T, delay_ms: int, now_ms: int) -> TimerTask[T]:
        """Run `payload` when `delay_ms` have passed from now; at once if that is within the wheel's current tick."""
        task = TimerTask(payload, now_ms + delay_ms)
        self._insert(task)
        return task

    def cancel(self, task: TimerTask[T]) -> None:
        """Take a task out (``TimerTask.cancel``); it counts no longer. Without effect on one that has run."""
        task.cancelled = True
        if task.bucket is not None:
            task.bucket.tasks.remove(task)
            task.bucket = None
            self._size -= 1

    def advance_clock(self, now_ms: int) -> bool:
        """Run what is due by now, bucket by bucket; True if a bucket was."""
        bucket = self._due.poll(now_ms)
        if bucket is None:
            return False
        while bucket is not None:
            self._wheel.advance_to(bucket.expiration_ms)
            tasks, bucket.tasks, bucket.expiration_ms = bucket.tasks, [], -1
            self._size -= len(tasks)
            for task in tasks:
                task.bucket = None
                self._insert(task)
            bucket = self._due.poll(now_ms)
        return True

    def next_bucket_ms(self) -> int | None:
        """When the next bucket is due, whether its tasks then run or move to a finer wheel; None: no bucket waits."""
        return self._due.next_ms()

    def _insert(self, task: TimerTask[T]) -> None:
        if self._wheel.add(task):
            self._size += 1
        elif not task.cancelled:
            self._run(task.payload)


def fires_at(inserted_ms: int, delay_ms: int, current_ms: int | None = None) -> int:
    """The millisecond in which a task runs, if the reaper is never held up: its deadline, whatever wheel it was in.

    Args:
        current_ms: instant up to which the wheel has been advanced, at most `inserted_ms`; a wheel that has not moved
            for long changes nothing, since buckets are due at instants and not after so many ticks.
    """
    fired: list[int] = []
    now_ms = inserted_ms
    timer: SystemTimer[None] = SystemTimer(
        lambda _: fired.append(now_ms), inserted_ms if current_ms is None else current_ms
    )
    timer.add(None, delay_ms, inserted_ms)
    while not fired:
        due_ms = timer.next_bucket_ms()
        assert due_ms is not None
        now_ms = max(now_ms, due_ms)
        timer.advance_clock(now_ms)
    return fired[0]
