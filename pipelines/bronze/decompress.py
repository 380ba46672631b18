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
            return f"{codec} of more than {RATIO_MAX} times its size, which no log is: not read beyond {given} bytes"
        return f"{self.what} {codec} after {given} bytes of content: copy the file again"


TRUNCATED, CORRUPT, BLOWN_UP = "truncated", "corrupt", "blown up"


def codec_of(beginning: bytes) -> str | None:
    """Return the compression of a file by its first bytes. None if it is not compressed."""
    for magic, codec in _MAGIC:
        if beginning.startswith(magic):
            return codec
    return None


def inflate(codec: str, read: Read, block_bytes: int) -> Iterator[bytes]:
    """Yield the decompressed content in blocks.

    Args:
        read: returns the next compressed bytes, at most the requested number. Empty at the end.

    Raises:
        DamagedError: the stream is damaged. Raised after all readable content.
    """
    taken = given = 0

    def counted(size: int) -> bytes:
        nonlocal taken
        data = read(size)
        taken += len(data)
        return data

    for block in _CODECS[codec](counted, block_bytes):
        given += len(block)
        if given > RATIO_ASKED_BYTES and given > RATIO_MAX * taken:
            raise DamagedError(BLOWN_UP)
        yield block


def inflate_all(codec: str, read: Read, block_bytes: int, depth: int) -> Iterator[bytes]:
    """Yield the content of a stream that may be compressed several times.

    Args:
        codec, read, block_bytes: as in `inflate`.
        depth: maximum number of nested compressions.

    Raises:
        DamagedError: the stream is damaged. Raised after all readable content.
    """
    blocks = inflate(codec, read, block_bytes)
    first = next(blocks, b"")
    inner = codec_of(first) if depth > 1 else None
    if inner is None:
        yield from chain((first,), blocks)
        return
    held = BlockFile(chain((first,), blocks))
    yield from inflate_all(inner, held.read, block_bytes, depth - 1)


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
