"""A request and the outcomes of its partitions, put together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import produce_worker as w
from highwater.pipelines.replay.coordinators import BY_DEFAULT
from highwater.pipelines.replay.judge import Tolerances
from highwater.pipelines.replay.late import OPERATION_SHAPES
from highwater.pipelines.replay.partition_events import operation_ids
from highwater.pipelines.replay.partition_worker import KEY_TYPES, OUTCOME_TYPES
from highwater.schemas import silver
from highwater.schemas.topics import GROUP_TOPIC
from tests.unit.replay.rows import batch_of

READER = w.ProduceReader(Bounds({("c", 1): 100}), BY_DEFAULT)
WORKER = w.ProduceWorker(Tolerances(5_000, 100_000), {("c", 1): ((0, "3.9.1"),)}, {})
INPUT = pa.schema([w.SCHEMA.field(name) for name in (*w.KEY_TYPES, *w.COLUMNS)])
INSTANTS = ("arrival_time", "dequeued_time", "handled_time", "completed_time", "time")
PARTS = [{"topic": "t", "partition": 0, "error_code": 0}, {"topic": "u", "partition": 1, "error_code": 0}]
Row = dict[str, Any]


def request(number: int, at_us: int = 200, **values: Any) -> Row:
    row: Row = {"cluster_id": "c", "broker_id": 1, "connection": "x", "correlation_id": number, "client_id": "client"}
    row |= {"api": "PRODUCE", "acks": -1, "timeout_ms": 30_000, "remote_time_ms": 0.5, "partitions": PARTS}
    return row | {name: at_us + passed for passed, name in enumerate(INSTANTS)} | values


def produces(rows: Iterable[Row], begin: int = 0) -> list[Row]:
    batch = batch_of(silver.PRODUCE_REQUESTS, w.PRODUCE_COLUMNS, rows).slice(begin)
    return [row for part in READER.produces(batch) for row in part.to_pylist()]


def coordinated(rows: Iterable[Row]) -> list[Row]:
    batch = batch_of(silver.REQUESTS, w.COORDINATOR_COLUMNS, [_without(row, "acks", "timeout_ms") for row in rows])
    return [row for part in READER.requests(batch) for row in part.to_pylist()]


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def identity(row: Row) -> str:
    names = ("cluster_id", "broker_id", "connection", "correlation_id", "time")
    batch = batch_of(silver.PRODUCE_REQUESTS, names, [{name: row[name] for name in names}])
    text: str = operation_ids(batch)[0].as_py()
    return text


def outcome(row: Row, part: Row, base_offset: int = 5) -> Row:
    values: Row = {"cluster_id": "c", "broker_id": 1, "topic": part["topic"], "partition": part["partition"]}
    values |= {"request_id": identity(row), "base_offset": base_offset, "handled_us": row["handled_time"]}
    values |= {"error_code": 0, "predicted_error_code": 0, "leader_epoch": 3, "cause": "high_watermark", "isr": [1, 2]}
    values |= {"lowest_us": 203, "highest_us": 204, "closing_replica": 2, "without_closing_us": 204}
    return values | {"isr_inferred": False, "proven_early": False, "required_offset_derived": base_offset + 1}


def outcomes(rows: Iterable[Row]) -> list[Row]:
    schema = pa.schema([w.SCHEMA.field(name) for name in KEY_TYPES if name != "broker_id"])
    schema = schema.append(pa.field("broker_id", pa.int32()))
    for name in OUTCOME_TYPES:
        schema = schema.append(w.SCHEMA.field(f"outcome_{name}").with_name(name))
    return [row for part in w.outcomes(pa.RecordBatch.from_pylist(list(rows), schema)) for row in part.to_pylist()]


def operations(rows: Iterable[Row], size: int = 100) -> list[Row]:
    def place(row: Row) -> list[tuple[bool, Any]]:
        return [(row[name] is not None, row[name]) for name in (*w.KEY_TYPES, *w.ORDER)]

    ordered = sorted(rows, key=place)
    parts = [ordered[at : at + size] for at in range(0, len(ordered), size)]
    batches = [pa.RecordBatch.from_pylist([_without(row, "rank") for row in part], INPUT) for part in parts]
    tables = read_blobs((blob["table"], blob["rows"]) for out in WORKER(iter(batches)) for blob in out.to_pylist())
    return [row for table in OPERATION_SHAPES for row in tables[table]]


def test_a_request_meets_its_outcomes():
    row = request(1)
    (operation,) = operations([*produces([row]), *outcomes(outcome(row, part) for part in PARTS)])
    assert (operation["api"], operation["operation_id"], operation["timeout_ms"]) == ("PRODUCE", identity(row), 30_000)
    assert [(part["topic"], part["partition"], part["base_offset"]) for part in operation["partitions"]] == [
        ("t", 0, 5),
        ("u", 1, 5),
    ]
    instants = ("arrival_time", "handled_time", "completed_time", "line_time")
    assert [round(operation[name].timestamp() * 1e6) for name in instants] == [200, 202, 203, 204]
    assert operation["wait_ms"] == 0.5


def test_outcomes_of_what_did_not_wait_are_of_no_operation():
    waited, did_not = request(1), request(2, acks=1)
    rows = [*produces([waited, did_not]), *outcomes(outcome(row, PARTS[0]) for row in (waited, did_not, request(3)))]
    assert [operation["correlation_id"] for operation in operations(rows)] == [1]


def test_requests_before_the_bound_are_not_read():
    rows = [request(1, 97), request(2, 98), request(3, 1, broker_id=2)]
    assert [row["correlation_id"] for row in produces(rows)] == [2, 3]
    assert [row["correlation_id"] for row in produces(rows, begin=2)] == [3]


def test_a_broker_that_is_not_known_has_a_number():
    (row,) = produces([request(1, broker_id=None)])
    assert (row["broker_id"], row["operation_id"]) == (-1, identity(request(1, broker_id=None)))


def test_lists_of_partitions():
    rows = [request(1), request(2, partitions=[]), request(3, partitions=PARTS[1:])]
    lists = [(row["topics"], row["partitions"], row["error_codes"]) for row in produces(rows, begin=1)]
    assert lists == [([], [], []), (["u"], [1], [0])]


@pytest.mark.parametrize(
    ("values", "topics"),
    [
        ({"api": "OFFSET_COMMIT", "group_id": "g1", "records": 1}, [GROUP_TOPIC]),
        ({"api": "OFFSET_COMMIT", "group_id": "g1", "records": 0}, None),
        ({"api": "WRITE_TXN_MARKERS"}, ["t", "u"]),
        ({"api": "WRITE_TXN_MARKERS", "partitions": []}, None),
        ({"api": "WRITE_TXN_MARKERS", "broker_id": None}, None),
        ({"api": "METADATA"}, None),
    ],
)
def test_requests_of_coordinators_wait_too(values: Row, topics: list[str] | None):
    rows = coordinated([request(1) | values])
    assert [row["topics"] for row in rows] == ([] if topics is None else [topics])


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 1))), unique_by=lambda item: item[0], max_size=5),
    st.lists(st.integers(0, 5), max_size=3),
    st.integers(1, 4),
)
def test_each_request_is_one_operation_whatever_the_files(
    asked: list[tuple[int, set[int]]], in_two_files: list[int], size: int
):
    requests = {number: request(number) for number, _ in asked}
    rows = produces([*requests.values(), *(requests[number] for number in in_two_files if number in requests)])
    rows += outcomes(outcome(requests[number], PARTS[at], 10 * number + at) for number, parts in asked for at in parts)
    rows += outcomes([outcome(request(99), PARTS[0])])
    given_offsets = {
        operation["correlation_id"]: {part["base_offset"] for part in operation["partitions"]} - {None}
        for operation in operations(rows, size)
    }
    assert len(operations(rows, size)) == len(asked)
    assert given_offsets == {number: {10 * number + at for at in parts} for number, parts in asked}
