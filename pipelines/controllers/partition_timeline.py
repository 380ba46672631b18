"""The timeline of a partition: its leader, committed in-sync set and assignment, state after state.

Leader and in-sync set change together, and each change increments the partition epoch. States are in the order of
that epoch, never of the clocks of the brokers that log them. Lines without a partition epoch come after the states
that lines show before them. Proposals and refusals are no states.

Each change has bounds: the last instant at which the state before certainly held, and the first instant at which the
new state is certain. Windows without a leader, absences from the in-sync set and reassignments are read off these
rows. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from highwater.pipelines.controllers.isr_commits import find_committed_proposals
from highwater.pipelines.kafka.controller_rows import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    NON_EXISTENT,
    NOWHERE,
    OFFLINE,
    ONLINE,
    EventRow,
    LeadershipRow,
    LineRef,
    StateRow,
)
from highwater.pipelines.kafka.partition_history import PartitionEpoch, PartitionHistory

# States of a partition.
LED: Final = "led"
LEADERLESS: Final = "leaderless"
DELETED: Final = "deleted"
UNKNOWN: Final = "unknown"

BY_LEADER: Final = "leader"
BY_CONTROLLER: Final = "controller"

# Reasons of a state.
FIRST_SHOWN: Final = "first_shown"
CREATED: Final = "created"
ELECTED: Final = "elected"
LEADER_LOST: Final = "leader_lost"
TOPIC_DELETED: Final = "topic_deleted"
ISR_SHRUNK: Final = "isr_shrunk"
ISR_EXPANDED: Final = "isr_expanded"
ISR_CHANGED: Final = "isr_changed"
REASSIGNMENT_BEGAN: Final = "reassignment_began"
REASSIGNMENT_ENDED: Final = "reassignment_ended"
REPLICA_DELETED: Final = "replica_deleted"
NEW_EPOCH: Final = "new_epoch"
#: Columns that distinguish two states.
_DISTINCT: Final = ("state", "leader", "leader_epoch", "isr", "replicas", "adding", "removing", "deleted_replica")


#: Columns of a state whose topic was deleted.
_GONE: Final = {"state": DELETED, "leader": None, "isr": None}


class PartitionSpan(NamedTuple):
    """A row of gold `partition_timeline`, without cluster and partition. A clock is a broker id."""

    incarnation: int  #: of the topic, counted from 0 as the logs show them
    state: str  #: `LED`, `LEADERLESS`, `DELETED`, `UNKNOWN`
    reason: str
    made_by: str  #: `BY_LEADER`, `BY_CONTROLLER`
    begin_by_us: int  #: first instant at which the state is certain
    begin_clock: int
    leader: int | None = None  #: None if unknown, or if no one leads
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    isr: tuple[int, ...] | None = None  #: committed in-sync replicas
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    deleted_replica: int | None = None  #: replica whose log was deleted as the state began
    begin_after_us: int | None = None  #: last instant at which the state before certainly held; None: before the logs
    end_after_us: int | None = None  #: last instant at which the state certainly held; None: to the end of the logs
    end_by_us: int | None = None  #: first instant at which the next state is certain
    end_clock: int | None = None
    ref: LineRef = NOWHERE


@dataclass
class _Shown:
    """A partition state, or a log line without a partition epoch."""

    time_us: int
    clock: int
    ref: LineRef
    changes: dict[str, Any] = field(default_factory=dict)  #: columns of `PartitionSpan`
    by_leader: bool = False
    is_decided: bool = True  #: the line is of the change itself, not of a broker that heard of it
    led_before: int | None = None
    #: the controller's machine: True if it holds the partition for offline from now on, False if no longer
    held: bool | None = None
    controller_epoch: int | None = None
    #: the line shows a leader that starts, or one that the controller's machine elects
    is_start: bool = False
    is_own: bool = False  #: a leader's own line without a partition epoch
    is_belief: bool = False  #: the line shows the in-sync set that a committed proposal changes
    is_state: bool = False  #: a state with a partition epoch
    is_shown_by_state: bool = False  #: a state shows the same leader and in-sync set
    is_unled: bool = False  #: a follower's line of an epoch, without its leader


def build_partition_timeline(
    history: PartitionHistory,
    rows: Sequence[LeadershipRow] = (),
    states: Sequence[StateRow] = (),
    changes: Sequence[LeadershipRow] = (),
    commits: Sequence[LeadershipRow] = (),
    deleted: Iterable[EventRow] = (),
) -> list[PartitionSpan]:
    """Return the states of one partition in order.

    Args:
        history: leader epochs, including the commits of `unseen_commits` that have a partition epoch.
        rows: `silver.leader_and_isr` of the partition.
        states: `silver.partition_states` of the partition. Only ZooKeeper controllers log them.
        changes: `silver.isr_changes` of the partition.
        commits: result of `unseen_commits`.
        deleted: lines that show the deletion of the topic.
    """
    proposals = find_committed_proposals(changes, commits)
    led = {(epoch.incarnation, epoch.leader_epoch) for epoch in history.epochs if epoch.leader is not None}
    by_life: dict[int, list[_Shown]] = defaultdict(list)
    lines: list[tuple[LeadershipRow | StateRow | EventRow, _Shown | None]] = [
        *((row, _read_role_line(row)) for row in rows),
        *((row, _read_machine_line(row)) for row in states),
        *((row, _own(row, row.previous_isr, is_belief=True)) for row in proposals if row.previous_isr is not None),
        *((row, _own(row, row.isr)) for row in commits if row.partition_epoch is None),
        *((row, _Shown(row.time_us, row.broker_id, row.ref, dict(_GONE))) for row in deleted),
    ]
    for row, line in lines:
        if line is not None:
            life = history.lives.at(row.time_us, None if isinstance(row, StateRow) else row.topic_id)
            # Lines that name the leader of an epoch show the epoch better.
            if not (line.is_unled and (life, line.changes["leader_epoch"]) in led):
                by_life[life].append(line)
    walk = _Walk(proposals)
    for life in sorted({*history.states, *by_life}):
        shown = _merge_lines(history.states.get(life, ()), by_life[life])
        walk.begin_life(life, shown)
        for each in shown:
            walk.take(each)
    return walk.spans()


def _read_role_line(row: LeadershipRow) -> _Shown | None:
    """Return the leader or the deleted log that a broker's line shows. None if it shows neither."""
    place = row.time_us, row.broker_id, row.ref
    if row.role == "stopped":
        return _Shown(*place, {"deleted_replica": row.broker_id})
    is_start = row.role == "leader_start"
    if row.role == "follower_start" and row.leader is None and row.partition_epoch is None:
        unled = {"state": UNKNOWN, "leader": None, "leader_epoch": row.leader_epoch, "isr": None}
        return _Shown(*place, unled, is_decided=False, held=False, is_unled=True)
    if not is_start and (row.role != "request" or row.leader != row.broker_id or row.controller_epoch is None):
        return None
    leads = {"leader": row.leader, "leader_epoch": row.leader_epoch, "isr": row.isr}
    return _Shown(
        *(*place, leads),
        is_decided=False,
        held=False,
        controller_epoch=row.controller_epoch,
        is_start=is_start,
        is_shown_by_state=row.partition_epoch is not None,
    )


