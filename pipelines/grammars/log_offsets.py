"""Grammar of the log layer: appends, the high watermark it holds, truncations, segments that begin.

Loggers ``Log`` (to 3.0), ``UnifiedLog`` (3.1 and later, in the storage module since 4.0), ``LocalLog``, ``LogLoader``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.typed import TP, log_dir, logged, typed
from pipelines.grammars.values import OFFSET, PARTITION, i64, offset_of, optional_i64

#: Records: as a buffer since 2.0 (a message format of its own), as a list of messages before.
_RECORDS = (
    r"(?:MemoryRecords\(size=(?P<size_bytes>\d+), buffer=[\w.]+\[pos=\d+ lim=\d+ "
    r"cap=\d+\]\)|\[.*\]|ByteBufferMessageSet\(.*\))"
)


def _after(group: str) -> Callable[[re.Match[str], Context], int]:
    """Read an end offset: one more than the offset that the line names."""
    return lambda match, _: i64(match[group]) + 1


def _first(match: re.Match[str], context: Context) -> int | None:
    """The first offset, as metadata or as a number."""
    return optional_i64(match[2] or match[3])


_append = partial(typed, "appends", source="log", log_dir=log_dir)
_no_effect = typed(
    "truncations", log_dir=log_dir, source="no_effect", previous_end_offset=_after("previous_end_offset")
)
_log = partial(Template, loggers=("Log", "UnifiedLog", "MergedLog", "LocalLog", "LogLoader"))

TEMPLATES = (
    _log(
        "log.high_watermark_set",
        rf"Setting high watermark {offset_of('high_watermark')}",
        "Log.updateHighWatermarkMetadata, 2.4 and later; TRACE",
        typed("high_watermarks", log_dir=log_dir, source="set"),
    ),
    _log(
        "log.high_watermark_non_monotonic",
        rf"Non-monotonic update of high watermark from {offset_of('previous_high_watermark')} to "
        rf"{offset_of('high_watermark')}",
        "Log.updateHighWatermarkMetadata, 2.7 and later; WARN",
        typed("high_watermarks", log_dir=log_dir, source="non_monotonic"),
    ),
    _log(
        "log.appended",
        r"Appended message set with last offset: (?P<last_offset>-?\d+), first offset: "
        rf"(?:(?:Some\(|Optional\[)?(?:{OFFSET}|(-?\d+))[)\]]?|None|Optional\.empty), next offset: -?\d+, and "
        rf"messages: {_RECORDS}",
        "Log.append, 2.0 and later; TRACE",
        _append(first_offset=_first),
    ),
    _log(
        "log.appended",
        rf"Appended message set to log {TP} (?:with (?:last offset [-\d]+ )?first offset:?|with last offset -?\d+ "
        r"first offset:?) (?P<first_offset>-?\d+),? next offset: (?P<last_offset>-?\d+),? (?:and )?messages: "
        rf"{_RECORDS}",
        "Log.append, up to 1.1; TRACE",
        _append(last_offset=lambda match, _: i64(match["last_offset"]) - 1),
    ),
    _log(
        "log.below_high_watermark",
        rf"Truncating {TP} to offset (?P<offset>-?\d+) below high watermark (?P<high_watermark>-?\d+)",
        "UnifiedLog.truncateTo, 4.x, before it truncates; ReplicaFetcherThread.truncate had it until then",
        typed("truncations", log_dir=log_dir, source="below_high_watermark"),
    ),
    _log(
        "log.truncated",
        r"Truncating to offset (?P<offset>-?\d+)",
        "Log.truncateTo, 1.1 and later",
        typed("truncations", log_dir=log_dir, source="log"),
    ),
    _log(
        "log.truncated",
        rf"Truncating log {TP} to offset (?P<offset>-?\d+)\.?",
        "Log.truncateTo, up to 1.0",
        typed("truncations", log_dir=log_dir, source="log"),
    ),
    _log(
        "log.truncation_no_effect",
        r"Truncating to (?P<offset>-?\d+) has no effect as the largest offset in the log is "
        r"(?P<previous_end_offset>-?\d+)\.?",
        "Log.truncateTo, 0.11 and later",
        _no_effect,
    ),
    _log(
        "log.truncation_no_effect",
        rf"Truncating {TP} to (?P<offset>-?\d+) has no effect as the largest offset in the log is "
        r"(?P<previous_end_offset>-?\d+)\.",
        "Log.truncateTo, 0.11 and 1.0",
        _no_effect,
    ),
    _log(
        "log.truncated_fully",
        rf"Truncate and start (?:log {PARTITION} )?at offset (?P<offset>-?\d+)(?:, logStartOffset: -?\d+)?",
        "Log.truncateFullyAndStartAt; DEBUG",
        typed("truncations", log_dir=log_dir, source="log", reason="full", detail=logged),
    ),
    _log(
        "log.corruption",
        r"Corruption found in segment -?\d+, truncating to offset (?P<offset>-?\d+)",
        "LogLoader.recoverLog",
        # recovery drops the rest of a segment that it finds corrupt
        typed("truncations", log_dir=log_dir, source="log", reason="corruption", detail=logged),
    ),
    _log(
        "log.rolled",
        r"Rolled new log segment at offset (?P<base_offset>\d+) in (?P<duration_ms>\d+) ms\.",
        "Log.roll, 1.0 and later; LocalLog.roll since 3.1",
        typed("segment_rolls", log_dir=log_dir),
    ),
    _log(
        "log.rolled",
        rf"Rolled new log segment for '{TP}' in (?P<duration_ms>\d+) ms\.",
        "Log.roll, up to 0.11",
        typed("segment_rolls", log_dir=log_dir),
    ),
)
