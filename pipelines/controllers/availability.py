"""Windows in which a partition had no leader, or fewer in-sync replicas than ``min.insync.replicas``.

Leader and ISR of a partition change together, and each change makes its partition epoch (``zkVersion``) one larger. So
states are put in order by that epoch, never by the clocks of the brokers that show them; a state counts from the first
line of anyone that shows it, or from its record. Epochs that no line shows are counted: in one of them the window may
have been interrupted.

A ZooKeeper controller also holds a partition for offline while its znode still names a dead leader
(`PartitionStateMachine`). That it does for some milliseconds at every failover, which `failover` tells of; here it is a
window where no leader was elected within a second.

States that follow within the tick of a log, or faster than two clocks agree, leave no window. A window proves nothing
wrong: which partitions are unavailable follows from which brokers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pipelines.base.instants import SECOND_US
from pipelines.controllers.leaderships import lives_of
from pipelines.controllers.partition_machine import NON_EXISTENT, OFFLINE, ONLINE
from pipelines.kafka.controller_rows import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    LeadershipRow,
    RecordRow,
    StateRow,
    in_order,
)
from pipelines.kafka.topic_lives import TopicLives

WITHOUT_LEADER: Final = "offline"
UNDER_MIN_ISR: Final = "under_min_isr"

#: Windows without leader, no further apart, are one: the machine's line and the new state are two lines.
_ONE_WINDOW_US: Final = 1_000_000
#: A ZooKeeper controller that elects within this time does so at once.
_AT_ONCE_US: Final = 1_000_000
#: (broker, instant, number of replicas or None): the partition's min.insync.replicas as that broker knew it.
MinIsrOf = Callable[[int, int, int | None], int | None]


class Unavailability(NamedTuple):
    """A row of gold `availability`; the shell adds the cluster. A clock is a broker's id."""

    topic: str
    partition: int
    state: str
    started_time_us: int
    started_clock: int
    ended_time_us: int | None  #: None where it lasts until the logs end
    ended_clock: int | None
    #: leader_epoch, isr: with which it began
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    min_insync_replicas: int | None = None
    states_missing: int = 0  #: partition epochs within it that no line shows
    produces_refused: int | None = None


@dataclass
class _PartitionEpoch:
    """What is known of one partition epoch."""

    incarnation: int
    partition_epoch: int
    time_us: int
    clock: int
    recorded: bool = False
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: int | None = None

    def take(self, row: LeadershipRow | StateRow | RecordRow) -> None:
        """Add what another line shows of the same state; a record tells its time best, then the first line."""
        recorded = isinstance(row, RecordRow)
        if (not recorded, row.time_us, row.broker_id) < (not self.recorded, self.time_us, self.clock):
            self.time_us, self.clock, self.recorded = row.time_us, row.broker_id, recorded
        self.leader = row.leader if self.leader is None else self.leader
        self.leader_epoch = row.leader_epoch if self.leader_epoch is None else self.leader_epoch
        self.isr = row.isr if self.isr is None else self.isr
        if not isinstance(row, StateRow) and row.replicas:
            self.replicas = len(row.replicas)


def _is_state(row: LeadershipRow | StateRow | RecordRow, kraft: bool) -> bool:
    """Plans are none: a selector's line up to 1.0, and what a KRaft controller has not committed yet."""
    if row.partition_epoch is None:
        return False
    if isinstance(row, StateRow):
        return row.succeeded
    planned = isinstance(row, LeadershipRow) and row.role == "controller" and (kraft or row.controller_epoch is None)
    return not planned


def _states(
    rows: Iterable[LeadershipRow | StateRow | RecordRow], lives: TopicLives, kraft: bool
) -> Mapping[int, list[_PartitionEpoch]]:
    by_epoch: dict[tuple[int, int], _PartitionEpoch] = {}
    ordered = sorted(rows, key=lambda row: (row.time_us, row.broker_id, row.ref))
    for row in ordered:
        if not _is_state(row, kraft):
            continue
        assert row.partition_epoch is not None
        topic_id = None if isinstance(row, StateRow) else row.topic_id
        key = (lives.at(row.time_us, topic_id), row.partition_epoch)
        state = by_epoch.setdefault(key, _PartitionEpoch(*key, row.time_us, row.broker_id))
        state.take(row)
    by_incarnation: dict[int, list[_PartitionEpoch]] = {}
    for key in sorted(by_epoch):
        by_incarnation.setdefault(key[0], []).append(by_epoch[key])
    return by_incarnation


