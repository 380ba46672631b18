"""Further layouts in a file, besides the layout at its beginning.

Examples are a broker that restarted with other settings, and concatenated outputs. The profiling pass reads the whole
file in the layout of its beginning. Lines that begin like a record, but not in that layout, are missed lines. Their
layout is inferred like a file's layout, and each line is read by the layout in which it begins a record. Missed lines
that no layout reads become separate records, which coverage counts. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC

from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.layouts.anchors import CONTINUATION, has_anchor, is_timed
from highwater.pipelines.bronze.layouts.loggers import could_log
from highwater.pipelines.bronze.record_ends import can_hold_value
from highwater.pipelines.bronze.source import BOM
from highwater.pipelines.bronze.wrappers.frames import NO_FRAME
from highwater.pipelines.bronze.wrappers.pieces import split
from highwater.pipelines.bronze.wrappers.recognise import around, either, recognise, step_named
from highwater.pipelines.bronze.wrappers.terminals import COLUMNS
from highwater.pipelines.kafka.raw_record import DOUBTFUL, RawRecord

#: Fewer missed lines are what people quote in a message.
_LINES_MIN = 3
#: Samples of a file, and bytes of each.
_SAMPLES_MAX, _SAMPLE_BYTES = 64, 1 << 16
#: Blocks that are at hand.
_BLOCKS_HELD = 2
_TIME_WITHIN = 1 << 12


class Changes:
    """Collects lines that the layout of a file does not fit, in the pass that reads the file.

    Attributes:
        sees_all: the caller must pass every record, not only records of several lines or with a problem.
    """

    def __init__(self, layout: Layout | None) -> None:
        self._layout = layout
        self._parse = None if layout is None else layout.parser(UTC)
        #: Any object begins a record of a structured layout: which ones are read, their fields decide.
        self.sees_all = layout is not None and layout.is_structured
        self._blocks: list[bytes] = []
        self._held_from = 0
        #: Number of missed lines that name Kafka's classes.
        self._missed = 0
        #: Text from missed lines on, by the byte that it begins at.
        self._samples: dict[int, bytes] = {}

    def tap(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks unchanged, and keep the last ones for samples."""
        for block in blocks:
            if len(self._blocks) == _BLOCKS_HELD:
                self._held_from += len(self._blocks.pop(0))
            self._blocks.append(block)
            yield block

    def see(self, record: RawRecord) -> None:
        """Examine a record. Records of several streams may arrive in another order than in the file."""
        is_good = record.problem is None
        if is_good and self.sees_all and self._parse is not None:
            is_good = self._parse(record.text) is not None
        if record.problem == DOUBTFUL or (is_good and record.line_count < 2):
            return
        lines = record.text.split(b"\n")
        missed = [line for line in lines[self._own_lines(lines) if is_good else 0 :] if is_timed(line, _TIME_WITHIN)]
        if missed:
            self._missed += sum(map(has_anchor, missed))
            self._sample(record.byte_offset)

    def _own_lines(self, lines: Sequence[bytes]) -> int:
        """Return how many of a record's first lines may be its message.

        A message ends with its logger. A client's value may look like a logger, so the last logger counts.
        """
        tail = self._layout.tail if self._layout is not None else None
        if tail is None:
            return 1
        ends = (number for number, line in enumerate(lines, 1) if (name := tail.search(line)) and could_log(name[1]))
        own = next(ends, len(lines))
        return max(ends, default=own) if can_hold_value(self._parse, lines[0]) else own

    def _sample(self, offset: int) -> None:
        """Keep the text from a record on, unless the last sample has the record."""
        last = next(reversed(self._samples), 0)
        is_kept = last <= offset < last + len(self._samples.get(last, b""))
        if is_kept or len(self._samples) == _SAMPLES_MAX or offset < self._held_from:
            return
        held = b"".join(self._blocks)
        begin = held.rfind(b"\n", 0, offset - self._held_from) + 1
        self._samples[self._held_from + begin] = held[begin : begin + _SAMPLE_BYTES]

    def layout(self, log_format: str = "") -> Layout | None:
        """Return the layout with which the file must be read again.

        None if too few lines did not fit, or if no other layout reads them.

        Args:
            log_format: layout given by the user. Then None is returned.
        """
        if self._missed < _LINES_MIN or log_format or (self._layout is not None and self._layout.order):
            return None
        known = [] if self._layout is None else [self._layout]
        for sample in self._samples.values():
            found, _, is_proven = recognise(_unread(sample, known))
            if found is not None and not known and found.order:
                return found
            # Without a logger, a time and a level are any program's.
            if found is None or found.order or not (is_proven or "%c" in found.name.lower()):
                continue
            # Lines of the full width may be whole, so lines of any layout can be among broken ones.
            width = next((one.pieces for one in (*known, found) if one.pieces.startswith(COLUMNS)), "")
            known = [*known, found]
            if width and {one.pieces for one in known} == {"", width}:
                known = [one if one.pieces else around((step_named(width),), one) for one in known]
            known = [one for one in known if one.pieces == known[0].pieces]
        if len(known) > 1:
            return either(known)
        if self._layout is None:
            return known[0] if known else None
        # Lines of other layouts become records of their own.
        return around((NO_FRAME,), self._layout) if self._layout.unwrap is None else None


def _unread(sample: bytes, known: Sequence[Layout]) -> list[bytes]:
    """Return the lines of a sample that neither begin nor continue a record of a known layout."""
    lines = sample.removeprefix(BOM).replace(b"\r\n", b"\n").split(b"\n")
    lines = lines[:-1] if len(lines) > 2 else lines
    for layout in known:
        reading, parse = around((NO_FRAME,), layout) if layout.unwrap is None else layout, layout.parser(UTC)
        pieces = [piece.text for piece in split([b"\n".join(lines) + b"\n"], layout.pieces, 2 * _SAMPLE_BYTES)]
        assert reading.unwrap is not None
        unread = [
            piece
            for piece in pieces
            if not any(
                (layout.start.match(text) and parse(text)) or CONTINUATION.match(text)
                for _, text, _, _ in reading.unwrap(piece) or ()
            )
        ]
        lines = b"\n".join(unread).split(b"\n")
    return lines
