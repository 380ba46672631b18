"""Batches of a backlog of logs. Each batch is ingested and audited before the next one. Pure.

A run needs memory, disk and time in proportion to the new text. Consecutive runs give the same results as a single run.
A first run over a large folder is therefore split into runs over batches, in the order of the logs' time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from highwater.pipelines.bronze.profile import Profile


class _Unit(NamedTuple):
    """A file, or the logs of a bundle, which are read together."""

    first_us: int
    last_us: int
    size_bytes: int
    logs: list[Profile]


def in_batches(logs: Iterable[Profile], batch_bytes: int) -> list[list[Profile]]:
    """Return the logs in batches of about `batch_bytes` of text, sorted by their first time.

    Logs without a time come first. A log belongs to the batch of its first line. If possible, a batch ends in its
    second half at a place where all of its logs end. The next batch then has no older line.
    """
    by_file = defaultdict(list)
    for log in logs:
        by_file[log.bundle or log.path].append(log)
    batches: list[list[_Unit]] = []
    batch: list[_Unit] = []
    for unit in sorted(map(_unit, by_file.values()), key=lambda unit: (unit.first_us, unit.logs[0].path)):
        if batch and sum(other.size_bytes for other in (*batch, unit)) > batch_bytes:
            end = _end([*batch, unit], batch_bytes // 2)
            batches.append(batch[:end])
            batch = batch[end:]
        batch.append(unit)
    return [[log for unit in units for log in unit.logs] for units in (*batches, batch) if units]


def text_bytes(log: Profile) -> int:
    """Return the bytes of a log's new text."""
    return log.content_bytes - log.start_offset


def _unit(logs: list[Profile]) -> _Unit:
    first_us = min(log.first_us or 0 for log in logs)
    last_us = max(log.last_us or 0 for log in logs)
    return _Unit(first_us, last_us, sum(map(text_bytes, logs)), logs)


def _end(units: Sequence[_Unit], size_bytes_min: int) -> int:
    """Return how many units form the next batch, at most all but the last.

    It is the largest number of them after which no unit has an older line.
    """
    end, size_bytes, last_us = len(units) - 1, 0, 0
    for number, (unit, after) in enumerate(pairwise(units), 1):
        size_bytes += unit.size_bytes
        last_us = max(last_us, unit.last_us)
        if size_bytes >= size_bytes_min and last_us <= after.first_us:
            end = number
    return end
