"""Sorted rows as groups: every row once, whatever the batches; what is not sorted is refused."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.groups import groups

SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("value", pa.int64()), ("isr", pa.list_(pa.int32()))]
)
Row = tuple[str | None, int | None, int | None, tuple[int, ...] | None]

topics = st.none() | st.sampled_from(["", "a", "b", "\U0001f600", "￿"])
rows = st.tuples(
    topics,
    st.none() | st.integers(-1, 2),
    st.none() | st.integers(0, 9),
    st.none() | st.lists(st.integers(0, 3), max_size=2).map(tuple),
)


def batch(part: list[Row]) -> pa.RecordBatch:
    columns = zip(*part, strict=True) if part else [()] * len(SCHEMA)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def spark_order(row: Row) -> tuple[Any, ...]:
    """Nulls first, strings by their bytes."""
    topic, partition = row[:2]
    return topic is not None, (topic or "").encode(), partition is not None, partition or 0


def read(batches: list[pa.RecordBatch]) -> list[tuple[Any, list[Any]]]:
    return [(key, list(values)) for key, values in groups(batches, 2, lambda columns: zip(*columns, strict=True))]


@given(st.lists(rows, max_size=20), st.lists(st.integers(0, 20), max_size=4))
def test_each_key_has_all_its_rows_in_their_order(given_rows: list[Row], cuts: list[int]):
    ordered = sorted(given_rows, key=spark_order)
    bounds = sorted({0, *(min(cut, len(ordered)) for cut in cuts)})
    parts = [ordered[begin:end] for begin, end in zip(bounds, [*bounds[1:], len(ordered)], strict=True)]
    expected = [(key, [row[2:] for row in part]) for key, part in groupby(ordered, key=lambda row: row[:2])]
    assert read([batch(part) for part in parts]) == expected


@given(st.lists(rows, min_size=2, max_size=8))
def test_keys_that_do_not_ascend_are_refused(given_rows: list[Row]):
    keys = [spark_order(row) for row in given_rows]
    batches = [batch(given_rows)]
    if keys == sorted(keys):
        read(batches)
    else:
        with pytest.raises(ValueError, match="not sorted by key"):
            read(batches)


def test_a_key_in_two_pieces_is_refused_across_batches():
    first, second = ("t", 0, 1, None), ("t", 1, 2, None)
    with pytest.raises(ValueError, match=r"\('t', 0\) comes after \('t', 1\)"):
        read([batch([first]), batch([second]), batch([first])])


def test_a_group_need_not_be_read_to_its_end():
    parts = [batch([("a", 0, 1, None), ("a", 0, 2, None)]), batch([("a", 0, 3, None), ("b", 0, 4, None)])]
    seen = [(key, next(values)) for key, values in groups(parts, 2, lambda columns: zip(*columns, strict=True))]
    assert seen == [(("a", 0), (1, None)), (("b", 0), (4, None))]
