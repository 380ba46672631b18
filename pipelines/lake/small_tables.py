"""Rows of a lake's tables that the driver can hold, read without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.lake.delta_log import read_log, table_version
from pipelines.lake.parquet import columns_schema, read_files
from pipelines.lake.skipping import files_within
from pipelines.storage.place import Place
from schemas.table import TableSpec


class Tables(Protocol):
    """Who reads rows of tables: these, or the lake of a Spark session."""

    def rows(self, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> pa.Table:
        """Columns of the rows of a table, in the declared types; none where there is no table."""


@dataclass(frozen=True)
class SmallTables:
    """Tables below a lake's folder."""

    root: Place

    def rows(self, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> pa.Table:
        """As of `Tables`.

        Raises:
            InputError: a table's log is not whole.
        """
        folder = self.root / spec.layer / spec.name
        if table_version(folder) is None:
            return columns_schema(spec, columns).empty_table()
        files = files_within(spec.arrow_schema, read_log(folder).files, where)
        return read_files(spec, [folder / file.path for file in files], columns, where)
