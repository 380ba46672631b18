"""Records of a batch (``org.apache.kafka.common.record.DefaultRecord``), and a reader of Kafka's types. Pure."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from highwater.pipelines.data_dir.segments import PAYLOAD_BYTES_MAX, SegmentBatch

T = TypeVar("T")

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_UUID_BYTES = 16
_VARINT_BYTES_MAX = 10


class Malformed(ValueError):
    """Raised if bytes do not match their format."""


class Record(NamedTuple):
    """A record."""

    offset: int  #: in the log
    time_ms: int | None  #: Unix milliseconds; None if it has no timestamp
    key: bytes | None
    value: bytes | None


class Reader:
    """Reads types of Kafka's protocol from bytes, one after the other.

    Strings and arrays have the format of flexible versions (KIP-482): the length plus one, as an unsigned varint.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def raw(self, size: int) -> bytes:
        if size < 0 or size > self.left:
            raise Malformed(f"{size} bytes wanted at byte {self._at}, {self.left} left")
        self._at += size
        return self._data[self._at - size : self._at]

    def _read_fixed(self, kind: struct.Struct) -> int:
        return int(kind.unpack(self.raw(kind.size))[0])

    def int8(self) -> int:
        return self._read_fixed(_INT8)

    def int16(self) -> int:
        return self._read_fixed(_INT16)

    def uint16(self) -> int:
        return self._read_fixed(_UINT16)

    def int32(self) -> int:
        return self._read_fixed(_INT32)

    def int64(self) -> int:
        return self._read_fixed(_INT64)

    def boolean(self) -> bool:
        return self.int8() != 0

    def read_uvarint(self) -> int:
        value = 0
        for number in range(_VARINT_BYTES_MAX):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << (7 * number)
            if not byte & 0x80:
                return value
        raise Malformed(f"varint before byte {self._at} does not end")

    def read_varint(self) -> int:
        """Read a number in zigzag encoding."""
        value = self.read_uvarint()
        return (value >> 1) ^ -(value & 1)

    def uuid(self) -> str:
        """Read an id, as ``org.apache.kafka.common.Uuid`` prints it."""
        return base64.urlsafe_b64encode(self.raw(_UUID_BYTES)).decode().rstrip("=")

    def read_nullable_string(self) -> str | None:
        length = self.read_uvarint() - 1
        return None if length < 0 else self.raw(length).decode(errors="replace")

    def string(self) -> str:
        value = self.read_nullable_string()
        if value is None:
            raise Malformed(f"null at byte {self._at} where a string belongs")
        return value

    def read_nullable_array(self, item: Callable[[], T]) -> tuple[T, ...] | None:
        length = self.read_uvarint() - 1
        if length > self.left:
            raise Malformed(f"array of {length} at byte {self._at}, {self.left} bytes left")
        return None if length < 0 else tuple(item() for _ in range(length))

    def array(self, item: Callable[[], T]) -> tuple[T, ...]:
        return self.read_nullable_array(item) or ()

    def read_tags(self) -> dict[int, bytes]:
        """Read tagged fields. Return their bytes by tag."""
        return {self.read_uvarint(): self.raw(self.read_uvarint()) for _ in range(self.read_uvarint())}


def read_records(batch: SegmentBatch) -> Iterator[Record]:
    """Yield the records of a batch. The batch must have been read with its records.

    Raises:
        Malformed: after the last readable record.
    """
    if batch.records is None or batch.base_offset is None:
        raise Malformed("its records were not kept")
    reader = Reader(_decompress(batch))
    for _ in range(batch.record_count or 0):
        record = Reader(reader.raw(reader.read_varint()))
        record.int8()  # attributes, unused
        time_delta, offset_delta = record.read_varint(), record.read_varint()
        key, value = _read_nullable(record), _read_nullable(record)
        for _ in range(record.read_varint()):
            record.raw(record.read_varint())
            _read_nullable(record)
        if record.left:
            raise Malformed(f"{record.left} bytes behind the record of offset {batch.base_offset + offset_delta}")
        first_ms = batch.max_ms if batch.is_log_append_time else batch.first_ms
        time_ms = first_ms if batch.is_log_append_time or first_ms is None else first_ms + time_delta
        yield Record(batch.base_offset + offset_delta, time_ms, key, value)
    if reader.left:
        raise Malformed(f"{reader.left} bytes behind the last record")


def _read_nullable(reader: Reader) -> bytes | None:
    length = reader.read_varint()
    return None if length < 0 else reader.raw(length)


def _decompress(batch: SegmentBatch) -> bytes:
    stored = batch.records or b""
    if batch.codec == "none":
        return stored
    if batch.codec != "gzip":
        raise Malformed(f"compressed with {batch.codec}, which is not read")
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(stored, PAYLOAD_BYTES_MAX)
    except zlib.error as error:
        raise Malformed(f"cannot be decompressed ({error})") from None
    if not inflater.eof:
        raise Malformed(f"is cut, or has more than {PAYLOAD_BYTES_MAX} bytes decompressed")
    return plain
