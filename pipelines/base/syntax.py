"""Python source as a syntax tree."""

from __future__ import annotations

import ast
from threading import Lock

_PARSING = Lock()


def parse_source(source: str | bytes) -> ast.Module:
    """Return the syntax tree of Python source. One thread parses at a time.

    Python 3.11 counts the nesting of all threads' trees together, and may raise SystemError for two at once (CPython,
    gh-106905).

    Raises:
        SyntaxError: invalid Python.
    """
    with _PARSING:
        return ast.parse(source)
