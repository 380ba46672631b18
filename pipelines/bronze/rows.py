"""Rows of ``bronze.log_lines`` of one file, in Arrow batches of bounded size. Pure but for reading the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import pyarrow as pa

from highwater.pipelines.bronze.encodings import decode_text
from highwater.pipelines.bronze.identity import own_broker
from highwater.pipelines.bronze.layout import Clock, Layout, RecordHead
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.ranges import ByteRange, RangeReader
from highwater.pipelines.bronze.reader import sourced_records
from highwater.pipelines.bronze.source import Readable, Source
from highwater.pipelines.bronze.streams import MARK, OTHER_LINES, id_of, label
from highwater.pipelines.bronze.wrappers.recognise import layout_named
from highwater.pipelines.bronze.wrappers.remarks import OTHER_STREAM, looked_into
from highwater.pipelines.kafka.raw_record import CONTINUATION, NO_LAYOUT, RawRecord
from highwater.pipelines.kafka.strays import TIME_OUT_OF_RANGE, is_possible
from highwater.pipelines.storage.store import open_file
from highwater.schemas.bronze import LOG_LINES

BATCH_BYTES = 8 << 20
BATCH_ROWS = 1 << 16
#: Text by which the driver recognises this failure. It receives an exception of a worker only as text.
CHANGED = "changed while it was read"


@dataclass(frozen=True)
class FileSpan:
    """A part of a file to read, with cluster and broker for its lines."""

    log: Profile  #: the file; one that has grown since it was profiled is read up to where it was
    cluster_id: str  #: cluster it belongs to
    broker_id: int | None  #: broker that wrote it
    #: several brokers wrote it: one after the other (`Profile.lives`), or a record is of the one that it names
    is_shared: bool = False
    part: ByteRange | None = None  #: the range of the file that is read; None: all of it

    @property
    def file(self) -> str:
        """Return the path of the file or bundle member that holds the lines."""
        path, source = self.log.path, self.log.source
        return path.removesuffix(f"{MARK}{source}") if source else path

    @property
    def start(self) -> tuple[int, int]:
        """Return (first byte to store, its line number). Earlier bytes of a grown file are already stored."""
        if self.part is None or self.part.start < self.log.start_offset:
            return self.log.start_offset, self.log.start_line
        return self.part.start, self.part.line_no

    @property
    def stored_bytes(self) -> int:
        """Return how many bytes of the content become rows."""
        end = self.log.content_bytes if self.part is None else self.part.end
        return end - self.start[0]

    def broker_of(self, offset: int, head: RecordHead | None) -> int | None:
        """Return the broker that wrote the record at an offset, in a file of several brokers."""
        if lives := self.log.lives:
            return lives[bisect_right(lives, offset, key=lambda life: life.offset) - 1].broker_id
        return own_broker(head) if head is not None else None

    def in_ranges(self) -> list[FileSpan]:
        """Return one part per range of the file, without ranges that have nothing to store."""
        parts = [part for part in self.log.ranges if part.end > self.log.start_offset]
        return [replace(self, part=part) for part in parts] or [self]


class FileChangedError(Exception):
    """Raised if a file changed after it was sampled: it was rotated or overwritten."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{CHANGED}: {path}")


def is_changed(reading: FileSpan, error: str) -> bool:
    """Return True if a worker's exception text is a `FileChangedError` about this file."""
    return any(
        re.search(rf"{re.escape(f'{CHANGED}: {path}')}\s*$", error, re.MULTILINE)
        for path in (reading.log.path, reading.file)
    )


def rows(readings: Sequence[FileSpan], zone: str, record_bytes_max: int) -> Iterator[pa.RecordBatch]:
    """Yield rows of ``bronze.log_lines`` for one file, a range of it, or several sources mixed in it.

    Raises:
        FileChangedError: the content is not the sampled one. Raised at the end.
        OSError: the file cannot be read.
    """
    first = readings[0]
    path = first.file
    try:
        file = open_file(path)
    except FileNotFoundError:
        raise FileChangedError(path) from None
    with file:
        if first.part is None:
            yield from stream_rows(readings, file, zone, record_bytes_max)
            return
        content = RangeReader(file, first.part)
        yield from _rows(readings, content.blocks(), first.part.start, zone, record_bytes_max)
        if not content.is_same:
            raise FileChangedError(path)


