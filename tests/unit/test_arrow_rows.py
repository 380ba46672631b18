"""Columns of Arrow against a reading row by row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.arrow_rows import (
    arrow_schema,
    both,
    explode,
    fill_topic_names,
    first_of,
    is_in,
    look_up,
    shaped,
    when,
)
from highwater.pipelines.replay.partition_events import in_spans

maybe_bools = st.lists(st.tuples(st.none() | st.booleans(), st.none() | st.booleans()), max_size=6)
texts = st.none() | st.sampled_from(["", "a", "b", "id:a", "id:"])


def test_rows_of_a_schema():
    schema = arrow_schema({"name": "string", "count": "long", "isr": "array<int>", "kind": "string"})
    counts = pa.array([1, None], pa.int32())
    batch = shaped(schema, 2, {"count": counts, "name": pa.chunked_array([["a"], ["b"]]), "kind": "k"})
    assert batch.schema == schema
    assert batch.to_pylist() == [
        {"name": "a", "count": 1, "isr": None, "kind": "k"},
        {"name": "b", "count": None, "isr": None, "kind": "k"},
    ]
    assert shaped(schema, 0, {"kind": "k"}).num_rows == 0
    with pytest.raises(KeyError, match="no columns: more, other"):
        shaped(schema, 1, {"other": 1, "more": 2})


@given(st.dictionaries(st.sampled_from(["", "a", "b"]), st.none() | st.integers(0, 99)), st.lists(texts, max_size=6))
def test_the_value_for_each_key(values: dict[str, int | None], keys: list[str | None]):
    found = look_up(values, pa.array(keys, pa.string()), pa.int64())
    assert found.type == pa.int64()
    assert found.to_pylist() == [None if key is None else values.get(key) for key in keys]


@given(maybe_bools)
def test_what_is_null_does_not_hold(rows: list[tuple[bool | None, bool | None]]):
    first, second = (pa.array([row[at] for row in rows], pa.bool_()) for at in (0, 1))
    assert both(first, second).to_pylist() == [a is True and b is True for a, b in rows]
    assert when(first, second, pa.scalar(None, pa.bool_())).to_pylist() == [b if a is True else None for a, b in rows]
    assert first_of(first, second).to_pylist() == [b if a is None else a for a, b in rows]


@given(st.lists(texts, max_size=6))
def test_null_is_none_of_some(values: list[str | None]):
    assert is_in(pa.array(values, pa.string()), ("a", "b")).to_pylist() == [value in ("a", "b") for value in values]


PART = pa.struct([("topic", pa.string()), ("partition", pa.int32())])
parts = st.fixed_dictionaries({"topic": st.none() | st.just("t"), "partition": st.integers(0, 9)})


@given(st.lists(st.none() | st.lists(parts, max_size=3), max_size=5), st.integers(0, 5), st.integers(0, 5))
def test_a_row_per_item(lists: list[list[dict[str, Any]] | None], begin: int, size: int):
    columns = {"number": pa.array(range(len(lists)), pa.int64()), "parts": pa.array(lists, pa.list_(PART))}
    batch = pa.RecordBatch.from_pydict(columns).slice(begin, size)
    expected = [
        {"number": number, "part.topic": part["topic"], "part.partition": part["partition"]}
        for number, of_row in list(enumerate(lists))[begin : begin + size]
        for part in of_row or ()
    ]
    assert explode(batch, "parts", "part").to_pylist() == expected


def test_an_item_without_fields_has_the_items_name():
    batch = pa.RecordBatch.from_pydict({"ids": pa.array([[1, 2], [], [3]])})
    assert explode(batch, "ids", "id").to_pydict() == {"id": [1, 2, 3]}


@given(st.lists(st.tuples(st.sampled_from(["c", "d"]), texts), max_size=6), st.booleans())
def test_names_stand_for_ids_where_they_are_known(rows: list[tuple[str, str | None]], is_known: bool):
    names = {("c", "a"): "t"} if is_known else {}
    batch = pa.RecordBatch.from_arrays(
        [pa.array([row[at] for row in rows], pa.string()) for at in (0, 1)], names=["cluster_id", "topic"]
    )
    expected = ["t" if is_known and row == ("c", "id:a") else row[1] for row in rows]
    assert fill_topic_names(names, batch).column("topic").to_pylist() == expected


small = st.integers(0, 9)


@given(st.lists(st.tuples(st.integers(1, 2), small), max_size=6), st.lists(st.tuples(small, small), max_size=3))
def test_spans_of_a_broker_end_before_their_end(rows: list[tuple[int, int]], spans: list[tuple[int, int]]):
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["c"] * len(rows), pa.string()), pa.array([row[0] for row in rows], pa.int32())],
        names=["cluster_id", "broker_id"],
    )
    times = pa.array([row[1] for row in rows], pa.int64())
    expected = [broker == 1 and any(time in range(*span) for span in spans) for broker, time in rows]
    assert in_spans({("c", 1): tuple(spans)}, batch, times).to_pylist() == expected
