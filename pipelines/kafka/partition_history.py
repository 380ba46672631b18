"""The history of a partition from controllers, brokers and the metadata log: its leader epochs and its states.

A leadership is a leader epoch of one incarnation of the topic. Without a leader (-1) the controller says that the
partition is offline. Leader and ISR change together, and each change raises the partition epoch (``zkVersion``) by one:
states are ordered by that epoch, never by brokers' clocks. Each instant keeps the broker of its clock. Failovers,
unavailability and surviving records are computed from this history; rules, which prove with single lines, have a
history of their own (`pipelines.rules.history`). Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.controller_rows import (
    ASKED,
    COMMITTED,
    LEADER_DURING_DELETE,
    NON_EXISTENT,
    NOWHERE,
    OFFLINE,
    ONLINE,
    SHRINK_ASKED,
    EventRow,
    LeadershipRow,
    LineRef,
    PartitionRow,
    RecordRow,
    StateRow,
)
from highwater.pipelines.kafka.topic_lives import TopicLives, topic_lives

#: Roles of lines in which a broker shows the state that it received for itself.
_HEARD: Final = frozenset(("request", "leader_start", "follower_start", "leader_update", "metadata"))


class Moment(NamedTuple):
    """A time with the broker whose clock it is on, and its log line."""

    time_us: int
    broker_id: int
    ref: LineRef


#: In place of a line that is not there.
NEVER: Final = Moment(NEVER_US, -1, NOWHERE)


def make_moment(row: EventRow | StateRow | LeadershipRow) -> Moment:
    """Return the time of a row, with its broker and line."""
    return Moment(row.time_us, row.broker_id, row.ref)


@dataclass
class LeaderEpoch:
    """One leader epoch of a partition."""

    incarnation: int  #: of the topic, counted from 0 as the logs show them
    leader_epoch: int
    leader: int | None = None
    from_state: str | None = None  #: state that its machine moved the partition from
    #: the controller's decision: of its state machine, its first line, or the metadata record
    elected: Moment | None = None
    elected_by_machine: bool = False
    sent: Moment | None = None  #: the controller sends it to brokers (up to 3.9, TRACE since 2.6)
    received: Moment | None = None  #: the new leader got the request
    taken_up: Moment | None = None  #: the new leader starts the epoch
    shown: Moment | None = None  #: the first line of any broker that shows it
    heard: dict[int, Moment] = field(default_factory=dict)  #: the first line of each broker about its own role in it
    offset: int | None = None  #: of its first metadata record
    start_offset: int | None = None  #: start offset by its leader's lines; the lowest one
    #: ISR at its start, `last_isr` at its end; likewise `reassigning_first` and `reassigning_last`
    isr: tuple[int, ...] | None = None
    first_partition_epoch: int | None = None
    last_isr: tuple[int, ...] | None = None
    last_partition_epoch: int | None = None
    asked: frozenset[int] = frozenset()  #: replicas that its leader proposed; whether they joined is unknown
    replicas: tuple[int, ...] | None = None
    reassigning_first: bool = False
    reassigning_last: bool = False
    recovering: bool | None = None  #: the election was unclean (KIP-704), as its record says
    #: elr_before, last_known_before: eligible replicas and last known leader before it (KIP-966), as records say
    elr_before: tuple[int, ...] | None = None
    last_known_before: tuple[int, ...] | None = None

    def begun_us(self) -> int:
        """Return the first time at which any line shows the epoch, us. 0 if unknown."""
        moments = [moment.time_us for moment in (self.elected, self.shown, self.taken_up) if moment is not None]
        return min(moments, default=0)


@dataclass
class PartitionEpoch:
    """One partition epoch. It begins with its metadata record, or with the first broker line that shows it."""

    incarnation: int
    partition_epoch: int
    time_us: int
    clock: int
    recorded: bool = False
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None  #: assigned replicas
    removing: tuple[int, ...] | None = None  #: replicas that a reassignment removes
    adding: tuple[int, ...] | None = None  #: replicas that a reassignment adds
    by_leader: bool = False  #: the leader's own line shows that it committed the ISR
    led_before: int | None = None  #: previous leader, by the line of the leader that starts
    ref: LineRef = NOWHERE  #: place of the line or record that `time_us` is of
    is_decided: bool = False  #: `time_us` is the time of the controller's decision, not of a later line
    by_machine: bool = False  #: a ZooKeeper controller's state machine shows it

    def take(self, row: PartitionRow) -> None:
        """Merge another line of the same state. The time is the record's, else the earliest line's."""
        recorded = isinstance(row, RecordRow)
        if (not recorded, row.time_us, row.broker_id) < (not self.recorded, self.time_us, self.clock):
            self.time_us, self.clock, self.ref, self.recorded = row.time_us, row.broker_id, row.ref, recorded
            is_controllers = isinstance(row, LeadershipRow) and row.role == "controller"
            self.is_decided = recorded or isinstance(row, StateRow) or is_controllers
        self.leader = row.leader if self.leader is None else self.leader
        self.leader_epoch = row.leader_epoch if self.leader_epoch is None else self.leader_epoch
        self.isr = row.isr if self.isr is None else self.isr
        if isinstance(row, StateRow):
            self.by_machine = True
            return
        self.replicas = row.replicas or self.replicas
        self.removing = row.removing_replicas if self.removing is None else self.removing
        self.adding = row.adding_replicas if self.adding is None else self.adding
        if isinstance(row, LeadershipRow):
            self.by_leader |= row.role in (COMMITTED, ASKED, SHRINK_ASKED)
            self.led_before = row.previous_leader if row.role == "leader_start" else self.led_before


@dataclass(frozen=True)
class PartitionHistory:
    """History of one partition from all lines and records."""

    lives: TopicLives
    epochs: tuple[LeaderEpoch, ...]  #: by incarnation and leader epoch
    #: committed states in the order of their partition epochs, by incarnation
    states: Mapping[int, Sequence[PartitionEpoch]]

    def newest(self) -> list[LeaderEpoch]:
        """Return the leader epochs of the topic's last incarnation, newest first."""
        return [epoch for epoch in reversed(self.epochs) if epoch.incarnation == self.epochs[-1].incarnation]


