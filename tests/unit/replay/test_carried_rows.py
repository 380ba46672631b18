"""What one run leaves to the next, and how that one reads it."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.base.arrow_rows import arrow_schema, shaped
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay import carried_rows as carried_rows_module
from highwater.pipelines.replay.batches import BATCH, ROLL, STABLE
from highwater.pipelines.replay.carried_rows import (
    FOLDS_SCHEMA,
    LEFT_WAKE_TYPES,
    OpenRows,
    carried_folds,
    carried_rows,
    last_fetches,
    outcomes,
    partition_states,
    wakes_left,
    wakes_to_carry,
    watches,
)
from highwater.pipelines.replay.connections import GONE_US, SHAPES, WATCHES
from highwater.pipelines.replay.partition_worker import CARRIED_WAKE, KEY_TYPES, OUTCOME_TYPES, WAKE_TYPES
from highwater.pipelines.replay.wakes import LOCAL_START
from highwater.schemas.state import CONNECTION, OUTCOME, PARTITION, WAKE, WATCH

WAKES = arrow_schema(LEFT_WAKE_TYPES)
PLACE = {"cluster_id": "c", "broker_id": 1, "topic": "a-b", "partition": 12}
FOLD_TYPES = KEY_TYPES | {"frozen": "binary", "pending": "long", "last_us": "long"}
NO_BOUNDS = Bounds({})

WakeRow = tuple[str, int, bool | None, bool]


def wakes(rows: Iterable[WakeRow], partition: int = 0) -> pa.Table:
    names = ("wake", "wake_offset", "unstable", "awaited")
    place = {"cluster_id": "c", "broker_id": 1, "topic": "t", "partition": partition}
    return pa.Table.from_pylist([place | dict(zip(names, row, strict=True)) for row in rows], WAKES)


def carried(rows: Iterable[WakeRow]) -> set[tuple[str, int]]:
    return {(row["wake"], row["wake_offset"]) for row in wakes_to_carry(wakes(rows)).to_pylist()}


def test_the_newest_segment_is_carried_to_sessions_that_begin_later() -> None:
    rows = [(ROLL, 10, False, False), (ROLL, 20, False, False), (BATCH, 20, False, False), (BATCH, 30, False, True)]
    assert carried(rows) == {(ROLL, 20), (BATCH, 30)}


def test_so_are_all_segments_that_a_transaction_may_still_hold_back() -> None:
    rows: list[WakeRow] = [(ROLL, offset, True, False) for offset in (10, 20, 30, 40)]
    assert carried([*rows, (STABLE, 25, False, False)]) == {(ROLL, 20), (ROLL, 30), (ROLL, 40)}
    assert carried(rows) == {(ROLL, offset) for offset in (10, 20, 30, 40)}
    passed = [*rows, (ROLL, 15, False, False), (STABLE, 50, False, False)]
    assert carried(passed) == {(ROLL, 40), (ROLL, 15)}


def test_where_the_local_log_begins_by_now_is_carried_whatever_its_offset() -> None:
    rows = wakes([(LOCAL_START, 20, None, False), (LOCAL_START, 10, None, False)])
    times = pa.array([100, 200], pa.int64())
    rows = rows.set_column(rows.schema.get_field_index("appended_lowest_us"), "appended_lowest_us", times)
    assert wakes_to_carry(rows).column("wake_offset").to_pylist() == [10]


WAKE_ROWS = st.lists(
    st.tuples(
        st.sampled_from((ROLL, STABLE, BATCH)), st.integers(0, 5), st.sampled_from((None, False, True)), st.booleans()
    ),
    max_size=12,
)


@given(st.lists(WAKE_ROWS, max_size=4), st.lists(WAKE_ROWS, max_size=4))
def test_tasks_may_go_through_wakes_in_any_parts(one: list[list[WakeRow]], other: list[list[WakeRow]]) -> None:
    def sorted_rows(rows: pa.Table) -> list[str]:
        return sorted(map(str, rows.to_pylist()))

    tasks = [pa.concat_tables([wakes(a, 0), wakes(b, 1)]) for a, b in zip(one, other, strict=False)]
    whole = wakes_to_carry(pa.concat_tables([WAKES.empty_table(), *tasks]))
    left = [batch for task in tasks for batch in wakes_left(iter(task.to_batches()))]
    assert sorted_rows(wakes_to_carry(pa.Table.from_batches(left, WAKES))) == sorted_rows(whole)


def test_no_wakes_are_none() -> None:
    assert wakes_to_carry(WAKES.empty_table()).num_rows == 0


def read_back(rows: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    """Rows as they stand in the table."""
    stored = carried_rows(rows, kind, 1)
    assert stored.schema.equals(FOLDS_SCHEMA)
    return stored


def one(types: dict[str, str], **values: Any) -> pa.RecordBatch:
    return shaped(arrow_schema(types), 1, values)


def test_an_outcome_comes_back_as_it_was() -> None:
    types = KEY_TYPES | OUTCOME_TYPES
    values = {**PLACE, "request_id": "r", "base_offset": 7, "isr": pa.array([[1, 2]]), "isr_inferred": True}
    row = one(types, **values)
    (event,) = outcomes(read_back(row, OUTCOME))
    back = event.to_pylist()[0]
    assert (back["operation_id"], back["topic"], back["partition"], back["rank"]) == ("r", "a-b", 12, 1)
    assert {name: back[f"outcome_{name}"] for name in OUTCOME_TYPES} == {
        name: value for name, value in row.to_pylist()[0].items() if name in OUTCOME_TYPES
    }


def test_folds_and_wakes_come_to_their_partition() -> None:
    folds = one(
        KEY_TYPES | {"frozen": "binary", "pending": "long", "last_us": "long"}, **PLACE, frozen=b"{}", pending=3
    )
    stored = carried_folds(folds, PARTITION, 1)
    assert stored.to_pylist()[0]["name"] == "a-b-12"
    assert partition_states(stored).to_pylist() == [{**PLACE, "frozen": b"{}"}]
    wake = carried_rows_module.wakes(read_back(one(KEY_TYPES | WAKE_TYPES, **PLACE, wake=ROLL), WAKE)).to_pylist()[0]
    assert b'"wake":"roll"' in wake["carried"].replace(b" ", b"")
    assert (wake["kind"], wake["time_us"]) == (CARRIED_WAKE, -1)


def test_a_fold_without_events_has_no_last_time() -> None:
    types = KEY_TYPES | {"frozen": "binary", "pending": "long", "last_us": "long"}
    times = [
        carried_folds(one(types, **PLACE, pending=0, last_us=us), PARTITION, 1)["last_time"][0].value for us in (0, 5)
    ]
    assert times == [None, 5]


def test_connections_come_back_as_rows_of_their_fold() -> None:
    fetch = one(
        {"cluster_id": "string", "broker_id": "int", "connection": "string", "replica_id": "int", "sent_us": "long"},
        cluster_id="c",
        broker_id=1,
        connection="x",
        replica_id=2,
        sent_us=9,
    )
    back = last_fetches(read_back(fetch, CONNECTION)).to_pylist()[0]
    assert (back["connection"], back["replica_id"], back["sent_us"], back["arrival_us"]) == ("x", 2, 9, None)


def test_watches_of_connections_that_are_gone_are_not_left() -> None:
    schema = to_arrow_schema(SHAPES[WATCHES], timezone="UTC")
    names = ("cluster_id", "broker_id", "connection", "topic", "went_us", "until_us")
    rows = [
        ("c", 1, "gone", "t", 99 - GONE_US, 1),
        ("c", 1, "heard of", "t", 100 - GONE_US, 1),
        ("c", 2, "x", "t", 1, 1),
    ]
    batch = pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    left = OpenRows(frozenset({("c", 1)}), Bounds({("c", 1): 100}), NO_BOUNDS).watches(batch)
    assert left["connection"].to_pylist() == ["heard of"]
    # When it was last heard of is where its span ends.
    assert watches(carried_rows(left, WATCH, 1)).to_pylist()[0]["until_us"] == 100 - GONE_US


def test_of_outcomes_the_final_ones_are_left_whose_requests_may_have_others() -> None:
    schema = arrow_schema(KEY_TYPES | OUTCOME_TYPES | {"final": "boolean"})
    rows = [("waits", 50, True), ("settled", 49, True), ("open", 60, False)]
    values = [PLACE | {"request_id": name, "handled_us": us, "final": is_final} for name, us, is_final in rows]
    left = OpenRows(frozenset({("c", 1)}), NO_BOUNDS, Bounds({("c", 1): 50}))
    assert left.outcomes(pa.RecordBatch.from_pylist(values, schema))["request_id"].to_pylist() == ["waits"]
    nobody = OpenRows(frozenset(), NO_BOUNDS, NO_BOUNDS)
    assert nobody.outcomes(pa.RecordBatch.from_pylist(values, schema)).num_rows == 0


def test_of_wakes_those_are_left_that_are_awaited_or_tell_of_segments() -> None:
    schema = arrow_schema(KEY_TYPES | WAKE_TYPES | {"final": "boolean"})
    rows = [(BATCH, 1, 200, True), (BATCH, 2, 99, True), (ROLL, 3, 1, True), (BATCH, 4, 300, False)]
    values = [
        PLACE | {"wake": wake, "wake_offset": offset, "committed_lowest_us": us, "final": is_final}
        for wake, offset, us, is_final in rows
    ]
    left = OpenRows(frozenset({("c", 1)}), Bounds({("c", 1): 100}), NO_BOUNDS)
    (batch,) = left.wakes(pa.RecordBatch.from_pylist(values, schema))
    assert [(row["wake_offset"], row["awaited"]) for row in batch.to_pylist()] == [(1, True), (3, False)]
