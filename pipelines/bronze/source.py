"""The bytes of a log file, read in blocks as UTF-8 and hashed on the way: plain or compressed, in any encoding.

Compression is recognised by first bytes, also within compression. Offsets count bytes of the content in UTF-8.

Content before damage is kept: a truncated or corrupt file yields everything before the damage. `Source.problem` then
describes it. Memory is bounded by the block size, for any file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from highwater.pipelines.bronze.decompress import COMPRESSED_BLOCK_BYTES, DamagedError, codec_of, inflate_all
from highwater.pipelines.bronze.encodings import convert, encoding_of, is_binary

BLOCK_BYTES = 1 << 20
SAMPLE_BYTES = 1 << 17
CONTENT_ID_DIGITS = 32

BOM = b"\xef\xbb\xbf"
#: Compressions within compressions are opened to this depth.
DEPTH_MAX = 3
ZIP_MAGIC = b"PK\x03\x04"
TAR_MAGIC = b"ustar"
TAR_AT = 257


class Readable(Protocol):
    """A file or a bundle member. A member may have an attribute ``problem`` after it was read."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most ``size``. Empty at the end."""


class SeekableFile(Readable, Protocol):
    """A file with random access."""

    def seek(self, offset: int, /) -> int:
        """Go to a byte."""


class Source:
    """Reads one file once, as UTF-8.

    Iterate `blocks` once. The attributes are complete afterwards.

    Attributes:
        compressed: the file starts like a compressed one.
        encoding: original encoding. None if the content was not converted.
        stored_bytes: bytes read from the file.
        content_bytes: bytes after decompression and conversion.
        stored_sha256: SHA-256 of the file as stored, in hex.
        content_id: first 32 hex digits of the SHA-256 of the content.
        problem: damage of the compression, with a remedy. None if undamaged.
        grown_line: (offset, number) of the line after the longest known content in ``marks`` that this one starts with;
            of the first line if there is none.
    """

    def __init__(self, file: Readable, marks: Sequence[tuple[int, str]] = (), block_bytes: int = BLOCK_BYTES) -> None:
        """Prepare to read a file.

        Args:
            file: file opened for reading bytes, at its start.
            marks: (length in bytes, content id) of known contents. This file may be a longer version of one.
            block_bytes: maximum size of a block.
        """
        self._file = file
        self._block_bytes = block_bytes
        self._marks = sorted(mark for mark in marks if mark[0] > 0)
        self._stored = hashlib.sha256()
        self._content = hashlib.sha256()
        self.compressed = False
        self.encoding: str | None = None
        self.stored_bytes = 0
        self.content_bytes = 0
        self.problem: str | None = None
        self.grown_line = (0, 1)
        self._line = (0, 1)

    @property
    def stored_sha256(self) -> str:
        return (self._content if self.is_as_stored else self._stored).hexdigest()

    @property
    def is_as_stored(self) -> bool:
        """Return True if the content has the same bytes as the file. Known after the first block was read."""
        return not self.compressed and self.encoding is None

    @property
    def content_id(self) -> str:
        return self._content.hexdigest()[:CONTENT_ID_DIGITS]

    def blocks(self, limit_bytes: int | None = None) -> Iterator[bytes]:
        """Yield the content in blocks.

        Args:
            limit_bytes: stop after this many bytes of content, to ignore text added later. None for no limit.
        """
        left = limit_bytes
        for block in self._content_blocks():
            if left is not None:
                block = block[:left]
                left -= len(block)
            if block:
                self._digest(block)
                yield block
            if left == 0:
                return

    def _digest(self, block: bytes) -> None:
        start = 0
        while self._marks and self._marks[0][0] <= self.content_bytes + len(block):
            length, content_id = self._marks.pop(0)
            cut = length - self.content_bytes
            self._content.update(block[start:cut])
            self._count_lines(block, start, cut)
            start = cut
            if self.content_id == content_id:
                self.grown_line = self._line
        if self._marks:
            self._count_lines(block, start, len(block))
        self._content.update(block[start:] if start else block)
        self.content_bytes += len(block)

    def _count_lines(self, block: bytes, start: int, end: int) -> None:
        last = block.rfind(b"\n", start, end)
        if last >= 0:
            self._line = (self.content_bytes + last + 1, self._line[1] + block.count(b"\n", start, end))

    def _content_blocks(self) -> Iterator[bytes]:
        self.encoding, blocks = convert(self._unpacked_blocks())
        yield from blocks
        self.problem = self.problem or getattr(self._file, "problem", None)

    def _unpacked_blocks(self) -> Iterator[bytes]:
        first = self._file.read(COMPRESSED_BLOCK_BYTES)
        codec = codec_of(first)
        if codec is not None:
            self.compressed = True
            yield from self._inflate(codec, first)
            return
        # Hashes of what is stored cost a pass of their own, so only a converted content has both.
        is_hashed = encoding_of(first) is not None
        while first:
            self.stored_bytes += len(first)
            if is_hashed:
                self._stored.update(first)
            yield first
            first = self._file.read(self._block_bytes)

    def _inflate(self, codec: str, first: bytes) -> Iterator[bytes]:
        """Yield decompressed blocks until the first damage. The rest of the file is still hashed."""
        ahead = [first]

        def read(size: int) -> bytes:
            data = ahead.pop() if ahead else self._file.read(size)
            self._stored.update(data)
            self.stored_bytes += len(data)
            return data

        given = 0
        try:
            for block in inflate_all(codec, read, self._block_bytes, DEPTH_MAX):
                given += len(block)
                yield block
        except DamagedError as damage:
            self.problem = damage.in_words(codec, given)
            while read(COMPRESSED_BLOCK_BYTES):
                pass


def not_text(sample: bytes) -> str | None:
    """Return why a content is not text, with a remedy. None if it is text.

    Args:
        sample: beginning of the content, in UTF-8.
    """
    if codec := codec_of(sample):
        return f"not text: {codec} within compression: decompress it"
    return "not text: control characters: leave it out" if is_binary(sample) else None
