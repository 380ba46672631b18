"""The streams of this process: those that whoever started it has closed, and those whose reader is gone."""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Have all three there: the next file that is opened would take the number of one that is closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def leave_stdout() -> None:
    """Nobody takes what is printed: what is still buffered would raise once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
