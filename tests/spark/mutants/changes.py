"""Changes to the records of a log: drop, repeat, swap, alter. A change that finds nothing to change is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from tests.spark.mutants.slices import Record, Records

Change = Callable[[Records], Records]
Body = dict[str, Any]
_COMPLETED = "Completed request:"


@dataclass(frozen=True)
class Where:
    """Which records."""

    text: str  #: pattern to find in the message
    broker: int | None = None  #: whose
    #: since, until: time of day
    since: str = ""
    until: str = "~"
    nth: int | None = None  #: which one, in the order of their times; negative from the end; None for all

    def find(self, records: Records) -> list[Record]:
        pattern = re.compile(self.text)
        found = [
            record
            for record in records
            if self.broker in (None, record.broker_id)
            and self.since <= _clock(record.time_us) < self.until
            and pattern.search(record.message)
        ]
        found.sort(key=lambda record: (record.time_us, record.broker_id, record.byte_offset))
        if not found:
            raise LookupError(f"no record has {self.text!r}")
        return found if self.nth is None else [found[self.nth]]


def _clock(time_us: int) -> str:
    seconds, micros = divmod(time_us % 86_400_000_000, 1_000_000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros // 1000:03d}"


def _place(record: Record) -> tuple[str, int]:
    return record.file, record.byte_offset


def _replaced(records: Records, where: Where, new: Callable[[Record], tuple[Record, ...]]) -> Records:
    found = {_place(record) for record in where.find(records)}
    made: list[Record] = []
    for record in records:
        made += new(record) if _place(record) in found else (record,)
    if tuple(made) == records:
        raise LookupError(f"nothing changed where {where.text!r}")
    return tuple(made)


def drop(where: Where) -> Change:
    """Without these records."""
    return lambda records: _replaced(records, where, lambda record: ())


def repeat(where: Where, after_ms: int = 0) -> Change:
    """Each of these records twice, one right after the other."""

    def twice(record: Record) -> tuple[Record, ...]:
        again = record._replace(byte_offset=record.byte_offset + 1, time_us=record.time_us + after_ms * 1000)
        return record, again

    return lambda records: _replaced(records, where, twice)


def alter(where: Where, pattern: str, new: str) -> Change:
    """Replace what a pattern finds first in each of these messages."""

    def altered(record: Record) -> tuple[Record, ...]:
        message = re.sub(pattern, new, record.message, count=1)
        if message == record.message:
            raise LookupError(f"{pattern!r} changes nothing in {record.message[:200]}")
        return (record._replace(message=message),)

    return lambda records: _replaced(records, where, altered)


def edit(where: Where, change: Callable[[Body], None]) -> Change:
    """Change the JSON of requests."""
    return lambda records: _replaced(records, where, lambda record: (_edited(record, change),))


def also(where: Where, pattern: str, new: str, *, after_ms: int = 0, broker: int | None = None) -> Change:
    """Add an altered copy of these records behind each, in the log of another broker if one is given."""

    def more(record: Record) -> tuple[Record, ...]:
        message = re.sub(pattern, new, record.message)
        copy = record._replace(
            message=message, byte_offset=record.byte_offset + 1, time_us=record.time_us + after_ms * 1000
        )
        if broker is not None:
            file = record.file.replace(f"broker-{record.broker_id}/", f"broker-{broker}/")
            copy = copy._replace(broker_id=broker, file=file)
        return record, copy

    return lambda records: _replaced(records, where, more)


def shift(where: Where, ms: int) -> Change:
    """Other times for these records, at their places."""
    return lambda records: _replaced(
        records, where, lambda record: (record._replace(time_us=record.time_us + ms * 1000),)
    )


def swap(where: Where) -> Change:
    """Neighbouring ones of these records of a file in each other's place, with their times."""

    def swapped(records: Records) -> Records:
        by_file: dict[str, list[Record]] = {}
        for record in where.find(records):
            by_file.setdefault(record.file, []).append(record)
        new: dict[tuple[str, int], Record] = {}
        for found in by_file.values():
            for one, other in zip(found[::2], found[1::2], strict=False):
                new[_place(one)] = other._replace(byte_offset=one.byte_offset, line_no=one.line_no)
                new[_place(other)] = one._replace(byte_offset=other.byte_offset, line_no=other.line_no)
        return tuple(new.get(_place(record), record) for record in records)

    return swapped


def each(*changes: Change) -> Change:
    """One change after the other."""

    def changed(records: Records) -> Records:
        for change in changes:
            records = change(records)
        return records

    return changed


def same(records: Records) -> Records:
    """No change."""
    return records


def _edited(record: Record, change: Callable[[Body], None]) -> Record:
    body = orjson.loads(record.message.removeprefix(_COMPLETED))
    before = orjson.dumps(body)
    change(body)
    after = orjson.dumps(body)
    return record if before == after else record._replace(message=_COMPLETED + after.decode())


def answers(body: Body, topic: str, partition: int) -> list[Body]:
    """Parts of a fetch's response that are about a partition; the topic by name or id."""
    return [
        part
        for answer in body["response"].get("responses", [])
        if topic in (answer.get("topic"), answer.get("topicId"))
        for part in answer.get("partitionResponses") or answer.get("partitions") or []
        if part.get("partition", part.get("partitionIndex")) == partition
    ]


def asked(body: Body, topic: str, partition: int) -> list[Body]:
    """Parts of a fetch that are about a partition; the topic by name or id."""
    return [
        part
        for wanted in body["request"]["topics"]
        if topic in (wanted.get("topic"), wanted.get("topicId"))
        for part in wanted["partitions"]
        if part["partition"] == partition
    ]


def later(where: Where, ms: int) -> Change:
    """One request that waited longer: its line comes later in its file."""

    def wait(body: Body) -> None:
        body["totalTimeMs"] += ms
        body["remoteTimeMs"] += ms

    def delayed(records: Records) -> Records:
        (found,) = where.find(records)
        time_us = found.time_us + ms * 1000
        before = max(one.byte_offset for one in records if one.file == found.file and one.time_us <= time_us)
        moved = _edited(found, wait)._replace(time_us=time_us, byte_offset=before + 1)
        return tuple(moved if record is found else record for record in records)

    return delayed
