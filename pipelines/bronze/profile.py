"""One pass over one file: what it is, before any of its lines is stored. Pure but for reading the file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import chain
from zoneinfo import ZoneInfo

from pipelines.bronze.causes import cut_lines, wrapped_lines
from pipelines.bronze.identity import NEEDLES, OTHER, Hints, kind_of
from pipelines.bronze.layout import Clock, Layout
from pipelines.bronze.layouts.infer import sees_kafka
from pipelines.bronze.lives import Life, LifeWatch
from pipelines.bronze.ranges import ByteRange, RangeCutter, StartCutter
from pipelines.bronze.raw_record import RawRecord
from pipelines.bronze.reader import records
from pipelines.bronze.repeated_hour import Passage, PassageWatch
from pipelines.bronze.resolution import ResolutionWatch
from pipelines.bronze.source import BLOCK_BYTES, BOM, SAMPLE_BYTES, Readable, Source, not_text
from pipelines.bronze.strays import StrayWatch, is_possible
from pipelines.bronze.streams import OTHER_LINES, id_of, label, path_of
from pipelines.bronze.wrapped import sourced_records
from pipelines.bronze.wrappers.recognise import recognise
from pipelines.storage.store import open_file

#: Records per block that are asked who wrote them. The first block is asked in full: it has the start of the broker.
ASKED_PER_BLOCK = 20
NEEDLE_BYTES_MAX = max(map(len, NEEDLES))
_SHOWN_CHARS = 100
#: Beginnings of the names of Kafka's own loggers; ZooKeeper's are in brokers' logs, and in those of its servers.
_KAFKAS = ("kafka.", "org.apache.kafka.", "state.change.")
OF_CLIENT = (
    "left out: a client of Kafka wrote it (Connect, MirrorMaker, Streams, REST proxy, Schema Registry, ksqlDB or a "
    "tool), and no broker a line of it"
)
EXPECTED_LINES = (
    "expected lines such as [2026-11-20 15:33:21,101] INFO ... (kafka.server.KafkaServer), in any layout that has the "
    "date, the level and Kafka's own messages, bare or as containers and others wrap them (docs/inputs.md)"
)


@dataclass(frozen=True)
class Profile:
    """What a file is.

    Attributes:
        path: as found.
        sha256: of the file as stored.
        content_id: of its decompressed content, the ``file_id`` of bronze.
        size_bytes: as stored.
        content_bytes: decompressed.
        compressed: stored compressed.
        kind: kind of file, by name and content.
        layout: name of its layout; None if none is known.
        line_count: physical lines.
        record_count: log records.
        first_us: time of the first record, microseconds since the epoch.
        last_us: time of the last record; of either, the first and the last that are no strays.
        problem: what is wrong and what to do.
        hints: what its lines say about their writer.
        grown_from: content id of a known file that is the beginning of this one: a log that was read while written.
        start_offset: first byte that no known file has; start of a line.
        start_line: number of that line.
        readable: it is text, and has at least one line of a broker's, as far as its loggers tell.
        bundle: the file that it is a member of, or in which its lines are mixed with others', if it is one.
        kafka_records: about how many of the records Kafka's loggers wrote, by those that were asked.
        passages: what its lines tell of an hour that its zone repeats.
        flips: bytes from which on a repeated time is of the second pass, then of the first again, and so on.
        ranges: parts that can be read by themselves; none of a file that is read as a whole.
        lives: brokers that wrote it one after the other, if several did.
        resolution_us: how fine its times are: whole seconds, milliseconds or finer; None where no record has a time.
        strays: bytes at which records begin whose times are far from those around them.
        source: whose lines these are of a file in which those of several are mixed; empty: all of them.
    """

    path: str
    sha256: str
    content_id: str
    size_bytes: int
    content_bytes: int
    compressed: bool
    kind: str
    layout: str | None
    line_count: int
    record_count: int
    first_us: int | None
    last_us: int | None
    problem: str | None
    hints: Hints
    grown_from: str | None = None
    start_offset: int = 0
    start_line: int = 1
    readable: bool = True
    bundle: str | None = None
    kafka_records: int = 0
    passages: tuple[Passage, ...] = ()
    flips: tuple[int, ...] = ()
    ranges: tuple[ByteRange, ...] = ()
    resolution_us: int | None = None
    lives: tuple[Life, ...] = ()
    strays: tuple[int, ...] = ()
    source: str = ""


def stored_sha256(path: str) -> str:
    """SHA-256 of a file as stored, in hex."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_files(paths: Iterable[str], known: frozenset[str]) -> dict[str, str]:
    """Those of the files whose bytes are known, with their hash; one that cannot be read is not known."""
    found = {}
    for path in paths if known else ():
        with suppress(OSError):
            if (sha := stored_sha256(path)) in known:
                found[path] = sha
    return found


