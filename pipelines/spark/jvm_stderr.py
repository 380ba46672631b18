"""Filter for warnings of the JVM about incubator modules and deprecated methods.

The JVM prints these before any logging is set up and has no option against them, and on stdout why it cannot begin. So
both go through a pipe, and everything but them is handed on to stderr as it comes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

#: The JVM's own form; lines of Spark's logging begin with their time.
_OWN_WARNING = b"WARNING: "
_STDERR = 2


@contextmanager
def filter_stderr() -> Iterator[int]:
    """Yield a file descriptor for a child process's output: known harmless JVM warnings are removed."""
    reading, writing = os.pipe()
    Thread(target=_forward_lines, args=(reading,), name="jvm-stderr", daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)  # the process has its own copy


def _forward_lines(reading: int) -> None:
    # Not sys.stderr: a caller may have replaced it, and the JVM's output is not for the replacement.
    with open(reading, "rb") as lines, open(_STDERR, "wb", buffering=0, closefd=False) as out:
        for line in lines:
            if not line.startswith(_OWN_WARNING):
                out.write(line)
