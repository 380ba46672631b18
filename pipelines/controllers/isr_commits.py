"""Proposals of leaders that were committed.

Only committed states count: a proposal may be refused, or its answer may never come. Up to Kafka 2.3 the line of a
commit is TRACE. There the leader writes to ZooKeeper at once, so its proposal counts if nothing contradicts it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from highwater.pipelines.kafka.controller_rows import ASKED, COMMITTED, REFUSED, SHRINK_ASKED, LeadershipRow
from highwater.pipelines.kafka.partition_history import PartitionEpoch, PartitionHistory

_PROPOSALS: Final = (ASKED, SHRINK_ASKED)
#: (broker, instant): True if the broker commits ISRs without a line.
CommitsUnseen = Callable[[int, int], bool]


def find_unseen_commits(
    history: PartitionHistory, changes: Iterable[LeadershipRow], commits_unseen: CommitsUnseen
) -> list[LeadershipRow]:
    """Return ISR proposals that were committed without a line, with partition epochs if states show them.

    Args:
        changes: `silver.isr_changes` of the partition, including proposals and refusals.
        commits_unseen: returns True if a broker's version does not log commits.
    """
    states = [state for shown in history.states.values() for state in shown]
    others_us = sorted({state.time_us for state in states} | {epoch.begun_us() for epoch in history.epochs})
    proposals = [
        row
        for row, after in _pair_with_next(changes)
        if row.role in _PROPOSALS
        and commits_unseen(row.broker_id, row.time_us)
        and not _is_denied(row, after, others_us)
    ]
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


def find_committed_proposals(changes: Sequence[LeadershipRow], commits: Sequence[LeadershipRow]) -> list[LeadershipRow]:
    """Return the ISR proposals that were committed. The state before a proposal held until the commit.

    Args:
        changes: `silver.isr_changes` of the partition.
        commits: result of `unseen_commits`.
    """
    seen = [
        row
        for row, after in _pair_with_next(changes)
        if row.role in _PROPOSALS and after is not None and (after.role, after.isr) == (COMMITTED, row.isr)
    ]
    return [*seen, *commits]


def _pair_with_next(changes: Iterable[LeadershipRow]) -> Iterator[tuple[LeadershipRow, LeadershipRow | None]]:
    """Yield each row with the next row of its broker, or None."""
    by_broker: dict[int, list[LeadershipRow]] = defaultdict(list)
    for row in sorted(changes, key=lambda row: (row.time_us, row.ref)):
        by_broker[row.broker_id].append(row)
    for rows in by_broker.values():
        yield from pairwise(rows)
        yield rows[-1], None


def _is_denied(row: LeadershipRow, after: LeadershipRow | None, others_us: Sequence[int]) -> bool:
    """Return True if the leader's next line shows that its proposal was not committed.

    Args:
        row: the proposal.
        after: the leader's next line. None if there is none.
        others_us: times of elections and states, ascending, microseconds. One between both lines explains another ISR.
    """
    if after is None:
        return False
    is_other = after.previous_isr is not None and set(after.previous_isr) != set(row.isr or ())
    is_explained = bisect_right(others_us, after.time_us) > bisect_right(others_us, row.time_us)
    return after.role == REFUSED or (after.role in _PROPOSALS and is_other and not is_explained)


def _has_room(row: LeadershipRow, epoch: int, before: PartitionEpoch, after: PartitionEpoch) -> bool:
    """Return True if the partition epochs of two states leave room for a committed proposal between them.

    Args:
        row: the proposal.
        epoch: its partition epoch.
    """
    if after.incarnation != before.incarnation or after.partition_epoch > epoch:
        return True
    return after.partition_epoch == epoch and after.isr is not None and set(after.isr) == set(row.isr or ())
