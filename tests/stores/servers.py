"""Servers that tests start, on loopback."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

START_S = 120


@contextmanager
def server(command: Sequence[str | Path], folder: Path, is_up: Callable[[], object]) -> Iterator[None]:
    """A process that is there for as long as the block lasts; what it writes is in the folder's ``log``."""
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_S
        while not is_up():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def listening(command: Callable[[str], Sequence[str | Path]], folder: Path) -> Iterator[str]:
    """A server on a port of this machine that is free; gives its URL.

    Args:
        command: of the port.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def is_up() -> bool:
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", port)) == 0

    with server(command(str(port)), folder, is_up):
        yield f"http://127.0.0.1:{port}"
