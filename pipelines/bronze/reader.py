"""Splits a stream of bytes into log records, exactly: every byte belongs to one record, none is read twice.

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

Memory is bounded by the limit plus one block, and what `RecordEnds` holds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from highwater.pipelines.bronze import record_ends
from highwater.pipelines.bronze.layout import START_BYTES_MAX, Layout
from highwater.pipelines.bronze.record_ends import RecordEnds
from highwater.pipelines.bronze.source import BOM
from highwater.pipelines.kafka.raw_record import BINARY, CONTINUATION, HALF_LINE, NO_LAYOUT, OVERSIZED, RawRecord

_ANY_LINE = re.compile(b"")
#: Bytes that a damaged disk or a careless copy leaves in runs, and no program logs so many of.
_FILLINGS: Final = tuple(byte * 128 for byte in (b"\n", b"\r", b" ", b"\t", b"\xff"))


def records(
    blocks: Iterable[bytes],
    layout: Layout | None,
    record_bytes_max: int,
    byte_offset: int = 0,
    line_no: int = 1,
) -> Iterator[RawRecord]:
    """Read records.

    Args:
        blocks: consecutive pieces of the content, cut anywhere.
        layout: tells where records start.
        record_bytes_max: limit of a record's text in bytes, at least `START_BYTES_MAX`.
        byte_offset: where the first block starts in the file, if not at its beginning: at a line start.
        line_no: number of the line that starts there.
    """
    return _Reader(layout, max(record_bytes_max, START_BYTES_MAX), byte_offset, line_no).read(blocks)


class _Reader:
    def __init__(self, layout: Layout | None, record_bytes_max: int, byte_offset: int, line_no: int) -> None:
        self._start = layout.start if layout else _ANY_LINE
        self._next_start = re.compile(rb"\n" + self._start.pattern)
        self._unknown = layout is None
        self._layout = layout
        self._max = record_bytes_max
        self._offset = byte_offset
        self._line = line_no

    def read(self, blocks: Iterable[bytes]) -> Iterator[RawRecord]:
        held = b""  # begins at a record's first byte
        searched = 0  # no record starts in held[:searched] but at 0
        skipped: RawRecord | None = None  # a line beyond the limit, whose end has not been seen
        limit = self._max
        ends = RecordEnds(self._layout, limit)
        is_watched = self._layout is not None and self._layout.tail is not None
        for block in blocks:
            if skipped:
                end = block.find(b"\n") + 1
                skipped = skipped._replace(size_bytes=skipped.size_bytes + (end or len(block)))
                if not end:
                    continue
                ends.add(self._pass(skipped))
                skipped, held, searched = None, block[end:], 0
            else:
                held = held + block if held else block
            position = 0
            # Nearly all blocks need none of the care that `_record` takes.
            plain = not self._unknown and b"\0" not in held and b"\r" not in held and _filling(held) < 0
            starts = [start.start() + 1 for start in self._next_start.finditer(held, searched)]
            is_quiet = plain and bool(starts) and held.count(b"\n", 0, starts[-1]) == len(starts)
            # Up to here nothing that comes can change a record: of single lines none has two ends.
            settled = self._offset + starts[-1] - record_ends.FAR_BYTES if is_quiet and not ends.is_odd else -1
            if not is_watched:
                settled = sys.maxsize
            elif self._offset < settled:
                yield from ends.release()
            for end in starts:
                size = end - position
                if plain and position and size <= limit:
                    text = held[position : end - 1]
                    lines = 1 if is_quiet else text.count(b"\n") + 1
                    record = RawRecord(self._offset, size, self._line, lines, text, None)
                    if self._offset < settled and (not is_watched or text[-1] in record_ends.LAST_BYTES):
                        yield record
                    else:
                        settled = -1
                        ends.records.append(record)
                        if lines > 1 or text[-1] not in record_ends.LAST_BYTES:
                            ends.look(record)
                    self._offset += size
                    self._line += lines
                else:
                    for record in self._record(held, position, end):
                        ends.add(record)
                    if ends.is_odd:
                        settled = -1
                    elif self._offset < settled:
                        yield from ends.release()
                position = end
            held = held[position:]
            # A start at the end of what is held may lack bytes: look there again.
            searched = max(0, len(held) - START_BYTES_MAX - 1)
            while len(held) > self._max + 2 * START_BYTES_MAX:
                end, whole = self._cut(held, 0)
                if not whole:
                    skipped = self._made(held[: self._max], len(held), 1, False, OVERSIZED)
                    held = b""
                    break
                ends.add(self._emit(held, 0, end, OVERSIZED))
                held = held[end:]
                searched = 0
            yield from ends.take()
        if skipped:
            ends.add(self._pass(skipped))
        position = 0
        for start in self._next_start.finditer(held):
            end = start.start() + 1
            if end < len(held):
                for record in self._record(held, position, end):
                    ends.add(record)
                position = end
        if position < len(held):
            for record in self._record(held, position, len(held)):
                ends.add(record)
        yield from ends.take(is_last=True)

    def _cut(self, held: bytes, position: int) -> tuple[int, bool]:
        """Where a record beyond the limit ends: after its last line end before the limit, else at its line's end.

        Returns:
            The end, and whether it is at hand.
        """
        end = held.rfind(b"\n", position, position + self._max) + 1
        if end > 0:
            return end, True
        end = held.find(b"\n", position + self._max) + 1
        return end, end > 0

    def _record(self, held: bytes, position: int, end: int) -> Iterator[RawRecord]:
        """One complete record, in pieces if it is beyond the limit."""
        while end - position > self._max:
            cut, whole = self._cut(held, position)
            if not whole or cut >= end:
                break
            yield self._emit(held, position, cut, OVERSIZED)
            position = cut
        filling = _filling(held, position, end)
        # The first line end of a run ends the record.
        filling += held[filling : filling + 1] == b"\n"
        if position < filling < end and held[filling - 1 : filling] == b"\n" and self._start.match(held, position):
            yield self._emit(held, position, filling, None)
            position = filling
        yield self._emit(held, position, end, OVERSIZED if end - position > self._max else None)

    def _emit(self, held: bytes, position: int, end: int, problem: str | None) -> RawRecord:
        cut = held[end - 1 : end] != b"\n"
        text = held[position : min(end - (not cut), position + self._max)]
        return self._pass(self._made(text, end - position, held.count(b"\n", position, end) + cut, cut, problem))

    def _made(self, text: bytes, size: int, lines: int, cut: bool, problem: str | None) -> RawRecord:
        if self._offset == 0 and text.startswith(BOM):
            text = text[len(BOM) :]
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if problem is None:
            if b"\0" in text or _filling(text) >= 0:
                problem = BINARY
            elif cut:
                problem = HALF_LINE
            elif self._unknown:
                problem = NO_LAYOUT
            elif not self._start.match(text):
                problem = CONTINUATION
        return RawRecord(self._offset, size, self._line, lines, text, problem)

    def _pass(self, record: RawRecord) -> RawRecord:
        self._offset += record.size_bytes
        self._line += record.line_count
        return record


def _filling(text: bytes, start: int = 0, end: int = sys.maxsize) -> int:
    """Return where the first run of a filling begins. -1 if there is none."""
    return min((found for run in _FILLINGS if (found := text.find(run, start, end)) >= 0), default=-1)
