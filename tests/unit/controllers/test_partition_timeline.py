"""States of a partition, their bounds and reasons."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.controllers.isr_absences import find_isr_absences
from highwater.pipelines.controllers.isr_commits import find_unseen_commits
from highwater.pipelines.controllers.partition_timeline import PartitionSpan, build_partition_timeline
from highwater.pipelines.kafka.controller_rows import (
    ASKED,
    COMMITTED,
    REFUSED,
    SHRINK_ASKED,
    EventRow,
    LeadershipRow,
    StateRow,
)
from highwater.pipelines.kafka.partition_history import build_history
from tests.unit.controllers.build import SECOND, event, line, record, ref, state
from tests.unit.controllers.histories import applied_rows

#: state, leader, in-sync set, reason, last instant of the state before, first instant of this one (seconds)
Row = tuple[str, int | None, tuple[int, ...] | None, str, float | None, float]


def spans(*rows: Any, kraft: bool = False, writes_at_once: bool = False) -> list[PartitionSpan]:
    """Return the timeline of rows of any kind.

    Args:
        writes_at_once: leaders commit without a line, as up to Kafka 2.3.
    """
    lines = [row for row in rows if isinstance(row, LeadershipRow)]
    changes = [row for row in lines if row.role in (COMMITTED, ASKED, SHRINK_ASKED, REFUSED)]
    roles = [row for row in lines if row not in changes]
    states = [row for row in rows if isinstance(row, StateRow)]
    records = [row for row in rows if type(row).__name__ == "RecordRow"]
    deleted = [row for row in rows if isinstance(row, EventRow)]
    given = {"kraft": kraft, "deleted_us": [row.time_us for row in deleted]}
    history = build_history(states, roles, records, changes, **given)
    commits = find_unseen_commits(history, changes, lambda broker_id, time_us: writes_at_once)
    if commits:
        history = build_history(states, roles, records, changes, unseen=commits, **given)
    return build_partition_timeline(history, roles, states, changes, commits, deleted)


def shown(*rows: Any, **more: Any) -> list[Row]:
    return [
        (
            *(span.state, span.leader, span.isr, span.reason),
            None if span.begin_after_us is None else span.begin_after_us / SECOND,
            span.begin_by_us / SECOND,
        )
        for span in spans(*rows, **more)
    ]


def starts(second: float, leader: int, epoch: int, **values: Any) -> LeadershipRow:
    named = {"leader": leader, "leader_epoch": epoch, **values}
    return line(round(second * SECOND), "leader_start", leader, **named)


def follows(second: int, broker_id: int, epoch: int) -> LeadershipRow:
    return line(second * SECOND, "follower_start", broker_id, leader_epoch=epoch)


def asks(second: int, broker_id: int, before: tuple[int, ...], after: tuple[int, ...]) -> LeadershipRow:
    role = ASKED if set(after) > set(before) else SHRINK_ASKED
    values = {"leader": broker_id, "isr": after, "previous_isr": before, "ref": ref(second * 10)}
    return line(second * SECOND, role, broker_id, **values)


def commits(second: int, broker_id: int, isr: tuple[int, ...], epoch: int) -> LeadershipRow:
    values = {"leader": broker_id, "isr": isr, "partition_epoch": epoch, "ref": ref(second * 10 + 1)}
    return line(second * SECOND, COMMITTED, broker_id, **values)


def refuses(second: int, broker_id: int) -> LeadershipRow:
    return line(second * SECOND, REFUSED, broker_id, leader=broker_id, ref=ref(second * 10 + 1))


def zk(second: int, to_state: str, **values: Any) -> StateRow:
    before = "OfflinePartition" if to_state == "Online" else "OnlinePartition"
    return state(second * SECOND, before, f"{to_state}Partition", **values)


FULL = {"partition_epoch": 0, "isr": (1, 2, 3)}
#: a shrink of a leader that logs its commits: from the proposal to the commit both states are possible
TABLE: dict[str, tuple[list[Any], dict[str, bool], list[Row]]] = {
    "a shrink and an expansion": (
        [
            starts(1, 1, 0, **FULL),
            *(asks(5, 1, (1, 2, 3), (1, 2)), commits(6, 1, (1, 2), 1)),
            *(asks(8, 1, (1, 2), (1, 2, 3)), commits(9, 1, (1, 2, 3), 2)),
        ],
        {},
        [
            ("led", 1, (1, 2, 3), "created", 1, 1),
            ("led", 1, (1, 2), "isr_shrunk", 5, 6),
            ("led", 1, (1, 2, 3), "isr_expanded", 8, 9),
        ],
    ),
    "a refused and a pending proposal": (
        [starts(1, 1, 0, **FULL), asks(5, 1, (1, 2, 3), (1, 2)), refuses(6, 1), asks(9, 1, (1, 2, 3), (1, 3))],
        {},
        [("led", 1, (1, 2, 3), "created", 1, 1)],
    ),
    "an epoch of which only a follower's line is there": (
        [starts(1, 1, 0, isr=(1, 3)), follows(9, 1, 1), starts(20, 1, 2, isr=(2, 1))],
        {},
        [
            ("led", 1, (1, 3), "first_shown", None, 1),
            ("unknown", None, None, "new_epoch", 1, 9),
            ("led", 1, (2, 1), "elected", 9, 20),
        ],
    ),
    "a follower's line of an epoch whose leader logs a change of the in-sync set": (
        [starts(1, 1, 0, isr=(1, 3)), follows(9, 1, 1), asks(12, 3, (3,), (3, 1))],
        {"writes_at_once": True},
        [
            ("led", 1, (1, 3), "first_shown", None, 1),
            ("unknown", None, None, "new_epoch", 1, 9),
            ("led", 3, (3,), "first_shown", 9, 12),
            ("led", 3, (3, 1), "isr_expanded", 12, 12),
        ],
    ),
    "a follower's line of an epoch whose leader starts elsewhere": (
        [starts(1, 1, 0, isr=(1, 3)), follows(9, 1, 1), starts(10, 3, 1, isr=(3,))],
        {},
        [("led", 1, (1, 3), "first_shown", None, 1), ("led", 3, (3,), "elected", 1, 10)],
    ),
    "a follower's line of an epoch after the one for which a controller holds the partition": (
        [starts(1, 1, 0, isr=(1, 3)), zk(5, "Offline", controller_epoch=1), follows(9, 3, 1)],
        {},
        [
            ("led", 1, (1, 3), "first_shown", None, 1),
            ("leaderless", None, (1, 3), "leader_lost", 5, 5),
            ("unknown", None, None, "new_epoch", 5, 9),
        ],
    ),
    "one proposal in logs that begin there, up to Kafka 2.3": (
        [asks(5, 1, (1, 2, 3), (1, 2))],
        {"writes_at_once": True},
        [("led", 1, (1, 2, 3), "first_shown", None, 5), ("led", 1, (1, 2), "isr_shrunk", 5, 5)],
    ),
    "a proposal shows the in-sync set of its leader from its begin": (
        [starts(1, 1, 4), asks(5, 1, (1, 2), (1, 2, 3))],
        {"writes_at_once": True},
        [("led", 1, (1, 2), "first_shown", None, 1), ("led", 1, (1, 2, 3), "isr_expanded", 5, 5)],
    ),
    "a leader whose next proposal follows another leader": (
        [
            *(starts(1, 1, 4), asks(5, 1, (1, 2), (1, 2, 3)), starts(9, 2, 5, isr=(2, 3))),
            *(starts(12, 1, 6, isr=(1, 2)), asks(15, 1, (1, 2), (1, 2, 3))),
        ],
        {"writes_at_once": True},
        [
            ("led", 1, (1, 2), "first_shown", None, 1),
            ("led", 1, (1, 2, 3), "isr_expanded", 5, 5),
            ("led", 2, (2, 3), "elected", 5, 9),
            ("led", 1, (1, 2), "elected", 9, 12),
            ("led", 1, (1, 2, 3), "isr_expanded", 15, 15),
        ],
    ),
    "a proposal of a broker that another one replaced": (
        [starts(1, 1, 4), starts(3, 2, 5), asks(5, 1, (1, 2, 3), (1,))],
        {"writes_at_once": True},
        [("led", 1, None, "first_shown", None, 1), ("led", 2, None, "elected", 1, 3)],
    ),
    "a leader that starts late in an old epoch": (
        [starts(1, 1, 4), starts(3, 2, 6), starts(4, 3, 5)],
        {},
        [("led", 1, None, "first_shown", None, 1), ("led", 2, None, "elected", 1, 3)],
    ),
    "logs that begin as a leader is replaced": (
        [starts(5, 2, 7, partition_epoch=9, isr=(2, 3), previous_leader=1)],
        {"kraft": True},
        [("led", 1, None, "first_shown", None, 5), ("led", 2, (2, 3), "elected", 5, 5)],
    ),
    "an election out of the eligible replicas": (
        [
            record(1, 1, 0, 0, isr=(1, 2)),
            record(5, 2, 1, 1, isr=(2,), elr=(1,)),
            record(6, -1, 2, 2, isr=(), elr=(1, 2)),
            record(9, 1, 3, 3, isr=(1,), elr=(2,)),
        ],
        {"kraft": True},
        [
            ("led", 1, (1, 2), "created", 1, 1),
            ("led", 2, (2,), "elected", 5, 5),
            ("leaderless", None, (), "leader_lost", 6, 6),
            ("led", 1, (1,), "elected", 9, 9),
        ],
    ),
    "a record that lines do not show": (
        [record(1, 1, 0, 0), record(9, 2, 2, 4, isr=(2,))],
        {"kraft": True},
        [("led", 1, (1, 2, 3), "created", 1, 1), ("led", 2, (2,), "elected", 1, 9)],
    ),
    "a ZooKeeper controller that finds no leader for a while": (
        [
            starts(1, 1, 0, **FULL),
            zk(5, "Offline"),
            zk(6, "Online", succeeded=False),
            zk(9, "Online", leader=2, leader_epoch=1, partition_epoch=1, isr=(2, 3)),
        ],
        {},
        [
            ("led", 1, (1, 2, 3), "created", 1, 1),
            ("leaderless", None, (1, 2, 3), "leader_lost", 5, 5),
            ("led", 2, (2, 3), "elected", 9, 9),
        ],
    ),
    "a topic that is deleted and created again, without ids": (
        [starts(1, 1, 3, partition_epoch=4, isr=(1, 2)), event(5 * SECOND, "topic_deleted"), starts(8, 2, 0, **FULL)],
        {},
        [
            ("led", 1, (1, 2), "first_shown", None, 1),
            ("deleted", None, None, "topic_deleted", 5, 5),
            ("led", 2, (1, 2, 3), "created", 5, 8),
        ],
    ),
    "a topic of another id, without a line of the deletion": (
        [
            starts(1, 1, 3, partition_epoch=4, isr=(1, 2), topic_id="old"),
            starts(8, 2, 0, topic_id="new", **FULL),
        ],
        {"kraft": True},
        [
            ("led", 1, (1, 2), "first_shown", None, 1),
            ("deleted", None, None, "topic_deleted", 1, 8),
            ("led", 2, (1, 2, 3), "created", 8, 8),
        ],
    ),
    "whole seconds: epochs are the order": (
        [
            starts(1, 1, 0, **FULL),
            line(5 * SECOND, "leader_update", 1, leader=1, leader_epoch=0, partition_epoch=2, isr=(1, 2)),
            line(5 * SECOND, "leader_update", 1, leader=1, leader_epoch=0, partition_epoch=1, isr=(1,)),
        ],
        {"kraft": True},
        [
            ("led", 1, (1, 2, 3), "created", 1, 1),
            ("led", 1, (1,), "isr_shrunk", 1, 5),
            ("led", 1, (1, 2), "isr_expanded", 5, 5),
        ],
    ),
    "WARN only: no state": ([refuses(6, 1)], {}, []),
}


@pytest.mark.parametrize("name", TABLE)
def test_states_with_bounds_and_reasons(name: str):
    rows, more, expected = TABLE[name]
    assert shown(*rows, **more) == expected


def test_a_reassignment_begins_and_ends():
    moving = {"replicas": (1, 2, 3), "adding_replicas": (3,), "removing_replicas": (1,)}
    settled = {"replicas": (2, 3), "adding_replicas": (), "removing_replicas": ()}
    base = {"adding_replicas": (), "removing_replicas": (), "replicas": (1, 2)}
    found = spans(
        record(1, 1, 0, 0, isr=(1, 2), **base),
        record(3, 1, 0, 1, isr=(1, 2), **moving),
        record(5, 1, 0, 2, isr=(1, 2, 3), **moving),
        record(6, 2, 1, 3, isr=(2, 3), **settled),
        kraft=True,
    )
    assert [span.reason for span in found] == ["created", "reassignment_began", "isr_expanded", "elected"]
    assert [span.replicas for span in found] == [(1, 2), (1, 2, 3), (1, 2, 3), (2, 3)]


def test_an_assignment_is_unknown_once_another_replica_is_in_sync():
    found = spans(
        starts(1, 1, 0, replicas=(1, 2), partition_epoch=0, isr=(1, 2)),
        *(asks(5, 1, (1, 2), (1, 2, 4)), commits(6, 1, (1, 2, 4), 3)),
    )
    assert [span.replicas for span in found] == [(1, 2), None]


def test_an_assignment_is_unknown_once_a_reassignment_has_ended_without_it():
    """A new leader logs which replicas move, and no assignment. Those that left were removed."""
    moving = {"replicas": (2, 3, 1), "adding_replicas": (3,), "removing_replicas": (1,)}
    found = spans(
        record(1, 2, 0, 1, isr=(1, 2, 3), **moving),
        starts(5, 2, 1, partition_epoch=2, isr=(2, 3), adding_replicas=(), removing_replicas=()),
    )
    assert [span.replicas for span in found] == [(2, 3, 1), None]
    assert find_isr_absences(found) == []


@given(applied_rows(), st.randoms(use_true_random=False))
def test_rows_follow_each_other_and_the_order_of_lines_does_not_matter(rows: list[LeadershipRow], random: Any):
    found = spans(*rows, kraft=True)
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert spans(*shuffled, kraft=True) == found
    for span, after in pairwise(found):
        assert (span.end_by_us, span.end_after_us) == (after.begin_by_us, after.begin_after_us)
        assert after.begin_after_us is not None
        assert after.begin_after_us <= after.begin_by_us
