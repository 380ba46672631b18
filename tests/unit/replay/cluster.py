"""A leader of two partitions, a follower and a consumer, simulated millisecond by millisecond.

The slow and obvious oracle of the replay: it knows the log, every position and who waits, looks at everything each
millisecond, and writes down what a broker would log of it. Nothing in it is shared with the code under test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from highwater.schemas import events as e
from highwater.schemas import session_events as s
from highwater.schemas.events import Event
from highwater.schemas.session_events import SessionEvent

TOPIC = "t"
LEADER, FOLLOWER = 1, 2
MS = 1_000
FOLLOWER_CONNECTION, CONSUMER_CONNECTION = "follower", "consumer"


class Append(NamedTuple):
    """Records that a producer sends at a millisecond."""

    at_ms: int
    partition: int
    records: int
    size_bytes: int


@dataclass
class Reader:
    """Who fetches: one request at a time, the next one `pause_ms` after the answer."""

    connection: str
    replica_id: int
    min_bytes: int
    wait_ms: int
    pauses_ms: list[int]
    offsets: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})
    listed: dict[int, int] = field(default_factory=dict)
    asked_ms: int | None = None
    next_ms: int = 1
    number: int = 0


class Answer(NamedTuple):
    """What the oracle saw of one fetch."""

    cause: str
    completed_us: int


@dataclass
class Logged:
    """What the broker logged, and what really happened."""

    #: events of each partition, for the kernel
    partitions: dict[int, list[Event]] = field(default_factory=lambda: {0: [], 1: []})
    fetches: dict[str, list[SessionEvent]] = field(default_factory=dict)  #: fetch requests of each connection
    #: what the oracle saw of each fetch that was answered, by operation id
    answers: dict[str, Answer] = field(default_factory=dict)
    #: when the high watermark passed each batch, by (partition, base offset)
    committed_us: dict[tuple[int, int], int] = field(default_factory=dict)


class Cluster:
    """See the module."""

    def __init__(self, appends: Sequence[Append], follower: Reader, consumer: Reader, until_ms: int) -> None:
        self._appends = list(appends)
        self._readers = (follower, consumer)
        self._until_ms = until_ms
        self._log: dict[int, list[tuple[int, int, int]]] = {0: [], 1: []}
        self._end = {0: 0, 1: 0}
        self._position = {0: 0, 1: 0}
        self._high_watermark = {0: 0, 1: 0}
        self.logged = Logged()

    def run(self) -> Logged:
        for partition in (0, 1):
            start = Event(0, e.LEADER_START, 0, leader_epoch=0, offset=0, high_watermark=0, isr=(LEADER, FOLLOWER))
            self.logged.partitions[partition].append(start)
        for now_ms in range(1, self._until_ms):
            for append in self._appends:
                if append.at_ms == now_ms:
                    self._append(append)
            for reader in self._readers:
                self._turn(reader, now_ms)
        return self.logged

    def _append(self, append: Append) -> None:
        base, at = self._end[append.partition], append.at_ms * MS
        self._log[append.partition].append((base, append.records, append.size_bytes))
        self._end[append.partition] = base + append.records
        self.logged.partitions[append.partition].append(
            Event(
                at,
                e.PRODUCE,
                at,
                offset=base,
                error_code=0,
                request_id=f"p{append.partition}-{base}",
                # Nothing says here when it was answered: that would tell when it was committed.
                completed_us=1 << 60,
                acks=-1,
                timeout_ms=1_000_000,
                partitions=1,
                size_bytes=append.size_bytes,
            )
        )

    def _readable(self, reader: Reader, partition: int) -> int:
        """Bytes from the reader's offset on."""
        end = self._end[partition] if reader.replica_id >= 0 else self._high_watermark[partition]
        offset = reader.offsets[partition]
        return sum(size for base, records, size in self._log[partition] if offset <= base and base + records <= end)

    def _turn(self, reader: Reader, now_ms: int) -> None:
        # The consumer looks after the follower: what the follower's fetch committed is there for it.
        now_us = now_ms * MS + (300 if reader.replica_id >= 0 else 600)
        found = sum(self._readable(reader, partition) for partition in (0, 1))
        if reader.asked_ms is None:
            if now_ms < reader.next_ms:
                return
            reader.asked_ms = now_ms
            if reader.replica_id >= 0:
                self._follow(reader, now_us)
                found = sum(self._readable(reader, partition) for partition in (0, 1))
            self._ask(reader, now_us)
            if found >= reader.min_bytes:
                self._answer(reader, now_ms, now_us, "at_once", found)
        elif found >= reader.min_bytes:
            self._answer(reader, now_ms, now_us, "bytes", found)
        elif now_ms - reader.asked_ms >= reader.wait_ms:
            self._answer(reader, now_ms, now_us, "timer", found)

    def _follow(self, reader: Reader, now_us: int) -> None:
        for partition in (0, 1):
            self._position[partition] = reader.offsets[partition]
            before = self._high_watermark[partition]
            self._high_watermark[partition] = min(self._end[partition], self._position[partition])
            for base, records, _ in self._log[partition]:
                if before < base + records <= self._high_watermark[partition]:
                    self.logged.committed_us[partition, base] = now_us

    def _ask(self, reader: Reader, now_us: int) -> None:
        """A session: the first request lists everything, the others what has changed."""
        changed = {p: offset for p, offset in reader.offsets.items() if reader.listed.get(p) != offset}
        fetch = SessionEvent(
            now_us,
            s.FETCH,
            now_us,
            operation_id=f"{reader.connection}-{reader.number}",
            replica_id=reader.replica_id,
            session_epoch=reader.number,
            isolation_level=0,
            min_bytes=reader.min_bytes,
            max_wait_ms=reader.wait_ms,
            topics=(TOPIC,) * len(changed),
            partitions=tuple(changed),
            offsets=tuple(changed.values()),
            max_bytes=(1 << 30,) * len(changed),
        )
        self.logged.fetches.setdefault(reader.connection, []).append(fetch)
        reader.listed = dict(reader.offsets)
        if reader.replica_id >= 0:
            for partition, offset in changed.items():
                self.logged.partitions[partition].append(
                    Event(
                        now_us,
                        e.FETCH,
                        now_us,
                        offset=offset,
                        replica_id=reader.replica_id,
                        error_code=0,
                        chain=f"{reader.connection}#0",
                        sequence=reader.number,
                        chain_end_us=1 << 60,
                        arrival_us=now_us,
                    )
                )

    def _answer(self, reader: Reader, now_ms: int, now_us: int, cause: str, found: int) -> None:
        asked = self.logged.fetches[reader.connection]
        last = asked[-1]
        asked[-1] = last._replace(
            completed_us=now_us, response_bytes=found, at_once_reason="at_once" if cause == "at_once" else None
        )
        self.logged.answers[last.operation_id or ""] = Answer(cause, now_us)
        for partition in (0, 1):
            end = self._end if reader.replica_id >= 0 else self._high_watermark
            reader.offsets[partition] = max(reader.offsets[partition], end[partition])
        reader.asked_ms = None
        reader.next_ms = now_ms + reader.pauses_ms[reader.number % len(reader.pauses_ms)]
        reader.number += 1
