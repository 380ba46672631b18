"""Grammar of the remote tier (KIP-405): segments copied, reads that failed, and from where on a log is a broker's own.

Loggers ``RemoteLogManager`` and its tasks, ``RemoteLogReader``, ``TierStateMachine``; ``UnifiedLog`` for log starts.
"""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import TP, typed
from pipelines.grammars.values import i64, partition_of

#: ``RLMTask`` up to 3.8, then one task for each thing to do.
_TASKS = ("RemoteLogManager", *(f"RemoteLogManager$RLM{name}Task" for name in ("", "Copy", "Expiration")))
#: ``RemoteLogSegmentId.toString``.
_SEGMENT = rf"RemoteLogSegmentId\{{topicIdPartition=[\w-]+:{TP}, id=(?P<segment_id>[\w-]+)\}}"
#: How stores name the objects of a segment (``LocalTieredStorage``, and plugins alike).
_OBJECT = re.compile(r"(?<![\w-])(\d{20})-([\w-]{22})(?![\w-])", re.ASCII)
_REASON_CHARS_MAX = 500

_log = partial(Template, loggers=("Log", "UnifiedLog", "MergedLog"))
_task = partial(Template, loggers=_TASKS)


def _exception(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The exception stands behind the line, unless a layout leaves it out."""
    topic, partition = partition_of(match["tp"])
    row = {"topic": topic, "partition": partition, "event": "read_failed"}
    _, _, behind = record.message.partition("\n")
    if behind:
        row["reason"] = behind.partition("\n")[0].strip()[:_REASON_CHARS_MAX]
        if (name := _OBJECT.search(behind)) is not None:
            row |= {"offset": i64(name[1]), "segment_id": name[2]}
    return (Fact("tier_events", row),)


TEMPLATES = (
    _log(
        "log.local_start",
        r"Incremented local log start offset to (?P<offset>\d+) due to reason (?P<reason>.*)",
        "UnifiedLog.maybeIncrementLocalLogStartOffset, 3.6 and later",
        typed("tier_events", event="local_start"),
    ),
    _log(
        "log.start_offset",
        r"Incremented log start offset to (?P<offset>\d+) due to (?P<reason>.*)",
        "UnifiedLog.maybeIncrementLogStartOffset, 2.5 and later: retention, deleted records",
        typed("tier_events", event="log_start"),
    ),
    _task(
        "tier.copied",
        rf"Copied (?P<offset>\d{{20}})\.log to remote storage with segment-id: {_SEGMENT}",
        "RemoteLogManager.copyLogSegment, 3.5 and later",
        typed("tier_events", event="copied"),
    ),
    _task(
        "tier.expired",
        rf"(?:About to delete|Deleted) remote log segment {_SEGMENT} due to (?P<reason>.*)",
        "RemoteLogManager.RemoteLogRetentionHandler, 3.6 and later",
        typed("tier_events", event="expired"),
    ),
    Template(
        "tier.read_failed",
        rf"Error occurred while reading the remote data for {TP}",
        "RemoteLogReader.call, 3.6 and later",
        _exception,
        loggers=("RemoteLogReader",),
    ),
    Template(
        "tier.rebuilt",
        rf"Updated the epoch cache from remote tier till offset: (?P<offset>\d+) with size: \d+ for (?:{TP}|Topic: "
        r"(?P<topic>\S+); Partition: (?P<partition>\d+); .*)",
        "TierStateMachine.buildRemoteLogAuxState, INFO since 3.8, DEBUG of ReplicaFetcherTierStateMachine before; the "
        "partition as ``Partition.toString`` has it",
        typed("tier_events", event="local_start", reason="rebuilt from the tier"),
        loggers=("TierStateMachine", "ReplicaFetcherTierStateMachine"),
    ),
)
