"""Chunks of rows, merged by bucket, are all rows in the order of their key, whatever the tasks that read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from highwater.pipelines.base import chunks as c
from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.base.groups import groups

ROWS = Keyed(
    shape({"topic": "string", "partition": "int", "rank": "int", "isr": "array<int>", "value": "long"}),
    ("topic", "partition"),
    ("rank", "value"),
    ("value", "isr"),
)
SCHEMA = to_arrow_schema(ROWS.columns, timezone="UTC")
CHUNKS = to_arrow_schema(c.CHUNK, timezone="UTC")
BUCKETS = (12, 6, 2, 0)
TOPICS = st.none() | st.text("aäZz~\U00010000￿", max_size=3)
A_ROW = st.tuples(TOPICS, st.none() | st.integers(-2, 2), st.none() | st.integers(0, 9), st.none() | st.just([1, 2]))
Row = tuple[str | None, int | None, int | None, list[int] | None, int]


def batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def shuffled(of_tasks: Sequence[Iterator[pa.RecordBatch]]) -> pa.Table:
    """What Spark does with chunks: sorts them by bucket and place."""
    table = pa.Table.from_batches([chunk for chunks in of_tasks for chunk in chunks], CHUNKS)
    rows = table.to_pylist()
    in_order = sorted(range(len(rows)), key=lambda number: (rows[number]["bucket"], rows[number]["place"]))
    return table.take(pa.array(in_order, pa.int64()))


def merged(chunks: pa.Table) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows of one bucket after the other."""
    for _, of_bucket in groupby(chunks.to_pylist(), key=itemgetter("bucket")):
        yield ROWS.merge_chunks((chunk["place"], chunk["rows"]) for chunk in of_bucket)


def plain(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[tuple[int, Any]]]:
    """The slow way: by key, its rows sorted by rank, nulls first."""
    by_key: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_key[row[:2]].append(row)
    return {
        key: [
            (row[4], None if row[3] is None else tuple(row[3]))
            for row in sorted(of_key, key=lambda row: (row[2] is not None, row[2] or 0, row[4]))
        ]
        for key, of_key in by_key.items()
    }


@settings(max_examples=200, deadline=None)
@given(st.lists(A_ROW, max_size=60), st.integers(1, 4), st.sampled_from([(3, 5, 4), (4_096, 200_000, 32_768)]))
def test_all_rows_of_a_key_come_in_their_order(rows: list[Any], tasks: int, sizes: tuple[int, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("CHUNK_ROWS", "_SORTED_ROWS", "_MERGED_ROWS"), sizes, strict=True):
            patch.setattr(c, name, size)
        check([(*row, number) for number, row in enumerate(rows)], tasks)


def check(numbered: list[Row], tasks: int) -> None:
    read = [ROWS.make_chunks(iter([batch(numbered[task::tasks])]), BUCKETS) for task in range(tasks)]
    found: dict[tuple[Any, ...], list[Any]] = {}
    for bucket in merged(shuffled(read)):
        for key, values in groups(bucket, 2, lambda columns: zip(*columns, strict=True)):
            assert key not in found
            found[key] = list(values)
    assert found == plain(numbered)


@given(rows=st.lists(A_ROW, min_size=1, max_size=20))
def test_a_key_has_the_same_bucket_in_each_task(rows: list[Any]) -> None:
    table = pa.Table.from_batches([batch([(*row, 0) for row in rows])])
    together = list(c.assign_buckets([table["topic"], table["partition"]], 7))
    alone = [
        c.assign_buckets([table["topic"][at : at + 1], table["partition"][at : at + 1]], 7)[0]
        for at in range(len(rows))
    ]
    assert together == alone


def test_keys_spread_over_buckets() -> None:
    topics = pa.chunked_array([[f"orders-{number % 50}" for number in range(5_000)]])
    partitions = pa.chunked_array([pa.array([number // 50 for number in range(5_000)], pa.int32())])
    numbers = list(c.assign_buckets([topics, partitions], 4))
    assert all(1_000 < numbers.count(bucket) < 1_500 for bucket in range(4))


def test_states_come_before_the_rows_of_their_bucket() -> None:
    schema = to_arrow_schema(ROWS.state, timezone="UTC")
    states = pa.RecordBatch.from_pylist(
        [{"topic": "z", "partition": 1, "frozen": b"1"}, {"topic": "a", "partition": 0, "frozen": b"2"}], schema
    )
    rows = ROWS.make_chunks(iter([batch([("z", 1, 0, None, 0), ("a", 0, 0, None, 1)])]), BUCKETS)
    table = shuffled([rows, ROWS.make_state_chunks(iter([states]), BUCKETS)])
    kinds: dict[int, list[bool]] = defaultdict(list)
    for row in table.to_pylist():
        kinds[row["bucket"]].append(not c.is_of_states(row["place"]))
    assert all(of_bucket == sorted(of_bucket) and False in of_bucket for of_bucket in kinds.values())


VALUES = st.none() | st.text(max_size=4) | st.sampled_from(["\0", "a\0", "a\0b", "\0\xff"])


NUMBERS = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
FLOATS = st.none() | st.floats(allow_nan=False)


@given(*[st.tuples(VALUES, NUMBERS, FLOATS, VALUES) for _ in range(2)])
def test_places_sort_as_values_do(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    plainly = [
        [(value is not None, value.encode() if isinstance(value, str) else value) for value in values]
        for values in (first, second)
    ]
    assert (c.encode_sort_key(first) < c.encode_sort_key(second)) == (plainly[0] < plainly[1])
    assert (c.encode_sort_key(first) == c.encode_sort_key(second)) == (first == second)


def test_chunks_of_folds_come_apart() -> None:
    rows = [("z", 1, 0, None, 0), ("a", 0, 0, None, 1)]
    table = shuffled([ROWS.make_chunks(iter([batch(rows)]), (0,), number) for number in (200, 7)])
    assert [c.read_fold_number(place) for place in table["place"].to_pylist()] == [7, 200]


def test_what_is_merged_at_a_time_does_not_grow_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """One key of many rows, whose tasks read one hour each: what is held is some chunks, and not the key."""
    monkeypatch.setattr(c, "CHUNK_ROWS", 10)
    monkeypatch.setattr(c, "_MERGED_ROWS", 40)
    hours = [[("hot", 0, None, None, 1_000 * hour + number) for number in range(1_000)] for hour in range(20)]
    table = shuffled([ROWS.make_chunks(iter([batch(hour)]), BUCKETS) for hour in hours])
    held: list[int] = []
    sort = c._sort_rows
    monkeypatch.setattr(c, "_sort_rows", lambda rows, names: held.append(rows.num_rows) or sort(rows, names))
    bucket = next(merged(table))
    values = [value for part in bucket for value in part.column("value").to_pylist()]
    assert values == sorted(values)
    assert len(values) == 20_000
    assert max(held) <= 100
