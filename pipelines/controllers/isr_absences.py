"""Windows in which a replica was outside the committed in-sync set.

Only committed states count: a proposal may be refused, or its answer may never come. Up to Kafka 2.3 the line of a
commit is TRACE. There the leader writes to ZooKeeper at once, so its proposal counts if nothing contradicts it
(`unseen_commits`).

A replica is back as soon as a later state has it in the in-sync set, or as leader. A replica that a reassignment
removes, or whose log is deleted, is not absent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from pipelines.kafka.controller_rows import (
    ASKED,
    LEADER_DURING_DELETE,
    NO_LEADER,
    REFUSED,
    SHRINK_ASKED,
    LeadershipRow,
)
from pipelines.kafka.partition_history import PartitionEpoch, PartitionHistory

BY_LEADER: Final = "leader"
BY_CONTROLLER: Final = "controller"
JOINED: Final = "joined"
ELECTED: Final = "elected"
REMOVED: Final = "removed"
DELETED: Final = "deleted"
_PROPOSALS: Final = (ASKED, SHRINK_ASKED)
#: A live broker deletes its log so soon after a controller has taken the replica out to remove it, microseconds.
_DELETES_US: Final = 10_000_000
#: (broker, instant): True if the broker commits ISRs without a line.
CommitsUnseen = Callable[[int, int], bool]


class IsrAbsence(NamedTuple):
    """A row of gold `isr_absences`; the shell adds the partition. A clock is a broker's id."""

    replica_id: int
    leader: int  #: leader of the state without the replica; -1 for none
    made_by: str  #: `BY_LEADER`, `BY_CONTROLLER`
    isr: tuple[int, ...]  #: in-sync replicas without it
    left_time_us: int
    left_clock: int
    back_time_us: int | None  #: None if the absence lasts until the logs end
    back_clock: int | None
    ended: str | None  #: `JOINED`, `ELECTED`, `REMOVED`, `DELETED`; None if the absence lasts until the logs end


class _Shown(NamedTuple):
    """What one committed state, or one line without a partition epoch, shows."""

    time_us: int
    clock: int
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] = ()
    by_leader: bool = False
    led_before: int | None = None
    gone: int | None = None  #: replica whose log is deleted
    believed: tuple[int, ...] | None = None  #: in-sync replicas that a proposal changes, as its leader knows them


def unseen_commits(
    history: PartitionHistory, changes: Iterable[LeadershipRow], commits_unseen: CommitsUnseen
) -> list[LeadershipRow]:
    """Return proposals that were committed without a line, with their partition epochs where states show those.

    Args:
        changes: `silver.isr_changes` of the partition, proposals and refusals among them.
    """
    by_broker: dict[int, list[LeadershipRow]] = defaultdict(list)
    for row in sorted(changes, key=lambda row: (row.time_us, row.ref)):
        by_broker[row.broker_id].append(row)
    proposals = [
        row
        for rows in by_broker.values()
        for row, after in zip(rows, [*rows[1:], None], strict=True)
        if row.role in _PROPOSALS and commits_unseen(row.broker_id, row.time_us) and not _is_denied(row, after)
    ]
    states = [state for shown in history.states.values() for state in shown]
    commits: list[LeadershipRow] = []
    for row in sorted(proposals, key=lambda row: (row.time_us, row.ref)):
        before = [state for state in states if state.time_us <= row.time_us]
        after = [state for state in states if state.time_us > row.time_us]
        if not before:
            commits.append(row)
            continue
        since = [commit for commit in commits if commit.time_us >= before[-1].time_us]
        leader = next((state.leader for state in reversed(before) if state.leader is not None), None)
        epoch = before[-1].partition_epoch + len(since) + 1
        if leader in (None, row.broker_id) and (not after or _has_room(row, epoch, before[-1], after[0])):
            commits.append(row._replace(partition_epoch=epoch))
    return commits


def _is_denied(row: LeadershipRow, after: LeadershipRow | None) -> bool:
    """Return True if the leader's next line shows that its proposal was not committed."""
    if after is None:
        return False
    is_other = after.previous_isr is not None and set(after.previous_isr) != set(row.isr or ())
    return after.role == REFUSED or (after.role in _PROPOSALS and is_other)


def _has_room(row: LeadershipRow, epoch: int, before: PartitionEpoch, after: PartitionEpoch) -> bool:
    """Return True if the partition epochs of two states leave room for a proposal between them."""
    if after.incarnation != before.incarnation or after.partition_epoch > epoch:
        return True
    return after.partition_epoch == epoch and after.isr is not None and set(after.isr) == set(row.isr or ())


def isr_absences(
    history: PartitionHistory,
    rows: Sequence[LeadershipRow],
    changes: Iterable[LeadershipRow] = (),
    commits: Iterable[LeadershipRow] = (),
    deleted_us: Sequence[int] = (),
) -> list[IsrAbsence]:
    """Return the absences of one partition's replicas, in the order of time.

    Args:
        history: with the commits of `unseen_commits` that have a partition epoch.
        rows: `silver.leader_and_isr` of the partition.
        changes: `silver.isr_changes` of the partition.
        commits: those of `unseen_commits` without a partition epoch.
        deleted_us: when the topic was deleted.
    """
    births_us = [min(state.time_us for state in shown) for shown in history.states.values()][1:]
    shown = (*map(_line, rows), *map(_belief, changes), *map(_commit, commits))
    lines = [line for line in shown if line is not None]
    absences: list[IsrAbsence] = []
    for life, states in enumerate([*history.states.values()] or [[]]):
        of_life = [line for line in lines if bisect_right(births_us, line.time_us) == life]
        ends_us = [*deleted_us, *births_us[life : life + 1]]
        absences += [_deleted(each, ends_us) for each in _of_incarnation(_in_order(states, of_life))]
    return sorted(absences, key=lambda each: (each.left_time_us, each.replica_id))


