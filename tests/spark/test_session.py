"""The session can do what the stages need."""

import gc
import sys
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StringType, StructField, StructType


class Counter(StatefulProcessor):
    """Counts the rows of a key in a value state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", StructType([StructField("n", LongType())]))

    def handleInputRows(self, key, rows, timerValues) -> Iterator[pd.DataFrame]:  # noqa: N802, N803 (Spark's names)
        seen = self.count.get()[0] if self.count.exists() else 0
        self.count.update((seen + sum(len(batch) for batch in rows),))
        yield pd.DataFrame({"key": [key[0]], "n": [self.count.get()[0]]})

    def close(self) -> None:
        pass


def test_a_stateful_operator_runs_in_batch(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", 1), ("b", 2), ("a", 3)], "key string, value long")
    schema = StructType([StructField("key", StringType()), StructField("n", LongType())])
    counted = df.groupBy("key").transformWithStateInPandas(Counter(), schema, "Append", "None").collect()
    assert {row.key: row.n for row in counted} == {"a": 2, "b": 1}


def test_times_are_utc_and_workers_run_this_python(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.prefix).collect() == [sys.prefix]


def test_a_worker_does_not_search_what_it_has_loaded_for_garbage_again(spark: SparkSession) -> None:
    def frozen(numbers: Iterator[int]) -> list[int]:
        return [gc.get_freeze_count() for _ in numbers]  # who leaves rows unread is not asked again

    # One after the other, so that tasks meet a worker that has done one before.
    counts = [spark.sparkContext.parallelize([0], 1).mapPartitions(frozen).collect()[0] for _ in range(3)]
    assert counts[-1] > 10_000
