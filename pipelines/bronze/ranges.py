"""Ranges of a large file, which separate tasks can read. Pure.

A range begins where no record is incomplete, so the records of all ranges are the records of the file. Without a
wrapper, a range can begin at each line that starts like a record in the file's layout. A wrapper has streams, and only
the next line of a stream shows if the stream's record has ended. The reader of the file therefore proposes a place, and
settles it later (`pipelines.bronze.reader`). A compressed file cannot be read from the middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from highwater.pipelines.bronze import record_ends
from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.source import BLOCK_BYTES, SeekableFile


class ByteRange(NamedTuple):
    """A part of a file."""

    start: int  #: its first byte, where a record starts
    line_no: int  #: number of the line that starts there
    end: int  #: the first byte behind it
    #: CRC-32 of its bytes. Enough to see that a file was rotated in between, and four times as fast as a hash: each
    #: byte of a large file goes through it in the pass that one task makes alone
    checksum: int


class RangeCutter:
    """Splits a content into ranges while it is read, at positions that its reader proposes.

    Args:
        range_bytes: minimum length of a range. It ends at the next position after that.
    """

    def __init__(self, range_bytes: int) -> None:
        self._range_bytes = range_bytes
        self._ranges: list[ByteRange] = []
        self._under_way = ByteRange(0, 1, 0, 0)
        #: What ends at the place that was proposed, and what begins there, until that is settled.
        self._proposed: tuple[ByteRange, ByteRange] | None = None
        self._block = b""
        self._block_start = 0

    def tap(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks unchanged. The reader proposes positions in the last block before asking for the next."""
        for block in blocks:
            self._block = block
            yield block
            self._advance(self._block_start + len(block))
            self._block_start += len(block)

    def ranges(self) -> tuple[ByteRange, ...]:
        """Return the ranges of the text read so far. Empty if there is only one."""
        ranges = [part for part in (*self._ranges, self._under_way) if part.start < part.end]
        return tuple(ranges) if len(ranges) > 1 else ()

    @property
    def due_at(self) -> int:
        """Return the lowest offset that may be proposed, in bytes."""
        return self._under_way.start + self._range_bytes

    def propose(self, start: int, line_no: int) -> None:
        """Propose that a range begins at a line. Call `settle` before proposing another place."""
        self._advance(start)
        self._proposed = self._under_way, ByteRange(start, line_no, start, 0)

    def settle(self, begins: bool) -> None:
        """Begin a range at the proposed place if `begins`, else discard the place."""
        if begins and self._proposed is not None:
            ended, self._under_way = self._proposed
            self._ranges.append(ended)
        self._proposed = None

    def _advance(self, end: int) -> None:
        read = memoryview(self._block)[self._under_way.end - self._block_start : end - self._block_start]
        self._under_way = _longer(self._under_way, read)
        if self._proposed is not None:
            ended, begun = self._proposed
            self._proposed = ended, _longer(begun, read)


def _longer(part: ByteRange, read: memoryview) -> ByteRange:
    return part._replace(end=part.end + len(read), checksum=crc32(read, part.checksum))


class StartCutter(RangeCutter):
    """Splits a content without wrapper into ranges that start at records.

    If a record may end elsewhere than at the next record start, a split needs a position without such records nearby
    (`pipelines.bronze.record_ends`).

    Args:
        layout: shows where records start.
    """

    def __init__(self, layout: Layout | None, range_bytes: int) -> None:
        super().__init__(range_bytes)
        self._start = re.compile(rb"\n" + (layout.start.pattern if layout else b""))
        self._tail = layout.tail if layout else None
        self._lines = 0

    def tap(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks."""
        before = held = b""  # what was gone through last, and what was not yet
        ahead_bytes = 0 if self._tail is None else 2 * record_ends.FAR_BYTES
        for block in blocks:
            yield block
            held = held + block if held else block
            if (size := len(held) - ahead_bytes) > 0:
                gone, held = held[:size], held[size:]
                self._go_through(before, gone, held)
                before = (before + gone)[-record_ends.FAR_BYTES :]
        self._go_through(before, held, b"")

    def _go_through(self, before: bytes, block: bytes, after: bytes) -> None:
        self._block = block
        offset, counted, from_byte = self._block_start, 0, 0
        while True:
            # A start that the end of the block cuts through is not found, and the next one is taken.
            from_byte = max(self.due_at - offset - 1, from_byte)
            match = self._start.search(block, from_byte) if from_byte < len(block) else None
            end = match.start() + 1 if match else len(block)
            self._lines += block.count(b"\n", counted, end)
            counted = end
            if match is None:
                break
            from_byte = end
            if self._tail is not None:
                near = (before + block[max(0, end - record_ends.FAR_BYTES) : end])[-record_ends.FAR_BYTES :]
                behind = block[end : end + 2 * record_ends.FAR_BYTES] + after
                if not record_ends.are_plain(near, behind[: 2 * record_ends.FAR_BYTES], self._start, self._tail):
                    from_byte = end + record_ends.FAR_BYTES
                    continue
            self.propose(offset + end, self._lines + 1)
            self.settle(begins=True)
        self._advance(offset + len(block))
        self._block_start += len(block)


class RangeReader:
    """Reads one range of a file once.

    Iterate `blocks` once. Then `is_same` is True if the range has not changed since it was determined.
    """

    def __init__(self, file: SeekableFile, part: ByteRange) -> None:
        self._file = file
        self._part = part
        self._checksum = 0

    @property
    def is_same(self) -> bool:
        return self._checksum == self._part.checksum

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes of the range in blocks. Fewer if the file was truncated."""
        self._file.seek(self._part.start)
        left = self._part.end - self._part.start
        while block := self._file.read(min(left, BLOCK_BYTES)):
            left -= len(block)
            self._checksum = crc32(block, self._checksum)
            yield block
