"""Logs of months in batches, each of which is ingested and audited before the next one is. Pure.

A run takes memory, disk and time by what is new to it. Runs that follow each other give what one run would have given,
so a first run over a large folder is made as several, in the order of the logs' time, as if they had come hour by hour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from highwater.pipelines.bronze.profile import Profile


class _Unit(NamedTuple):
    """A file, or the logs of a bundle, which is gone through once."""

    first_us: int
    last_us: int
    size_bytes: int
    logs: list[Profile]


def in_batches(logs: Iterable[Profile], batch_bytes: int) -> list[list[Profile]]:
    """Return the logs in batches of about this much text, by their beginnings; what has no time comes first.

    A log belongs to where it begins, however long it goes on. Where there is such a place in its second half, a batch
    ends where all of its logs do, so that the next one has no line that is older.
    """
    by_file = defaultdict(list)
    for log in logs:
        by_file[log.bundle or log.path].append(log)
    batches: list[list[_Unit]] = []
    batch: list[_Unit] = []
    for unit in sorted(map(_unit, by_file.values()), key=lambda unit: (unit.first_us, unit.logs[0].path)):
        if batch and _size(batch) + unit.size_bytes > batch_bytes:
            end = _end([*batch, unit], batch_bytes // 2)
            batches.append(batch[:end])
            batch = batch[end:]
        batch.append(unit)
    return [[log for unit in units for log in unit.logs] for units in (*batches, batch) if units]


def text_bytes(log: Profile) -> int:
    """Return the text of a log that is new."""
    return log.content_bytes - log.start_offset


def _unit(logs: list[Profile]) -> _Unit:
    first_us = min(log.first_us or 0 for log in logs)
    last_us = max(log.last_us or 0 for log in logs)
    return _Unit(first_us, last_us, sum(map(text_bytes, logs)), logs)


def _size(units: Iterable[_Unit]) -> int:
    return sum(unit.size_bytes for unit in units)


def _end(units: Sequence[_Unit], size_bytes_min: int) -> int:
    """Return how many of the units, at most all but the last, are a batch: the most behind which no line is older."""
    end, size_bytes, last_us = len(units) - 1, 0, 0
    for number, (unit, after) in enumerate(pairwise(units), 1):
        size_bytes += unit.size_bytes
        last_us = max(last_us, unit.last_us)
        if size_bytes >= size_bytes_min and last_us <= after.first_us:
            end = number
    return end
