"""Parts of a table's files."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.pipelines.lake.parquet import read_files
from highwater.pipelines.lake.row_parts import Wanted, split_rows
from highwater.pipelines.lake.tables import create_table
from highwater.schemas.table import LONG, TIMESTAMP, TableSpec, column

SPEC = TableSpec(
    "gold",
    "numbers",
    "One row per number",
    (column("number", LONG, "It"), column("time", TIMESTAMP, "When")),
    keys=("number",),
)


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@settings(deadline=None)
@given(st.lists(st.integers(1, 20), max_size=3), st.integers(1, 7), st.integers(0, 22), st.integers(1, 4))
def test_what_is_not_searched_stays(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], group_rows: int, since: int, every: int
) -> None:
    """As an oracle the files are searched as a whole."""
    folder = tmp_path_factory.mktemp("lake") / "gold" / "numbers"
    create_table(folder, SPEC)
    paths = [f"{number}.parquet" for number in range(len(counts))]
    for path, count in zip(paths, counts, strict=True):
        rows = pa.Table.from_pylist([{"number": n, "time": at(n)} for n in range(count)], SPEC.arrow_schema)
        pq.write_table(rows, folder / path, row_group_size=group_rows)

    def wanted(rows: pa.RecordBatch) -> pa.Array:
        gone = [row["time"] >= at(since) and row["number"] % every == 0 for row in rows.to_pylist()]
        return pc.invert(pa.array(gone, pa.bool_()))

    searched = pc.field("time") >= pa.scalar(at(since), pa.timestamp("us", "UTC"))
    rows = Wanted(SPEC.column_names, wanted)
    part, oracle = (split_rows(folder, SPEC, paths, rows, where) for where in (searched, None))
    assert (part.whole, part.mixed, part.rows_left_out) == (oracle.whole, oracle.mixed, oracle.rows_left_out)
    read = [
        read_files(SPEC, [folder / file.path for file in which.written], SPEC.column_names) for which in (part, oracle)
    ]
    assert read[0] == read[1]
