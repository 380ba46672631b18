"""A file that is read range by range gives the rows of one that is read as a whole, wherever it is cut."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from unittest.mock import patch
from zlib import crc32

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from highwater.pipelines.bronze import reader
from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.passes import ITEMS
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.ranges import ByteRange, RangeCutter, StartCutter
from highwater.pipelines.bronze.rows import FileChangedError, FileSpan, rows
from highwater.pipelines.bronze.wrappers.recognise import layout_named
from tests.examples import examples
from tests.reading import log_records, profiled
from tests.unit.bronze.test_reader import KAFKA, LINE, MIB, TRACE, contents, cut, layouts, limits
from tests.unit.bronze.test_wrapped import step_of
from tests.unit.bronze.wrapping import IN_PIECES, WRAPPINGS

CRLF = (LINE + TRACE).replace(b"\n", b"\r\n")
LATER = LINE.replace(b"15:39", b"15:40")
RANGE_BYTES = 200
sizes = st.integers(1, 500)
lines = st.lists(st.sampled_from([LINE, LATER, TRACE, CRLF, b"\n", b"\0\xff\n", b"x" * 300 + b"\n"]), max_size=20)


def ranges_of(content: bytes, layout: Layout | None, range_bytes: int, block: int) -> tuple[ByteRange, ...]:
    cutter = StartCutter(layout, range_bytes)
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
            for record in log_records(cut(content[start:end], block), layout, limit, start, line_no)
        ]
        assert read == list(log_records([content], layout, limit))


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


# ------------------------------------------------------------------------ wrapped

STREAM_IDS = {
    "cri": (b" stdout ", b" stderr "),
    "docker": (b'"stdout"', b'"stderr"', b'"3"', b'"4"'),
    "journal-json": (b'"7a1"', b'"8b2"', b'"9c3"', b'"0d4"'),
    "rsyslog-file": (b"[812]", b"[813]", b"[814]", b"[815]"),
    "timestamps": (b"",),
}
logged = st.one_of(
    st.sampled_from([LINE[:-1], LATER[:-1], *TRACE.splitlines(), b"", b"\r", b"\0"]),
    st.integers(1, 400).map(lambda size: b"x" * size),
)
#: Which stream a line is of, the line, and in how many pieces it is written.
written = st.lists(st.tuples(st.integers(0, 3), logged, st.integers(1, 3)), min_size=1, max_size=40)


def wrapped_lines(name: str, parts: list[tuple[int, bytes, int]], rnd: Random) -> Iterator[bytes]:
    """Lines in a wrapper, of several streams: pieces of a line may have others between them."""
    marks, queues = STREAM_IDS[name], defaultdict(list)
    for number, line, count in parts:
        mark = marks[number % len(marks)]
        size = len(line) // count + 1 if name in IN_PIECES and line.isascii() else len(line) + 1
        pieces = cut(line, size) or [b""]
        queues[mark] += [out.replace(marks[0], mark, 1) + b"\n" for out in WRAPPINGS[name](pieces)]
    while queues:
        mark = rnd.choice(sorted(queues))
        yield queues[mark].pop(0)
        if not queues[mark]:
            del queues[mark]
        if rnd.random() < 0.05:
            yield b"-- Boot 7d --\n"


@examples(600)
@given(
    st.sampled_from(sorted(STREAM_IDS)),
    written,
    st.randoms(use_true_random=False),
    st.integers(0, 300),
    limits,
    sizes,
    st.integers(1, 700),
    st.tuples(st.integers(1, 3), st.sampled_from([0, 300, 2000, MIB])),
)
def test_the_records_of_all_ranges_are_those_of_the_wrapped_file(
    name: str,
    parts: list[tuple[int, bytes, int]],
    rnd: Random,
    lost: int,
    limit: int,
    range_bytes: int,
    block: int,
    bounds: tuple[int, int],
) -> None:
    """Whatever streams are under way, wherever it is cut, and though the file ends in the middle of a line."""
    content = b"".join(wrapped_lines(name, parts, rnd))
    content = content[: len(content) - lost]
    layout = layout_named(f"{step_of(name)} => {KAFKA.name}")
    cutter = RangeCutter(range_bytes)
    with patch.multiple(reader, STREAMS_MAX=bounds[0], SILENT_BYTES=bounds[1], START_BYTES_MAX=0):
        whole = list(log_records(cutter.tap(cut(content, block)), layout, limit, cutter=cutter))
        ranges = cutter.ranges()
        event(f"ranges: {min(len(ranges), 4)}")
        read = [
            record
            for start, line_no, end, checksum in ranges
            if checksum == crc32(content[start:end])
            for record in log_records(cut(content[start:end], block), layout, limit, start, line_no)
        ]
        assert whole == list(log_records([content], layout, limit))
    if ranges:
        assert (ranges[0].start, ranges[-1].end) == (0, len(content))
        assert all(before.end == after.start < after.end for before, after in pairwise(ranges))
        assert all(part.end - part.start >= range_bytes for part in ranges[:-1])
        assert sorted(read) == sorted(whole)


def cri(*lines: bytes, stream: bytes = b"stdout") -> bytes:
    return b"".join(b"2026-11-20T15:39:28.132Z %b F %b\n" % (stream, line) for line in lines)


def wrapped_ranges(content: bytes, range_bytes: int) -> list[tuple[int, int]]:
    cutter = RangeCutter(range_bytes)
    for _ in log_records(cutter.tap([content]), layout_named(f"{step_of('cri')} => {KAFKA.name}"), MIB, cutter=cutter):
        pass
    return [(part.start, part.line_no) for part in cutter.ranges()]


def test_a_wrapped_file_is_cut_where_no_stream_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one, trace = cri(LINE[:-1]), cri(*TRACE.splitlines())
    assert wrapped_ranges(one + trace + one, 1) == [(0, 1), (len(one + trace), 2 + trace.count(b"\n"))]
    other = cri(LINE[:-1], stream=b"stderr")
    goes_on = cri(b"\tat a.b(C.java:1)", stream=b"stderr")
    # The other stream's record goes on up to the last line but one.
    assert wrapped_ranges(other + one * 3 + goes_on + one, 1) == [(0, 1), (len(other + one * 3 + goes_on), 6)]
    text = cri(b"the rest of a line", stream=b"stderr")
    # Whether that one goes on the end of the file tells.
    assert wrapped_ranges(text + one * 5, 1) == [(0, 1), (len(text), 2)]
    assert wrapped_ranges(text + one * 5 + text, 1) == []
    # It was silent for so long that what comes is another record.
    monkeypatch.setattr(reader, "SILENT_BYTES", 2 * len(one))
    assert len(wrapped_ranges(text + one * 5 + text, 1)) > 3


def test_a_piece_of_a_line_is_in_the_range_of_the_line() -> None:
    first = b"2026-11-20T15:39:28.132Z stdout P " + LINE[:30] + b"\n"
    content = cri(LINE[:-1]) + first + cri(LINE[30:-1]) + cri(LINE[:-1])
    assert wrapped_ranges(content, 1) == [
        (0, 1),
        (content.index(first), 2),
        (content.rindex(cri(LINE[:-1])), 4),
    ]


# ------------------------------------------------------------------------ files


def made(path: Path, content: bytes, range_bytes: int = RANGE_BYTES, known: bytes = b"") -> Profile:
    marks = []
    if known:
        path.write_bytes(known)
        (before,) = profiled(str(path), "UTC", MIB)
        marks = [(before.content_bytes, before.content_id)]
    path.write_bytes(content)
    (made,) = profiled(str(path), "UTC", MIB, marks, range_bytes)
    found = ITEMS.thaw(ITEMS.freeze(made, ()), ())
    assert isinstance(found, Profile)
    return found


def span(found: Profile) -> FileSpan:
    return FileSpan(found, "c", 1)


def stored(readings: list[FileSpan]) -> list[dict]:
    """Return the rows of readings by their place: lines of a frame come before the record that they belong to."""
    stored = [row for reading in readings for batch in rows([reading], "UTC", MIB) for row in batch.to_pylist()]
    return sorted(stored, key=lambda row: row["byte_offset"])


@examples(150)
@given(lines, st.binary(max_size=60), sizes, st.integers(0, 4000))
def test_rows_of_ranges_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], end: bytes, range_bytes: int, known_bytes: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "server.log"
    content = LINE + b"".join(parts) + end
    found = made(path, content, range_bytes, content[:known_bytes])
    whole = span(found)
    split = whole.in_ranges()
    assert sum(reading.stored_bytes for reading in split) == whole.stored_bytes
    assert stored(split) == stored([whole])


def test_what_a_file_has_grown_by_is_left_for_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    found = made(path, LINE * 10 + LATER[:-20])
    split = span(found).in_ranges()
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
    first, *_, last = span(found).in_ranges()
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


def test_rows_of_ranges_of_a_wrapped_file_are_those_of_the_file(tmp_path: Path) -> None:
    content = (cri(LINE[:-1], *TRACE.splitlines()) + cri(LATER[:-1], stream=b"stderr")) * 20
    known = content[: len(content) // 3]
    found = made(tmp_path / "cri.log", content, RANGE_BYTES, known)
    whole = span(found)
    split = whole.in_ranges()
    assert (found.layout, found.start_offset > 0) == (f"{step_of('cri')} => {KAFKA.name}", True)
    assert len(split) > 5
    assert sum(reading.stored_bytes for reading in split) == whole.stored_bytes
    assert sorted(map(repr, stored(split))) == sorted(map(repr, stored([whole])))


def test_what_cannot_be_entered_in_its_middle_is_read_as_a_whole(tmp_path: Path) -> None:
    assert made(tmp_path / "server.log", LINE * 10).ranges
    assert made(tmp_path / "server.log.gz", gzip.compress(LINE * 10)).ranges == ()
    assert made(tmp_path / "server.log", LINE).ranges == ()
