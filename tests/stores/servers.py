"""Servers that tests start, on loopback."""

from __future__ import annotations

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
