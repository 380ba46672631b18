"""Python source as a syntax tree."""

from __future__ import annotations

import ast
from threading import Lock

_PARSING = Lock()


def parsed(source: str | bytes) -> ast.Module:
    """Return the parse, one thread at a time: Python 3.11 counts the depth of all threads' trees in one place, and may
    raise
    SystemError where two are made at once (CPython, gh-106905).

    Raises:
        SyntaxError: it is no Python.
    """
    with _PARSING:
        return ast.parse(source)