def stream_rows(
    readings: Sequence[FileSpan], file: Readable, zone: str, record_bytes_max: int
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows as `rows`, from an open file."""
    source = Source(file)
    first = readings[0]
    yield from _rows(readings, source.blocks(first.log.content_bytes), 0, zone, record_bytes_max)
    content_id = id_of(source.content_id, first.log.source) if first.log.source else source.content_id
    if content_id != first.log.content_id:
        raise FileChangedError(first.log.path)


def _rows(
    readings: Sequence[FileSpan], blocks: Iterator[bytes], begun: int, zone: str, record_bytes_max: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows from blocks of content.

    Args:
        blocks: content of the file, starting at byte ``begun``.
    """
    first = readings[0]
    layout = layout_named(first.log.layout) if first.log.layout else None
    batches = {reading.log.source: _Batch(reading, layout, Clock(ZoneInfo(zone))) for reading in readings}
    place = first.start
    stored = _from(blocks, place[0] - begun)
    others = OTHER_LINES if first.log.source else ""
    labels: dict[bytes | None, str] = {}
    for source, record in sourced_records(stored, layout, record_bytes_max, *place):
        name = labels.get(source)
        if name is None:
            named = "" if source is None else label(source)
            name = labels[source] = named if named in batches else others
        if (batch := batches.get(name)) is not None:
            batch.add(record)
            if batch.is_full:
                yield batch.flush()
    yield from (batch.flush() for batch in batches.values() if batch.offsets)


def _from(blocks: Iterator[bytes], offset: int) -> Iterator[bytes]:
    """Yield the content from ``offset`` on. The bytes before it are read, but only for the hash."""
    for block in blocks:
        if offset >= len(block):
            offset -= len(block)
        else:
            yield block[offset:] if offset else block
            offset = 0


class _Batch:
    """Columns of a batch of rows under construction."""

    def __init__(self, reading: FileSpan, layout: Layout | None, clock: Clock) -> None:
        self._reading = reading
        self._parse = layout.make(clock) if layout else None
        self._is_other = reading.log.source == OTHER_LINES
        self._clock = clock
        self._flips = reading.log.flips
        self._strays = frozenset(reading.log.strays)
        self._clear()

    @property
    def is_full(self) -> bool:
        """Return True if the batch is large enough to be yielded."""
        return self.bytes >= BATCH_BYTES or len(self.offsets) >= BATCH_ROWS

    def _clear(self) -> None:
        self.bytes = 0
        self.offsets: list[int] = []
        self._line_nos: list[int] = []
        self._brokers: list[int | None] | None = [] if self._reading.is_shared else None
        self._times: list[int | None] = []
        self._levels: list[str | None] = []
        self._loggers: list[str | None] = []
        self._line_counts: list[int] = []
        self._problems: list[str | None] = []
        self._messages: list[bytes] = []

    def add(self, record: RawRecord) -> None:
        offset, _, line_no, line_count, text, problem = record
        time_us: int | None = None
        level: str | None = None
        logger: str | None = None
        if self._flips:
            self._clock.set_pass(is_second=bisect_right(self._flips, offset) % 2 == 1)
        # Lines of other programs stay as they are: their streams are in no wrapper's name one of a broker.
        is_asked = self._parse is not None and problem != CONTINUATION and not self._is_other
        head = self._parse(text) if self._parse is not None and is_asked else None
        if head is not None and (offset in self._strays or not is_possible(head.time_us)):
            problem = problem or TIME_OUT_OF_RANGE
        elif head is not None:
            time_us, level, logger, text = head
        elif self._parse is not None and self._is_other and problem in (None, CONTINUATION):
            problem = OTHER_STREAM
        elif self._parse is not None:
            problem = looked_into(problem or NO_LAYOUT, text)
        else:
            problem = problem or NO_LAYOUT
        if self._brokers is not None:
            self._brokers.append(self._reading.broker_of(offset, head))
        self.bytes += len(text)
        self.offsets.append(offset)
        self._line_nos.append(line_no)
        self._times.append(time_us)
        self._levels.append(level)
        self._loggers.append(logger)
        self._line_counts.append(line_count)
        self._problems.append(problem)
        self._messages.append(text)

    def flush(self) -> pa.RecordBatch:
        count = len(self.offsets)
        schema = LOG_LINES.arrow_schema
        columns = {
            "file_id": pa.repeat(pa.scalar(self._reading.log.content_id, pa.string()), count),
            "byte_offset": self.offsets,
            "line_no": self._line_nos,
            "cluster_id": pa.repeat(pa.scalar(self._reading.cluster_id, pa.string()), count),
            "broker_id": pa.repeat(pa.scalar(self._reading.broker_id, pa.int32()), count)
            if self._brokers is None
            else self._brokers,
            "kind": pa.repeat(pa.scalar(self._reading.log.kind, pa.string()), count),
            "time": pa.array(self._times, pa.int64()).cast(schema.field("time").type),
            "level": self._levels,
            "logger": self._loggers,
            "line_count": self._line_counts,
            "problem": self._problems,
            "message": _texts(self._messages),
        }
        self._clear()
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column, field.type)
            for field, column in ((field, columns[field.name]) for field in schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _texts(messages: list[bytes]) -> pa.Array:
    """Return messages as strings. The batch is checked for UTF-8 at once, and decoded one by one only if it fails."""
    try:
        return pa.array(messages, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([decode_text(message) for message in messages], pa.string())
