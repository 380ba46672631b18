"""A fold sees whole keys in order, whether Spark's tasks drive it or processes beside Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pipelines.base.blobs import Tables, shape
from pipelines.base.groups import groups
from pipelines.lake.folds import collect_tables, fold, table_of
from pipelines.spark.local_tasks import of_batches
from pipelines.spark.rows import as_frame, as_table, with_frame

ROWS = shape({"topic": "string", "partition": "int", "rank": "int", "value": "long"})
SEEN = shape({"topic": "string", "partition": "int", "values": "array<long>"})
SCHEMA = to_arrow_schema(ROWS, timezone="UTC")
TOPICS = st.one_of(st.none(), st.text("aäZz~\U00010000", max_size=3))
A_ROW = st.tuples(TOPICS, st.one_of(st.none(), st.integers(-2, 2)), st.one_of(st.none(), st.integers(0, 9)))
Row = tuple[str | None, int | None, int | None]


def worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A row for each key, with its values as they came."""
    tables = Tables({"seen": SEEN})
    for (topic, partition), values in groups(batches, 2, lambda columns: columns[0]):
        tables.add("seen", (topic, partition, list(values)))
    yield from tables.rest()


def plain(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The slow way: all rows sorted as Spark does, nulls first and texts by their bytes."""
    keys: dict[tuple[str | None, int | None], list[tuple[tuple[bool, int], int]]] = {}
    for number, (topic, partition, rank) in enumerate(rows):
        keys.setdefault((topic, partition), []).append(((rank is not None, rank or 0), number))
    return [
        {"topic": topic, "partition": partition, "values": [number for _, number in sorted(values)]}
        for (topic, partition), values in keys.items()
    ]


def by_key(row: dict[str, Any]) -> str:
    return repr((row["topic"], row["partition"]))


@pytest.mark.parametrize("rows", [[], [("a", 0, None), (None, 1, 2), ("a", 0, 1), ("Z", None, 0)]])
def test_both_give_what_a_plain_fold_gives(spark: SparkSession, rows: list[Row]):
    check(spark, rows, in_spark=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(A_ROW, max_size=60))
def test_processes_give_what_a_plain_fold_gives(spark: SparkSession, rows: list[Row]):
    check(spark, rows, in_spark=False)


def check(spark: SparkSession, rows: list[Row], in_spark: bool) -> None:
    numbered = [(*row, number) for number, row in enumerate(rows)]
    columns = [pa.array(values, field.type) for values, field in zip(zip(*numbered, strict=True), SCHEMA, strict=False)]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA) if rows else None
    local = of_batches(2, [[batch.slice(0, 7)], [batch.slice(7)]] if batch is not None else [])
    source = as_frame(spark, local, ROWS) if in_spark else local
    folded = fold(source, ("topic", "partition"), ("rank", "value"), ("value",), worker)
    assert sorted(collect_tables(folded)["seen"], key=by_key) == sorted(plain(rows), key=by_key)
    assert sorted(as_table(table_of(folded, "seen", SEEN), SEEN).to_pylist(), key=by_key) == sorted(
        plain(rows), key=by_key
    )


def test_rows_of_a_frame_come_to_those_of_processes(spark: SparkSession):
    batch = pa.record_batch([pa.array([value]) for value in ("a", 1, 2, 3)], schema=SCHEMA)
    frame = spark.createDataFrame([("b", 1, 2, 4)], ROWS)
    # Tasks that find nothing give empty batches, behind which Spark would not look.
    both = with_frame(of_batches(2, [[batch], [batch.slice(1)], [batch, batch.slice(1), batch]]), frame, ROWS)
    assert sorted(as_table(both, ROWS).column("value").to_pylist()) == [3, 3, 3, 4]
