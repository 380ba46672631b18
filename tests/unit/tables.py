"""Rows of tables as tasks read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from highwater.pipelines.lake.parquet import select_schema
from highwater.schemas.table import TableSpec


def table_rows(spec: TableSpec, rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    """Rows with all columns of a table; what a row does not name is null."""
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], schema=select_schema(spec, spec.column_names))
