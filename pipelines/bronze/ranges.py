"""Ranges of a large file, each of which a task of its own can read. Pure.

A range begins where a record does, whatever stood before it: at a line that starts like one in the file's layout. So
the records of all ranges are those of the file. Only a plain file can be entered in its middle, and only one whose
lines stand as they were logged: in a wrapper, records of several streams are under way at any place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from zlib import crc32

from pipelines.bronze.layout import Layout
from pipelines.bronze.source import BLOCK_BYTES, SeekableFile


class ByteRange(NamedTuple):
    """A part of a file.

    Attributes:
        start: its first byte, where a record starts.
        line_no: number of the line that starts there.
        end: the first byte behind it.
        checksum: CRC-32 of its bytes. Enough to see that a file was rotated in between, and four times as fast as a
            hash: each byte of a large file goes through it in the pass that one task makes alone.
    """

    start: int
    line_no: int
    end: int
    checksum: int


class RangeCutter:
    """Cuts a content into ranges while it is read.

    Args:
        layout: tells where records start.
        range_bytes: a range is as long as this, and on to the next record's start.
    """

    def __init__(self, layout: Layout | None, range_bytes: int) -> None:
        self._start = re.compile(rb"\n" + (layout.start.pattern if layout else b""))
        self._range_bytes = range_bytes
        self._ranges: list[ByteRange] = []
        self._under_way = ByteRange(0, 1, 0, 0)
        self._lines = 0

    def tap(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Hands the blocks on."""
        for block in blocks:
            self._see(block)
            yield block

    def ranges(self) -> tuple[ByteRange, ...]:
        """The ranges of all that was read; none if it is not longer than one."""
        ranges = [part for part in (*self._ranges, self._under_way) if part.start < part.end]
        return tuple(ranges) if len(ranges) > 1 else ()

    def _see(self, block: bytes) -> None:
        offset, position = self._under_way.end, 0
        while True:
            # A start that the end of the block cuts through is not found, and the next one is taken.
            from_byte = max(self._under_way.start + self._range_bytes - offset - 1, position)
            found = self._start.search(block, from_byte) if from_byte < len(block) else None
            end = found.start() + 1 if found else len(block)
            self._lines += block.count(b"\n", position, end)
            checksum = crc32(memoryview(block)[position:end], self._under_way.checksum)
            self._under_way = self._under_way._replace(end=offset + end, checksum=checksum)
            if found is None:
                return
            self._ranges.append(self._under_way)
            self._under_way = ByteRange(offset + end, self._lines + 1, offset + end, 0)
            position = end


class RangeReader:
    """One pass over a range of a file.

    Iterate `blocks` once; `is_same` tells then whether it is what it was when it was cut.
    """

    def __init__(self, file: SeekableFile, part: ByteRange) -> None:
        self._file = file
        self._part = part
        self._checksum = 0

    @property
    def is_same(self) -> bool:
        return self._checksum == self._part.checksum

    def blocks(self) -> Iterator[bytes]:
        """The bytes of the range in blocks; fewer if the file has become shorter."""
        self._file.seek(self._part.start)
        left = self._part.end - self._part.start
        while block := self._file.read(min(left, BLOCK_BYTES)):
            left -= len(block)
            self._checksum = crc32(block, self._checksum)
            yield block
