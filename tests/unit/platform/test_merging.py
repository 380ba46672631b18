"""Rows that take the place of others, beside a dictionary."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.lake.row_parts import leave_out_keys
from highwater.schemas.table import INTS, STRING, TIMESTAMP, TableSpec, column

SPEC = TableSpec(
    "gold",
    "samples",
    "One sample.",
    (
        column("cluster_id", STRING, "Part of the key; may be null"),
        column("name", STRING, "The rest of it"),
        column("time", TIMESTAMP, "When"),
        column("codes", INTS, "A value of several"),
    ),
    keys=("cluster_id", "name"),
    bounded_by=("time",),
)
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = st.tuples(st.sampled_from((None, "a", "b")), st.sampled_from("xyz"))
VALUES = st.tuples(
    st.integers(0, 3).map(lambda hour: BEGUN + timedelta(hours=hour, microseconds=1)),
    st.none() | st.lists(st.integers(0, 2), max_size=2),
)
ROWS = st.dictionaries(KEYS, VALUES, max_size=9)


def table(rows: dict[Any, Any]) -> pa.Table:
    values = [dict(zip(SPEC.column_names, (*key, *value), strict=True)) for key, value in rows.items()]
    return pa.Table.from_pylist(values, SPEC.arrow_schema)


def by_key(rows: pa.Table) -> dict[Any, Any]:
    values = [tuple(row[name] for name in SPEC.column_names) for row in rows.to_pylist()]
    assert len({row[:2] for row in values}) == len(values)
    return {row[:2]: row[2:] for row in values}


@given(old=ROWS, new=ROWS, hour=st.integers(0, 4))
def test_rows_are_as_in_a_dictionary(old: Any, new: Any, hour: int) -> None:
    since = BEGUN + timedelta(hours=hour) if hour < 4 else None
    looked_at = {key for key, value in old.items() if since is None or value[0] >= since}
    stays = leave_out_keys(table(new).select(SPEC.keys), None if since is None else "time", since)
    left = [batch.filter(stays.of(batch)) for batch in table(old).to_batches(max_chunksize=2)]
    expected = {key: value for key, value in old.items() if key not in looked_at or key not in new}
    assert by_key(pa.Table.from_batches(left, SPEC.arrow_schema)) == expected
