"""The reader against a slow, obvious one; and the damage that files come with."""

from __future__ import annotations

import gzip
import io
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highwater.pipelines.bronze.layout import START_BYTES_MAX, Layout
from highwater.pipelines.bronze.layouts import patterns
from highwater.pipelines.bronze.layouts.structured import layout_of_name
from highwater.pipelines.bronze.source import Source
from highwater.pipelines.kafka.raw_record import RawRecord
from tests.examples import examples
from tests.reading import log_records

KAFKA = layout_of_name(patterns.KAFKA)
JSON = layout_of_name('{"time":"%d","level":"%p","logger":"%c","message":"%m"}')
LINE = b"[2026-11-20 15:39:28,132] INFO Cluster ID = WCK8FkK8RbKFhwge5X0aNA (kafka.server.KafkaServer)\n"
TRACE = b"java.io.IOException: x\n\tat a.b(C.java:1)\n"
MIB = 1 << 20

pieces = st.lists(
    st.one_of(
        st.sampled_from([LINE, TRACE, b"\n", b"\r\n", LINE[:-1] + b"\r\n", b"\xef\xbb\xbf", b"\0", b'{"a":1}\n']),
        st.binary(max_size=40),
        st.integers(0, len(LINE)).map(lambda cut: LINE[:cut]),
        st.integers(1, 400).map(lambda size: b"x" * size),
    ),
    max_size=12,
)
contents = pieces.map(b"".join)
layouts = st.sampled_from([KAFKA, JSON, layout_of_name("%d %p %m (%c) [%t]"), None])
limits = st.sampled_from([START_BYTES_MAX, START_BYTES_MAX + 44, 400, MIB])


