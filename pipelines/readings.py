"""Rows that a query begins with, made by the tasks that read the Parquet files of tables.

A fold takes rows of many tables in one shape. As a union of as many reads, each with its projections, a query takes
seconds to plan, and each task unpacks the whole of it. Here the plan is one read of a list of files, whatever the
number of tables: a task reads the columns that it needs, as Arrow has them, and a pure function makes rows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pipelines.bronze.ingest import balance
from pipelines.lake import Lake
from pipelines.parquet import PIECE_BYTES, pieces_of, read_pieces
from schemas.table import TableSpec

#: Rows of a table, in batches, as rows of another shape.
RowsOf = Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]


class Reading(NamedTuple):
    """What becomes of the rows of one table.

    Attributes:
        columns: those that are read.
        rows_of: makes rows in the shape that is asked for; goes to the tasks.
        where: rows that are read; row groups are skipped by it.
        files: those that are read; all of the table, as it is now, if None.
    """

    spec: TableSpec
    columns: tuple[str, ...]
    rows_of: RowsOf
    where: pc.Expression | None = None
    files: tuple[str, ...] | None = None


def read_in_tasks(lake: Lake, readings: Sequence[Reading], shape: StructType) -> DataFrame | None:
    """Rows of all readings; None where no table has rows."""
    there = [
        reading for reading in readings if reading.files or (reading.files is None and lake.has_rows(reading.spec))
    ]
    listed = {number: _files(lake, reading) for number, reading in enumerate(there)}
    plain = [(number, file) for number, files in listed.items() for file in files or ()]
    parts = [_of_files(lake, there, plain, shape)] if plain else []
    # What only Delta can read comes through it.
    parts += [_of_rows(lake, there[number], shape) for number, files in listed.items() if files is None]
    return reduce(DataFrame.unionByName, parts) if parts else None


def few_rows(lake: Lake, reading: Reading, shape: StructType) -> pa.Table:
    """Rows that the driver can hold. It reads a small table itself, in less time than tasks take to begin."""
    files = _files(lake, reading) if lake.has_rows(reading.spec) else ()
    pieces = [piece for file in files or () for piece in pieces_of(Path(file))]
    if files is None or sum(piece.size_bytes for piece in pieces) > PIECE_BYTES:
        rows = read_in_tasks(lake, [reading], shape)
        assert rows is not None
        return rows.toArrow()
    read = (rows for piece in pieces for rows in read_pieces(reading.spec, piece, reading.columns, reading.where))
    made = [batch for rows in read for batch in reading.rows_of(rows)]
    return pa.Table.from_batches(made, to_arrow_schema(shape, timezone="UTC"))


def _files(lake: Lake, reading: Reading) -> Sequence[str] | None:
    if reading.files is not None:
        return reading.files
    files = lake.files(reading.spec)
    return None if files is None else [str(file) for file in files]


def _of_files(
    lake: Lake, readings: Sequence[Reading], files: Sequence[tuple[int, str]], shape: StructType
) -> DataFrame:
    sized = [((number, piece), piece.size_bytes) for number, file in files for piece in pieces_of(Path(file))]
    # Four tasks at least, and one for each core: `balance` gives four times as many as it is told.
    plan = balance(sized, -(-lake.spark.sparkContext.defaultParallelism // 4))

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for number, piece in plan[task]:
                    spec, columns, rows_of, where, _ = readings[number]
                    for rows in read_pieces(spec, piece, columns, where):
                        yield from rows_of(rows)

    return lake.spark.range(0, len(plan), 1, len(plan)).mapInArrow(work, shape)


def _of_rows(lake: Lake, reading: Reading, shape: StructType) -> DataFrame:
    spec, columns, rows_of, where, _ = reading

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from rows_of(batch if where is None else batch.filter(where))

    return lake.read(spec).select(*columns).mapInArrow(work, shape)


def by_batch(make: Callable[..., pa.RecordBatch], *arguments: Any) -> RowsOf:
    """A function for `Reading` of one that gives one batch for each."""

    def rows_of(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield make(rows, *arguments)

    return rows_of
