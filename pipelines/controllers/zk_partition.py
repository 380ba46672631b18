"""A ZooKeeper controller's decisions about a partition, and possible contradictions between two of its lines.

Leader, ISR and epochs of a partition are one znode. Each write increments its version (``zkVersion``), and each
election increments the leader epoch (`LeaderAndIsr.newLeaderAndIsr`). So one version never has two states and one epoch
never has two leaders, on any node. The epochs of one controller's elections never fall. Its thread handles one event at
a time (`ControllerEventManager`; up to 1.0 its lock has the same effect), so the order of its lines in a file is the
order of its decisions. Times are not used, since a clock may be set back.

Requests that the controller *sends* come from its cache, and may contain lower epochs. As a reassignment begins,
`updateLeaderEpoch` of older releases (2.1 shows it) writes and sends the next epoch but does not update the cache. The
requests that follow contain the previous state. So only lines of its state machine (1.1 and later, with epochs) are
compared in order.

A broker that froze may log an older request after a newer one. So only the controller's own lines are compared. The
epochs of a deleted topic's next incarnation restart at 0. Before topic ids no line distinguishes incarnations: then
only lines at most `ONE_INCARNATION_US` apart prove anything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from itertools import pairwise

from highwater.pipelines.controllers.transitions import make_illegal_case
from highwater.pipelines.kafka.controller_rows import (
    LEADER_DURING_DELETE,
    ONE_INCARNATION_US,
    ONLINE,
    LeadershipRow,
    LineRef,
    StateRow,
)
from highwater.pipelines.rules.rule import Case


def is_same_incarnation(row: LeadershipRow, other: LeadershipRow) -> bool:
    """Return True if two rows certainly belong to the same incarnation of the topic."""
    if row.topic_id is not None and other.topic_id is not None:
        return row.topic_id == other.topic_id
    return row.broker_id == other.broker_id and abs(row.time_us - other.time_us) <= ONE_INCARNATION_US


def _state(row: LeadershipRow) -> tuple[int | None, int | None, frozenset[int] | None]:
    return row.leader, row.leader_epoch, None if row.isr is None else frozenset(row.isr)


def find_contradiction(row: LeadershipRow, other: LeadershipRow) -> Case | None:
    """Return a case if two decisions of one controller contradict each other in one incarnation. None otherwise."""
    name = f"{other.topic}-{other.partition}"
    if other.leader_epoch == row.leader_epoch and None not in (row.leader, other.leader) and row.leader != other.leader:
        text = f"{name} has two leaders in epoch {other.leader_epoch}: {row.leader} and {other.leader}"
        return make_illegal_case(f"controller {other.broker_id}: {text}", row, other)
    known = None not in (row.partition_epoch, *_state(row), *_state(other))
    if other.partition_epoch == row.partition_epoch and known and _state(row) != _state(other):
        text = f"zkVersion {other.partition_epoch} of {name} holds two states"
        return make_illegal_case(f"controller {other.broker_id}: {text}", row, other)
    return None


def find_step_back(row: LeadershipRow, other: LeadershipRow) -> Case | None:
    """Return a case if a leader epoch or zkVersion is lower than in the earlier decision `row`. None otherwise."""
    epochs = (("leader epoch", row.leader_epoch, other.leader_epoch),)
    for what, before, after in (*epochs, ("zkVersion", row.partition_epoch, other.partition_epoch)):
        if before is not None and after is not None and after < before:
            text = f"{what} of {other.topic}-{other.partition} went back from {before} to {after}"
            return make_illegal_case(f"controller {other.broker_id}: {text}", row, other)
    return None


def find_decided_twice(rows: Iterable[LeadershipRow], decisions: Container[LineRef]) -> tuple[Case, ...]:
    """Return contradictions between decisions of ZooKeeper controllers about one partition.

    Lines without a controller epoch are skipped. Leader selectors up to 1.0 log them before the write. If the version
    of the znode differs, the write is retried with another choice.

    Args:
        rows: only those with role ``controller`` are considered.
        decisions: locations of state machine lines. Other lines show what was sent.
    """
    sessions: dict[tuple[int, int], list[LeadershipRow]] = defaultdict(list)
    for row in rows:
        holds = row.role == "controller" and row.leader_epoch is not None and row.leader != LEADER_DURING_DELETE
        if holds and row.controller_epoch is not None:
            sessions[row.broker_id, row.controller_epoch].append(row)
    cases: list[Case] = []
    for session in sessions.values():
        session.sort(key=lambda row: row.ref)
        decided = [row for row in session if row.ref in decisions]
        pairs = [(row, other, find_contradiction) for row, other in pairwise(session)]
        pairs += [(row, other, find_step_back) for row, other in pairwise(decided)]
        for row, other, compare in pairs:
            if row.ref.file_id != other.ref.file_id:
                continue
            case = compare(row, other) if is_same_incarnation(row, other) else None
            if case is not None:
                cases.append(case)
    return tuple(cases)


def find_two_controllers(rows: Iterable[StateRow]) -> tuple[Case, ...]:
    """Return a case per controller epoch in which two brokers elected leaders.

    Only one broker can have incremented the epoch's znode (`KafkaController.elect`). Since 2.2 each write of a
    partition's state checks the epoch. A broker that was never the controller has epoch 0, which is skipped.
    """
    first: dict[int, StateRow] = {}
    cases: list[Case] = []
    reported: set[tuple[int, int]] = set()
    for row in sorted(rows, key=lambda row: (row.time_us, row.ref)):
        epoch = row.controller_epoch
        if not row.succeeded or row.to_state != ONLINE or epoch is None or epoch <= 0:
            continue
        earlier = first.setdefault(epoch, row)
        if earlier.broker_id != row.broker_id and (epoch, row.broker_id) not in reported:
            reported.add((epoch, row.broker_id))
            both = f"brokers {earlier.broker_id} and {row.broker_id} both elected leaders"
            cases.append(make_illegal_case(f"{both} as the controller of epoch {epoch}", earlier, row))
    return tuple(cases)
