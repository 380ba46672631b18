"""The leaderships of a partition, one after the other, as controllers and brokers logged them.

A leadership is a leader epoch of one incarnation of the topic; one without leader (-1) is the controller's way to say
that the partition is offline. Each instant of it keeps the broker whose clock it is on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pipelines.controllers.partition_machine import NEW, NON_EXISTENT, OFFLINE, ONLINE
from pipelines.controllers.rows import (
    COMMITTED,
    LEADER_DURING_DELETE,
    NOWHERE,
    EventRow,
    LeadershipRow,
    RecordRow,
    Ref,
    StateRow,
)

#: Roles of lines by which a broker shows what it was told of itself.
_HEARD: Final = frozenset(("request", "leader_start", "follower_start", "leader_update", "metadata"))


class Mark(NamedTuple):
    """An instant, the broker whose clock it is on, and its line."""

    time_us: int
    broker_id: int
    ref: Ref


#: In place of a line that is not there.
NEVER: Final = Mark(1 << 62, -1, NOWHERE)


def mark_of(row: EventRow | StateRow | LeadershipRow) -> Mark:
    """The instant of a row."""
    return Mark(row.time_us, row.broker_id, row.ref)


@dataclass
class Leadership:
    """One leader epoch.

    Attributes:
        incarnation: of the topic, counted from 0 as the logs show them.
        elected: the controller's decision: of its state machine, its first line, or the metadata record.
        from_state: state that its machine moved the partition from.
        sent: the controller sends it to brokers (up to 3.9, TRACE since 2.6).
        received: the new leader got the request.
        taken_up: the new leader starts the epoch.
        shown: the first line of anyone that shows it.
        heard: the first line of each broker about its own role in it.
        isr: at its start, `last_isr` at its end, as far as lines show; so is whether a reassignment was going on.
        asked: replicas that its leader asked for; what came of it is not known.
        recovering: the election was unclean (KIP-704), as its record says.
        elr_before, last_known_before: eligible replicas and last known leader before it (KIP-966), as records say.
    """

    incarnation: int
    leader_epoch: int
    leader: int | None = None
    from_state: str | None = None
    elected: Mark | None = None
    elected_by_machine: bool = False
    sent: Mark | None = None
    received: Mark | None = None
    taken_up: Mark | None = None
    shown: Mark | None = None
    heard: dict[int, Mark] = field(default_factory=dict)
    offset: int | None = None
    isr: tuple[int, ...] | None = None
    first_partition_epoch: int | None = None
    last_isr: tuple[int, ...] | None = None
    last_partition_epoch: int | None = None
    asked: frozenset[int] = frozenset()
    replicas: tuple[int, ...] | None = None
    reassigning_first: bool = False
    reassigning_last: bool = False
    recovering: bool | None = None
    elr_before: tuple[int, ...] | None = None
    last_known_before: tuple[int, ...] | None = None

    def begun_us(self) -> int:
        """The first instant of anyone that shows it."""
        marks = [mark.time_us for mark in (self.elected, self.shown, self.taken_up) if mark is not None]
        return min(marks, default=0)


def _earlier(one: Mark | None, other: Mark) -> Mark:
    return other if one is None or other.time_us < one.time_us else one


def incarnations(
    states: Iterable[StateRow], rows: Iterable[LeadershipRow], records: Iterable[RecordRow]
) -> tuple[int, ...]:
    """Times at which an incarnation of the topic begins: its topic id first shows, or its partition is made new."""
    first: dict[str, int] = {}
    named = [(row.topic_id, row.time_us) for row in rows if row.topic_id is not None]
    named += [(record.topic_id, record.time_us) for record in records]
    for topic_id, time_us in named:
        first[topic_id] = min(first.get(topic_id, time_us), time_us)
    made = {row.time_us for row in states if (row.from_state, row.to_state) == (NON_EXISTENT, NEW) and row.succeeded}
    return tuple(sorted(first.values())) if first else tuple(sorted(made))


class _Builder:
    """Puts rows in place, in the order of time."""

    def __init__(self, starts: Sequence[int]) -> None:
        self.starts = starts
        self.by_epoch: dict[tuple[int, int], Leadership] = {}
        self.recorded: dict[str, RecordRow] = {}

    def of(self, time_us: int, leader_epoch: int) -> Leadership:
        incarnation = max(bisect_right(self.starts, time_us) - 1, 0)
        key = (incarnation, leader_epoch)
        return self.by_epoch.setdefault(key, Leadership(incarnation, leader_epoch))

    def isr(self, one: Leadership, isr: tuple[int, ...] | None, partition_epoch: int | None) -> None:
        if isr is None:
            return
        if one.isr is None or (partition_epoch or 0) < (one.first_partition_epoch or 0):
            one.isr, one.first_partition_epoch = isr, partition_epoch
        if one.last_isr is None or (partition_epoch or 0) >= (one.last_partition_epoch or 0):
            one.last_isr, one.last_partition_epoch = isr, partition_epoch

    def reassigning(self, one: Leadership, row: LeadershipRow | RecordRow) -> None:
        """Whether replicas are being added or removed at its start and at its end; rows come in their order."""
        moving = bool(row.adding_replicas or row.removing_replicas)
        if one.replicas is None:
            one.reassigning_first = moving
        one.reassigning_last = moving

    def record(self, row: RecordRow) -> None:
        before = self.recorded.get(row.topic_id)
        self.recorded[row.topic_id] = row
        one = self.of(row.time_us, row.leader_epoch)
        mark = Mark(row.time_us, row.broker_id if row.controller_id is None else row.controller_id, row.ref)
        if one.offset is None or row.offset < one.offset:
            one.offset, one.elected, one.elected_by_machine = row.offset, mark, True
            one.recovering = row.recovering
            if before is not None:
                one.elr_before, one.last_known_before = before.elr, before.last_known_elr
        one.leader, one.shown = row.leader, _earlier(one.shown, mark)
        self.reassigning(one, row)
        one.replicas = row.replicas
        self.isr(one, row.isr, row.partition_epoch)

    def state(self, row: StateRow) -> None:
        if not row.succeeded or row.to_state != ONLINE or row.leader is None:
            return
        epoch = row.leader_epoch
        one = self._decided(row) if epoch is None else self.of(row.time_us, epoch)
        if one is None:
            return
        mark = mark_of(row)
        if not one.elected_by_machine or (one.elected is not None and mark.time_us < one.elected.time_us):
            one.from_state, one.elected, one.elected_by_machine = row.from_state, mark, True
        one.leader, one.shown = row.leader, _earlier(one.shown, mark)
        self.isr(one, row.isr, row.partition_epoch)

    def _decided(self, row: StateRow) -> Leadership | None:
        """Up to 1.0 the machine's line names no epoch: it is the leadership that this controller showed nearest."""
        near = [
            one
            for one in self.by_epoch.values()
            if one.leader == row.leader
            and one.elected is not None
            and one.elected.broker_id == row.broker_id
            and abs(one.elected.time_us - row.time_us) < 1_000_000
            and not one.elected_by_machine
        ]
        return min(near, key=lambda one: abs(one.begun_us() - row.time_us), default=None)

    def _sends(self, one: Leadership, row: LeadershipRow) -> bool:
        """A line of the controller after the one that elects; only those of ZooKeeper name a controller epoch."""
        if one.sent is not None or one.elected is None or row.controller_epoch is None:
            return False
        return row.ref != one.elected.ref and row.broker_id == one.elected.broker_id

    def leadership(self, row: LeadershipRow) -> None:
        epoch = row.leader_epoch
        if epoch is None or row.leader == LEADER_DURING_DELETE:
            return
        one = self.of(row.time_us, epoch)
        mark = mark_of(row)
        one.shown = _earlier(one.shown, mark)
        if row.leader is not None:
            one.leader = row.leader
        if row.replicas and one.offset is None:
            self.reassigning(one, row)
        one.replicas = row.replicas or one.replicas
        self.isr(one, row.isr, row.partition_epoch)
        if row.role in _HEARD:
            one.heard[row.broker_id] = _earlier(one.heard.get(row.broker_id), mark)
        if row.role == "controller" and row.leader is not None:
            if one.elected is None:
                one.elected = mark
            elif self._sends(one, row):
                one.sent = mark
        elif row.role == "request" and row.leader == row.broker_id:
            one.received = _earlier(one.received, mark)
        elif row.role == "leader_start":
            one.taken_up = _earlier(one.taken_up, mark)

    def changed(self, row: LeadershipRow) -> None:
        """Take a leader's own line about the ISR, which names no leader epoch under ZooKeeper."""
        incarnation = max(bisect_right(self.starts, row.time_us) - 1, 0)
        mine = [one for one in self.by_epoch.values() if one.incarnation == incarnation and one.leader == row.broker_id]
        if row.leader_epoch is not None:
            mine = [one for one in mine if one.leader_epoch == row.leader_epoch]
        elif row.partition_epoch is not None:
            # Each change of the partition's state counts one (zkVersion), whoever made it.
            began = [one for one in self.by_epoch.values() if one.incarnation == incarnation and one.isr is not None]
            began = [one for one in began if (one.first_partition_epoch or 0) <= row.partition_epoch]
            last = max(began, key=lambda one: one.leader_epoch, default=None)
            mine = [one for one in mine if one is last]
        else:
            mine = [one for one in mine if one.heard.get(row.broker_id, NEVER).time_us <= row.time_us]
        if not mine:
            return
        one = max(mine, key=lambda one: one.leader_epoch)
        if row.role == COMMITTED:
            self.isr(one, row.isr, row.partition_epoch)
        else:
            one.asked |= frozenset(row.isr or ())


