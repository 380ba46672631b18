"""The screen on Spark: how many rows of each file break an expectation, in one query whatever the number of tables.

Tasks read the Parquet files that a batch added, of each only the columns asked, and ask them as Arrow has them. What
goes over several rows is asked within a Parquet file; only where two of them hold rows of the same part of a log, as
after a compaction, the table's files are read together. In good data nothing breaks, and nothing else is read. Where
something does, Great Expectations looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipelines.base.blobs import shape
from pipelines.base.task_sizes import balance
from pipelines.lake.lake import Lake
from pipelines.lake.parquet import Stored, columns_schema, read_files
from pipelines.quality.expectation import Expectation, Severity, with_derived
from pipelines.quality.measure import Measured, as_batch, columns_read, from_text, measure
from pipelines.quality.suites import BY_TABLE
from pipelines.spark.tasks import in_tasks
from schemas.table import TableSpec

Chosen = Mapping[str, Sequence[tuple[Expectation, Severity]]]
#: Parquet files by table.
Files = Mapping[str, Sequence[Stored]]
#: A table, and Parquet files of it that are measured together. Plain, so that tasks need not load this module.
Unit = tuple[str, tuple[Stored, ...]]
_MEASURED = shape({"measured": "string"})


def files_of(lake: Lake, specs: Iterable[TableSpec], done: Set[str]) -> Files:
    """Files that hold a batch's rows, maybe among others, of the tables that it brought rows.

    They are read off the newest commits, so that a long history costs nothing. Lines in bronze are those of an earlier
    commit if a file was released from quarantine.

    Args:
        specs: tables that it may have brought rows.
        done: batches that came before it.
    """
    added = [(spec, lake.added_until(spec, done.__contains__)) for spec in specs if lake.has_rows(spec)]
    there = [(spec, files) for spec, files in added if files != () or spec.layer != "silver"]
    return {spec.full_name: files or lake.files(spec) for spec, files in there}


def rows_asked(
    lake: Lake, spec: TableSpec, files: Sequence[Stored] | None, suite: Sequence[Expectation], wanted: pc.Expression
) -> DataFrame:
    """Rows of a table with the columns that expectations derive of them, file by file.

    Args:
        files: of the table; None where only Delta can read them: the driver does, then.
        wanted: the rows that are given.
    """
    columns = columns_read(spec, suite)
    if files is None:
        return lake.spark.createDataFrame(with_derived(lake.rows(spec, *columns, where=wanted), suite))

    def work(file: Stored) -> Iterator[pa.RecordBatch]:
        yield from with_derived(read_files(spec, [file.place], columns, wanted), suite).to_batches()

    none = with_derived(columns_schema(spec, columns).empty_table(), suite)
    return in_tasks(lake.spark, [[file] for file in files], work, from_arrow_schema(none.schema))


def screen(lake: Lake, files: Files, chosen: Chosen, file_ids: Sequence[str]) -> list[Measured]:
    """Measure the rows of these files, by table and file; a file's rows may come in several parts.

    Args:
        files: where they are.
        chosen: the suites, by table.
    """
    suites = {name: [item for item, _ in chosen[name]] for name in files}
    wanted = pc.field("file_id").isin(list(file_ids))
    units: list[Unit] = [(name, (file,)) for name, listed in files.items() for file in listed]
    measured = _measured(lake.spark, units, suites, wanted)
    if torn := _torn(measured):
        units = [(name, tuple(files[name])) for name in sorted(torn)]
        measured = [item for item in measured if item.table not in torn]
        measured += _measured(lake.spark, units, suites, wanted)
    return measured


def _torn(measured: Sequence[Measured]) -> set[str]:
    """Tables of which a key in one part may be in another one, too."""
    ordered = sorted(measured, key=lambda item: (item.table, item.file_id, item.lowest))
    return {
        after.table
        for before, after in pairwise(ordered)
        if (after.table, after.file_id) == (before.table, before.file_id) and after.lowest <= before.highest
    }


def _measured(
    spark: SparkSession, units: Sequence[Unit], suites: Mapping[str, Sequence[Expectation]], wanted: pc.Expression
) -> list[Measured]:
    if not units:
        return []
    sized = [(unit, sum(file.size_bytes for file in unit[1])) for unit in units]
    plan = balance(sized, spark.sparkContext.defaultParallelism)

    def work(unit: Unit) -> Iterator[pa.RecordBatch]:
        table, files = unit
        spec, suite = BY_TABLE[table], suites[table]
        rows = read_files(spec, [file.place for file in files], columns_read(spec, suite), wanted)
        yield as_batch(measure(spec, rows, suite))

    rows = in_tasks(spark, plan, work, _MEASURED).toArrow()
    return [from_text(text) for text in rows.column("measured").to_pylist()]