class _Open(NamedTuple):
    """A window that has not ended yet."""

    kind: str
    state: _PartitionEpoch
    min_isr: int | None
    missing: int

    def closed(self, topic: str, partition: int, time_us: int | None, clock: int | None) -> Unavailability:
        return Unavailability(
            topic=topic,
            partition=partition,
            state=self.kind,
            started_time_us=self.state.time_us,
            started_clock=self.state.clock,
            ended_time_us=time_us,
            ended_clock=clock,
            leader_epoch=self.state.leader_epoch,
            isr=self.state.isr,
            min_insync_replicas=self.min_isr,
            states_missing=self.missing,
        )


def _kind(state: _PartitionEpoch, before: str | None, min_isr: int | None) -> str | None:
    if state.leader == NO_LEADER:
        return WITHOUT_LEADER
    if state.leader == LEADER_DURING_DELETE:
        return None
    if state.isr is None or min_isr is None:
        return before if before == UNDER_MIN_ISR and state.isr is None else None
    return UNDER_MIN_ISR if len(state.isr) < min_isr else None


def _of_incarnation(
    topic: str, partition: int, states: Sequence[_PartitionEpoch], min_isr_of: MinIsrOf
) -> list[Unavailability]:
    windows: list[Unavailability] = []
    current: _Open | None = None
    before: _PartitionEpoch | None = None
    for state in states:
        if before is not None:
            state.leader = before.leader if state.leader is None else state.leader
            state.leader_epoch = before.leader_epoch if state.leader_epoch is None else state.leader_epoch
            state.replicas = before.replicas if state.replicas is None else state.replicas
        told_by = state.leader if state.leader is not None and state.leader >= 0 else state.clock
        min_isr = min_isr_of(told_by, state.time_us, state.replicas)
        kind = _kind(state, None if current is None else current.kind, min_isr)
        missing = 0 if before is None else state.partition_epoch - before.partition_epoch - 1
        if current is not None:
            current = current._replace(missing=current.missing + missing)
            if kind != current.kind:
                windows.append(current.closed(topic, partition, state.time_us, state.clock))
                current = None
        if current is None and kind is not None:
            current = _Open(kind, state, min_isr, 0)
        before = state
    if current is not None:
        windows.append(current.closed(topic, partition, None, None))
    return windows


def _machine_windows(states: Iterable[StateRow], rows: Sequence[LeadershipRow]) -> list[Unavailability]:
    """Times in which ZooKeeper controllers held the partition for offline.

    It ends as one of them elects. A new controller says nothing of a leader that it finds alive; that one's lines do.
    """
    windows: list[Unavailability] = []
    opened: StateRow | None = None
    last: StateRow | None = None
    for row in in_order(states):
        gone = row.to_state == OFFLINE and row.succeeded
        if gone or (row.from_state == OFFLINE and row.to_state == ONLINE and not row.succeeded):
            opened, last = row if opened is None else opened, row
        elif opened is not None and last is not None and row.succeeded and row.to_state in (ONLINE, NON_EXISTENT):
            windows.append(_offline(opened, _taken_up(rows, opened, last), row))
            opened = last = None
    if opened is not None and last is not None:
        windows.append(_offline(opened, _taken_up(rows, opened, last), None))
    return windows


def _taken_up(rows: Iterable[LeadershipRow], opened: StateRow, last: StateRow) -> tuple[int, int] | None:
    """A leader that begins, or that a later controller tells to lead."""
    begun = [
        (row.time_us, row.broker_id)
        for row in rows
        if row.time_us > last.time_us
        and (
            row.role == "leader_start"
            or (row.role == "request" and row.leader == row.broker_id and _later(row, opened, last))
        )
    ]
    return min(begun, default=None)


def _later(row: LeadershipRow, opened: StateRow, last: StateRow) -> bool:
    epochs = [state.controller_epoch for state in (opened, last) if state.controller_epoch is not None]
    return row.controller_epoch is not None and all(row.controller_epoch > epoch for epoch in epochs)


def _offline(row: StateRow, up: tuple[int, int] | None, online: StateRow | None) -> Unavailability:
    ends = [end for end in (up, None if online is None else (online.time_us, online.broker_id)) if end is not None]
    until_us, clock = min(ends, default=(None, None), key=lambda end: end[0])
    return Unavailability(row.topic, row.partition, WITHOUT_LEADER, row.time_us, row.broker_id, until_us, clock)


