"""Configuration, ends of hosting and assignments, out of silver rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.premises_stage import collect_premises
from pipelines.replay.context import MIN_ISR, Contexts
from pipelines.replay.partition_ends import partition_ends, with_assigned_replicas
from schemas import silver
from schemas.table import TableSpec

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


def state(second: float, role: str, **values: Any) -> dict[str, Any]:
    return fact(silver.LEADER_AND_ISR, second, role=role, **({"topic": "orders", "partition": 0} | values))


def test_contexts(lake: Lake):
    versions = [fact(silver.BROKER_LIFECYCLE, 1, event="starting", mode="kraft")]
    versions += [fact(silver.BROKER_LIFECYCLE, at, event="version", kafka_version=text) for at, text in ((2, "3.9.1"),)]
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
    assert partition_ends(lake) is None


def test_ends(lake: Lake):
    begins = [fact(silver.BROKER_LIFECYCLE, at, event="stopping_replicas") for at in (10, 30)]
    fill(lake, silver.BROKER_LIFECYCLE, begins)
    rows = [
        state(1, "leader_start", topic_id="a", replicas=None, removing_replicas=[]),
        state(2, "leader_update", topic_id="a", replicas=[1, 2, 3], removing_replicas=[1]),
        state(11, "stopped"),
        state(12, "stopped"),  # up to 2.5: when it was done
        state(20, "stopped", topic="gone"),
        state(31, "stopped", topic="gone", partition=1),
        state(40, "leader_start", topic="again", topic_id="a"),
        state(50, "leader_start", topic="again", topic_id="b"),  # its end is not in the log
        state(60, "follower_start"),
    ]
    fill(lake, silver.LEADER_AND_ISR, rows)
    found = partition_ends(lake)
    assert found is not None
    ends = {
        (row["topic"], row["partition"]): (
            row["earliest_us"] // SECOND_US,
            row["time_us"] // SECOND_US,
            row["error_code"],
        )
        for row in found.collect()
    }
    assert ends == {
        ("orders", 0): (10, 12, 6),
        ("gone", 0): (10, 20, 3),
        ("gone", 1): (30, 31, 3),
        ("again", 0): (50, 50, 3),
    }


@pytest.mark.parametrize(
    ("isr", "expected"),
    [
        ([3, 4, 5], [3, 4, 5]),  # completed
        ([1, 2, 5], [5, 1, 2]),  # cancelled
        ([5], [3, 4, 5]),  # neither an added nor a removed one is in sync: completed
    ],
)
def test_assignments(lake: Lake, isr: list[int], expected: list[int]):
    under_way = {"adding_replicas": [3, 4], "removing_replicas": [1, 2]}
    over: dict[str, Any] = {"adding_replicas": [], "removing_replicas": []}
    rows = [
        state(1, "leader_start", isr=[5, 1, 2], **over),
        state(2, "leader_update", isr=[5, 1, 2], replicas=[5, 1, 2], **over),
        state(3, "leader_start", isr=[5, 1], **over),
        state(4, "leader_update", isr=[5, 1, 2], replicas=[3, 4, 5, 1, 2], **under_way),
        state(5, "leader_start", isr=[5, 1, 2], **under_way),
        state(6, "leader_start", isr=isr, **over),
        state(7, "leader_start", isr=isr, **over),
    ]
    fill(lake, silver.LEADER_AND_ISR, rows)
    assigned = with_assigned_replicas(lake.read(silver.LEADER_AND_ISR)).orderBy("time").collect()
    all_five = [3, 4, 5, 1, 2]
    assert [row["assigned"] for row in assigned] == [
        None,
        [5, 1, 2],
        [5, 1, 2],
        all_five,
        all_five,
        expected,
        expected,
    ]
