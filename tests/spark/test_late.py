"""A lost wake-up and a leader that stood still, told apart by what else the broker answered."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from operator import neg
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.replay.judge import Tolerances
from pipelines.replay.late import with_reasons
from pipelines.replay.timer_order import held_up
from schemas import gold, silver

pytestmark = pytest.mark.spark
START = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def late(operation_id: str, broker_id: int) -> dict[str, Any]:
    row = dict.fromkeys(gold.DELAYED_OPERATIONS.column_names)
    return row | {
        "cluster_id": "c",
        "broker_id": broker_id,
        "operation_id": operation_id,
        "class": "late",
        "known_bug": "KAFKA-13091",
        "highest_time": at(1),
        "completed_time": at(6),
    }


def request(broker_id: int, came: float, left: float) -> dict[str, Any]:
    row = dict.fromkeys(gold.REQUEST_PHASES.column_names)
    return row | {"cluster_id": "c", "broker_id": broker_id, "arrival_time": at(came), "line_time": at(left)}


def test_reasons(spark: SparkSession):
    operations = [late("forgotten", 1), late("stalled", 2)]
    requests = [
        request(1, 2, 3),  # came and went meanwhile
        request(2, 0.5, 6.5),  # as late as the operation itself
        request(2, 5.9, 5.95),  # answered as the broker resumed
        request(3, 2, 3),  # another broker
    ]

    def table(rows: list[dict[str, Any]], spec: Any) -> Any:
        return spark.createDataFrame(
            [tuple(row[name] for name in spec.column_names) for row in rows], spec.worker_schema
        )

    told = with_reasons(table(operations, gold.DELAYED_OPERATIONS), table(requests, gold.REQUEST_PHASES)).collect()
    assert {(row["operation_id"], row["class_reason"], row["known_bug"]) for row in told} == {
        ("forgotten", "lost_wake_up", "KAFKA-13091"),
        ("stalled", "leader_stalled", None),
    }


def test_ten_thousand_late_operations_of_one_incident(spark: SparkSession):
    """Each is held against all requests of its broker: a hundred million pairs, if one looked at each of them."""
    operations, requests = range(10_000), range(40_000)

    def waited_us(number: int) -> tuple[int, int]:
        return number * 1_000, number * 1_000 + 2_000_000 + number % 7 * 1_000_000

    def answered_us(number: int) -> tuple[int, int]:
        return number * 500, number * 500 + 3_000_000 + number % 11 * 1_000_000

    values = {
        "cluster_id": "'c'",
        "broker_id": "cast(1 + id % 2 as int)",
        "operation_id": "cast(id as string)",
        "known_bug": "'KAFKA-13091'",
        "highest_time": "timestamp_micros(id * 1000)",
        "completed_time": "timestamp_micros(id * 1000 + 2000000 + id % 7 * 1000000)",
    }
    columns = [
        f"cast({values.get(field.name, 'null')} as {field.dataType.simpleString()}) `{field.name}`"
        for field in gold.DELAYED_OPERATIONS.worker_schema.fields
    ]
    traffic = spark.range(len(requests)).selectExpr(
        "'c' cluster_id",
        "cast(1 + id % 3 as int) broker_id",
        "timestamp_micros(id * 500) arrival_time",
        "timestamp_micros(id * 500 + 3000000 + id % 11 * 1000000) line_time",
    )
    told = with_reasons(spark.range(len(operations)).selectExpr(*columns), traffic)
    rows = told.select("operation_id", "class_reason", "known_bug").collect()

    # By broker, from the last arrival back: when it came, and the first answer to it or to what came after it.
    came: dict[int, list[int]] = {1: [], 2: [], 3: []}
    first_answer: dict[int, list[int]] = {1: [], 2: [], 3: []}
    for number in reversed(requests):
        broker_id, (came_us, left_us) = 1 + number % 3, answered_us(number)
        before = first_answer[broker_id]
        came[broker_id].append(came_us)
        before.append(min([left_us, *before[-1:]]))
    expected = {}
    for number in operations:
        broker_id, (highest_us, completed_us) = 1 + number % 2, waited_us(number)
        later = bisect_left(came[broker_id], -highest_us, key=neg)
        lost = later > 0 and first_answer[broker_id][later - 1] < completed_us - 100_000
        expected[str(number)] = ("lost_wake_up", "KAFKA-13091") if lost else ("leader_stalled", None)
    assert {row["operation_id"]: (row["class_reason"], row["known_bug"]) for row in rows} == expected
    assert len(rows) == len(operations)
    assert len(set(expected.values())) == 2


def test_a_timer_runs_after_those_that_were_due_before(spark: SparkSession):
    """``SystemTimer``: one thread runs what expires, in the order of the deadlines."""
    limits = Tolerances(5_000, 100_000)

    def expired(operation_id: str, handled: float, completed: float) -> dict[str, Any]:
        due = at(handled + 0.5)
        return late(operation_id, 1) | {
            "operation": "fetch",
            "cause": "timer",
            "lowest_time": due - timedelta(milliseconds=1),
            "highest_time": due + timedelta(milliseconds=1),
            "completed_time": at(completed),
            "residual_ms": (completed - handled - 0.502) * 1000,
        }

    def asked(broker_id: int, handled: float, completed: float) -> dict[str, Any]:
        row = dict.fromkeys(silver.FETCH_REQUESTS.column_names)
        instants = {"handled_time": at(handled), "completed_time": at(completed)}
        return row | {"cluster_id": "c", "broker_id": broker_id, "max_wait_ms": 500} | instants

    operations = [expired("first", 0, 4), expired("second", 0.1, 4.002), expired("third", 0.2, 4.02)]
    fetches = [asked(1, 0, 4), asked(1, 0.1, 4.002), asked(1, 0.2, 4.02), asked(1, 3.499, 3.9995), asked(2, 0, 9)]
    rows = spark.createDataFrame(
        [tuple(row[name] for name in gold.DELAYED_OPERATIONS.column_names) for row in operations],
        gold.DELAYED_OPERATIONS.worker_schema,
    )
    ran = spark.createDataFrame(
        [
            (row["cluster_id"], row["broker_id"], row["max_wait_ms"], row["handled_time"], row["completed_time"])
            for row in fetches
        ],
        "cluster_id string, broker_id int, max_wait_ms int, handled_time timestamp, completed_time timestamp",
    )
    told = {row["operation_id"]: row for row in held_up(rows, ran, limits).collect()}
    assert {name: row["class"] for name, row in told.items()} == {
        "first": "late",
        "second": "explained",
        "third": "jitter",
    }
    assert told["first"]["highest_time"].timestamp() == at(0.501).timestamp()
    assert told["second"]["highest_time"].timestamp() == at(4).timestamp()
    assert (told["second"]["residual_ms"], told["third"]["residual_ms"]) == (1.0, 17.0)
