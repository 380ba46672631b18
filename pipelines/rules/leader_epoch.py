"""One leader epoch by all its lines: its leader, its start, its writes and commits. Pure.

A leader-epoch-checkpoint file of one log lists the log's epochs with their starts. A re-created topic starts both
again. So if the starts equal the ones in the leaders' lines, file and lines are of one life.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from highwater.pipelines.kafka.controller_rows import NO_LEADER
from highwater.schemas.audit_facts import Fact


class CommittedState(NamedTuple):
    """Leader and ISR as of one partition epoch (zkVersion); each commit of the controller adds one."""

    partition_epoch: int
    leader_epoch: int
    leader: int | None
    isr: frozenset[int]
    fact: Fact


@dataclass
class Epoch:
    """Everything that lines show about one leader epoch."""

    number: int  #: leader epoch
    leaders: dict[int, Fact] = field(default_factory=dict)  #: brokers that logged to lead in it, with their first line
    #: brokers that any line names as its leader, with the first such line
    named: dict[int, Fact] = field(default_factory=dict)
    #: the leader's log end at the start, from its own line, with the line; the lowest if several
    start: tuple[int, Fact] | None = None
    #: an offset at or past its start, from a record written in it, with the fact
    rewritten: tuple[int, Fact] | None = None
    high_watermark: tuple[int, Fact] | None = None  #: the highest one of its leader, with the fact
    first_us: int | None = None  #: the first sign of it that is left, on whatever clock
    topic_ids: set[str] = field(default_factory=set)  #: ids of the topic that its lines name

    def see(self, fact: Fact) -> None:
        """Add a line that names this epoch: its time, leader and topic id."""
        self.first_us = fact.time_us if self.first_us is None else min(self.first_us, fact.time_us)
        if fact.leader is not None:
            self.named.setdefault(fact.leader, fact)
        if fact.topic_id is not None:
            self.topic_ids.add(fact.topic_id)

    def starts(self, offset: int, fact: Fact) -> None:
        """Record the log end offset with which the leader started. The lowest counts."""
        if self.start is None or offset < self.start[0]:
            self.start = (offset, fact)

    def wrote(self, offset: int, fact: Fact) -> None:
        """Record an offset at which a record of this or a later epoch was written."""
        if self.rewritten is None or offset < self.rewritten[0]:
            self.rewritten = (offset, fact)

    def committed(self, high_watermark: int, fact: Fact) -> None:
        """Record the leader's high watermark. The highest counts, of equal ones the first line."""
        known = self.high_watermark
        is_higher = known is None or high_watermark > known[0]
        if is_higher or (known is not None and high_watermark == known[0] and _place(fact) < _place(known[1])):
            self.high_watermark = (high_watermark, fact)

    @property
    def bound(self) -> tuple[int, Fact] | None:
        """Return (offset, fact): an upper bound of the epoch's start. No earlier epoch's record survived from there."""
        known = [bound for bound in (self.start, self.rewritten) if bound is not None]
        return min(known, key=lambda bound: bound[0], default=None)

    def is_anothers(self, broker_id: int) -> bool:
        """Return True if the logs name leaders of the epoch, and this broker is not among them."""
        sayers = set(self.leaders) | set(self.named)
        return bool(sayers) and broker_id not in sayers

    @property
    def leader(self) -> int | None:
        """Return the leader, if the logs name exactly one. Else None."""
        sayers = set(self.leaders) or (set(self.named) - {NO_LEADER})
        return next(iter(sayers)) if len(sayers) == 1 else None


def _place(fact: Fact) -> tuple[int, int, str, int, int]:
    request = (fact.connection or "", -1 if fact.correlation_id is None else fact.correlation_id)
    broker_id, byte_offset = (-1 if value is None else value for value in (fact.broker_id, fact.byte_offset))
    return (fact.time_us, broker_id, *request, byte_offset)


def contradicting(entries: Iterable[Fact], start_of: Callable[[int], int | None]) -> frozenset[int | None]:
    """Return brokers whose epoch file has an epoch below its leader's start: the file is of another incarnation.

    Args:
        start_of: returns the start offset that a leader logged for an epoch. None if unknown.
    """
    strange = set()
    for entry in entries:
        start = start_of(entry.leader_epoch) if entry.leader_epoch is not None else None
        if start is not None and entry.offset is not None and entry.offset < start:
            strange.add(entry.broker_id)
    return frozenset(strange)


def in_one_file(entries: Iterable[Fact], starts: Iterable[Fact], first: int, last: int) -> bool:
    """Return True if one epoch file has both epochs, and agrees with all leaders' lines.

    Then both are very likely of one incarnation of the topic.

    Args:
        starts: lines by which leaders began epochs.
    """
    offsets: dict[int | None, set[int | None]] = defaultdict(set)
    for line in starts:
        offsets[line.leader_epoch].add(line.offset)
    agreeing: dict[str | None, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.leader_epoch is not None and offsets[entry.leader_epoch] == {entry.offset}:
            agreeing[entry.file_id].append(entry.leader_epoch)
    return any(min(numbers) <= first < last <= max(numbers) for numbers in agreeing.values())
