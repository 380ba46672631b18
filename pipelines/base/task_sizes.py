"""Size of the work of one task. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeVar

#: A task reads about this much; large enough to outweigh its start, small enough to keep all cores busy to the end.
TASK_BYTES = 64 << 20
T = TypeVar("T")


def balance(sized: Sequence[tuple[T, int]], parallelism: int, task_bytes: int = TASK_BYTES) -> list[list[T]]:
    """Group items into tasks of about equal size, the largest task first, because Spark starts tasks in order.

    Args:
        sized: (item, size in bytes).
        parallelism: number of cores. Each gets several tasks if there are enough items.
        task_bytes: maximum size of a task, unless one item is larger.
    """
    count = min(len(sized), max(parallelism * 4, sum(size for _, size in sized) // task_bytes + 1))
    heap = [(0, number) for number in range(count)]
    tasks: list[list[T]] = [[] for _ in range(count)]
    totals = [0] * count
    for item, size in sorted(sized, key=lambda pair: -pair[1]):
        total, number = heapq.heappop(heap)
        tasks[number].append(item)
        totals[number] = total + size + 4096  # opening a file has its price
        heapq.heappush(heap, (totals[number], number))
    return [tasks[number] for number in sorted(range(count), key=lambda number: -totals[number])]
