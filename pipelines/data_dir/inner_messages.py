"""Messages within a gzipped message of magic 0 or 1. Pure."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from highwater.pipelines.data_dir.stream import ByteStream

_OFFSET_AND_SIZE = struct.Struct(">qi")
#: Checksum, magic, attributes, and since magic 1 a timestamp.
_START = struct.Struct(">Ibbq")
_INT = struct.Struct(">i")
_BLOCK_BYTES = 1 << 18


class Inner(NamedTuple):
    """The messages within a compressed wrapper message."""

    messages: int  #: whole ones
    first_offset: int  #: as stored: relative to the wrapper's first one since magic 1, absolute before
    last_offset: int  #: as stored
    first_ms: int | None  #: timestamp of the first message, Unix milliseconds
    problem: str | None  #: why the messages are not all of it


def walk_inner_messages(body: bytes, magic: int) -> Inner:
    """Count the messages of a gzipped wrapper, and return the first and last offset.

    Args:
        body: the wrapper from its magic on.
        magic: magic of the wrapper, 0 or 1.
    """
    value = _find_value(body, 2 + (8 if magic == 1 else 0))
    if value is None:
        return Inner(0, 0, 0, None, "its value is not as long as it says")
    count = first = last = 0
    first_ms: int | None = None
    problem = None
    try:
        stream = ByteStream(_decompress(value))
        while head := stream.peek(_OFFSET_AND_SIZE.size + _START.size):
            if len(head) < _OFFSET_AND_SIZE.size:
                problem = f"message {count} within it is cut"
                break
            offset, length = _OFFSET_AND_SIZE.unpack_from(head)
            size = _OFFSET_AND_SIZE.size + length
            if length < 0 or sum(map(len, stream.pieces(size))) < size:
                problem = f"message {count} within it is cut"
                break
            if count == 0:
                first = offset
                if len(head) == _OFFSET_AND_SIZE.size + _START.size:
                    _, inner_magic, _, time_ms = _START.unpack_from(head, _OFFSET_AND_SIZE.size)
                    first_ms = time_ms if inner_magic == 1 and time_ms >= 0 else None
            last = offset
            count += 1
    except zlib.error as error:
        problem = f"cannot be decompressed ({error})"
    return Inner(count, first, last, first_ms, problem)


def _find_value(body: bytes, at: int) -> bytes | None:
    for last in (False, True):
        if len(body) < at + _INT.size:
            return None
        length = max(_INT.unpack_from(body, at)[0], 0)
        at += _INT.size
        if last:
            return body[at : at + length] if at + length <= len(body) else None
        at += length
    return None


def _decompress(data: bytes) -> Iterator[bytes]:
    inflater = zlib.decompressobj(wbits=31)
    while not inflater.eof:
        block = inflater.decompress(data, _BLOCK_BYTES)
        data = inflater.unconsumed_tail
        if not block and not data:
            break
        yield block
    if not inflater.eof:
        raise zlib.error("it is cut")
