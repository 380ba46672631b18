"""What parts of the report ask the lake beside its rows as they are. No query of Spark's."""

from __future__ import annotations

import pyarrow as pa

from pipelines.delta_log import read_log
from pipelines.errors import InputError
from pipelines.lake import Lake
from pipelines.parquet import read_files
from schemas.table import TableSpec

#: Larger tables, bytes as stored, are not searched for single rows.
SEARCHED_MAX = 512 * 1024 * 1024


def is_searchable(lake: Lake, spec: TableSpec) -> bool:
    """Whether the driver may look through a table for a few rows: it has rows, and is no larger than that."""
    files = lake.files(spec) if lake.has_rows(spec) else None
    return files is not None and sum(file.size_bytes for file in files) <= SEARCHED_MAX


def rows_at(lake: Lake, spec: TableSpec, version: int) -> pa.Table | None:
    """All rows of a small table as they were at a Delta version; None where its files are no longer there."""
    try:
        log = read_log(lake.path(spec), version)
        files = [lake.path(spec) / file.path for file in log.files]
        return read_files(spec, files, spec.column_names) if log.is_plain else None
    except (InputError, FileNotFoundError):
        return None
