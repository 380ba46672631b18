"""The controllers' replay on Spark: from silver rows of each kind to the tables, the cases and the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row

from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.controllers.stage import replay_of_controllers
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.lake.folds import fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.staged import staging
from highwater.pipelines.rules.worker import CASES, RESULTS
from highwater.schemas import controllers as c
from highwater.schemas import gold, silver
from highwater.schemas.silver.data_dir import METADATA_RECORDS
from highwater.schemas.table import TableSpec

pytestmark = pytest.mark.spark

LOST = "Newly added brokers: , deleted brokers: 2, bounced brokers: , all live brokers: 1,3"
OLD = {"leader": 2, "leader_epoch": 0, "isr": [2, 3], "partition_epoch": 0}
NEW = {"leader": 3, "leader_epoch": 1, "isr": [3], "partition_epoch": 1}
Facts = Iterable[tuple[TableSpec, dict[str, Any]]]


def at(second: float) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def fact(spec: TableSpec, second: float, broker_id: int = 1, **values: Any) -> tuple[TableSpec, dict[str, Any]]:
    place = {"cluster_id": "c", "broker_id": broker_id, "file_id": f"{spec.name}{broker_id}"}
    place |= {"byte_offset": int(second * 1000), "line_no": int(second), "fact_no": 0, "topic": "t", "partition": 0}
    return spec, {**dict.fromkeys(spec.column_names), **place, "time": at(second), **values}


def filled(lake: Lake, facts: Facts) -> Lake:
    rows: dict[str, list[tuple[Any, ...]]] = {}
    specs = {}
    for spec, row in facts:
        specs[spec.full_name] = spec
        rows.setdefault(spec.full_name, []).append(tuple(row[name] for name in spec.column_names))
    for name, spec in specs.items():
        lake.create([spec])
        lake.append_once(spec, lake.spark.createDataFrame(rows[name], spec.schema), "run")
    return lake


def zookeeper() -> Facts:
    """Broker 2 fails, and controller 1 elects broker 3; then broker 3 has an ISR of its own alone for a while."""
    states, rows, events = silver.PARTITION_STATES, silver.LEADER_AND_ISR, silver.CONTROLLER_EVENTS
    yield fact(states, 1, from_state="NewPartition", to_state="OnlinePartition", controller_epoch=1, **OLD)
    yield fact(rows, 2, 2, role="leader_start", leader=2, leader_epoch=0)
    yield fact(events, 11, event="brokers_changed", topic=None, partition=None, detail=LOST)
    yield fact(events, 11.01, event="broker_failed", topic=None, partition=None, brokers=[2])
    yield fact(states, 11.02, from_state="OnlinePartition", to_state="OfflinePartition", controller_epoch=1)
    yield fact(states, 11.03, from_state="OfflinePartition", to_state="OnlinePartition", controller_epoch=1, **NEW)
    change = {"replica_id": 2, "from_state": "OnlineReplica", "to_state": "OfflineReplica", "controller_epoch": 1}
    yield fact(silver.REPLICA_STATES, 11.04, **change)
    yield fact(rows, 11.05, role="controller", controller_epoch=1, **NEW)
    yield fact(rows, 11.06, 3, role="request", controller_id=1, controller_epoch=1, replicas=[2, 3], **NEW)
    yield fact(rows, 11.07, 3, role="leader_start", leader=3, leader_epoch=1)
    yield fact(silver.ISR_CHANGES, 20, 3, change="committed", isr=[2, 3], partition_epoch=2)
    yield fact(silver.BROKER_LIFECYCLE, 0.5, event="starting", mode="zookeeper")
    fetch = {"source": "request", "replica_id": 2, "leader_epoch": 1, "response_error_code": 0}
    for second in (13.0, 12.5):
        yield fact(silver.REPLICA_FETCHES, second, 3, completed_time=at(second), **fetch)


def produced(second: float, error_code: int) -> tuple[TableSpec, dict[str, Any]]:
    shape = gold.DELAYED_OPERATIONS.schema["partitions"].dataType.elementType  # type: ignore[attr-defined]
    part = dict.fromkeys(shape.names)
    part |= {"topic": "t", "partition": 0, "leader_epoch": 1, "error_code": error_code}
    part |= {"cause": "at_once", "isr": [], "isr_inferred": False}
    values = {"operation_id": f"{second}", "operation": "produce", "api": "PRODUCE", "succeeded": error_code == 0}
    times = dict.fromkeys(("arrival_time", "line_time", "handled_time", "completed_time"), at(second))
    lists: dict[str, Any] = {"error_codes": [error_code], "predicted_error_codes": []}
    named = {"class": "explained", "cause": "at_once", "wait_ms": 0.0, "partitions": [Row(**part)]}
    spec, row = fact(gold.DELAYED_OPERATIONS, second, 3, **values, **times, **lists, **named)
    return spec, {name: row[name] for name in spec.column_names}


class Replayed(NamedTuple):
    """What the rules get of the controllers' replay."""

    cases: list[dict[str, Any]]
    checked: dict[tuple[str, str], int]
    errors: list[str]