def cut(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


def slow(content: bytes, layout: Layout | None, limit: int) -> list[RawRecord]:
    """The whole file in memory, line by line."""
    groups: list[list[bytes]] = []
    for line in _lines(content):
        starts = layout is None or layout.start.match(line) is not None
        if starts or not groups:
            groups.append([line])
        else:
            groups[-1].append(line)
    found, offset, line_no = [], 0, 1
    for lines in groups:
        parts: list[tuple[list[bytes], bool]] = []
        while sum(map(len, lines)) > limit:
            fit = 0
            while sum(map(len, lines[: fit + 1])) <= limit:
                fit += 1
            fit = max(fit, 1)
            parts.append((lines[:fit], True))
            lines = lines[fit:]
        if lines:
            parts.append((lines, False))
        for part, oversized in parts:
            raw = b"".join(part)
            text = (raw[:-1] if raw.endswith(b"\n") else raw)[:limit]
            text = text.removeprefix(b"\xef\xbb\xbf") if offset == 0 else text
            if b"\r" in text:
                text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
            problem = None
            if oversized:
                problem = "oversized"
            elif b"\0" in text:
                problem = "binary"
            elif not raw.endswith(b"\n"):
                problem = "half_line"
            elif layout is None:
                problem = "layout"
            elif not layout.start.match(text):
                problem = "continuation"
            found.append(RawRecord(offset, len(raw), line_no, len(part), text, problem))
            offset += len(raw)
            line_no += len(part)
    return found


def _lines(content: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


@examples(400)
@given(contents, layouts, limits, st.integers(1, 700))
def test_agrees_with_a_slow_obvious_reader_however_the_blocks_are_cut(
    content: bytes, layout: Layout | None, limit: int, block: int
) -> None:
    assert list(log_records(cut(content, block), layout, limit)) == slow(content, layout, limit)


@examples(200)
@given(contents, layouts, limits, st.integers(1, 700))
def test_records_cover_the_file_exactly(content: bytes, layout: Layout | None, limit: int, block: int) -> None:
    found = list(log_records(cut(content, block), layout, limit))
    assert sum(record.size_bytes for record in found) == len(content)
    assert sum(record.line_count for record in found) == len(_lines(content))
    offset, line = 0, 1
    for record in found:
        assert (record.byte_offset, record.line_no) == (offset, line)
        assert len(record.text) <= limit
        offset += record.size_bytes
        line += record.line_count


@settings(deadline=None)
@given(contents, st.integers(0, 11))
def test_splitting_a_file_between_lines_keeps_the_text(content: bytes, at: int) -> None:
    lines = _lines(content)
    first, second = b"".join(lines[:at]), b"".join(lines[at:])

    def texts(data: bytes, offset: int = 0, line: int = 1) -> bytes:
        return b"\n".join(record.text for record in log_records([data], KAFKA, MIB, offset, line))

    whole = texts(content)
    parts = [part for part, data in ((texts(first), first), (texts(second, len(first), at + 1), second)) if data]
    assert b"\n".join(parts) == whole


@settings(max_examples=50, deadline=None)
@given(contents, st.integers(1, 700))
def test_gzip_reads_like_plain(content: bytes, block: int) -> None:
    plain, packed = Source(io.BytesIO(content), block_bytes=block), Source(io.BytesIO(gzip.compress(content)))
    if content[:2] == b"\x1f\x8b":
        return
    assert list(log_records(plain.blocks(), KAFKA, MIB)) == list(log_records(packed.blocks(), KAFKA, MIB))
    assert plain.content_id == packed.content_id
    assert (plain.content_bytes, packed.problem) == (len(content), None)


def test_a_stack_trace_belongs_to_its_line() -> None:
    first, second = log_records([LINE + TRACE + LINE], KAFKA, MIB)
    assert (first.line_count, second.line_no, second.byte_offset) == (3, 4, len(LINE + TRACE))
    assert first.text == (LINE + TRACE)[:-1]


def test_a_rotated_file_may_begin_amid_a_stack_trace() -> None:
    first, second = log_records([TRACE + LINE], KAFKA, MIB)
    assert (first.problem, first.line_count, second.problem) == ("continuation", 2, None)


def test_only_a_last_line_without_line_end_is_cut() -> None:
    assert [record.problem for record in log_records([LINE + LINE], KAFKA, MIB)] == [None, None]
    assert [record.problem for record in log_records([LINE + LINE[:-1]], KAFKA, MIB)] == [None, "half_line"]


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    (record,) = log_records([b"\xef\xbb\xbf" + LINE[:-1] + b"\r\n\tat x\r\n"], KAFKA, MIB)
    assert record.text == LINE + b"\tat x"
    assert record.problem is None


def test_a_line_of_50_mb_is_cut_but_counted() -> None:
    def blocks():
        yield LINE + LINE[:-1]
        for _ in range(50):
            yield b"x" * MIB
        yield b"\n" + LINE

    held = list(log_records(blocks(), KAFKA, MIB))
    assert [record.problem for record in held] == [None, "oversized", None]
    assert held[1].size_bytes == len(LINE) + 50 * MIB
    assert len(held[1].text) == MIB
    assert held[2].line_no == 3


def test_a_dump_longer_than_the_limit_loses_nothing() -> None:
    content = LINE + TRACE * 100
    held = list(log_records([content], KAFKA, 512))
    assert b"\n".join(record.text for record in held) + b"\n" == content
    assert {record.problem for record in held[1:]} <= {"continuation", "oversized"}


@pytest.mark.parametrize("filling", [b"\n", b"\r\n"])
@pytest.mark.parametrize("layout", [KAFKA, None])
@pytest.mark.parametrize("block_bytes", [1 << 15, 40_001])
def test_a_file_of_empty_lines_is_a_few_binary_records(filling: bytes, layout: Layout | None, block_bytes: int) -> None:
    """The time is that of its records: a compressed file of a few KB can have a million of empty lines."""
    content = LINE + filling * MIB + LINE
    found = list(log_records(cut(content, block_bytes), layout, MIB))
    empty = [record for record in found if record.problem == "binary"]
    assert sum(record.size_bytes for record in empty) > 0.8 * len(filling) * MIB
    assert len(empty) < 100
    assert sum(record.size_bytes for record in found) == len(content)
    for before, record in pairwise(found):
        assert record.byte_offset == before.byte_offset + before.size_bytes
    assert found[-1].line_no == content.count(b"\n")
    assert (found[0].text + b"\n", found[-1].text + b"\n") == (LINE, LINE)


@pytest.mark.parametrize("filling", [b"\n", b"\r", b" ", b"\t", b"\xff", b"\0"])
@pytest.mark.parametrize("behind", [b"", b"line\n"])
def test_a_filled_tail_is_binary_and_the_line_before_it_is_whole(filling: bytes, behind: bytes) -> None:
    line = b"[2026-11-20 15:39:28,132] INFO x (a.b)\n"
    found = list(log_records([line * 2 + filling * 5_000 + b"\n" + behind], KAFKA, MIB))
    assert [record.problem for record in found[:1]] == [None]
    assert "binary" in {record.problem for record in found}
    if filling != b"\0":
        assert [record.text + b"\n" for record in found if record.problem is None] == [line] * 2
