"""Rows of tables as facts: each reading has the columns that it needs, and values that are not copied are right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import select_schema
from highwater.pipelines.lake.readings import Reading
from highwater.pipelines.rules.facts import files, history, traffic
from highwater.pipelines.rules.facts.columns import FACT_TYPES, KEY, TYPES
from highwater.pipelines.rules.facts.timeline import readings
from highwater.schemas import audit_facts as a
from highwater.schemas import gold, silver
from highwater.schemas.audit_facts import Fact
from highwater.schemas.replicas import REPLICA_TRUNCATIONS
from highwater.schemas.silver.data_dir import CHECKPOINTS, LOG_BATCHES, METADATA_RECORDS
from highwater.schemas.table import TableSpec
from highwater.schemas.topics import METADATA_TOPIC

PLACE: dict[str, Any] = {"cluster_id": "c", "topic": "t", "partition": 0, "broker_id": 1, "time": 7, "file_id": "f"}
PREMISES = Premises(Contexts(versions={("c", 1): "0.10.2.2"}))


def batch(spec: TableSpec, *rows: Mapping[str, Any]) -> pa.RecordBatch:
    """Rows of a table; columns that they lack are null, instants are microseconds."""
    there = [{name: value for name, value in {**PLACE, **row}.items() if name in spec.column_names} for row in rows]
    return pa.RecordBatch.from_pylist(there, select_schema(spec, spec.column_names))


def facts(rows: pa.RecordBatch) -> list[Fact]:
    """The facts in a batch."""
    return [fact_of(row) for row in rows.to_pylist()]


def fact_of(row: Mapping[str, Any]) -> Fact:
    """The fact in a row."""
    values = (row[name] for name in FACT_TYPES)
    return Fact._make(tuple(value) if isinstance(value, list) else value for value in values)


def test_each_reading_has_the_columns_that_it_needs(tmp_path: Path):
    there: list[Reading] = readings(Lake(None, tmp_path), PREMISES)
    assert len(there) == 15
    for spec, columns, rows_of, *_ in there:
        assert len(set(columns)) == len(columns)
        made = list(rows_of(pa.RecordBatch.from_pylist([], select_schema(spec, columns))))
        assert made
        assert all(rows.schema.names == list(TYPES) for rows in made)


def test_a_fact_has_its_key_its_order_and_its_line():
    line = {"role": "leader_start", "leader_epoch": 3, "start_offset": 5, "isr": [1, 2], "byte_offset": 9, "line_no": 2}
    made = history.leadership(batch(silver.LEADER_AND_ISR, line))
    row = made.to_pylist()[0]
    assert [row[name] for name in KEY] == ["c", "t", 0]
    assert (row["rank"], row["order_kind"], row["order_offset"], row["order_connection"]) == (0, 1, None, None)
    # A leader that starts names nobody else.
    expected = {"name": "leader_start", "leader": 1, "leader_epoch": 3, "offset": 5, "isr": (1, 2)}
    place = {"broker_id": 1, "file_id": "f", "byte_offset": 9, "line_no": 2}
    assert facts(made) == [Fact(a.LEADERSHIP, 7, **expected, **place)]


def test_the_metadata_log_is_no_topic_of_clients():
    there = [{"topic": METADATA_TOPIC, "role": "metadata"}, {"role": "metadata", "leader": 2}]
    assert [fact.leader for fact in facts(history.leadership(batch(silver.LEADER_AND_ISR, *there)))] == [2]


def test_a_transition_that_failed_is_no_state():
    rows = [{"to_state": state, "succeeded": done} for state, done in (("a", None), ("b", True), ("c", False))]
    assert [fact.name for fact in facts(history.partition_states(batch(silver.PARTITION_STATES, *rows)))] == ["a", "b"]


def test_an_unclean_election_that_a_tool_asked_for():
    event = {"event": "unclean_election", "leader": 2}
    rows = batch(
        silver.CONTROLLER_EVENTS,
        {**event, "time": 10_000_000},
        {**event, "time": 30_000_000},
        {**event, "time": 10_000_000, "cluster_id": "d"},
        {**event, "topic": None},
        {**event, "event": "election"},
    )
    # Twice: a request may be logged by several brokers.
    asked = [("c", 15_000_000), ("c", 14_000_000), ("c", 24_999_999)]
    assert [(fact.time_us, fact.name) for fact in facts(history.elections(rows, asked))] == [
        (10_000_000, "ELECT_LEADERS"),
        (30_000_000, None),
        (10_000_000, None),
    ]


def test_truncations():
    rows = batch(silver.TRUNCATIONS, {"source": "epoch_reply"}, {"source": "log", "offset": 4, "reason": "full"})
    assert [(fact.name, fact.offset, fact.detail) for fact in facts(history.truncations(rows))] == [("log", 4, "full")]
    replayed = batch(REPLICA_TRUNCATIONS, {"rule": "full"}, {"rule": "full", "logged_offset": 4, "logged_time": 8})
    assert facts(history.replayed_truncations(replayed)) == [
        Fact(a.TRUNCATION, 8, 1, name="replayed", offset=4, detail="full", derived=a.REPLAYED)
    ]


def test_fetches():
    rows = batch(
        silver.REPLICA_FETCHES,
        {"fetch_offset": 5, "leader_epoch": -1, "response_high_watermark": -1, "arrival_time": 1, "connection": "x"},
        {"fetch_offset": None, "leader_epoch": 0, "response_high_watermark": 0, "correlation_id": 3},
        {"fetch_offset": None},
        {"fetch_offset": 5, "broker_id": None},
    )
    made = traffic.fetches(rows)
    assert [(f.offset, f.leader_epoch, f.high_watermark, f.earliest_us) for f in facts(made)] == [
        (5, None, None, 1),
        (None, 0, 0, None),
    ]
    assert made.select(["order_broker", "order_connection", "order_correlation"]).to_pylist() == [
        {"order_broker": 1, "order_connection": "x", "order_correlation": None},
        {"order_broker": 1, "order_connection": None, "order_correlation": 3},
    ]


def test_high_watermarks_that_moved():
    sources = ("updated", "skipped", "non_monotonic", "follower", "set")
    rows = [{"source": source, "high_watermark": 3} for source in sources]
    loaded = {"source": "loaded", "log_end_offset": 9}
    logs, moved = traffic.high_watermarks(batch(silver.HIGH_WATERMARKS, *rows, {"source": "updated"}, loaded))
    assert [fact.name for fact in facts(moved)] == ["updated", "non_monotonic", "follower"]
    assert [(fact.kind, fact.offset, fact.high_watermark) for fact in facts(logs)] == [(a.LOADED, 9, None)]


def test_appends_of_old_leaders():
    old = traffic.without_retries({("c", 1): "0.10.2.2", ("c", 2): "0.11.0.3", ("d", 1): "1.1.1"})
    assert old == [("c", 1)]
    line = {"source": "replica_manager", "first_offset": 3, "last_offset": 4}
    others = ({"broker_id": 2}, {"cluster_id": "d"}, {"source": "log"}, {"first_offset": -1})
    rows = batch(
        silver.APPENDS,
        line,
        {**line, "last_offset": -1},
        *({**line, **other} for other in others),
    )
    assert [(fact.offset, fact.end_offset) for fact in facts(traffic.appends(rows, old))] == [(3, 5), (3, None)]


def test_operations():
    part = {"topic": "t", "partition": 2, "isr": [1, 2], "isr_inferred": False, "cause": "timer"}
    common = {"operation": "produce", "line_time": 9, "handled_time": 5, "completed_time": 8, "class": "late"}
    rows = batch(
        gold.DELAYED_OPERATIONS,
        {**common, "api": "PRODUCE", "residual_ms": 7.9, "known_bug": "K", "partitions": [part | {"base_offset": 4}]},
        {**common, "api": "END_TXN", "class": "jitter", "residual_ms": 7.9, "partitions": [part | {"base_offset": -1}]},
        {**common, "api": "WRITE_TXN_MARKERS", "partitions": [part, part | {"isr_inferred": True, "error_code": 3}]},
        {**common, "api": "PRODUCE", "class_reason": "r", "partitions": [part | {"error_code": 0}]},
        {**common, "operation": "fetch", "api": "FETCH", "partitions": []},
    )
    made = facts(traffic.operations(rows))
    assert [(f.name, f.offset, f.previous, f.detail, f.derived, f.isr) for f in made] == [
        ("late", 4, 7, "|K|PRODUCE", a.MATCHED_APPEND, (1, 2)),
        ("jitter", None, None, "||END_TXN", a.COMPUTED_PARTITION, (1, 2)),
        ("late", None, None, "||WRITE_TXN_MARKERS", a.COUNTED_OFFSET, (1, 2)),
        ("late", None, None, "||WRITE_TXN_MARKERS", a.COUNTED_OFFSET, None),
        ("late", None, None, "r||PRODUCE", None, (1, 2)),
    ]
    assert {(f.time_us, f.latest_us, f.log_append_time_us) for f in made} == {(9, 5, 8)}


def test_answers():
    part = {"topic": "id:x", "partition": 1, "base_offset": 5, "log_append_time_ms": 3}
    rows = batch(
        silver.PRODUCE_REQUESTS,
        {"acks": -1, "partitions": [part, part | {"base_offset": -1}], "broker_id": None},
        {"acks": 1, "partitions": [part | {"topic": "id:y", "log_append_time_ms": -1}]},
        {"acks": 1, "cluster_id": "d", "partitions": [part]},
    )
    made = traffic.answers(rows, {("c", "x"): "named"})
    assert made.column("topic").to_pylist() == ["named", "id:y", "id:x"]
    assert made.column("order_offset").to_pylist() == [5, 5, 5]
    assert [(fact.name, fact.log_append_time_us, fact.broker_id) for fact in facts(made)] == [
        ("all", 3_000, None),
        ("1", None, 1),
        ("1", 3_000, 1),
    ]


# ------------------------------------------------------------ files

FILE = {**PLACE, "directory": "d", "name": "t-0/leader-epoch-checkpoint", "run_id": "r1", "replica_state": "current"}


def test_the_topic_id_beside_a_file_as_it_was_read_last():
    beside = {**FILE, "file_id": "m", "name": "t-0/partition.metadata"}
    there = [
        {**FILE, "file_id": "old"},
        {**FILE, "file_id": "new", "run_id": "r2"},
        beside,
        {**FILE, "file_id": "elsewhere", "directory": "e"},
        {**FILE, "file_id": "top", "topic": None, "partition": None, "name": "recovery-point-offset-checkpoint"},
        {**beside, "file_id": "nobody's", "broker_id": None},
    ]
    told = [("m", "id"), ("nobody's", "other"), ("gone", "other")]
    assert files.topic_ids(there, told) == {"new": "id", "m": "id", "elsewhere": None, "top": None, "nobody's": None}


def test_checkpoints():
    epoch = {"kind": "leader-epoch-checkpoint", "replica_state": "current", "leader_epoch": 2, "offset": 5}
    offset = {"kind": "recovery-point-offset-checkpoint", "offset": 6}
    others = ({"file_id": "old"}, {"problem": "p"}, {"topic": None}, {"broker_id": None})
    rows = batch(
        CHECKPOINTS,
        epoch,
        offset,
        {**epoch, "replica_state": "stray"},
        *({**offset, **other} for other in others),
        {**offset, "kind": "cleaner-offset-checkpoint"},
    )
    made = [fact for part in files.checkpoints(rows, {"f": "id"}) for fact in facts(part)]
    assert [(fact.kind, fact.leader_epoch, fact.offset, fact.topic_id, fact.time_us) for fact in made] == [
        (a.CHECKPOINT, None, 6, None, a.NO_TIME_US),
        (a.EPOCH_ENTRY, 2, 5, "id", a.NO_TIME_US),
    ]


def test_metadata_records():
    record = {"source": "log", "applied": True, "record": "PartitionRecord", "offset": 8, "leader_recovery_state": 1}
    others = ({"source": "snapshot"}, {"applied": False}, {"time": None}, {"file_id": "old"}, {"topic": None})
    rows = batch(
        METADATA_RECORDS,
        record,
        {**record, "leader_recovery_state": 0},
        *({**record, **other} for other in others),
    )
    made = facts(files.metadata(rows, {"f": None}))
    assert [(fact.name, fact.previous, fact.detail) for fact in made] == [
        ("PartitionRecord", 8, a.RECOVERING),
        ("PartitionRecord", 8, None),
    ]


def test_batches():
    stored = {
        "base_offset": 3,
        "last_offset": 4,
        "crc_ok": True,
        "is_log_append_time": False,
        "max_time": 9,
        "magic": 2,
    }
    rows = batch(
        LOG_BATCHES,
        {**stored, "replica_state": "current"},
        {**stored, "replica_state": "current", "crc_ok": False, "is_log_append_time": True},
        {**stored, "replica_state": "future"},
        {**stored, "replica_state": "current", "base_offset": None},
    )
    made = facts(files.batches(rows, {"f": "id"}))
    assert [(f.name, f.detail, f.offset, f.end_offset, f.topic_id) for f in made] == [
        ("intact", "CreateTime", 3, 5, "id"),
        ("corrupt", "LogAppendTime", 3, 5, "id"),
    ]
    assert made[0].log_append_time_us == 9
