"""Grammar of ``LeaderEpochFileCache``: the history of leader epochs that a replica keeps."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.printed import items
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import TP, logged, typed
from pipelines.grammars.values import i32, i64

_EPOCH_ENTRY = re.compile(r"EpochEntry\(epoch=(-?\d+), startOffset=(-?\d+)\)", re.ASCII)


def _epoch_rows(match: re.Match[str], context: Context, action: str, group: int = 1) -> tuple[Fact, ...]:
    """Rows of ``leader_epochs`` for the entries that a group lists: one, or a collection."""
    topic, partition = context.owner()
    rows = []
    text = match[group]
    for item in [text] if text.startswith("EpochEntry(") else items(text):
        entry = _EPOCH_ENTRY.fullmatch(item)
        if entry is None:
            raise ValueError(f"no epoch entry: {item[:80]}")
        row = {"topic": topic, "partition": partition, "action": action, "detail": logged(match, context)}
        rows.append(Fact("leader_epochs", {**row, "leader_epoch": i32(entry[1]), "start_offset": i64(entry[2])}))
    return tuple(rows)


def _epoch_assigned(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _epoch_rows(match, context, "assigned")


def _epoch_conflict(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return *_epoch_rows(match, context, "truncated", 2), *_epoch_rows(match, context, "assigned")


def _epochs_truncated(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _epoch_rows(match, context, "truncated")


_epochs = partial(Template, loggers=("LeaderEpochFileCache",))

TEMPLATES = (
    _epochs(
        "log.epoch_assigned",
        r"Appended new epoch entry (EpochEntry\(.*?\))\. Cache now contains \d+ entries\.",
        "LeaderEpochFileCache.assign, 2.0 and later; DEBUG",
        _epoch_assigned,
    ),
    _epochs(
        "log.epoch_conflict",
        r"New epoch entry (EpochEntry\(.*?\)) caused truncation of conflicting entries (.*)\. Cache now contains \d+ "
        r"entries\.",
        "LeaderEpochFileCache.assign, 2.0 and later; WARN",
        _epoch_conflict,
    ),
    _epochs(
        "log.epochs_truncated",
        r"Cleared entries (.*) from epoch cache after truncating to end offset -?\d+, leaving \d+ entries in the "
        r"cache\.",
        "LeaderEpochFileCache.truncateFromEnd, 2.0 and later; DEBUG",
        _epochs_truncated,
    ),
    _epochs(
        "log.epochs_truncated",
        r"Cleared entries (.*) and rewrote first entry .* after truncating to start offset -?\d+, leaving \d+ in the "
        r"cache\.",
        "LeaderEpochFileCache.truncateFromStart, 2.0 and later; DEBUG",
        _epochs_truncated,
    ),
    _epochs(
        "log.epoch_assigned",
        rf"Updated PartitionLeaderEpoch\. New: \{{epoch:(?P<leader_epoch>-?\d+), offset:(?P<start_offset>-?\d+)\}}, "
        rf"Current: .* for Partition: {TP}\. Cache now contains \d+ entries\.",
        "LeaderEpochFileCache.assign, 0.11 to 1.1",
        typed("leader_epochs", action="assigned", detail=logged),
    ),
)
