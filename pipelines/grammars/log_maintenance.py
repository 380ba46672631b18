"""Grammar of the log layer's housekeeping: segments, indexes, producer state, retention. Nothing for the audit."""

from __future__ import annotations

from functools import partial

from pipelines.grammars.grammar import Template
from pipelines.grammars.values import PARTITION

_log = partial(Template, loggers=("Log", "UnifiedLog", "MergedLog", "LocalLog", "LogLoader"))
_producer_state = partial(Template, loggers=("ProducerStateManager",))

TEMPLATES = (
    _log(
        "log.producer_state_loading",
        rf"Loading producer state (?:from|till) offset -?\d+ (?:for partition {PARTITION} )?(?:with message format "
        r"version \d+)?",
        "Log.rebuildProducerState",
    ),
    _log(
        "log.producer_state_loading",
        r"Loading producer state till offset -?\d+",
        "UnifiedLog.rebuildProducerState, 4.x",
    ),
    _log(
        "log.producer_state_reloading",
        r"Reloading from producer snapshot and rebuilding producer state from offset -?\d+",
        "UnifiedLog.rebuildProducerState, 3.0 and later",
    ),
    _log(
        "log.producer_state_recovered",
        r"Producer state recovery took -?\d+ms for snapshot load and -?\d+ms for segment recovery from offset -?\d+",
        "UnifiedLog.rebuildProducerState, 3.0 and later",
    ),
    _log(
        "log.segment_recovering",
        rf"Recovering unflushed segment -?\d+(?:\. \d+(?:/\d+)? recovered for {PARTITION}\.| in log {PARTITION}\.)?",
        "LogLoader.recoverLog",
    ),
    _log(
        "log.rolling",
        r"(?:Rolling new log segment .*|Trying to roll a new log segment .*|Newly rolled segment file .*|Rolling the "
        r"active segment to make it eligible for deletion)",
        "UnifiedLog.maybeRoll / LocalLog.roll",
    ),
    _log(
        "log.start_offset",
        r"Incrementing log start offset (?:of partition \S+ )?to -?\d+.*",
        "Log.maybeIncrementLogStartOffset, up to 2.7: retention and record deletion",
    ),
    _log(
        "log.segments_deleted",
        r"(?:Deleting segments? .*|Scheduling (?:segments|log segment) .*|Found deletable segments .*|Empty active "
        r"segment at .* was deleted and recreated due to .*)",
        "UnifiedLog.deleteSegments, SegmentDeletionReason.logReason",
    ),
    _log(
        "log.all_segments_deleted",
        r"Deleting all segments because logEndOffset .*",
        "LogLoader.load: segments were removed from the file system",
    ),
    _log("log.flushed", r"Flushing log .*", "UnifiedLog.flush; DEBUG"),
    _log("log.read", r"Reading (?:maximum )?-?\d+ bytes (?:from|at) offset -?\d+ .*", "LocalLog.read; TRACE"),
    _log(
        "log.first_unstable_offset",
        r"First unstable offset updated to .*",
        "UnifiedLog.maybeIncrementFirstUnstableOffset; DEBUG: open transactions, which the replay does not need",
    ),
    _log(
        "log.offset_search",
        r"(?:Searching (?:the earliest or latest )?offset (?:for|by) timestamp .*|Offset time array = .*)",
        "UnifiedLog.fetchOffsetByTimestamp; DEBUG",
    ),
    _log("log.closing", rf"Closing (?:log|handlers|quietly)(?: {PARTITION})?", "UnifiedLog.close; DEBUG"),
    _log(
        "log.retention_check",
        r".* (?:retentionMs|retentionSize|logStartOffset) breached: .*",
        "UnifiedLog.deleteOldSegments, 4.0 and later; DEBUG",
    ),
    _log(
        "log.repaired",
        r"(?:Found (?:log file|file) .* from interrupted swap operation.*|Found an orphaned index file .*|Found a "
        r"corrupted index file.*|Could not find (?:offset )?index file .*|Found invalid offset during recovery\. "
        r".*|Caught segment overflow error: .*|Splitting overflowed segment .*|Replacing overflowed segment "
        r".*|Recovering file .* by renaming from .*|Deleting (?:index files|stray|invalid swap file|non-empty leader "
        r"epoch cache) .*|Clearing leader epoch cache after .*|Record format version has been downgraded .*|Error "
        r"while trying to delete partition metadata file .*|The topic id .* will not be persisted .*|Unable to update "
        r"the highest offset in remote storage .*|Ignoring the call as the remote log storage is disabled)",
        "LogLoader, UnifiedLog: repairs at start",
    ),
    _producer_state(
        "log.producer_snapshot",
        r"(?:Writing|Wrote) producer snapshot (?:file .* )?(?:at offset|for partition) .*",
        "ProducerStateManager.takeSnapshot",
    ),
    _producer_state(
        "log.producer_snapshot_loading",
        r"(?:Loading producer state from snapshot file .*|Reloading the producer state snapshots|Failed to load "
        r"producer snapshot from .*)",
        "ProducerStateManager.loadFromSnapshot",
    ),
    _producer_state(
        "log.producer_state",
        r"(?:Updated producer .* state to .*|Failed to (?:rename|delete) producer state snapshot .*|Deleted producer "
        r"state snapshot .*|Detected invalid coordinator epoch .*|Producer's? epoch .*)",
        "ProducerStateManager",
    ),
    Template(
        "log.producer_snapshot_file",
        r"(?:Deleted|Failed to delete|Failed to rename) producer state snapshot .*",
        "SnapshotFile.deleteIfExists / renameTo",
        loggers=("SnapshotFile",),
    ),
    Template(
        "log.segment",
        r"(?:Inserting \d+ bytes at .*|Appended \d+ to .*|Writing aborted transaction .*|Found invalid messages in "
        r"log segment .*|Truncated \d+ invalid bytes at the end of segment .*|(?:Failed to delete|Deleted|Fallback to "
        r"delete) .*)",
        "LogSegment",
        loggers=("LogSegment",),
    ),
    Template(
        "log.index",
        r"(?:Loaded index file .*|Resized .*|Adding index entry .*|Index .* was not resized .*|Truncated index "
        r".*|Deleting index .*|Error (?:when|unmapping) .*)",
        "AbstractIndex and its subclasses; DEBUG",
        loggers=("OffsetIndex", "TimeIndex", "TransactionIndex", "AbstractIndex", "LazyIndex", "RemoteIndexCache"),
    ),
)
