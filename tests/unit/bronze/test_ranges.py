"""A file that is read range by range gives the rows of one that is read as a whole, wherever it is cut."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bronze.contents import from_json, to_json
from pipelines.bronze.layout import Layout
from pipelines.bronze.profile import Profile, profile
from pipelines.bronze.ranges import ByteRange, RangeCutter
from pipelines.bronze.reader import records
from pipelines.bronze.rows import FileChangedError, FileSpan, rows
from tests.examples import examples
from tests.unit.bronze.test_reader import KAFKA, LINE, MIB, TRACE, contents, cut, layouts, limits

CRLF = (LINE + TRACE).replace(b"\n", b"\r\n")
LATER = LINE.replace(b"15:39", b"15:40")
RANGE_BYTES = 200
sizes = st.integers(1, 500)
lines = st.lists(st.sampled_from([LINE, LATER, TRACE, CRLF, b"\n", b"\0\xff\n", b"x" * 300 + b"\n"]), max_size=20)


def ranges_of(content: bytes, layout: Layout | None, range_bytes: int, block: int) -> tuple[ByteRange, ...]:
    cutter = RangeCutter(layout, range_bytes)
    assert b"".join(cutter.tap(cut(content, block))) == content
    return cutter.ranges()


@examples(400)
@given(contents, layouts, limits, sizes, st.integers(1, 700))
def test_the_records_of_all_ranges_are_those_of_the_file(
    content: bytes, layout: Layout | None, limit: int, range_bytes: int, block: int
) -> None:
    ranges = ranges_of(content, layout, range_bytes, block)
    if ranges:
        assert (ranges[0].start, ranges[-1].end) == (0, len(content))
        assert all(before.end == after.start < after.end for before, after in pairwise(ranges))
        assert all(part.end - part.start >= range_bytes for part in ranges[:-1])
        read = [
            record
            for start, line_no, end, _ in ranges
            for record in records(cut(content[start:end], block), layout, limit, start, line_no)
        ]
        assert read == list(records([content], layout, limit))


def test_a_range_ends_at_the_first_record_behind_its_length() -> None:
    content = LINE + TRACE + LINE + LINE
    second, third = len(LINE + TRACE), len(LINE + TRACE + LINE)
    assert [part[:3] for part in ranges_of(content, KAFKA, len(LINE) + 1, 64 * MIB)] == [
        (0, 1, second),
        (second, 4, len(content)),
    ]
    assert [part[:3] for part in ranges_of(content, KAFKA, 1, 64 * MIB)] == [
        (0, 1, second),
        (second, 4, third),
        (third, 5, len(content)),
    ]
    assert ranges_of(content, KAFKA, len(content), 64 * MIB) == ()
    assert ranges_of(b"", KAFKA, 1, 1) == ()


def test_a_line_of_many_ranges_stays_in_one() -> None:
    content = LINE + LINE[:-1] + b"x" * (5 * MIB) + b"\n" + TRACE + LINE
    parts = ranges_of(content, KAFKA, MIB, MIB)
    assert [(part.start, part.line_no) for part in parts] == [(0, 1), (content.rindex(LINE), 5)]


# ------------------------------------------------------------------------ files


def made(path: Path, content: bytes, range_bytes: int = RANGE_BYTES, known: bytes = b"") -> Profile:
    marks = []
    if known:
        path.write_bytes(known)
        before = profile(str(path), "UTC", MIB)
        marks = [(before.content_bytes, before.content_id)]
    path.write_bytes(content)
    found = from_json(to_json(profile(str(path), "UTC", MIB, marks, range_bytes)))
    assert isinstance(found, Profile)
    return found


def span(found: Profile) -> FileSpan:
    places = (found.content_bytes, found.start_offset, found.start_line)
    return FileSpan(found.path, found.content_id, *places, found.layout, found.kind, "c", 1, flips=found.flips)


def stored(readings: list[FileSpan]) -> list[dict]:
    return [row for reading in readings for batch in rows(reading, "UTC", MIB) for row in batch.to_pylist()]


@examples(150)
@given(lines, st.binary(max_size=60), sizes, st.integers(0, 4000))
def test_rows_of_ranges_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], end: bytes, range_bytes: int, known_bytes: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "server.log"
    content = LINE + b"".join(parts) + end
    found = made(path, content, range_bytes, content[:known_bytes])
    whole = span(found)
    split = whole.in_ranges(found.ranges)
    assert sum(reading.stored_bytes for reading in split) == whole.stored_bytes
    assert stored(split) == stored([whole])


def test_what_a_file_has_grown_by_is_left_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    found = made(path, LINE * 10 + LATER[:-20])
    split = span(found).in_ranges(found.ranges)
    before = stored(split)
    with path.open("ab") as file:
        file.write(LATER[-20:] + LATER)
    assert len(split) > 2
    assert stored(split) == before
    assert before[-1]["problem"] == "half_line"


def test_a_range_that_is_another_one_by_now_fails_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    content = LINE * 10
    found = made(path, content)
    first, *_, last = span(found).in_ranges(found.ranges)
    path.write_bytes(content[:-1] + b"!")
    assert stored([first])
    with pytest.raises(FileChangedError, match="server"):
        stored([last])
    path.write_bytes(content[:-1])
    with pytest.raises(FileChangedError, match="server"):
        stored([last])
    path.unlink()
    with pytest.raises(FileChangedError, match="server"):
        stored([first])


def test_what_cannot_be_entered_in_its_middle_is_read_as_a_whole(tmp_path: Path) -> None:
    wrapped = b"".join(b"2026-11-20T15:39:28.132Z stdout F " + line + b"\n" for line in LINE.splitlines() * 10)
    assert made(tmp_path / "server.log", LINE * 10).ranges
    assert made(tmp_path / "cri.log", wrapped).layout == "cri/kafka"
    assert made(tmp_path / "cri.log", wrapped).ranges == ()
    assert made(tmp_path / "server.log.gz", gzip.compress(LINE * 10)).ranges == ()
    assert made(tmp_path / "server.log", LINE).ranges == ()
