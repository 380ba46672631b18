"""Bytes: gzip and its damage, hashes, and what is no text."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import random
import zlib
from itertools import product

import pyarrow as pa
import pytest

from highwater.pipelines.bronze import decompress
from highwater.pipelines.bronze.source import Source, not_text

random.seed(7)
LINE = b"[2026-11-20 15:39:28,132] INFO line %d (kafka.X)\n"
CONTENT = b"".join(LINE % random.getrandbits(40) for _ in range(40_000))
PACKED = gzip.compress(CONTENT)


def read(data: bytes, **options) -> tuple[bytes, Source]:
    source = Source(io.BytesIO(data), **options)
    return b"".join(source.blocks()), source


def test_hashes_and_sizes() -> None:
    content, source = read(PACKED)
    assert content == CONTENT
    assert source.stored_sha256 == hashlib.sha256(PACKED).hexdigest()
    assert source.content_id == hashlib.sha256(CONTENT).hexdigest()[:32]
    assert (source.stored_bytes, source.content_bytes, source.problem) == (len(PACKED), len(CONTENT), None)
    _, plain = read(CONTENT)
    assert plain.stored_sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert plain.content_id == source.content_id


def test_members_one_after_the_other_and_padding() -> None:
    content, source = read(PACKED + gzip.compress(b"more\n") + b"\0" * 512)
    assert content == CONTENT + b"more\n"
    assert source.problem is None


@pytest.mark.parametrize("kept", [12, 100, 70_000, len(PACKED) - 9, len(PACKED) - 1])
def test_truncated_gzip_keeps_what_comes_before(kept: int) -> None:
    content, source = read(PACKED[:kept])
    assert CONTENT.startswith(content)
    expected = zlib.decompressobj(31).decompress(PACKED[:kept])
    assert content == expected
    assert source.problem == f"truncated gzip after {len(content)} bytes of content: copy the file again"
    assert source.stored_sha256 == hashlib.sha256(PACKED[:kept]).hexdigest()


def test_corrupt_gzip_keeps_what_comes_before() -> None:
    broken = bytearray(PACKED)
    broken[100_000:100_040] = b"\xff" * 40
    content, source = read(bytes(broken))
    assert len(content) > 100_000
    same = next((at for at, (a, b) in enumerate(zip(content, CONTENT, strict=False)) if a != b), len(content))
    assert same > 100_000
    assert source.problem == f"corrupt gzip after {len(content)} bytes of content: copy the file again"
    assert source.stored_sha256 == hashlib.sha256(broken).hexdigest()
    again, _ = read(bytes(broken), block_bytes=777)
    assert again == content


def test_wrong_checksum_and_garbage_behind_are_reported() -> None:
    for data in (PACKED[:-8] + b"\1\2\3\4" + PACKED[-4:], PACKED + b"garbage"):
        content, source = read(data)
        assert content == CONTENT
        assert source.problem is not None
        assert "corrupt gzip" in source.problem


def test_a_limit_stops_at_what_was_profiled() -> None:
    source = Source(io.BytesIO(CONTENT))
    assert b"".join(source.blocks(1000)) == CONTENT[:1000]
    assert source.content_id == hashlib.sha256(CONTENT[:1000]).hexdigest()[:32]


def test_a_longer_version_of_known_content_is_recognised() -> None:
    marks = [(length, hashlib.sha256(CONTENT[:length]).hexdigest()[:32]) for length in (1000, 90_000, 70_000)]
    wrong = (100_000, "0" * 32)
    for data in (CONTENT, PACKED):
        _, source = read(data, marks=[*marks, wrong])
        last = CONTENT.rindex(b"\n", 0, 90_000) + 1
        assert source.grown_line == (last, CONTENT.count(b"\n", 0, last) + 1)
        assert source.content_id == hashlib.sha256(CONTENT).hexdigest()[:32]
    _, source = read(b"other" + CONTENT, marks=marks)
    assert source.grown_line == (0, 1)


def test_what_is_no_text() -> None:
    assert not_text(CONTENT[:5000]) is None
    assert not_text("Größe der ISR\n".encode()) is None
    assert not_text(b"client \xe9t\xe9 connected\n" * 10) is None
    assert not_text(bytes(range(128, 256)) * 10) is None
    assert "control characters" in (not_text(b"\x89PNG\r\n\x1a\n" + bytes(100)) or "")
    assert "control characters" in (not_text(bytes(100)) or "")


def _zstd(data: bytes, codec: str = "zstd") -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


CODECS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": _zstd,
    "lz4": lambda data: _zstd(data, "lz4"),
}


@pytest.mark.parametrize("codec", CODECS)
def test_every_compression_reads_like_the_plain_file(codec: str) -> None:
    packed = CODECS[codec](CONTENT) + CODECS[codec](b"more\n")
    content, source = read(packed)
    assert content == CONTENT + b"more\n"
    assert (source.problem, source.compressed) == (None, True)
    assert source.stored_sha256 == hashlib.sha256(packed).hexdigest()
    assert source.content_id == hashlib.sha256(content).hexdigest()[:32]
    assert max(map(len, Source(io.BytesIO(packed)).blocks())) <= 1 << 20


@pytest.mark.parametrize("codec", CODECS)
def test_every_compression_keeps_what_comes_before_its_damage(codec: str) -> None:
    packed = CODECS[codec](CONTENT)
    for cut in (10, len(packed) // 2, len(packed) - 1):
        content, source = read(packed[:cut])
        assert CONTENT.startswith(content)
        assert source.problem == f"truncated {codec} after {len(content)} bytes of content: copy the file again"
        assert source.stored_sha256 == hashlib.sha256(packed[:cut]).hexdigest()
    broken = packed[: len(packed) * 3 // 4] + b"\xff" * 400 + packed[len(packed) * 3 // 4 :]
    content, source = read(broken)
    assert len(content) > len(CONTENT) // 4
    assert source.problem == f"corrupt {codec} after {len(content)} bytes of content: copy the file again"
    assert source.stored_sha256 == hashlib.sha256(broken).hexdigest()


@pytest.mark.parametrize("codec", ["bzip2", "xz", "zstd"])
def test_a_bomb_is_not_read_to_its_end(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "RATIO_ASKED_BYTES", 1 << 22)
    bomb = CODECS[codec](bytes(1 << 26))
    content, source = read(bomb)
    assert len(content) < 1 << 26
    assert "more than 1000 times its size" in (source.problem or "")


@pytest.mark.parametrize("line", [b"\n", b"a\n", b"ab c\n"])
@pytest.mark.parametrize("depth", [1, 2])
def test_short_lines_are_not_read_beyond_what_logs_have(
    line: bytes, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "LINES_ASKED", 1 << 10)
    for codec in ("gzip", "bzip2", "xz", "zstd"):
        packed = line * (1 << 18)
        for _ in range(depth):
            packed = CODECS[codec](packed)
        assert len(packed) * decompress.LINES_MAX < 1 << 18
        content, source = read(packed)
        assert content.count(b"\n") < 1 << 18
        assert "20 lines per stored byte" in (source.problem or "")


def test_random_short_lines_are_read_to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompress, "LINES_ASKED", 1 << 10)
    lines = bytes(random.Random(1).choices(b"abcdefghijklmnop\n", k=1 << 16))
    for codec in CODECS.values():
        assert read(codec(lines))[0] == lines


def test_compression_within_compression_is_opened() -> None:
    for outer, inner in product(CODECS.values(), CODECS.values()):
        content, source = read(outer(inner(CONTENT)))
        assert (content, source.problem) == (CONTENT, None)
    packed = gzip.compress(PACKED)
    content, source = read(packed[:-70_000])
    assert CONTENT.startswith(content)
    assert len(content) > 100_000
    assert "truncated gzip" in (source.problem or "")


def test_deep_compression_is_named() -> None:
    deep, _ = read(gzip.compress(gzip.compress(gzip.compress(PACKED))))
    assert "gzip within compression" in (not_text(deep[:5000]) or "")
