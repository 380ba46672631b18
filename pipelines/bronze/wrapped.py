"""Records of a file whose lines are in a wrapper each. `sourced_records` reads any file, wrapped or not.

Places are those of the file as it is: a record begins at its first line's first byte, wrapper included, and its text is
what was wrapped. Lines of one stream belong together, whatever stands between them; so sizes and counts of all records
add up to the file's, but a record's bytes need not be neighbours. Lines without the wrapper (a tool's own remarks) are
records of their own, marked ``layout``. Everything else is as in `pipelines.bronze.reader`.

A stream that was silent for long is over: what comes then is another record. So whether a record goes on behind a place
is known some way behind it, and the file can be cut into ranges where none does (`pipelines.bronze.ranges`).

Memory is bounded by the limit of a record, times the streams that are written at a time.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import NamedTuple

from highwater.pipelines.bronze.layout import START_BYTES_MAX, Layout, Unwrap
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION, is_foreign, names_kafka, time_shape
from highwater.pipelines.bronze.ranges import RangeCutter
from highwater.pipelines.bronze.reader import records
from highwater.pipelines.bronze.record_ends import RecordEnds, can_hold_value
from highwater.pipelines.bronze.wrappers.order import BY_TIME, LINES_BACKWARDS, Entry, sorted_entries
from highwater.pipelines.bronze.wrappers.pieces import split
from highwater.pipelines.bronze.wrappers.remarks import is_remark, is_text_of_others
from highwater.pipelines.bronze.wrappers.step import source_of
from highwater.pipelines.kafka.raw_record import BINARY, FOREIGN, HALF_LINE, NO_LAYOUT, OVERSIZED, RawRecord
from highwater.pipelines.kafka.raw_record import CONTINUATION as CONTINUED

#: Streams that are followed at a time. A system's log has one for each process; the one that was silent longest goes.
STREAMS_MAX = 64
#: One is over when so many bytes of the others stand behind its last line.
SILENT_BYTES = 16 << 20
#: JSON may take so many times the bytes of what it wraps, and has fields beside it.
_LINE_FACTOR = 2
_LINE_EXTRA_BYTES = 1 << 14
#: Lines outside of the frame that are held until the frame's own time is known.
_EARLY_MAX = 1000
#: A stream's records are looked at for settled ones whenever so many have come.
_TAKEN_RECORDS = 256


def sourced_records(
    blocks: Iterable[bytes],
    layout: Layout | None,
    record_bytes_max: int,
    byte_offset: int = 0,
    line_no: int = 1,
    cutter: RangeCutter | None = None,
) -> Iterator[tuple[bytes | None, RawRecord]]:
    """Yield the records of a file in its layout, each with the source that its wrapper names.

    The source is empty if no wrapper names one. It is None for what is in no wrapper.

    Args:
        blocks, layout, record_bytes_max, byte_offset, line_no: as in `pipelines.bronze.reader.records`.
        cutter: is told where a wrapped file, which is read from its beginning, can be cut.
    """
    if layout is None or layout.unwrap is None:
        for record in records(blocks, layout, record_bytes_max, byte_offset, line_no):
            yield b"", record
        return
    reader = _Wrapped(layout, layout.unwrap, max(record_bytes_max, START_BYTES_MAX), cutter)
    yield from reader.read(blocks, byte_offset, line_no)


class Logged(NamedTuple):
    """An item of a file, at its place."""

    name: bytes | None  #: of its stream; None for what is not of the log
    text: bytes
    goes_on: bool  #: in the next item of its stream; of what is not of the log: it belongs to the frame
    offset: int
    size: int
    line_no: int
    lines: int
    ended: bool


class _Piece:
    """A logged line, or a record of several, up to what was read of it."""

    __slots__ = ("cut", "length", "line_no", "lines", "offset", "size", "starts", "texts")

    def __init__(self, line: Logged) -> None:
        self.offset = line.offset
        self.line_no = line.line_no
        self.size = 0
        self.lines = 0
        self.length = 0  # of its text as it was logged, line ends included
        self.texts: list[bytes] = []
        self.starts = False
        self.cut = 0  # number of the place at which it was under way

    def record(self, text: bytes, problem: str | None) -> RawRecord:
        return RawRecord(self.offset, self.size, self.line_no, self.lines, text, problem)


class _Stream:
    """What is under way in one stream: a record, and behind it a line that comes in pieces."""

    __slots__ = ("endings", "last", "line", "record", "source", "take_at")

    def __init__(self, source: bytes, endings: RecordEnds) -> None:
        self.source = source
        self.endings = endings
        self.take_at = _TAKEN_RECORDS
        self.last = 0  # where its last line begins
        self.record: _Piece | None = None
        self.line: _Piece | None = None


class _Wrapped:
    def __init__(self, layout: Layout, unwrap: Unwrap, record_bytes_max: int, cutter: RangeCutter | None) -> None:
        self._layout = layout
        self._parse = layout.parser(UTC)
        self._start = layout.start
        self._unwrap = unwrap
        self._max = record_bytes_max
        self._streams: OrderedDict[bytes, _Stream] = OrderedDict()
        self._cutter = cutter
        #: Number of the next place to be proposed, or of the one that is, and how many records of it may go on.
        self._cut = 1
        self._open: int | None = None
        #: Form of the times of the log's own records.
        self._own_shape: str | None = None
        #: Names of streams in which another program wrote lines since the last record began.
        self._interrupted: set[bytes] = set()
        #: Form of the time that the frame of the log's own records begins with. None if it has none.
        self._frame_shape: str | None = None

    def read(self, blocks: Iterable[bytes], byte_offset: int, line_no: int) -> Iterator[tuple[bytes | None, RawRecord]]:
        #: Lines before the first one that is framed.
        early: list[Logged] = []
        for line in self._in_order(blocks, byte_offset, line_no):
            name, text, goes_on = line[:3]
            if name is None and self._frame_shape is None and len(early) < _EARLY_MAX:
                early.append(line)
                continue
            if early:
                yield from ((None, self._foreign(before)) for before in early)
                early.clear()
            if name is None or self._is_foreign(line):
                yield None if name is None else source_of(name), self._foreign(line)
                continue
            while self._streams and (silent := next(iter(self._streams.values()))).last < line.offset - SILENT_BYTES:
                self._streams.popitem(last=False)
                yield from self._close(silent)
            stream = self._streams.get(name)
            if stream is None:
                stream = self._streams[name] = _Stream(source_of(name), RecordEnds(self._layout, self._max))
                if len(self._streams) > STREAMS_MAX:
                    _, silent = self._streams.popitem(last=False)
                    yield from self._close(silent)
            elif len(self._streams) > 1:
                self._streams.move_to_end(name)
            stream.last = line.offset
            piece = stream.line
            if piece is None:
                piece = stream.line = _Piece(line)
            piece.size += line.size
            piece.lines += line.lines
            if piece.length <= self._max:  # what is beyond the limit is only counted
                piece.texts.append(text)
            piece.length += len(text)
            if not line.ended:
                yield from self._line(stream, cut=True)
            elif not goes_on:
                yield from self._line(stream)
                if self._cutter is not None and self._open is None:
                    self._propose(self._cutter, line.offset + line.size, line.line_no + line.lines)
        yield from ((None, self._foreign(before)) for before in early)
        for stream in sorted(self._streams.values(), key=_place):
            yield from self._close(stream)

    def _logged(self, blocks: Iterable[bytes], byte_offset: int, line_no: int) -> Iterator[Logged]:
        """Yield the items of a file as they are in it."""
        bytes_max = self._max * _LINE_FACTOR + _LINE_EXTRA_BYTES
        is_text = not self._layout.is_entry
        last = b""
        for piece in split(blocks, self._layout.pieces, bytes_max, byte_offset, line_no):
            offset, size, number, text, ended, lines = piece
            items = self._unwrap(text)
            if items is None and is_text and CONTINUATION.match(text):
                items = [(last, text, False, 0)]
            if not items:
                yield Logged(None, text, items is not None, offset, size, number, lines, ended)
                continue
            last = items[-1][0]
            ended = ended or not is_text  # an entry that is read has its end
            if len(items) == 1:
                name, inner, goes_on, _ = items[0]
                if is_text and self._frame_shape is None and self._start.match(inner):
                    self._frame_shape = time_shape(text)
                yield Logged(name, inner, goes_on, offset, size, number, lines, ended)
                continue
            # Several records of one piece share its bytes. Each is in one of its lines at least.
            places = [0, *(at for _, _, _, at in items[1:]), size]
            counted = 0
            for index, (name, inner, goes_on, _) in enumerate(items):
                at, end = places[index], places[index + 1]
                own = text.count(b"\n", at, end) if index + 1 < len(items) else lines - counted
                yield Logged(name, inner, goes_on, offset + at, end - at, number + counted, max(1, own), ended)
                counted += own

    def _in_order(self, blocks: Iterable[bytes], byte_offset: int, line_no: int) -> Iterator[Logged]:
        logged = self._logged(blocks, byte_offset, line_no)
        if not self._layout.order:
            yield from logged
            return
        offset = byte_offset
        for _, entry in sorted_entries(self._entries(logged), _size_of):
            for item in entry:
                line = Logged(*item)
                yield line._replace(offset=offset)
                offset += line.size

    def _entries(self, logged: Iterable[Logged]) -> Iterator[Entry]:
        """Yield entries with their sort keys: an item of a container, or a record's line with those that follow."""
        parse, is_by_time = self._layout.parser(UTC), self._layout.order == BY_TIME
        is_single = self._layout.is_entry or self._layout.order == LINES_BACKWARDS
        times: dict[bytes | None, int] = {}
        held: list[Logged] = []
        number, is_begun = 0, is_single

        def key() -> tuple[int, int]:
            if not is_begun:
                return -sys.maxsize, 0  # what is before all records stays there
            return (times.get(held[0].name, times.get(None, 0)), number) if is_by_time else (-number, 0)

        for line in logged:
            begins = line.name is not None and self._start.match(line.text) is not None
            if held and (is_single or begins or line.name is None):
                yield key(), held
                held, number = [], number + 1
            is_begun = is_begun or begins
            if begins and is_by_time and (head := parse(line.text)) is not None:
                times[line.name] = times[None] = head.time_us
            held.append(line)
        if held:
            yield key(), held

    def _line(self, stream: _Stream, cut: bool = False) -> Iterator[tuple[bytes, RawRecord]]:
        """A logged line is whole: it begins a record, or belongs to the one before it."""
        line, before = stream.line, stream.record
        if line is None:
            return
        stream.line = None
        text = b"".join(line.texts)
        line.texts = [text.removesuffix(b"\r")]
        line.length += not cut
        line.starts = self._start.match(text) is not None
        if before is not None and not line.starts and before.length + line.length <= self._max:
            if before.cut == self._cut:
                self._settle(begins=False)
            before.size += line.size
            before.lines += line.lines
            before.length += line.length
            before.texts += line.texts
        else:
            if before is not None:
                self._whole(stream, before, None if line.starts else OVERSIZED)
            stream.record = line
        if stream.record is not None and (cut or stream.record.length > self._max):
            self._whole(stream, stream.record, OVERSIZED if stream.record.length > self._max else HALF_LINE)
            stream.record = None
        if len(stream.endings.records) >= stream.take_at:
            yield from ((stream.source, record) for record in stream.endings.take())
            stream.take_at = len(stream.endings.records) + _TAKEN_RECORDS

    def _close(self, stream: _Stream) -> Iterator[tuple[bytes, RawRecord]]:
        yield from self._line(stream, cut=True)
        if stream.record is not None:
            self._whole(stream, stream.record, None)
        yield from ((stream.source, record) for record in stream.endings.take(is_last=True))

    def _propose(self, cutter: RangeCutter, start: int, line_no: int) -> None:
        """A range may begin where no line comes in pieces, if no record that is under way there goes on."""
        if (
            start < cutter.due_at
            or self._interrupted
            or any(stream.line is not None or stream.endings.is_open for stream in self._streams.values())
        ):
            return
        cutter.propose(start, line_no)
        under_way = [stream.record for stream in self._streams.values() if stream.record is not None]
        for record in under_way:
            record.cut = self._cut
        self._open = len(under_way)
        if not under_way:
            self._settle(begins=True)

    def _settle(self, begins: bool) -> None:
        if self._cutter is not None:
            self._cutter.settle(begins)
        self._open = None
        self._cut += 1

    def _whole(self, stream: _Stream, piece: _Piece, problem: str | None) -> None:
        goes_on = problem is not None
        text = b"\n".join(piece.texts)[: self._max]
        if problem is None:
            if b"\0" in text:
                problem = BINARY
            elif not piece.starts:
                problem = CONTINUED
        record = piece.record(text, problem)
        stream.endings.add(record)
        if piece.cut == self._cut and self._open is not None:
            self._open -= 1
            # What no range but its own would see: a record that is too long for its next line, or that has no end.
            goes_on |= stream.endings.is_open
            if goes_on or not self._open:
                self._settle(begins=not goes_on)

    def _is_foreign(self, line: Logged) -> bool:
        """Return True for a whole line of another program; a part of a line tells nothing."""
        if line.name is None:
            return False
        is_begun = self._start.match(line.text) is not None
        if is_begun:
            self._own_shape = self._own_shape or time_shape(line.text)
            self._interrupted.clear()
        stream = self._streams.get(line.name)
        if is_begun or line.goes_on or not line.ended or (stream is not None and stream.line is not None):
            return False
        if stream is not None and stream.record is not None and self._is_open(stream.record):
            return False
        if self._own_shape is not None and is_foreign(line.text, self._own_shape):
            return True
        if is_remark(line.text):
            self._interrupted.add(line.name)
            return True
        return line.name in self._interrupted and is_text_of_others(line.text)

    def _is_open(self, record: _Piece) -> bool:
        """Return True if a record has no logger yet, and may hold a value of a client: it may have any lines."""
        tail, texts = self._layout.tail, record.texts
        if tail is None or any(tail.search(text) for text in (texts[0], texts[-1])):
            return False
        return can_hold_value(self._parse, texts[0])

    def _is_of_others(self, line: Logged) -> bool:
        """Return True if a line outside of the log is text of another program that no form of remarks matches.

        A damaged line of the log's own may have lost its frame, and still has its time.
        """
        if names_kafka(line.text) or is_remark(line.text):
            return False
        return line.name is not None or (self._frame_shape is not None and is_foreign(line.text, self._frame_shape))

    def _foreign(self, line: Logged) -> RawRecord:
        is_cut = line.name is None and line.size > len(line.text) + 1
        problem = OVERSIZED if is_cut else NO_LAYOUT if line.ended else HALF_LINE
        if line.name is None and line.goes_on:
            problem = f"{FOREIGN}frame"
        elif problem == NO_LAYOUT and self._is_of_others(line):
            problem = f"{FOREIGN}stream"
        return RawRecord(
            line.offset, line.size, line.line_no, line.lines, line.text[: self._max].removesuffix(b"\r"), problem
        )


def _size_of(entry: Entry) -> int:
    return sum(line.size for line in entry[1])


def _place(stream: _Stream) -> int:
    first = stream.record or stream.line
    return first.offset if first else 0
