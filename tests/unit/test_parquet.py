"""Rows of a table's files, whole and in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake import parquet
from highwater.pipelines.lake.parquet import (
    ParquetPiece,
    Stored,
    plan_pieces,
    read_files,
    read_pieces,
    select_pieces,
    split_file,
)
from highwater.pipelines.lake.table_files import write_rows
from highwater.schemas.table import INT, INTS, LONG, STRING, TIMESTAMP, TableSpec, column, required

SPEC = TableSpec(
    "silver",
    "positions",
    "One row per position",
    (
        required("topic", STRING, "Topic"),
        column("number", LONG, "Number"),
        column("time", TIMESTAMP, "When"),
        column("isr", INTS, "Members"),
        column("partition", INT, "Partition"),
    ),
    keys=("topic",),
)
COLUMNS = ("number", "time", "isr")


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def table(count: int) -> pa.Table:
    rows = [
        {"topic": "t", "number": n, "time": at(n), "isr": [n, 1] if n % 3 else None, "partition": n % 2}
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, SPEC.arrow_schema)


def write(folder: Path, rows: pa.Table, group_rows: int, **how: Any) -> Path:
    path = folder / "part=1"  # is no column
    path.mkdir(exist_ok=True)
    pq.write_table(rows, path / "rows.parquet", row_group_size=group_rows, **how)
    return path / "rows.parquet"


def read(
    piece: ParquetPiece, columns: Sequence[str] = COLUMNS, where: pc.Expression | None = None
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for batch in read_pieces(SPEC, piece, columns, where):
        assert batch.num_rows
        assert batch.schema.equals(parquet.select_schema(SPEC, columns))
        rows += batch.to_pylist()
    return rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 5), st.integers(1, 50))
def test_pieces_have_every_row_once(tmp_path: Path, count: int, group_rows: int, piece_count: int, batch_rows: int):
    path = write(tmp_path, table(count), group_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "PIECE_BYTES", path.stat().st_size // piece_count)
        patch.setattr(parquet, "BATCH_ROWS", batch_rows)
        pieces = split_file(Stored(path, path.stat().st_size))
        groups = -(-count // group_rows)
        assert len(pieces) <= groups
        assert len(pieces) > 1 or groups == 1 or piece_count == 1
        assert sum(piece.size_bytes for piece in pieces) <= path.stat().st_size
        rows = [row for piece in pieces for row in read(piece)]
    # Row groups come in any order.
    rows.sort(key=lambda row: row["number"])
    assert rows == table(count).select(COLUMNS).to_pylist()
    assert rows == read_files(SPEC, [path], COLUMNS).to_pylist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(-1, 41), st.integers(0, 20))
def test_pieces_where_leave_out_no_row(tmp_path: Path, count: int, group_rows: int, since: int, length: int):
    path = write(tmp_path, table(count), group_rows)
    where = (pc.field("time") >= at(since)) & (pc.field("time") < at(since + length))
    pieces = select_pieces(SPEC, Stored(path, 1_000), where)
    rows = [row for piece in pieces for row in read(piece, COLUMNS, where)]
    assert rows == read(ParquetPiece(path, 1), COLUMNS, where)
    first, last = max(since, 0), min(since + length, count) - 1
    needed = last // group_rows - first // group_rows + 1 if last >= first else 0
    assert sum(len(piece.row_groups or ()) for piece in pieces) == needed
    assert sum(piece.size_bytes for piece in pieces) <= 1_000


@pytest.mark.parametrize("large_max", [0, 64])
def test_of_large_files_is_read_what_a_condition_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_max: int
) -> None:
    """Unless they are many; small ones are not looked into."""
    path, small = write(tmp_path, table(40), 4), tmp_path / "no parquet"
    small.write_bytes(b"12345")
    files = [Stored(small, 5), Stored(path, path.stat().st_size)]
    monkeypatch.setattr(parquet, "_LOOKED_INTO_BYTES", 5)
    monkeypatch.setattr(parquet, "_LOOKED_INTO_MAX", large_max)
    assert plan_pieces(SPEC, files, None) == [ParquetPiece(*file) for file in files]
    first, second = plan_pieces(SPEC, files, pc.field("time") >= at(33))
    assert first == ParquetPiece(small, 5)
    assert second.row_groups == ((8, 9) if large_max else None)


def test_rows_of_a_table_are_written_in_the_order_of_the_instant_that_its_declaration_names(tmp_path: Path):
    spec = replace(SPEC, ordered_by="time")
    shuffled = table(10_000).take(Random(1).sample(range(10_000), 10_000))
    (file,) = write_rows(tmp_path, spec, shuffled)
    assert read_files(spec, [tmp_path / file.path], COLUMNS) == table(10_000).select(COLUMNS)
    hour = (pc.field("time") >= at(9_900)) & (pc.field("time") < at(9_950))
    (piece,) = select_pieces(spec, Stored(tmp_path / file.path, file.size_bytes), hour)
    assert piece.row_groups == (2,)


def test_a_small_file_is_one_piece_that_is_not_looked_into(tmp_path: Path):
    path = tmp_path / "no parquet"
    path.write_bytes(b"12345")
    assert split_file(Stored(path, 5)) == [ParquetPiece(path, 5, None)]


def test_a_column_that_the_file_lacks_is_null(tmp_path: Path):
    path = write(tmp_path, table(3).drop_columns(["isr"]), 2)
    assert read(ParquetPiece(path, 1), ("isr", "number")) == [{"isr": None, "number": n} for n in range(3)]


def test_rows_have_the_declared_types_whoever_wrote_them(tmp_path: Path):
    """Spark names the items of arrays otherwise, and may write instants as INT96."""
    items = pa.list_(pa.field("item", pa.int64()))
    rows = table(5)
    rows = rows.set_column(3, "isr", rows.column("isr").cast(items)).set_column(
        1, "number", rows.column("number").cast(pa.int32())
    )
    path = write(tmp_path, rows, 2, use_deprecated_int96_timestamps=True)
    assert read(ParquetPiece(path, 1)) == table(5).select(COLUMNS).to_pylist()


def test_only_rows_that_are_asked_for_and_only_their_row_groups(tmp_path: Path):
    path = write(tmp_path, table(12), 4)
    where = (pc.field("time") >= at(5)) & (pc.field("number") != 6)
    assert [row["isr"] for row in read(ParquetPiece(path, 1), ("isr",), where)] == [
        [n, 1] if n % 3 else None for n in (5, 7, 8, 9, 10, 11)
    ]
    assert [row["number"] for row in read(ParquetPiece(path, 1, (1,)), ("number",), where)] == [5, 7]
    # The first row group is damaged, and never read.
    group = pq.read_metadata(path).row_group(0)
    damaged = bytearray(path.read_bytes())
    for number in range(group.num_columns):
        chunk = group.column(number)
        begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        damaged[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(damaged)
    assert [row["number"] for row in read(ParquetPiece(path, 1), ("number",), where)] == [5, 7, 8, 9, 10, 11]
    with pytest.raises(InputError, match=r"rows\.parquet: cannot be read as a file of its table"):
        read(ParquetPiece(path, 1), ("number",))


def test_no_files_are_no_rows():
    empty = read_files(SPEC, [], COLUMNS)
    assert (empty.num_rows, empty.column_names) == (0, list(COLUMNS))
