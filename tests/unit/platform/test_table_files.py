"""Files of a table as tasks write them, and commits that the driver makes of them, read back by another reader."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from highwater.pipelines.lake import delta_commits
from highwater.pipelines.lake.commits import read_stamps
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.table_files import (
    ADDED_SCHEMA,
    ConstraintBroken,
    build_table,
    check,
    make_files_writer,
    write_rows,
)
from highwater.pipelines.lake.tables import create_table
from highwater.pipelines.storage.store import store_of
from highwater.schemas.catalog import TABLES
from highwater.schemas.table import INT, INTS, STRING, TIMESTAMP, TableSpec, column, required

SPEC = TableSpec(
    "gold",
    "visits",
    "One row per visit",
    (
        required("topic", STRING, "Topic"),
        required("partition", INT, "Partition"),
        column("time", TIMESTAMP, "When"),
        column("ended", TIMESTAMP, "Until when"),
        column("isr", INTS, "Members"),
    ),
    keys=("topic", "partition", "time"),
    bounded_by=("topic",),
    checks={"partition_not_negative": "partition >= 0", "in_order": "ended IS NULL OR time <= ended"},
)
MOMENT = datetime(2026, 11, 20, 15, 33, 21, 101_999, tzinfo=UTC)


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return build_table(SPEC, values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    create_table(tmp_path / "gold" / "visits", SPEC)
    return tmp_path / "gold" / "visits"


def stored(folder: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(folder).to_pyarrow_table().to_pylist(), key=lambda row: (row["topic"], row["partition"]))


def test_what_is_appended_is_read_by_another_reader(folder: Path):
    delta_commits.append(folder, write_rows(folder, SPEC, rows(("orders", 0, MOMENT, None, [1, 2]))), "first")
    version = delta_commits.append(folder, write_rows(folder, SPEC, rows(("orders", 1, None, None, []))), "second")
    assert version == 2
    assert [row["isr"] for row in stored(folder)] == [[1, 2], []]
    assert next(read_stamps(folder)) == (2, "second")
    assert read_log(folder).rows == 2


def test_what_is_replaced_is_gone(folder: Path):
    delta_commits.append(folder, write_rows(folder, SPEC, rows(("orders", 0, MOMENT, None, []))), None)
    delta_commits.replace(folder, write_rows(folder, SPEC, rows(("orders", 5, MOMENT, None, []))), "again")
    assert [row["partition"] for row in stored(folder)] == [5]
    assert delta_commits.replace(folder, [], "empty") == 3
    assert stored(folder) == []
    assert next(read_stamps(folder)) == (3, "empty")


def test_a_long_log_gets_checkpoints_that_keep_what_the_table_is(folder: Path):
    for number in range(11):
        delta_commits.append(folder, write_rows(folder, SPEC, rows(("orders", number, MOMENT, None, []))), None)
    log = read_log(folder)
    assert (folder / "_delta_log" / f"{9:020}.checkpoint.parquet").is_file()
    for commit in range(10):
        (folder / "_delta_log" / f"{commit:020}.json").unlink()
    assert (read_log(folder).rows, read_log(folder).schema) == (11, log.schema)
    assert len(stored(folder)) == 11


def test_no_commit_is_put_over_another(folder: Path):
    log = folder / "_delta_log"
    assert store_of(log).create(log / f"{1:020}.json", b"one")
    assert not store_of(log).create(log / f"{1:020}.json", b"other")
    assert (log / f"{1:020}.json").read_text() == "one"


def test_statistics_bound_what_is_in_a_file(folder: Path):
    long = "t" * 40
    (file,) = write_rows(folder, SPEC, rows(("a", 3, MOMENT, None, []), (long, 7, None, None, [])))
    assert orjson.loads(file.stats) == {
        "numRecords": 2,
        "minValues": {"topic": "a", "partition": 3, "time": "2026-11-20T15:33:21.101Z"},
        "maxValues": {"topic": long[:32] + "\U0010ffff", "partition": 7, "time": "2026-11-20T15:33:21.101Z"},
        "nullCount": {"topic": 0, "partition": 0, "time": 1},
    }


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((None, 0, None, None, []), "'topic' is declared non-nullable"),
        (("orders", -1, None, None, []), "partition_not_negative"),
        (("orders", 0, MOMENT, datetime(2020, 1, 1, tzinfo=UTC), []), "in_order"),
        (("orders", 0, None, MOMENT, []), "in_order"),  # neither true nor false
    ],
)
def test_a_row_that_breaks_a_constraint_is_refused(folder: Path, row: tuple[Any, ...], what: str):
    with pytest.raises(ConstraintBroken, match=what) as raised:
        write_rows(folder, SPEC, rows(("orders", 0, MOMENT, MOMENT, [1]), row))
    assert "gold.visits" in str(raised.value)


@pytest.mark.parametrize("spec", [spec for spec in TABLES if spec.checks], ids=lambda spec: spec.full_name)
def test_every_declared_check_can_be_asked(spec: TableSpec):
    check(spec, spec.arrow_schema.empty_table())


def test_tasks_write_the_tables_of_their_blobs(folder: Path):
    def blob(partition: int) -> pa.RecordBatch:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SPEC.arrow_schema) as stream:
            stream.write_table(rows(("orders", partition, MOMENT, None, [])))
        return pa.RecordBatch.from_pylist([{"table": "visits", "rows": sink.getvalue().to_pybytes()}])

    root = folder.parent.parent
    (added,) = make_files_writer(root, {"visits": SPEC})(iter([blob(1), blob(2)]))
    assert added.schema == ADDED_SCHEMA
    assert added.column("row_count").to_pylist() == [2]
    assert list(make_files_writer(root, {"visits": SPEC})(iter([]))) == []
