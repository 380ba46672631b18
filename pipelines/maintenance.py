"""Upkeep of a lake: what its tables need, by their logs and folders alone, so that a lake in order costs no Spark.

Three things are done, and rows are never dropped: gold is computed from all of silver, and a file that bronze no longer
knew would be read again.

- A table of many small files is compacted (OPTIMIZE). Few large files are left alone, so that a second run finds
  nothing to do and writes no version.
- Files that only versions older than the retention need are removed (VACUUM). Delta can find them by its log (LITE) or
  by listing the folder (FULL); FULL is taken, since a write that was killed leaves files which no log names.
- What a killed write leaves beside the log is removed here: temporary files, checksums of files that are gone.

Tables of every layer are looked after alike, those that an incremental run keeps as its state too: whoever reads an
older version of one finds it for as long as the retention says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.delta_log import TableLog, read_log

#: Below this a file costs a reader more in opening it than in reading.
SMALL_BYTES = 32 << 20
#: So many small files are worth a rewrite: about what two days of hourly runs leave in a small table is far more.
SMALL_FILES_MIN = 8
#: A reader, or a writer that has not committed yet, holds no files for longer.
RETENTION_HOURS_MIN = 24
#: Delta forgets a table's log after 30 days, and with it the versions.
RETENTION_HOURS_MAX = 30 * 24

_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class Upkeep:
    """What one table needs.

    Attributes:
        small_files: live files below `SMALL_BYTES`.
        unneeded: data files that no version within the retention needs.
        leftovers: what killed writes left.
        lengthen: Delta itself would forget removed files before the retention ends, and has to be told.
    """

    full_name: str
    path: Path
    log: TableLog
    small_files: int
    unneeded: tuple[Path, ...]
    leftovers: tuple[Path, ...]
    lengthen: bool

    @property
    def compact(self) -> bool:
        """Whether its files are worth a rewrite."""
        return self.small_files >= SMALL_FILES_MIN

    @property
    def needs_spark(self) -> bool:
        return self.compact or bool(self.unneeded) or self.lengthen

    @property
    def is_due(self) -> bool:
        return self.needs_spark or bool(self.leftovers)


def examine(full_name: str, path: Path, retention_hours: int, now_ms: int) -> Upkeep:
    """Say what a table needs.

    Args:
        now_ms: Unix time, milliseconds.
    """
    log = read_log(path)
    before_ms = now_ms - retention_hours * _HOUR_MS
    kept = {file.path for file in log.files}
    kept |= {name for name, removed_ms in log.removed.items() if removed_ms >= before_ms}
    unneeded = [
        file
        for file in _data_files(path)
        if file.relative_to(path).as_posix() not in kept and _modified_ms(file) < before_ms
    ]
    leftover_ms = now_ms - max(retention_hours, RETENTION_HOURS_MIN) * _HOUR_MS
    return Upkeep(
        full_name=full_name,
        path=path,
        log=log,
        small_files=sum(file.size_bytes < SMALL_BYTES for file in log.files),
        unneeded=tuple(unneeded),
        leftovers=tuple(file for file in _leftovers(path) if _modified_ms(file) < leftover_ms),
        lengthen=retention_hours > log.removed_kept_hours,
    )


def data_files(path: Path) -> dict[Path, int]:
    """Every data file in a table's folder, of all versions, with its size in bytes."""
    return {file: file.stat().st_size for file in _data_files(path)}


def _data_files(path: Path) -> Iterator[Path]:
    """What VACUUM looks at: hidden folders are none of its business, change data is. Deletion vectors we have none."""
    for folder, names, files in os.walk(path):
        names[:] = [name for name in names if name == "_change_data" or not name.startswith(("_", "."))]
        yield from (Path(folder, name) for name in files if name.endswith(".parquet") and name[0] not in "_.")


def _leftovers(path: Path) -> Iterator[Path]:
    """Hidden files: temporary ones of the log, and checksums (``.NAME.crc``) without their file."""
    for folder in (path, path / "_delta_log"):
        for file in folder.glob(".*"):
            of_checksum = file.with_name(file.name[1:].removesuffix(".crc"))
            is_checksum = file.name.endswith(".crc")
            if file.is_file() and not (of_checksum.exists() if is_checksum else folder == path):
                yield file


def _modified_ms(file: Path) -> float:
    return file.stat().st_mtime * 1000
