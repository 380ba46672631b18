"""Which files a condition needs: never one less than those with a row that satisfies it."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, or_
from pathlib import Path

import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.lake.delta_commits import append
from highwater.pipelines.lake.delta_log import LiveFile, read_log
from highwater.pipelines.lake.skipping import select_files
from highwater.pipelines.lake.table_files import build_table, write_rows
from highwater.pipelines.lake.tables import create_table
from highwater.schemas.table import INT, LONG, STRING, TIMESTAMP, TableSpec, column

SPEC = TableSpec(
    "silver",
    "sightings",
    "One row per sighting",
    (
        column("cluster_id", STRING, "Cluster"),
        column("broker_id", INT, "Broker"),
        column("time", TIMESTAMP, "When"),
        column("offset", LONG, "Where; no statistics are kept of it"),
    ),
    keys=("cluster_id", "broker_id", "time"),
)
MOMENT = datetime(2026, 11, 20, 15, 33, 21, 101_999, tzinfo=UTC)

Row = tuple[str | None, int | None, datetime | None, int | None]
clusters = st.none() | st.sampled_from(["", "a", "ab", "b" * 40, "b" * 41, "\U0010ffff", "z"])
brokers = st.none() | st.integers(-1, 3)
times = st.none() | st.builds(lambda us: MOMENT + timedelta(microseconds=us), st.integers(-2_000, 2_000))
rows = st.tuples(clusters, brokers, times, st.none() | st.integers(0, 2))
values = {"cluster_id": clusters, "broker_id": brokers, "time": times, "offset": st.integers(0, 2)}


@st.composite
def asked(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(sorted(values)))
    field, value = pc.field(name), draw(values[name].filter(lambda value: value is not None))
    kinds = [field == value, field >= value, field <= value, field > value, field < value, field != value]
    kinds += [field.is_null(), field.is_valid(), field.isin([value]), ~(field >= value)]
    return draw(st.sampled_from(kinds))


conditions = st.builds(
    lambda parts, joined: reduce(joined, parts), st.lists(asked(), min_size=1, max_size=3), st.sampled_from([and_, or_])
)


def stored(folder: Path, *files: list[Row]) -> list[LiveFile]:
    """Files with the statistics that the lake's own writer gives them, as their table's log tells them."""
    create_table(folder, SPEC)
    added = [file for rows in files for file in write_rows(folder, SPEC, build_table(SPEC, rows))]
    append(folder, added, "batch")
    told = {file.path: file for file in read_log(folder).files}
    return [told[file.path] for file in added]


@given(files=st.lists(st.lists(rows, min_size=1, max_size=4), min_size=1, max_size=4), where=conditions)
def test_no_file_with_a_row_is_left_out(files: list[list[Row]], where: pc.Expression):
    with tempfile.TemporaryDirectory() as folder:
        there = stored(Path(folder), *files)
    needed = {file.path for file in select_files(SPEC.arrow_schema, there, where)}
    for file, of_file in zip(there, files, strict=True):
        if build_table(SPEC, of_file).filter(where).num_rows:
            assert file.path in needed


def test_files_of_other_times_and_brokers_are_left_out(tmp_path: Path):
    hours: list[list[Row]] = [[("a", hour % 2, MOMENT + timedelta(hours=hour), 0)] for hour in range(6)]
    there = stored(tmp_path, *hours)

    def numbers(where: pc.Expression | None) -> list[int]:
        return [there.index(file) for file in select_files(SPEC.arrow_schema, there, where)]

    assert numbers(pc.field("time") >= MOMENT + timedelta(hours=4)) == [4, 5]
    assert numbers((pc.field("broker_id") == 1) & (pc.field("time") < MOMENT + timedelta(hours=2.5))) == [1]
    assert numbers(pc.field("cluster_id").isin(["b"])) == []
    assert numbers(pc.field("offset") == 7) == list(range(6))
    assert numbers(None) == list(range(6))


def test_a_file_without_statistics_is_always_read():
    bare = [LiveFile("part-0", 1, None), LiveFile("part-1", 1, 1)]
    assert select_files(SPEC.arrow_schema, bare, pc.field("time") >= MOMENT) == bare
