"""By when a broker that becomes follower has answered what waited at it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession

from pipelines.replay.step_down import with_step_down

pytestmark = pytest.mark.spark
START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)
_KEYED = "cluster_id string, topic string, partition int, broker_id int, time timestamp, "


def at(ms: int) -> datetime:
    return START + timedelta(milliseconds=ms)


def leadership(spark: SparkSession, *rows: tuple[int, int, str]) -> DataFrame:
    """(partition, ms, role)."""
    given = [("c", "t", partition, 1, at(ms), role) for partition, ms, role in rows]
    return spark.createDataFrame(given, _KEYED + "role string")


def fetchers(spark: SparkSession, *rows: tuple[int, int, str]) -> DataFrame:
    """(partition, ms, action)."""
    given = [("c", "t", partition, 1, at(ms), action) for partition, ms, action in rows]
    return spark.createDataFrame(given, _KEYED + "action string")


def starts(spark: SparkSession, *instants_ms: int) -> DataFrame:
    given = [("c", 1, at(ms), "starting") for ms in instants_ms]
    return spark.createDataFrame(given, "cluster_id string, broker_id int, time timestamp, event string")


def told(rows: DataFrame) -> dict[tuple[int, int], int | None]:
    """Milliseconds at which the broker had stepped down, by partition and time of the row."""
    start_us = round(START.timestamp() * 1e6)
    return {
        (row["partition"], round((row["time"] - START.replace(tzinfo=row["time"].tzinfo)).total_seconds() * 1e3)): (
            None if row["stepped_down_us"] is None else (row["stepped_down_us"] - start_us) // 1000
        )
        for row in rows.collect()
    }


def test_all_partitions_of_a_change_are_answered_after_its_last_fetcher(spark: SparkSession):
    """``ReplicaManager.applyLocalFollowersDelta``."""
    rows = leadership(spark, (0, 10, "follower_start"), (1, 11, "follower_start"), (0, 90, "follower_start"))
    added = fetchers(spark, (0, 12, "added"), (1, 20, "added"), (0, 95, "added"))
    assert told(with_step_down(rows, added, None)) == {(0, 10): 20, (1, 11): 20, (0, 90): 95}


def test_a_broker_that_shuts_down_only_removes_its_fetchers(spark: SparkSession):
    rows = leadership(spark, (0, 10, "follower_start"), (0, 5, "leader_start"))
    moves = fetchers(spark, (0, 18, "removed"), (0, 2_000, "added"))
    assert told(with_step_down(rows, moves, starts(spark, 0, 1_000))) == {(0, 10): 18, (0, 5): None}


def test_without_a_line_nothing_is_told(spark: SparkSession):
    rows = leadership(spark, (0, 10, "follower_start"))
    late = fetchers(spark, (0, 6_000, "added"))
    assert told(with_step_down(rows, late, starts(spark))) == {(0, 10): None}
