"""Excerpts: files from which lines were left out. What an excerpt does not contain proves nothing. Pure."""

from __future__ import annotations

from typing import Final

from pipelines.bronze.identity import Hints

#: Reasons: no line below WARN, lines of one logger only, lines about one partition only.
LEVELS, LOGGER, PARTITION = "levels", "logger", "partition"
REASONS: Final = (LEVELS, LOGGER, PARTITION)
#: Fewer lines may be alike by chance.
_RECORDS_MIN: Final = 5
_HIGH: Final = frozenset({"WARN", "ERROR", "FATAL"})
#: Logs with lines of many loggers and levels.
_MIXED: Final = ("server", "other")


def excerpt_of(kind: str, hints: Hints) -> str | None:
    """Return the reason why a file is an excerpt. None if its lines do not show that others were left out.

    Args:
        kind: of the file. Logs of one logger are no excerpts.
        hints: of the file's lines.
    """
    if sum(hints.levels.values()) < _RECORDS_MIN:
        return None
    if hints.levels.keys() <= _HIGH:
        return LEVELS
    if len(hints.partitions) == 1 and "" not in hints.partitions:
        return PARTITION
    return LOGGER if kind in _MIXED and len(hints.loggers) == 1 else None
