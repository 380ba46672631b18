"""Grammar of the log cleaner (log-cleaner.log up to 3.x, server.log in 4.x).

Compaction removes records that newer ones replace; it moves no offset that the audit looks at.
"""

from __future__ import annotations

from functools import partial

from pipelines.grammars.grammar import Template

_cleaner = partial(Template, loggers=("LogCleaner", "LogCleaner$CleanerThread", "Cleaner", "CleanerThread"))

TEMPLATES = (
    _cleaner("log_cleaner.started", r"Starting the log cleaner", "LogCleaner.startup"),
    _cleaner("log_cleaner.stopped", r"Shutting down the log cleaner\.", "LogCleaner.shutdown"),
    _cleaner(
        "log_cleaner.statistics",
        r"",
        "LogCleaner.CleanerThread.recordStats: the text begins with a line break, so the first line is empty",
    ),
    _cleaner(
        "log_cleaner.statistics",
        r"(?:Log cleaner thread \d+ cleaned log .*|Cleanable partitions: \d+, .*|Found \d+ invalid messages during "
        r"compaction\.|\s+.*)",
        "LogCleaner.CleanerThread.recordStats",
    ),
    _cleaner(
        "log_cleaner.cleaning",
        r"(?:Cleaner \d+: )?(?:Beginning cleaning of log .*|Building offset map for .*|Offset map for log .* "
        r"complete\.|Offset map is full, .*|Cleaning .*|Swapping in cleaned segment .*|Caught segment overflow error "
        r"during cleaning: .*|Growing cleaner I/O buffers .*)",
        "Cleaner.doClean",
    ),
    _cleaner(
        "log_cleaner.configuration",
        r"(?:Invalid value for `log\.cleaner\.threads`: .*|Updating logCleanerIoMaxBytesPerSecond: .*|Cannot use more "
        r"than 2G of cleaner buffer space .*)",
        "LogCleaner",
    ),
    _cleaner(
        "log_cleaner.error",
        r"(?:Unexpected exception thrown when cleaning log .*|Error due to.*|Stopping cleaning logs in dir .*)",
        "LogCleaner.CleanerThread: a partition becomes uncleanable",
    ),
    Template(
        "log_cleaner.manager",
        r"(?:The cleaning for partition .* is aborted(?: and paused)?|(?:Compaction|Cleaning) for partition .* is "
        r"resumed|Resetting first dirty offset .*|The last checkpoint dirty offset for partition .*|Failed to access "
        r"checkpoint file .*|Stopping cleaning logs in dir .*|Checking if log segment may be cleaned: .*|Finding "
        r"range of cleanable offsets .*|(?:Removing|Adding) the partition offset data .*)",
        "LogCleanerManager",
        loggers=("LogCleanerManager", "LogCleaner"),
    ),
)