def replay_controllers(lake: Lake, premises: Premises, stamp: str) -> Replayed:
    """The replay in a query of its own."""
    with staging(lake) as folder:
        beside = replay_of_controllers(lake, premises, folder, stamp)
        made = folder.written(fold(lake, beside.fold), beside.tables)
        beside.commit(made)
        checked: Counter[tuple[str, str]] = Counter()
        for row in made.read_few_rows(RESULTS):
            checked[row["cluster_id"], row["rule_id"]] += row["checked"]
        errors = [row["error"] for row in made.read_few_rows(RESULTS) if row["error"] is not None]
        return Replayed(made.read_few_rows(CASES), dict(checked), errors)


def test_a_failover_of_zookeeper(lake: Lake):
    filled(lake, [*zookeeper(), produced(12.25, 0), produced(14.5, 19), produced(14.75, 19), produced(30, 19)])
    settings = {("c", 3, "min.insync.replicas"): ((0, "2"),)}
    contexts = Contexts({("c", 1): "2.8.2"}, settings, listed_us={("c", 3, None): 0})
    found = replay_controllers(lake, replace(collect_premises(lake, 0), contexts=contexts), "run")
    assert (found.cases, found.errors) == ([], [])
    assert found.checked == {("c", "illegal-state-transition"): 5, ("c", "failover-not-completed"): 1}
    one = lake.read(c.FAILOVERS).collect()
    assert [(row["reason"], row["strategy"], row["outcome"], row["sequence"]) for row in one] == [
        ("failed", "offline", "completed", 0)
    ]
    assert one[0]["serving_time"].timestamp() == 12.25
    assert (one[0]["detected_to_elected_ms"], one[0]["taken_up_to_serving_ms"]) == (30, 1180)
    under = lake.read(c.AVAILABILITY).collect()
    assert [(row["state"], row["isr"], row["min_insync_replicas"]) for row in under] == [("under_min_isr", [3], 2)]
    assert (under[0]["started_time"].timestamp(), under[0]["ended_time"].timestamp()) == (11.03, 20)
    assert (under[0]["duration_ms"], under[0]["produces_refused"]) == (8970, 2)
    moved = lake.read(c.CONTROLLER_TRANSITIONS).orderBy("machine", "sequence").collect()
    assert [(row["machine"], row["why"]) for row in moved] == [
        ("partition", "first_of_controller"),
        ("partition", "allowed"),
        ("partition", "allowed"),
        ("replica", "first_of_controller"),
    ]


def metadata(offset: int, name: str, broker_id: int = 1, **values: Any) -> tuple[TableSpec, dict[str, Any]]:
    base = {"offset": offset, "change_no": 0, "source": "log", "record": name, "applied": True, "record_no": offset}
    base |= {"controller_epoch": 4, "topic": None, "partition": None, **values}
    spec, row = fact(METADATA_RECORDS, offset, broker_id, **base)
    return spec, {name: row[name] for name in spec.column_names}


