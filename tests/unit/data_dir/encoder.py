"""Writes what the readers read, in the plainest way: the oracle of the round trips."""

from __future__ import annotations

import gzip
import struct
import zlib


def crc32c(data: bytes) -> int:
    """Bit by bit, as the definition has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def uvarint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def varint(value: int) -> bytes:
    return uvarint(value * 2 if value >= 0 else -value * 2 - 1)


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(offset_delta: int, time_delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0" + varint(time_delta) + varint(offset_delta) + nullable(key) + nullable(value) + varint(0)
    return varint(len(body)) + body


def batch(
    base: int,
    values: list[tuple[bytes | None, bytes | None]],
    epoch: int = 0,
    attributes: int = 0,
    time_ms: int = 1_700_000_000_000,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A record batch of magic 2; each record one millisecond after the one before."""
    data = b"".join(record(n, n, key, value) for n, (key, value) in enumerate(values))
    if attributes & 7 == 1:
        data = gzip.compress(data)
    last = len(values) - 1
    checked = struct.pack(">hiqqqhii", attributes, last, time_ms, time_ms + last, *producer, len(values)) + data
    behind = struct.pack(">ibI", epoch, 2, crc32c(checked)) + checked
    return struct.pack(">qi", base, len(behind)) + behind


def message(offset: int, value: bytes, magic: int = 1, codec: int = 0, key: bytes | None = None) -> bytes:
    """A message of magic 0 or 1."""
    checked = struct.pack(">bb", magic, codec)
    checked += struct.pack(">q", 1_600_000_000_000 + offset) if magic == 1 else b""
    checked += struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key
    checked += struct.pack(">i", len(value)) + value
    behind = struct.pack(">I", zlib.crc32(checked)) + checked
    return struct.pack(">qi", offset, len(behind)) + behind


def wrapped(first: int, count: int, magic: int = 1) -> bytes:
    """Messages within a gzipped one: relative offsets since magic 1, absolute before."""
    start = 0 if magic == 1 else first
    inner = b"".join(message(start + n, b"v" * n, magic) for n in range(count))
    return message(first + count - 1, gzip.compress(inner), magic, codec=1)


def string(text: str | None) -> bytes:
    return uvarint(0) if text is None else uvarint(len(text.encode()) + 1) + text.encode()


def ints(values: tuple[int, ...]) -> bytes:
    return uvarint(len(values) + 1) + b"".join(struct.pack(">i", value) for value in values)


def tagged(fields: dict[int, bytes]) -> bytes:
    parts = (uvarint(tag) + uvarint(len(data)) + data for tag, data in sorted(fields.items()))
    return uvarint(len(fields)) + b"".join(parts)


def framed(api_key: int, version: int, body: bytes) -> bytes:
    """A record of the metadata log."""
    return uvarint(1) + uvarint(api_key) + uvarint(version) + body


TOPIC_ID = bytes(range(16))


def topic(name: str, topic_id: bytes = TOPIC_ID) -> bytes:
    return framed(2, 0, string(name) + topic_id + tagged({}))


def partition(number: int, replicas: tuple[int, ...], topic_id: bytes = TOPIC_ID) -> bytes:
    """A new partition, led by its first replica, with all in the ISR."""
    body = struct.pack(">i", number) + topic_id + ints(replicas) * 2 + ints(()) * 2
    body += struct.pack(">iii", replicas[0], 0, 0)
    return framed(3, 1, body + uvarint(len(replicas) + 1) + bytes(range(1, 17)) * len(replicas) + tagged({}))


def change(number: int, fields: dict[int, bytes], topic_id: bytes = TOPIC_ID, version: int = 2) -> bytes:
    return framed(5, version, struct.pack(">i", number) + topic_id + tagged(fields))