def _line(row: LeadershipRow) -> _Shown | None:
    """Return what a line shows that has no partition epoch: who leads, or that a log is deleted."""
    if row.role == "stopped":
        return _Shown(row.time_us, row.broker_id, gone=row.broker_id)
    if row.role == "leader_start" and row.partition_epoch is None:
        return _Shown(row.time_us, row.broker_id, row.leader)
    return None


def _belief(row: LeadershipRow) -> _Shown | None:
    if row.role not in _PROPOSALS or row.previous_isr is None:
        return None
    return _Shown(row.time_us, row.broker_id, believed=row.previous_isr)


def _commit(row: LeadershipRow) -> _Shown | None:
    if row.partition_epoch is not None:
        return None
    return _Shown(row.time_us, row.broker_id, row.broker_id, row.isr, by_leader=True)


def _in_order(states: Sequence[PartitionEpoch], lines: Iterable[_Shown]) -> list[_Shown]:
    """Return states in the order of their epochs; a line comes after the states that were shown before it.

    A proposal comes before a state of the same instant.
    """
    shown: list[tuple[int, int, _Shown]] = []
    reached_us = 0
    for state in states:
        reached_us = max(reached_us, state.time_us)
        values = (state.leader, state.isr, state.replicas, state.removing or (), state.by_leader, state.led_before)
        shown.append((reached_us, 1, _Shown(state.time_us, state.clock, *values)))
    shown += [(line.time_us, 2 if line.believed is None else 0, line) for line in lines]
    return [each for *_, each in sorted(shown, key=lambda item: item[:2])]


def _of_incarnation(shown: Iterable[_Shown]) -> list[IsrAbsence]:
    closed: list[IsrAbsence] = []
    away: dict[int, IsrAbsence] = {}
    inside: set[int] = set()
    leader: int | None = None
    planned: set[int] = set()  # replicas that a reassignment removes
    removed: set[int] = set()  # planned ones that have left
    is_known = False  # a state has shown the in-sync set

    def end(replica_id: int, now: _Shown, how: str) -> None:
        absence = away.pop(replica_id, None)
        if absence is None:
            return
        if how != REMOVED or not (replica_id in removed or _is_deleted_live(absence, now)):
            closed.append(absence._replace(back_time_us=now.time_us, back_clock=now.clock, ended=how))
        planned.discard(replica_id)
        removed.discard(replica_id)

    for now in shown:
        if now.leader == LEADER_DURING_DELETE:
            continue
        if now.gone is not None:
            end(now.gone, now, REMOVED)
            inside.discard(now.gone)
            continue
        if now.believed is not None:
            if not is_known:
                inside, is_known = set(now.believed), True
            continue
        led_before = now.led_before if leader is None else leader
        has_moved = now.leader is not None and now.leader != leader
        leader = now.leader if now.leader is not None else leader
        members = None if now.isr is None else set(now.isr)
        if leader is not None and leader >= 0 and (has_moved or members is not None):
            inside.add(leader)
            end(leader, now, ELECTED if has_moved else JOINED)
        planned |= set(now.removing)
        if now.replicas is not None:
            # A reassignment that was cancelled leaves its replicas assigned.
            planned = (planned | inside) - set(now.replicas) if not now.removing else planned
            for replica_id in [*away]:
                if replica_id not in now.replicas:
                    end(replica_id, now, REMOVED)
        if members is not None:
            if led_before is not None and led_before >= 0:
                inside.add(led_before)
            for replica_id in sorted(members & away.keys()):
                end(replica_id, now, JOINED)
            made_by = BY_LEADER if now.by_leader else BY_CONTROLLER
            for replica_id in sorted(inside - members - away.keys()):
                of = replica_id, NO_LEADER if leader is None else leader, made_by, tuple(sorted(members))
                away[replica_id] = IsrAbsence(*of, now.time_us, now.clock, None, None, None)
                if replica_id in planned:
                    removed.add(replica_id)
            inside, is_known = members, True
    return [*closed, *(absence for replica_id, absence in away.items() if replica_id not in removed)]


def _is_deleted_live(absence: IsrAbsence, now: _Shown) -> bool:
    """Return True if a controller took a replica out that lives, and had its log deleted."""
    is_prompt = now.time_us - absence.left_time_us <= _DELETES_US
    return absence.made_by == BY_CONTROLLER and now.gone is not None and is_prompt


def _deleted(absence: IsrAbsence, ends_us: Iterable[int]) -> IsrAbsence:
    """End an absence that is open with its topic."""
    ends = [end_us for end_us in ends_us if end_us > absence.left_time_us]
    if absence.ended is not None or not ends:
        return absence
    return absence._replace(back_time_us=min(ends), ended=DELETED)
