"""Processes that a run starts, and ports that they listen on. Each is a group of its own, and none outlives the run."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from tests.testbed.settings import HOST

#: Below the ports that Linux hands out by itself, so that a restarted broker gets its own again.
PORTS = range(20_000, 30_000)
STOP_S = 20.0


class StartError(Exception):
    """A process ended, or did not listen in time."""


class Interrupted(Exception):
    """A signal, or the end of the time allowed."""


def free_ports(count: int) -> list[int]:
    """So many ports that nobody listens on."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if len(ports) == count:
            break
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        ports.append(port)
    if len(ports) < count:
        raise StartError(f"no {count} free ports from {PORTS.start} to {PORTS.stop}")
    return ports


class Process:
    """A process in a group of its own, with its output in a file."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self._output = output
        with output.open("ab") as file:
            self._popen = subprocess.Popen(
                list(command), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )

    @property
    def running(self) -> bool:
        """It has not ended."""
        return self._popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group."""
        if self.running:
            os.killpg(self._popen.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)
        self._popen.wait(STOP_S)

    def terminate(self, timeout_s: float = STOP_S) -> bool:
        """Ask it to end, and end it when it does not: True if it did by itself."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def wait_listening(self, port: int, timeout_s: float = 60.0) -> None:
        """Wait until it takes connections.

        Raises:
            StartError: it ended, or time is over; with the last of what it printed.
        """
        end = time.monotonic() + timeout_s
        while time.monotonic() < end and self.running:
            try:
                socket.create_connection((HOST, port), 1).close()
                return
            except OSError:
                time.sleep(0.2)
        why = f"does not listen on {port} after {timeout_s:.0f} s" if self.running else "ended"
        raise StartError(f"{self._output}: {why}:\n{self._output.read_text(errors='replace')[-2000:]}")


@contextmanager
def bounded(seconds: int) -> Iterator[None]:
    """Raise `Interrupted` in the main thread on SIGINT and SIGTERM, and when time is over."""

    def interrupt(number: int, _: FrameType | None) -> None:
        for later in numbers:  # a second signal must not interrupt what ends the processes
            signal.signal(later, signal.SIG_IGN)
        reason = f"{seconds} s are over" if number == signal.SIGALRM else signal.Signals(number).name
        raise Interrupted(reason)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        for number, handler in before.items():
            signal.signal(number, handler)
