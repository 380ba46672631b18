"""What terminals and web pages do to lines: colours, escaped signs, lines that are broken at a width. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from pipelines.bronze.layout import Item
from pipelines.bronze.wrappers.step import Step

COLUMNS = "columns "
_COLOURS = re.compile(rb"(?:\x1b|\^\[|#033|\\x1b|\\033|\\u001[bB])\[[0-9;?]*[A-Za-z]|\x1b\(B")


def _plain(line: bytes) -> list[Item] | None:
    return [(b"", without_colours(line), False, 0)]


def without_colours(line: bytes) -> bytes:
    """Return a line without its colours."""
    return _COLOURS.sub(b"", line)


COLOURS = Step("colours", _plain)


def has_colours(line: bytes) -> bool:
    """Return True if a line has colours, in any spelling of the escape sign."""
    return _COLOURS.search(line) is not None


_ENTITY = re.compile(rb"&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,4}|#x[0-9a-fA-F]{2,4});")


def _unescaped(line: bytes) -> list[Item] | None:
    if b"&" in line:
        line = html.unescape(line.decode(errors="replace")).replace("\xa0", " ").encode()
    return [(b"", line, False, 0)]


ENTITIES = Step("entities", _unescaped)


def has_entities(lines: Sequence[bytes]) -> bool:
    """Return True if signs are escaped as in HTML: more lines have such ones than have the bare signs."""
    escaped = sum(_ENTITY.search(line) is not None for line in lines)
    return escaped > 1 and escaped > sum(b"<" in line or b">" in line for line in lines)


def columns(width: int) -> Step:
    """Return the step that joins lines which a terminal broke: one of the full width goes on in the next line."""

    def unwrap(line: bytes) -> list[Item] | None:
        line = line.removesuffix(b"\r")
        return [(b"", line, len(line.decode(errors="replace")) == width, 0)]

    return Step(f"{COLUMNS}{width}", unwrap)
