"""``highwater maintain``: compact small files, remove files that no version in use needs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.lakes import list_tables
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import ConfigError, InputError
from highwater.pipelines.base.plain import byte_size
from highwater.pipelines.lake.contents import find_tables, list_contents, refuse_odd_place, require_own
from highwater.pipelines.lake.delta_commits import Fence, compact, remember_removed
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.tables import require_declared
from highwater.pipelines.lake.writer import hold_lake
from highwater.pipelines.storage.place import Place, resolved
from highwater.pipelines.storage.store import store_of
from highwater.pipelines.upkeep.maintenance import (
    RETENTION_HOURS_MAX,
    RETENTION_HOURS_MIN,
    SMALL_BYTES,
    Upkeep,
    examine,
)
from highwater.schemas.catalog import BY_FULL_NAME

_OPTION = "--retention-hours"


def maintain(
    config: Config, console: Console, root: Place, retention_hours: int, force: bool, dry_run: bool
) -> ExitCode:
    """Maintain every table of the lake, without Spark.

    Args:
        retention_hours: age from which unused files are removed.
        force: allow a retention that may remove files which readers still use.
        dry_run: print the work and change nothing.

    Returns:
        USAGE if a table was refused. The other tables are maintained.

    Raises:
        ConfigError: the retention is too short, or longer than Delta keeps a log.
        InputError: the lake does not exist, or another program made it.
    """
    if retention_hours > RETENTION_HOURS_MAX:
        raise ConfigError(
            "command line", _OPTION, f"is more than {RETENTION_HOURS_MAX}; give less: Delta's logs go back no further"
        )
    if retention_hours < RETENTION_HOURS_MIN and not force:
        raise ConfigError(
            "command line",
            _OPTION,
            f"is less than {RETENTION_HOURS_MIN}, which takes files from running readers and writers; "
            "use --force if there are none",
        )
    root = resolved(root)
    list_tables(root)
    require_own(root)
    paths, refused = list_maintained(root)
    for problem in refused:
        console.warn(f"left alone: {problem}")
    code = ExitCode.USAGE if refused else ExitCode.CLEAN
    due = _select_due(paths, retention_hours)
    if not due:
        console.note(f"  nothing to do: {len(paths)} tables are in order")
        return code
    if dry_run:
        console.table(
            ("table", "files", f"below {byte_size(SMALL_BYTES)}", "compact", "remove", "size"), _plan_rows(due)
        )
        if not retention_hours and any(table.compact for table in due):
            console.note("  what compaction replaces is removed, too")
        return code
    with hold_lake(root, "maintain", config.session, console.note) as fence:
        # What was due may have been looked after while this run waited.
        rows = []
        for table in _select_due(paths, retention_hours):
            with console.stage(table.full_name):
                rows.append(_clear_table(table, retention_hours, fence))
    console.table(("table", "files before", "after", "removed", "freed"), rows)
    return code


def list_maintained(root: Place) -> tuple[dict[str, Place], list[InputError]]:
    """Return (tables to maintain by full name, reasons why other tables are skipped)."""
    refused: list[InputError] = [refuse_odd_place(root, *odd) for odd in list_contents(root).odd.items()]
    paths = {}
    for name, path in find_tables(root).items():
        try:
            require_declared(path, BY_FULL_NAME[name])
            paths[name] = path
        except InputError as problem:
            refused.append(problem)
    return paths, refused


def _select_due(paths: Mapping[str, Place], retention_hours: int) -> list[Upkeep]:
    examined = (_examine_table(name, path, retention_hours) for name, path in paths.items())
    return [table for table in examined if table.is_due]


def _examine_table(name: str, path: Place, retention_hours: int) -> Upkeep:
    return examine(name, path, retention_hours, time.time_ns() // 1_000_000)


def _plan_rows(due: Sequence[Upkeep]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for table in due:
        removed = (*table.unneeded, *table.leftovers)
        size = sum(store_of(file).size_bytes(file) for file in removed)
        compact = "yes" if table.compact else "no"
        rows.append((table.full_name, len(table.log.files), table.small_files, compact, len(removed), byte_size(size)))
    return rows


def _clear_table(table: Upkeep, retention_hours: int, fence: Fence) -> tuple[object, ...]:
    """Maintain one table. Return its row of the printed table."""
    if table.lengthen:
        remember_removed(table.path, retention_hours, fence)
    unneeded = table.unneeded
    if table.compact:
        # Two small files fit in one that is none.
        compact(table.path, 2 * SMALL_BYTES, fence)
        # With a retention of nothing, what compaction replaced can go at once.
        unneeded = _examine_table(table.full_name, table.path, retention_hours).unneeded
    removed, freed = 0, 0
    for file in (*unneeded, *table.leftovers):
        # Another process may have had the same idea.
        store = store_of(file)
        if store.is_file(file):
            removed, freed = removed + 1, freed + store.size_bytes(file)
            fence()
            store.remove(file)
    after = len(read_log(table.path).files)
    return table.full_name, len(table.log.files), after, removed, byte_size(freed)
