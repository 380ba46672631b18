"""How a file falls into pieces that are unwrapped: lines, rows of a table, values of a document, stanzas. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.source import BOM
from highwater.pipelines.bronze.wrappers.flattened import FLATTENED, SOFT_BREAKS
from highwater.pipelines.bronze.wrappers.sections import SECTIONS, labeller
from highwater.pipelines.bronze.wrappers.step import WITHIN
from highwater.pipelines.bronze.wrappers.terminals import COLUMNS, WORDS, goes_on, shown_width

#: Rows of a table, in which quotes hold line ends. Objects of a JSON document, with the number of objects and arrays
#: around each. Stanzas, with a pattern of the line that begins one. Lines of a full width with the line behind them.
ROWS, DOCUMENT, STANZA = "rows", "document", "stanza "
_IN_TEXT = {b'"': re.compile(rb'["\\]'), b"'": re.compile(rb"['\\\n]")}
_OUTSIDE = re.compile(rb"[\"'{}\[\]]")
_QUOTE_OR_END = re.compile(rb'["\n]')


class Piece(NamedTuple):
    """A line, or another unit of a file, with its position. Text beyond the limit of a record is dropped."""

    offset: int  #: of its first byte in the file
    size: int  #: bytes up to the next line or row; of an object its own
    line_no: int  #: number of its first line
    text: bytes  #: without a line end
    ended: bool  #: its end was seen
    lines: int = 1  #: how many line ends it takes in


def split(blocks: Iterable[bytes], how: str, bytes_max: int, offset: int = 0, line_no: int = 1) -> Iterator[Piece]:
    """Yield the pieces of a content.

    Args:
        how: `ROWS`, `DOCUMENT`, `SOFT_BREAKS`, `COLUMNS` or `WORDS` and a number, `STANZA` or `SECTIONS` and a pattern.
            Empty for lines.
        bytes_max: limit of a piece's text. Bytes beyond it are counted and dropped.
        offset: offset of the first block.
        line_no: number of the line at `offset`.
    """
    if how == ROWS:
        return _rows(blocks, offset, line_no, bytes_max)
    if how.startswith(DOCUMENT):
        return _objects(blocks, int(how.removeprefix(DOCUMENT)), offset, line_no, bytes_max)
    whole = lines(blocks, offset, line_no, bytes_max)
    kind, _, rest = how.partition(" ")
    if f"{kind} " == STANZA:
        begins = re.compile(rest.encode())
        return _joined(whole, lambda _, line: begins.match(line) is not None, bytes_max)
    if f"{kind} " == SECTIONS:
        label = labeller(rest)
        return (piece._replace(text=label(piece.text)) for piece in whole)
    if f"{kind} " == COLUMNS:
        return _joined(whole, lambda before, _: shown_width(before) not in (int(rest), int(rest) - 1), bytes_max)
    if f"{kind} " == WORDS:
        return _joined(whole, lambda before, line: not goes_on(before, line, int(rest)), bytes_max)
    if how == SOFT_BREAKS:
        return _joined(whole, lambda before, _: not before.rstrip(b"\r").endswith(b"="), bytes_max)
    return whole


def is_within_text(layout: Layout) -> bool:
    """Return True if records are objects or literals within a text, whose other lines have no wrapper."""
    return layout.pieces.startswith(DOCUMENT) or not FLATTENED.keys().isdisjoint(layout.name.split(WITHIN))


def lines(blocks: Iterable[bytes], offset: int, line_no: int, bytes_max: int) -> Iterator[Piece]:
    """Yield lines without their line ends."""
    splitter = LineSplitter(offset, line_no, bytes_max)
    for block in blocks:
        yield from splitter.feed(block)
    yield from splitter.rest()


class LineSplitter:
    """Splits blocks into lines.

    Attributes:
        offset: offset of the current incomplete line.
        line_no: its number.
        held: its text so far.
        dropped: number of its bytes beyond the limit.
    """

    def __init__(self, offset: int, line_no: int, bytes_max: int) -> None:
        self.offset = offset
        self.line_no = line_no
        self.held = b""
        self.dropped = 0
        self._bytes_max = bytes_max

    def feed(self, block: bytes) -> Iterator[Piece]:
        """Yield the lines that end in the next block."""
        *ended, self.held = (self.held + block).split(b"\n")
        for text in ended:
            size = len(text) + self.dropped + 1
            yield Piece(self.offset, size, self.line_no, _beginning(text, self.offset, self._bytes_max), True)
            self.offset += size
            self.line_no += 1
            self.dropped = 0
        if len(self.held) > self._bytes_max:
            self.dropped += len(self.held) - self._bytes_max
            self.held = self.held[: self._bytes_max]

    def rest(self) -> Iterator[Piece]:
        """Yield the last line, if it has no line end."""
        if self.held:
            text = _beginning(self.held, self.offset, self._bytes_max)
            yield Piece(self.offset, len(self.held) + self.dropped, self.line_no, text, False)


def _beginning(text: bytes, offset: int, bytes_max: int) -> bytes:
    if len(text) > bytes_max:
        text = text[:bytes_max]
    return text.removeprefix(BOM) if offset == 0 else text


def _joined(pieces: Iterable[Piece], is_begun: Callable[[bytes, bytes], bool], bytes_max: int) -> Iterator[Piece]:
    """Yield several lines joined to one piece.

    Args:
        is_begun: returns True if a piece begins at the second line, given (line before, line).
    """
    held: Piece | None = None
    texts: list[bytes] = []
    for line in pieces:
        if held is not None and not is_begun(texts[-1], line.text) and held.size + line.size <= bytes_max:
            held = held._replace(size=held.size + line.size, ended=line.ended, lines=held.lines + line.lines)
            texts.append(line.text)
            continue
        if held is not None:
            yield held._replace(text=b"\n".join(texts))
        held, texts = line, [line.text]
    if held is not None:
        yield held._replace(text=b"\n".join(texts))


def _rows(blocks: Iterable[bytes], offset: int, line_no: int, bytes_max: int) -> Iterator[Piece]:
    held: list[bytes] = []
    size = line_ends = 0
    is_quoted = False
    for block in blocks:
        start = 0
        for sign in _QUOTE_OR_END.finditer(block):
            if sign[0] == b'"':
                is_quoted = not is_quoted
                continue
            line_ends += 1
            if is_quoted and size + sign.end() - start <= bytes_max:
                continue
            is_quoted = False
            held.append(block[start : sign.end()])
            size += sign.end() - start
            text = _beginning(b"".join(held)[:-1], offset, bytes_max).removesuffix(b"\r")
            yield Piece(offset, size, line_no, text, True, line_ends)
            offset, line_no, start = offset + size, line_no + line_ends, sign.end()
            held, size, line_ends = [], 0, 0
        held.append(block[start:])
        size += len(block) - start
    if size:
        yield Piece(offset, size, line_no, _beginning(b"".join(held), offset, bytes_max), False, line_ends + 1)


def _objects(blocks: Iterable[bytes], nested: int, offset: int, line_no: int, bytes_max: int) -> Iterator[Piece]:
    """Yield objects and arrays at nesting depth `nested`. The text between them is skipped."""
    depth = 0
    quote = b""
    held: list[bytes] = []  # of the object that is under way
    begun = 0
    begun_line = line_no
    escaped = 0  # signs of the next block that a backslash at the end of this one takes with it
    for block in blocks:
        start, position = 0, escaped
        while match := _IN_TEXT.get(quote, _OUTSIDE).search(block, position):
            position = match.end()
            sign = match[0]
            if quote:
                if sign == b"\\":
                    position += 1
                else:
                    quote = b""
            elif sign in _IN_TEXT:
                quote = sign
            elif sign in b"{[":
                if depth == nested and (sign == b"{" or nested):
                    start = match.start()
                    begun = offset + start
                    begun_line = line_no + block.count(b"\n", 0, start)
                depth += 1
            else:
                depth -= 1
                if depth == nested and (sign == b"}" or nested):
                    text = b"".join([*held, block[start:position]])
                    yield Piece(begun, len(text), begun_line, text[:bytes_max], True, text.count(b"\n") + 1)
                    held = []
        if depth > nested:
            held.append(block[start:])
        offset += len(block)
        line_no += block.count(b"\n")
        escaped = max(0, position - len(block))
    if held and depth > nested:
        text = b"".join(held)
        yield Piece(begun, len(text), begun_line, text[:bytes_max], False, text.count(b"\n") + 1)
