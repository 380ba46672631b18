"""Incarnations of a topic: a topic that is created again starts at epoch 0, partition epoch 0 and offset 0. Pure.

Rules, failovers and windows without a leader share these boundaries. Whether facts certainly belong to one incarnation
is another question, which only rules ask (`pipelines.rules.proofs.lives`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar


class TopicLine(Protocol):
    """A line or record about a partition. Values that it does not contain are None."""

    @property
    def time_us(self) -> int: ...
    @property
    def broker_id(self) -> int | None: ...
    @property
    def topic_id(self) -> str | None: ...
    @property
    def leader_epoch(self) -> int | None: ...
    @property
    def partition_epoch(self) -> int | None: ...


class StateLine(TopicLine, Protocol):
    """A line that shows a committed in-sync set."""

    @property
    def isr(self) -> tuple[int, ...] | None: ...


AnyLine = TypeVar("AnyLine", bound=TopicLine)


class TopicLives(NamedTuple):
    """The incarnations of one topic: a re-created topic has the same name and starts again at epoch 0."""

    births_us: tuple[int, ...] = ()  #: when it was created again, ascending; its first life begins before all of them
    of_id: Mapping[str | None, int] = {}  #: the life of each topic id; empty if no line names one

    def at(self, time_us: int, topic_id: str | None = None) -> int:
        """Return the index of the topic's incarnation at a time, from 0. A known topic id decides it."""
        life = self.of_id.get(topic_id)
        return bisect_right(self.births_us, time_us) if life is None else life

    @property
    def newest_id(self) -> str | None:
        """Return the topic id of the last incarnation. None if no line names one."""
        return max(self.of_id, key=self.of_id.__getitem__, default=None)


def topic_lives(
    roles: Iterable[tuple[str | None, TopicLine]],
    records: Iterable[TopicLine],
    created_us: Iterable[int],
    deleted_us: Iterable[int] = (),
    committed: Iterable[StateLine] = (),
) -> TopicLives:
    """Return the incarnations of a topic, from the lines of one of its partitions.

    Each new topic id begins an incarnation. Without ids, one begins if the partition leaves ``NonExistentPartition``
    again, or if a broker returns to an earlier epoch, which never happens within an incarnation.

    Args:
        roles: (role of ``silver.leader_and_isr``, line) of role lines.
        records: other lines that may name an id.
        created_us: when a ZooKeeper controller created the partition.
        deleted_us: times of lines that show the topic deleted. The next leader of epoch 0 is of a new topic.
        committed: lines with committed in-sync sets.
    """
    lines = list(roles)
    first_us: dict[str, int] = {}
    for line in (*(line for _, line in lines), *records):
        if line.topic_id is not None:
            first_us[line.topic_id] = min(line.time_us, first_us.get(line.topic_id, line.time_us))
    if not first_us:
        again_us = [line.time_us for line in find_fallbacks(lines)]
        firsts_us = [line.time_us for role, line in lines if role == "leader_start" and line.leader_epoch == 0]
        for at_us in deleted_us:
            again_us += sorted(first_us for first_us in firsts_us if first_us > at_us)[:1]
        again_us += _find_births(lines, committed)
        return TopicLives(tuple(sorted({*sorted(set(created_us))[1:], *again_us})))
    ids = sorted(first_us, key=lambda topic_id: (first_us[topic_id], topic_id))
    return TopicLives(tuple(first_us[topic_id] for topic_id in ids[1:]), {name: life for life, name in enumerate(ids)})


def _find_births(roles: Iterable[tuple[str | None, TopicLine]], committed: Iterable[StateLine]) -> Iterator[int]:
    """Yield when a partition was created again: all in-sync replicas deleted it, and its epoch is lower afterwards."""
    gone = [line for role, line in roles if role == "stopped"]
    states = sorted((line for line in committed if line.partition_epoch is not None), key=lambda line: line.time_us)
    for at, state in enumerate(states):
        deleted = {line.broker_id: line.time_us for line in gone if line.time_us >= state.time_us}
        if not state.isr or not deleted.keys() >= {*state.isr}:
            continue
        gone_us = max(deleted[broker_id] for broker_id in state.isr)
        after = next((line for line in states[at + 1 :] if line.time_us > gone_us), None)
        if after is not None and (after.partition_epoch or 0) < (state.partition_epoch or 0):
            yield after.time_us


def find_fallbacks(lines: Iterable[tuple[str | None, AnyLine]]) -> Iterator[AnyLine]:
    """Yield the lines in which a broker's own role returns to an earlier epoch."""
    highest: dict[int, int] = {}
    # Of lines of one instant none is known to be the first: those that fall back among themselves show nothing.
    for role, line in sorted(lines, key=lambda named: (named[1].time_us, named[1].leader_epoch or 0)):
        if line.broker_id is None or line.leader_epoch is None:
            continue
        # A request can be an old one that comes late, unless it is the first of all.
        is_first = role == "request" and line.leader_epoch == 0 and line.partition_epoch == 0
        if role not in ("leader_start", "follower_start") and not is_first:
            continue
        if line.leader_epoch < highest.get(line.broker_id, -1):
            yield line
        highest[line.broker_id] = line.leader_epoch