def profile(
    path: str,
    zone: str,
    record_bytes_max: int,
    marks: Sequence[tuple[int, str]] = (),
    range_bytes: int | None = None,
) -> list[Profile]:
    """Profile a file: one profile, or several if lines of several sources are mixed in it (`pipelines.bronze.streams`).

    Args:
        path: a readable file.
        zone: IANA zone of times that carry none.
        record_bytes_max: as in `pipelines.bronze.reader.records`.
        marks: lengths in bytes and content ids of known files that this one may be a longer version of.
        range_bytes: length of the ranges that the file is cut into, if it can be; None: it is not.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        return profile_stream(path, file, zone, record_bytes_max, marks, range_bytes)


def profile_stream(
    path: str,
    file: Readable,
    zone: str,
    record_bytes_max: int,
    marks: Sequence[tuple[int, str]] = (),
    range_bytes: int | None = None,
) -> list[Profile]:
    """`profile` of an open file."""
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
    layout, missing = recognise(lines[:-1] if len(lines) > 2 else lines)
    why = not_text(sample) if layout is None else None
    counted = _Sources(layout, ZoneInfo(zone))
    cutter = None
    if range_bytes is not None and not source.compressed:
        is_wrapped = layout is not None and layout.unwrap is not None
        cutter = RangeCutter(range_bytes) if is_wrapped else StartCutter(layout, range_bytes)
    if why is None:
        content = chain(first, blocks)
        tapped = counted.tap(content if cutter is None else cutter.tap(content))
        if layout is not None and layout.unwrap is not None:
            for named, record in sourced_records(tapped, layout, record_bytes_max, cutter=cutter):
                counted.of(named).count(record)
        else:
            plain = counted.of(b"")
            for record in records(tapped, layout, record_bytes_max):
                plain.count(record)
    else:
        for _ in blocks:
            pass
    grown = source.grown_from is not None and why is None
    offset, line = source.grown_line if grown else (0, 1)
    parts = counted.parts()
    made = []
    for name, part in parts.items():
        part.end()
        kafka_records = part.kafka_records() if name != OTHER_LINES else 0
        part_path = path_of(path, name) if name else path
        problem = _problem(source, why, layout, kafka_records, lines, missing) if name != OTHER_LINES else None
        one = Profile(
            path=part_path,
            sha256=source.stored_sha256,
            content_id=id_of(source.content_id, name) if name else source.content_id,
            size_bytes=source.stored_bytes,
            content_bytes=source.content_bytes,
            compressed=source.compressed,
            kind=OTHER if why or name == OTHER_LINES else kind_of(part_path, part.hints.kinds),
            layout=layout.name if layout else None,
            line_count=part.lines,
            record_count=part.records,
            first_us=part.first_us,
            last_us=part.last_us,
            problem=problem,
            hints=part.hints if name != OTHER_LINES else Hints(),
            grown_from=source.grown_from[1] if source.grown_from and grown else None,
            start_offset=offset,
            start_line=line,
            readable=why is None and part.lines > 0,
            bundle=path if name else None,
            kafka_records=kafka_records,
            passages=tuple(part.passages()),
            ranges=() if cutter is None or name else cutter.ranges(),
            resolution_us=part.resolution.resolution_us,
            lives=part.lives.lives(),
            strays=tuple(part.strays),
            source=name,
        )
        if part.hints.is_clients:
            one = replace(one, line_count=0, record_count=0, kafka_records=0, readable=False, problem=OF_CLIENT)
        made.append(one)
    return made


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
    return f"{what}: it begins with {_shown(lines)}; {missing or EXPECTED_LINES}"


def _shown(lines: Sequence[bytes]) -> str:
    """The first line that says anything, as a terminal may show it."""
    first = next((line for line in lines if line.strip()), b"")
    text = first[: _SHOWN_CHARS * 4].decode(errors="backslashreplace").strip()
    plain = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    return f'"{plain[:_SHOWN_CHARS]}{"…" if len(plain) > _SHOWN_CHARS else ""}"'


class _Sources:
    """Counts the records of each source that is mixed in a file; of most files that is one."""

    def __init__(self, layout: Layout | None, zone: tzinfo) -> None:
        self._layout = layout
        self._zone = zone
        self._of: dict[bytes | None, _Counted] = {}
        self._block = b""

    def tap(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Hands the blocks on, and says to whoever counts that there is the next one."""
        for block in blocks:
            self._block = block
            for counted in self._of.values():
                counted.begin(block)
            yield block

    def of(self, source: bytes | None) -> _Counted:
        """Who counts the records of a source; None is what stands in no wrapper."""
        counted = self._of.get(source)
        if counted is None:
            counted = self._of[source] = _Counted(Hints(), self._layout, self._zone)
            counted.begin(self._block)
        return counted

    def parts(self) -> dict[str, _Counted]:
        """By name, the sources that wrote anything of Kafka's, and all else; under an empty name, if it is one file."""
        named = {source: counted for source, counted in self._of.items() if source is not None}
        of_kafka = {source: counted for source, counted in named.items() if counted.is_kafka}
        if len(named) > 1 and of_kafka:
            parts: dict[str, _Counted] = {}
            for source, counted in of_kafka.items():
                name = label(source)
                parts[name] = self._together([parts[name], counted]) if name in parts else counted
            rest = [counted for source, counted in self._of.items() if source not in of_kafka]
            if rest:
                parts[OTHER_LINES] = self._together(rest)
            return parts
        return {"": self._together(self._of.values())}

    def _together(self, several: Iterable[_Counted]) -> _Counted:
        """The one that counted most, with the lines of the others."""
        largest, *others = sorted(several, key=lambda counted: -counted.records) or [self.of(b"")]
        for counted in others:
            largest.lines += counted.lines
            largest.records += counted.records
        return largest


