"""What became of each acknowledged record, by what clients saw and what could be read in the end. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.testbed.history import ACKS_ALL, ACKS_LEADER, History, Produced, read_history

LOST = "lost.json"


class Account(NamedTuple):
    """Records acknowledged with acks=all, or by the leader alone."""

    acknowledged: int  #: all of them; the sum of the others
    readable: int  #: with their keys, at the offsets that were answered
    expired: int  #: below the start of the log in the end: retention
    deleted: int  #: with their topic
    lost: tuple[Produced, ...]  #: something else is there, or nothing


def account(history: History, acks: str = ACKS_ALL) -> Account:
    """Account for every record acknowledged with these acks."""
    counts = {"readable": 0, "expired": 0, "deleted": 0}
    lost = []
    for record in history.produced:
        if record.acks != acks or record.offset is None:
            continue
        place = (record.topic, record.partition)
        if place not in history.starts:
            counts["deleted"] += 1
        elif record.offset < history.starts[place]:
            counts["expired"] += 1
        elif history.final[place].get(record.offset) == record.key:
            counts["readable"] += 1
        else:
            lost.append(record)
    lost.sort(key=lambda record: (record.topic, record.partition, record.offset or 0))
    return Account(sum(counts.values()) + len(lost), **counts, lost=tuple(lost))


def lost_rows(history: History) -> list[dict[str, Any]]:
    """A row per lost record: place, key, when it was acknowledged and how, and which key is there now."""
    lost: Sequence[Produced] = [*account(history).lost, *account(history, ACKS_LEADER).lost]
    return [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "key": record.key,
            "acked_at": record.time_s,
            "acks": record.acks,
            "now": history.final[record.topic, record.partition].get(record.offset or 0),
        }
        for record in lost
    ]


def write_lost(corpus: Path) -> None:
    """Put ``lost.json`` into a corpus if anything was lost."""
    rows = lost_rows(read_history(corpus))
    if rows:
        (corpus / LOST).write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
