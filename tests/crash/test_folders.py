"""Folders that cannot be written, and disks that fill up: one clear line, and the lake as it was.

The disks are real: file systems in memory of a few megabytes, so that the writes of Python and of the JVM fail as they
do on any full disk. Making them takes root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.commands import SMALL_CONF, highwater
from tests.crash.conftest import Undisturbed
from tests.crash.lakes import compare, digest, tables

Disk = Callable[[int], Path]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """Makes disks of so many bytes."""
    mounted: list[Path] = []

    def make(size_bytes: int) -> Path:
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        made = _mount("-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder))
        if made.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def _mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)


def _grow(folder: Path, size_bytes: int) -> None:
    made = _mount("-o", f"remount,size={size_bytes}", str(folder))
    assert made.returncode == 0, made.stderr


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def test_a_report_that_could_not_be_written_is_told_first(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("a file is in the way")
    ended = highwater(tmp_path, "audit", corpus)
    assert ended.code == 2
    assert len(ended.complaints) == 1
    assert f"{tmp_path / 'report'}: cannot hold the report" in ended.complaints[0]
    assert "--out" in ended.complaints[0]
    assert "start Spark" not in ended.err
    assert not (tmp_path / "lake").exists()


def test_no_lake_is_made_by_verbs_that_need_one(tmp_path: Path) -> None:
    for verb in ("parse", "replay"):
        ended = highwater(tmp_path, verb)
        assert (ended.code, len(ended.complaints)) == (2, 1)
        assert f"{tmp_path / 'lake'}: is not a lake" in ended.complaints[0]
        assert not (tmp_path / "lake").exists()


@needs_root
@pytest.mark.crash
def test_a_read_only_lake_can_be_read_and_is_not_written(
    undisturbed: Undisturbed, disk: Disk, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    where = disk(256 << 20)
    lake = where / "lake"
    shutil.copytree(undisturbed.folder / "lake", lake)
    before = digest(lake)
    assert _mount("-o", "remount,ro", str(where)).returncode == 0
    for verb, arguments in (("audit", [undisturbed.corpus]), ("parse", []), ("replay", [])):
        ended = highwater(tmp_path, verb, *arguments, lake=lake)
        assert (ended.code, len(ended.complaints)) == (2, 1), ended.err
        assert f"{lake}: no file can be written there (Read-only file system)" in ended.complaints[0]
        assert "start Spark" not in ended.err
    told = highwater(tmp_path, "report", lake=lake)
    assert told.code == undisturbed.ended.code, told.err
    assert told.out == undisturbed.ended.out
    tell(f"a read-only lake of {len(before)} files: 3 verbs refused, the report as before")
    assert digest(lake) == before


@needs_root
@pytest.mark.crash
@pytest.mark.parametrize("free_kib", [16, 600, 1100])
def test_a_full_disk(
    free_kib: int, undisturbed: Undisturbed, disk: Disk, tmp_path: Path, tell: Callable[[str], None]
) -> None:
    """The lake's disk is full after so many KiB; with room again the same command ends as if nothing had been."""
    where = disk(free_kib << 10)
    lake = where / "lake"
    ended = highwater(tmp_path, "audit", undisturbed.corpus, lake=lake)
    found = tables(lake)
    rows = sum(version.count() for version in found.values())
    tell(f"{free_kib} KiB: {ended.complaints}; {len(found)} tables with {rows} rows, all whole")
    assert ended.code == 2, ended.err
    assert len(ended.complaints) == 1
    assert str(lake) in ended.complaints[0]
    assert "space left" in ended.complaints[0]
    _grow(where, 256 << 20)
    again = highwater(tmp_path, "audit", undisturbed.corpus, lake=lake)
    assert again.code == undisturbed.ended.code, again.err
    compared = compare(undisturbed.folder / "lake", lake)
    tell(str(compared))
    assert compared.differences == []


@needs_root
@pytest.mark.crash
def test_a_full_scratch_disk(undisturbed: Undisturbed, disk: Disk, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Where Spark spills to, there is no room: it is that folder which is named, and not the lake."""
    scratch = disk(32 << 10)
    conf = SMALL_CONF + f'[session.spark]\n"spark.local.dir" = "{scratch}"\n'
    ended = highwater(tmp_path, "audit", undisturbed.corpus, conf=conf)
    tell(f"{ended.complaints}; {_free(scratch)} bytes free")
    assert ended.code == 2, ended.err
    assert len(ended.complaints) == 1
    assert f"{scratch}: no space left" in ended.complaints[0]
    assert "spark.local.dir" in ended.complaints[0]
    again = highwater(tmp_path, "audit", undisturbed.corpus)
    assert again.code == undisturbed.ended.code, again.err
    compared = compare(undisturbed.folder / "lake", tmp_path / "lake")
    tell(str(compared))
    assert compared.differences == []
