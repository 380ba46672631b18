"""Facts of ``LogManager``: logs loaded at start, directories that fail. Creation properties are in `configs`."""

from __future__ import annotations

import re

from pipelines.grammars.grammar import Context
from pipelines.grammars.printed import Forms, fields
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.values import i64, partition_of, topic_id_of

#: ``Log.toString``; the topic id since 3.0.
_LOG: Forms = dict.fromkeys(
    ("Log", "UnifiedLog"),
    (
        "dir topic partition highWatermark lastStableOffset logStartOffset logEndOffset",
        "dir topicId topic partition highWatermark lastStableOffset logStartOffset logEndOffset",
    ),
)

#: ``Log.toString`` up to 2.3.
_LOG_23 = re.compile(r"Log\((?P<dir>/[^,]*)\)", re.ASCII)

#: An absolute path: a directory, and the folder of a log in it.
_PLACE = re.compile(r"((?:/|[A-Za-z]:[\\/])(?:.*[^/\\])?)[/\\]([^/\\]+)")

#: Folders of logs that are no replica any more, or not yet; of a long name only the beginning stands in it.
_NO_REPLICA = re.compile(r"(.+)\.[0-9a-f]{32}-(delete|stray|future)", re.ASCII)


def _place(path: str, partition: tuple[str, int]) -> tuple[str, str | None]:
    """The directory of a log's path, and what it is if it is no replica: delete, stray or future."""
    match = _PLACE.fullmatch(path)
    if match is None:
        raise ValueError(f"no place of a log: {path[:80]}")
    name, folder = f"{partition[0]}-{partition[1]}", match[2]
    no_replica = _NO_REPLICA.fullmatch(folder)
    if folder != name and (no_replica is None or not name.startswith(no_replica[1])):
        raise ValueError(f"not the folder of {name}: {path[:80]}")
    return match[1], None if no_replica is None else no_replica[2]


def loaded(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A log's end offset at start, and where it begins on this broker.

    The ``highWatermark`` of the line is where a log starts before the checkpoint is read, mostly 0: not kept. A
    folder that ends in -delete, -stray or -future holds no replica of this broker.
    """
    log = fields(match[1], _LOG)
    topic, partition = partition_of(f"{log['topic']}-{log['partition']}")
    topic_id = topic_id_of(log.get("topicId"))
    facts = topic_fact(topic, topic_id)
    directory, no_replica = _place(log["dir"], (topic, partition))
    place = {"topic": topic, "partition": partition, "log_dir": directory}
    if no_replica is None:
        row = {**place, "source": "loaded", "log_end_offset": i64(log["logEndOffset"])}
        if match["local_start"] is not None:
            start = {"event": "local_start", "offset": i64(match["local_start"]), "reason": "loaded"}
            start["log_start_offset"] = i64(log["logStartOffset"])
            facts = (Fact("tier_events", {"topic": topic, "partition": partition, **start}), *facts)
        return Fact("high_watermarks", row), *facts
    if no_replica == "future":
        return Fact("future_logs", {**place, "event": "loaded"}), *facts
    return facts


def future_log_created(partition: tuple[str, int], path: str) -> tuple[Fact, ...]:
    """A future log, of a line that names its folder (2.4 and later); nothing of any other."""
    if not path.endswith("-future"):
        return ()
    row = {"topic": partition[0], "partition": partition[1], "event": "created", "log_dir": _place(path, partition)[0]}
    return (Fact("future_logs", row),)


def promoted(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A log that is not there ends in an error instead."""
    if "null" in (match["current"], match["future"]):
        return ()
    old = _LOG_23.fullmatch(match["future"])
    path = old["dir"] if old else fields(match["future"], _LOG)["dir"]
    topic, partition = partition_of(match["tp"])
    directory, no_replica = _place(path, (topic, partition))
    if no_replica != "future":
        raise ValueError(f"no future log: {path[:80]}")
    row = {"topic": topic, "partition": partition, "event": "promoted", "log_dir": directory}
    return (Fact("future_logs", row),)


def deleted(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """Gone from this broker: its topic was deleted, the partition was moved away, or a move was given up."""
    topic, partition = partition_of(match["tp"])
    directory, no_replica = _place(match["path"], (topic, partition))
    if no_replica != "delete":
        raise ValueError(f"not deleted: {match['path'][:80]}")
    row = {"topic": topic, "partition": partition, "role": "stopped", "log_dir": directory}
    return (Fact("leader_and_isr", row),)
