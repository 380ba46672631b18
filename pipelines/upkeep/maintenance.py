"""Upkeep of a lake: the work that its tables need, from their logs and folders alone. Without work Spark is not
started.

Rows are never dropped: gold is computed from all of silver, and a file unknown to bronze would be read again.

- A table of many small files is compacted. Few large files are not touched, so a second run writes no version.
- Files that only versions older than the retention need are removed, and data files that no log names. Delta's VACUUM
  is not used: it follows links, and the files could not be listed before.
- Leftovers of killed writes in the log's folder are removed: temporary files, checksums of missing files.

All layers are treated alike, also the resume state: a reader of an older version finds it until the retention ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from highwater.pipelines.lake.delta_commits import find_unneeded_files
from highwater.pipelines.lake.delta_log import TableLog, read_log
from highwater.pipelines.storage.place import Place, relative
from highwater.pipelines.storage.store import store_of

#: Below this a file costs a reader more in opening it than in reading.
SMALL_BYTES = 32 << 20
#: That many small files are worth a rewrite: about what two days of hourly runs leave in a small table is far more.
SMALL_FILES_MIN = 8
#: A reader, or a writer that has not committed yet, holds no files for longer.
RETENTION_HOURS_MIN = 24
#: Delta forgets a table's log after 30 days, and with it the versions.
RETENTION_HOURS_MAX = 30 * 24

_HOUR_MS = 3_600_000
_DRAFT = re.compile(r"#\d+$", re.ASCII)


@dataclass(frozen=True)
class Upkeep:
    """Maintenance that one table needs."""

    full_name: str
    path: Place
    log: TableLog
    small_files: int  #: live files below `SMALL_BYTES`
    unneeded: tuple[Place, ...]  #: data files that no version within the retention needs
    leftovers: tuple[Place, ...]  #: what killed writes left
    lengthen: bool  #: Delta would forget removed files before the retention ends, so its property is raised

    @property
    def compact(self) -> bool:
        """Return True if its files are worth a rewrite."""
        return self.small_files >= SMALL_FILES_MIN

    @property
    def is_due(self) -> bool:
        return self.compact or self.lengthen or bool(self.unneeded or self.leftovers)


def examine(full_name: str, path: Place, retention_hours: int, now_ms: int) -> Upkeep:
    """Return the maintenance that a table needs.

    Args:
        now_ms: ms since the epoch.
    """
    log, store = read_log(path), store_of(path)
    unneeded = find_unneeded_files(path, retention_hours)
    leftover_ms = now_ms - max(retention_hours, RETENTION_HOURS_MIN) * _HOUR_MS
    return Upkeep(
        full_name=full_name,
        path=path,
        log=log,
        small_files=sum(file.size_bytes < SMALL_BYTES for file in log.files),
        unneeded=tuple(file for file in _list_data_files(path) if relative(file, path) in unneeded),
        leftovers=tuple(file for file in _find_leftovers(path) if store.modified_ms(file) < leftover_ms),
        lengthen=retention_hours > log.removed_kept_hours,
    )


def _list_data_files(path: Place) -> Iterator[Place]:
    """Yield all data files of a table and of its change feed.

    Other folders, links and FIFOs are not the lake's. Its tables have no deletion vectors.
    """
    store = store_of(path)
    for folder in (path, path / "_change_data"):
        for name in sorted({*store.names(folder)} - store.find_odd_entries(folder).keys()):
            if name.endswith(".parquet") and name[0] not in "_." and store.is_file(folder / name):
                yield folder / name


def _find_leftovers(path: Place) -> Iterator[Place]:
    """Yield unfinished files of deltalake (``NAME#1``) and hidden files of other writers."""
    store = store_of(path)
    for folder in (path, path / "_delta_log", path / "_change_data"):
        names = sorted({*store.names(folder)} - store.find_odd_entries(folder).keys())
        for name in names:
            is_left = name[1:].removesuffix(".crc") not in names if name.endswith(".crc") else folder != path
            is_leftover = (name.startswith(".") and is_left) or _DRAFT.search(name) is not None
            if is_leftover and store.is_file(folder / name):
                yield folder / name
