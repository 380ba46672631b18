"""Rows in groups become rows of gold, cases and counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.base.values import UNKNOWN_CLUSTER
from highwater.pipelines.controllers import rows as r
from highwater.pipelines.controllers import worker as w
from highwater.pipelines.controllers.cluster_facts import ClusterFacts, build_facts, collect_registration_rows
from highwater.pipelines.controllers.partition_work import _commits_unseen, judge_registrations
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.kafka.controller_rows import EventRow, LineRef
from highwater.pipelines.rules.worker import CASES, RESULTS
from highwater.schemas import controllers as c
from tests.unit.controllers.build import SECOND, event, line, only, record, state
from tests.unit.controllers.test_failover import zk_failure

_ARROW = {"long": pa.int64(), "int": pa.int32(), "string": pa.string(), "boolean": pa.bool_()}
Told = tuple[str, r.Row]


def batch(rows: Iterable[tuple[str, str, int, str, r.Row]]) -> pa.RecordBatch:
    """Rows as Spark brings them: sorted by key."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for cluster_id, topic, partition, kind, row in sorted(rows, key=lambda row: row[:3]):
        values = {**row._asdict(), **row.ref._asdict()}
        for name, value in zip((*r.KEY, "kind"), (cluster_id, topic, partition, kind), strict=True):
            columns[name].append(value)
        for name in r.ROW_TYPES:
            columns[name].append(values.get(name))
    types = {name: _ARROW.get(type_, pa.list_(pa.int32())) for name, type_ in r.ROW_TYPES.items()}
    head = {r.KEY[0]: pa.string(), r.KEY[1]: pa.string(), r.KEY[2]: pa.int32(), "kind": pa.string()}
    return pa.RecordBatch.from_pydict(dict(columns), schema=pa.schema(list({**head, **types}.items())))


def replayed(facts: ClusterFacts, rows: Iterable[tuple[str, str, int, str, r.Row]]) -> dict[str, list[dict[str, Any]]]:
    blobs = [row for blob in w.make_replayer(facts)(iter([batch(rows)])) for row in blob.to_pylist()]
    return read_blobs((blob["table"], blob["rows"]) for blob in blobs)


