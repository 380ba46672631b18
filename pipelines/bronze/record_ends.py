"""Find where records end in a layout that prints the logger after the message (``%m (%c)``).

A broker prints values that its clients choose: ids of groups, members and clients, names of users. Such a value may
hold line ends, and what follows a line end may look like a record. So a line that starts like a record need not be one.
Ends show more: a record ends with its logger, and has it once.

- A head line that ends with its logger is whole. The lines that follow it are its stack trace.
- A later line that ends with a logger's name may be the rest of a record that begins earlier. It is one only if an
  earlier record can hold a client's value. Then all records from there on are doubtful, and so is the rest.
- A head line without its logger that can hold a client's value is open. A later record with a rest closes it, and
  all records between are its text. If another record between may close it as well, all of them are doubtful.
- If no rest follows an open record, the records that follow it are doubtful. The half line of a process that died is
  no open record if it cannot hold a client's value.

No facts are made of a doubtful record, and it leaves a hole in its log. Logs without forged lines have none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from datetime import UTC
from typing import Final

from highwater.pipelines.bronze.layout import Layout, Parser
from highwater.pipelines.bronze.layouts.loggers import could_log
from highwater.pipelines.grammars.client_values import can_hold_client_value
from highwater.pipelines.kafka.raw_record import BINARY, DOUBTFUL, RawRecord

#: Maximum length of a record that prints client values: strings of Kafka's protocol have at most 32,767 bytes each, and
#: a line prints up to three.
FAR_BYTES: Final = 1 << 17
#: A single line that ends with one of these is taken to end with its logger: as well as these, a client can write one.
LAST_BYTES: Final = b")]"
#: Settings as Kafka prints them: one of them may look like a logger, and is none.
_SETTINGS: Final = re.compile(rb"[^\n]*(?<!\))(?:\n\t[^\n]*)+\n \([^()\n]*\)")


class RecordEnds:
    """Holds records of one stream in order until later ones can no longer change where they end.

    Attributes:
        records: records that are held.
    """

    def __init__(self, layout: Layout | None, text_bytes_max: int) -> None:
        """Create an empty buffer.

        Args:
            layout: layout of the records. None if unknown. A layout without a tail needs no checks.
            text_bytes_max: limit of a record's text in bytes.
        """
        self.records: list[RawRecord] = []
        self._tail = layout.tail if layout else None
        self._parse = layout.parser(UTC) if layout else None
        self._text_bytes_max = text_bytes_max
        #: Offsets of records with no logger or with several, and how many they have.
        self._odd: list[tuple[int, int]] = []
        #: The record behind the last open one, and whether that, or one of those right before it, is of clients.
        self._run: tuple[int, bool] = (-1, False)
        #: Ends of what was searched or doubted already: before rests, and behind open records.
        self._before = self._behind = -1
        #: The last record found that may hold a client's value.
        self._holder = -FAR_BYTES

    def add(self, record: RawRecord) -> None:
        """Add the next record."""
        self.records.append(record)
        if record.problem is None or record.problem == BINARY:
            self.look(record)

    def look(self, record: RawRecord) -> None:
        """Count the loggers of a record in `records`."""
        loggers = 1 if self._tail is None else _loggers(record.text, self._tail)
        if loggers != 1:
            self._odd.append((record.byte_offset, loggers))

    @property
    def is_odd(self) -> bool:
        """Return True if a held record has no logger or several."""
        return bool(self._odd)

    @property
    def is_open(self) -> bool:
        """Return True if a held record has no logger."""
        return any(not loggers for _, loggers in self._odd)

    def release(self) -> list[RawRecord]:
        """Remove and return all held records."""
        released = self.records[:]
        self.records.clear()
        return released

    def take(self, is_last: bool = False) -> list[RawRecord]:
        """Remove and return the records whose end is certain. If `is_last`, no more follow: return all."""
        if self._odd:
            self._settle(is_last)
        count = len(self.records)
        if self._tail is not None and not is_last and count:
            count = self._index(self.records[-1].byte_offset - FAR_BYTES + 1)
        settled = self.records[:count]
        del self.records[:count]
        return settled

    def _index(self, offset: int) -> int:
        return bisect_left(self.records, offset, key=_offset)

    def _settle(self, is_last: bool) -> None:
        opened: list[int] = []
        for offset, loggers in self._odd:
            if loggers:
                self._close(offset, opened)
            else:
                opened.append(offset)
        last = self.records[-1].byte_offset
        count = len(opened) if is_last else bisect_right(opened, last - FAR_BYTES)
        self._odd = [(offset, 0) for offset in opened[count:]]
        for offset in opened[:count]:
            self._leave_open(offset)

    def _close(self, offset: int, opened: list[int]) -> None:
        """Find which earlier record one with several loggers completes: one with no logger, an unknown one, none."""
        first = last = self._index(offset)
        count = len(opened)
        while count and offset - opened[count - 1] < FAR_BYTES:
            if first != last and self.records[first - 1].byte_offset != opened[count - 1]:
                break
            count -= 1
            first = self._index(opened[count])
        parts = self.records[first : last + 1]
        if len(parts) > 1 and self._can_hold_value(parts[0]):
            del opened[count:]
            is_one = {part.problem for part in parts} <= {None, BINARY, DOUBTFUL} and not any(
                self._has_logger(part) and self._can_hold_value(part) for part in parts[1:-1]
            )
            if is_one and sum(len(part.text) + 1 for part in parts) <= self._text_bytes_max:
                self.records[first : last + 1] = [_joined(parts)]
                return
            self._doubt(first, last + 1)
        self._doubt_before(offset)

    def _doubt_before(self, offset: int) -> None:
        """Mark a remaining text as uncertain, with all records from the first one that it may complete."""
        end = self._index(offset)
        near = self._index(max(offset - FAR_BYTES + 1, self._before))
        first = near if self._holder > offset - FAR_BYTES else None
        for index in range(near, end):
            if self._can_hold_value(self.records[index]):
                self._holder = self.records[index].byte_offset
                first = index if first is None else first
        self._before = offset
        if first is not None:
            self._doubt(first, end + 1)

    def _can_hold_value(self, record: RawRecord) -> bool:
        return can_hold_value(self._parse, record.text)

    def _has_logger(self, record: RawRecord) -> bool:
        head = self._parse(record.text) if self._parse is not None else None
        return head is not None and head.logger is not None

    def _leave_open(self, offset: int) -> None:
        """Handle a record without a logger that no later record completes."""
        at = self._index(offset)
        of_clients = self._can_hold_value(self.records[at])
        of_clients |= self._run == (offset, True)
        if at + 1 == len(self.records):
            return  # the file may continue
        following = self.records[at + 1]
        if self._tail is not None and not _loggers(following.text, self._tail):
            self._run = (following.byte_offset, of_clients)
        elif of_clients:
            end = self._index(offset + FAR_BYTES)
            if end > at + 1:
                self._doubt(self._index(max(offset, self._behind)), end)
                self._behind = offset + FAR_BYTES

    def _doubt(self, first: int, end: int) -> None:
        for index in range(first, end):
            if self.records[index].problem is None:
                self.records[index] = self.records[index]._replace(problem=DOUBTFUL)


def can_hold_value(parse: Parser | None, text: bytes) -> bool:
    """Return True if a client's value may begin in a record, which may be incomplete."""
    head = parse(text) if parse is not None else None
    return head is None or can_hold_client_value(head.message.decode(errors="replace"))