def _read_machine_line(row: StateRow) -> _Shown | None:
    """Return the state that a ZooKeeper controller logged for a partition. None if it shows no change of the leader."""
    place = row.time_us, row.broker_id, row.ref
    is_refused = row.from_state == OFFLINE and row.to_state == ONLINE and not row.succeeded
    if (row.to_state == OFFLINE and row.succeeded) or is_refused:
        return _Shown(*place, {"state": LEADERLESS, "leader": None}, held=True, controller_epoch=row.controller_epoch)
    if not row.succeeded or row.to_state not in (ONLINE, NON_EXISTENT):
        return None
    if row.to_state == NON_EXISTENT:
        return _Shown(*place, dict(_GONE))
    leads = {"leader": row.leader, "leader_epoch": row.leader_epoch, "isr": row.isr}
    return _Shown(*place, leads, held=False, is_start=True, is_shown_by_state=row.partition_epoch is not None)


def _own(row: LeadershipRow, isr: tuple[int, ...] | None, is_belief: bool = False) -> _Shown:
    """Return what a leader's line without a partition epoch shows.

    Args:
        is_belief: the leader had not yet seen that state committed.
    """
    leads = {"leader": row.broker_id, "isr": isr}
    more: dict[str, Any] = {"is_decided": not is_belief, "is_own": True, "is_belief": is_belief}
    return _Shown(row.time_us, row.broker_id, row.ref, leads, by_leader=True, **more)


