"""What one run leaves to the next, on rows made for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipelines.replay.batches import BATCH, ROLL, STABLE
from pipelines.replay.chains import GONE_US, silent_since
from pipelines.replay.fetch_timeline import EVENT_TYPES, KEY, after_seals, in_time, wakes_to_carry
from pipelines.replay.session_worker import CARRIED
from pipelines.replay.window import SparkBounds
from schemas import session_events as s

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


def test_only_a_session_that_begins_after_the_seal_is_told_of_older_segments(spark: SparkSession):
    columns = {"time_us": "time_us long", "kind": "kind string"}
    types = ", ".join(columns.get(name, f"{name} {type_}") for name, type_ in EVENT_TYPES.items())
    nulls = (None,) * (len(EVENT_TYPES) - 2)
    values = [
        ("c", 1, connection, second * SECOND_US, kind, *nulls, None, s.RANK[kind])
        for connection in ("carried", "new")
        for second, kind in ((50, ROLL), (50, BATCH), (150, ROLL), (150, BATCH))
    ]
    key = "cluster_id string, broker_id int, connection string"
    events = spark.createDataFrame(values, f"{key}, {types}, carried binary, rank int")
    sessions = spark.createDataFrame([("c", 1, "carried", b"fold")], f"{key}, state binary")
    told = after_seals(events, sessions, SEALED).orderBy(*KEY, "time_us", "rank").collect()
    assert [(row["connection"], row["kind"], row["time_us"] // SECOND_US) for row in told] == [
        ("carried", CARRIED, -1),
        ("carried", BATCH, 150),
        ("carried", ROLL, 150),
        ("new", ROLL, 50),
        ("new", BATCH, 150),
        ("new", ROLL, 150),
    ]
    assert bytes(told[0]["carried"]) == b"fold"


def test_a_wake_meets_the_connections_that_were_there_then(spark: SparkSession):
    hour_us = 3600 * SECOND_US
    key = "cluster_id string, broker_id int, topic string, partition int"
    readers = [
        ("c", 1, "t", 0, name, replica_id, int(since * hour_us), int(until * hour_us))
        for name, replica_id, since, until in (
            *(("early", -1, 0.5, 1.2), ("late", -1, 3.1, 3.2), ("long", -1, 0.1, 9.9)),
            *(("follower", 2, 0.5, 9.9), ("unknown", None, 2.9, 3.5)),
        )
    ]
    watches = spark.createDataFrame(readers, f"{key}, connection string, replica_id int, from_us long, until_us long")
    rows = [
        ("c", 1, "t", 0, kind, follower, None if at is None else int(at * hour_us))
        for kind, follower, at in (
            *((BATCH, False, 1.1), (BATCH, False, 3.1 - 0.0002), (BATCH, True, 5), (BATCH, True, None)),
            *((ROLL, False, 0.2), (ROLL, False, 4)),
        )
    ]
    wakes = spark.createDataFrame(rows, f"{key}, wake string, follower boolean, earliest_us long")
    told = {
        (row["wake"], round(row["earliest_us"] / hour_us, 1), row["connection"])
        for row in in_time(wakes, watches).collect()
    }
    assert told == {
        *((BATCH, 1.1, name) for name in ("early", "long")),
        *((BATCH, 3.1, name) for name in ("late", "long", "unknown")),
        (BATCH, 5.0, "follower"),
        *((ROLL, 0.2, name) for name in ("early", "late", "long", "unknown")),
        (ROLL, 4.0, "long"),
    }
