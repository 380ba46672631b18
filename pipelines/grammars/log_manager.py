"""Grammar of ``LogManager``: logs loaded at start, directories that fail. Creation properties are in `configs`."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.printed import Forms, fields
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import topic_fact
from pipelines.grammars.typed import TP, lifecycle_event, typed
from pipelines.grammars.values import PARTITION, i64, partition_of, topic_id_of

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
_manager = partial(Template, loggers=("LogManager",))

TEMPLATES = (
    _manager(
        "log.loaded",
        r"Completed load of ((?:Unified)?Log\(.*\)) with \d+ segments(?:, local-log-start-offset -?\d+ and "
        r"log-end-offset -?\d+)? in \d+ms \(\d+/\d+ (?:loaded|completed) in .*\)",
        "LogManager.loadLogs, 2.6 and later; topic id since 3.0",
        _loaded,
    ),
    Template(
        "log.loaded",
        rf"Completed load of log (?:{TP} )?with (?:\d+ (?:log )?segments,?(?: log start offset -?\d+)? and )?log end "
        r"offset (?P<log_end_offset>-?\d+)(?: in \d+ ms)?",
        "Log.loadSegments, up to 2.5; segments since 0.10.2",
        typed("high_watermarks", source="loaded"),
        loggers=("Log",),
    ),
    Template(
        "log.remains_loaded",
        rf"Completed load of log {PARTITION}\.[0-9a-f]{{32}}-delete with \d+ log segments and log end offset -?\d+ in "
        r"\d+ ms",
        "Log.loadSegments, 0.10.2 to 1.0, of a folder whose replica was deleted before the broker restarted: nobody's",
        loggers=("Log",),
    ),
    _manager("log.loading", r"Loading logs(?: from log dirs .*)?\.?", "LogManager.loadLogs", _loading),
    _manager(
        "log.loading",
        r"(?:Loaded \d+ logs in \d+ms(?: \(unclean log dirs = .*\))?\.?|Logs loading complete(?: in \d+ ms)?\.)",
        "LogManager.loadLogs",
        _loading,
    ),
    _manager(
        "log.cleaner_deprecated",
        r"The config `log\.cleaner\.enable` is deprecated .*",
        "LogManager, 4.1 and later",
    ),
    _manager(
        "log.recovery",
        r"(?:Attempting recovery for all logs in .* since no clean shutdown file was found|Recovering \d+ logs from "
        r".* since no clean shutdown file was found|Skipping recovery (?:for all logs in|of \d+ logs from) .* since "
        r"clean shutdown file was found|Found clean shutdown file\. Skipping recovery for all logs in data directory: "
        r".*|No logs found to be loaded in .*)",
        "LogManager.loadLogs",
        _loading,
    ),
    _manager(
        "log.directory_stopped",
        r"(?:Stopping serving logs in dir .*|Logs for partitions .* are offline and logs for future partitions .*)",
        "LogManager.handleLogDirFailure",
        lifecycle_event("log_dir_failure"),
    ),
    _manager(
        "log.no_directory_left",
        r"Shutdown broker because (?:all log dirs in .* have failed|none of the specified log dirs from .*)",
        "LogManager.handleLogDirFailure / createAndValidateLogDirs; FATAL",
        lifecycle_event("fatal"),
    ),
    _manager(
        "log.renamed",
        rf"Log for partition {TP} is renamed to .* and is scheduled for deletion",
        "LogManager.asyncDelete, 0.10.2 and later; also for a move between directories that was given up (1.1)",
        # gone from this broker: its topic was deleted, or the partition was moved away
        typed("leader_and_isr", role="stopped"),
    ),
    _manager(
        "log.marked_stray",
        rf"Log for partition {PARTITION} is marked as stray and renamed to .*",
        "LogManager.asyncDelete, 3.7 and later",
    ),
    _manager("log.deleted", rf"Deleted log for partition {PARTITION} in .*\.", "LogManager.deleteLogs"),
    _manager(
        "log.directory_created",
        r"Log directory .* not found, creating it\.",
        "LogManager.createAndValidateLogDirs",
    ),
    _manager(
        "log.stray",
        r"(?:Loaded stray log: .*|Log in .* marked stray and renamed to .*|Found stray log dir .*|The topicId does "
        r"not exist in .*, treat it as a stray log)",
        "LogManager.loadLog / isStrayReplica, 3.0 and later",
    ),
    _manager(
        "log.abandoned_future",
        r"(?:Attempting to recover|Successfully recovered) abandoned future log for .*",
        "LogManager.recoverAbandonedFutureLogs, 3.7 and later",
    ),
    _manager(
        "log.replaced_by_future",
        r"(?:Attempting to replace current log .*|The current replica is successfully replaced with the future "
        r"replica for .*)",
        "LogManager.replaceCurrentWithFutureLog",
    ),
    _manager(
        "log.broker_epoch",
        r"(?:Unable to read the broker epoch in .*|Found different broker epochs in .*|No meta\.properties file found "
        r"in .*)",
        "LogManager.loadLogs, 3.7 and later",
    ),
    _manager(
        "log.manager_scheduled",
        r"(?:Starting log (?:cleanup with a period|flusher with a default period) of -?\d+ ms\.|Starting the log "
        r"cleaner)",
        "LogManager.startup",
    ),
    _manager(
        "log.manager_shutdown",
        r"(?:Shutting down\.|Shutdown complete\.|Flushing and closing logs at .*|Updating (?:recovery points|log "
        r"start offsets) at .*|Writing clean shutdown marker at .*)",
        "LogManager.shutdown",
    ),
    _manager(
        "log.manager_housekeeping",
        r"(?:The cleaning for partition .* is aborted.*|Beginning log cleanup\.\.\.|Garbage collecting .*|Log cleanup "
        r"completed\. .*|Checking for dirty logs to flush\.\.\.|Checking if flush is needed on .*|Loading log "
        r".*|(?:Compaction|Cleaning) for partition .* is resumed|Resizing recovery thread pool size "
        r".*|(?:Adding|Removing) log recovery metrics)",
        "LogManager, mostly DEBUG",
    ),
    _manager(
        "log.manager_error",
        r"(?:There was an error in one of the threads during .*|Error (?:while|occurred while|flushing) .*|Exception "
        r"(?:while|in) .*|Failed to (?:schedule|create|lock) .*|Resetting the recovery checkpoint to 0|Disk error "
        r"while .*)",
        "LogManager",
    ),
)
