"""The lease of a lake, held by real processes: killed, stopped, and too late."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from highwater.pipelines.base.errors import InputError, LakeBusy, LeaseLost
from highwater.pipelines.lake import writer as lake_lease
from highwater.pipelines.lake.writer import Lease, LeaseTerm, hold_lease, read_newest_term
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of
from tests.unit.storage.stores import root  # noqa: F401

ROOT = Path(__file__).parents[3]
HOLD = """
import sys, time
from pathlib import Path
from highwater.pipelines.lake import writer as lake_lease
from highwater.pipelines.base.errors import LeaseLost
lake_lease.SKEW_S = 0.2
with lake_lease.hold_lease(Path(sys.argv[1]), "replay", 2, 0, print) as fence:
    print("held", flush=True)
    for line in sys.stdin:
        try:
            fence()
            print("may write", flush=True)
        except LeaseLost as lost:
            print(lost, flush=True)
"""


@pytest.fixture(autouse=True)
def short_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_lease, "SKEW_S", 0.2)
    monkeypatch.setattr(lake_lease, "_POLL_S", 0.05)


@contextmanager
def held_elsewhere(lake: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lake)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def asked(process: subprocess.Popen[str]) -> str:
    """What the other process says of its fence."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_one_after_the_other(root: Place) -> None:  # noqa: F811
    for number in (1, 3):
        with hold_lease(root, "audit", 60, 0, pytest.fail) as fence:
            fence()
            term = read_newest_term(root)
            assert term is not None
            assert term.number == number
            assert f"highwater audit, process {os.getpid()} on " in term.holder
            with (
                pytest.raises(LakeBusy, match=f"process {os.getpid()}"),
                hold_lease(root, "replay", 60, 0, pytest.fail),
            ):
                pytest.fail("two hold it")
            fence()


def test_it_is_renewed_for_as_long_as_it_is_held(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as other:
        time.sleep(3)
        assert asked(other) == "may write"
        with pytest.raises(LakeBusy, match=f"process {other.pid}"), hold_lease(tmp_path, "audit", 2, 0, pytest.fail):
            pytest.fail("two hold it")


def test_a_killed_holder_is_waited_for_until_its_time_is_over(tmp_path: Path) -> None:
    told: list[str] = []
    with held_elsewhere(tmp_path) as other:
        other.kill()
        other.wait()
        with pytest.raises(LakeBusy), hold_lease(tmp_path, "audit", 2, 0, pytest.fail):
            pytest.fail("its time is not over")
        with hold_lease(tmp_path, "audit", 2, 20, told.append) as fence:
            fence()
    assert [f"process {other.pid} on " in line for line in told] == [True]


@pytest.mark.parametrize("taken", [True, False])
def test_a_holder_that_was_stopped_for_longer_than_its_lease_writes_nothing(tmp_path: Path, taken: bool) -> None:
    with held_elsewhere(tmp_path) as other:
        assert asked(other) == "may write"
        other.send_signal(signal.SIGSTOP)
        if taken:
            with hold_lease(tmp_path, "audit", 2, 20, len) as fence:
                fence()
                other.send_signal(signal.SIGCONT)
                assert "is not written any more" in asked(other)
                fence()
        else:
            time.sleep(2.5)
            other.send_signal(signal.SIGCONT)
            time.sleep(1)  # it would renew it by now
            assert "slept for longer than its lease" in asked(other)
        before = read_newest_term(tmp_path)
        assert "is not written any more" in asked(other)
        assert read_newest_term(tmp_path) == before


def test_a_number_that_was_removed_and_put_again_is_no_lease(root: Place, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(lake_lease, "_LEASES_MAX", 1)
    slow, quick = Lease(root, "slow", 60), Lease(root, "quick", 60)
    store_of(root).make_folder(root / "_highwater" / "lease")
    seen = [None, *[read_newest_term] * 9]

    def newest(lake: Place) -> LeaseTerm | None:
        ask = seen.pop(0)
        return ask and ask(lake)

    assert quick.take() is None
    quick.give_back()
    assert store_of(root).names(root / "_highwater" / "lease") == [f"{2:020}.json"]
    # It looked before the other one came, and slept since.
    monkeypatch.setattr(lake_lease, "read_newest_term", newest)
    assert slow.take() == read_newest_term(root)
    with pytest.raises(LeaseLost, match="another run"):
        slow.fence()


def test_a_fence_asks_for_time_to_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_highwater" / "lease").mkdir(parents=True)
    lease = Lease(tmp_path, "audit", 8)
    assert lease.take() is None
    lease.fence()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 6.5)
    with pytest.raises(LeaseLost, match="could not be renewed in time"):
        lease.fence()


def test_a_lake_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "lake").write_bytes(b"")
    with (
        pytest.raises(InputError, match="cannot be written"),
        hold_lease(tmp_path / "lake", "audit", 4, 0, pytest.fail),
    ):
        pytest.fail("it is a file")
