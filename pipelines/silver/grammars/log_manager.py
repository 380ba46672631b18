"""Grammar of ``LogManager``: logs loaded at start, directories that fail. Creation properties are in `configs`."""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.printed import Forms, fields
from pipelines.silver.record import Fact, Record
from pipelines.silver.states import topic_fact
from pipelines.silver.typed import TP, lifecycle_event, typed
from pipelines.silver.values import PARTITION, i64, partition_of, topic_id_of

_MANAGER = ("LogManager",)

#: ``Log.toString``; the topic id since 3.0.
_LOG: Forms = dict.fromkeys(
    ("Log", "UnifiedLog"),
    (
        "dir topic partition highWatermark lastStableOffset logStartOffset logEndOffset",
        "dir topicId topic partition highWatermark lastStableOffset logStartOffset logEndOffset",
    ),
)

#: Directories of logs that are no replica any more, or not yet.
_NO_REPLICA_DIR = re.compile(r".*\.[0-9a-f]{32}-(?:delete|stray|future)", re.ASCII)


def _loaded(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A log's end offset at start.

    The ``highWatermark`` of the line is where a log starts before the checkpoint is read, mostly 0: not kept. A
    directory that ends in -delete, -stray or -future holds no replica of this broker.
    """
    log = fields(match[1], _LOG)
    topic, partition = partition_of(f"{log['topic']}-{log['partition']}")
    topic_id = topic_id_of(log.get("topicId"))
    facts = topic_fact(topic, topic_id)
    folder = log["dir"].rpartition("/")[2]
    if _NO_REPLICA_DIR.fullmatch(folder) is None:
        if folder != f"{topic}-{partition}":
            raise ValueError(f"not the folder of {topic}-{partition}: {log['dir'][:80]}")
        row = {"topic": topic, "partition": partition, "source": "loaded", "log_end_offset": i64(log["logEndOffset"])}
        return Fact("high_watermarks", row), *facts
    return facts


_loading = lifecycle_event("log_loading")

TEMPLATES = (
    Template(
        "log.loaded",
        _MANAGER,
        r"Completed load of ((?:Unified)?Log\(.*\)) with \d+ segments(?:, local-log-start-offset -?\d+ and "
        r"log-end-offset -?\d+)? in \d+ms \(\d+/\d+ (?:loaded|completed) in .*\)",
        "LogManager.loadLogs, 2.6 and later; topic id since 3.0",
        _loaded,
    ),
    Template(
        "log.loaded",
        ("Log",),
        rf"Completed load of log (?:{TP} )?with \d+ (?:log )?segments,?(?: log start offset -?\d+)? and log end "
        r"offset (?P<log_end_offset>-?\d+) in \d+ ms",
        "Log.loadSegments, up to 2.5",
        typed("high_watermarks", source="loaded"),
    ),
    Template(
        "log.remains_loaded",
        ("Log",),
        rf"Completed load of log {PARTITION}\.[0-9a-f]{{32}}-delete with \d+ log segments and log end offset -?\d+ in "
        r"\d+ ms",
        "Log.loadSegments, 0.10.2 to 1.0, of a folder whose replica was deleted before the broker restarted: nobody's",
    ),
    Template("log.loading", _MANAGER, r"Loading logs(?: from log dirs .*)?\.?", "LogManager.loadLogs", _loading),
    Template(
        "log.loading",
        _MANAGER,
        r"(?:Loaded \d+ logs in \d+ms(?: \(unclean log dirs = .*\))?\.?|Logs loading complete(?: in \d+ ms)?\.)",
        "LogManager.loadLogs",
        _loading,
    ),
    Template(
        "log.cleaner_deprecated",
        _MANAGER,
        r"The config `log\.cleaner\.enable` is deprecated .*",
        "LogManager, 4.1 and later",
    ),
    Template(
        "log.recovery",
        _MANAGER,
        r"(?:Attempting recovery for all logs in .* since no clean shutdown file was found|Recovering \d+ logs from "
        r".* since no clean shutdown file was found|Skipping recovery (?:for all logs in|of \d+ logs from) .* since "
        r"clean shutdown file was found|Found clean shutdown file\. Skipping recovery for all logs in data directory: "
        r".*|No logs found to be loaded in .*)",
        "LogManager.loadLogs",
        _loading,
    ),
    Template(
        "log.directory_stopped",
        _MANAGER,
        r"(?:Stopping serving logs in dir .*|Logs for partitions .* are offline and logs for future partitions .*)",
        "LogManager.handleLogDirFailure",
        lifecycle_event("log_dir_failure"),
    ),
    Template(
        "log.no_directory_left",
        _MANAGER,
        r"Shutdown broker because (?:all log dirs in .* have failed|none of the specified log dirs from .*)",
        "LogManager.handleLogDirFailure / createAndValidateLogDirs; FATAL",
        lifecycle_event("fatal"),
    ),
    Template(
        "log.renamed",
        _MANAGER,
        rf"Log for partition {TP} is renamed to .* and is scheduled for deletion",
        "LogManager.asyncDelete, 0.10.2 and later; also for a move between directories that was given up (1.1)",
        # gone from this broker: its topic was deleted, or the partition was moved away
        typed("leader_and_isr", role="stopped"),
    ),
    Template(
        "log.marked_stray",
        _MANAGER,
        rf"Log for partition {PARTITION} is marked as stray and renamed to .*",
        "LogManager.asyncDelete, 3.7 and later",
    ),
    Template("log.deleted", _MANAGER, rf"Deleted log for partition {PARTITION} in .*\.", "LogManager.deleteLogs"),
    Template(
        "log.directory_created",
        _MANAGER,
        r"Log directory .* not found, creating it\.",
        "LogManager.createAndValidateLogDirs",
    ),
    Template(
        "log.stray",
        _MANAGER,
        r"(?:Loaded stray log: .*|Log in .* marked stray and renamed to .*|Found stray log dir .*|The topicId does "
        r"not exist in .*, treat it as a stray log)",
        "LogManager.loadLog / isStrayReplica, 3.0 and later",
    ),
    Template(
        "log.abandoned_future",
        _MANAGER,
        r"(?:Attempting to recover|Successfully recovered) abandoned future log for .*",
        "LogManager.recoverAbandonedFutureLogs, 3.7 and later",
    ),
    Template(
        "log.replaced_by_future",
        _MANAGER,
        r"(?:Attempting to replace current log .*|The current replica is successfully replaced with the future "
        r"replica for .*)",
        "LogManager.replaceCurrentWithFutureLog",
    ),
    Template(
        "log.broker_epoch",
        _MANAGER,
        r"(?:Unable to read the broker epoch in .*|Found different broker epochs in .*|No meta\.properties file found "
        r"in .*)",
        "LogManager.loadLogs, 3.7 and later",
    ),
    Template(
        "log.manager_scheduled",
        _MANAGER,
        r"(?:Starting log (?:cleanup with a period|flusher with a default period) of -?\d+ ms\.|Starting the log "
        r"cleaner)",
        "LogManager.startup",
    ),
    Template(
        "log.manager_shutdown",
        _MANAGER,
        r"(?:Shutting down\.|Shutdown complete\.|Flushing and closing logs at .*|Updating (?:recovery points|log "
        r"start offsets) at .*|Writing clean shutdown marker at .*)",
        "LogManager.shutdown",
    ),
    Template(
        "log.manager_housekeeping",
        _MANAGER,
        r"(?:The cleaning for partition .* is aborted.*|Beginning log cleanup\.\.\.|Garbage collecting .*|Log cleanup "
        r"completed\. .*|Checking for dirty logs to flush\.\.\.|Checking if flush is needed on .*|Loading log "
        r".*|(?:Compaction|Cleaning) for partition .* is resumed|Resizing recovery thread pool size "
        r".*|(?:Adding|Removing) log recovery metrics)",
        "LogManager, mostly DEBUG",
    ),
    Template(
        "log.manager_error",
        _MANAGER,
        r"(?:There was an error in one of the threads during .*|Error (?:while|occurred while|flushing) .*|Exception "
        r"(?:while|in) .*|Failed to (?:schedule|create|lock) .*|Resetting the recovery checkpoint to 0|Disk error "
        r"while .*)",
        "LogManager",
    ),
)