def _pick_earlier(moment: Moment | None, other: Moment) -> Moment:
    return other if moment is None or other.time_us < moment.time_us else moment


class _Builder:
    """Builds leader epochs from rows in time order."""

    def __init__(self, lives: TopicLives) -> None:
        self.lives = lives
        self.by_epoch: dict[tuple[int, int], LeaderEpoch] = {}
        self.recorded: dict[str, RecordRow] = {}

    def of(self, incarnation: int, leader_epoch: int) -> LeaderEpoch:
        key = (incarnation, leader_epoch)
        return self.by_epoch.setdefault(key, LeaderEpoch(*key))

    def isr(self, leadership: LeaderEpoch, isr: tuple[int, ...] | None, partition_epoch: int | None) -> None:
        if isr is None:
            return
        if leadership.isr is None or (partition_epoch or 0) < (leadership.first_partition_epoch or 0):
            leadership.isr, leadership.first_partition_epoch = isr, partition_epoch
        if leadership.last_isr is None or (partition_epoch or 0) >= (leadership.last_partition_epoch or 0):
            leadership.last_isr, leadership.last_partition_epoch = isr, partition_epoch

    def note_reassignment(self, leadership: LeaderEpoch, row: LeadershipRow | RecordRow) -> None:
        """Record if a reassignment is in progress at the start and end of an epoch. Rows are in time order."""
        moving = bool(row.adding_replicas or row.removing_replicas)
        if leadership.replicas is None:
            leadership.reassigning_first = moving
        leadership.reassigning_last = moving

    def record(self, row: RecordRow) -> None:
        before = self.recorded.get(row.topic_id)
        self.recorded[row.topic_id] = row
        leadership = self.of(self.lives.at(row.time_us, row.topic_id), row.leader_epoch)
        moment = Moment(row.time_us, row.broker_id if row.controller_id is None else row.controller_id, row.ref)
        if leadership.offset is None or row.offset < leadership.offset:
            leadership.offset, leadership.elected, leadership.elected_by_machine = row.offset, moment, True
            leadership.recovering = row.recovering
            if before is not None:
                leadership.elr_before, leadership.last_known_before = before.elr, before.last_known_elr
        leadership.leader, leadership.shown = row.leader, _pick_earlier(leadership.shown, moment)
        self.note_reassignment(leadership, row)
        leadership.replicas = row.replicas
        self.isr(leadership, row.isr, row.partition_epoch)

    def state(self, row: StateRow) -> None:
        if not row.succeeded or row.to_state != ONLINE or row.leader is None:
            return
        epoch = row.leader_epoch
        leadership = self._find_decided(row) if epoch is None else self.of(self.lives.at(row.time_us), epoch)
        if leadership is None:
            return
        moment = make_moment(row)
        if not leadership.elected_by_machine or (
            leadership.elected is not None and moment.time_us < leadership.elected.time_us
        ):
            leadership.from_state, leadership.elected, leadership.elected_by_machine = row.from_state, moment, True
        leadership.leader, leadership.shown = row.leader, _pick_earlier(leadership.shown, moment)
        self.isr(leadership, row.isr, row.partition_epoch)

    def _find_decided(self, row: StateRow) -> LeaderEpoch | None:
        """Return the leader epoch of the same controller that is nearest in time, for lines without one (up to 1.0)."""
        near = [
            leadership
            for leadership in self.by_epoch.values()
            if leadership.leader == row.leader
            and leadership.elected is not None
            and leadership.elected.broker_id == row.broker_id
            and abs(leadership.elected.time_us - row.time_us) < 1_000_000
            and not leadership.elected_by_machine
        ]
        return min(near, key=lambda leadership: abs(leadership.begun_us() - row.time_us), default=None)

    def _is_sent(self, leadership: LeaderEpoch, row: LeadershipRow) -> bool:
        """Return True if the line is the controller's send after the election. Only ZooKeeper's have an epoch."""
        if leadership.sent is not None or leadership.elected is None or row.controller_epoch is None:
            return False
        return row.ref != leadership.elected.ref and row.broker_id == leadership.elected.broker_id

    def leadership(self, row: LeadershipRow) -> None:
        epoch = row.leader_epoch
        if epoch is None or row.leader == LEADER_DURING_DELETE:
            return
        leadership = self.of(self.lives.at(row.time_us, row.topic_id), epoch)
        moment = make_moment(row)
        leadership.shown = _pick_earlier(leadership.shown, moment)
        if row.leader is not None:
            leadership.leader = row.leader
        if row.replicas and leadership.offset is None:
            self.note_reassignment(leadership, row)
        leadership.replicas = row.replicas or leadership.replicas
        self.isr(leadership, row.isr, row.partition_epoch)
        if row.role in _HEARD:
            leadership.heard[row.broker_id] = _pick_earlier(leadership.heard.get(row.broker_id), moment)
        if row.role == "controller" and row.leader is not None:
            if leadership.elected is None:
                leadership.elected = moment
            elif self._is_sent(leadership, row):
                leadership.sent = moment
        elif row.role == "request" and row.leader == row.broker_id:
            leadership.received = _pick_earlier(leadership.received, moment)
        elif row.role == "leader_start":
            leadership.taken_up = _pick_earlier(leadership.taken_up, moment)
            starts = (start for start in (leadership.start_offset, row.start_offset) if start is not None)
            leadership.start_offset = min(starts, default=None)

    def changed(self, row: LeadershipRow) -> None:
        """Add a leader's ISR line, which names no leader epoch under ZooKeeper."""
        incarnation = self.lives.at(row.time_us, row.topic_id)
        of_life = [leadership for leadership in self.by_epoch.values() if leadership.incarnation == incarnation]
        mine = [leadership for leadership in of_life if leadership.leader == row.broker_id]
        if row.leader_epoch is not None:
            mine = [leadership for leadership in mine if leadership.leader_epoch == row.leader_epoch]
        elif row.partition_epoch is not None:
            # Each change of the partition's state raises zkVersion by one.
            known = (leadership for leadership in of_life if leadership.isr is not None)
            began = [
                leadership for leadership in known if (leadership.first_partition_epoch or 0) <= row.partition_epoch
            ]
            last = max(began, key=lambda leadership: leadership.leader_epoch, default=None)
            mine = [leadership for leadership in mine if leadership is last]
        else:
            mine = [
                leadership for leadership in mine if leadership.heard.get(row.broker_id, NEVER).time_us <= row.time_us
            ]
        if not mine:
            return
        leadership = max(mine, key=lambda leadership: leadership.leader_epoch)
        if row.role == COMMITTED:
            self.isr(leadership, row.isr, row.partition_epoch)
        else:
            leadership.asked |= frozenset(row.isr or ())


