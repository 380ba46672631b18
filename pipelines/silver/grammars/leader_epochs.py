"""Grammar of ``LeaderEpochFileCache``: the history of leader epochs that a replica keeps."""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.printed import items
from pipelines.silver.record import Fact, Record
from pipelines.silver.values import PARTITION, i32, i64, partition_of

_EPOCHS = ("LeaderEpochFileCache",)
_MAX_DETAIL = 500
_EPOCH_ENTRY = re.compile(r"EpochEntry\(epoch=(-?\d+), startOffset=(-?\d+)\)", re.ASCII)
_OLD_EPOCH = re.compile(r"\{epoch:(-?\d+), offset:(-?\d+)\}", re.ASCII)


def _entries(text: str) -> list[tuple[str, str]]:
    """Epochs and start offsets of entries: one, or a collection."""
    entries = []
    for item in [text] if text.startswith("EpochEntry(") else items(text):
        match = _EPOCH_ENTRY.fullmatch(item)
        if match is None:
            raise ValueError(f"no epoch entry: {item[:80]}")
        entries.append((match[1], match[2]))
    return entries


def _epoch_rows(context: Context, action: str, text: str, detail: str) -> list[Fact]:
    topic, partition = context.owner()
    return [
        Fact(
            "leader_epochs",
            {
                "topic": topic,
                "partition": partition,
                "action": action,
                "leader_epoch": i32(epoch),
                "start_offset": i64(offset),
                "detail": detail[:_MAX_DETAIL],
            },
        )
        for epoch, offset in _entries(text)
    ]


def _epoch_assigned(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return tuple(_epoch_rows(context, "assigned", match[1], match[0]))


def _epoch_conflict(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    removed = _epoch_rows(context, "truncated", match[2], match[0])
    return (*removed, *_epoch_rows(context, "assigned", match[1], match[0]))


def _epochs_truncated(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return tuple(_epoch_rows(context, "truncated", match[1], match[0]))


def _epoch_assigned_old(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    new = _OLD_EPOCH.fullmatch(match[1])
    if new is None:
        raise ValueError("no epoch")
    topic, partition = partition_of(match[2])
    row = {
        "topic": topic,
        "partition": partition,
        "action": "assigned",
        "leader_epoch": i32(new[1]),
        "start_offset": i64(new[2]),
        "detail": match[0][:_MAX_DETAIL],
    }
    return (Fact("leader_epochs", row),)


TEMPLATES = (
    Template(
        "log.epoch_assigned",
        _EPOCHS,
        r"Appended new epoch entry (EpochEntry\(.*?\))\. Cache now contains \d+ entries\.",
        "LeaderEpochFileCache.assign, 2.0 and later; DEBUG",
        _epoch_assigned,
    ),
    Template(
        "log.epoch_conflict",
        _EPOCHS,
        r"New epoch entry (EpochEntry\(.*?\)) caused truncation of conflicting entries (.*)\. Cache now contains \d+ "
        r"entries\.",
        "LeaderEpochFileCache.assign, 2.0 and later; WARN",
        _epoch_conflict,
    ),
    Template(
        "log.epochs_truncated",
        _EPOCHS,
        r"Cleared entries (.*) from epoch cache after truncating to end offset -?\d+, leaving \d+ entries in the "
        r"cache\.",
        "LeaderEpochFileCache.truncateFromEnd, 2.0 and later; DEBUG",
        _epochs_truncated,
    ),
    Template(
        "log.epochs_truncated",
        _EPOCHS,
        r"Cleared entries (.*) and rewrote first entry .* after truncating to start offset -?\d+, leaving \d+ in the "
        r"cache\.",
        "LeaderEpochFileCache.truncateFromStart, 2.0 and later; DEBUG",
        _epochs_truncated,
    ),
    Template(
        "log.epoch_assigned",
        _EPOCHS,
        rf"Updated PartitionLeaderEpoch\. New: (\{{epoch:-?\d+, offset:-?\d+\}}), Current: .* for Partition: "
        rf"({PARTITION})\. Cache now contains \d+ entries\.",
        "LeaderEpochFileCache.assign, 0.11 to 1.1",
        _epoch_assigned_old,
    ),
    Template(
        "log.epoch_looked_up",
        _EPOCHS,
        r"Processed (?:end offset request for epoch|offset for epoch request for partition) .*",
        "LeaderEpochFileCache.endOffsetFor; DEBUG to 2.8, TRACE later",
    ),
    Template(
        "log.epoch_out_of_order",
        _EPOCHS,
        r"Received (?:leader epoch assignment|a PartitionLeaderEpoch assignment) .*",
        "LeaderEpochFileCache.assign, up to 2.6",
    ),
    Template(
        "log.epochs_cleared_old",
        _EPOCHS,
        r"Cleared (?:latest|earliest) .* entries from epoch cache based on passed offset .*",
        "LeaderEpochFileCache.clearAndFlushLatest / clearAndFlushEarliest, 0.11 to 1.1",
    ),
)
