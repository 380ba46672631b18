"""Decompresses content in blocks: gzip, bzip2, xz, zstd and lz4, recognised by their first bytes.

All of them stream. Memory is bounded by the block size and by what the format itself has to keep (at most about 128
MiB, for zstd's and xz's largest settings). Content before damage is returned.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

COMPRESSED_BLOCK_BYTES = 1 << 16

#: Logs shrink to a thirtieth, repetitive ones to a hundredth. Beyond these, a file is there to do harm.
RATIO_MAX = 1000
RATIO_ASKED_BYTES = 1 << 28
#: Lines per stored byte: a repetitive log has up to 5. The cost of reading grows with the number of lines.
LINES_MAX = 20
LINES_ASKED = 1 << 20

_XZ_MEMORY_BYTES_MAX = 1 << 28
#: Bytes before damage that may be lost: Arrow reports only that a read failed.
_ARROW_READ_BYTES = 1 << 14

Read = Callable[[int], bytes]


class DamagedError(Exception):
    """Raised if a compressed stream cannot be read to its end.

    Attributes:
        what: the damage: truncated, corrupt, or expanding too far.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def in_words(self, codec: str, given: int) -> str:
        """Return the problem and the remedy as a sentence.

        Args:
            given: bytes of content that were read.
        """
        if self.what == BLOWN_UP:
            return f"{codec} {BLOWN_UP_TEXT}: not read beyond {given} bytes"
        return f"{self.what} {codec} after {given} bytes of content: copy the file again"


TRUNCATED, CORRUPT, BLOWN_UP = "truncated", "corrupt", "blown up"
BLOWN_UP_TEXT = f"of more than {RATIO_MAX} times its size or {LINES_MAX} lines per stored byte, which no log is"


class Growth:
    """Counts of decompressed content, compared with its stored size."""

    def __init__(self) -> None:
        self._bytes = self._lines = 0

    def check(self, block: bytes, stored_bytes: int) -> None:
        """Count a block.

        Args:
            stored_bytes: compressed bytes that the content so far comes from.

        Raises:
            DamagedError: the content grows as no log does.
        """
        self._bytes += len(block)
        self._lines += block.count(b"\n")
        is_large = self._bytes > RATIO_ASKED_BYTES and self._bytes > RATIO_MAX * stored_bytes
        if is_large or (self._lines > LINES_ASKED and self._lines > LINES_MAX * stored_bytes):
            raise DamagedError(BLOWN_UP)


def codec_of(beginning: bytes) -> str | None:
    """Return the compression of a file by its first bytes. None if it is not compressed."""
    for magic, codec in _MAGIC:
        if beginning.startswith(magic):
            return codec
    return None


def inflate_all(codec: str, read: Read, block_bytes: int, depth: int) -> Iterator[bytes]:
    """Yield the content of a stream that may be compressed several times, in blocks.

    Args:
        read: returns the next compressed bytes, at most the requested number. Empty at the end.
        depth: maximum number of nested compressions.

    Raises:
        DamagedError: the stream is damaged. Raised after all readable content.
    """
    taken, growth = 0, Growth()

    def counted(size: int) -> bytes:
        nonlocal taken
        data = read(size)
        taken += len(data)
        return data

    for block in _inflate(codec, counted, block_bytes, depth):
        growth.check(block, taken)
        yield block


def _inflate(codec: str, read: Read, block_bytes: int, depth: int) -> Iterator[bytes]:
    blocks = _CODECS[codec](read, block_bytes)
    first = next(blocks, b"")
    inner = codec_of(first) if depth > 1 else None
    if inner is None:
        yield from chain((first,), blocks)
        return
    held = BlockFile(chain((first,), blocks))
    yield from _inflate(inner, held.read, block_bytes, depth - 1)


class BlockFile:
    """File object over an iterator of blocks. Each read after damage raises the error again."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held = memoryview(b"")
        self._damage: DamagedError | None = None

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes. None at the end."""
        if self._damage is not None:
            raise self._damage
        if not self._held:
            try:
                self._held = memoryview(next(self._blocks, b""))
            except DamagedError as damage:
                self._damage = damage
                raise
        data, self._held = self._held[:size], self._held[size:]
        return data.tobytes()


def _gzip(read: Read, block_bytes: int) -> Iterator[bytes]:
    """Yield one or more gzip members."""
    inflater = zlib.decompressobj(wbits=31)
    while data := read(COMPRESSED_BLOCK_BYTES):
        while data:
            if inflater.eof:
                data = data.lstrip(b"\0")  # tape and block devices pad with zeros
                if not data:
                    break
                inflater = zlib.decompressobj(wbits=31)
            # zlib drops what it decompressed in a call that fails: keep the state before it.
            before = inflater.copy()
            try:
                block = inflater.decompress(data, block_bytes)
            except zlib.error:
                yield from _salvage(before, data, block_bytes)
                raise DamagedError(CORRUPT) from None
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if block:
                yield block
    while not inflater.eof:
        # Whether all input was used says nothing about output still held back.
        block = inflater.decompress(b"", block_bytes)
        if not block:
            raise DamagedError(TRUNCATED)
        yield block


def _salvage(inflater: zlib._Decompress, data: bytes, block_bytes: int) -> Iterator[bytes]:
    """Yield the content that `data` decompresses to before its damage, byte by byte."""
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


def _streams(make: Callable[[], Any], read: Read, block_bytes: int) -> Iterator[bytes]:
    """Yield one or more streams of bzip2 or xz."""
    inflater = make()
    while data := read(COMPRESSED_BLOCK_BYTES):
        while data or not (inflater.eof or inflater.needs_input):
            if inflater.eof:
                data = data.lstrip(b"\0")
                if not data:
                    break
                inflater = make()
            try:
                block = inflater.decompress(data, block_bytes)
            except (OSError, lzma.LZMAError):
                raise DamagedError(CORRUPT) from None
            data = inflater.unused_data if inflater.eof else b""
            if block:
                yield block
    if not inflater.eof:
        raise DamagedError(TRUNCATED)


class _Input:
    """A file object with the methods that Arrow calls."""

    closed = False

    def __init__(self, read: Read) -> None:
        self.read = read

    def close(self) -> None:
        self.closed = True


def _arrow(codec: str, read: Read, block_bytes: int) -> Iterator[bytes]:
    """Yield the content of frames of a codec that Arrow supports."""
    stream = pa.CompressedInputStream(pa.PythonFile(_Input(read), mode="r"), codec)
    held: list[bytes] = []
    size = 0
    damage: DamagedError | None = None
    while damage is None:
        try:
            piece = stream.read(min(block_bytes, _ARROW_READ_BYTES))
        except OSError as error:
            if error.errno is not None:
                raise  # of the file itself
            damage = DamagedError(TRUNCATED if "runcated" in str(error) else CORRUPT)
            break
        if not piece:
            break
        held.append(piece)
        size += len(piece)
        if size >= min(block_bytes, COMPRESSED_BLOCK_BYTES):
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
    if damage is not None:
        raise damage


_CODECS: dict[str, Callable[[Read, int], Iterator[bytes]]] = {
    "gzip": _gzip,
    "bzip2": partial(_streams, bz2.BZ2Decompressor),
    "xz": partial(_streams, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES_MAX)),
    "zstd": partial(_arrow, "zstd"),
    "lz4": partial(_arrow, "lz4"),
}
_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
