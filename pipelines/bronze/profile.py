"""The first pass over a file: its type, layout and writer, before any line is stored.

Pure except for reading the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from zoneinfo import ZoneInfo

from highwater.pipelines.bronze.broken_lines import cut_lines, wrapped_lines
from highwater.pipelines.bronze.changes import Changes
from highwater.pipelines.bronze.excerpts import has_gaps
from highwater.pipelines.bronze.identity import OTHER, Hints, kind_of
from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.layouts.infer import sees_kafka
from highwater.pipelines.bronze.lives import FileLife
from highwater.pipelines.bronze.ranges import ByteRange, RangeCutter, StartCutter
from highwater.pipelines.bronze.reader import sourced_records
from highwater.pipelines.bronze.record_watch import RecordWatch, Sources
from highwater.pipelines.bronze.repeated_hour import Passage
from highwater.pipelines.bronze.source import BOM, SAMPLE_BYTES, Readable, Source, not_text
from highwater.pipelines.bronze.streams import OTHER_LINES, id_of, path_of
from highwater.pipelines.bronze.wrappers.recognise import Recognised, layout_named, recognise
from highwater.pipelines.bronze.wrappers.sections import SECTIONS
from highwater.pipelines.messages.exceptions import cause_of, most_specific
from highwater.pipelines.storage.store import open_file

_SHOWN_CHARS = 100
OF_CLIENT = (
    "left out: a client of Kafka wrote it (Connect, MirrorMaker, Streams, REST proxy, Schema Registry, ksqlDB or a "
    "tool), and no broker a line of it"
)
EXPECTED_LINES = (
    "expected lines such as [2026-11-20 15:33:21,101] INFO ... (kafka.server.KafkaServer), in any layout that has the "
    "date, the level and Kafka's own messages, bare or as containers and others wrap them (docs/inputs.md); see how it "
    "was read with highwater explain --file FILE, and name its layout with --log-format PATTERN"
)


@dataclass(frozen=True)
class Profile:
    """Result of sampling a file."""

    path: str  #: as found
    sha256: str  #: of the file as stored
    content_id: str  #: of its decompressed content, the ``file_id`` of bronze
    size_bytes: int  #: as stored
    content_bytes: int  #: decompressed
    kind: str  #: kind of file, by name and content
    layout: str | None  #: name of its layout; None if none is known
    line_count: int  #: physical lines
    record_count: int  #: log records
    first_us: int | None  #: time of the first record, microseconds since the epoch
    last_us: int | None  #: time of the last record; of either, the first and the last that are no strays
    problem: str | None  #: what is wrong and what to do
    hints: Hints  #: what its lines say about their writer
    #: first byte that no known file has, of a log that was read while it was written; start of a line
    start_offset: int = 0
    start_line: int = 1  #: number of that line
    readable: bool = True  #: it is text, and has at least one line of a broker, by its loggers
    #: the file that it is a member of, or in which its lines are mixed with others', if it is one
    bundle: str | None = None
    kafka_records: int = 0  #: about how many of the records Kafka's loggers wrote, by those that were asked
    passages: tuple[Passage, ...] = ()  #: what its lines show about an hour that its zone repeats
    #: bytes from which on a repeated time is of the second pass, then of the first again, and so on
    flips: tuple[int, ...] = ()
    ranges: tuple[ByteRange, ...] = ()  #: parts that can be read by themselves; none of a file that is read as a whole
    #: how fine its times are: whole seconds, milliseconds or finer; None where no record has a time
    resolution_us: int | None = None
    lives: tuple[FileLife, ...] = ()  #: brokers that wrote it one after the other, if several did
    strays: tuple[int, ...] = ()  #: bytes at which records begin whose times are far from those around them
    foreign: str | None = None  #: type of a file that is not a broker's log (`pipelines.bronze.file_types`)
    encoding: str | None = None  #: what its content was converted from; None if it is UTF-8
    is_numbered: bool = False  #: its lines have the numbers of lines of another file, with gaps
    changed_layout: str | None = None  #: layout by which the file has to be read again; None if all of it is read
    source: str = ""  #: source of these lines, in a file that mixes several sources; empty: all lines


def stored_sha256(path: str) -> str:
    """Return SHA-256 of a file as stored, in hex."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_files(paths: Iterable[str], known: frozenset[str]) -> dict[str, str]:
    """Return by path the hash of files whose content is known. Unreadable files are not."""
    hashes = {}
    for path in paths if known else ():
        with suppress(OSError):
            if (sha := stored_sha256(path)) in known:
                hashes[path] = sha
    return hashes


