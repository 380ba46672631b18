"""Rows that a query begins with, made by the tasks that read the Parquet files of tables.

A fold takes rows of many tables in one shape. As a union of as many reads, each with its projections, a query takes
seconds to plan, and each task unpacks the whole of it. Here the plan is one read of a list of files, whatever the
number of tables: a task reads the columns that it needs, as Arrow has them, and a pure function makes rows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from highwater.pipelines.base.task_sizes import balance
from highwater.pipelines.lake.digests import use_digests
from highwater.pipelines.lake.lake import ADDED, Lake
from highwater.pipelines.lake.parquet import PIECE_BYTES, ParquetPiece, Stored, plan_pieces, read_pieces
from highwater.pipelines.lake.table_files import AddedFile, make_cast, make_rows_writer
from highwater.pipelines.spark.tasks import Work, run_in_tasks
from highwater.schemas.table import TableSpec

#: Rows of a table, in batches, as rows of another shape.
RowsOf = Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]


class Reading(NamedTuple):
    """A scan of one table, with a function that converts its rows in the tasks."""

    spec: TableSpec
    columns: tuple[str, ...]  #: those that are read
    rows_of: RowsOf  #: makes rows in the shape that is asked for; goes to the tasks
    where: pc.Expression | None = None  #: rows that are read; row groups are skipped by it
    files: tuple[Stored, ...] | None = None  #: those that are read; all of the table, as it is now, if None
    #: a name, if the rows of a file are few, may be kept and come in any order (`pipelines.lake.digests`)
    digest: str | None = None


class ReadingPart(NamedTuple):
    """Table scans whose results have the same columns."""

    readings: Sequence[Reading]
    shape: StructType  #: columns of the rows
    work: Work | None = None  #: what a task makes of all its rows of them; nothing if None


def read_in_tasks(
    lake: Lake, readings: Sequence[Reading], shape: StructType, then: tuple[Work, StructType] | None = None
) -> DataFrame | None:
    """Return the converted rows of all scans. None if no table has rows.

    Args:
        shape: columns of the converted rows.
        then: function that each task applies to all its rows, and the resulting columns. None to return the rows.
    """
    work, columns = then or (None, shape)
    return run_parts(lake, [ReadingPart(readings, shape, work)], columns)


def run_parts(lake: Lake, parts: Sequence[ReadingPart], columns: StructType) -> DataFrame | None:
    """Return the results of tasks over all parts, in one query. None if no table has rows.

    Args:
        columns: columns of the results.
    """
    there = [
        (number, reading)
        for number, part in enumerate(parts)
        for reading in use_digests(lake, part.readings, part.shape)
        if reading.files or (reading.files is None and lake.has_rows(reading.spec))
    ]
    if not there:
        return None
    works = [part.work for part in parts]
    sized = [
        ((number, piece), piece.size_bytes)
        for number, (_, reading) in enumerate(there)
        for piece in plan_pieces(reading.spec, _list_files(lake, reading), reading.where)
    ]
    # Four tasks at least, and one for each core: `balance` returns four times the given number.
    tasks = balance(sized, -(-lake.spark.sparkContext.defaultParallelism // 4))

    def find_part(item: tuple[int, ParquetPiece]) -> int:
        return there[item[0]][0]

    plan = [
        [(part, tuple(items)) for part, items in groupby(sorted(task, key=find_part), key=find_part)] for task in tasks
    ]

    def read_rows(items: Sequence[tuple[int, ParquetPiece]]) -> Iterator[pa.RecordBatch]:
        for number, piece in items:
            spec, names, rows_of, where, *_ = there[number][1]
            for rows in read_pieces(spec, piece, names, where):
                yield from rows_of(rows)

    def make(of_part: tuple[int, tuple[tuple[int, ParquetPiece], ...]]) -> Iterator[pa.RecordBatch]:
        part, items = of_part
        rows, work = read_rows(items), works[part]
        return rows if work is None else work(rows)

    return run_in_tasks(lake.spark, plan, make, columns)


def write_in_tasks(lake: Lake, spec: TableSpec, readings: Sequence[Reading]) -> list[AddedFile]:
    """Write the converted rows of all scans as files of a table, without committing them.

    Raises:
        LakeError: a row breaks a constraint.
    """
    lake.create([spec])
    write = make_rows_writer(lake.root, spec, make_cast(spec))
    added = read_in_tasks(lake, readings, spec.worker_schema, (write, ADDED))
    return [] if added is None else lake.collect_files(added, spec.full_name)


def read_few_rows(lake: Lake, reading: Reading, shape: StructType) -> pa.Table:
    """Return the rows of a scan that fit on the driver. Small tables are read without Spark tasks."""
    (reading,) = use_digests(lake, [reading], shape)
    pieces = plan_pieces(reading.spec, _list_files(lake, reading), reading.where)
    if sum(piece.size_bytes for piece in pieces) > PIECE_BYTES:
        rows = read_in_tasks(lake, [reading], shape)
        assert rows is not None
        return rows.toArrow()
    read = (rows for piece in pieces for rows in read_pieces(reading.spec, piece, reading.columns, reading.where))
    batches = [batch for rows in read for batch in reading.rows_of(rows)]
    return pa.Table.from_batches(batches, to_arrow_schema(shape, timezone="UTC"))


def _list_files(lake: Lake, reading: Reading) -> Sequence[Stored]:
    return lake.files(reading.spec, reading.where) if reading.files is None else reading.files


def keep_rows(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows unchanged: a `rows_of` for `Reading`."""
    yield rows


def map_batches(make: Callable[..., pa.RecordBatch], *arguments: Any) -> RowsOf:
    """Return a `rows_of` for `Reading` that calls `make` once per batch."""

    def map_rows(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield make(rows, *arguments)

    return map_rows
