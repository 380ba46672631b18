"""Every process that is started is ended, and a run that takes too long, or is interrupted, ends."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.testbed.processes import PORTS, Interrupted, Process, StartError, bounded, free_ports

pytestmark = pytest.mark.unit

#: Prints its child's id, and ends on nothing but SIGKILL.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
time.sleep(60)
"""


def gone(pid: int) -> bool:
    """The process has ended; one that nobody waited for may still be listed."""
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX"


@pytest.fixture
def stubborn(tmp_path: Path):
    process = Process([sys.executable, "-c", STUBBORN], tmp_path / "out")
    until = time.monotonic() + 20
    while not (tmp_path / "out").read_text().strip():
        assert time.monotonic() < until
        time.sleep(0.02)
    yield process, int((tmp_path / "out").read_text())
    process.kill()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks at processes through /proc")
def test_what_does_not_end_when_asked_is_killed_with_its_children(stubborn: tuple[Process, int]):
    process, child = stubborn
    assert not process.terminate(timeout_s=0.2)
    assert not process.running
    until = time.monotonic() + 5
    while not gone(child) and time.monotonic() < until:
        time.sleep(0.02)
    assert gone(child)


def test_a_paused_process_ends_when_asked(tmp_path: Path):
    process = Process(["sleep", "60"], tmp_path / "out")
    process.send(signal.SIGSTOP)
    assert process.terminate(timeout_s=10)


def test_a_signal_to_one_that_has_ended_goes_nowhere(tmp_path: Path):
    process = Process(["true"], tmp_path / "out")
    assert process.terminate()
    process.send(signal.SIGKILL)
    process.kill()


def test_a_process_that_ends_is_not_waited_for_and_says_why(tmp_path: Path):
    process = Process([sys.executable, "-c", "raise SystemExit('no such setting')"], tmp_path / "out")
    with pytest.raises(StartError, match="no such setting"):
        process.wait_listening(free_ports(1)[0], timeout_s=30)


def test_ports_are_free_distinct_and_below_those_that_the_system_hands_out():
    ports = free_ports(8)
    assert len(set(ports)) == 8
    assert all(port in PORTS for port in ports)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[0]))


def test_a_run_that_takes_too_long_is_interrupted():
    with pytest.raises(Interrupted, match="1 s are over"), bounded(1):
        time.sleep(30)


def test_a_second_signal_does_not_interrupt_what_ends_the_processes():
    ended = []

    def run() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            ended.append(True)

    with pytest.raises(Interrupted, match="SIGTERM"), bounded(60):
        run()
    assert ended
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