def profile(
    path: str,
    file: Readable,
    zone: str,
    record_bytes_max: int,
    marks: Sequence[tuple[int, str]] = (),
    range_bytes: int | None = None,
    log_format: str = "",
    layout_name: str = "",
) -> list[Profile]:
    """Sample a file. Return one profile, or one per source if it mixes several (`pipelines.bronze.streams`).

    Args:
        file: the opened file or bundle member.
        zone: IANA zone for times without one.
        record_bytes_max: as in `pipelines.bronze.reader.sourced_records`.
        marks: (length in bytes, content id) of known files. This file may be a longer version of one.
        range_bytes: length of the ranges into which the file is split, if possible. None to keep it whole.
        log_format: layout given by the user. Empty to infer it.
        layout_name: `Profile.changed_layout` of an earlier pass. Empty to infer the layout.

    Raises:
        OSError: the file cannot be read.
        ValueError: the log format is invalid.
    """
    source = Source(file, marks)
    blocks = source.blocks()
    sample = b""
    first: list[bytes] = []
    for block in blocks:
        first.append(block)
        sample += block[: SAMPLE_BYTES - len(sample)]
        if len(sample) >= SAMPLE_BYTES:
            break
    lines = sample.removeprefix(BOM).replace(b"\r\n", b"\n").split(b"\n")
    # The sample's last line is cut, unless it is the file's last.
    layout, missing, _ = (
        Recognised(layout_named(layout_name))
        if layout_name
        else recognise(lines[:-1] if len(lines) > 2 else lines, log_format)
    )
    why = not_text(sample) if layout is None else None
    changes = Changes(layout)
    sources = Sources(layout, ZoneInfo(zone))
    cutter = None
    if range_bytes is not None and source.is_as_stored:
        is_wrapped = layout is not None and layout.unwrap is not None
        cutter = RangeCutter(range_bytes) if is_wrapped else StartCutter(layout, range_bytes)
    if layout is not None and (layout.order or layout.pieces.startswith(SECTIONS)):
        cutter = None
    if why is None:
        content = changes.tap(chain(first, blocks))
        tapped = sources.tap(content if cutter is None else cutter.tap(content))
        last: bytes | None = None
        watch: RecordWatch | None = None
        for named, record in sourced_records(tapped, layout, record_bytes_max, cutter=cutter):
            if watch is None or named != last:
                last, watch = named, sources.of(named)
            watch.count(record)
            if record.line_count > 1 or record.problem is not None or changes.sees_all:
                changes.see(record)
    else:
        for _ in blocks:
            pass
    is_whole = why is not None or (layout is not None and layout.order != "")
    offset, line = (0, 1) if is_whole else source.grown_line
    changed = None if layout_name or why is not None else changes.layout(log_format)
    parts = sources.parts()
    made = []
    for name, part in parts.items():
        part.end()
        kafka_records = part.kafka_records() if name != OTHER_LINES else 0
        part_path = path_of(path, name) if name else path
        problem = _problem(source, why, layout, kafka_records, lines, missing) if name != OTHER_LINES else None
        profiled = Profile(
            path=part_path,
            sha256=source.stored_sha256,
            content_id=id_of(source.content_id, name) if name else source.content_id,
            size_bytes=source.stored_bytes,
            content_bytes=source.content_bytes,
            kind=OTHER if why or name == OTHER_LINES else kind_of(part_path, part.hints.kinds),
            layout=layout.name if layout else None,
            line_count=part.lines,
            record_count=part.records,
            first_us=part.first_us,
            last_us=part.last_us,
            problem=problem,
            hints=part.hints if name != OTHER_LINES else Hints(),
            start_offset=offset,
            start_line=line,
            readable=why is None and part.records > 0,
            bundle=path if name else None,
            kafka_records=kafka_records,
            passages=tuple(part.passages()),
            ranges=() if cutter is None or name else cutter.ranges(),
            resolution_us=part.resolution.resolution_us,
            lives=part.lives.lives(),
            strays=tuple(part.strays),
            source=name,
            encoding=source.encoding,
            is_numbered=has_gaps(lines),
            changed_layout=None if changed is None else changed.name,
        )
        if part.hints.is_clients:
            profiled = replace(
                profiled, line_count=0, record_count=0, kafka_records=0, readable=False, problem=OF_CLIENT
            )
        made.append(profiled)
    # Lines of a source that is left out are stored with lines of other programs.
    left_out = [parts[item.source] for item in made if item.source and item.problem == OF_CLIENT]
    return [
        replace(
            item,
            line_count=item.line_count + sum(part.lines for part in left_out),
            record_count=item.record_count + sum(part.records for part in left_out),
        )
        if item.source == OTHER_LINES
        else item
        for item in made
    ]


def _problem(
    source: Source,
    why: str | None,
    layout: Layout | None,
    kafka_records: int,
    lines: Sequence[bytes],
    missing: str | None,
) -> str | None:
    if source.content_bytes == 0:
        return source.problem or "empty file"
    if why or source.problem:
        return why or source.problem
    if (cut := cut_lines(lines)) is not None:
        return cut
    if layout is not None and kafka_records:
        return None
    if (wrapped := wrapped_lines(lines)) is not None and sees_kafka(lines):
        return f"no record of it is whole: {wrapped}"
    what = "no known log layout" if layout is None else f"nothing of it is Kafka's (layout {layout.name})"
    return f"{what}: it begins with {_shown(lines)}{_known_error(lines)}; {missing or EXPECTED_LINES}"


def _known_error(lines: Sequence[bytes]) -> str:
    """Return the error that ended a program, with meaning and remedy. Empty if the lines show no known one."""
    for line in lines:
        thrown = most_specific(line.decode(errors="replace")) if b"Error" in line or b"Exception" in line else None
        cause = None if thrown is None else cause_of(thrown)
        if thrown is not None and cause is not None and cause[1].texts:
            return f", and shows {thrown}. {cause[1].meaning} {cause[1].action}".rstrip(".")
    return ""


def _shown(lines: Sequence[bytes]) -> str:
    """Return the first line with any text, safe to print on a terminal."""
    return f'"{shown(next((line for line in lines if line.strip()), b"").strip(), _SHOWN_CHARS)}"'


def shown(text: bytes, chars: int) -> str:
    """Return the beginning of a text's first line, safe to print on a terminal."""
    line = text[: 4 * chars].partition(b"\n")[0].decode(errors="backslashreplace")
    plain = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in line)
    return plain[:chars] + ("…" if len(plain) > chars else "")
