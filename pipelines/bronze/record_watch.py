"""Counts the records of a file in the pass that profiles it, and asks some of them who wrote them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo

from highwater.pipelines.bronze.identity import NEEDLES, OTHER, Hints
from highwater.pipelines.bronze.layout import Clock, Layout
from highwater.pipelines.bronze.lives import LifeWatch
from highwater.pipelines.bronze.repeated_hour import Passage, PassageWatch
from highwater.pipelines.bronze.source import BLOCK_BYTES
from highwater.pipelines.bronze.streams import OTHER_LINES, label
from highwater.pipelines.kafka.raw_record import RawRecord
from highwater.pipelines.kafka.resolution import ResolutionWatch
from highwater.pipelines.kafka.strays import StrayWatch, is_possible

#: Records per block that are asked who wrote them. The first block is asked in full: it has the start of the broker.
ASKED_PER_BLOCK = 20
NEEDLE_BYTES_MAX = max(map(len, NEEDLES))
#: Prefixes of Kafka's logger names. ZooKeeper's loggers appear in brokers' logs and in logs of ZooKeeper servers.
_KAFKAS = ("kafka.", "org.apache.kafka.", "state.change.")


class Sources:
    """Counts the records of each source in a file. Most files have one source."""

    def __init__(self, layout: Layout | None, zone: tzinfo) -> None:
        self._layout = layout
        self._zone = zone
        self._of: dict[bytes | None, RecordWatch] = {}
        self._block = b""

    def tap(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks. Each counter sees a block before it is yielded."""
        for block in blocks:
            self._block = block
            for watch in self._of.values():
                watch.begin(block)
            yield block

    def of(self, source: bytes | None) -> RecordWatch:
        """Return the counter for a source. None is the source of lines without a wrapper."""
        watch = self._of.get(source)
        if watch is None:
            watch = self._of[source] = RecordWatch(Hints(), self._layout, self._zone)
            watch.begin(self._block)
        return watch

    def parts(self) -> dict[str, RecordWatch]:
        """Return by name the counters of sources with Kafka's records, and one counter for the other lines.

        If the file does not mix sources, the only name is empty.
        """
        named = {source: watch for source, watch in self._of.items() if source is not None}
        of_kafka = {source: watch for source, watch in named.items() if watch.is_kafka}
        if len(named) > 1 and of_kafka:
            parts: dict[str, RecordWatch] = {}
            for source, watch in of_kafka.items():
                name = label(source)
                parts[name] = self._together([parts[name], watch]) if name in parts else watch
            rest = [watch for source, watch in self._of.items() if source not in of_kafka]
            if rest:
                parts[OTHER_LINES] = self._together(rest)
            return parts
        return {"": self._together(self._of.values())}

    def _together(self, several: Iterable[RecordWatch]) -> RecordWatch:
        """Return the counter with most records, preferably of Kafka, after adding the counts of the others."""
        largest, *others = sorted(several, key=lambda watch: (-watch.is_kafka, -watch.records)) or [self.of(b"")]
        for watch in others:
            largest.lines += watch.lines
            largest.records += watch.records
            largest.hints.environment += watch.hints.environment
        return largest


class RecordWatch:
    """Counts records, and parses some for hints: all at the start of the file, and those near rare texts."""

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
        """Decide how many of the records that end in the next block are parsed for hints."""
        here = self._offset < BLOCK_BYTES or (not self._requests() and _tells(self._tail, block, NEEDLES))
        near = bool(self._hours) and _tells(self._tail, block, self._hours)
        # A record may end, and so come out, one block after the one that it begins in.
        self._to_ask = float("inf") if here or self._was_here else ASKED_PER_BLOCK
        self._is_near, self._was_near = near or self._was_near, near
        self._was_here, self._tail = here, block[-NEEDLE_BYTES_MAX:]
        self._offset += len(block)

    def _requests(self) -> bool:
        """Return True if most of the parsed records are from request logs, which show only addresses."""
        return self.hints.kinds["kafka-request"] > sum(self.hints.kinds.values()) / 2

    def count(self, record: RawRecord) -> None:
        _, _, _, line_count, text, problem = record
        self.lines += line_count
        self.records += 1
        if problem is not None or line_count > 1:
            self.hints.observe_text(text if problem is not None else text.partition(b"\n")[2])
        if problem is not None or self._parse is None:
            return
        self._good += 1
        is_asked = self._to_ask > 0
        if is_asked or self._is_near or self._strays.asks(text):
            self._to_ask -= is_asked
            head = self._parse(text)
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
        """Handle a record whose time was parsed."""
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
        """Finish after the last record."""
        last_us = self._strays.end()
        self.strays = self._strays.offsets
        if self._strays.first_us is not None:
            self.first_us = self._strays.first_us
        self.last_us = last_us if last_us is not None or self._settled is None else self._time_us(self._settled)

    def passages(self) -> list[Passage]:
        """Return what the file shows about hours that were repeated when clocks were set back."""
        last_us = self._time_us(self._last) if self._last is not None and self._hours else None
        if self._last is not None and last_us is not None:
            self._see(self._last, last_us)
        return self._watch.passages()

    def kafka_records(self) -> int:
        """Return the estimated number of records from Kafka's loggers.

        At least one if a parsed record is Kafka's. All records if none could be parsed.
        """
        asked = sum(self.hints.kinds.values())
        if not asked:
            return self.records if self._parse is not None else 0
        kafka = asked - self.hints.kinds[OTHER]
        return max(1, self._good * kafka // asked) if kafka else 0

    def _time_us(self, record: RawRecord) -> int | None:
        """Return the time of a whole record. None if it cannot be parsed or is not a possible time."""
        head = self._parse(record.text) if self._parse else None
        return head.time_us if head and is_possible(head.time_us) else None


def _tells(tail: bytes, block: bytes, needles: Sequence[bytes]) -> bool:
    seam = tail + block[:NEEDLE_BYTES_MAX]
    return any(needle in block or needle in seam for needle in needles)