def _state(state: PartitionEpoch) -> _Shown:
    names = ("leader", "leader_epoch", "partition_epoch", "isr", "replicas", "adding", "removing")
    values = {name: getattr(state, name) for name in names}
    known = {name: value for name, value in values.items() if value is not None or name == "isr"}
    if state.leader == NO_LEADER:
        known |= {"state": LEADERLESS, "leader": None}
    elif state.leader == LEADER_DURING_DELETE:
        known |= _GONE
    place = state.time_us, state.clock, state.ref
    more: dict[str, Any] = {
        "by_leader": state.by_leader,
        "is_decided": state.is_decided,
        "led_before": state.led_before,
    }
    return _Shown(*place, known, is_start=state.by_machine, is_state=True, **more)


def _merge_lines(states: Iterable[PartitionEpoch], lines: Iterable[_Shown]) -> list[_Shown]:
    """Return states in epoch order, merged with lines by time. A line comes after states that are logged before it.

    At equal times, a proposal precedes a state.
    """
    shown: list[tuple[int, int, _Shown]] = []
    reached_us = 0
    for state in states:
        reached_us = max(reached_us, state.time_us)
        shown.append((reached_us, 1, _state(state)))
    shown += [(line.time_us, 0 if line.is_belief else 2, line) for line in lines]
    return [each for *_, each in sorted(shown, key=lambda item: (*item[:2], item[2].ref if item[1] == 2 else NOWHERE))]


class _Walk:
    """Builds the timeline of a partition from states and lines in order.

    Args:
        proposals: ISR proposals of leaders that were committed.
    """

    def __init__(self, proposals: Iterable[LeadershipRow]) -> None:
        self._proposals = sorted(proposals, key=lambda row: row.time_us)
        self._done: list[PartitionSpan] = []
        self._now: PartitionSpan | None = None
        self._life = 0
        #: epochs of controllers whose machine holds the partition for offline; None if no machine does
        self._held: set[int | None] | None = None

    def spans(self) -> list[PartitionSpan]:
        return [*self._done, *([] if self._now is None else [self._now])]

    def begin_life(self, life: int, lines: Sequence[_Shown]) -> None:
        """Begin the next incarnation of a re-created topic. The previous one ends at its first line at the latest."""
        if self._now is not None and self._now.state != DELETED:
            first = min(lines, key=lambda line: line.time_us)
            self._put(_Shown(first.time_us, first.clock, first.ref, dict(_GONE), is_decided=False))
        self._life, self._held = life, None

    def take(self, shown: _Shown) -> None:
        """Add a state or a line to the timeline."""
        now = self._now
        is_gone = now is not None and now.state == DELETED and now.incarnation == self._life
        if is_gone and shown.changes.get("state") != DELETED:
            return
        if shown.is_own and not self._take_of_leader(shown):
            return
        if shown.held:
            self._held = {*(self._held or ()), shown.controller_epoch}
        elif self._held is not None and (shown.is_unled or shown.changes.get("leader") is not None):
            if self._is_led_again(shown):
                self._held = None
            else:
                shown = replace(shown, changes={**shown.changes, "leader": None, "state": LEADERLESS})
        elif shown.held is False and not self._is_news(shown):
            return
        self._put(shown)

    def _take_of_leader(self, shown: _Shown) -> bool:
        """Return True if a leader's line without a partition epoch shows a new state.

        A line of a replaced leader does not. A proposal also shows the ISR before it, which held since the leadership
        began.
        """
        now = self._now if self._now is not None and self._now.incarnation == self._life else None
        if now is None or now.state == UNKNOWN:
            return True
        if self._held is not None or now.leader != shown.changes["leader"]:
            return False
        if shown.is_belief and now.isr is None:
            self._now = now._replace(isr=shown.changes["isr"])
        return not shown.is_belief

    def _is_news(self, shown: _Shown) -> bool:
        """Return True if a line shows a leader that no state contains, and is not older than the states before it."""
        if shown.is_shown_by_state:
            return False
        before, epoch = None if self._now is None else self._now.leader_epoch, shown.changes.get("leader_epoch")
        if before is None or epoch is None:
            return shown.is_start
        return bool(epoch >= before if shown.is_start else epoch > before)

    def _is_led_again(self, shown: _Shown) -> bool:
        """Return True if a line or state shows a leader again after a controller logged that there is none.

        That controller elects, a leader starts, or a later controller finds the leader alive.
        """
        assert self._now is not None
        assert self._held is not None
        if shown.is_start:
            return True
        if shown.controller_epoch is not None:
            return all(shown.controller_epoch > epoch for epoch in self._held if epoch is not None)
        before, epoch = self._now.leader_epoch, shown.changes.get("leader_epoch")
        return before is not None and epoch is not None and epoch > before

    def _put(self, shown: _Shown) -> None:
        before = self._before(shown)
        changes = {"deleted_replica": None, **shown.changes}
        if changes.get("leader") is not None and "state" not in changes:
            changes["state"] = LED
        if before is not None and before.leader is not None and before.leader == changes["deleted_replica"]:
            # No line shows the leader since.
            changes |= {"state": UNKNOWN, "leader": None, "isr": None}
        base = before or PartitionSpan(self._life, UNKNOWN, FIRST_SHOWN, BY_CONTROLLER, shown.time_us, shown.clock)
        if base.incarnation != self._life:
            base = PartitionSpan(self._life, UNKNOWN, CREATED, BY_CONTROLLER, shown.time_us, shown.clock)
        now = base._replace(**changes, incarnation=self._life)
        if "replicas" not in changes and not set(now.isr or ()) <= set(now.replicas or now.isr or ()):
            # Lines do not show the reassignment that assigned a new in-sync replica.
            now = now._replace(replicas=None, adding=None, removing=None)
        if "replicas" not in changes and (base.adding or base.removing) and not (now.adding or now.removing):
            # A reassignment ended or was cancelled: no line shows the replicas since.
            now = now._replace(replicas=None)
        if before is not None and not shown.is_state and all(getattr(before, n) == getattr(now, n) for n in _DISTINCT):
            return
        after_us = self._held_until_us(before, shown)
        now = now._replace(
            reason=_derive_reason(before, now),
            made_by=BY_LEADER if shown.by_leader else BY_CONTROLLER,
            begin_by_us=shown.time_us,
            begin_clock=shown.clock,
            begin_after_us=shown.time_us if before is None and _is_created(now) else after_us,
            ref=shown.ref,
            end_after_us=None,
            end_by_us=None,
            end_clock=None,
        )
        if before is not None:
            ends: dict[str, Any] = {
                "end_after_us": now.begin_after_us,
                "end_by_us": shown.time_us,
                "end_clock": shown.clock,
            }
            self._done.append(before._replace(**ends))
        self._now = now

    def _before(self, shown: _Shown) -> PartitionSpan | None:
        """Return the state before a change. If no line shows it, it is derived from the change. None if unknown."""
        if self._now is None and shown.led_before is not None and shown.led_before >= 0:
            line = shown.time_us, shown.clock
            named: dict[str, Any] = {"leader": shown.led_before, "ref": shown.ref}
            return PartitionSpan(self._life, LED, FIRST_SHOWN, BY_CONTROLLER, *line, **named)
        return self._now

    def _held_until_us(self, before: PartitionSpan | None, shown: _Shown) -> int | None:
        """Return the last time at which the state before a change certainly held, us. None if no line shows it."""
        if before is None:
            return None
        epochs = before.partition_epoch, shown.changes.get("partition_epoch")
        is_next = None in epochs or epochs[1] == (epochs[0] or 0) + 1
        if shown.is_decided and is_next:
            return shown.time_us
        since_us = min(before.begin_by_us, shown.time_us)
        if not (shown.by_leader and is_next):
            return since_us
        asked = [
            row.time_us
            for row in self._proposals
            if row.broker_id == shown.changes.get("leader")
            and row.isr == shown.changes.get("isr")
            and since_us <= row.time_us <= shown.time_us
        ]
        return max(asked, default=since_us)


