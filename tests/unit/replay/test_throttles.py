"""Fetches of followers that a leader's throttle may have held back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.kafka.context import (
    DYNAMIC,
    LEADER_THROTTLE_RATE,
    THROTTLED_LEADERS,
    TOPIC,
    ConfigLine,
    build_contexts,
)
from highwater.pipelines.replay.judge import LATE, Tolerances
from highwater.pipelines.replay.late import BROKER as LATE_BROKER
from highwater.pipelines.replay.late import COLUMNS, operations, settler
from highwater.pipelines.replay.throttles import Throttles, is_throttled, throttled_topics
from highwater.schemas.gold import DELAYED_OPERATIONS

BROKER = ("c", 1)
SECOND = 1_000_000
LIMITS = Tolerances(5_000, 100_000)
CONTEXTS = build_contexts(
    {BROKER: ((0, "3.8.1"),)},
    {
        BROKER: [
            ConfigLine(1 * SECOND, TOPIC, "t", {THROTTLED_LEADERS: "0:1,0:2"}),
            ConfigLine(1 * SECOND, TOPIC, "all", {THROTTLED_LEADERS: "*"}),
            ConfigLine(2 * SECOND, DYNAMIC, "1", {LEADER_THROTTLE_RATE: "400000"}),
            ConfigLine(9 * SECOND, DYNAMIC, "1", {}),
            ConfigLine(12 * SECOND, DYNAMIC, "1", {LEADER_THROTTLE_RATE: "400000"}),
            ConfigLine(13 * SECOND, TOPIC, "t", {}),
        ]
    },
    0,
)
ISRS = {("c", 1, "t", 0): ((0, frozenset({1, 2})), (5 * SECOND, frozenset({1, 2, 3})))}
THROTTLES = Throttles(CONTEXTS, ISRS)


def fetch(at: float, waited_ms: int = 400, replica: int = 3, topic: str = "t", **values: Any) -> dict[str, Any]:
    handled_us = round(at * SECOND)
    return {
        "operation": "fetch",
        "class": "late",
        "class_reason": None,
        "cause": "bytes",
        "known_bug": None,
        "replica_id": replica,
        "timeout_ms": 500,
        "handled_us": handled_us,
        "completed_us": handled_us + waited_ms * 1000,
        "closing_topic": topic,
        "closing_partition": 0,
        **values,
    }


def judged(operation: dict[str, Any]) -> tuple[str, str | None, str]:
    row = THROTTLES.judged(BROKER, operation, LIMITS)
    return row["class"], row["class_reason"], row["cause"]


def test_a_throttle_needs_replicas_and_a_rate() -> None:
    at = {second: is_throttled(CONTEXTS, BROKER, "t", 0, second * SECOND) for second in (0, 1, 2, 8, 9, 12, 13)}
    assert [second for second, held in at.items() if held] == [2, 8, 12]
    assert is_throttled(CONTEXTS, BROKER, "all", 7, 3 * SECOND)
    assert not is_throttled(CONTEXTS, BROKER, "t", 1, 3 * SECOND)
    assert not is_throttled(CONTEXTS, ("c", 2), "t", 0, 3 * SECOND)
    assert throttled_topics(CONTEXTS) == {"t", "all"}


def test_of_a_follower_out_of_sync_a_late_answer_is_the_throttles() -> None:
    assert judged(fetch(3)) == ("unobservable", "throttled", "throttled")


@pytest.mark.parametrize(
    "operation",
    [
        fetch(6),  # in sync by then
        fetch(1.5),  # no rate yet
        fetch(3, waited_ms=700),  # beyond its timer
        fetch(3, cause="timer"),
        fetch(3, replica=-1),
        fetch(3, topic="u"),
        fetch(3, operation="produce"),
    ],
)
def test_what_no_throttle_explains_stays_late(operation: dict[str, Any]) -> None:
    assert judged(operation) == ("late", None, operation["cause"])


def test_without_a_line_that_tells_the_isr_it_is_not_known() -> None:
    assert judged(fetch(3, topic="all"))[:2] == ("unobservable", "isr_not_logged")


def test_a_row_as_the_replay_leaves_it_is_judged() -> None:
    """Instants of rows are timestamps, and those that are reckoned with microseconds beside them."""
    at = datetime(2026, 11, 20, 12, 0, 6, tzinfo=UTC)
    row: dict[str, Any] = dict.fromkeys(DELAYED_OPERATIONS.column_names)
    row |= {"cluster_id": "c", "broker_id": 1, "operation_id": "f", "replica_id": 3, "timeout_ms": 500}
    row |= {"operation": "fetch", "class": LATE, "cause": "bytes", "closing_topic": "t", "closing_partition": 0}
    row |= {"handled_time": at, "lowest_time": at, "highest_time": at, "completed_time": at + timedelta(seconds=0.4)}
    rows = pa.RecordBatch.from_pylist([row], to_arrow_schema(DELAYED_OPERATIONS.worker_schema, timezone="UTC"))
    settled = settler(LIMITS, THROTTLES)(iter([operations(rows).select([*LATE_BROKER, *COLUMNS])]))
    (blob,) = [blob for batch in settled for blob in batch.to_pylist()]
    told = pa.ipc.open_stream(blob["rows"]).read_all().to_pylist()
    assert [(each["operation_id"], each["class"]) for each in told] == [("f", LATE)]
