"""`highwater maintain`: what it rewrites and removes, and that a lake in order is left alone."""

from __future__ import annotations

import json
import os
import time

import pytest

from highwater.jobs import maintain as verb
from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.errors import ConfigError
from highwater.pipelines.lake.delta_log import read_log
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.upkeep.maintenance import SMALL_FILES_MIN
from highwater.schemas.table import LONG, STRING, TableSpec, column, required
from tests.console import CaptureConsole

HOUR_S = 3600
#: Of a layer that the catalog need not know.
SPEC = TableSpec(
    layer="state",
    name="positions",
    comment="One position.",
    columns=(required("topic", STRING, "Topic"), column("offset", LONG, "Offset")),
    keys=("topic",),
    bounded_by=("topic",),
    properties={"delta.enableChangeDataFeed": "true"},
)


@pytest.fixture
def small_files(lake: Lake) -> Lake:
    """A table of many small files."""
    rows = [(f"t{number}", number) for number in range(SMALL_FILES_MIN)]
    cut = lake.spark.createDataFrame(rows, SPEC.worker_schema).repartitionByRange(SMALL_FILES_MIN, "offset")
    lake.append_once(SPEC, cut, "run-1")
    assert len(read_log(lake.path(SPEC)).files) == SMALL_FILES_MIN
    return lake


def _maintain(lake: Lake, hours: int = 168, *, force: bool = False, dry_run: bool = False) -> CaptureConsole:
    console = CaptureConsole()
    assert verb.maintain(load_config(), console, lake.root, hours, force, dry_run) == ExitCode.CLEAN
    return console


def _rows(lake: Lake) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.read(SPEC).collect())


def _on_disk(lake: Lake) -> int:
    return len(list(lake.path(SPEC).glob("*.parquet")))


def _age(lake: Lake, *, written_hours: float, removed_hours: float) -> None:
    """Have all files written, and those that are no longer live removed, so long ago."""
    path, now = lake.path(SPEC), time.time()
    for commit in (path / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "remove" in action:
                action["remove"]["deletionTimestamp"] = int((now - removed_hours * HOUR_S) * 1000)
        commit.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    for outdated in [*(path / "_delta_log").glob("*.crc"), *(path / "_delta_log").glob("*checkpoint*")]:
        outdated.unlink(missing_ok=True)
    for file in path.rglob("*.parquet"):
        os.utime(file, (now - written_hours * HOUR_S,) * 2)
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def test_small_files_are_compacted_once(small_files: Lake) -> None:
    lake, rows, version = small_files, _rows(small_files), small_files.versions()["state.positions"]
    said = _maintain(lake, dry_run=True).texts("table")[0]
    assert said.splitlines()[1].split("\t") == ["state.positions", "8", "8", "yes", "0", "0 B"]
    assert lake.versions()["state.positions"] == version

    said = _maintain(lake).texts("table")[0]
    assert said.splitlines()[1].split("\t") == ["state.positions", "8", "1", "0", "0 B"]
    log = read_log(lake.path(SPEC))
    assert (len(log.files), log.version) == (1, version + 1)
    assert lake.stamp(SPEC) == "run-1"
    assert _rows(lake) == rows
    feed = lake.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version + 1)
    assert feed.load(str(lake.path(SPEC))).isEmpty()
    # Versions within the retention are still there.
    then = lake.spark.read.format("delta").option("versionAsOf", version).load(str(lake.path(SPEC)))
    assert then.count() == SMALL_FILES_MIN

    console = _maintain(lake)
    assert console.texts("table") == []
    assert "nothing to do" in console.texts("note")[0]
    assert lake.versions()["state.positions"] == version + 1


def test_files_are_kept_as_long_as_the_retention_says(small_files: Lake) -> None:
    lake, rows = small_files, _rows(small_files)
    _maintain(lake)
    # Written long ago, but part of the table until 30 hours ago.
    _age(lake, written_hours=100, removed_hours=30)
    _maintain(lake, 48)
    assert _on_disk(lake) == SMALL_FILES_MIN + 1
    said = _maintain(lake, 24).texts("table")[0]
    assert said.splitlines()[1].split("\t")[:4] == ["state.positions", "1", "1", str(SMALL_FILES_MIN)]
    assert (_on_disk(lake), _rows(lake)) == (1, rows)
    assert "nothing to do" in _maintain(lake, 24).texts("note")[0]
    assert lake.stamp(SPEC) == "run-1"


def test_what_a_killed_write_left_goes(small_files: Lake) -> None:
    lake, path = small_files, small_files.path(SPEC)
    _maintain(lake)
    orphan, temporary = path / "part-00000-dead.parquet", path / "_delta_log" / ".00000.json.dead.tmp"
    checksum, fresh = path / ".part-00000-gone.parquet.crc", path / "_delta_log" / ".young.tmp"
    for file in (orphan, temporary, checksum, fresh):
        file.write_bytes(b"left over")
    for file in (orphan, temporary, checksum):
        os.utime(file, (time.time() - 200 * HOUR_S,) * 2)
    kept = {file for file in path.rglob("*") if file not in (orphan, temporary, checksum)}
    assert "27 B" in _maintain(lake).texts("table")[0]
    assert not any(file.exists() for file in (orphan, temporary, checksum))
    assert all(file.exists() for file in kept)


def test_no_retention_takes_force_and_frees_at_once(small_files: Lake) -> None:
    lake, rows = small_files, _rows(small_files)
    with pytest.raises(ConfigError, match="--force"):
        _maintain(lake, 23)
    assert _on_disk(lake) == SMALL_FILES_MIN
    _maintain(lake, 0, force=True)
    assert (_on_disk(lake), _rows(lake)) == (1, rows)


def test_a_longer_retention_is_told_to_delta(small_files: Lake) -> None:
    with pytest.raises(ConfigError, match="is more than 720"):
        _maintain(small_files, 721)
    _maintain(small_files, 720)
    log = read_log(small_files.path(SPEC))
    assert log.removed_kept_hours == 720
    _maintain(small_files, 720)
    assert read_log(small_files.path(SPEC)).version == log.version
