"""Rows that tasks of one query have written, without a table version: the input of the next queries.

A query over files has a short plan. One over another query has the plans of both. Spark analyses, prints and ships
these to tasks at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.types import StructType

from highwater.pipelines.lake.folds import Fold
from highwater.pipelines.lake.lake import Blobs, Lake
from highwater.pipelines.lake.parquet import Stored, read_files
from highwater.pipelines.lake.readings import Reading, RowsOf
from highwater.pipelines.lake.table_files import AddedFile, find_least
from highwater.pipelines.storage.place import STAGING, Place
from highwater.pipelines.storage.store import store_of
from highwater.schemas.table import TableSpec


class Staged:
    """Files of several tables that tasks wrote and nothing has committed."""

    def __init__(self, lake: Lake, specs: Iterable[TableSpec], files: Sequence[AddedFile]) -> None:
        self._lake = lake
        self._specs = {spec.name: spec for spec in specs}
        self._files = files

    def files(self, table: str) -> list[AddedFile]:
        """Return the files of a table."""
        return [file for file in self._files if file.table == table]

    def least(self, column: str, *tables: str) -> datetime | None:
        """Return a lower bound of a timestamp column, from file statistics. None if all values are null.

        Args:
            tables: tables to consider. All if none are given.
        """
        return find_least([file for file in self._files if not tables or file.table in tables], column)

    def table(self, table: str, *columns: str) -> pa.Table:
        """Return columns of the rows of a small table, read without a query."""
        spec = self._specs[table]
        return read_files(spec, [self._lake.path(spec) / file.path for file in self.files(table)], columns)

    def read_few_rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        """Return rows of a small table as dicts. All columns if none are given."""
        rows: list[dict[str, Any]] = self.table(table, *(columns or self._specs[table].column_names)).to_pylist()
        return rows

    def reading(self, table: str, rows_of: RowsOf) -> Reading:
        """Return a scan of the files of a table, mapped by `rows_of`."""
        spec = self._specs[table]
        files = tuple(Stored(self._lake.path(spec) / file.path, file.size_bytes) for file in self.files(table))
        return Reading(spec, spec.column_names, rows_of, files=files)


class Staging:
    """A temporary folder of a lake, deleted at the end of the run."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.layer = f"{STAGING}/{uuid4()}"

    def tables(self, shapes: Mapping[str, StructType], *bounded_by: str) -> list[TableSpec]:
        """Return specs of temporary tables in the folder.

        Args:
            shapes: columns by table.
            bounded_by: columns that get file statistics, if a table has them.
        """
        return [
            TableSpec(self.layer, name, "", tuple(columns), (), bounded_by=tuple(set(bounded_by) & set(columns.names)))
            for name, columns in shapes.items()
        ]

    def written(self, blobs: Blobs | None, specs: Sequence[TableSpec]) -> Staged:
        """Write serialized rows (`pipelines.base.blobs`) as files, in one query. No files if `blobs` is None.

        Args:
            specs: temporary tables from `tables`, or tables of the lake for a later commit.
        """
        return Staged(self._lake, specs, [] if blobs is None else self._lake.write_blobs(blobs, specs))


class Beside(NamedTuple):
    """A keyed stage that runs in the same query as others, and the commit of its tables."""

    fold: Fold
    tables: Sequence[TableSpec]  #: of the lake, that it gives rows of
    commit: Callable[[Staged], None]  #: takes their files


@contextmanager
def staging(lake: Lake) -> Iterator[Staging]:
    """Yield a folder for temporary tables. Its files are removed when the block ends."""
    folder = Staging(lake)
    try:
        yield folder
    finally:
        # What cannot be removed must not hide why the run ended; the next one tries again (`remove_staging`).
        store_of(lake.root).remove_tree(lake.root / folder.layer)


def remove_staging(root: Place) -> None:
    """Remove temporary files of killed runs from a lake's folder."""
    store_of(root).remove_tree(root / STAGING)
