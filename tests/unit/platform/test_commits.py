"""What was added since the newest commit of a batch that is done with, read off a table's log."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from highwater.pipelines.lake.commits import find_added_files, find_unsettled_files


def commit(table: Path, version: int, stamp: str | None, *added: str, removed: str | None = None) -> None:
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    actions: list[dict[str, object]] = [{"commitInfo": {"userMetadata": stamp} if stamp else {}}]
    actions += [{"add": {"path": name, "size": len(name)}} for name in added]
    actions += [{"remove": {"path": removed}}] if removed else []
    (log / f"{version:020}.json").write_bytes(b"\n".join(map(orjson.dumps, actions)))


def names(table: Path, *done: str) -> list[str] | None:
    added = find_unsettled_files(table, set(done).__contains__)
    return None if added is None else [name for name, _ in added]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    commit(tmp_path, 0, None)
    commit(tmp_path, 1, "monday", "a")
    commit(tmp_path, 2, "tuesday", "b", "c")
    commit(tmp_path, 3, "wednesday", "d%20e")
    return tmp_path


def test_the_newest_batches_files_are_told_by_their_decoded_names(table: Path):
    assert names(table, "monday") == ["d e", "b", "c"]
    assert names(table, "monday", "tuesday") == ["d e"]
    assert names(table, "wednesday") == []


def test_a_whole_log_is_told_where_nothing_is_done(table: Path):
    assert names(table) == ["d e", "b", "c", "a"]
    (table / "_delta_log" / f"{0:020}.json").unlink()
    assert names(table) is None


def test_a_stamp_may_say_more_than_its_batch(table: Path):
    commit(table, 4, "thursday 0123", "f")
    assert names(table, "thursday") == []


def test_what_is_rewritten_since_is_not_told(table: Path):
    commit(table, 4, None, "bc", removed="b")
    assert names(table, "wednesday") is None
    commit(table, 5, "thursday", "g")
    assert names(table, "wednesday") is None
    assert names(table, "thursday") == []


def test_what_is_removed_since_is_not_told(table: Path):
    commit(table, 4, None, removed="d%20e")
    assert names(table, "tuesday") is None
    assert names(table, "wednesday") == []


def test_files_are_told_that_came_after_a_version(table: Path):
    assert find_added_files(table, 1) == [("b", 1), ("c", 1), ("d e", 5)]
    assert find_added_files(table, 3) == []
    (table / "_delta_log" / f"{2:020}.json").unlink()
    assert find_added_files(table, 1) is None
    assert find_added_files(table, 2) == [("d e", 5)]


def test_rows_that_were_removed_since_leave_nothing_to_be_told(table: Path):
    commit(table, 4, None, removed="a")
    assert find_added_files(table, 3) is None
    assert find_added_files(table, 4) == []


def test_older_files_may_be_compacted_but_not_those_that_came_since(table: Path):
    log = table / "_delta_log"

    def compact(version: int, old: str, new: str) -> None:
        actions = [
            {"remove": {"path": old, "dataChange": False}},
            {"add": {"path": new, "size": 1, "dataChange": False}},
        ]
        (log / f"{version:020}.json").write_bytes(b"\n".join(map(orjson.dumps, actions)))

    compact(4, "a", "smaller")
    assert find_added_files(table, 2) == [("d e", 5)]
    compact(5, "d%20e", "smallest")
    assert find_added_files(table, 2) is None
    assert find_added_files(table, 3) == []
