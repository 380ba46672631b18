"""Log segments: the headers of record batches and of old messages, with their checksums verified. Pure.

Magic 2 is ``org.apache.kafka.common.record.DefaultRecordBatch``, magic 0 and 1 are ``LegacyRecord`` after an offset and
a size. A segment of any size is read front to back in pieces. It ends at the first byte without a whole batch. The rest
(half a batch, zeros of a preallocated file, other bytes) is reported with its position, and not read further.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from highwater.pipelines.data_dir.crc32c import compute_crc32c
from highwater.pipelines.data_dir.inner_messages import walk_inner_messages
from highwater.pipelines.data_dir.stream import ByteStream

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
#: Largest batch whose records are returned, or whose inner messages are read.
PAYLOAD_BYTES_MAX = 64 << 20

_OFFSET_AND_SIZE = struct.Struct(">qi")
_V2 = struct.Struct(">qiibIhiqqqhii")
_LEGACY = struct.Struct(">qiIbb")
_LONG = struct.Struct(">q")
_LENGTH_MIN = {0: 14, 1: 22, 2: _V2.size - _OFFSET_AND_SIZE.size}
_MAGIC_AT = 16
#: Where the checksummed part begins: behind the checksum.
_CHECKED_FROM = {0: 16, 1: 16, 2: 21}

_TIMESTAMP_TYPE, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40


class SegmentBatch(NamedTuple):
    """A record batch, or a message of magic 0 or 1 with the messages in it."""

    byte_offset: int  #: of its first byte in the (decompressed) segment
    size_bytes: int  #: with its offset and size fields
    magic: int
    #: offset of its first record; None for an old compressed message that is not readable
    base_offset: int | None
    last_offset: int  #: offset of its last record
    leader_epoch: int | None  #: partition leader epoch; None where the format has none
    crc: int  #: the checksum as stored
    crc_ok: bool  #: whether the bytes have this checksum
    codec: str  #: one of `CODECS`
    record_count: int | None  #: None for an old compressed message that is not readable
    is_log_append_time: bool  #: timestamps were set by the broker
    #: timestamp of the first record, Unix milliseconds; None if there is none, or a delete horizon instead
    first_ms: int | None
    max_ms: int | None  #: largest timestamp
    producer_id: int | None = None  #: None if the producer is not idempotent; so are epoch and sequence
    producer_epoch: int | None = None
    base_sequence: int | None = None
    is_control: bool = False
    is_transactional: bool = False
    problem: str | None = None  #: what is wrong with it
    records: bytes | None = None  #: its records as stored, if asked for


class SegmentReader:
    """Reads one segment file once.

    Iterate `batches` once. The attributes are complete afterwards.

    Attributes:
        problem: why the segment ends before its file, with the position. None if it does not.
        valid_bytes: bytes up to the end of the last whole batch.
    """

    def __init__(self, blocks: Iterable[bytes], with_records: bool = False) -> None:
        """
        Args:
            blocks: the decompressed content.
            with_records: hand the records of each batch of magic 2 out with it.
        """
        self._stream = ByteStream(blocks)
        self._with_records = with_records
        self._last_offset = -1
        self.problem: str | None = None
        self.valid_bytes = 0

    def batches(self) -> Iterator[SegmentBatch]:
        """Yield the whole batches from the start on."""
        while head := self._stream.peek(_V2.size):
            self.problem = self._find_fault(head)
            batch = None if self.problem else self._read_batch(head)
            if batch is None:
                for _ in self._stream.pieces(1 << 62):  # the hash of the file needs all bytes
                    pass
                return
            self.valid_bytes = self._stream.position
            self._last_offset = max(self._last_offset, batch.last_offset)
            yield batch

    def _find_fault(self, head: bytes) -> str | None:
        """Return why no batch can begin with these bytes. None if one can."""
        start = self._stream.position
        if not any(head):
            zeros, other = self._count_zeros()
            if other:
                return f"{zeros} zero bytes at byte {start} with other bytes behind them: not written to the disk"
            return f"zero bytes from byte {start} to the end: allocated in advance, or not written to the disk"
        if len(head) <= _MAGIC_AT:
            return f"partial batch at byte {start}: {len(head)} bytes, the header is cut"
        length, magic = _OFFSET_AND_SIZE.unpack_from(head)[1], head[_MAGIC_AT]
        if magic not in _LENGTH_MIN:
            return f"no batch at byte {start}: magic {magic} is not known"
        if length < _LENGTH_MIN[magic]:
            return f"no batch at byte {start}: length {length} is too small for magic {magic}"
        return None

    def _count_zeros(self) -> tuple[int, bool]:
        zeros = 0
        for piece in self._stream.pieces(1 << 62):
            stripped = piece.lstrip(b"\0")
            zeros += len(piece) - len(stripped)
            if stripped:
                return zeros, True
        return zeros, False

    def _read_batch(self, head: bytes) -> SegmentBatch | None:
        start = self._stream.position
        magic = head[_MAGIC_AT]
        size = _OFFSET_AND_SIZE.size + int(_OFFSET_AND_SIZE.unpack_from(head)[1])
        from_byte = _CHECKED_FROM[magic]
        # The attributes follow the magic in the old format.
        compressed = magic < 2 and head[17] & 0x07 if len(head) > 17 else False
        keep = size <= PAYLOAD_BYTES_MAX and bool(compressed or (magic == 2 and self._with_records))
        self._stream.read(from_byte)
        size_read, crc = from_byte, 0
        payload: list[bytes] = []
        for piece in self._stream.pieces(size - from_byte):
            size_read += len(piece)
            crc = compute_crc32c(piece, crc) if magic == 2 else zlib.crc32(piece, crc)
            if keep:
                payload.append(piece)
        if size_read < size:
            self.problem = f"partial batch at byte {start}: {size_read} of {size} bytes"
            return None
        body = b"".join(payload) if keep else None
        batch = _parse_modern(head, start, size, crc) if magic == 2 else _parse_legacy(head, start, size, crc, body)
        problems = [batch.problem]
        first = batch.base_offset if batch.base_offset is not None else batch.last_offset
        if first <= self._last_offset:
            problems.append(f"offset {first} comes after {self._last_offset}")
        if not batch.crc_ok:
            problems.append(f"CRC {batch.crc:#010x} is stored, that of its bytes is {crc:#010x}")
        records = None
        if self._with_records and magic == 2:
            records = None if body is None else body[_V2.size - from_byte :]
            if records is None:
                problems.append(f"its {size} bytes of records are not looked into")
        return batch._replace(problem="; ".join(filter(None, problems)) or None, records=records)


def _parse_modern(head: bytes, start: int, size: int, crc: int) -> SegmentBatch:
    base, _, epoch, magic, stored, attributes, last_delta, first_ms, max_ms, *rest = _V2.unpack(head)
    producer, producer_epoch, sequence, count = rest
    problem = None
    if last_delta < 0 or not 0 <= count <= last_delta + 1:
        problem = f"{count} records and {last_delta + 1} offsets do not fit"
    return SegmentBatch(
        byte_offset=start,
        size_bytes=size,
        magic=magic,
        base_offset=base,
        last_offset=min(base + max(last_delta, 0), (1 << 63) - 1),
        leader_epoch=_replace_missing(epoch),
        crc=stored,
        crc_ok=stored == crc,
        codec=_name_codec(attributes),
        producer_id=_replace_missing(producer),
        producer_epoch=_replace_missing(producer_epoch),
        base_sequence=_replace_missing(sequence),
        record_count=count,
        is_control=bool(attributes & _CONTROL),
        is_transactional=bool(attributes & _TRANSACTIONAL),
        is_log_append_time=bool(attributes & _TIMESTAMP_TYPE),
        first_ms=None if attributes & _DELETE_HORIZON else _replace_missing(first_ms),
        max_ms=_replace_missing(max_ms),
        problem=problem,
    )


def _parse_legacy(head: bytes, start: int, size: int, crc: int, body: bytes | None) -> SegmentBatch:
    offset, _, stored, magic, attributes = _LEGACY.unpack_from(head)
    time_ms = _replace_missing(_LONG.unpack_from(head, _LEGACY.size)[0]) if magic == 1 else None
    codec = _name_codec(attributes)
    base: int | None = offset
    count: int | None = 1
    first_ms = time_ms
    problem = None
    if codec != "none":
        base = count = first_ms = None
        if codec == "gzip" and body is not None:
            inner = walk_inner_messages(body, magic)
            problem = inner.problem
            if inner.messages and not problem:
                # Relative offsets (magic 1) and absolute ones (magic 0) alike: the last one is the wrapper's.
                base = offset - (inner.last_offset - inner.first_offset)
                count, first_ms = inner.messages, inner.first_ms
    return SegmentBatch(
        byte_offset=start,
        size_bytes=size,
        magic=magic,
        base_offset=base,
        last_offset=offset,
        leader_epoch=None,
        crc=stored,
        crc_ok=stored == crc,
        codec=codec,
        record_count=count,
        is_log_append_time=bool(magic and attributes & _TIMESTAMP_TYPE),
        first_ms=first_ms,
        max_ms=time_ms,
        problem=problem,
    )


def _name_codec(attributes: int) -> str:
    number = attributes & 0x07
    return CODECS[number] if number < len(CODECS) else f"unknown {number}"


def _replace_missing(value: int) -> int | None:
    """Return None for -1, by which Kafka marks a missing value."""
    return None if value < 0 else value
