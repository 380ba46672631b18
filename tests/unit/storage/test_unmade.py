"""What a failed run made is gone again; what was there, or was read, stays."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from highwater.pipelines.lake.contents import remove_if_unread
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lock import LOCK_NAME, hold_lock
from highwater.pipelines.storage.unmade import undo_folders
from highwater.schemas.catalog import TABLES


class Failed(Exception):
    """The run."""


@pytest.mark.parametrize(("there", "stays"), [("", "."), ("a", "a"), ("a/b", "a/b")])
def test_folders_that_were_made_and_are_empty(there: str, stays: str, tmp_path: Path) -> None:
    (tmp_path / there).mkdir(exist_ok=True, parents=True)
    with suppress(Failed), undo_folders(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b").mkdir(parents=True, exist_ok=True)
        raise Failed
    assert (tmp_path / stays).is_dir()
    assert sorted(path.name for path in (tmp_path / stays).iterdir()) == []


def test_a_folder_that_has_something_in_it_stays(tmp_path: Path) -> None:
    with suppress(Failed), undo_folders(tmp_path / "a"):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "report.json").touch()
        raise Failed
    assert (tmp_path / "a" / "report.json").is_file()


def _fail(lake: Path) -> None:
    with suppress(Failed), hold_lock(lake, "audit", 0, print), remove_if_unread(lake):
        Lake(None, lake).create(TABLES)
        raise Failed


def test_a_lake_into_which_nothing_was_read(tmp_path: Path) -> None:
    _fail(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_lake_that_was_there_and_what_is_no_lakes_stay(tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "coins.txt").touch()
    _fail(tmp_path)
    assert (tmp_path / "gold" / "coins.txt").is_file()
    assert (tmp_path / "bronze").is_dir()


def test_who_waited_for_a_lake_that_is_gone_locks_the_new_one(tmp_path: Path) -> None:
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        (tmp_path / LOCK_NAME).unlink()
        first.close()

    first = ExitStack()
    first.enter_context(hold_lock(tmp_path, "audit", 0, print))
    with hold_lock(tmp_path, "parse", 5, tell):
        assert '"parse"' in (tmp_path / LOCK_NAME).read_text()
    assert "is being written by highwater audit" in told[0]
