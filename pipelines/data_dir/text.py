"""Lines of a small text file of a data directory, with their locations. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

#: Longest line of these files. The rest of a longer line is read as further lines.
LINE_BYTES_MAX = 1 << 16
INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1


class TextLine(NamedTuple):
    """One line."""

    line_no: int  #: from 1
    byte_offset: int  #: of its first byte in the decompressed file
    end: int  #: offset behind its last byte, the newline included
    text: str  #: without the end of line; invalid UTF-8 is U+FFFD
    whole: bool  #: it ended with a newline
    problem: str | None  #: what is wrong with its bytes


class CheckpointEntry(NamedTuple):
    """Content of one line, or a problem of the line or the whole file."""

    line_no: int  #: from 1; the line after the last one if the file lacks lines
    byte_offset: int  #: first byte of the line in the decompressed file
    text: str  #: the line
    topic: str | None = None  #: of an offset checkpoint
    partition: int | None = None  #: likewise
    leader_epoch: int | None = None  #: of a leader epoch checkpoint
    offset: int | None = None  #: the checkpointed offset; the start offset of a leader epoch
    key: str | None = None  #: of a property
    value: str | None = None  #: likewise
    problem: str | None = None  #: what is wrong; the values that could be read are given all the same

    def place(self) -> str:
        """Return the problem with line and byte, for a message that names the file."""
        return f"line {self.line_no} (byte {self.byte_offset}): {self.problem}"


def split_lines(blocks: Iterable[bytes]) -> Iterator[TextLine]:
    """Yield the lines of a file that comes in blocks."""
    rest = b""
    line_no, offset = 1, 0
    for block in blocks:
        rest += block
        *whole, rest = rest.split(b"\n")
        for raw in whole:
            yield _make_line(line_no, offset, raw, whole=True)
            line_no += 1
            offset += len(raw) + 1
        while len(rest) > LINE_BYTES_MAX:
            raw, rest = rest[:LINE_BYTES_MAX], rest[LINE_BYTES_MAX:]
            yield _make_line(line_no, offset, raw, whole=False)
            line_no += 1
            offset += len(raw)
    if rest:
        yield _make_line(line_no, offset, rest, whole=False)


def _make_line(line_no: int, offset: int, raw: bytes, *, whole: bool) -> TextLine:
    text = raw.removesuffix(b"\r").decode(errors="replace")
    if "\0" in text:
        problem = "NUL bytes: the file was not written to the disk"
    elif "\ufffd" in text:
        problem = "is not UTF-8"
    else:
        problem = None
    return TextLine(line_no, offset, offset + len(raw) + whole, text.replace("\0", "\ufffd"), whole, problem)


def parse_number(text: str, limit: int) -> int | None:
    """Return a decimal number as Kafka writes it; None if it is invalid or does not fit. It may be negative."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
        return None
    value = int(text)
    return value if -limit - 1 <= value <= limit else None


def join_problems(problems: Iterable[str | None]) -> str | None:
    """Return several problems of one line as one text. None without a problem."""
    return "; ".join(problem for problem in problems if problem) or None