def kraft(broker_id: int) -> Facts:
    """Broker 2 is fenced, and its partition has another leader in the same write; broker 2 leads on in another."""
    place: dict[str, Any] = {"topic": "t", "partition": 0, "topic_id": "id", "replicas": [2, 3], "broker_id": broker_id}
    node: dict[str, Any] = {"node_id": 2, "node_epoch": 2, "in_controlled_shutdown": False, "broker_id": broker_id}
    state = {"leader": 2, "leader_epoch": 0, "isr": [2, 3]}
    yield metadata(1, "LeaderChangeMessage", leader=9, broker_id=broker_id)
    yield metadata(2, "RegisterBrokerRecord", fenced=True, **node)
    yield metadata(3, "PartitionRecord", partition_epoch=0, **place, **state)
    yield metadata(4, "PartitionRecord", partition_epoch=0, **{**place, "partition": 1}, **state)
    yield metadata(5, "UnfenceBrokerRecord", fenced=False, **node)
    yield metadata(9, "PartitionChangeRecord", **place, leader=3, leader_epoch=1, isr=[3], partition_epoch=1)
    yield metadata(10, "FenceBrokerRecord", fenced=True, **node)
    yield metadata(12, "PartitionChangeRecord", partition_epoch=1, **{**place, "partition": 1}, **state)
    yield metadata(10, "PartitionRecord", **{**place, "source": "snapshot"}, leader=3, record_no=999)


def test_a_fence_of_kraft_that_left_a_partition_behind(lake: Lake):
    line = {"event": "broker_fenced", "detail": "Fencing broker 2 because its session has timed out."}
    decided = fact(silver.CONTROLLER_EVENTS, 8.99, 9, subject_broker_id=2, topic=None, partition=None, **line)
    filled(lake, [*kraft(1), *kraft(2), decided])
    contexts = Contexts({("c", 1): "3.9.1"})
    cases, checked, errors = replay_controllers(lake, replace(collect_premises(lake, 0), contexts=contexts), "run")
    tables = {spec.name: lake.read(spec).collect() for spec in c.TABLES if lake.exists(spec)}
    transitions = [(row["machine"], row["partition"], row["why"]) for row in tables[c.CONTROLLER_TRANSITIONS.name]]
    handovers = sorted(tables[c.FAILOVERS.name], key=lambda row: row["partition"])
    assert errors == []
    assert [(case["rule_id"], case["topic"], case["partition"]) for case in cases] == [
        ("failover-not-completed", "t", 1)
    ]
    assert [ref["byte_offset"] for ref in cases[0]["evidence"]] == [4000, 10_000, 12_000]
    # Both copies of the metadata log: four states of partitions and three steps of a registration each.
    assert checked["c", "illegal-state-transition"] == 14
    assert sorted(transitions) == [
        ("broker_registration", -1, "allowed"),
        ("broker_registration", -1, "allowed"),
        ("broker_registration", -1, "first_of_controller"),
        ("kraft_partition", 0, "allowed"),
        ("kraft_partition", 0, "first_of_controller"),
        ("kraft_partition", 1, "allowed"),
        ("kraft_partition", 1, "first_of_controller"),
    ]
    assert [(row["new_leader"], row["elected_clock"], row["outcome"], row["reason"]) for row in handovers] == [
        (3, 9, "unfinished", "fenced"),
        (None, None, "not_observed", "fenced"),
    ]
    assert handovers[0]["detected_to_elected_ms"] == 10


def test_an_empty_lake(lake: Lake):
    found = replay_controllers(lake, Premises(), "run")
    assert not any(lake.rows(spec, *spec.keys).num_rows for spec in c.TABLES)
    assert (found.cases, found.errors) == ([], [])
    assert found.checked == {}
