"""Facts of the log layer: logs loaded at start, offsets of appends and truncations, leader epochs, the remote tier.

`configs` reads the creation of a log. Offsets in lines may differ from columns by one.
"""

from __future__ import annotations

import re

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.printed import Forms, parse_fields, split_items
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.states import make_topic_facts
from highwater.pipelines.grammars.typed import logged, typed
from highwater.pipelines.grammars.values import i32, i64, match_whole, optional_i64, parse_partition, parse_topic_id

#: ``Log.toString``; the topic id since 3.0.
_LOG: Forms = dict.fromkeys(
    ("Log", "UnifiedLog"), "dir( topicId)? topic partition highWatermark lastStableOffset logStartOffset logEndOffset"
)

#: ``Log.toString`` up to 2.3.
_LOG_23 = re.compile(r"Log\((?P<dir>/[^,]*)\)", re.ASCII)

#: An absolute path: a directory, and the folder of a log in it.
_PLACE = re.compile(r"((?:/|[A-Za-z]:[\\/])(?:.*[^/\\])?)[/\\]([^/\\]+)")

#: Folders of former or future replicas. A long name is cut.
_NO_REPLICA = re.compile(r"(.+)\.[0-9a-f]{32}-(delete|stray|future)", re.ASCII)

_EPOCH_ENTRY = re.compile(r"EpochEntry\(epoch=(-?\d+), startOffset=(-?\d+)\)", re.ASCII)
#: How stores name the objects of a segment (``LocalTieredStorage``, and plugins alike).
_OBJECT = re.compile(r"(?<![\w-])(\d{20})-([\w-]{22})(?![\w-])", re.ASCII)
_REASON_CHARS_MAX = 500


def _split_path(path: str, partition: tuple[str, int]) -> tuple[str, str | None]:
    """Return (log directory, kind) of a log's path. The kind is delete, stray or future; None for a normal replica."""
    match = match_whole(_PLACE, path, "place of a log")
    name, folder = f"{partition[0]}-{partition[1]}", match[2]
    no_replica = _NO_REPLICA.fullmatch(folder)
    if folder != name and (no_replica is None or not name.startswith(no_replica[1])):
        raise ValueError(f"not the folder of {name}: {path[:80]}")
    return match[1], None if no_replica is None else no_replica[2]


def loaded(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a log's end offset and local start offset at broker start.

    The ``highWatermark`` of the line is the value before the checkpoint is read, mostly 0, and is not used. A folder
    that ends in -delete, -stray or -future is not a replica of this broker.
    """
    log = parse_fields(match[1], _LOG)
    topic, partition = parse_partition(f"{log['topic']}-{log['partition']}")
    topic_id = parse_topic_id(log.get("topicId"))
    facts = make_topic_facts(topic, topic_id)
    directory, no_replica = _split_path(log["dir"], (topic, partition))
    place = {"topic": topic, "partition": partition, "log_dir": directory}
    if no_replica is None:
        row = {**place, "source": "loaded", "log_end_offset": i64(log["logEndOffset"])}
        if match["local_start"] is not None:
            start = {"event": "local_start", "offset": i64(match["local_start"]), "reason": "loaded"}
            start["log_start_offset"] = i64(log["logStartOffset"])
            facts = (LineFact("tier_events", {"topic": topic, "partition": partition, **start}), *facts)
        return LineFact("high_watermarks", row), *facts
    if no_replica == "future":
        return LineFact("future_logs", {**place, "event": "loaded"}), *facts
    return facts


def note_future_log(partition: tuple[str, int], path: str) -> tuple[LineFact, ...]:
    """Return the row for a created future log, if the line names its folder (2.4 and later). Empty for other logs."""
    if not path.endswith("-future"):
        return ()
    row = {
        "topic": partition[0],
        "partition": partition[1],
        "event": "created",
        "log_dir": _split_path(path, partition)[0],
    }
    return (LineFact("future_logs", row),)


def promoted(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read the promotion of a future log to the current one. If a log was missing, the line logs an error: no row."""
    if "null" in (match["current"], match["future"]):
        return ()
    old = _LOG_23.fullmatch(match["future"])
    path = old["dir"] if old else parse_fields(match["future"], _LOG)["dir"]
    topic, partition = parse_partition(match["tp"])
    directory, no_replica = _split_path(path, (topic, partition))
    if no_replica != "future":
        raise ValueError(f"no future log: {path[:80]}")
    row = {"topic": topic, "partition": partition, "event": "promoted", "log_dir": directory}
    return (LineFact("future_logs", row),)


def deleted(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a log deleted from this broker: its topic was deleted, its replica moved, or a move was cancelled."""
    topic, partition = parse_partition(match["tp"])
    directory, no_replica = _split_path(match["path"], (topic, partition))
    if no_replica != "delete":
        raise ValueError(f"not deleted: {match['path'][:80]}")
    row = {"topic": topic, "partition": partition, "role": "stopped", "log_dir": directory}
    return (LineFact("leader_and_isr", row),)


def first(match: re.Match[str], context: LogIdent) -> int | None:
    """Return the first offset of an append. None if unknown."""
    return optional_i64(match[2] or match[3])


def before_next(match: re.Match[str], context: LogIdent) -> int:
    """Return the last offset of an append, from a line with the next offset."""
    return i64(match["last_offset"]) - 1


def end(match: re.Match[str], context: LogIdent) -> int:
    """Return the end offset of a log, from a line with its largest offset."""
    return i64(match["previous_end_offset"]) + 1


_written = typed("appends", source="replica_manager")


def written(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a write to remote storage, with the topic id that later lines do not repeat."""
    (fact,) = _written(match, context, record)
    topic_id = parse_topic_id(match["tp"].rpartition(":")[0] or None)
    return fact, *make_topic_facts(fact.row["topic"], topic_id)


def _make_epoch_rows(match: re.Match[str], context: LogIdent, action: str, group: int = 1) -> tuple[LineFact, ...]:
    """Return rows of ``leader_epochs`` for the entries that a group lists: one, or a collection."""
    topic, partition = context.owner()
    rows = []
    text = match[group]
    for item in [text] if text.startswith("EpochEntry(") else split_items(text):
        entry = match_whole(_EPOCH_ENTRY, item, "epoch entry")
        row = {"topic": topic, "partition": partition, "action": action, "detail": logged(match, context)}
        rows.append(LineFact("leader_epochs", {**row, "leader_epoch": i32(entry[1]), "start_offset": i64(entry[2])}))
    return tuple(rows)


def epoch_assigned(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a leader epoch entry that is appended to the epoch file."""
    return _make_epoch_rows(match, context, "assigned")


def epoch_conflict(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a leader epoch entry that replaces others."""
    return *_make_epoch_rows(match, context, "truncated", 2), *_make_epoch_rows(match, context, "assigned")


def epochs_truncated(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read leader epoch entries that are truncated."""
    return _make_epoch_rows(match, context, "truncated")


def read_failed(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a failed read of remote storage. The exception follows the line, unless the log layout omits it."""
    topic, partition = parse_partition(match["tp"])
    row = {"topic": topic, "partition": partition, "event": "read_failed"}
    _, _, behind = record.message.partition("\n")
    if behind:
        row["reason"] = behind.partition("\n")[0].strip()[:_REASON_CHARS_MAX]
        if (name := _OBJECT.search(behind)) is not None:
            row |= {"offset": i64(name[1]), "segment_id": name[2]}
    return (LineFact("tier_events", row),)
