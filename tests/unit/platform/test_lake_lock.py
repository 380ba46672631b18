"""The lock of a lake, held by real processes: what a killed one leaves is what matters."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from highwater.pipelines.base.errors import InputError, LakeBusy
from highwater.pipelines.lake.lock import LOCK_NAME, hold_lock

ROOT = Path(__file__).parents[3]
HOLD = """
import sys, time
from pathlib import Path
from highwater.pipelines.lake.lock import hold_lock
with hold_lock(Path(sys.argv[1]), "replay", 0, print):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def held_elsewhere(lake: Path, seconds: float = 60) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lake), str(seconds)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_second_fails_at_once_and_names_the_first(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as first:
        for _ in range(2):  # failing does not take the holder's name away
            with pytest.raises(LakeBusy) as caught, hold_lock(tmp_path, "audit", 0, pytest.fail):
                pytest.fail("two hold it")
            said = str(caught.value)
            assert f"{tmp_path}: is being written by highwater replay, process {first.pid} on " in said
            assert "lock_wait_s" in said
            assert caught.value.exit_code == 2


def test_the_second_waits_and_says_for_whom(tmp_path: Path) -> None:
    told: list[str] = []
    with held_elsewhere(tmp_path, seconds=1) as first, hold_lock(tmp_path, "audit", 30, told.append):
        assert first.wait(5) == 0
    assert len(told) == 1
    assert f"highwater replay, process {first.pid} on " in told[0]
    assert "waiting up to 30 s" in told[0]


def test_the_second_gives_up(tmp_path: Path) -> None:
    started = time.monotonic()
    with (
        held_elsewhere(tmp_path),
        pytest.raises(LakeBusy, match=r"still after 1 s"),
        hold_lock(tmp_path, "audit", 1, len),
    ):
        pytest.fail("two hold it")
    assert time.monotonic() - started >= 1


def test_a_killed_holder_leaves_nothing_to_wait_for(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as first:
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        assert json.loads((tmp_path / LOCK_NAME).read_text())["pid"] == first.pid
        with hold_lock(tmp_path, "audit", 0, pytest.fail):
            assert json.loads((tmp_path / LOCK_NAME).read_text())["pid"] == os.getpid()
    assert json.loads((tmp_path / LOCK_NAME).read_text()) == {}


def test_without_locks_it_is_told_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    told: list[str] = []
    with hold_lock(tmp_path, "audit", 0, told.append):
        pass
    assert len(told) == 1
    assert "no locks on this file system" in told[0]


def test_a_lake_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).mkdir()  # permissions mean nothing to root
    with (
        pytest.raises(InputError, match=r"no file can be written there .*; .*--lake"),
        hold_lock(tmp_path, "audit", 0, pytest.fail),
    ):
        pytest.fail("it is held")
