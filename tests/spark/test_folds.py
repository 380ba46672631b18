"""A fold sees whole keys in order, from whatever tables; a stateful one goes on from the states of its keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from highwater.pipelines.base.blobs import Tables, shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.base.groups import States, groups
from highwater.pipelines.lake.folds import Fold, collect_tables, fold, read_table
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, keep_rows
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.spark.tasks import choose_buckets
from highwater.schemas.table import BINARY, INT, LONG, STRING, TableSpec, column
from tests.states import DictStates

_KEY = (column("topic", STRING, "Topic"), column("partition", INT, "Partition"))
VISITS = TableSpec("silver", "visits", "One row per visit", (*_KEY, column("value", LONG, "Value")), keys=())
FROZEN = TableSpec("silver", "left", "One row per key", (*_KEY, column("left", BINARY, "State")), keys=())
ROWS = Keyed(
    shape({"topic": "string", "partition": "int", "value": "long"}), ("topic", "partition"), ("value",), ("value",)
)
SEEN = shape({"topic": "string", "partition": "int", "values": "array<long>", "left": "string"})
VALUES = [("a", number % 3, (number * 7_919) % 10_000) for number in range(10_000)] + [("ä", None, 5), (None, 0, 4)]
STATES = {("a", 1): "old", ("gone", 0): "alone"}


def worker(batches: Iterator[pa.RecordBatch], states: States | None = None) -> Iterator[pa.RecordBatch]:
    """A row for each key, with its values as they came, and what was left of it."""
    tables = Tables({"seen": SEEN})
    states = states or DictStates()
    for (topic, partition), values in groups(batches, 2, lambda columns: columns[0]):
        tables.add("seen", (topic, partition, list(values), (states.take((topic, partition)) or b"").decode()))
    for (topic, partition), frozen in states.rest():
        tables.add("seen", (topic, partition, [], frozen.decode()))
    yield from tables.rest()


def plain(states: dict[tuple[str, int], str]) -> list[dict[str, Any]]:
    keys: dict[tuple[str | None, int | None], list[int]] = {}
    for topic, partition, value in VALUES:
        keys.setdefault((topic, partition), []).append(value)
    rows = [(*key, sorted(values), states.get(key, "")) for key, values in keys.items()]
    rows += [(*key, [], left) for key, left in states.items() if key not in keys]
    return [dict(zip(SEEN.names, row, strict=True)) for row in rows]


def in_order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: repr((row["topic"], row["partition"])))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake(spark, tmp_path)
    for part in range(3):
        lake.append_once(VISITS, build_table(VISITS, VALUES[part::3]), f"part {part}")
    return lake


READ = Reading(VISITS, VISITS.column_names, keep_rows)


def test_a_fold_gives_what_a_plain_fold_gives(lake: Lake) -> None:
    folded = fold(lake, Fold([READ], ROWS, worker))
    assert folded is not None
    assert in_order(collect_tables(folded)["seen"]) == in_order(plain({}))
    assert in_order(read_table(folded, "seen", SEEN).toArrow().to_pylist()) == in_order(plain({}))


def test_the_operator_gives_what_a_plain_fold_gives(lake: Lake) -> None:
    folded = fold(lake, Fold([READ], ROWS, worker, []))
    assert folded is not None
    assert in_order(collect_tables(folded)["seen"]) == in_order(plain({}))


def test_the_operator_goes_on_from_the_states_of_keys(lake: Lake) -> None:
    rows = [(topic, partition, left.encode()) for (topic, partition), left in STATES.items()]
    arrays = [
        pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), FROZEN.arrow_schema, strict=True)
    ]
    lake.append_once(FROZEN, pa.Table.from_arrays(arrays, schema=FROZEN.arrow_schema), "left")

    def states(read: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield read.rename_columns(["topic", "partition", "frozen"])

    folded = fold(lake, Fold([READ], ROWS, worker, [Reading(FROZEN, FROZEN.column_names, states)]))
    assert folded is not None
    assert in_order(collect_tables(folded)["seen"]) == in_order(plain(STATES))
    alone = fold(lake, Fold([], ROWS, worker, [Reading(FROZEN, FROZEN.column_names, states)]))
    assert alone is not None
    seen = {(row["topic"], row["partition"]): row["left"] for row in collect_tables(alone)["seen"]}
    assert seen == STATES


def test_folds_of_one_query_come_apart(lake: Lake) -> None:
    """Of three folds one goes on from states, and one has nothing to read."""
    largest = Keyed(ROWS.columns, ("topic",), ("value",), ("value",))

    def most(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = Tables({"most": shape({"topic": "string", "value": "long"})})
        for (topic,), values in groups(batches, 1, lambda columns: columns[0]):
            tables.add("most", (topic, max(values)))
        yield from tables.rest()

    folded = fold(lake, Fold([], ROWS, worker), Fold([READ], largest, most), Fold([READ], ROWS, worker, []))
    assert folded is not None
    rows = collect_tables(folded)
    assert in_order(rows["seen"]) == in_order(plain({}))
    assert {row["topic"]: row["value"] for row in rows["most"]} == {
        topic: max(value for of_topic, _, value in VALUES if of_topic == topic) for topic, *_ in VALUES
    }


def test_nothing_to_read_is_nothing_to_fold(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    assert fold(lake, Fold([READ], ROWS, worker)) is None
    assert fold(lake, Fold([READ], ROWS, worker, [])) is None


def test_each_bucket_has_a_partition_of_its_own(spark: SparkSession) -> None:
    names = choose_buckets(spark)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    rows = spark.createDataFrame([(name,) for name in names], "bucket int")
    placed = rows.select(F.expr(f"pmod(hash(bucket), {partitions})").alias("partition")).collect()
    assert [row["partition"] for row in placed] == list(range(partitions))
