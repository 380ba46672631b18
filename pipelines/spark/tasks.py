"""Tasks on Arrow batches: the work of each task, and the task of each bucket of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, count
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from highwater.pipelines.base.arrow_rows import convert_batch
from highwater.pipelines.base.blobs import Batches

#: A function for ``mapInArrow``.
Work = Callable[[Batches], Batches]
T = TypeVar("T")
_WORD = 0xFFFFFFFF
#: Seed of Spark's hash partitioning.
_SEED = 42


def run_in_tasks(
    spark: SparkSession,
    plan: Sequence[Sequence[T]],
    make: Callable[[T], Iterator[pa.RecordBatch]],
    columns: StructType,
    then: Work | None = None,
) -> DataFrame:
    """Return the rows that `make` yields for the items of a plan. Each list of the plan is one task.

    Args:
        columns: columns of the result.
        then: applied to all batches of a task. None to return them unchanged.
    """

    def run_lists(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Task number n does the plan's n-th list. No shuffle has to bring it there.
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from chain.from_iterable(map(make, plan[number]))

    schema = to_arrow_schema(columns, timezone="UTC")

    def run_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = run_lists(batches) if then is None else then(run_lists(batches))
        # All that a task gives has to have one schema, and what items give may differ in what may be null.
        return (convert_batch(schema, batch) for batch in made)

    return spark.range(0, len(plan), 1, max(len(plan), 1)).mapInArrow(run_task, columns)


def choose_buckets(spark: SparkSession) -> tuple[int, ...]:
    """Return one bucket id per shuffle partition, chosen so that Spark's hash maps each to its own partition."""
    return _choose_buckets(int(spark.conf.get("spark.sql.shuffle.partitions") or 1))


@cache
def _choose_buckets(partitions: int) -> tuple[int, ...]:
    names: dict[int, int] = {}
    for name in count():
        names.setdefault(_compute_hash(name) % partitions, name)
        if len(names) == partitions:
            return tuple(names[partition] for partition in range(partitions))
    raise AssertionError("numbers do not end")


def _compute_hash(value: int) -> int:
    """Return Spark's signed hash of an integer (Murmur3 of one word: ``Murmur3_x86_32.hashInt``)."""
    word = _shift_round(value * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD
    hashed = (_shift_round(_SEED ^ word, 13) * 5 + 0xE6546B64 & _WORD) ^ 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _WORD
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _WORD
    hashed ^= hashed >> 16
    return hashed - (_WORD + 1) if hashed >> 31 else hashed


def _shift_round(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _WORD
