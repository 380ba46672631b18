"""What terminals do to lines: colours, and lines that are broken where the width ends. Pure."""

from __future__ import annotations

import re

from pipelines.bronze.layout import Item
from pipelines.bronze.wrappers.step import Step

COLUMNS = "columns "
_COLOURS = re.compile(rb"(?:\x1b|\^\[|#033|\\x1b|\\033|\\u001[bB])\[[0-9;?]*[A-Za-z]|\x1b\(B")


def _plain(line: bytes) -> list[Item] | None:
    return [(b"", _COLOURS.sub(b"", line), False, 0)]


COLOURS = Step("colours", _plain)


def has_colours(line: bytes) -> bool:
    """Return True if a line has colours, in any spelling of the escape sign."""
    return _COLOURS.search(line) is not None


def columns(width: int) -> Step:
    """Return the step that joins lines which a terminal broke: one of the full width goes on in the next line."""

    def unwrap(line: bytes) -> list[Item] | None:
        return [(b"", line, len(line.decode(errors="replace")) == width, 0)]

    return Step(f"{COLUMNS}{width}", unwrap)