def in_micros(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return dicts(pa.Table.from_pylist(list(rows)))


def of_zk(cluster_id: str = "c") -> list[tuple[str, str, int, str, r.Row]]:
    rows, states, events = zk_failure()
    told: list[Told] = [(r.LEADERSHIP, row) for row in rows]
    told += [(r.PARTITION_STATE, row) for row in states]
    told.append((r.ANSWERED, r.AnsweredRequests(11_500, 3, LineRef("", 0, 0), 1, 0, None, 4)))
    return [(cluster_id, "t", 0, *one) for one in told] + [(cluster_id, *r.OF_CLUSTER, r.CLUSTER, events[0])]


def zk_plan() -> ClusterFacts:
    return build_facts(Contexts({("c", 1): "2.8.2"}), [("c", row) for row in zk_failure()[2]], [("c", "zookeeper")], {})


def test_a_failure_becomes_a_failover():
    found = replayed(zk_plan(), of_zk())
    one = only(found[c.FAILOVERS.name])
    assert (one["cluster_id"], one["sequence"], one["reason"], one["outcome"]) == ("c", 0, "failed", "completed")
    assert (one["detected_to_elected_ms"], one["taken_up_to_serving_ms"]) == (0.03, 0.45)
    assert one["serving_time"].timestamp() == 0.0115
    assert [row["sequence"] for row in found[c.CONTROLLER_TRANSITIONS.name]] == [0, 1, 2]
    counts = {row["rule_id"]: (row["checked"], row["error"]) for row in found[RESULTS]}
    assert counts == {"illegal-state-transition": (6, None), "failover-not-completed": (1, None)}
    assert not found[CASES]


def test_the_same_lines_in_two_files_count_once():
    rows = of_zk()
    again = [(*key, kind, row._replace(ref=LineRef("z", 5, 5))) for *key, kind, row in rows if kind != r.ANSWERED]
    assert replayed(zk_plan(), [*rows, *again]) == replayed(zk_plan(), rows)


def test_lines_that_are_alike_stay_as_many_as_one_file_has():
    row = line(1000, "controller")
    twice = [row, row._replace(ref=LineRef("a", 1, 1)), row._replace(ref=LineRef("a", 2, 2))]
    assert [one.ref for one in r.once(twice)] == [LineRef("a", 1, 1), LineRef("a", 2, 2)]


def test_a_case_has_its_lines():
    never = state(5000, "NonExistentPartition", "OfflinePartition", ref=LineRef("file", 70, 3))
    case = only(replayed(zk_plan(), [("c", "t", 0, r.PARTITION_STATE, never)])[CASES])
    assert (case["rule_id"], case["severity"]) == ("illegal-state-transition", "open")  # a single line may be misread
    assert (case["cluster_id"], case["topic"], case["partition"], case["time_us"]) == ("c", "t", 0, 5000)
    line_of = {"connection": None, "correlation_id": None, "file_id": "file", "byte_offset": 70}
    line_of |= {"source": "file", "derived": None}
    assert case["evidence"] == [{"time_us": 5000, "broker_id": 1, **line_of}]


def test_what_cannot_be_replayed_is_an_error_of_both_rules(monkeypatch: pytest.MonkeyPatch):
    def broken(*given: Any) -> Any:
        raise ValueError("no")

    monkeypatch.setattr(w, "judge_partition", broken)
    found = replayed(zk_plan(), of_zk())
    errors = {row["rule_id"]: row["error"] for row in found[RESULTS] if row["error"] is not None}
    assert errors == dict.fromkeys(w.RULES, "t-0: ValueError: no")


def node(offset: int, record_name: str, **values: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"cluster_id": "c", "broker_id": 1, "node_id": 2, "source": "log", "time_us": offset}
    base |= {"node_epoch": 7, "fenced": True, "in_controlled_shutdown": False, "controller_epoch": 1}
    base |= {"file_id": "log", "byte_offset": offset, "record_no": offset}
    return {**base, "offset": offset, "record": record_name, **values}


def test_a_change_of_registration_is_told_by_the_record_before():
    change = "BrokerRegistrationChangeRecord"
    rows = [
        node(9, "RegisterBrokerRecord"),
        node(12, change, fenced=False),
        node(15, change, fenced=False, in_controlled_shutdown=True),
        node(20, change, in_controlled_shutdown=True),
        node(30, "UnregisterBrokerRecord"),
    ]
    found = collect_registration_rows(reversed(rows), {})
    changes = ["registered", "unfenced", "controlled_shutdown", "fenced", "unregistered"]
    assert [row.change for row in found["c"]] == changes
    assert [row.change for row in collect_registration_rows(rows[1:], {})["c"]] == changes[2:]
    facts = build_facts(Contexts(), [], [], found)
    assert facts.kraft == {"c": True}
    registered = judge_registrations(facts, "c")
    assert [row["why"] for row in registered.rows[c.CONTROLLER_TRANSITIONS.name]][1:] == ["allowed"] * 4
    of_writer = judge_registrations(
        build_facts(Contexts(), [], [], collect_registration_rows(rows, {("c", 1): 3})), "c"
    )
    assert {row["controller"] for row in of_writer.rows[c.CONTROLLER_TRANSITIONS.name]} == {3}
    assert registered.rows[CASES] == []


def test_a_leader_that_was_fenced_and_leads_on_in_its_epoch():
    fence = [node(5, "FenceBrokerRecord", time_us=5 * SECOND)]
    facts = build_facts(Contexts(), [], [("c", "kraft")], collect_registration_rows(fence, {}))
    rows = [("c", "t", 0, r.RECORD, record(offset, 2, 0, offset)) for offset in (1, 9)]
    case = only(replayed(facts, rows)[CASES])
    assert case["rule_id"] == "failover-not-completed"
    assert [ref["byte_offset"] for ref in case["evidence"]] == [1, 5, 9]
    assert [ref["time_us"] for ref in case["evidence"]] == [1 * SECOND, 5 * SECOND, 9 * SECOND]


def test_nothing_of_two_brokers_is_compared_where_the_cluster_is_unknown():
    one = state(1000, "NewPartition", "OnlinePartition", leader=1, leader_epoch=0)
    other = one._replace(broker_id=2, time_us=2000, ref=LineRef("g", 1, 1))
    for cluster_id, cases in (("c", 1), (UNKNOWN_CLUSTER, 0)):
        rows = [(cluster_id, "t", 0, r.PARTITION_STATE, row) for row in (one, other)]
        assert len(replayed(ClusterFacts(), rows)[CASES]) == cases
    fences = collect_registration_rows([node(5, "FenceBrokerRecord", cluster_id=UNKNOWN_CLUSTER)], {})
    assert build_facts(Contexts(), [], [], fences).handled == {}


def test_which_controllers_a_cluster_has():
    fenced = event(1, "broker_fenced")
    facts = build_facts(Contexts(), [("a", fenced), ("b", fenced)], [("b", "zookeeper"), ("d", "kraft")], {})
    assert facts.kraft == {"a": True, "b": False, "d": True}
    mixed = build_facts(Contexts(), [], [("a", "zookeeper"), ("a", "kraft")], {})
    assert mixed.kraft == {"a": False}


def test_the_newest_version_of_a_cluster_and_its_settings():
    versions = {("c", 1): "2.8.2", ("c", 2): "3.9.1", ("d", 3): "4.0.0"}
    settings = {("c", 1, "min.insync.replicas"): ((0, "3"),), ("c", 2, "min.insync.replicas"): ((0, "3"),)}
    listed = {("c", broker_id, None): 0 for broker_id in (1, 2, 3)}
    facts = ClusterFacts(Contexts(versions, settings, listed_us=listed))
    assert (facts.version("c"), facts.version("other")) == ("3.9.1", None)
    assert [facts.contexts.min_isr("c", "t", broker_id, 5, 2) for broker_id in (1, 2, 3)] == [3, 2, None]


def test_the_smallest_isr_is_capped_from_the_upgrade_on_that_brought_it():
    configs = {("c", 1, "min.insync.replicas"): ((0, "3"),)}
    starts = {("c", 1): ((1, "2.8.2"), (50, "3.9.1"))}
    facts = ClusterFacts(Contexts({("c", 1): "3.9.1"}, configs, starts=starts, listed_us={("c", 1, None): 0}))
    assert [facts.contexts.min_isr("c", "t", 1, time_us, 2) for time_us in (5, 49, 50)] == [3, 3, 2]


def test_events_of_a_topic_are_of_its_partitions_only():
    deleted: EventRow = event(1, "topic_deleted", topic="t")
    facts = build_facts(Contexts(), [("c", deleted)], [], {})
    assert facts.topic_events == {("c", "t"): [deleted]}
    assert facts.events == {}


@pytest.mark.parametrize(
    ("versions", "is_unseen"),
    [
        ({("c", 2): "0.11.0.3", ("c", 1): "2.8.2"}, True),
        ({("c", 2): "2.8.2", ("c", 1): "0.11.0.3"}, False),
        ({("c", 1): "0.11.0.3", ("c", 3): "1.1.1"}, True),
        ({("c", 1): "0.11.0.3", ("c", 3): "2.8.2"}, False),
        ({("d", 1): "0.11.0.3"}, False),
        ({}, False),
    ],
)
def test_a_broker_of_unknown_release_commits_as_all_others_do(
    versions: dict[tuple[str, int], str], is_unseen: bool
) -> None:
    eras = {broker: ((0, version),) for broker, version in versions.items()}
    facts = cast(ClusterFacts, SimpleNamespace(contexts=SimpleNamespace(eras=eras)))
    assert _commits_unseen(facts, "c", 2, SECOND) == is_unseen
