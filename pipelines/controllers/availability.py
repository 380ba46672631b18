"""Windows in which a partition had no leader, or fewer in-sync replicas than ``min.insync.replicas``.

They are made of its states in the order of their partition epochs (`pipelines.kafka.partition_history`). Epochs that no
line shows are counted: in one of them the window may have been interrupted.

A ZooKeeper controller also holds a partition for offline while its znode still names a dead leader
(`PartitionStateMachine`). That it does for some milliseconds at every failover, which `failover` tells of; here it is a
window where no leader was elected within a second.

States that follow within the tick of a log, or faster than two clocks agree, leave no window. A window proves nothing
wrong: which partitions are unavailable follows from which brokers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pipelines.base.instants import SECOND_US
from pipelines.kafka.controller_rows import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    NON_EXISTENT,
    OFFLINE,
    ONLINE,
    LeadershipRow,
    StateRow,
    in_order,
)
from pipelines.kafka.partition_history import PartitionEpoch, PartitionHistory

WITHOUT_LEADER: Final = "offline"
UNDER_MIN_ISR: Final = "under_min_isr"

#: Windows without leader, no further apart, are one: the machine's line and the new state are two lines.
_ONE_WINDOW_US: Final = 1_000_000
#: A ZooKeeper controller that elects within this time does so at once.
_AT_ONCE_US: Final = 1_000_000
#: (broker, instant, number of replicas or None): the partition's min.insync.replicas as that broker knew it.
MinIsrOf = Callable[[int, int, int | None], int | None]


class Unavailability(NamedTuple):
    """A row of gold `availability`; the shell adds the partition. A clock is a broker's id."""

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
    previous_leader: int | None = None  #: leader before a window without leader; None if no line shows it


def _kind(state: PartitionEpoch, before: str | None, min_isr: int | None) -> str | None:
    if state.leader == NO_LEADER:
        return WITHOUT_LEADER
    if state.leader == LEADER_DURING_DELETE:
        return None
    if state.isr is None or min_isr is None:
        return before if before == UNDER_MIN_ISR and state.isr is None else None
    return UNDER_MIN_ISR if len(state.isr) < min_isr else None


def _of_incarnation(states: Iterable[PartitionEpoch], min_isr_of: MinIsrOf) -> list[Unavailability]:
    """Windows that its states show; what one does not tell is as in the one before."""
    windows: list[Unavailability] = []
    current: Unavailability | None = None
    before: PartitionEpoch | None = None
    for shown in states:
        state = shown if before is None else shown.after(before)
        told_by = state.leader if state.leader is not None and state.leader >= 0 else state.clock
        min_isr = min_isr_of(told_by, state.time_us, None if state.replicas is None else len(state.replicas))
        kind = _kind(state, None if current is None else current.state, min_isr)
        if current is not None and before is not None:
            missing = state.partition_epoch - before.partition_epoch - 1
            current = current._replace(states_missing=current.states_missing + missing)
            if kind != current.state:
                windows.append(current._replace(ended_time_us=state.time_us, ended_clock=state.clock))
                current = None
        if current is None and kind is not None:
            began = state.time_us, state.clock
            current = Unavailability(
                *(kind, *began, None, None, state.leader_epoch, state.isr, min_isr),
                previous_leader=before.leader if kind == WITHOUT_LEADER and before is not None else None,
            )
        before = state
    return windows if current is None else [*windows, current]


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
    return Unavailability(WITHOUT_LEADER, row.time_us, row.broker_id, until_us, clock)


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
            previous_leader=window.previous_leader if last.previous_leader is None else last.previous_leader,
        )
    return joined


def availability(
    history: PartitionHistory,
    rows: Sequence[LeadershipRow],
    states: Sequence[StateRow],
    min_isr_of: MinIsrOf,
    kraft: bool,
    deleted_us: Sequence[int] = (),
    refused: Mapping[int, int] | None = None,
) -> list[Unavailability]:
    """Windows of one partition, in the order of time.

    Args:
        rows: `silver.leader_and_isr` of the partition.
        states: `silver.partition_states` of the partition.
        deleted_us: when its topic was deleted.
        refused: acks=all produces that were refused for want of in-sync replicas, by second.
    """
    firsts = [min(state.time_us for state in shown) for shown in history.states.values()]
    windows: list[Unavailability] = []
    for at, shown in enumerate(history.states.values()):
        until_us = firsts[at + 1] if at + 1 < len(firsts) else None
        of_incarnation = _of_incarnation(shown, min_isr_of)
        windows += [_ended(window, until_us, deleted_us) for window in of_incarnation]
    offline = [window for window in windows if window.state == WITHOUT_LEADER]
    if not kraft:
        offline += [_ended(window, None, deleted_us) for window in _machine_windows(states, rows)]
    offline = [_after_leader(window, history) for window in _joined(offline) if kraft or not _at_once(window)]
    under = [piece for window in windows if window.state != WITHOUT_LEADER for piece in _without(window, offline)]
    under = [window._replace(produces_refused=_within(window, refused or {})) for window in under]
    lasting = [
        window
        for window in (*offline, *under)
        if window.ended_time_us is None or window.ended_time_us > window.started_time_us
    ]
    return sorted(lasting, key=lambda window: (window.started_time_us, window.state))


def _after_leader(window: Unavailability, history: PartitionHistory) -> Unavailability:
    """Return the window with the leader that leader epochs show before it, if states do not show one."""
    if window.previous_leader is not None and window.previous_leader >= 0:
        return window
    before = [
        epoch.leader
        for epoch in history.epochs
        if epoch.leader is not None and epoch.leader >= 0 and epoch.begun_us() < window.started_time_us
    ]
    return window._replace(previous_leader=before[-1] if before else None)


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
