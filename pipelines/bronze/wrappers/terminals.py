"""Changes that terminals and web pages make to lines: colours, boxes, tags, lines broken at a width. Pure."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from datetime import UTC
from functools import partial

from highwater.pipelines.bronze.layout import Item, Layout, Unwrap
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION, is_foreign, time_shape
from highwater.pipelines.bronze.wrappers.step import Step

#: Lines that were broken at a width: by a terminal anywhere, by a mail between words.
COLUMNS, WORDS = "columns ", "words "
#: Quotes of mails, before a line.
_QUOTES = re.compile(rb"(?:[>|] ?)*")
#: Lines within which a record's time must occur, if a terminal broke them.
_BROKEN_MAX = 12
#: Lines of a box: each line of text begins and ends with one.
_BORDER = re.compile(rb"(?m)^\xe2[\x94\x95][\x80-\xbf] ?|(?<! ) *+\xe2[\x94\x95][\x80-\xbf]\r?$")
_ENTITY = re.compile(rb"&(?:lt|gt|amp|quot|apos|nbsp|#\d{2,4}|#x[0-9a-fA-F]{2,4});")
_BARE = re.compile(rb"[<>\"']")
#: Tags within a line of text.
_TAG = re.compile(rb"</?(?:a|b|code|em|font|i|mark|pre|samp|small|span|strong|tt|u)(?:\s[^<>]{0,400})?>")
#: An escape sign that is escaped itself is of a container within.
_COLOURS = re.compile(rb"(?<!\\)(?:\x1b|\^\[|#033|\\x1b|\\033|\\u001[bB])\[[0-9;?]*[A-Za-z]|\x1b\(B")


def without_colours(line: bytes) -> bytes:
    """Return a line without its colours."""
    return _COLOURS.sub(b"", line)


def strip_dress(line: bytes) -> bytes:
    """Return a line as a terminal shows it, without the box around it."""
    return _BORDER.sub(b"", without_colours(line)).removesuffix(b"\r")


def shown_width(line: bytes) -> int:
    """Return how many characters of a line a terminal shows."""
    return len(strip_dress(line).decode(errors="replace"))


def _unescaped(line: bytes) -> bytes:
    line = _TAG.sub(b"", line)
    return html.unescape(line.decode(errors="replace")).replace("\xa0", " ").encode() if b"&" in line else line


def _line_step(name: str, change: Callable[[bytes], bytes]) -> Step:
    return Step(name, lambda line: [(b"", change(line), False, 0)])


COLOURS = _line_step("colours", without_colours)
BORDERS = _line_step("borders", strip_dress)
ENTITIES = _line_step("entities", _unescaped)


def find_dress(lines: Sequence[bytes]) -> Step | None:
    """Return the step for signs that a terminal or a page adds to lines. None if it adds nothing."""
    if any(map(_COLOURS.search, lines)):
        return COLOURS
    if 2 * sum(_BORDER.match(line) is not None for line in lines) > len(lines):
        return BORDERS
    return ENTITIES if has_entities(lines) else None


def has_entities(lines: Sequence[bytes]) -> bool:
    """Return True if lines have tags or HTML entities: more lines have escaped characters than bare ones.

    A single line suffices if no line has a bare character or quotes.
    """
    if 5 * sum(_TAG.search(line) is not None for line in lines) > len(lines):
        return True
    escaped = sum(_ENTITY.search(line) is not None for line in lines)
    bare = sum(_BARE.search(line) is not None for line in lines) if escaped == 1 else 0
    return escaped > bare and escaped > sum(b"<" in line or b">" in line for line in lines)


def columns(width: int) -> Step:
    """Return the step that joins lines wrapped by a terminal: a line of the full width continues."""
    return Step(f"{COLUMNS}{width}", partial(_rejoin, width), pieces=f"{COLUMNS}{width}")


def words(width: int) -> Step:
    """Return the step that joins lines wrapped between words by a mail program, and removes its quote marks."""
    return Step(f"{WORDS}{width}", _respaced, pieces=f"{WORDS}{width}")


def goes_on(before: bytes, line: bytes, width: int) -> bool:
    """Return True if `before` may continue in `line`, because its first word did not fit."""
    quotes = quotes_of(before)
    word = line[len(quotes_of(line)) :].split(b" ", 1)[0]
    is_text = bool(word.strip()) and bool(before[len(quotes) :].strip()) and quotes.strip() == quotes_of(line).strip()
    return is_text and len(before.rstrip().decode(errors="replace")) + 1 + len(word.decode(errors="replace")) > width


def quotes_of(line: bytes) -> bytes:
    """Return the quote marks that a mail program put before a line."""
    found = _QUOTES.match(line)
    return b"" if found is None else found[0]


def _rejoin(width: int, piece: bytes) -> list[Item] | None:
    return [(b"", _line(width, piece.split(b"\n")), False, 0)]


def _respaced(piece: bytes) -> list[Item] | None:
    return [(b"", _sentence(piece.split(b"\n")), False, 0)]


def rejoin(layout: Layout, inner: Unwrap, step: Step) -> Unwrap:
    """Return a function that splits lines that were joined but were separate. A line of the full width may be whole.

    Args:
        inner: removes the wrapper of a whole line.
        step: `columns` or `words`.
    """
    is_words = step.name.startswith(WORDS)
    join = _sentence if is_words else partial(_line, int(step.name.removeprefix(COLUMNS)))
    parse = layout.parser(UTC) if layout.is_structured else None

    def is_begun(before: Sequence[bytes], lines: Sequence[bytes]) -> bool:
        """Return True if lines begin or continue a record, or are of another program and the line before is whole."""
        own = inner(join(before)) or [(b"", b"", False, 0)]
        text = join(lines[:_BROKEN_MAX])
        if parse is not None:
            # A part of an object is none, but one of pairs may be.
            is_whole = parse(own[0][1]) is not None
            return is_whole and (
                any(inner(join(lines[:number])) for number in range(1, _BROKEN_MAX))
                or is_foreign(text, time_shape(join(before)))
            )
        if any(layout.start.match(item[1]) or CONTINUATION.match(item[1]) for item in inner(text) or ()):
            return True
        is_whole = layout.tail is not None and layout.tail.search(own[0][1]) is not None
        return is_whole and is_foreign(text, time_shape(own[0][1]))

    def unwrap(piece: bytes) -> list[Item] | None:
        lines = piece.split(b"\n")
        found: list[Item] = []
        begun = at = place = 0
        for number, line in enumerate(lines, 1):
            place += len(line) + 1
            if number < len(lines) and not is_begun(lines[begun:number], lines[number:]):
                continue
            items = inner(join(lines[begun:number]))
            found += [(name, text, goes_on, at) for name, text, goes_on, _ in items or ()]
            begun, at = number, place
        return found or None

    return unwrap


def _line(width: int, lines: Sequence[bytes]) -> bytes:
    """Return a line whose parts had the full width. A blank at the end of a part may be lost."""
    *parts, last = (line.removesuffix(b"\r") for line in lines)
    return b"".join(part + b" " * (shown_width(part) == width - 1) for part in parts) + last


def _sentence(lines: Sequence[bytes]) -> bytes:
    return b" ".join(line[len(quotes_of(line)) :].strip(b" \r") for line in lines)