def _is_created(now: PartitionSpan) -> bool:
    return now.partition_epoch == 0 and now.leader_epoch == 0


def _derive_reason(before: PartitionSpan | None, now: PartitionSpan) -> str:
    """Return why a state began, by what differs from the state before."""
    if now.state == DELETED and (before is None or before.state != DELETED):
        return TOPIC_DELETED
    if before is None or before.incarnation != now.incarnation:
        return CREATED if before is not None or _is_created(now) else FIRST_SHOWN
    if now.deleted_replica is not None:
        return REPLICA_DELETED
    if before.state == UNKNOWN and now.leader_epoch == before.leader_epoch:
        return FIRST_SHOWN
    if now.state != before.state or now.leader != before.leader:
        return {LEADERLESS: LEADER_LOST, LED: ELECTED}.get(now.state, NEW_EPOCH)
    moves = [bool(span.adding or span.removing) for span in (before, now)]
    if moves[0] != moves[1]:
        return REASSIGNMENT_ENDED if moves[0] else REASSIGNMENT_BEGAN
    sets = [None if span.isr is None else set(span.isr) for span in (before, now)]
    if sets[0] is None or sets[1] is None or sets[0] == sets[1]:
        return NEW_EPOCH
    return ISR_SHRUNK if sets[1] < sets[0] else ISR_EXPANDED if sets[1] > sets[0] else ISR_CHANGED
