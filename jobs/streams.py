"""The standard streams of this process: streams that the parent closed, and streams whose reader is gone."""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Open standard streams that are closed, as ``/dev/null``.

    Otherwise the next opened file would get the number of a closed stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def leave_stdout() -> None:
    """Drop the buffered output of stdout, whose reader is gone. At exit it would raise another error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
