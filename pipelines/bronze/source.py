"""The bytes of a log file: plain or gzipped, told by its first bytes, read in blocks, hashed on the way.

Damage does not lose what comes before it: a cut or corrupt gzip yields everything up to the damage, and
`Source.problem` says what happened. Memory is bounded by the block size, whatever the file is.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO

BLOCK_BYTES = 1 << 20
COMPRESSED_BLOCK_BYTES = 1 << 16
SAMPLE_BYTES = 1 << 17
CONTENT_ID_DIGITS = 32

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
#: First bytes of what a log folder may hold and this reader does not read: what it is, and what to do.
OTHER_FORMATS = (
    (b"BZh", "a bzip2 archive: decompress it first"),
    (b"\xfd7zXZ\x00", "an xz archive: decompress it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive: decompress it first"),
    (b"\x04\x22\x4d\x18", "an lz4 archive: decompress it first"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"\x89PNG", "a PNG image: leave it out"),
    (b"\xff\xd8\xff", "a JPEG image: leave it out"),
    (b"GIF8", "a GIF image: leave it out"),
    (b"%PDF", "a PDF document: leave it out"),
    (b"\xff\xfe", "UTF-16 text: convert it to UTF-8"),
    (b"\xfe\xff", "UTF-16 text: convert it to UTF-8"),
)
#: Text may hold this share of bytes that are no UTF-8, e.g. a client id in another encoding.
BAD_SHARE_MAX = 0.1


class Source:
    """One pass over one file.

    Iterate `blocks` once; the attributes are complete after that.

    Attributes:
        compressed: the file starts like a gzip file.
        stored_bytes: bytes read from the file.
        content_bytes: bytes after decompression.
        stored_sha256: SHA-256 of the file as stored, in hex.
        content_id: first 32 hex digits of the SHA-256 of the content.
        problem: what is wrong with the compression, and what to do.
        grown_from: the longest of ``marks`` that this content starts with.
    """

    def __init__(self, file: BinaryIO, marks: Sequence[tuple[int, str]] = (), block_bytes: int = BLOCK_BYTES) -> None:
        """
        Args:
            file: opened for reading bytes, at its start.
            marks: lengths in bytes and content ids of contents that this file may be a longer version of.
            block_bytes: upper limit of one block.
        """
        self._file = file
        self._block_bytes = block_bytes
        self._marks = sorted(mark for mark in marks if mark[0] > 0)
        self._stored = hashlib.sha256()
        self._content = hashlib.sha256()
        self.compressed = False
        self.stored_bytes = 0
        self.content_bytes = 0
        self.problem: str | None = None
        self.grown_from: tuple[int, str] | None = None

    @property
    def stored_sha256(self) -> str:
        return (self._stored if self.compressed else self._content).hexdigest()

    @property
    def content_id(self) -> str:
        return self._content.hexdigest()[:CONTENT_ID_DIGITS]

    def blocks(self, limit_bytes: int | None = None) -> Iterator[bytes]:
        """The content in blocks.

        Args:
            limit_bytes: stop after so many bytes of content: what a log that is still written has grown since.
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
            start = cut
            if self.content_id == content_id:
                self.grown_from = (length, content_id)
        self._content.update(block[start:] if start else block)
        self.content_bytes += len(block)

    def _content_blocks(self) -> Iterator[bytes]:
        first = self._file.read(COMPRESSED_BLOCK_BYTES)
        if first[:2] != GZIP:
            while first:
                self.stored_bytes += len(first)
                yield first
                first = self._file.read(self._block_bytes)
            return
        self.compressed = True
        yield from self._inflate(first)

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        """Decompress one or more gzip members; stops at the first damage, but hashes the rest of the file."""
        inflater = zlib.decompressobj(wbits=31)
        produced = 0
        while data:
            self._stored.update(data)
            self.stored_bytes += len(data)
            while data:
                if inflater.eof:
                    data = data.lstrip(b"\0")  # tape and block devices pad with zeros
                    if not data:
                        break
                    inflater = zlib.decompressobj(wbits=31)
                # zlib drops what it decompressed in a call that fails: keep the state before it.
                before = inflater.copy()
                try:
                    block = inflater.decompress(data, self._block_bytes)
                except zlib.error:
                    for block in _salvage(before, data, self._block_bytes):
                        produced += len(block)
                        yield block
                    self._drain()
                    self.problem = f"corrupt gzip after {produced} bytes of content: copy the file again"
                    return
                data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
                if block:
                    produced += len(block)
                    yield block
            data = self._file.read(COMPRESSED_BLOCK_BYTES)
        while not inflater.eof:
            # Whether all input was used says nothing about output still held back.
            block = inflater.decompress(b"", self._block_bytes)
            if not block:
                self.problem = f"truncated gzip after {produced} bytes of content: copy the file again"
                return
            produced += len(block)
            yield block

    def _drain(self) -> None:
        while data := self._file.read(COMPRESSED_BLOCK_BYTES):
            self._stored.update(data)
            self.stored_bytes += len(data)


def _salvage(inflater: zlib._Decompress, data: bytes, block_bytes: int) -> Iterator[bytes]:
    """What ``data`` decompresses to before its damage, byte by byte."""
    held: list[bytes] = []
    size = 0
    for position in range(len(data)):
        piece = data[position : position + 1]
        try:
            while piece:
                block = inflater.decompress(piece, block_bytes)
                piece = inflater.unconsumed_tail
                held.append(block)
                size += len(block)
        except zlib.error:
            break
        if size >= block_bytes:
            yield b"".join(held)
            held, size = [], 0
    if size:
        yield b"".join(held)


def not_text(sample: bytes) -> str | None:
    """Why the beginning of a file is no text, with a remedy; None if it is text."""
    for magic, what in OTHER_FORMATS:
        if sample.startswith(magic):
            return f"not text: {what}"
    nulls = sample.count(b"\0")
    if nulls > len(sample) * BAD_SHARE_MAX:
        return f"not text: {nulls} of its first {len(sample)} bytes are NUL: leave it out, or convert it"
    try:
        sample.decode()
    except UnicodeDecodeError:
        bad = sample.decode(errors="replace").count("\ufffd")
        if bad > len(sample) * BAD_SHARE_MAX:
            return f"not text: {bad} of its first {len(sample)} bytes are no UTF-8: leave it out, or convert it"
    return None
