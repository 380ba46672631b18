"""Configuration out of silver rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.kafka.context import MIN_ISR, Contexts
from highwater.pipelines.lake.lake import Lake
from highwater.schemas import silver
from highwater.schemas.table import TableSpec

pytestmark = pytest.mark.spark
SECOND_US = 1_000_000


def fact(spec: TableSpec, second: float, **values: Any) -> dict[str, Any]:
    """A row of broker 1; every second is a line of its own."""
    row = dict.fromkeys(spec.column_names)
    place = {"cluster_id": "c", "broker_id": 1, "file_id": "f", "byte_offset": int(second * 10), "line_no": 1}
    return row | place | {"fact_no": 0, "time": datetime.fromtimestamp(second, UTC)} | values


def fill(lake: Lake, spec: TableSpec, rows: list[dict[str, Any]]) -> None:
    numbered = [row | {"fact_no": number} for number, row in enumerate(rows)]
    values = [tuple(row[name] for name in spec.column_names) for row in numbered]
    lake.append_once(spec, lake.spark.createDataFrame(values, spec.worker_schema), spec.name)


def config(second: float, scope: str, key: str, value: str | None, entity: str = "orders") -> dict[str, Any]:
    return fact(silver.BROKER_CONFIGS, second, scope=scope, entity=entity, key=key, value=value)


def test_contexts(lake: Lake):
    versions = [fact(silver.BROKER_LIFECYCLE, 1, event="starting", mode="kraft")]
    versions += [fact(silver.BROKER_LIFECYCLE, at, event="version", kafka_version=text) for at, text in ((2, "3.9.1"),)]
    versions += [fact(silver.BROKER_LIFECYCLE, 2.1, event="started")]
    fill(lake, silver.BROKER_LIFECYCLE, versions)
    dump = [config(2, "broker", key, value, "1") for key, value in ((MIN_ISR, "2"), ("log.dirs", "/d"))]
    lines = [
        *dump,
        *[row | {"file_id": "g"} for row in dump],  # the same line in another file
        config(3, "topic_record", MIN_ISR, "9"),  # the controller's
        *[config(3 + part / 10, "log", MIN_ISR, "3") for part in range(5)],
        config(4, "topic", MIN_ISR, "1"),
        config(4, "topic", "cleanup.policy", "compact"),
        config(5, "topic", "cleanup.policy", "compact"),  # lists all: min.insync.replicas is not set any more
        config(6, "topic", MIN_ISR, "3"),
        config(7, "topic", "", None),
    ]
    fill(lake, silver.BROKER_CONFIGS, lines)
    contexts = collect_premises(lake, 7).contexts
    assert contexts.versions == {("c", 1): "3.9.1"}
    assert contexts.settle_us == 7
    assert contexts.broker_configs == {("c", 1, MIN_ISR): ((0, "2"),)}
    told = [(at // SECOND_US, value) for at, value in contexts.topic_configs["c", 1, "orders", MIN_ISR]]
    assert told == [(3, "3"), (4, "1"), (5, None), (6, "3"), (7, None)]


def test_nothing_told(lake: Lake):
    assert collect_premises(lake, 7) == Premises(Contexts(settle_us=7))
