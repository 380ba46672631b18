"""How much text a run has before it, told by names and sizes alone."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from highwater.pipelines.bronze.text_sizes import new_bytes, waiting_bytes
from highwater.pipelines.lake import delta_commits
from highwater.pipelines.lake.table_files import write_rows
from highwater.pipelines.lake.tables import create_table
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.state import RUNS
from highwater.schemas.table import TableSpec


def store(lake: Path, spec: TableSpec, rows: list[dict[str, Any]]) -> None:
    folder = lake / spec.layer / spec.name
    create_table(folder, spec)
    delta_commits.append(folder, write_rows(folder, spec, pa.Table.from_pylist(rows, spec.arrow_schema)), "run")


def file_row(file_id: str, path: Path | str, size_bytes: int) -> dict[str, Any]:
    counts = {"sha256": file_id, "kind": "server", "line_count": 1, "record_count": 1, "run_id": "run"}
    return {"file_id": file_id, "path": str(path), "size_bytes": size_bytes, **counts}


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    files = {"server.log": 100, "server.log.1": 40, "kafka-request.log.1.gz": 10, "logs.tgz": 5}
    for name, size in files.items():
        (tmp_path / name).write_bytes(b"x" * size)
    return [str(tmp_path / name) for name in files]


def test_without_a_lake_all_text_is_new_and_what_is_compressed_counts_more(logs: list[str], tmp_path: Path) -> None:
    assert new_bytes(logs, tmp_path / "lake") == 100 + 40 + 20 * 10 + 20 * 5
    assert new_bytes(logs, tmp_path / "lake", 150) == 150, "a run in batches has one before it"
    assert new_bytes(logs, tmp_path / "lake", 1000) == 100 + 40 + 20 * 10 + 20 * 5
    assert waiting_bytes(tmp_path / "lake") == 0


def test_a_file_that_is_gone_by_now_counts_nothing(logs: list[str], tmp_path: Path) -> None:
    assert new_bytes([*logs[:1], str(tmp_path / "gone.log")], tmp_path / "lake") == 100


def test_files_of_the_same_name_and_size_are_not_new(logs: list[str], tmp_path: Path) -> None:
    rows = [file_row("a", logs[0], 100), file_row("b", logs[1], 39), file_row("c", f"{logs[3]}!/server.log", 70)]
    store(tmp_path / "lake", LOG_FILES, rows)
    assert new_bytes(logs, tmp_path / "lake") == 40 + 20 * 10


def test_what_no_replay_has_read_waits(logs: list[str], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    store(lake, LOG_FILES, [file_row("a", logs[0], 100), file_row("b", logs[2], 10)])
    assert waiting_bytes(lake) == 100 + 20 * 10
    replay = {"run_number": 1, "run_id": "run", "replayed_time": 0, "components": "c"}
    store(lake, RUNS, [{**replay, "file_ids": ["a"]}])
    assert waiting_bytes(lake) == 20 * 10
