"""Windows in which a replica was outside the committed in-sync set, read off the timeline of its partition.

A replica is back as soon as a later state has it in the in-sync set, or as leader. A replica that a reassignment
removes, or whose log is deleted, is not absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from pipelines.controllers.partition_timeline import BY_CONTROLLER, PartitionSpan
from pipelines.controllers.partition_timeline import DELETED as TOPIC_DELETED
from pipelines.kafka.controller_rows import NO_LEADER

JOINED: Final = "joined"
ELECTED: Final = "elected"
REMOVED: Final = "removed"
DELETED: Final = "deleted"
#: A live broker deletes its log so soon after a controller has taken the replica out to remove it, microseconds.
_DELETES_US: Final = 10_000_000


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


def isr_absences(timeline: Sequence[PartitionSpan]) -> list[IsrAbsence]:
    """Return the absences of one partition, in the order of time."""
    lives = groupby(timeline, key=lambda span: span.incarnation)
    absences = [absence for _, spans in lives for absence in _of_incarnation(spans)]
    return sorted(absences, key=lambda each: (each.left_time_us, each.replica_id))


def _of_incarnation(spans: Iterable[PartitionSpan]) -> list[IsrAbsence]:
    closed: list[IsrAbsence] = []
    away: dict[int, IsrAbsence] = {}
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

    for now in spans:
        if now.state == TOPIC_DELETED:
            for replica_id in sorted(away.keys() - removed):
                end(replica_id, now, DELETED)
            break
        if now.deleted_replica is not None:
            end(now.deleted_replica, now, REMOVED)
            inside.discard(now.deleted_replica)
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
            for replica_id in sorted(inside - members - away.keys()):
                without = replica_id, NO_LEADER if leader is None else leader, now.made_by, tuple(sorted(members))
                away[replica_id] = IsrAbsence(*without, now.begin_by_us, now.begin_clock, None, None, None)
                if replica_id in planned:
                    removed.add(replica_id)
            inside = members
    return [*closed, *(absence for replica_id, absence in away.items() if replica_id not in removed)]


def _is_deleted_live(absence: IsrAbsence, now: PartitionSpan) -> bool:
    """Return True if a controller took a replica out that lives, and had its log deleted."""
    is_prompt = now.begin_by_us - absence.left_time_us <= _DELETES_US
    return absence.made_by == BY_CONTROLLER and now.deleted_replica is not None and is_prompt
