"""Grammar of the log layer: appends, the high watermark it holds, truncations, segments that begin.

Loggers ``Log`` (to 3.0), ``UnifiedLog`` (3.1 and later, in the storage module since 4.0), ``LocalLog``, ``LogLoader``.
"""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.record import Fact, Record
from pipelines.silver.values import OFFSET, PARTITION, i64, partition_of

_LOG = ("Log", "UnifiedLog", "MergedLog", "LocalLog", "LogLoader")
#: Records: as a buffer since 2.0 (a message format of its own), as a list of messages before.
_RECORDS = (
    r"(?:MemoryRecords\(size=(\d+), buffer=[\w.]+\[pos=\d+ lim=\d+ cap=\d+\]\)|\[.*\]|ByteBufferMessageSet\(.*\))"
)


def _set(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = context.owner()
    row = {"topic": topic, "partition": partition, "source": "set", "high_watermark": i64(match[1])}
    return (Fact("high_watermarks", row),)


def _non_monotonic(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = context.owner()
    return (
        Fact(
            "high_watermarks",
            {
                "topic": topic,
                "partition": partition,
                "source": "non_monotonic",
                "high_watermark": i64(match[2]),
                "previous_high_watermark": i64(match[1]),
            },
        ),
    )


def _appended(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = context.owner()
    last, metadata, number, size = match.groups()
    first = metadata or number
    return (
        Fact(
            "appends",
            {
                "topic": topic,
                "partition": partition,
                "source": "log",
                "first_offset": None if first is None else i64(first),
                "last_offset": i64(last),
                "size_bytes": None if size is None else i64(size),
            },
        ),
    )


def _appended_old(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = partition_of(match[1])
    return (
        Fact(
            "appends",
            {
                "topic": topic,
                "partition": partition,
                "source": "log",
                "first_offset": i64(match[2]),
                "last_offset": i64(match[3]) - 1,
                "size_bytes": None if match[4] is None else i64(match[4]),
            },
        ),
    )


def _truncation(topic: str, partition: int, **columns: object) -> tuple[Fact, ...]:
    return (Fact("truncations", {"topic": topic, "partition": partition, **columns}),)


def _truncated(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _truncation(*context.owner(), source="log", offset=i64(match[1]))


def _truncated_old(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _truncation(*partition_of(match[1]), source="log", offset=i64(match[2]))


def _truncated_fully(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _truncation(*context.owner(), source="log", offset=i64(match[1]), reason="full", detail=match[0])


def _truncation_no_effect(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The line names the largest offset in the log; the log end offset is one more."""
    return _truncation(
        *context.owner(), source="no_effect", offset=i64(match[1]), previous_end_offset=i64(match[2]) + 1
    )


def _truncation_no_effect_old(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """As `_truncation_no_effect`."""
    topic, partition = partition_of(match[1])
    return _truncation(
        topic, partition, source="no_effect", offset=i64(match[2]), previous_end_offset=i64(match[3]) + 1
    )


def _below_high_watermark(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _truncation(
        *partition_of(match[1]), source="below_high_watermark", offset=i64(match[2]), high_watermark=i64(match[3])
    )


def _corrupt_segment(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """Recovery drops the rest of a segment that it finds corrupt."""
    return _truncation(*context.owner(), source="log", offset=i64(match[1]), reason="corruption", detail=match[0])


def _rolled(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = context.owner()
    row = {"topic": topic, "partition": partition, "base_offset": i64(match[1]), "duration_ms": i64(match[2])}
    return (Fact("segment_rolls", row),)


def _rolled_old(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    topic, partition = partition_of(match[1])
    return (Fact("segment_rolls", {"topic": topic, "partition": partition, "duration_ms": i64(match[2])}),)


TEMPLATES = (
    Template(
        "log.high_watermark_set",
        _LOG,
        rf"Setting high watermark {OFFSET}",
        "Log.updateHighWatermarkMetadata, 2.4 and later; TRACE",
        _set,
    ),
    Template(
        "log.high_watermark_non_monotonic",
        _LOG,
        rf"Non-monotonic update of high watermark from {OFFSET} to {OFFSET}",
        "Log.updateHighWatermarkMetadata, 2.7 and later; WARN",
        _non_monotonic,
    ),
    Template(
        "log.appended",
        _LOG,
        r"Appended message set with last offset: (-?\d+), first offset: "
        rf"(?:(?:Some\(|Optional\[)?(?:{OFFSET}|(-?\d+))[)\]]?|None|Optional\.empty), next offset: -?\d+, and "
        rf"messages: {_RECORDS}",
        "Log.append, 2.0 and later; TRACE",
        _appended,
    ),
    Template(
        "log.appended",
        _LOG,
        rf"Appended message set to log ({PARTITION}) (?:with (?:last offset [-\d]+ )?first offset:?|with last offset "
        rf"-?\d+ first offset:?) (-?\d+),? next offset: (-?\d+),? (?:and )?messages: {_RECORDS}",
        "Log.append, up to 1.1; TRACE",
        _appended_old,
    ),
    Template(
        "log.below_high_watermark",
        _LOG,
        rf"Truncating ({PARTITION}) to offset (-?\d+) below high watermark (-?\d+)",
        "UnifiedLog.truncateTo, 4.x, before it truncates; ReplicaFetcherThread.truncate had it until then",
        _below_high_watermark,
    ),
    Template(
        "log.future_below_high_watermark",
        _LOG,
        rf"Truncating future {PARTITION} to offset -?\d+ below high watermark -?\d+",
        "UnifiedLog.truncateTo, 4.x: a log being moved between directories",
    ),
    Template("log.truncated", _LOG, r"Truncating to offset (-?\d+)", "Log.truncateTo, 1.1 and later", _truncated),
    Template(
        "log.truncated",
        _LOG,
        rf"Truncating log ({PARTITION}) to offset (-?\d+)\.?",
        "Log.truncateTo, up to 1.0",
        _truncated_old,
    ),
    Template(
        "log.truncation_no_effect",
        _LOG,
        r"Truncating to (-?\d+) has no effect as the largest offset in the log is (-?\d+)\.?",
        "Log.truncateTo, 0.11 and later",
        _truncation_no_effect,
    ),
    Template(
        "log.truncation_no_effect",
        _LOG,
        rf"Truncating ({PARTITION}) to (-?\d+) has no effect as the largest offset in the log is (-?\d+)\.",
        "Log.truncateTo, 0.11 and 1.0",
        _truncation_no_effect_old,
    ),
    Template(
        "log.truncated_fully",
        _LOG,
        rf"Truncate and start (?:log {PARTITION} )?at offset (-?\d+)(?:, logStartOffset: -?\d+)?",
        "Log.truncateFullyAndStartAt; DEBUG",
        _truncated_fully,
    ),
    Template(
        "log.corruption",
        _LOG,
        r"Corruption found in segment -?\d+, truncating to offset (-?\d+)",
        "LogLoader.recoverLog",
        _corrupt_segment,
    ),
    Template(
        "log.rolled",
        _LOG,
        r"Rolled new log segment at offset (\d+) in (\d+) ms\.",
        "Log.roll, 1.0 and later; LocalLog.roll since 3.1",
        _rolled,
    ),
    Template(
        "log.rolled",
        _LOG,
        rf"Rolled new log segment for '({PARTITION})' in (\d+) ms\.",
        "Log.roll, up to 0.11",
        _rolled_old,
    ),
)
