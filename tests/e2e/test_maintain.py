"""`highwater maintain` as a process: results on stdout and nothing else, although Delta prints there, too."""

from __future__ import annotations

import os
import time
from pathlib import Path

from highwater.pipelines.lake.tables import create_table
from highwater.schemas.gold import RUNS
from tests.verbs import in_process


def test_results_are_all_that_stands_on_stdout(tmp_path: Path) -> None:
    table = tmp_path / "lake" / "gold" / "runs"
    create_table(table, RUNS)
    killed = table / "part-00000-killed.parquet"
    killed.write_bytes(b"x" * 2048)
    os.utime(killed, (time.time() - 200 * 3600,) * 2)

    planned = in_process(tmp_path, "maintain", "--dry-run")
    assert (planned.code, killed.exists()) == (0, True), planned.err
    assert "2.0 KiB" in planned.out

    done = in_process(tmp_path, "maintain")
    assert (done.code, killed.exists()) == (0, False), done.err
    assert "[Stage" not in done.err
    lines = [line.split() for line in done.out.splitlines() if line.strip()]
    assert lines[0] == ["table", "files", "before", "after", "removed", "freed"]
    assert lines[2:] == [["gold.runs", "0", "0", "1", "2.0", "KiB"]]

    again = in_process(tmp_path, "maintain")
    assert (again.code, again.out) == (0, "")
    assert "nothing to do" in again.err
