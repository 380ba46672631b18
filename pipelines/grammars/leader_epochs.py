"""Facts of ``LeaderEpochFileCache``: the history of leader epochs that a replica keeps."""

from __future__ import annotations

import re

from pipelines.grammars.grammar import Context
from pipelines.grammars.printed import items
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import logged
from pipelines.grammars.values import i32, i64

_EPOCH_ENTRY = re.compile(r"EpochEntry\(epoch=(-?\d+), startOffset=(-?\d+)\)", re.ASCII)


def _rows(match: re.Match[str], context: Context, action: str, group: int = 1) -> tuple[Fact, ...]:
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


def assigned(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """An entry is appended."""
    return _rows(match, context, "assigned")


def conflict(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """An entry is appended in place of others."""
    return *_rows(match, context, "truncated", 2), *_rows(match, context, "assigned")


def truncated(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """Entries are dropped."""
    return _rows(match, context, "truncated")
