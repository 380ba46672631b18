"""Contents and commits of the tables of a lake. Nothing is written here, and nothing needs Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.lake.clusters import ClusterInstants, find_latest
from highwater.pipelines.lake.commits import find_added_files, find_unsettled_files, read_stamps
from highwater.pipelines.lake.contents import find_tables
from highwater.pipelines.lake.delta_log import OpenLogs, TableLog, find_version
from highwater.pipelines.lake.parquet import Stored, read_files, read_pieces, split_file
from highwater.pipelines.lake.skipping import select_files
from highwater.pipelines.storage.place import Place, resolved
from highwater.schemas.state import EXPIRIES
from highwater.schemas.table import TableSpec


class StoredTables:
    """Read access to the Delta tables below one folder, without Spark.

    Args:
        root: the lake's folder.
    """

    def __init__(self, root: Place) -> None:
        self.root = resolved(root)
        self._logs = OpenLogs()

    @cached_property
    def closed(self) -> ClusterInstants:
        """Return by cluster the time before which no run changes rows (`pipelines.upkeep.expiry`)."""
        rows = self.rows(EXPIRIES, "cluster_id", "closed_time")
        instants = rows["closed_time"].cast(pa.int64()).to_pylist()
        return find_latest(zip(rows["cluster_id"].to_pylist(), instants, strict=True))

    def path(self, spec: TableSpec) -> Place:
        """Return the folder of a table."""
        return self.root / spec.layer / spec.name

    def exists(self, spec: TableSpec) -> bool:
        """Return True if the table exists."""
        return find_version(self.path(spec)) is not None

    def has_rows(self, spec: TableSpec) -> bool:
        """Return True if the table was written after version 0, which creates it."""
        return (find_version(self.path(spec)) or 0) > 0

    def versions(self) -> dict[str, int]:
        """Return the Delta version of every table of the lake, by full name."""
        return {name: find_version(path) or 0 for name, path in sorted(find_tables(self.root).items())}

    def log(self, spec: TableSpec) -> TableLog:
        """Return the log of a table at its latest version.

        Raises:
            InputError: as of `pipelines.lake.delta_log.read_log`.
        """
        return self._logs.log(self.path(spec))

    def files(self, spec: TableSpec, where: pc.Expression | None = None) -> list[Stored]:
        """Return the table's Parquet files; empty if the table does not exist.

        Args:
            where: leave out files whose statistics exclude a matching row.
        """
        if not self.has_rows(spec):
            return []
        there = select_files(spec.arrow_schema, self.log(spec).files, where)
        return [Stored(self.path(spec) / file.path, file.size_bytes) for file in there]

    def rows(self, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> pa.Table:
        """Return rows of a small table in the declared types; empty if the table does not exist."""
        return read_files(spec, [file.place for file in self.files(spec, where)], columns, where)

    def dicts(self, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> list[dict[str, Any]]:
        """Return rows of a small table as dicts. Times are us since the epoch."""
        return list(dicts(self.rows(spec, *dict.fromkeys(columns), where=where)))

    def batches(
        self,
        spec: TableSpec,
        columns: tuple[str, ...],
        where: pc.Expression | None = None,
        files: Sequence[Stored] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of a table of any size in batches.

        Args:
            files: files to read. None reads all that may have matching rows.
        """
        for piece in chain.from_iterable(map(split_file, self.files(spec, where) if files is None else files)):
            yield from read_pieces(spec, piece, columns, where)

    def stamp(self, spec: TableSpec) -> str | None:
        """Return the newest commit tag. None without one, or without the table. Maintenance commits have none."""
        return next((stamp for _, stamp in self.stamps(spec)), None)

    def stamps(self, spec: TableSpec) -> Iterator[tuple[int, str]]:
        """Yield (Delta version, commit tag), newest first."""
        return read_stamps(self.path(spec))

    def find_unsettled_files(self, spec: TableSpec, settled: Callable[[str], bool]) -> tuple[Stored, ...] | None:
        """Return the files added since the newest commit that the caller has processed. None if the log does not show
        it.

        Args:
            settled: returns True for the tag of a commit that is processed, and with it all earlier ones.
        """
        added = find_unsettled_files(self.path(spec), settled)
        return None if added is None else tuple(Stored(self.path(spec) / name, size) for name, size in added)

    def find_added_files(self, spec: TableSpec, version: int) -> tuple[Stored, ...] | None:
        """Return files added after a version; None if the log does not show it (`lake.commits.find_added_files`)."""
        added = find_added_files(self.path(spec), version)
        return None if added is None else tuple(Stored(self.path(spec) / name, size) for name, size in added)
