"""How a file is read: frame, container, layout, order, sources, and records taken apart; lines without their frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from itertools import chain, islice
from typing import TypeVar
from zoneinfo import ZoneInfo

from highwater.pipelines.base.values import instant
from highwater.pipelines.bronze.encodings import is_binary
from highwater.pipelines.bronze.identity import kind_of_logger, named_broker
from highwater.pipelines.bronze.layout import Layout, RecordHead
from highwater.pipelines.bronze.profile import profile, shown
from highwater.pipelines.bronze.reader import sourced_records
from highwater.pipelines.bronze.source import BOM, SAMPLE_BYTES, Readable, Source
from highwater.pipelines.bronze.streams import label
from highwater.pipelines.bronze.wrappers.order import IN_WORDS
from highwater.pipelines.bronze.wrappers.recognise import layout_named, readings_of, recognise
from highwater.pipelines.bronze.wrappers.remarks import looked_into
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.record import UNPARSED
from highwater.pipelines.kafka.raw_record import CONTINUATION, NO_LAYOUT, RawRecord
from highwater.pipelines.storage.store import open_file

#: Records that are looked at, from the beginning of the file.
RECORDS_MAX = 20_000
_SHOWN = 3
_SHOWN_CHARS = 160
_Item = TypeVar("_Item")


def plain_lines(file: Readable, record_bytes_max: int) -> Iterator[str]:
    """Yield the lines of a log as Kafka writes them: frames of containers and shippers are removed.

    Lines of an unknown layout are yielded as they are.

    Args:
        file: opened for reading bytes, at its start.
        record_bytes_max: as in `pipelines.bronze.reader.sourced_records`.

    Raises:
        ValueError: the content is not text.
    """
    blocks = Source(file, block_bytes=SAMPLE_BYTES).blocks()
    first = next(blocks, b"").removeprefix(BOM)
    if is_binary(first):
        raise ValueError("binary data")
    blocks = chain((first,), blocks)
    layout = recognise(first.replace(b"\r\n", b"\n").split(b"\n")).layout
    is_wrapped = layout is not None and (layout.unwrap is not None or layout.is_structured)
    parse = layout.parser(UTC) if layout is not None and is_wrapped else None
    for _, record in sourced_records(blocks, layout if is_wrapped else None, record_bytes_max):
        head = parse(record.text) if parse is not None else None
        text = record.text if head is None else _as_logged(head)
        yield from text.decode(errors="replace").removesuffix("\r").split("\n")


def _as_logged(head: RecordHead) -> bytes:
    """Return a record in Kafka's own layout."""
    message, separator, rest = head.message.partition(b"\n")
    time = instant(head.time_us).isoformat(" ", "milliseconds")[:23]
    logger = f" ({head.logger})" if head.logger else ""
    return f"[{time}] {head.level or ''} ".encode() + message + logger.encode() + separator + rest


def explain_file(path: str, zone: str, record_bytes_max: int, log_format: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name, value) that describe how a file is read.

    Args:
        zone: IANA zone for times without one.
        record_bytes_max: as in `pipelines.bronze.reader.sourced_records`.
        log_format: layout given by the user. Empty to infer it.

    Raises:
        OSError: the file cannot be read.
        ValueError: the log format is invalid.
    """
    with open_file(path) as file:
        found = profile(path, file, zone, record_bytes_max, log_format=log_format)
        if changed := found[0].changed_layout:
            file.seek(0)
            found = profile(path, file, zone, record_bytes_max, layout_name=changed)
    yield "file", path
    first = found[0]
    if problem := next((item.problem for item in found if item.problem), None):
        yield "problem", problem
    if first.layout is None:
        return
    layout = layout_named(first.layout)
    yield from described(layout.name)
    with open_file(path) as file:
        yield from _of_records(sourced_records(Source(file).blocks(), layout, record_bytes_max), layout, zone)


def described(name: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a layout's name: containers, frames, layout, order."""
    for order, steps, layout in readings_of(name):
        for step in steps:
            kind, _, rest = step.partition(" ")
            yield ("frame" if kind == "frame" else "container"), rest if kind == "frame" else step
        yield "layout", layout
        yield "order", IN_WORDS.get(order, "its records are in the order of their times")


def _of_records(
    found: Iterator[tuple[bytes | None, RawRecord]], layout: Layout, zone: str
) -> Iterator[tuple[str, str]]:
    parse = layout.parser(ZoneInfo(zone))
    records: Counter[str] = Counter()
    brokers: dict[str, Counter[int]] = {}
    read: list[tuple[RawRecord, RecordHead]] = []
    unread: list[tuple[RawRecord, str]] = []
    count = foreign = 0
    for source, record in islice(found, RECORDS_MAX):
        head = parse(record.text) if source is not None and record.problem != CONTINUATION else None
        problem = record.problem if head is not None else looked_into(record.problem or NO_LAYOUT, record.text)
        name = label(source) if source else ""
        if problem is not None and problem.startswith("foreign"):
            foreign += 1
            continue
        count += 1
        records[name] += 1
        if (broker := named_broker(record.text)) is not None:
            brokers.setdefault(name, Counter())[broker] += 1
        why = _why(head, problem, record)
        if why is None and head is not None:
            read.append((record, head))
        else:
            unread.append((record, why or ""))
    for name, number in records.most_common(50):
        of_broker = brokers.get(name)
        said = f"; its lines name broker {of_broker.most_common(1)[0][0]}" if of_broker else "; no line names a broker"
        yield "source", f"{name or 'the file itself'}: {number} records{said}"
    share = len(read) / count if count else 0.0
    cut = f", the first {RECORDS_MAX}" if count + foreign == RECORDS_MAX else ""
    yield "read", f"{share:.1%} of {count} records{cut}; {foreign} lines of other programs"
    for record, head in _spread(read):
        parts = f"{instant(head.time_us).isoformat()}, {head.level}, {head.logger}, {shown(head.message, _SHOWN_CHARS)}"
        yield f"line {record.line_no}", parts
    for record, why in _spread(unread):
        yield f"line {record.line_no} not read", f"{why}: {shown(record.text, _SHOWN_CHARS)}"


def _why(head: RecordHead | None, problem: str | None, record: RawRecord) -> str | None:
    """Return why a record is not read. None if it is read."""
    if head is None:
        return f"{problem or NO_LAYOUT}: it does not begin as the layout does"
    kind = kind_of_logger(head.logger or "")
    about = (head.time_us, head.level, head.logger, problem, head.message.decode(errors="replace"))
    parsed = parse_record(kind, *about)
    return parsed.reason if parsed.outcome == UNPARSED else None


def _spread(items: list[_Item]) -> list[_Item]:
    return items[:: max(1, len(items) // _SHOWN)][:_SHOWN]