def are_plain(before: bytes, after: bytes, starts: re.Pattern[bytes], tail: re.Pattern[bytes]) -> bool:
    """Return True if all records near a position end normally, so that no earlier record affects a later one.

    Args:
        before: up to `FAR_BYTES` before the position, at which a record starts.
        after: up to twice as many bytes after it.
        starts: matches a line end and the start of a record.
        tail: matches a logger at the end of a message.
    """
    content = (before + after).replace(b"\r\n", b"\n")
    begins = [0] if len(before) < FAR_BYTES else []  # start of the file, which has no line end before it
    places = begins + [start.start() + 1 for start in starts.finditer(content)]
    if len(after) < 2 * FAR_BYTES and not content.endswith(b"\n"):
        del places[-1:]  # a half line, which the file ends with
    near = bisect_left(places, len(before) + FAR_BYTES)
    ends = [*places[1:], len(content)]
    records = (content[place : end - 1] for place, end in zip(places[:near], ends, strict=False))
    return all(_loggers(record, tail) == 1 for record in records)


def _loggers(text: bytes, tail: re.Pattern[bytes]) -> int:
    """Return the number of loggers in a record: any name at the end of the first line, logger names in later lines."""
    end = text.find(b"\n")
    if end < 0 and text[-1:] in LAST_BYTES:
        return 1
    head = tail.search(text, 0, end if end >= 0 else len(text))
    names = () if end < 0 else (match[match.lastindex or 0] for match in tail.finditer(text, end))
    number = (head is not None) + sum(could_log(name) for name in names)
    return number if number < 2 or _SETTINGS.fullmatch(text) is None else 1


def _offset(record: RawRecord) -> int:
    return record.byte_offset


def _joined(parts: list[RawRecord]) -> RawRecord:
    problems = [part.problem for part in parts if part.problem is not None]
    return parts[0]._replace(
        size_bytes=sum(part.size_bytes for part in parts),
        line_count=sum(part.line_count for part in parts),
        text=b"\n".join(part.text for part in parts),
        problem=min(problems, key=(DOUBTFUL, BINARY).index, default=None),
    )
