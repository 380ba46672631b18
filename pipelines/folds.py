"""The one way in which Spark drives a fold: rows of a key come to one worker, in their order, and leave as blobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from pipelines.blobs import BLOBS, Batches, rows_by_table, unpack


def fold(
    rows: DataFrame,
    key: Sequence[str],
    order: Sequence[str],
    columns: Iterable[str],
    worker: Callable[[Batches], Batches],
) -> DataFrame:
    """What a worker makes of all rows, as `pipelines.blobs.BLOBS`.

    Args:
        order: columns that order the rows of a key.
        columns: what the worker gets behind the key.
        worker: takes sorted batches (`pipelines.groups.groups`); its state is as large as what it keeps of one key.
    """
    return in_order(rows, key, order).select(*key, *columns).mapInArrow(worker, BLOBS)


def in_order(rows: DataFrame, key: Sequence[str], order: Sequence[str]) -> DataFrame:
    """All rows of a key in one partition, one behind the other."""
    partitions = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 200)
    return rows.repartition(partitions, *key).sortWithinPartitions(*key, *order)


def collect_tables(blobs: DataFrame) -> defaultdict[str, list[dict[str, Any]]]:
    """Rows of small tables, on the driver; those without rows are empty."""
    return rows_by_table((row["table"], bytes(row["rows"])) for row in blobs.select("table", "rows").collect())


def table_of(blobs: DataFrame, name: str, columns: StructType) -> DataFrame:
    """The rows of one table."""
    return blobs.where(F.col("table") == name).select("rows").mapInArrow(unpack, columns)
