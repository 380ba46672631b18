"""Reads of the lake for parts of the report. No Spark query."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import read_files
from highwater.pipelines.lake.reader import LakeReader
from highwater.schemas.table import TableSpec

#: A table, and rows of it; None: all.
Needed = tuple[TableSpec, pc.Expression | None]
#: Larger tables, bytes as stored, are not searched for single rows.
SEARCHED_MAX = 512 * 1024 * 1024


def match_cluster(cluster_id: str | None, where: pc.Expression | None = None) -> pc.Expression | None:
    """Return a row filter for a cluster, combined with `where` by AND. `cluster_id` None selects all clusters."""
    if cluster_id is None:
        return where
    of_it = pc.field("cluster_id") == cluster_id
    return of_it if where is None else of_it & where


def open_reader(lake: Lake, needed: Iterable[Needed] = (), searched: Iterable[Needed] = ()) -> LakeReader:
    """Return a DuckDB reader over tables of a lake.

    Args:
        needed: tables, each with the filter of the rows to read. Files without such rows are skipped.
        searched: same, for tables to search for a few rows. A table that is too large appears empty.
    """
    tables = [*needed]
    too_large: list[Needed] = []
    for table in searched:
        (tables if is_searchable(lake, table[0]) else too_large).append(table)
    reader = LakeReader(lake.root, {spec.full_name: lake.path(spec) for spec, _ in tables})
    for spec, _ in too_large:
        reader.show(spec.full_name, spec.arrow_schema.empty_table())
    for spec, where in tables:
        files = [file.place for file in lake.files(spec, where)]
        reader.show(spec.full_name, files or spec.arrow_schema.empty_table())
    return reader


def is_searchable(lake: Lake, spec: TableSpec) -> bool:
    """Return True if the driver may search a table: it has rows, and at most `SEARCHED_MAX` bytes."""
    return lake.has_rows(spec) and sum(file.size_bytes for file in lake.files(spec)) <= SEARCHED_MAX


def read_version(lake: Lake, spec: TableSpec, version: int) -> pa.Table | None:
    """Return all rows of a small table at a Delta version. None if files of that version were deleted."""
    try:
        files = [lake.path(spec) / file.path for file in read_log(lake.path(spec), version).files]
        return read_files(spec, files, spec.column_names)
    except InputError:
        return None
