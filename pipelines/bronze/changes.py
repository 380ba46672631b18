"""Parts of a file in other layouts: a broker that started with other settings of its logging, outputs put together.

The pass that profiles a file reads all of it in the layout of its beginning. Lines that begin as records do, but no
record of that layout, are missed lines. Their layout is inferred as that of a file is, and each part is read by its
own. Missed lines that no layout reads become records of their own, which coverage counts. Pure.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC

from pipelines.bronze.layout import Clock, Layout, Parser, Part, RecordHead
from pipelines.bronze.layouts.anchors import has_anchor, is_timed
from pipelines.bronze.layouts.loggers import could_log
from pipelines.bronze.record_ends import can_hold_value
from pipelines.bronze.source import BOM
from pipelines.bronze.wrapped import sourced_records
from pipelines.bronze.wrappers.frames import NO_FRAME
from pipelines.bronze.wrappers.recognise import CHANGED_AT, around, recognise
from pipelines.bronze.wrappers.step import WITHIN
from pipelines.kafka.raw_record import DOUBTFUL, RawRecord

#: Fewer missed lines are what people quote in a message.
_LINES_MIN = 3
#: Parts of a file, at most; more of them are lines of two logs, one among the other.
_PARTS_MAX = 64
#: Bytes of a part by which its layout is inferred, and blocks that are at hand.
_SAMPLE_BYTES = 1 << 16
_BLOCKS_HELD = 2
_TIME_WITHIN = 1 << 12
#: Places that are remembered.
_OFFSETS_MAX = 1 << 21
#: Share of the records of a part that a known layout reads.
_READ = 0.8


class Changes:
    """Missed lines of a file, found in the pass that reads it.

    Attributes:
        sees_all: all records have to be seen, and not only those of several lines or with a problem.
    """

    def __init__(self, layout: Layout | None) -> None:
        self._layout = layout
        self._parse = None if layout is None else layout.parser(UTC)
        #: Any object begins a record of a structured layout: which ones are read, their fields decide.
        self._is_structured = layout is not None and layout.name.endswith("}")
        self.sees_all = self._is_structured
        self._blocks: list[bytes] = []
        self._held = b""
        self._held_from = 0
        self._end = 0
        #: Bytes at which lines begin that have a time and are not read, those of them that name Kafka's classes, and
        #: records that are read, from the first of these lines on.
        self._timed, self._missed, self._good = array("Q"), array("Q"), array("Q")
        #: Beginnings of parts by the byte that they begin at.
        self._samples: dict[int, bytes] = {}

    def tap(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Hand the blocks on, and hold the last ones."""
        for block in blocks:
            if len(self._blocks) == _BLOCKS_HELD:
                self._held_from += len(self._blocks.pop(0))
            self._blocks.append(block)
            for offset, sample in self._samples.items():
                if offset + len(sample) == self._end:
                    self._samples[offset] = sample + block[: _SAMPLE_BYTES - len(sample)]
            self._end += len(block)
            self._held = b""
            yield block

    def see(self, record: RawRecord) -> None:
        """Look at a record. Records of several streams may come in another order than they are in."""
        is_good = record.problem is None
        if is_good and self._is_structured and self._parse is not None:
            is_good = self._parse(record.text) is not None
        if is_good:
            if self._timed and len(self._good) < _OFFSETS_MAX:
                self._good.append(self._line_at(record.byte_offset))
            if record.line_count < 2:
                return
        elif record.problem == DOUBTFUL:
            return
        lines = record.text.split(b"\n")
        own = self._own_lines(lines) if is_good else 0
        is_plain = self._layout is None or self._layout.unwrap is None
        timed = [number for number, line in enumerate(lines) if number >= own and is_timed(line, _TIME_WITHIN)]
        if not timed or len(self._timed) >= _OFFSETS_MAX or record.byte_offset < self._held_from:
            return
        self.sees_all = True
        offset = self._line_at(record.byte_offset)
        for number, line in enumerate(lines[: timed[-1] + 1]):
            if number in timed:
                self._timed.append(offset)
                self._sample(offset)
                if has_anchor(line):
                    self._missed.append(offset)
            if is_plain:  # else lines of the record need not follow each other
                offset = self._held_from + self._held.find(b"\n", offset - self._held_from) + 1

    def _line_at(self, offset: int) -> int:
        """Return the byte at which the line of a byte begins, if the byte is held."""
        self._held = self._held or b"".join(self._blocks)
        at = offset - self._held_from
        return self._held_from + self._held.rfind(b"\n", 0, at) + 1 if at > 0 else offset

    def _own_lines(self, lines: Sequence[bytes]) -> int:
        """Return the number of a record's first lines that may be its message.

        A message ends with its logger. A value of a client may hold what looks like one: then the last one counts.
        """
        tail = self._layout.tail if self._layout is not None else None
        if tail is None:
            return 1
        ends = (number for number, line in enumerate(lines, 1) if (name := tail.search(line)) and could_log(name[1]))
        own = next(ends, len(lines))
        return max(ends, default=own) if can_hold_value(self._parse, lines[0]) else own

    def _sample(self, offset: int) -> None:
        last = next(reversed(self._samples), -_SAMPLE_BYTES)
        if not last <= offset < last + _SAMPLE_BYTES and len(self._samples) < _PARTS_MAX:
            self._samples[offset] = self._held[offset - self._held_from :][:_SAMPLE_BYTES]

    def layout(self, log_format: str = "") -> Layout | None:
        """Return the layout by which the file has to be read again. None if nothing of it was missed."""
        if len(self._missed) < _LINES_MIN or log_format or (self._layout is not None and self._layout.order):
            return None
        parts = self._parts()
        known: list[Layout] = [] if self._layout is None else [self._layout]
        found = [(begin, end, _inferred(self._beginning(begin, end), known)) for begin, end in parts[:_PARTS_MAX]]
        if self._layout is None:
            return next(iter(known), None)
        first = _counting(self._layout)
        if len(parts) > _PARTS_MAX:
            return first if first is not self._layout else None
        made = [Part(0, first)]
        for begin, end, layout in found:
            if layout is None or layout is self._layout:
                continue
            if made[-1].offset == begin:
                made.pop()
            made += [Part(begin, _counting(layout)), Part(end, first)]
        made = [part for part in made if part.offset < self._end]
        if len(made) > 1:
            return in_parts(made)
        return first if first is not self._layout else None

    def _parts(self) -> list[tuple[int, int]]:
        """Return the bytes at which parts of missed lines begin and end."""
        good, missed, parts = sorted(self._good), sorted(self._missed), list[tuple[int, int]]()
        for offset in sorted(set(self._timed)):
            if not parts or offset >= parts[-1][1]:
                at = bisect_right(good, offset)
                parts.append((offset, good[at] if at < len(good) else self._end))
        return [(begin, end) for begin, end in parts if bisect_left(missed, begin) < bisect_left(missed, end)]

    def _beginning(self, begin: int, end: int) -> bytes:
        for offset, sample in self._samples.items():
            if offset <= begin < offset + len(sample):
                return sample[begin - offset : end - offset]
            if begin <= offset < end:
                return sample[: end - offset]
        return b""


