"""Rows of Parquet files of a table, for tasks and for what the driver reads itself. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from schemas.table import TableSpec


def read_files(
    spec: TableSpec, files: Iterable[str | Path], columns: Sequence[str], where: pc.Expression | None = None
) -> pa.Table:
    """Columns of all rows, or of those that a condition names, in the declared types.

    Args:
        files: of the table.
        columns: some of the table's.
        where: over any of the table's columns.
    """
    schema, files = columns_schema(spec, columns), list(files)
    if not files:
        return schema.empty_table()
    # Importing it takes a quarter of a second.
    import pyarrow.parquet as pq

    # Folders' names are not read: one that says `key=value` is no column. Spark may write instants as INT96.
    how = {"columns": list(columns), "filters": where, "partitioning": None, "coerce_int96_timestamp_unit": "us"}
    return pa.concat_tables([pq.read_table(file, **how).cast(schema) for file in files])


def columns_schema(spec: TableSpec, columns: Sequence[str]) -> pa.Schema:
    """Declared types of some columns; what was read may hold nulls whatever the declaration."""
    return pa.schema([spec.arrow_schema.field(name).with_nullable(True) for name in columns])
