"""Records of a file whose lines stand in a wrapper each. `log_records` reads any file, wrapped or not.

Places are those of the file as it is: a record begins at its first line's first byte, wrapper included, and its text is
what was wrapped. Lines of one stream belong together, whatever stands between them; so sizes and counts of all records
add up to the file's, but a record's bytes need not be neighbours. Lines without the wrapper (a tool's own remarks) are
records of their own, marked ``layout``. Everything else is as in `pipelines.bronze.reader`.

Memory is bounded by the limit of a record, times the streams that are written at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipelines.bronze.layout import START_BYTES_MAX, Layout, Unwrap
from pipelines.bronze.reader import BINARY, CONTINUATION, HALF_LINE, NO_LAYOUT, OVERSIZED, RawRecord, records
from pipelines.bronze.source import BOM

#: Streams that are followed at a time. A system's log has one for each process; the one that was silent longest goes.
STREAMS_MAX = 64
#: JSON may take so many times the bytes of what it wraps, and has fields beside it.
_LINE_FACTOR = 2
_LINE_EXTRA_BYTES = 1 << 14


def log_records(
    blocks: Iterable[bytes], layout: Layout | None, record_bytes_max: int, byte_offset: int = 0, line_no: int = 1
) -> Iterator[RawRecord]:
    """Read the records of a file in its layout; arguments as in `pipelines.bronze.reader.records`."""
    if layout is None or layout.unwrap is None:
        return records(blocks, layout, record_bytes_max, byte_offset, line_no)
    return _Wrapped(layout, layout.unwrap, max(record_bytes_max, START_BYTES_MAX)).read(blocks, byte_offset, line_no)


class _Line(NamedTuple):
    """One line of the file, cut if it is longer than all that a record may be."""

    offset: int
    size: int
    line_no: int
    text: bytes
    ended: bool


class _Piece:
    """A logged line, or a record of several, as far as it was read."""

    __slots__ = ("length", "line_no", "lines", "offset", "size", "starts", "texts")

    def __init__(self, line: _Line) -> None:
        self.offset = line.offset
        self.line_no = line.line_no
        self.size = 0
        self.lines = 0
        self.length = 0  # of its text as it was logged, line ends included
        self.texts: list[bytes] = []
        self.starts = False

    def record(self, text: bytes, problem: str | None) -> RawRecord:
        return RawRecord(self.offset, self.size, self.line_no, self.lines, text, problem)


class _Stream:
    """What is under way in one stream: a record, and behind it a line that comes in pieces."""

    __slots__ = ("line", "record")

    def __init__(self) -> None:
        self.record: _Piece | None = None
        self.line: _Piece | None = None


class _Wrapped:
    def __init__(self, layout: Layout, unwrap: Unwrap, record_bytes_max: int) -> None:
        self._start = layout.start
        self._unwrap = unwrap
        self._max = record_bytes_max
        self._streams: OrderedDict[bytes, _Stream] = OrderedDict()

    def read(self, blocks: Iterable[bytes], byte_offset: int, line_no: int) -> Iterator[RawRecord]:
        line_bytes_max = self._max * _LINE_FACTOR + _LINE_EXTRA_BYTES
        for line in _lines(blocks, byte_offset, line_no, line_bytes_max):
            unwrapped = self._unwrap(line.text)
            if unwrapped is None:
                yield self._foreign(line)
                continue
            name, text, goes_on = unwrapped
            stream = self._streams.get(name)
            if stream is None:
                stream = self._streams[name] = _Stream()
                if len(self._streams) > STREAMS_MAX:
                    _, silent = self._streams.popitem(last=False)
                    yield from self._close(silent)
            elif len(self._streams) > 1:
                self._streams.move_to_end(name)
            piece = stream.line
            if piece is None:
                piece = stream.line = _Piece(line)
            piece.size += line.size
            piece.lines += 1
            if piece.length <= self._max:  # what is beyond the limit is only counted
                piece.texts.append(text)
            piece.length += len(text)
            if not line.ended:
                yield from self._line(stream, cut=True)
            elif not goes_on:
                yield from self._line(stream)
        for stream in sorted(self._streams.values(), key=_place):
            yield from self._close(stream)

    def _line(self, stream: _Stream, cut: bool = False) -> Iterator[RawRecord]:
        """A logged line is whole: it begins a record, or belongs to the one before it."""
        line, before = stream.line, stream.record
        if line is None:
            return
        stream.line = None
        text = line.texts[0] if len(line.texts) == 1 else b"".join(line.texts)
        line.texts = [text.removesuffix(b"\r")]
        line.length += not cut
        line.starts = self._start.match(text) is not None
        if before is not None and not line.starts and before.length + line.length <= self._max:
            before.size += line.size
            before.lines += line.lines
            before.length += line.length
            before.texts += line.texts
        else:
            if before is not None:
                yield self._whole(before, None if line.starts else OVERSIZED)
            stream.record = line
        if stream.record is not None and (cut or stream.record.length > self._max):
            yield self._whole(stream.record, OVERSIZED if stream.record.length > self._max else HALF_LINE)
            stream.record = None

    def _close(self, stream: _Stream) -> Iterator[RawRecord]:
        yield from self._line(stream, cut=True)
        if stream.record is not None:
            yield self._whole(stream.record, None)

    def _whole(self, record: _Piece, problem: str | None) -> RawRecord:
        text = b"\n".join(record.texts)[: self._max]
        if problem is None:
            if b"\0" in text:
                problem = BINARY
            elif not record.starts:
                problem = CONTINUATION
        return record.record(text, problem)

    def _foreign(self, line: _Line) -> RawRecord:
        problem = OVERSIZED if line.size > len(line.text) + 1 else NO_LAYOUT if line.ended else HALF_LINE
        return RawRecord(line.offset, line.size, line.line_no, 1, line.text[: self._max].removesuffix(b"\r"), problem)


def _place(stream: _Stream) -> int:
    first = stream.record or stream.line
    return first.offset if first else 0


def _lines(blocks: Iterable[bytes], offset: int, line_no: int, bytes_max: int) -> Iterator[_Line]:
    """Lines without their line ends; of a longer one the first ``bytes_max`` bytes."""
    held = b""
    dropped = 0  # bytes of the line that is under way, beyond those that are held
    for block in blocks:
        lines = block.split(b"\n")
        lines[0] = held + lines[0]
        for text in lines[:-1]:
            size = len(text) + dropped + 1
            yield _Line(offset, size, line_no, _beginning(text, offset, bytes_max), True)
            offset += size
            line_no += 1
            dropped = 0
        held = lines[-1]
        if len(held) > bytes_max:
            dropped += len(held) - bytes_max
            held = held[:bytes_max]
    if held:
        yield _Line(offset, len(held) + dropped, line_no, _beginning(held, offset, bytes_max), False)


def _beginning(text: bytes, offset: int, bytes_max: int) -> bytes:
    if len(text) > bytes_max:
        text = text[:bytes_max]
    return text.removeprefix(BOM) if offset == 0 else text
