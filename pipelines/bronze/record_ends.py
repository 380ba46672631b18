"""Where records end in a layout whose logger stands at the end of the message (``%m (%c)``).

A broker prints values that its clients choose (ids of groups, members and clients, names of users), and such a value
may hold line ends. What follows one looks like a record if its author wants it to, so a line that starts like a record
need not be one. Ends tell more: a record ends with its logger, and has it once.

- Where one without a logger is followed by others and then by one that has two, it is not over before that: all of it
  is one record, and what looks like records in it is its text.
- One with two loggers and none such before it is the rest of a record that begins elsewhere. All records that stand
  near enough before it are doubtful, and so is it.
- One without a logger that can hold such a value, and no rest behind it: those near enough behind it are doubtful.
  What cannot hold one is the half line of a process that died.

A doubtful record proves nothing: no facts are made of it. Logs of brokers that nobody attacks have none.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import Final

from pipelines.kafka.raw_record import BINARY, DOUBTFUL, RawRecord

#: A record that prints values of clients is no longer: strings of Kafka's protocol have at most 32,767 bytes each, and
#: a line prints up to three.
FAR_BYTES: Final = 1 << 17
#: A single line that ends with one of these is taken to end with its logger: as well as these, a client can write one.
LAST_BYTES: Final = b")]"
#: One of these stands before any value of a client; lines of partitions, replicas, logs and controllers have none.
_OF_CLIENTS: Final = re.compile(
    rb"group|member|transaction|client|consumer|producer|user|principal|request|session|connection|authenti|authoriz"
    rb"|quota|acl|token|credential|config|override|KafkaApi|ControllerApi|admin",
    re.IGNORECASE,
)
_HEAD_BYTES: Final = 300
#: Settings as Kafka prints them: one of them may look like a logger, and is none.
_SETTINGS: Final = re.compile(rb"[^\n]*(?<!\))(?:\n\t[^\n]*)+\n \([^()\n]*\)")


class RecordEnds:
    """Records of one stream in their order, held until nothing that may follow can change them.

    Attributes:
        records: those that are held.
    """

    def __init__(self, tail: re.Pattern[bytes] | None, text_bytes_max: int) -> None:
        """
        Args:
            tail: matches a logger at the end of a line; None for layouts in which it stands elsewhere.
            text_bytes_max: of a record's text.
        """
        self.records: list[RawRecord] = []
        self._tail = tail
        self._text_bytes_max = text_bytes_max
        #: Offsets of records with no logger or with several, and how many they have.
        self._odd: list[tuple[int, int]] = []
        #: The record behind the last open one, and whether that, or one of those right before it, is of clients.
        self._run: tuple[int, bool] = (-1, False)
        #: Ends of what is doubtful already, as rests and as open records have made it.
        self._before = self._behind = -1

    def add(self, record: RawRecord) -> None:
        """Take the next record."""
        self.records.append(record)
        if record.problem is None or record.problem == BINARY:
            self.look(record)

    def look(self, record: RawRecord) -> None:
        """See how many loggers a record has that is among `records`."""
        loggers = 1 if self._tail is None else _loggers(record.text, self._tail)
        if loggers != 1:
            self._odd.append((record.byte_offset, loggers))

    @property
    def is_odd(self) -> bool:
        """A record with no logger or with several is held."""
        return bool(self._odd)

    @property
    def is_open(self) -> bool:
        """A record without a logger is held."""
        return any(not loggers for _, loggers in self._odd)

    def release(self) -> list[RawRecord]:
        """All records, where what follows is known to be of single lines for long."""
        released = self.records[:]
        self.records.clear()
        return released

    def take(self, is_last: bool = False) -> list[RawRecord]:
        """Records that are settled: all, if no others follow."""
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
        """A record that has several loggers closes an open one, with all between."""
        first = last = self._index(offset)
        while (
            opened and offset - opened[-1] < FAR_BYTES and (first == last or self._is_right_before(opened[-1], first))
        ):
            first = self._index(opened.pop())
        parts = self.records[first : last + 1]
        problems = {part.problem for part in parts}
        size = sum(len(part.text) + 1 for part in parts)
        if len(parts) > 1 and problems <= {None, BINARY, DOUBTFUL} and size <= self._text_bytes_max:
            self.records[first : last + 1] = [_joined(parts)]
            return
        near = self._index(max(offset - FAR_BYTES + 1, self._before))
        self._doubt(min(first, near), last + 1)
        self._before = offset

    def _is_right_before(self, offset: int, index: int) -> bool:
        return index > 0 and self.records[index - 1].byte_offset == offset

    def _leave_open(self, offset: int) -> None:
        """A record without a logger that no other closes."""
        at = self._index(offset)
        of_clients = _OF_CLIENTS.search(self.records[at].text, 0, _HEAD_BYTES) is not None
        of_clients |= self._run == (offset, True)
        if at + 1 == len(self.records):
            return  # the file may go on
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


def are_plain(before: bytes, after: bytes, starts: re.Pattern[bytes], tail: re.Pattern[bytes]) -> bool:
    """Whether all records that begin near a place end as records do, so that none before it bears on one behind.

    Args:
        before: up to `FAR_BYTES` of what stands before the place, at which a record starts.
        after: up to twice as much of what stands behind it.
        starts: matches a line end and the start of a record.
        tail: as in `RecordEnds`.
    """
    content = (before + after).replace(b"\r\n", b"\n")
    begins = [0] if len(before) < FAR_BYTES else []  # of the file, which no line end stands before
    places = begins + [start.start() + 1 for start in starts.finditer(content)]
    if len(after) < 2 * FAR_BYTES and not content.endswith(b"\n"):
        del places[-1:]  # a half line, which the file ends with
    near = bisect_left(places, len(before) + FAR_BYTES)
    ends = [*places[1:], len(content)]
    records = (content[place : end - 1] for place, end in zip(places[:near], ends, strict=False))
    return all(_loggers(record, tail) == 1 for record in records)


def _loggers(text: bytes, tail: re.Pattern[bytes]) -> int:
    if b"\n" not in text and text[-1:] in LAST_BYTES:
        return 1
    number = len(tail.findall(text))
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
