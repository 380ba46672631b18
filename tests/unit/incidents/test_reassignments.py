"""Reassignments, as lines of controllers and states show them."""

from __future__ import annotations

from typing import Any

import pytest

from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.reassignments import reassignments_of

_ZK = (
    "Successfully updated assignment of partition t-0 to ReplicaAssignment(replicas={}, addingReplicas={}, "
    "removingReplicas={})"
)
_KRAFT = (
    "Replayed partition assignment change PartitionChangeRecord(partitionId=0, topicId=AAAA, isr=null, leader=-2, "
    "replicas={}, removingReplicas={}, addingReplicas={}, leaderRecoveryState=-1) for topic t."
)
_DONE = "AlterPartition request from node 1 for t-0 completed the ongoing partition reassignment."
#: begin, end, replicas that are added and removed, True if it was cancelled
Shown = tuple[int | None, int | None, set[int], set[int], bool]


def line(second: int, detail: str, replicas: list[int] | None = None) -> dict[str, Any]:
    of = {"cluster_id": "c", "topic": "t", "partition": 0, "file_id": "f", "byte_offset": second}
    return of | {"time": second, "detail": detail, "replicas": replicas}


def state(second: int, adding: list[int], removing: list[int], replicas: list[int] | None = None) -> dict[str, Any]:
    sides = {"adding_replicas": adding, "removing_replicas": removing, "replicas": replicas}
    return line(second, "") | sides | {"begin_by_time": second}


_BEGUN = _KRAFT.format("[1, 2, 3]", "[1]", "[3]")
_SETTLED = _KRAFT.format("[2, 3]", "[]", "[]")
TABLE: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], list[Shown]]] = {
    "ZooKeeper since 2.4": (
        [line(10, _ZK.format("2,3,1", "3", "1")), line(24, _ZK.format("2,3", "", ""))],
        [],
        [(10, 24, {3}, {1}, False)],
    ),
    "ZooKeeper up to 2.3": (
        [
            line(10, "Handling reassignment of partition t-0 to new replicas 2,3", [2, 3]),
            line(30, "Removed partition t-0 from the list of reassigned partitions in zookeeper"),
        ],
        [],
        [(10, 30, set(), set(), False)],
    ),
    "KRaft, on several nodes, with a node that reads the records again": (
        [
            *(line(10, _BEGUN), line(11, _BEGUN), line(14, _DONE), line(14, _SETTLED), line(15, _SETTLED)),
            *(line(40, _BEGUN), line(40, _SETTLED)),
        ],
        [],
        [(10, 14, {3}, {1}, False)],
    ),
    "the same way and back": (
        [line(10, _BEGUN), line(14, _SETTLED), line(50, _KRAFT.format("[2, 3, 1]", "[3]", "[1]"))],
        [],
        [(10, 14, {3}, {1}, False), (50, None, {1}, {3}, False)],
    ),
    "cancelled": (
        [line(10, _BEGUN), line(14, _KRAFT.format("[1, 2]", "[]", "[]"))],
        [],
        [(10, 14, {3}, {1}, True)],
    ),
    "begun before the logs": ([line(14, _DONE), line(14, _SETTLED)], [], [(None, 14, set(), set(), False)]),
    "a node that starts reads an old end": ([line(14, _SETTLED)], [], []),
    "states of brokers": ([], [state(9, [], []), state(10, [3], [1]), state(20, [], [])], [(10, 20, {3}, {1}, False)]),
    "a broker that is behind": (
        [line(10, _BEGUN), line(14, _DONE)],
        [state(15, [3], [1])],
        [(10, 14, {3}, {1}, False)],
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_reassignments(name: str) -> None:
    lines, states, expected = TABLE[name]
    found = reassignments_of(Facts(reassignment_lines=lines, assignments=states))
    assert [(each.start_us, each.end_us, {*each.adding}, {*each.removing}, each.is_cancelled) for each in found] == (
        expected
    )
