"""Columns of the row before, in chains."""

from __future__ import annotations

import pyarrow as pa

from highwater.pipelines.quality.derived import Previous


def test_a_row_that_breaks_its_chain_has_none_after_it() -> None:
    """A follower that is told to truncate fetches from an earlier offset next."""
    rows = pa.table(
        {
            "fetch_offset": [5, 9, 7, 8],
            "connection": ["c"] * 4,
            "number": [1, 2, 3, 4],
            "diverging_end_offset": pa.array([None, 7, None, None], pa.int64()),
        }
    )
    whole = Previous("fetch_offset", by=("connection",), order=("number",))
    assert whole.values(rows).to_pylist() == [None, 5, 9, 7]
    broken = Previous("fetch_offset", by=("connection",), order=("number",), breaks="diverging_end_offset")
    assert broken.values(rows).to_pylist() == [None, 5, None, 7]
    assert "diverging_end_offset" in broken.columns
