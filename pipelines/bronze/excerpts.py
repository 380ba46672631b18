"""Excerpts: files from which lines were left out. Lines missing from an excerpt prove nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from highwater.pipelines.bronze.identity import Hints

#: Reasons: no line below WARN, lines of one logger only, lines about one partition only, numbers of lines with gaps.
LEVELS, LOGGER, PARTITION, NUMBERS = "levels", "logger", "partition", "numbers"
REASONS: Final = (LEVELS, LOGGER, PARTITION, NUMBERS)
#: Fewer lines may be alike by chance.
_RECORDS_MIN: Final = 5
#: A number of a line as `grep -n` writes it, also behind the name of a file.
_NUMBERED: Final = re.compile(rb"([^\s:A-Za-z]*+[A-Za-z][^\s:]*[:-])?(\d{1,9})[:-](?!\d\d\b)")
_NUMBERED_SHARE: Final = 0.9
_HIGH: Final = frozenset({"WARN", "ERROR", "FATAL"})
#: Logs with lines of many loggers and levels.
_MIXED: Final = ("server", "other")


def has_gaps(lines: Sequence[bytes]) -> bool:
    """Return True if lines begin with line numbers that ascend with gaps."""
    found = [match for line in lines if (match := _NUMBERED.match(line))]
    if len(found) < max(_RECORDS_MIN, _NUMBERED_SHARE * sum(map(bool, lines))):
        return False
    steps = [int(after[2]) - int(before[2]) for before, after in pairwise(found) if before[1] == after[1]]
    return len(steps) > 1 and min(steps) > 0 and max(steps) > 1


def excerpt_of(kind: str, hints: Hints, is_numbered: bool = False) -> str | None:
    """Return the reason why a file is an excerpt. None if its lines do not show that others were left out.

    Args:
        kind: kind of the file. Logs of one logger are not excerpts.
        hints: hints from the file's lines.
        is_numbered: result of `has_gaps` for its lines.
    """
    if is_numbered:
        return NUMBERS
    if sum(hints.levels.values()) < _RECORDS_MIN:
        return None
    if hints.levels.keys() <= _HIGH:
        return LEVELS
    if len(hints.partitions) == 1 and "" not in hints.partitions:
        return PARTITION
    return LOGGER if kind in _MIXED and len(hints.loggers) == 1 else None
