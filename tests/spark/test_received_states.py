"""What a ZooKeeper broker of up to 2.5 received stands for the lines that it does not write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipelines.replay.context import Contexts
from pipelines.replay.received_states import with_made_changes, with_received_states
from schemas import silver
from schemas.table import TableSpec

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, spec: TableSpec, *facts: dict[str, Any]) -> Any:
    values = []
    for number, fact in enumerate(facts):
        place = {"cluster_id": "c", "broker_id": 3, "file_id": "f", "byte_offset": number, "line_no": number + 1}
        at = {"time": datetime.fromtimestamp(fact.pop("second"), UTC), "topic": "t", "partition": 0, "fact_no": 0}
        row = dict.fromkeys(spec.column_names) | place | at | fact
        values.append(tuple(row[name] for name in spec.column_names))
    return spark.createDataFrame(values, spec.schema)


def test_a_request_gives_the_isr_that_the_leaders_own_lines_lack(spark: SparkSession):
    given = with_received_states(
        rows(
            spark,
            silver.LEADER_AND_ISR,
            {"second": 1, "role": "request", "leader": 3, "leader_epoch": 4, "isr": [3, 1]},
            {"second": 2, "role": "leader_start", "leader_epoch": 4, "start_offset": 7},
            {"second": 5, "role": "request", "leader": 3, "leader_epoch": 4, "isr": [3]},
            {"second": 6, "role": "leader_update"},
        )
    )
    own = given.where("role <> 'request'").orderBy("time").collect()
    assert [(row["role"], row["isr"], row["start_offset"]) for row in own] == [
        ("leader_start", [3, 1], 7),
        ("leader_update", [3], None),
    ]


def test_the_first_request_of_an_epoch_that_no_other_line_tells_is_its_start(spark: SparkSession):
    given = with_received_states(
        rows(
            spark,
            silver.LEADER_AND_ISR,
            {"second": 1, "role": "request", "leader": 3, "leader_epoch": 4, "isr": [3, 1]},
            {"second": 3, "role": "request", "leader": 3, "leader_epoch": 4, "isr": [3]},
            {"second": 5, "role": "request", "leader": 1, "leader_epoch": 5, "isr": [1, 3]},
            {"second": 7, "role": "request", "leader": 3, "leader_epoch": 4, "isr": [3]},
        )
    )
    own = given.where("role <> 'request'").orderBy("time").collect()
    assert [(row["role"], row["leader_epoch"], row["isr"]) for row in own] == [
        ("leader_start", 4, [3, 1]),
        ("follower_start", 5, [1, 3]),
    ]


def test_a_change_that_was_not_refused_was_made(spark: SparkSession):
    changes = rows(
        spark,
        silver.ISR_CHANGES,
        {"second": 1, "change": "shrink", "isr": [3], "previous_isr": [3, 1]},
        {"second": 20, "change": "expand", "isr": [3, 1], "previous_isr": [3]},
        {"second": 21, "change": "refused"},
    )
    assert with_made_changes(changes, Contexts({("c", 3): "2.4.1"})).count() == 3
    made = with_made_changes(changes, Contexts({("c", 3): "2.3.1"})).where("change = 'committed'").collect()
    assert [(row["time"].timestamp(), row["isr"]) for row in made] == [(1, [3])]