def leaderships(
    states: Sequence[StateRow],
    rows: Sequence[LeadershipRow],
    records: Sequence[RecordRow] = (),
    changes: Sequence[LeadershipRow] = (),
) -> list[Leadership]:
    """Of one partition, by incarnation and leader epoch.

    Args:
        changes: of `silver.isr_changes`.
    """
    builder = _Builder(incarnations(states, rows, records))
    for record in sorted(records, key=lambda row: row.offset):
        builder.record(record)
    with_epoch = [row for row in states if row.leader_epoch is not None]
    for state in sorted(with_epoch, key=lambda row: (row.time_us, row.ref)):
        builder.state(state)
    for row in sorted(rows, key=lambda row: (row.time_us, row.ref)):
        builder.leadership(row)
    for state in sorted((row for row in states if row.leader_epoch is None), key=lambda row: (row.time_us, row.ref)):
        builder.state(state)
    for row in sorted(changes, key=lambda row: (row.time_us, row.ref)):
        builder.changed(row)
    return [builder.by_epoch[key] for key in sorted(builder.by_epoch)]


def since_us(chain: Sequence[Leadership], at: int) -> int:
    """Since when the leader of ``chain[at]`` has led, over all epochs in a row in which the partition was online."""
    last = chain[at]
    for one in reversed(chain[:at]):
        if last.from_state == OFFLINE or one.leader != last.leader or one.incarnation != last.incarnation:
            break
        last = one
    return last.begun_us()