def _joined(windows: Iterable[Unavailability]) -> list[Unavailability]:
    """Overlapping windows of one kind are one: it begins with the first and ends with the first line of its end."""
    joined: list[Unavailability] = []
    for window in sorted(windows, key=lambda window: (window.started_time_us, window.leader_epoch is None)):
        last = joined[-1] if joined else None
        until = None if last is None else last.ended_time_us
        if last is None or (until is not None and window.started_time_us > until + _ONE_WINDOW_US):
            joined.append(window)
            continue
        ends = [(w.ended_time_us, w.ended_clock) for w in (last, window) if w.ended_time_us is not None]
        ended_us, clock = min(ends, default=(None, None), key=lambda end: end[0])
        joined[-1] = last._replace(
            ended_time_us=ended_us,
            ended_clock=clock,
            leader_epoch=window.leader_epoch if last.leader_epoch is None else last.leader_epoch,
            isr=window.isr if last.isr is None else last.isr,
            min_insync_replicas=window.min_insync_replicas if last.isr is None else last.min_insync_replicas,
            states_missing=last.states_missing + window.states_missing,
        )
    return joined


def availability(
    rows: Sequence[LeadershipRow],
    states: Sequence[StateRow],
    records: Sequence[RecordRow],
    min_isr_of: MinIsrOf,
    kraft: bool,
    deleted_us: Sequence[int] = (),
    refused: Mapping[int, int] | None = None,
) -> list[Unavailability]:
    """Windows of one partition, in the order of time.

    Args:
        rows: `silver.leader_and_isr` of the partition, and its leaders' committed ISR changes in the same shape.
        states: `silver.partition_states` of the partition.
        records: metadata records of the partition, of one node's copy.
        deleted_us: when its topic was deleted.
        refused: acks=all produces that were refused for want of in-sync replicas, by second.
    """
    named = next((row for some in (rows, states, records) for row in some), None)
    if named is None:
        return []
    by_incarnation = _states([*rows, *states, *records], lives_of(states, rows, records), kraft)
    firsts = [min(state.time_us for state in shown) for shown in by_incarnation.values()]
    windows: list[Unavailability] = []
    for at, shown in enumerate(by_incarnation.values()):
        until_us = firsts[at + 1] if at + 1 < len(firsts) else None
        of_incarnation = _of_incarnation(named.topic, named.partition, shown, min_isr_of)
        windows += [_ended(window, until_us, deleted_us) for window in of_incarnation]
    offline = [window for window in windows if window.state == WITHOUT_LEADER]
    if not kraft:
        offline += [_ended(window, None, deleted_us) for window in _machine_windows(states, rows)]
    offline = [window for window in _joined(offline) if kraft or not _at_once(window)]
    under = [piece for window in windows if window.state != WITHOUT_LEADER for piece in _without(window, offline)]
    under = [window._replace(produces_refused=_within(window, refused or {})) for window in under]
    lasting = [
        window
        for window in (*offline, *under)
        if window.ended_time_us is None or window.ended_time_us > window.started_time_us
    ]
    return sorted(lasting, key=lambda window: (window.started_time_us, window.state))


def _at_once(window: Unavailability) -> bool:
    ended = window.ended_time_us
    return ended is not None and ended - window.started_time_us < _AT_ONCE_US


def _without(window: Unavailability, offline: Iterable[Unavailability]) -> list[Unavailability]:
    """A window outside those without leader."""
    pieces: list[Unavailability] = []
    rest: Unavailability | None = window
    for gap in offline:
        if rest is None:
            break
        until, back = rest.ended_time_us, gap.ended_time_us
        if (until is not None and gap.started_time_us >= until) or (back is not None and back <= rest.started_time_us):
            continue
        if gap.started_time_us > rest.started_time_us:
            pieces.append(rest._replace(ended_time_us=gap.started_time_us, ended_clock=gap.started_clock))
        if back is None or gap.ended_clock is None or (until is not None and back >= until):
            rest = None
        else:
            rest = rest._replace(started_time_us=back, started_clock=gap.ended_clock)
    return pieces if rest is None else [*pieces, rest]


def _ended(window: Unavailability, next_incarnation_us: int | None, deleted_us: Iterable[int]) -> Unavailability:
    """With its topic a partition ends, and what it lacked."""
    ends = [at for at in (*deleted_us, next_incarnation_us) if at is not None and at > window.started_time_us]
    if window.ended_time_us is not None or not ends:
        return window
    return window._replace(ended_time_us=min(ends), ended_clock=None)


def _within(window: Unavailability, refused: Mapping[int, int]) -> int:
    until = window.ended_time_us
    return sum(
        count
        for second, count in refused.items()
        if second >= window.started_time_us // SECOND_US and (until is None or second <= until // SECOND_US)
    )