def build_history(
    states: Sequence[StateRow],
    rows: Sequence[LeadershipRow],
    records: Sequence[RecordRow] = (),
    changes: Sequence[LeadershipRow] = (),
    kraft: bool = False,
    unseen: Sequence[LeadershipRow] = (),
    deleted_us: Sequence[int] = (),
) -> PartitionHistory:
    """Return the history of one partition.

    Args:
        states: `silver.partition_states`.
        rows: `silver.leader_and_isr`, all roles.
        records: metadata records of one node's copy.
        changes: `silver.isr_changes`: under ZooKeeper leaders change ISRs without the controller.
        kraft: True for KRaft controllers.
        unseen: proposals that were committed without a line, with partition epochs. They add no leader epoch.
        deleted_us: times of lines that show the topic deleted.
    """
    created_us = (row.time_us for row in states if row.from_state == NON_EXISTENT and row.succeeded)
    committed = [row for row in changes if row.role == COMMITTED]
    lives = topic_lives(((row.role, row) for row in rows), records, created_us, deleted_us, committed)
    builder = _Builder(lives)
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
        if row.role in (COMMITTED, ASKED):
            builder.changed(row)
    epochs = tuple(builder.by_epoch[key] for key in sorted(builder.by_epoch))
    return PartitionHistory(
        lives, epochs, _collect_states([*rows, *committed, *unseen, *states, *records], lives, kraft)
    )