def _inferred(sample: bytes, known: list[Layout]) -> Layout | None:
    """Return the layout of a part: one of the known ones if it reads the part. A new one becomes known."""
    for layout in known:
        parse = layout.parser(UTC)
        records = [record for _, record in sourced_records((sample,), layout, len(sample))]
        read = sum(record.problem is None and parse(record.text) is not None for record in records)
        if _READ * len(records) < read:
            return layout
    lines = sample.removeprefix(BOM).replace(b"\r\n", b"\n").split(b"\n")
    found = recognise(lines[:-1] if len(lines) > 2 else lines).layout
    known += [found] if found is not None else []
    return found


def _counting(layout: Layout) -> Layout:
    """Return a layout in which lines of other layouts are records of their own."""
    return layout if layout.unwrap is not None else around((NO_FRAME,), layout)


def in_parts(parts: Sequence[Part]) -> Layout:
    """Return the layout of a file whose parts are in layouts of their own, the first one from its beginning."""
    first = parts[0].layout
    name = first.name + "".join(f"{WITHIN}{CHANGED_AT}{part.offset}{WITHIN}{part.layout.name}" for part in parts[1:])
    layouts = list({part.layout.name: part.layout for part in parts}.values())

    def make(clock: Clock) -> Parser:
        parsers = [(layout.start.match, layout.make(clock)) for layout in layouts]

        def parse(text: bytes) -> RecordHead | None:
            return next((head for starts, read in parsers if starts(text) and (head := read(text)) is not None), None)

        return parse

    return replace(first, name=name, make=make, parts=tuple(parts))
