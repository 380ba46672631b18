"""Escaped text of logs, since logs are hostile input, and numbers for people. Pure."""

from __future__ import annotations

import re
import sys
from shutil import get_terminal_size

#: What Markdown (GitHub's included) and the HTML within it could take for markup, anywhere in a line.
_MARKUP = re.compile(r"[\\`*_\[\]|~#!$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_ENTITY = re.compile("[&<>@]")
#: At the start of a line: a list, a rule, the underline of a heading, a numbered list.
_LEADING = re.compile(r"^([-+=]|\d+[.)](?=\s|$))")
_LINK = re.compile(r"(://|\bwww\.)", re.IGNORECASE)

TEXT_MAX = 400
WIDTH_MAX = 100


def _measure_prose_width() -> int:
    if sys.stdout is None or not sys.stdout.isatty():
        return WIDTH_MAX
    return min(WIDTH_MAX, max(get_terminal_size().columns, 40))


#: Columns of prose: the width of the terminal, at most a hundred.
PROSE_WIDTH = _measure_prose_width()


def plain(text: object, limit: int = TEXT_MAX) -> str:
    """Return one line of printable text: line ends, control characters and bidi overrides become blanks.

    Args:
        limit: maximum length. A truncated text ends in an ellipsis.
    """
    shown = "".join(char if char.isprintable() else " " for char in str(text)[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def markdown(text: object, limit: int = TEXT_MAX) -> str:
    """Return one line of text for Markdown, even in a table cell: all markup is escaped."""
    shown = plain(text, limit)
    lead = _LEADING.match(shown)
    escaped = _ENTITY.sub(lambda match: _ENTITIES[match[0]], _MARKUP.sub(r"\\\g<0>", shown))
    if lead:
        # The last character of what starts a list is punctuation, so a backslash makes it text.
        cut = len(lead[0]) - 1
        escaped = f"{escaped[:cut]}\\{escaped[cut:]}"
    return _LINK.sub(lambda match: match[0].replace(":", "&#58;").replace(".", "&#46;"), escaped)


def count(value: int | None) -> str:
    """Return a number with thousands separators: 12,345. "-" for None."""
    return "-" if value is None else f"{value:,}"


def number(value: int, noun: str, plural: str = "") -> str:
    """Return a counted noun: ``1 partition``, ``1,204 partitions``, ``2 entries``."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def offsets(start: int | None, end: int | None) -> str:
    """Return ``offset 118``, ``offsets 848-897``, or ``offset 848 and later``. Empty if no offset is known.

    Args:
        end: exclusive. None if unknown.
    """
    if start is None:
        return ""
    if end is None:
        return f"offset {start} and later"
    return f"offset {start}" if end <= start + 1 else f"offsets {start}-{end - 1}"


def ms(value: float | None) -> str:
    """Return milliseconds with two decimals below 10, one below 1000, none above. "-" for None."""
    if value is None:
        return "-"
    size = abs(value)
    return f"{value:,.{2 if size < 10 else 1 if size < 1000 else 0}f}"


def share(value: float | None) -> str:
    """Return a share (0 to 1) as a percentage. 100% only if it is exactly 1. "-" for None."""
    if value is None:
        return "-"
    text = f"{value:.2%}"
    if text == "100.00%" and value < 1:
        return ">99.99%"
    return "<0.01%" if text == "0.00%" and value > 0 else text


def byte_size(value: int) -> str:
    """Return a size in bytes: 812 B, 1.2 MiB."""
    size, units = float(value), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:,.0f} B" if units[0] == "B" else f"{size:,.1f} {units[0]}"
