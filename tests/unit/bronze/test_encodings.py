"""Encodings: the rows of a file are those of its UTF-8 rendering, whatever it was written in."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.encodings import convert, decode_text, encoding_of
from highwater.pipelines.bronze.rows import FileSpan, rows
from highwater.pipelines.bronze.source import Source
from tests.unit.bronze.test_profile import SERVER, made

WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
#: Line ends as in the file, beside LF of its UTF-8 rendering.
LINE_ENDS = ("\n", "\r\n", "\r")
TEXT = SERVER.decode() + "[2026-11-20 15:33:29,101] INFO Größe der ISR \U0001f600 (kafka.server.X)\n"


def content_of(data: bytes, block_bytes: int = 1 << 20) -> bytes:
    return b"".join(Source(io.BytesIO(data), block_bytes=block_bytes).blocks())


def stored(path: Path) -> list[tuple[object, ...]]:
    found = made(path, path.read_bytes())
    spans = [FileSpan(found, "c", 1, part=part) for part in found.ranges] or [FileSpan(found, "c", 1)]
    names = ("line_no", "time", "level", "logger", "line_count", "problem", "message")
    return [tuple(row[name] for name in names) for batch in rows(spans, "UTC", 1 << 20) for row in batch.to_pylist()]


@pytest.mark.parametrize("line_end", LINE_ENDS)
@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", *WIDE])
def test_every_encoding_and_line_end_gives_the_rows_of_the_plain_file(
    tmp_path: Path, encoding: str, mark: bool, line_end: str
) -> None:
    (tmp_path / "plain.log").write_text(TEXT, encoding="utf-8", newline="")
    written = ("\ufeff" if mark else "") + TEXT.replace("\n", line_end)
    (tmp_path / "server.log").write_bytes(written.encode(encoding))
    assert stored(tmp_path / "server.log") == stored(tmp_path / "plain.log")
    (tmp_path / "server.log.gz").write_bytes(gzip.compress(written.encode(encoding)))
    assert stored(tmp_path / "server.log.gz") == stored(tmp_path / "plain.log")


@given(st.text(), st.sampled_from(WIDE), st.booleans(), st.integers(1, 7))
def test_conversion_is_that_of_the_whole_text(text: str, encoding: str, mark: bool, block_bytes: int) -> None:
    text = "[2026-11-20 15:33:29,101] INFO " * (1 + len(text)) + text.replace("\ufeff", "")
    data = ("\ufeff" * mark + text).encode(encoding, errors="replace")
    blocks = (data[at : at + block_bytes] for at in range(0, len(data), block_bytes))
    name, content = convert(blocks)
    assert (name, b"".join(content)) == (encoding, text.encode(errors="replace"))


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_half_a_code_unit_is_a_half_line(tmp_path: Path, encoding: str, cut: int) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(TEXT.encode(encoding)[:-cut])
    assert stored(path)[-1][5] == "half_line"
    whole = content_of(TEXT.encode(encoding))
    assert whole.startswith(content_of(TEXT.encode(encoding)[:-cut]))


def test_nuls_of_a_power_loss_are_no_encoding() -> None:
    for nuls in (1, 7, 512, 4096, 60_000):
        for before in (b"", SERVER):
            assert encoding_of(before + bytes(nuls) + SERVER) is None
    # They may come within UTF-16.
    wide = codecs.BOM_UTF16_LE + SERVER.decode().encode("utf-16-le")
    assert content_of(wide + bytes(512) + wide[2:]) == SERVER + bytes(256) + SERVER


def test_binary_data_is_no_encoding() -> None:
    numbers = b"".join(number.to_bytes(4, "big") for number in range(0, 9000, 7))
    assert encoding_of(numbers) is None
    assert encoding_of(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9) is None
    assert encoding_of(hashlib.sha512(b"x").digest() * 100) is None


def test_hashes_are_of_the_stored_bytes_and_of_the_content() -> None:
    data = TEXT.encode("utf-16")
    source = Source(io.BytesIO(data))
    assert b"".join(source.blocks()) == TEXT.encode()
    assert source.stored_sha256 == hashlib.sha256(data).hexdigest()
    assert source.content_id == hashlib.sha256(TEXT.encode()).hexdigest()[:32]
    assert (source.stored_bytes, source.content_bytes) == (len(data), len(TEXT.encode()))
    assert source.encoding == "utf-16-le"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"gr\xf6\xdfe", "größe"),
        ("größe".encode(), "größe"),
        (b"\x80 5 \xa7 \x81", "€ 5 § \x81"),
        ("größe".encode() + b" \xf6", "größe \ufffd"),
    ],
)
def test_bytes_beyond_utf_8_are_windows_1252(data: bytes, text: str) -> None:
    assert decode_text(data) == text


def test_plain_text_pays_little() -> None:
    data = SERVER * 20_000

    def seconds(read: object) -> float:
        begun = time.process_time()
        for _ in range(20):
            read(iter([data[:65536]]))  # type: ignore[operator]
        return time.process_time() - begun

    assert seconds(convert) < 0.05
