"""Facts of the remote tier (KIP-405): reads that failed."""

from __future__ import annotations

import re

from pipelines.grammars.grammar import Context
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.values import i64, partition_of

#: How stores name the objects of a segment (``LocalTieredStorage``, and plugins alike).
_OBJECT = re.compile(r"(?<![\w-])(\d{20})-([\w-]{22})(?![\w-])", re.ASCII)
_REASON_CHARS_MAX = 500


def read_failed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The exception stands behind the line, unless a layout leaves it out."""
    topic, partition = partition_of(match["tp"])
    row = {"topic": topic, "partition": partition, "event": "read_failed"}
    _, _, behind = record.message.partition("\n")
    if behind:
        row["reason"] = behind.partition("\n")[0].strip()[:_REASON_CHARS_MAX]
        if (name := _OBJECT.search(behind)) is not None:
            row |= {"offset": i64(name[1]), "segment_id": name[2]}
    return (Fact("tier_events", row),)
