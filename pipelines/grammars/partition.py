"""Facts of a leader's partition: end offsets of followers, high watermark, progress of a produce, waiting operations.

Lines of the purgatory (T3) are the ground truth for the replay. They do not name their request: an operation is
identified by its partition and the offset that it waits for.
"""

from __future__ import annotations

import re

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.printed import split_items
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.typed import typed
from highwater.pipelines.grammars.values import OFFSET, i32, i64, match_whole, optional_i64

#: ``replica 1: (offset=5 segment=[0:12])`` where an end offset is printed whole, ``broker 1: 5`` where it is a number.
_REPLICA_OFFSET = re.compile(rf"(?:replica|broker) (\d+): (?:{OFFSET}|(-?\d+))", re.ASCII)

#: End offsets up to 1.1, without the replicas' ids: unusable.
_BARE_OFFSETS = re.compile(rf"{OFFSET}(?:,{OFFSET})*", re.ASCII)
_ASKING_REPLICA = re.compile(r"replicaId=(-?\d+)", re.ASCII)


def _parse_replicas(text: str) -> list[dict[str, int]]:
    """Return ``replica_id`` and ``log_end_offset`` (-1 if unknown) of ``replica 2: (offset=-1 ...), broker 1: 5``."""
    if _BARE_OFFSETS.fullmatch(text):
        return []
    replicas = []
    for item in split_items(text):
        match = match_whole(_REPLICA_OFFSET, item, "replica with its offset")
        replicas.append({"replica_id": i32(match[1]), "log_end_offset": i64(match[2] or match[3])})
    return replicas


def skipped(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a skipped high watermark update. The "new hw" of the line was not applied and is ignored.

    Up to 2.3 the line also shows the old high watermark, which remains valid.
    """
    replicas = _parse_replicas(match["ends"])
    local = next((r["log_end_offset"] for r in replicas if r["replica_id"] == context.node), None)
    topic, partition = context.owner()
    row = {
        "topic": topic,
        "partition": partition,
        "source": "skipped",
        "high_watermark": optional_i64(match["high_watermark"]),
    }
    return (LineFact("high_watermarks", {**row, "log_end_offset": local, "replica_end_offsets": replicas}),)


def acked(match: re.Match[str], context: LogIdent) -> list[dict[str, int]]:
    """Return the replicas of the ISR that have the records of a produce."""
    return _parse_replicas(match["acked"])


def awaiting(match: re.Match[str], context: LogIdent) -> list[dict[str, int]]:
    """Return the replicas of the ISR that lack the records of a produce."""
    return _parse_replicas(match["awaiting"])


def received(match: re.Match[str], context: LogIdent) -> list[dict[str, int | None]]:
    """Return the replica that a line names, with end offset None, because the line has none."""
    return [{"replica_id": i32(match["acked"]), "log_end_offset": None}]


_checked = typed("delayed_operation_checks", step="unblocked", operation=lambda match, _: match["operation"].lower())


def unblocked(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a check of waiting operations by key, even if it completed none. A client's group id may be the key."""
    if "\n" in record.message:
        raise ValueError("the key holds a line end")
    return _checked(match, context, record)


def reason(match: re.Match[str], context: LogIdent) -> str:
    """Return the reason for answering a fetch early, with the replica if the line names it."""
    replica = _ASKING_REPLICA.search(match["operation"])
    return (match["detail"].strip(" ,") + ("" if replica is None else f" (replicaId={replica[1]})"))[:500]
