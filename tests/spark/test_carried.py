"""What one run leaves to the next, on rows made for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.replay.batches import BATCH, ROLL, STABLE
from pipelines.replay.carried import silent_since, wakes_to_carry
from pipelines.replay.connections import GONE_US
from pipelines.replay.window import SparkBounds

pytestmark = pytest.mark.spark
SECOND_US = 1_000_000
SEALED = SparkBounds({("c", 1): 100 * SECOND_US})


def fetches(spark: SparkSession, rows: Iterable[tuple[str, float, bool]]) -> DataFrame:
    values = [("c", 1, connection, int(second * SECOND_US), is_new) for connection, second, is_new in rows]
    return spark.createDataFrame(
        values, "cluster_id string, broker_id int, connection string, arrival_us long, is_new boolean"
    )


def test_a_connection_that_goes_on_was_silent_since_its_last_fetch(spark: SparkSession):
    """The seal lies at 100 s, the last run saw the log up to 160 s."""
    rows = [
        *[("stopped", second, second > 160) for second in (10, 20, 170, 171)],
        *[("alive", second, second > 160) for second in (90, 130, 159, 161)],
        *[("ended", second, False) for second in (10, 20)],
        *[("began", second, True) for second in (170, 171)],
        *[("filled in", second, second == 120) for second in (80, 120, 130)],  # a file between two that were there
        ("another of that name", 20, False),
        ("another of that name", 20 + GONE_US / SECOND_US + 1, True),
    ]
    silent = silent_since(fetches(spark, rows), SEALED).collect()
    assert {row["connection"]: row["silent_us"] // SECOND_US for row in silent} == {"stopped": 20, "filled in": 80}


def wakes(spark: SparkSession, rows: Iterable[tuple[str, int, bool, int]]) -> DataFrame:
    values = [("c", "t", 0, 1, *row) for row in rows]
    columns = "wake string, wake_offset long, unstable boolean, appended_lowest_us long"
    return spark.createDataFrame(values, f"cluster_id string, topic string, partition int, broker_id int, {columns}")


def carried(spark: SparkSession, rows: Iterable[tuple[str, int, bool, int]]) -> set[tuple[Any, ...]]:
    awaited = F.col("appended_lowest_us") >= 100
    return {(row["wake"], row["wake_offset"]) for row in wakes_to_carry(wakes(spark, rows), awaited).collect()}


def test_the_newest_segment_is_carried_to_sessions_that_begin_later(spark: SparkSession):
    rows = [(ROLL, 10, False, 1), (ROLL, 20, False, 2), (BATCH, 20, False, 2), (BATCH, 30, False, 100)]
    assert carried(spark, rows) == {(ROLL, 20), (BATCH, 30)}


def test_so_are_all_segments_that_a_transaction_may_still_hold_back(spark: SparkSession):
    rows = [(ROLL, offset, True, 1) for offset in (10, 20, 30, 40)]
    assert carried(spark, [*rows, (STABLE, 25, False, 1)]) == {(ROLL, 20), (ROLL, 30), (ROLL, 40)}
    assert carried(spark, rows) == {(ROLL, offset) for offset in (10, 20, 30, 40)}
    assert carried(spark, [*rows, (ROLL, 15, False, 1), (STABLE, 50, False, 1)]) == {(ROLL, 40), (ROLL, 15)}