class _Counted:
    """Counts records, and asks some of them who wrote them: all at the start of the file, and around rare texts."""

    def __init__(self, hints: Hints, layout: Layout | None, zone: tzinfo) -> None:
        self.hints = hints
        self.lines = 0
        self.records = 0
        self.is_kafka = False
        self.first_us: int | None = None
        self.resolution = ResolutionWatch()
        self.lives = LifeWatch()
        self.last_us: int | None = None
        self.strays: list[int] = []
        self._strays = StrayWatch()
        self._good = 0
        self._clock = Clock(zone)
        self._parse = layout.make(self._clock) if layout else None
        self._last: RawRecord | None = None
        #: The last one that is known to be no stray.
        self._settled: RawRecord | None = None
        self._to_ask: float = 0
        self._watch = PassageWatch(zone)
        self._seen_offset = -1
        #: Texts of lines whose time the zone has twice; until the first time is read, of none.
        self._hours: list[bytes] = []
        self._is_near = self._was_near = False
        self._offset = 0
        self._tail = b""
        self._was_here = True

    def begin(self, block: bytes) -> None:
        """Decide how many of the records that end in the next block are asked."""
        here = self._offset < BLOCK_BYTES or (not self._requests() and _tells(self._tail, block, NEEDLES))
        near = bool(self._hours) and _tells(self._tail, block, self._hours)
        # A record may end, and so come out, one block after the one that it begins in.
        self._to_ask = float("inf") if here or self._was_here else ASKED_PER_BLOCK
        self._is_near, self._was_near = near or self._was_near, near
        self._was_here, self._tail = here, block[-NEEDLE_BYTES_MAX:]
        self._offset += len(block)

    def _requests(self) -> bool:
        """Request logs say nothing but addresses, and those all the time."""
        return self.hints.kinds["kafka-request"] > sum(self.hints.kinds.values()) / 2

    def count(self, record: RawRecord) -> None:
        self.lines += record.line_count
        self.records += 1
        if record.problem is not None or self._parse is None:
            return
        self._good += 1
        is_asked = self._to_ask > 0
        if is_asked or self._is_near or self._strays.asks(record.text):
            self._to_ask -= is_asked
            head = self._parse(record.text)
            if head is not None:
                if is_asked:
                    self.lives.see(record.byte_offset, head.message, self.hints.observe(head))
                    self.is_kafka = self.is_kafka or (head.logger or "").startswith(_KAFKAS)
                    self.resolution.see(head.time_us)
                if is_possible(head.time_us):
                    self._look(record, head.time_us, is_asked)
        elif not self._strays.is_waiting:
            self._settled = record
        self._last = record

    def _look(self, record: RawRecord, time_us: int, is_asked: bool) -> None:
        """A record whose time was read."""
        if self._strays.asks(record.text):
            self._strays.see(record.byte_offset, time_us, record.text)
        first_us = self._strays.first_us or self.first_us or time_us
        if first_us != self.first_us:
            self.first_us = first_us
            self._hours = self._watch.hours(first_us)
        if is_asked or self._is_near:
            if not is_asked and self._last is not None and (before_us := self._time_us(self._last)) is not None:
                self._see(self._last, before_us)
            self._see(record, time_us)
        if not self._strays.is_waiting:
            self._settled = record

    def _see(self, record: RawRecord, time_us: int) -> None:
        if record.byte_offset == self._seen_offset:
            return
        self._seen_offset = record.byte_offset
        is_repeated = False
        if self._parse is not None and self._watch.is_repeated(time_us):
            # A time that states its offset is one instant.
            self._clock.set_pass(is_second=True)
            head = self._parse(record.text)
            self._clock.set_pass(is_second=False)
            is_repeated = head is not None and head.time_us != time_us
        self._watch.see(record.byte_offset, time_us, is_repeated)

    def end(self) -> None:
        """There are no more records."""
        last_us = self._strays.end()
        self.strays = self._strays.offsets
        if self._strays.first_us is not None:
            self.first_us = self._strays.first_us
        self.last_us = last_us if last_us is not None or self._settled is None else self._time_us(self._settled)

    def passages(self) -> list[Passage]:
        """What was seen of repeated hours; whether the file ends there its last record tells."""
        last_us = self._time_us(self._last) if self._last is not None and self._hours else None
        if self._last is not None and last_us is not None:
            self._see(self._last, last_us)
        return self._watch.passages()

    def kafka_records(self) -> int:
        """Records of Kafka's loggers, one at least if any that was asked is; all if none could be asked."""
        asked = sum(self.hints.kinds.values())
        if not asked:
            return self.records if self._parse is not None else 0
        kafka = asked - self.hints.kinds[OTHER]
        return max(1, self._good * kafka // asked) if kafka else 0

    def _time_us(self, record: RawRecord) -> int | None:
        """Time of a whole record, if it can be one."""
        head = self._parse(record.text) if self._parse else None
        return head.time_us if head and is_possible(head.time_us) else None


def _tells(tail: bytes, block: bytes, needles: Sequence[bytes]) -> bool:
    seam = tail + block[:NEEDLE_BYTES_MAX]
    return any(needle in block or needle in seam for needle in needles)
