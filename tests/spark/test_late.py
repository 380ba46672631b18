"""A lost wake-up and a leader that stood still, told apart by what else the broker answered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.replay.late import with_reasons
from schemas import gold

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
