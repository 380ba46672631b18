"""Rows of tables go to the groups of partitions and clusters; what comes from the traffic is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.groups import list_values
from highwater.pipelines.controllers import rows as r
from highwater.pipelines.kafka.controller_rows import (
    ASKED,
    COMMITTED,
    EventRow,
    LeadershipRow,
    LineRef,
    RecordRow,
    StateRow,
)
from highwater.schemas import gold, silver
from highwater.schemas.silver.data_dir import METADATA_RECORDS
from highwater.schemas.table import TableSpec
from tests.unit.tables import table_rows

OF_PARTITION, OF_CLUSTER = ("c", "t", 0), ("c", "", -1)
PLACE = {"cluster_id": "c", "broker_id": 1, "file_id": "f", "byte_offset": 5, "line_no": 6, "time": 7}
HERE = {**PLACE, "topic": "t", "partition": 0}
METADATA = {"topic": "__cluster_metadata", "partition": 0}
REF = LineRef("f", 5, 6)


def decoded(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """Keys and rows as the fold has them."""
    found = []
    for batch in batches:
        keys = zip(*list_values(batch.columns[:3]), strict=True)
        found += [(key, *row) for key, row in zip(keys, r.decode_rows(list_values(batch.columns[3:])), strict=True)]
    return found


def rows(spec: TableSpec, *values: Mapping[str, Any]) -> pa.RecordBatch:
    return table_rows(spec, values)


def test_leadership() -> None:
    batch = rows(
        silver.LEADER_AND_ISR,
        {**HERE, "role": "leader_start", "leader_epoch": 3, "isr": [1, 2]},
        {**HERE, "role": "metadata", "leader": 2},
        {**HERE, **METADATA, "role": "request", "leader": 2},
    )
    start = LeadershipRow(7, 1, REF, "t", 0, "leader_start", leader=1, leader_epoch=3, isr=(1, 2))
    told = LeadershipRow(7, 1, REF, "t", 0, "metadata", leader=2)
    assert decoded(r.leadership(batch)) == [
        (OF_PARTITION, r.LEADERSHIP, start),
        (OF_PARTITION, r.LEADERSHIP, told),
    ]


def test_states_of_replicas() -> None:
    batch = rows(silver.REPLICA_STATES, {**HERE, "replica_id": 2, "from_state": "a", "to_state": "b"})
    state = StateRow(7, 1, REF, "t", 0, "a", "b", succeeded=True, replica_id=2)
    assert decoded(r.states(batch, r.REPLICA_STATE)) == [(OF_PARTITION, r.REPLICA_STATE, state)]


def test_changes_of_an_isr() -> None:
    batch = rows(
        silver.ISR_CHANGES,
        {**HERE, "change": "committed", "isr": [1]},
        {**HERE, "change": "expand", "isr": [1, 2], "partition_epoch": 4},
    )
    assert [row for _, _, row in decoded(r.isr_changes(batch))] == [
        LeadershipRow(7, 1, REF, "t", 0, COMMITTED, leader=1, isr=(1,)),
        LeadershipRow(7, 1, REF, "t", 0, ASKED, leader=1, isr=(1, 2), partition_epoch=4),
    ]


def test_events_of_partitions() -> None:
    batch = rows(
        silver.CONTROLLER_EVENTS,
        {**PLACE, "event": "broker_failed", "brokers": [2]},
        {**HERE, "event": "topic_deleted"},
        {**HERE, "event": "something_else"},
    )
    deleted = EventRow(7, 1, REF, "topic_deleted", topic="t", partition=0)
    assert decoded(r.events(batch)) == [(OF_PARTITION, r.EVENT, deleted)]


def test_rows_show_their_cluster() -> None:
    batch = rows(silver.LEADER_AND_ISR, {**HERE, **METADATA, "role": "metadata"}, {**HERE, "role": "metadata"})
    found = decoded(r.add_cluster(batch, r.leadership))
    assert [(key, kind) for key, kind, _ in found] == [(OF_PARTITION, r.LEADERSHIP), (OF_CLUSTER, r.CLUSTER)]


def test_records_of_the_metadata_log() -> None:
    state: dict[str, Any] = {"topic_id": "id", "leader": 2, "leader_epoch": 3, "partition_epoch": 4}
    state |= {"isr": [2], "replicas": [1, 2], "controller_epoch": 8}
    record = {**HERE, **state, "record_no": 9}
    batch = rows(
        METADATA_RECORDS,
        *[
            {name: value for name, value in {**record, **more}.items() if name != "line_no"}
            for more in (
                {"offset": 10, "leader_recovery_state": 1},
                {"offset": 11, "controller_epoch": 9, "adding_replicas": [3]},
            )
        ],
    )
    first = RecordRow(7, 1, LineRef("f", 5, 9), "t", 0, 10, "id", 2, 3, 4, (2,), (1, 2))
    second = first._replace(offset=11, adding_replicas=(3,))
    assert decoded(r.records(batch, {("c", 8): 5}, {("c", 1): 10})) == [
        (OF_PARTITION, r.RECORD, first._replace(recovering=True, controller_id=5, committed=True)),
        (OF_PARTITION, r.RECORD, second),
    ]


answers = st.tuples(
    st.integers(1, 2),  # broker
    st.sampled_from(["t", "u", "__cluster_metadata"]),
    st.none() | st.integers(0, 1),  # leader epoch
    st.sampled_from([0, 0, 19, 20, 3]),
    st.integers(0, 4_000_000),
)


@given(st.lists(st.lists(answers, max_size=9), max_size=3))
def test_answers_are_counted(batches: list[list[tuple[Any, ...]]]) -> None:
    def operation(broker: int, topic: str, epoch: int | None, code: int, time_us: int) -> dict[str, Any]:
        part = {"topic": topic, "partition": 0, "leader_epoch": epoch, "error_code": code}
        return {"cluster_id": "c", "broker_id": broker, "completed_time": time_us, "partitions": [part, part]}

    specs = gold.DELAYED_OPERATIONS
    given_batches = [r.produced(rows(specs, *[operation(*answer) for answer in batch])) for batch in batches]
    seen = [row for batch in given_batches for row in decoded(batch)]
    every = [answer for batch in batches for answer in batch if answer[1] != "__cluster_metadata" and answer[3] != 3]
    first: dict[tuple[Any, ...], int] = {}
    counts: Counter[tuple[Any, ...]] = Counter()
    for broker, topic, epoch, code, time_us in every:
        place = (broker, topic, epoch, code, time_us // 1_000_000 if code else None)
        first[place] = min(first.get(place, time_us), time_us)
        counts[place] += 2
    firsts: dict[tuple[Any, ...], int] = {}
    sums: Counter[tuple[Any, ...]] = Counter()
    for (_, topic, _), kind, row in seen:
        assert kind == r.ANSWERED
        place = (row.broker_id, topic, row.leader_epoch, row.error_code, row.second)
        firsts[place] = min(firsts.get(place, row.time_us), row.time_us)
        sums[place] += row.requests
    assert (firsts, sums) == (first, counts)
    assert len(seen) <= len(counts) * len(batches)


def test_a_cluster_of_which_only_nodes_are_known_has_its_group() -> None:
    node = {name: value for name, value in PLACE.items() if name != "line_no"} | {"node_id": 4}
    nothing = EventRow(None, None, LineRef(None, None, None), None)  # type: ignore[arg-type]
    assert decoded(r.clusters(rows(METADATA_RECORDS, node, node))) == [(OF_CLUSTER, r.CLUSTER, nothing)]


def test_fetches_that_were_served() -> None:
    fetch = {**HERE, "leader_epoch": 2, "response_error_code": 0}
    batch = rows(silver.REPLICA_FETCHES, *[{**fetch, "completed_time": time_us} for time_us in (30, 20, 40)])
    answered = r.AnsweredRequests(20, 1, LineRef(None, None, None), 2, 0, None, 3)  # type: ignore[arg-type]
    assert decoded(r.served(batch)) == [(OF_PARTITION, r.ANSWERED, answered)]
