"""Rows of tables as the tasks that read them have them: as Arrow's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from highwater.pipelines.lake.parquet import select_schema
from highwater.schemas.table import TableSpec


def batch_of(spec: TableSpec, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    """Rows of a table, with some of its columns; what a row does not name is null, and instants are microseconds."""
    return pa.RecordBatch.from_pylist(list(rows), select_schema(spec, columns))
