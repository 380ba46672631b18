"""Windows in which a replica was outside the committed in-sync set, read off the timeline of its partition.

A replica is back as soon as a later state has it in the in-sync set, or as leader. A replica that a reassignment
removes, or whose log is deleted, is not absent. Where states are missing between two that lines show, the replica may
have been back: the absence ends with the first of the two, and another one begins with the second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from highwater.pipelines.controllers.partition_timeline import BY_CONTROLLER, BY_LEADER, UNKNOWN, PartitionSpan
from highwater.pipelines.controllers.partition_timeline import DELETED as TOPIC_DELETED
from highwater.pipelines.kafka.controller_rows import NO_LEADER

JOINED: Final = "joined"
ELECTED: Final = "elected"
REMOVED: Final = "removed"
DELETED: Final = "deleted"
UNSEEN: Final = "unseen"
#: A live broker deletes its log so soon after a controller has taken the replica out to remove it, microseconds.
_DELETES_US: Final = 10_000_000


class IsrAbsence(NamedTuple):
    """A row of gold `isr_absences`, without cluster and partition. A clock is a broker id: its clock gave the time."""

    replica_id: int
    leader: int  #: leader of the state without the replica; -1 for none
    made_by: str  #: `BY_LEADER`, `BY_CONTROLLER`
    isr: tuple[int, ...]  #: in-sync replicas without it
    left_time_us: int
    left_clock: int
    #: last instant at which the replica was certainly outside: the begin of the last state that shows it outside, or
    #: the end of that state if the next one is known
    outside_time_us: int
    back_time_us: int | None = None  #: first instant of the state that ended it; None if no line shows one
    back_clock: int | None = None
    ended: str | None = None  #: `JOINED`, `ELECTED`, `REMOVED`, `DELETED`, `UNSEEN`; None as `back_time_us`


def find_isr_absences(timeline: Sequence[PartitionSpan]) -> list[IsrAbsence]:
    """Return the absences of replicas from the ISR of one partition, in time order."""
    lives = groupby(timeline, key=lambda span: span.incarnation)
    loggers = {span.begin_clock for span in timeline}
    absences = [absence for _, spans in lives for absence in _find_in_incarnation(_select_own_epochs(spans), loggers)]
    return sorted(absences, key=lambda each: (each.left_time_us, each.replica_id))


def _select_own_epochs(spans: Iterable[PartitionSpan]) -> list[PartitionSpan]:
    """Remove partition epochs that a state only inherited from the state before: a new leader epoch has a new one."""
    own: list[PartitionSpan] = []
    shown: PartitionSpan | None = None
    for span in spans:
        if shown is None or span.partition_epoch != shown.partition_epoch:
            shown = span
        own.append(span if span.leader_epoch == shown.leader_epoch else span._replace(partition_epoch=None))
    return own


def _find_in_incarnation(spans: Sequence[PartitionSpan], loggers: Collection[int]) -> list[IsrAbsence]:
    """Return the absences of replicas from the ISR within one incarnation of a topic.

    Args:
        spans: states of the partition, in order.
        loggers: ids of brokers with lines about the partition.
    """
    closed: list[IsrAbsence] = []
    away: dict[int, IsrAbsence] = {}
    unsure: set[int] = set()  # absent replicas that may have been back since `outside_time_us`
    inside: set[int] = set()
    leader: int | None = None
    planned: set[int] = set()  # replicas that a reassignment removes
    removed: set[int] = set()  # planned ones that have left

    def end(replica_id: int, now: PartitionSpan, how: str) -> None:
        absence = away.pop(replica_id, None)
        if absence is None:
            return
        if how != REMOVED or not (replica_id in removed or _is_deleted_live(absence, now)):
            closed.append(absence._replace(back_time_us=now.begin_by_us, back_clock=now.begin_clock, ended=how))
        planned.discard(replica_id)
        removed.discard(replica_id)
        unsure.discard(replica_id)

    def begin(replica_id: int, now: PartitionSpan) -> None:
        members = () if now.isr is None else tuple(sorted(now.isr))
        without = replica_id, NO_LEADER if leader is None else leader, now.made_by, members
        away[replica_id] = IsrAbsence(*without, now.begin_by_us, now.begin_clock, now.begin_by_us)

    for before, now in pairwise([None, *spans]):
        assert now is not None
        outside_us = now.begin_by_us if before is None else _find_held_until_us(before, now, loggers)
        for replica_id in away.keys() - unsure:
            away[replica_id] = away[replica_id]._replace(outside_time_us=max(away[replica_id].left_time_us, outside_us))
        if before is not None and not _is_next(before, now, loggers):
            unsure |= away.keys()
        if now.state == TOPIC_DELETED:
            for replica_id in sorted(away.keys() - removed):
                end(replica_id, now, UNSEEN if replica_id in unsure else DELETED)
            break
        if now.deleted_replica is not None:
            end(now.deleted_replica, now, REMOVED)
            inside.discard(now.deleted_replica)
            if now.state == UNKNOWN:  # the leader's log
                unsure, inside = {*away}, set()
            continue
        has_moved, leader = now.leader not in (None, leader), now.leader
        members = None if now.isr is None else set(now.isr)
        if leader is not None:
            inside.add(leader)
            end(leader, now, ELECTED if has_moved else JOINED)
        planned |= set(now.removing or ())
        if now.replicas is not None:
            # A reassignment that was cancelled leaves its replicas assigned.
            planned = (planned | inside) - set(now.replicas) if not now.removing else planned
            for replica_id in [*away]:
                if replica_id not in now.replicas:
                    end(replica_id, now, REMOVED)
        if members is not None:
            for replica_id in sorted(members & away.keys()):
                end(replica_id, now, JOINED)
            for replica_id in sorted(unsure - removed):
                end(replica_id, now, UNSEEN)
                begin(replica_id, now)
            for replica_id in sorted(inside - members - away.keys()):
                begin(replica_id, now)
                if replica_id in planned:
                    removed.add(replica_id)
            inside = members
        elif now.state == UNKNOWN:
            unsure |= away.keys()
    return [*closed, *(absence for replica_id, absence in away.items() if replica_id not in removed)]


def _is_next(before: PartitionSpan, now: PartitionSpan, loggers: Collection[int]) -> bool:
    """Return True if no state is missing between two, by partition epochs, else by leader epochs.

    A leader in `loggers` logs each change that it makes.
    """
    epochs = before.partition_epoch, now.partition_epoch
    if epochs[0] is not None and epochs[1] is not None and epochs[0] != epochs[1]:
        return epochs[1] == epochs[0] + 1
    epochs = before.leader_epoch, now.leader_epoch
    if epochs[0] is not None and epochs[1] is not None and epochs[1] > epochs[0] + 1:
        return False
    return before.leader is None or before.leader in loggers


def _find_held_until_us(before: PartitionSpan, now: PartitionSpan, loggers: Collection[int]) -> int:
    """Return the last time at which the state `before` certainly held, us.

    A leader logs a change when the answer arrives, and an election when its leadership begins.
    """
    is_prompt = now.made_by == BY_LEADER or now.begin_clock == now.leader
    if is_prompt and _is_next(before, now, loggers):
        return now.begin_by_us
    return before.begin_by_us if now.begin_after_us is None else now.begin_after_us


def _is_deleted_live(absence: IsrAbsence, now: PartitionSpan) -> bool:
    """Return True if a controller removed a live replica from the ISR, and had its log deleted."""
    is_prompt = now.begin_by_us - absence.left_time_us <= _DELETES_US
    return absence.made_by == BY_CONTROLLER and now.deleted_replica is not None and is_prompt
