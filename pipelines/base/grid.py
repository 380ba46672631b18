"""Rows as aligned columns. Neither words nor numbers are broken. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import east_asian_width

GAP: Final = "  "
#: A blank at which no cell is broken.
GLUE: Final = "\N{NO-BREAK SPACE}"
_BLANKS: Final = re.compile(r"[ \t\n]+")
#: Minimum columns of a text that wraps.
_PROSE_MIN: Final = 16


def format_grid(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], width: int | None) -> str:
    """Return rows as aligned columns, or as one block per row if the columns do not fit.

    Args:
        right: True for each right-aligned column.
        width: width of the terminal in columns. None for no limit.
    """
    columns = list(zip(heads, *rows, strict=True))
    widths = _fit_widths(columns, right, width)
    if widths is None:
        lines = list(_format_blocks(heads, rows, width or 0))
    else:
        rule = ["-" * size for size in widths]
        lines = [line for row in (heads, rule, *rows) for line in _align(row, widths, right)]
    return "\n".join(lines).replace(GLUE, " ")


def _fit_widths(columns: Sequence[Sequence[str]], right: Sequence[bool], width: int | None) -> list[int] | None:
    """Return the width of each column. None if the longest words do not fit side by side."""
    whole = [max(count_columns(line) for cell in cells for line in cell.split("\n")) for cells in columns]
    if width is None or sum(whole) + len(GAP) * (len(whole) - 1) <= width:
        return whole
    least = [_measure_least(cells, is_right) for cells, is_right in zip(columns, right, strict=True)]
    room = width - len(GAP) * (len(least) - 1) - sum(least)
    if room < 0:
        return None
    wanting = sorted(range(len(least)), key=lambda place: whole[place] - least[place])
    for done, place in enumerate(wanting):
        more = min(whole[place] - least[place], room // (len(wanting) - done))
        least[place] += more
        room -= more
    return least


def _measure_least(cells: Sequence[str], is_right: bool) -> int:
    words = max(count_columns(word) for cell in (cells[:1] if is_right else cells) for word in _BLANKS.split(cell))
    if is_right:
        return max(words, *map(count_columns, cells[1:]), 0)
    return max(words, min(_PROSE_MIN, max(map(count_columns, cells))))


def _align(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    folded = [_fold(cell, size) for cell, size in zip(row, widths, strict=True)]
    for place in range(max(map(len, folded))):
        parts = []
        for lines, size, is_right in zip(folded, widths, right, strict=True):
            line = lines[place] if place < len(lines) else ""
            blank = " " * (size - count_columns(line))
            parts.append(blank + line if is_right else line + blank)
        yield GAP.join(parts).rstrip()


def _fold(text: str, width: int) -> list[str]:
    """Return a text in lines, broken between words only."""
    return [
        part
        for line in text.split("\n")
        for part in ([line] if count_columns(line) <= width else _wrap(line, width, "")) or [""]
    ]


def _wrap(text: str, width: int, rest: str) -> list[str]:
    return textwrap.wrap(text, max(width, 1), subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def _format_blocks(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    yield from _wrap(f"(one block per row: {len(heads)} columns are too wide for a terminal of {width})", width, "")
    for row in rows:
        yield from _wrap(f"{heads[0]}: {row[0]}", width, "    ")
        line = ""
        for head, cell in zip(heads[1:], row[1:], strict=True):
            pair = f"{head}: {_BLANKS.sub(' ', cell.strip(' '))}"
            if line and count_columns(line) + count_columns(pair) + 2 * len(GAP) > width:
                yield from _wrap(f"{GAP}{line}", width, "    ")
                line = pair
            else:
                line = f"{line}{GAP}{pair}" if line else pair
        if line:
            yield from _wrap(f"{GAP}{line}", width, "    ")


def count_columns(text: str) -> int:
    """Return the columns that a terminal needs for a text."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
