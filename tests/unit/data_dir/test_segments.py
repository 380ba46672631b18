"""Log segments: round trips against a plain encoder, and every kind of damage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.pipelines.data_dir import crc32c as module
from highwater.pipelines.data_dir.records import Malformed, read_records
from highwater.pipelines.data_dir.segments import SegmentBatch, SegmentReader
from tests.examples import examples
from tests.unit.data_dir.encoder import batch, crc32c, message, wrapped

BYTES = st.none() | st.binary(max_size=30)
VALUES = st.lists(st.tuples(BYTES, BYTES), min_size=1, max_size=4)


def read(content: bytes, with_records: bool = False, size: int = 1 << 20) -> tuple[list[SegmentBatch], SegmentReader]:
    pieces = [content[start : start + size] for start in range(0, len(content), size)]
    reader = SegmentReader(pieces, with_records)
    return list(reader.batches()), reader


@given(st.binary(max_size=6000), st.integers(0, 6000))
@settings(max_examples=40)
def test_crc_is_that_of_the_definition(data: bytes, cut: int) -> None:
    assert module.compute_crc32c(data) == crc32c(data)
    assert module.compute_crc32c(data[cut:], module.compute_crc32c(data[:cut])) == crc32c(data)


@pytest.mark.parametrize("size", [1023, 1024, 4100, 65_537])
def test_crc_of_long_data(size: int) -> None:
    data = bytes(number * 31 % 251 for number in range(size))
    assert module.compute_crc32c(data) == crc32c(data)


def test_crc_check_value() -> None:
    assert module.compute_crc32c(b"123456789") == 0xE3069283


@given(st.lists(st.tuples(VALUES, st.integers(0, 5), st.sampled_from([0, 1, 0x10])), max_size=4), st.integers(1, 90))
@examples(60)
def test_batches_round_trip(written: list[tuple[list[tuple], int, int]], size: int) -> None:
    content, base, expected = b"", 10, []
    for values, epoch, attributes in written:
        data = batch(base, values, epoch, attributes, producer=(7, 1, base))
        expected.append((len(content), len(data), base, base + len(values) - 1, epoch, bool(attributes & 0x10), values))
        content += data
        base += len(values)
    found, reader = read(content, with_records=True, size=size)
    assert [
        (
            item.byte_offset,
            item.size_bytes,
            item.base_offset,
            item.last_offset,
            item.leader_epoch,
            item.is_transactional,
            [(record.key, record.value) for record in read_records(item)],
        )
        for item in found
    ] == expected
    assert all(item.crc_ok and item.problem is None for item in found)
    assert (reader.problem, reader.valid_bytes) == (None, len(content))


def test_fields_of_a_batch() -> None:
    (item,), _ = read(batch(5, [(b"k", b"v"), (None, b"w")], 3, 0x20, 1_700_000_000_000, (9, 2, 40)), True)
    assert (item.magic, item.codec, item.record_count, item.is_control) == (2, "none", 2, True)
    assert (item.producer_id, item.producer_epoch, item.base_sequence) == (9, 2, 40)
    assert (item.first_ms, item.max_ms) == (1_700_000_000_000, 1_700_000_000_001)
    assert [(record.offset, record.time_ms) for record in read_records(item)] == [
        (5, 1_700_000_000_000),
        (6, 1_700_000_000_001),
    ]
    (plain,), _ = read(batch(5, [(b"k", b"v")], -1))
    assert (plain.leader_epoch, plain.producer_id, plain.producer_epoch, plain.base_sequence) == (None,) * 4


def test_a_segment_torn_at_any_byte() -> None:
    whole = [batch(0, [(b"a", b"b")]), message(1, b"old"), wrapped(2, 3), batch(5, [(None, b"x" * 40)] * 2)]
    content = b"".join(whole)
    ends = [sum(map(len, whole[: number + 1])) for number in range(len(whole))]
    for length in range(len(content) + 1):
        found, reader = read(content[:length])
        complete = [end for end in ends if end <= length]
        assert len(found) == len(complete)
        assert reader.valid_bytes == max(complete, default=0)
        if length in (0, *ends):
            assert reader.problem is None
        else:
            assert f" byte {reader.valid_bytes}" in (reader.problem or "")


@given(st.integers(12, 120), st.integers(1, 255))
def test_any_flipped_byte_is_noticed(at: int, flip: int) -> None:
    content = batch(0, [(b"key", b"value" * 20)]) + batch(1, [(None, None)])
    damaged = bytearray(content)
    damaged[at] ^= flip
    found, reader = read(bytes(damaged))
    if 12 <= at < 16:  # the leader epoch is outside of the checksum: brokers set it
        assert reader.problem is None
    else:
        assert reader.problem or any(item.problem and not item.crc_ok for item in found)


def test_zeros_behind_the_last_batch() -> None:
    one = batch(0, [(b"a", b"b")])
    _, reader = read(one + bytes(5000), size=700)
    assert reader.problem == (
        f"zero bytes from byte {len(one)} to the end: allocated in advance, or not written to the disk"
    )
    _, reader = read(one + bytes(100) + batch(1 << 60, [(b"a", b"b")]))
    assert reader.problem == f"100 zero bytes at byte {len(one)} with other bytes behind them: not written to the disk"


def test_what_is_no_batch() -> None:
    one = batch(0, [(b"a", b"b")])
    found, reader = read(one + b"\x11" * 200)
    assert (len(found), reader.problem) == (1, f"no batch at byte {len(one)}: magic 17 is not known")
    _, reader = read(one[:8] + b"\0\0\0\x05" + one[12:])
    assert reader.problem == "no batch at byte 0: length 5 is too small for magic 2"


def test_offsets_that_go_back() -> None:
    found, _ = read(batch(5, [(b"a", b"b")]) + batch(5, [(b"a", b"c")]))
    assert [item.problem for item in found] == [None, "offset 5 comes after 5"]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages(magic: int) -> None:
    found, reader = read(message(3, b"a", magic, key=b"k") + wrapped(4, 3, magic) + message(7, b"z", magic, codec=2))
    assert reader.problem is None
    assert [(item.base_offset, item.last_offset, item.record_count, item.codec) for item in found] == [
        (3, 3, 1, "none"),
        (4, 6, 3, "gzip"),
        (None, 7, None, "snappy"),
    ]
    assert all(item.crc_ok and item.magic == magic and item.leader_epoch is None for item in found)
    times = [(item.first_ms, item.max_ms) for item in found]
    base = 1_600_000_000_000
    assert times[:2] == ([(base + 3, base + 3), (base, base + 6)] if magic else [(None, None)] * 2)


def test_a_wrapper_that_cannot_be_opened() -> None:
    (item,), _ = read(message(9, b"\x1f\x8bnonsense", 1, codec=1))
    assert (item.base_offset, item.last_offset, item.record_count) == (None, 9, None)
    assert item.problem is not None
    assert item.problem.startswith("cannot be decompressed")


def test_records_that_are_not_what_the_header_says() -> None:
    (item,), _ = read(batch(0, [(b"a", b"b")]), with_records=True)
    with pytest.raises(Malformed, match="behind the last record"):
        list(read_records(item._replace(record_count=0)))
    with pytest.raises(Malformed, match="left"):
        list(read_records(item._replace(record_count=2)))
    with pytest.raises(Malformed, match="zstd"):
        list(read_records(item._replace(codec="zstd")))
