"""Rows between two steps of a stage: in Spark's tasks, or, if they are few, in processes of the driver's machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pipelines.spark.local_tasks import LocalTasks, Work

Rows = DataFrame | LocalTasks
T = TypeVar("T")
#: Setting of a session: up to so many bytes are read by processes of the driver's machine; 0 or none: none are.
LOCAL_BYTES = "spark.highwater.localBytes"
#: As many processes do it.
LOCAL_PROCESSES = "spark.highwater.localProcesses"


def local_processes(spark: SparkSession, size_bytes: int) -> int:
    """How many processes of this machine work on so much; 0 if Spark's tasks do."""
    most = int(spark.conf.get(LOCAL_BYTES, None) or 0)
    return int(spark.conf.get(LOCAL_PROCESSES, None) or 0) if size_bytes <= most else 0


def in_tasks(
    spark: SparkSession,
    plan: Sequence[Sequence[T]],
    work: Callable[[T], Iterator[pa.RecordBatch]],
    columns: StructType,
    size_bytes: int,
    then: Work | None = None,
) -> Rows:
    """What a function makes of the items of a plan, a task for each of its lists.

    Args:
        columns: of the batches.
        size_bytes: how much is read, by which it is decided who reads it.
        then: what a task makes of all its batches.
    """

    def done(items: Sequence[T]) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(map(work, items))

    processes = local_processes(spark, size_bytes)
    if processes:
        schema = to_arrow_schema(columns, timezone="UTC")
        rows = LocalTasks(processes, plan, done)
        rows = rows if then is None else rows.map(then)
        return rows.map(lambda batches: (_as(schema, batch) for batch in batches))

    def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Task number n does the plan's n-th list. No shuffle has to bring it there.
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from done(plan[number])

    def whole(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return numbered(batches) if then is None else then(numbered(batches))

    return spark.range(0, len(plan), 1, max(len(plan), 1)).mapInArrow(whole, columns)


def mapped(rows: Rows, work: Work, columns: StructType | str) -> Rows:
    """What a function for ``mapInArrow`` makes of rows."""
    return rows.map(work) if isinstance(rows, LocalTasks) else rows.mapInArrow(work, columns)


def as_table(rows: Rows, columns: StructType) -> pa.Table:
    """Rows that the driver can hold."""
    if isinstance(rows, LocalTasks):
        schema = to_arrow_schema(columns, timezone="UTC")
        return pa.Table.from_batches([_as(schema, batch) for batch in rows.batches()], schema)
    return rows.toArrow()


def as_frame(spark: SparkSession, rows: Rows, columns: StructType) -> DataFrame:
    """Rows as Spark has them."""
    if isinstance(rows, LocalTasks):
        # In one chunk: of several, Spark leaves out what comes behind an empty one.
        return spark.createDataFrame(as_table(rows, columns).combine_chunks(), columns)
    return rows


def with_frame(rows: Rows, more: DataFrame | None, columns: StructType) -> Rows:
    """Rows and those of a DataFrame of the same columns, if there is one."""
    return rows if more is None else as_frame(more.sparkSession, rows, columns).unionByName(more)


def only_tables(blobs: Rows, names: Sequence[str]) -> Rows:
    """The blobs of some tables (`pipelines.base.blobs`)."""
    if isinstance(blobs, LocalTasks):
        wanted = pc.field("table").isin(list(names))
        return blobs.map(lambda batches: (batch.filter(wanted) for batch in batches))
    return blobs.where(F.col("table").isin(list(names)))


def _as(schema: pa.Schema, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch with columns of these names and types, as Spark takes them."""
    return batch if batch.schema.equals(schema) else batch.select(schema.names).cast(schema)
