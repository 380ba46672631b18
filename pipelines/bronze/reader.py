"""Splits a file into log records, exactly: every byte belongs to one record, and no byte to two.

A record is a line that starts like one in the file's layout, with the lines after it that do not. What does not fit
that scheme is kept and marked:

- lines before the first record (a rotated file may begin amid a stack trace): a record ``continuation``;
- a record longer than the limit: cut at its last line end before the limit and marked ``oversized``, its other lines
  follow as ``continuation``; a single line longer than the limit loses the text beyond it, but its bytes count;
- a last line without a line end: ``half_line``, it was cut while being written or copied;
- NUL bytes (blocks of them appear in logs after a power loss), and long runs of another filling: ``binary``. A run
  that follows a whole line is a record of its own;
- without a known layout every line is a record, ``layout``;
- what may be the text of another record is ``doubtful`` (`pipelines.bronze.record_ends`).

Where each line is in a wrapper, a record begins at its first line's first byte, wrapper included, and its text is what
was wrapped. Lines of one stream belong together, whatever is between them; so sizes and counts of all records add up to
the file's, but a record's bytes need not be neighbours. Lines without the wrapper (a tool's own remarks) are records of
their own, marked ``layout``. A stream that was silent for long is over: what comes then is another record. So it is
known some way behind a place whether a record continues there, and the file can be cut into ranges where none does
(`pipelines.bronze.ranges`).

Memory is bounded by the limit of a record, times the streams that are written at a time.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import UTC
from itertools import pairwise
from typing import Final, NamedTuple

from highwater.pipelines.bronze.layout import START_BYTES_MAX, Layout, Unwrap
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION, has_anchor, is_foreign, names_kafka, time_shape
from highwater.pipelines.bronze.ranges import RangeCutter
from highwater.pipelines.bronze.record_ends import FAR_BYTES, LAST_BYTES, RecordEnds, can_hold_value
from highwater.pipelines.bronze.wrappers.order import BY_TIME, LINES_BACKWARDS, Entry, sorted_entries
from highwater.pipelines.bronze.wrappers.pieces import LineSplitter, Piece, is_within_text, split
from highwater.pipelines.bronze.wrappers.remarks import is_behind, is_remark, is_text_of_others
from highwater.pipelines.bronze.wrappers.step import source_of
from highwater.pipelines.kafka.raw_record import BINARY, FOREIGN, HALF_LINE, NO_LAYOUT, OVERSIZED, RawRecord
from highwater.pipelines.kafka.raw_record import CONTINUATION as CONTINUED

#: Streams that are followed at a time. A system's log has one for each process; the one that was silent longest goes.
STREAMS_MAX = 64
#: A stream is over when this many bytes of the others follow its last line.
SILENT_BYTES = 16 << 20
#: JSON may take this many times the bytes of what it wraps, and has other fields.
_LINE_FACTOR = 2
_LINE_EXTRA_BYTES = 1 << 14
#: Lines outside of the frame that are held until the frame's own time is known.
_EARLY_MAX = 1000
#: A stream's records are searched for settled ones after this many records.
_TAKEN_RECORDS = 256
#: Signs before the record in some lines only: pressed keys, quotes, bullets.
_GLUED = re.compile(rb"(?:\^[A-Z\\]|[^\w\s\[({<]{1,3}) ?")
_ANY_LINE = re.compile(b"")
#: Bytes that a damaged disk or a careless copy leaves in runs. No program logs runs of this length.
_EMPTY_LINES: Final = b"\n" * 128
#: A block of empty lines from that size on is one record.
_EMPTY_BYTES: Final = 1 << 15
_FILLINGS: Final = tuple(byte * 128 for byte in (b"\r", b" ", b"\t", b"\xff"))

Sourced = Iterator[tuple[bytes | None, RawRecord]]


def sourced_records(
    blocks: Iterable[bytes],
    layout: Layout | None,
    record_bytes_max: int,
    byte_offset: int = 0,
    line_no: int = 1,
    cutter: RangeCutter | None = None,
) -> Sourced:
    """Yield (source, record) of a file. The wrapper around a line names the source.

    The source is empty if no wrapper names one. It is None for lines outside of any wrapper.

    Args:
        blocks: consecutive pieces of the content, split anywhere.
        layout: shows where records start. None if unknown.
        record_bytes_max: limit of a record's text in bytes, at least `START_BYTES_MAX`.
        byte_offset: offset of the first block in the file. It must be at a line start.
        line_no: number of the line at `byte_offset`.
        cutter: receives positions at which a wrapped file can be split. The file must be read from its beginning.
    """
    unwrap = layout.unwrap if layout is not None else None
    reader = _Reader(layout, max(record_bytes_max, START_BYTES_MAX), cutter if unwrap is not None else None)
    if unwrap is None:
        return reader.read_plain(blocks, byte_offset, line_no)
    return reader.read_wrapped(blocks, unwrap, byte_offset, line_no)


class _Run(NamedTuple):
    """Consecutive whole records that need no special handling, or only empty lines.

    They have no damage, only LF as line ends, and no text beyond the limit.
    """

    text: bytes
    starts: list[int]  #: places of the records in the text, and behind the last one; empty for empty lines
    offset: int  #: of the first record
    line_no: int
    lines: int


class Logged(NamedTuple):
    """A logged line, or a part of one, with its position."""

    name: bytes | None  #: of its stream; None for what is not of the log
    text: bytes
    goes_on: bool  #: in the next item of its stream; of what is not of the log: it belongs to the frame
    offset: int
    size: int
    line_no: int
    lines: int
    ended: bool


class _Piece:
    """A logged line or a multi-line record, as far read."""

    __slots__ = ("cut", "length", "line_no", "lines", "offset", "size", "starts", "texts")

    def __init__(self, line: Logged) -> None:
        self.offset = line.offset
        self.line_no = line.line_no
        self.size = 0
        self.lines = 0
        self.length = 0  # of its text as it was logged, line ends included
        self.texts: list[bytes] = []  # of its lines, without line feeds
        self.starts = False
        self.cut = 0  # number of the place at which it was under way

    def cut_behind(self, lines: int, is_ended: bool) -> _Piece:
        """Remove the lines after the first `lines` from a plain text, and return them."""
        cut = _Piece(Logged(b"", b"", False, 0, 0, self.line_no + lines, 0, is_ended))
        self.texts, cut.texts = self.texts[:lines], self.texts[lines:]
        cut.size = cut.length = sum(len(text) + 1 for text in cut.texts) - (not is_ended)
        cut.lines, self.lines = self.lines - lines, lines
        self.size -= cut.size
        cut.offset = self.offset + self.size
        return cut


class _Stream:
    """State of one stream: an incomplete record, and an incomplete line after it."""

    __slots__ = ("endings", "last", "line", "record", "source", "take_at")

    def __init__(self, source: bytes, endings: RecordEnds) -> None:
        self.source = source
        self.endings = endings
        self.take_at = _TAKEN_RECORDS
        self.last = 0  # where its last line begins
        self.record: _Piece | None = None
        self.line: _Piece | None = None


class _Reader:
    def __init__(self, layout: Layout | None, record_bytes_max: int, cutter: RangeCutter | None) -> None:
        self._layout = layout
        self._parse = layout.parser(UTC) if layout else None
        self._start = layout.start if layout else _ANY_LINE
        self._max = record_bytes_max
        self._is_plain = layout is None or layout.unwrap is None
        self._streams: OrderedDict[bytes, _Stream] = OrderedDict()
        self._cutter = cutter
        #: Number of the next or current proposed place, and how many open records may continue behind it.
        self._cut = 1
        self._open: int | None = None
        #: Form of the times of the log's own records.
        self._own_shape: str | None = None
        #: Names of streams in which another program wrote lines since the last record began.
        self._interrupted: set[bytes] = set()
        #: Form of the time that the frame of the log's own records begins with. None if it has none.
        self._frame_shape: str | None = None

    def read_plain(self, blocks: Iterable[bytes], byte_offset: int, line_no: int) -> Sourced:
        """Yield the records of a file whose lines have no wrapper."""
        stream = _Stream(b"", RecordEnds(self._layout, self._max))
        for piece in self._runs(blocks, LineSplitter(byte_offset, line_no, self._line_bytes_max)):
            if isinstance(piece, _Run):
                if stream.record is not None:
                    self._whole(stream, stream.record, None)
                    stream.record = None
                if piece.starts:
                    yield from self._of_run(piece, stream.endings)
                else:
                    text = piece.text[: len(_EMPTY_LINES)]
                    place = piece.offset, len(piece.text), piece.line_no, piece.lines
                    stream.endings.add(RawRecord(*place, text, BINARY))
            else:
                offset, size, number, text, ended, lines = piece
                yield from self._add(stream, Logged(b"", text, False, offset, size, number, lines, ended))
        yield from self._close(stream)

    @property
    def _line_bytes_max(self) -> int:
        return self._max * _LINE_FACTOR + _LINE_EXTRA_BYTES

    def _runs(self, blocks: Iterable[bytes], lines: LineSplitter) -> Iterator[Piece | _Run]:
        """Yield lines, or runs of records or of empty lines. Runs are the fast path for nearly all blocks."""
        next_start = re.compile(rb"\n" + self._start.pattern)
        for block in blocks:
            if len(block) >= _EMPTY_BYTES and not lines.dropped and not (lines.held + block).strip(b"\r\n"):
                rest = (lines.held + block).rpartition(b"\n")[2]
                held = (lines.held + block).removesuffix(rest)
                empty = _Run(held, [], lines.offset, lines.line_no, held.count(b"\n"))
                if held:
                    yield empty
                lines.offset += len(held)
                lines.line_no += empty.lines
                lines.held = rest
                continue
            if self._layout is None or lines.dropped:
                yield from lines.feed(block)
                continue
            held, lines.held = (lines.held + block if lines.held else block), b""
            starts = [start.start() + 1 for start in next_start.finditer(held)] if _is_undamaged(held) else []
            if starts and self._start.match(held):
                starts.insert(0, 0)
            is_run = len(starts) > 1 and (
                len(held) <= self._max or all(end - start <= self._max for start, end in pairwise(starts))
            )
            if not is_run:
                yield from lines.feed(held)
                continue
            yield from lines.feed(held[: starts[0]])
            run = _Run(held, starts, lines.offset, lines.line_no, held.count(b"\n", starts[0], starts[-1]))
            yield run
            lines.offset += starts[-1] - starts[0]
            lines.line_no += run.lines
            lines.held = held[starts[-1] :]
        yield from lines.feed(b"")
        yield from lines.rest()

    def _of_run(self, run: _Run, ends: RecordEnds) -> Sourced:
        """Yield the records of a run. The hot path."""
        held, starts, offset, line_no, line_count = run
        is_quiet = line_count == len(starts) - 1
        is_watched = self._layout is not None and self._layout.tail is not None
        # Up to here nothing that comes can change a record: of single lines none has two ends.
        settled = offset + starts[-1] - starts[0] - FAR_BYTES if is_quiet and not ends.is_odd else -1
        if not is_watched:
            settled = sys.maxsize
        if offset < settled:
            for record in ends.release():
                yield b"", record
        position = starts[0]
        for end in starts[1:]:
            text = held[position : end - 1]
            lines = 1 if is_quiet else text.count(b"\n") + 1
            record = RawRecord(offset, end - position, line_no, lines, text, None)
            if offset < settled and (not is_watched or text[-1] in LAST_BYTES):
                yield b"", record
            else:
                settled = -1
                ends.records.append(record)
                if lines > 1 or text[-1] not in LAST_BYTES:
                    ends.look(record)
            offset += end - position
            line_no += lines
            position = end
        for record in ends.take():
            yield b"", record

    def read_wrapped(self, blocks: Iterable[bytes], unwrap: Unwrap, byte_offset: int, line_no: int) -> Sourced:
        """Yield the records of a file whose lines each have a wrapper."""
        #: Lines before the first one that is framed.
        early: list[Logged] = []
        for line in self._in_order(blocks, unwrap, byte_offset, line_no):
            name = line.name
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
            yield from self._add(stream, line)
        yield from ((None, self._foreign(before)) for before in early)
        for stream in sorted(self._streams.values(), key=_place):
            yield from self._close(stream)

    def _add(self, stream: _Stream, line: Logged) -> Iterator[tuple[bytes, RawRecord]]:
        """Add the next line of a stream. Yield the records that it completes."""
        stream.last = line.offset
        piece = stream.line
        if piece is None:
            piece = stream.line = _Piece(line)
        piece.size += line.size
        piece.lines += line.lines
        if piece.length <= self._max:  # what is beyond the limit is only counted
            piece.texts.append(line.text)
        piece.length += len(line.text)
        if not line.ended:
            yield from self._line(stream, cut=True)
        elif not line.goes_on:
            yield from self._line(stream)
            if self._cutter is not None and self._open is None:
                self._propose(self._cutter, line.offset + line.size, line.line_no + line.lines)

    def _logged(self, blocks: Iterable[bytes], unwrap: Unwrap, byte_offset: int, line_no: int) -> Iterator[Logged]:
        """Yield the items of a file in the order of the file."""
        assert self._layout is not None
        is_text = not self._layout.is_entry
        last = b""
        for piece in split(blocks, self._layout.pieces, self._line_bytes_max, byte_offset, line_no):
            offset, size, number, text, ended, lines = piece
            items = unwrap(text)
            if items is None and is_text and CONTINUATION.match(text):
                items = [(last, text, False, 0)]
            if not items:
                yield Logged(None, text, items is not None, offset, size, number, lines, ended)
                continue
            last = items[-1][0]
            ended = ended or not is_text  # an entry that is read has its end
            if len(items) == 1:
                name, inner, goes_on, _ = items[0]
                inner = self._bare(inner) if is_text else inner
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

    def _bare(self, text: bytes) -> bytes:
        """Return a line without the characters before its record, and without the same ones after it."""
        glued = _GLUED.match(text)
        if glued is None or self._start.match(text) or not self._start.match(text, glued.end()):
            return text
        return text[glued.end() :].rstrip().removesuffix(glued[0].strip())

    def _in_order(self, blocks: Iterable[bytes], unwrap: Unwrap, byte_offset: int, line_no: int) -> Iterator[Logged]:
        logged = self._logged(blocks, unwrap, byte_offset, line_no)
        if self._layout is None or not self._layout.order:
            yield from logged
            return
        offset = byte_offset
        for _, entry in sorted_entries(self._entries(logged, self._layout), _size_of):
            for item in entry:
                line = Logged(*item)
                yield line._replace(offset=offset)
                offset += line.size

    def _entries(self, logged: Iterable[Logged], layout: Layout) -> Iterator[Entry]:
        """Yield entries with sort keys: a container's item, or a record's first line with its continuation lines."""
        parse, is_by_time = layout.parser(UTC), layout.order == BY_TIME
        is_single = layout.is_entry or layout.order == LINES_BACKWARDS
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
        """Handle a whole logged line: it begins a record, or continues the previous one."""
        line, before = stream.line, stream.record
        if line is None:
            return
        stream.line = None
        text = b"".join(line.texts)
        line.texts = [text]
        line.length += not cut
        line.starts = self._start.match(text) is not None
        is_apart = line.starts or (self._is_plain and text.startswith(_FILLINGS))
        if before is not None and not is_apart and before.length + line.length <= self._max:
            if before.cut == self._cut:
                self._settle(begins=False)
            before.size += line.size
            before.lines += line.lines
            before.length += line.length
            before.texts += line.texts
        else:
            if before is not None:
                self._whole(stream, before, None if is_apart else OVERSIZED)
            stream.record = line
        if stream.record is not None and (cut or stream.record.length > self._max):
            self._whole(stream, stream.record, OVERSIZED if stream.record.length > self._max else None, cut)
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
        """Propose that a range begins at `start`, unless its line continues an earlier one.

        The position is confirmed when no open record continues after it.
        """
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

    def _whole(self, stream: _Stream, piece: _Piece, problem: str | None, cut: bool = False) -> None:
        goes_on = problem is not None or cut
        text = b"\n".join([line.removesuffix(b"\r") for line in piece.texts])
        if len(text) > self._max:
            text = text[: self._max].removesuffix(b"\r")
        if self._is_plain and problem is None:
            empty = text.find(_EMPTY_LINES)
            if empty >= 0 and piece.starts:
                # The first line end of a run ends the record.
                rest = piece.cut_behind(text.count(b"\n", 0, empty) + 1, is_ended=not cut)
                self._whole(stream, piece, None)
                self._whole(stream, rest, None, cut)
                return
            if empty >= 0 or any(run in text for run in _FILLINGS):
                problem = BINARY
        if problem is None and b"\0" in text:
            problem = BINARY
        elif problem is None and cut:
            problem = HALF_LINE
        elif problem is None and self._layout is None:
            problem = NO_LAYOUT
        elif problem is None and not piece.starts:
            problem = CONTINUED
        stream.endings.add(RawRecord(piece.offset, piece.size, piece.line_no, piece.lines, text, problem))
        if piece.cut == self._cut and self._open is not None:
            self._open -= 1
            # What no range but its own would see: a record that is too long for its next line, or that has no end.
            goes_on |= stream.endings.is_open
            if goes_on or not self._open:
                self._settle(begins=not goes_on)

    def _is_foreign(self, line: Logged) -> bool:
        """Return True for a whole line of another program. Parts of lines are never."""
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
        if line.name in self._interrupted or self._layout is None:
            return is_text_of_others(line.text)
        record = stream.record if stream is not None else None
        return record is not None and is_behind(line.text, record.texts, self._layout)

    def _is_open(self, record: _Piece) -> bool:
        """Return True if a record has no logger yet and may contain a client's value. Any line may be part of it
        then.
        """
        tail = self._layout.tail if self._layout is not None else None
        first, last = (record.texts[at].removesuffix(b"\r") for at in (0, -1))
        if tail is None or tail.search(first) or tail.search(last):
            return False
        return can_hold_value(self._parse, first)

    def _is_of_others(self, line: Logged) -> bool:
        """Return True if a line outside of the log is another program's, although no known pattern matches.

        A damaged log line may have lost its wrapper, and still has its time. A container's object may be about the
        container.
        """
        if line.name is None and self._layout is not None and is_within_text(self._layout):
            return not has_anchor(line.text)
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


def _is_undamaged(text: bytes) -> bool:
    """Return True if a text has no NUL, carriage return or long run of filler bytes."""
    return b"\0" not in text and b"\r" not in text and not any(run in text for run in (_EMPTY_LINES, *_FILLINGS[1:]))