def _collect_states(rows: Iterable[PartitionRow], lives: TopicLives, kraft: bool) -> Mapping[int, list[PartitionEpoch]]:
    by_epoch: dict[tuple[int, int], PartitionEpoch] = {}
    for row in sorted(rows, key=lambda row: (row.time_us, row.broker_id, row.ref)):
        if row.partition_epoch is None or not _is_state(row, kraft):
            continue
        topic_id = None if isinstance(row, StateRow) else row.topic_id
        key = (lives.at(row.time_us, topic_id), row.partition_epoch)
        by_epoch.setdefault(key, PartitionEpoch(*key, NEVER_US, -1)).take(row)
    by_incarnation: dict[int, list[PartitionEpoch]] = defaultdict(list)
    for key in sorted(by_epoch):
        by_incarnation[key[0]].append(by_epoch[key])
    return by_incarnation


def _is_state(row: PartitionRow, kraft: bool) -> bool:
    """Return True if a row shows a state, not a plan. Plans: selector lines up to 1.0, uncommitted KRaft changes."""
    if isinstance(row, StateRow):
        return row.succeeded
    planned = isinstance(row, LeadershipRow) and row.role == "controller" and (kraft or row.controller_epoch is None)
    return not planned


def find_leader_start(chain: Sequence[LeaderEpoch], at: int) -> int:
    """Return since when the leader of ``chain[at]`` led, over consecutive epochs without an offline partition, us."""
    last = chain[at]
    for leadership in reversed(chain[:at]):
        if last.from_state == OFFLINE or leadership.leader != last.leader or leadership.incarnation != last.incarnation:
            break
        last = leadership
    return last.begun_us()
