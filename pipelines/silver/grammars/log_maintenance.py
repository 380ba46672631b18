"""Grammar of the log layer's housekeeping: segments, indexes, producer state, retention. Nothing for the audit."""

from __future__ import annotations

from pipelines.silver.grammar import Template
from pipelines.silver.values import PARTITION

_LOG = ("Log", "UnifiedLog", "MergedLog", "LocalLog", "LogLoader")

TEMPLATES = (
    Template(
        "log.producer_state_loading",
        _LOG,
        rf"Loading producer state (?:from|till) offset -?\d+ (?:for partition {PARTITION} )?(?:with message format "
        r"version \d+)?",
        "Log.rebuildProducerState",
    ),
    Template(
        "log.producer_state_loading",
        _LOG,
        r"Loading producer state till offset -?\d+",
        "UnifiedLog.rebuildProducerState, 4.x",
    ),
    Template(
        "log.producer_state_reloading",
        _LOG,
        r"Reloading from producer snapshot and rebuilding producer state from offset -?\d+",
        "UnifiedLog.rebuildProducerState, 3.0 and later",
    ),
    Template(
        "log.producer_state_recovered",
        _LOG,
        r"Producer state recovery took -?\d+ms for snapshot load and -?\d+ms for segment recovery from offset -?\d+",
        "UnifiedLog.rebuildProducerState, 3.0 and later",
    ),
    Template(
        "log.segment_recovering",
        _LOG,
        rf"Recovering unflushed segment -?\d+(?:\. \d+(?:/\d+)? recovered for {PARTITION}\.| in log {PARTITION}\.)?",
        "LogLoader.recoverLog",
    ),
    Template(
        "log.rolling",
        _LOG,
        r"(?:Rolling new log segment .*|Trying to roll a new log segment .*|Newly rolled segment file .*|Rolling the "
        r"active segment to make it eligible for deletion)",
        "UnifiedLog.maybeRoll / LocalLog.roll",
    ),
    Template(
        "log.start_offset",
        _LOG,
        r"(?:Incremented (?:local )?log start offset to|Incrementing log start offset (?:of partition \S+ )?to) "
        r"-?\d+.*",
        "UnifiedLog.maybeIncrementLogStartOffset: retention and record deletion",
    ),
    Template(
        "log.segments_deleted",
        _LOG,
        r"(?:Deleting segments? .*|Scheduling (?:segments|log segment) .*|Found deletable segments .*|Empty active "
        r"segment at .* was deleted and recreated due to .*)",
        "UnifiedLog.deleteSegments, SegmentDeletionReason.logReason",
    ),
    Template(
        "log.all_segments_deleted",
        _LOG,
        r"Deleting all segments because logEndOffset .*",
        "LogLoader.load: segments were removed from the file system",
    ),
    Template("log.flushed", _LOG, r"Flushing log .*", "UnifiedLog.flush; DEBUG"),
    Template("log.read", _LOG, r"Reading (?:maximum )?-?\d+ bytes (?:from|at) offset -?\d+ .*", "LocalLog.read; TRACE"),
    Template(
        "log.first_unstable_offset",
        _LOG,
        r"First unstable offset updated to .*",
        "UnifiedLog.maybeIncrementFirstUnstableOffset; DEBUG: open transactions, which the replay does not need",
    ),
    Template(
        "log.offset_search",
        _LOG,
        r"(?:Searching (?:the earliest or latest )?offset (?:for|by) timestamp .*|Offset time array = .*)",
        "UnifiedLog.fetchOffsetByTimestamp; DEBUG",
    ),
    Template(
        "log.loaded",
        _LOG,
        rf"Completed load of log {PARTITION} with log end offset -?\d+",
        "Log.loadSegments, up to 0.10",
    ),
    Template("log.closing", _LOG, rf"Closing (?:log|handlers|quietly)(?: {PARTITION})?", "UnifiedLog.close; DEBUG"),
    Template(
        "log.retention_check",
        _LOG,
        r".* (?:retentionMs|retentionSize|logStartOffset) breached: .*",
        "UnifiedLog.deleteOldSegments, 4.0 and later; DEBUG",
    ),
    Template(
        "log.repaired",
        _LOG,
        r"(?:Found (?:log file|file) .* from interrupted swap operation.*|Found an orphaned index file .*|Found a "
        r"corrupted index file.*|Could not find (?:offset )?index file .*|Found invalid offset during recovery\. "
        r".*|Caught segment overflow error: .*|Splitting overflowed segment .*|Replacing overflowed segment "
        r".*|Recovering file .* by renaming from .*|Deleting (?:index files|stray|invalid swap file|non-empty leader "
        r"epoch cache) .*|Clearing leader epoch cache after .*|Record format version has been downgraded .*|Error "
        r"while trying to delete partition metadata file .*|The topic id .* will not be persisted .*|Unable to update "
        r"the highest offset in remote storage .*|Ignoring the call as the remote log storage is disabled)",
        "LogLoader, UnifiedLog: repairs at start",
    ),
    Template(
        "log.producer_snapshot",
        ("ProducerStateManager",),
        r"(?:Writing|Wrote) producer snapshot (?:file .* )?(?:at offset|for partition) .*",
        "ProducerStateManager.takeSnapshot",
    ),
    Template(
        "log.producer_snapshot_loading",
        ("ProducerStateManager",),
        r"(?:Loading producer state from snapshot file .*|Reloading the producer state snapshots|Failed to load "
        r"producer snapshot from .*)",
        "ProducerStateManager.loadFromSnapshot",
    ),
    Template(
        "log.producer_state",
        ("ProducerStateManager",),
        r"(?:Updated producer .* state to .*|Failed to (?:rename|delete) producer state snapshot .*|Deleted producer "
        r"state snapshot .*|Detected invalid coordinator epoch .*|Producer's? epoch .*)",
        "ProducerStateManager",
    ),
    Template(
        "log.producer_snapshot_file",
        ("SnapshotFile",),
        r"(?:Deleted|Failed to delete|Failed to rename) producer state snapshot .*",
        "SnapshotFile.deleteIfExists / renameTo",
    ),
    Template(
        "log.segment",
        ("LogSegment",),
        r"(?:Inserting \d+ bytes at .*|Appended \d+ to .*|Writing aborted transaction .*|Found invalid messages in "
        r"log segment .*|Truncated \d+ invalid bytes at the end of segment .*|(?:Failed to delete|Deleted|Fallback to "
        r"delete) .*)",
        "LogSegment",
    ),
    Template(
        "log.index",
        ("OffsetIndex", "TimeIndex", "TransactionIndex", "AbstractIndex", "LazyIndex", "RemoteIndexCache"),
        r"(?:Loaded index file .*|Resized .*|Adding index entry .*|Index .* was not resized .*|Truncated index "
        r".*|Deleting index .*|Error (?:when|unmapping) .*)",
        "AbstractIndex and its subclasses; DEBUG",
    ),
)
