"""``highwater maintain``: compact small files, remove what no version in use needs."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from jobs.executors import meet_executors
from jobs.exit_codes import ExitCode
from jobs.lake_upkeep import compact, remember_removed, vacuum
from jobs.lakes import tables_in
from pipelines.config import Config
from pipelines.console import Console
from pipelines.delta_log import read_log
from pipelines.errors import ConfigError
from pipelines.lake import Lake
from pipelines.lake_writer import Writer, writer_of
from pipelines.maintenance import (
    RETENTION_HOURS_MAX,
    RETENTION_HOURS_MIN,
    SMALL_BYTES,
    Upkeep,
    data_files,
    examine,
)
from pipelines.report.plain import byte_size
from pipelines.session import build_session, lock_in_jvm
from pipelines.spark_jobs import step
from pipelines.storage.place import Place
from pipelines.storage.store import store_of

_OPTION = "--retention-hours"


def maintain(
    config: Config, console: Console, root: Place, retention_hours: int, force: bool, dry_run: bool
) -> ExitCode:
    """Look after every table of the lake. Spark is started only if a table needs it.

    Args:
        force: allow a retention so short that it takes files from who is reading.

    Raises:
        ConfigError: the retention is too short, or longer than Delta keeps a log.
        InputError: there is no lake.
    """
    if retention_hours > RETENTION_HOURS_MAX:
        raise ConfigError(
            "command line", _OPTION, f"is more than {RETENTION_HOURS_MAX}: Delta's logs go back no further"
        )
    if retention_hours < RETENTION_HOURS_MIN and not force:
        raise ConfigError(
            "command line",
            _OPTION,
            f"is less than {RETENTION_HOURS_MIN}, which takes files from who reads or writes meanwhile; "
            "with --force if nobody does",
        )
    paths = tables_in(root)
    due = _due(paths, retention_hours)
    if not due:
        console.note(f"  nothing to do: {len(paths)} tables are in order")
        return ExitCode.CLEAN
    if dry_run:
        console.table(("table", "files", f"below {byte_size(SMALL_BYTES)}", "compact", "remove", "size"), _planned(due))
        return ExitCode.CLEAN
    with writer_of(root, "maintain", config.session, console.note) as writer:
        # What was due may have been looked after while this run waited.
        rows = _upkept(config, console, root, _due(paths, retention_hours), retention_hours, writer)
    console.table(("table", "files before", "after", "removed", "freed"), rows)
    return ExitCode.CLEAN


def _due(paths: Mapping[str, Place], retention_hours: int) -> list[Upkeep]:
    examined = (_examined(name, path, retention_hours) for name, path in paths.items())
    return [table for table in examined if table.is_due]


def _examined(name: str, path: Place, retention_hours: int) -> Upkeep:
    return examine(name, path, retention_hours, time.time_ns() // 1_000_000)


def _planned(due: Sequence[Upkeep]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for table in due:
        removed = (*table.unneeded, *table.leftovers)
        size = sum(store_of(file).size_bytes(file) for file in removed)
        compact = "yes" if table.compact else "no"
        rows.append((table.full_name, len(table.log.files), table.small_files, compact, len(removed), byte_size(size)))
    return rows


def _upkept(
    config: Config,
    console: Console,
    root: Place,
    due: Sequence[Upkeep],
    retention_hours: int,
    writer: Writer,
) -> list[tuple[object, ...]]:
    if not any(table.needs_spark for table in due):
        return [_tidied(None, table, retention_hours) for table in due]
    with console.stage("start Spark"), _jvm_prints_to_stderr():
        spark = build_session(config, "highwater maintain", place=root)
    try:
        rows = []
        with lock_in_jvm(spark, writer.jvm_lock):
            meet_executors(console, spark, root, writes=True)
            for table in due:
                with console.stage(table.full_name), step(spark, table.full_name):
                    rows.append(_tidied(Lake(spark, root, writer.fence), table, retention_hours))
        return rows
    finally:
        spark.stop()


@contextmanager
def _jvm_prints_to_stderr() -> Iterator[None]:
    """Delta's VACUUM prints; stdout is for results. A JVM keeps the streams with which it was started."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def _tidied(lake: Lake | None, table: Upkeep, retention_hours: int) -> tuple[object, ...]:
    """Do what one table needs; gives its row of the answer."""
    before = data_files(table.path)
    if lake is not None:
        if table.lengthen:
            remember_removed(lake, table.path, retention_hours)
        if table.compact:
            compact(lake, table.path)
        # With a retention of nothing, what compaction replaced can go at once.
        unneeded = table.unneeded
        if table.compact:
            unneeded = _examined(table.full_name, table.path, retention_hours).unneeded
        if unneeded:
            vacuum(lake, table.path, retention_hours, unneeded)
    gone = before.keys() - data_files(table.path).keys()
    freed = sum(before[file] for file in gone)
    for file in table.leftovers:
        # Another process may have had the same idea.
        store = store_of(file)
        freed += store.size_bytes(file) if store.is_file(file) else 0
        store.remove(file)
    after = len(read_log(table.path).files)
    return table.full_name, len(table.log.files), after, len(gone) + len(table.leftovers), byte_size(freed)
