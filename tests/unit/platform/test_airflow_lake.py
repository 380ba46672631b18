"""What asset events tell of a table, from Delta logs written by hand; tests/spark has Delta write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_dags.highwater_lake import GOLD_TABLES, TableState, read_state
from highwater.schemas.catalog import TABLES

OVERWRITE = {"operation": "WRITE", "operationParameters": {"mode": "Overwrite"}}


def commit(table: Path, version: int, info: dict[str, Any], *actions: dict[str, Any]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(action) for action in ({"commitInfo": info}, *actions)]
    (log / f"{version:020}.json").write_text("\n".join(lines) + "\n")


def added(path: str, rows: int | None, deleted: int = 0) -> dict[str, Any]:
    stats = None if rows is None else json.dumps({"numRecords": rows})
    vector = {"deletionVector": {"cardinality": deleted}} if deleted else {}
    return {"add": {"path": path, "stats": stats} | vector}


def removed(path: str) -> dict[str, Any]:
    return {"remove": {"path": path}}


def test_every_gold_table_is_an_asset() -> None:
    assert sorted(GOLD_TABLES) == sorted(spec.name for spec in TABLES if spec.layer == "gold")


def test_no_table_has_no_state(tmp_path: Path) -> None:
    assert read_state(tmp_path) == TableState(None, None, None)


def test_a_new_table_is_empty(tmp_path: Path) -> None:
    commit(tmp_path, 0, {"operation": "CREATE TABLE"})
    assert read_state(tmp_path) == TableState(0, 0, None)


def test_files_come_and_go(tmp_path: Path) -> None:
    append = {"operation": "WRITE", "operationParameters": {"mode": "Append"}}
    commit(tmp_path, 0, {"operation": "CREATE TABLE"})
    commit(tmp_path, 1, append | {"userMetadata": "first"}, added("a", 10), added("b", 5))
    commit(tmp_path, 2, {"operation": "DELETE"}, removed("b"), added("b", 5, deleted=2))
    assert read_state(tmp_path) == TableState(2, 13, "first")
    # Maintenance leaves no stamp.
    commit(tmp_path, 3, {"operation": "OPTIMIZE"}, removed("a"), removed("b"), added("c", 13))
    assert read_state(tmp_path) == TableState(3, 13, "first")


def test_what_is_before_a_whole_overwrite_is_not_needed(tmp_path: Path) -> None:
    commit(tmp_path, 7, OVERWRITE | {"userMetadata": "run"}, removed("old"), added("a", 3))
    commit(tmp_path, 8, {"operation": "OPTIMIZE"}, added("b", 3), removed("a"))
    assert read_state(tmp_path) == TableState(8, 3, "run")


@pytest.mark.parametrize(
    "info",
    [{"operation": "MERGE"}, {"operation": "WRITE", "operationParameters": {"mode": "Overwrite", "predicate": "x"}}],
)
def test_rows_are_unknown_where_commits_are_gone(tmp_path: Path, info: dict[str, Any]) -> None:
    commit(tmp_path, 7, info | {"userMetadata": "run"}, added("a", 3))
    assert read_state(tmp_path) == TableState(7, None, "run")


def test_rows_are_those_of_the_checksum_where_commits_are_gone(tmp_path: Path) -> None:
    commit(tmp_path, 7, {"operation": "MERGE"}, added("b", 3))
    checksum = {"numFiles": 2, "allFiles": [added("a", 4, deleted=1)["add"], added("b", 3)["add"]]}
    path = tmp_path / "_delta_log" / f"{7:020}.crc"
    path.write_text(json.dumps(checksum))
    assert read_state(tmp_path).rows == 6
    path.write_text(json.dumps(checksum | {"numFiles": 3}))
    assert read_state(tmp_path).rows is None


def test_rows_are_unknown_where_a_file_does_not_count_them(tmp_path: Path) -> None:
    commit(tmp_path, 0, OVERWRITE, added("a", 3), added("b", None))
    assert read_state(tmp_path).rows is None
