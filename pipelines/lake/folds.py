"""The one way in which a fold is driven: rows of a key come to one worker, in their order, and leave as blobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pipelines.base.blobs import BLOBS, Batches, rows_by_table, unpack
from pipelines.base.groups import begins
from pipelines.spark.local_tasks import LocalTasks, Work, of_batches
from pipelines.spark.rows import Rows, mapped, only_tables

#: Parts for each process: what one is done with early, another one need not wait for.
_PARTS = 3
#: Rows that a worker takes at a time, as from Spark.
_BATCH_ROWS = 10_000


def fold(rows: Rows, key: Sequence[str], order: Sequence[str], columns: Iterable[str], worker: Work) -> Rows:
    """What a worker makes of all rows, as `pipelines.base.blobs.BLOBS`.

    Args:
        order: columns that order the rows of a key.
        columns: what the worker gets behind the key.
        worker: takes sorted batches (`base.groups.groups`); its state is as large as what it keeps of one key.
    """
    if isinstance(rows, LocalTasks):
        return _parts_in_order(rows, key, order, columns).map(worker)
    return in_order(rows, key, order).select(*key, *columns).mapInArrow(worker, BLOBS)


def _parts_in_order(rows: LocalTasks, key: Sequence[str], order: Sequence[str], columns: Iterable[str]) -> LocalTasks:
    """As `in_order`: whole keys in each part, sorted as Spark sorts."""
    batches = rows.batches()
    if not batches:
        return of_batches(rows.processes, [])
    table = pa.Table.from_batches(batches)
    indices = pc.sort_indices(table, [(name, "ascending", "at_start") for name in (*key, *order)])
    table = table.select([*key, *columns]).take(indices).combine_chunks()
    starts = begins([table.column(name).combine_chunks() for name in key]) if table.num_rows else []
    wanted = -(-table.num_rows // (rows.processes * _PARTS)) or 1
    cuts = [0]
    for start in (*starts[1:], table.num_rows):
        if start - cuts[-1] >= wanted or start == table.num_rows:
            cuts.append(start)
    parts = [table.slice(begin, end - begin).to_batches(max_chunksize=_BATCH_ROWS) for begin, end in pairwise(cuts)]
    return of_batches(rows.processes, parts)


def in_order(rows: DataFrame, key: Sequence[str], order: Sequence[str]) -> DataFrame:
    """All rows of a key in one partition, one behind the other."""
    # Not a number of partitions: one that is named is not coalesced by adaptive execution.
    return rows.repartition(*key).sortWithinPartitions(*key, *order)


def collect_tables(blobs: Rows) -> defaultdict[str, list[dict[str, Any]]]:
    """Rows of small tables, on the driver; those without rows are empty."""
    if isinstance(blobs, LocalTasks):
        rows = (row for batch in blobs.batches() for row in batch.select(["table", "rows"]).to_pylist())
        return rows_by_table((row["table"], row["rows"]) for row in rows)
    return rows_by_table((row["table"], bytes(row["rows"])) for row in blobs.select("table", "rows").collect())


def table_of(blobs: Rows, name: str, columns: StructType) -> Rows:
    """The rows of one table."""
    return mapped(only_tables(blobs, [name]), _unpacked, columns)


def _unpacked(batches: Batches) -> Batches:
    return unpack(batch.select(["rows"]) for batch in batches)
