"""What all lines together say of one leader epoch: who led, where it began, what it wrote and committed. Pure.

A leader-epoch-checkpoint file that has been written for one log lists its epochs with their starts. A topic that is
created anew begins both again, so starts that are as the leaders' lines say are of the life that the lines are of.
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
    """What is known of one leader epoch."""

    number: int  #: leader epoch
    leaders: dict[int, Fact] = field(default_factory=dict)  #: brokers that said they lead in it, with their first line
    #: brokers that any line names as its leader, with the first such line
    named: dict[int, Fact] = field(default_factory=dict)
    #: the offset at which the leader's log ended, as its own line says, with the line; the lowest if several
    start: tuple[int, Fact] | None = None
    #: an offset at or past its start, known from what was written in it, with the fact
    rewritten: tuple[int, Fact] | None = None
    high_watermark: tuple[int, Fact] | None = None  #: the highest that its leader told, with the fact
    first_us: int | None = None  #: the first sign of it that is left, on whatever clock
    topic_ids: set[str] = field(default_factory=set)  #: ids of the topic that its lines name

    def see(self, fact: Fact) -> None:
        """Take a line that names this epoch."""
        self.first_us = fact.time_us if self.first_us is None else min(self.first_us, fact.time_us)
        if fact.leader is not None:
            self.named.setdefault(fact.leader, fact)
        if fact.topic_id is not None:
            self.topic_ids.add(fact.topic_id)

    def starts(self, offset: int, fact: Fact) -> None:
        """The leader's log ended at an offset."""
        if self.start is None or offset < self.start[0]:
            self.start = (offset, fact)

    def wrote(self, offset: int, fact: Fact) -> None:
        """A record of this epoch, or of a later one, was written at an offset."""
        if self.rewritten is None or offset < self.rewritten[0]:
            self.rewritten = (offset, fact)

    def committed(self, high_watermark: int, fact: Fact) -> None:
        """The leader told its high watermark; of those that tell the same, the first line counts, as it may be given
        last."""
        known = self.high_watermark
        is_higher = known is None or high_watermark > known[0]
        if is_higher or (known is not None and high_watermark == known[0] and _place(fact) < _place(known[1])):
            self.high_watermark = (high_watermark, fact)

    @property
    def bound(self) -> tuple[int, Fact] | None:
        """Its start is here or before: nothing that an earlier epoch wrote from here on survived it."""
        known = [bound for bound in (self.start, self.rewritten) if bound is not None]
        return min(known, key=lambda bound: bound[0], default=None)

    def is_anothers(self, broker_id: int) -> bool:
        """It is known who led, and it was not this broker; or that nobody did."""
        sayers = set(self.leaders) | set(self.named)
        return bool(sayers) and broker_id not in sayers

    @property
    def leader(self) -> int | None:
        """Who led, if one broker is known."""
        sayers = set(self.leaders) or (set(self.named) - {NO_LEADER})
        return next(iter(sayers)) if len(sayers) == 1 else None


def _place(fact: Fact) -> tuple[int, int, str, int, int]:
    request = (fact.connection or "", -1 if fact.correlation_id is None else fact.correlation_id)
    broker_id, byte_offset = (-1 if value is None else value for value in (fact.broker_id, fact.byte_offset))
    return (fact.time_us, broker_id, *request, byte_offset)


def contradicting(entries: Iterable[Fact], start_of: Callable[[int], int | None]) -> frozenset[int | None]:
    """Brokers whose files have an epoch begin before its leader's log ended: within one life of a topic none does.

    Args:
        start_of: where a leader's log ended at the start of an epoch, by its own line; None where no line tells.
    """
    strange = set()
    for entry in entries:
        start = start_of(entry.leader_epoch) if entry.leader_epoch is not None else None
        if start is not None and entry.offset is not None and entry.offset < start:
            strange.add(entry.broker_id)
    return frozenset(strange)


def in_one_file(entries: Iterable[Fact], starts: Iterable[Fact], first: int, last: int) -> bool:
    """Whether a file lists an epoch and a later one, from before and after two epochs, as all lines of leaders have
    them; most likely the two are of one life then, though lines of another one may be missing.

    Args:
        starts: lines by which leaders began epochs, of all times.
    """
    offsets: dict[int | None, set[int | None]] = defaultdict(set)
    for line in starts:
        offsets[line.leader_epoch].add(line.offset)
    agreeing: dict[str | None, list[int]] = defaultdict(list)
    for entry in entries:
        if entry.leader_epoch is not None and offsets[entry.leader_epoch] == {entry.offset}:
            agreeing[entry.file_id].append(entry.leader_epoch)
    return any(min(numbers) <= first < last <= max(numbers) for numbers in agreeing.values())
