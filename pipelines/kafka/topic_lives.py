"""Incarnations of a topic: a topic that is created again starts at epoch 0, partition epoch 0 and offset 0. Pure.

Rules, failovers and windows without a leader share these boundaries. Whether facts certainly belong to one incarnation
is another question, which only rules ask (`pipelines.rules.proofs.lives`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
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
#: A broker handles a request sooner than this after its controller decided on it, microseconds.
_LATE_US = 30_000_000


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


class _Gap(NamedTuple):
    """A time in which a topic was created again, microseconds."""

    after_us: int  #: last line of an earlier incarnation; exclusive
    by_us: int  #: first line of a later incarnation


def topic_lives(
    roles: Iterable[tuple[str | None, TopicLine]],
    records: Iterable[TopicLine],
    created_us: Iterable[int],
    deleted_us: Iterable[int] = (),
    committed: Iterable[StateLine] = (),
) -> TopicLives:
    """Return the incarnations of a topic, from the lines of one of its partitions.

    Another incarnation begins between lines with two topic ids, if the partition leaves ``NonExistentPartition``
    again, or if a broker returns to an earlier epoch, which it never does within an incarnation. Several such gaps
    that overlap show one begin, which is the end of the shortest of them. No incarnation begins between two lines with
    one id.

    Args:
        roles: (role of ``silver.leader_and_isr``, line) of role lines.
        records: other lines that may name an id.
        created_us: when a ZooKeeper controller created the partition.
        deleted_us: times of lines that show the topic deleted. The next leader of epoch 0 is of a new topic.
        committed: lines with committed in-sync sets.
    """
    lines = list(roles)
    spans: dict[str, tuple[int, int]] = {}
    for line in (*(line for _, line in lines), *records):
        if line.topic_id is not None:
            first_us, last_us = spans.get(line.topic_id, (line.time_us, line.time_us))
            spans[line.topic_id] = min(first_us, line.time_us), max(last_us, line.time_us)
    ids = sorted(spans, key=lambda topic_id: (spans[topic_id], topic_id))
    made_us = sorted(set(created_us))
    is_first = not ids or not made_us or made_us[0] <= spans[ids[0]][1]
    gaps = [_Gap(at_us - 1, at_us) for at_us in made_us[is_first:]]
    gaps += [_Gap(before.time_us, line.time_us) for before, line in _find_fallback_pairs(lines)]
    gaps += _find_forgotten_epochs(lines)
    firsts_us = sorted(line.time_us for role, line in lines if role == "leader_start" and line.leader_epoch == 0)
    for at_us in deleted_us:
        gaps += [_Gap(at_us, first_us) for first_us in firsts_us if first_us > at_us][:1]
    gaps += _find_births(lines, committed)
    gaps = [*_cut_known_spans(gaps, spans.values())]
    gaps += [_Gap(min(spans[before][1], spans[now][0] - 1), spans[now][0]) for before, now in pairwise(ids)]
    births_us: list[int] = []
    for gap in sorted(gaps, key=lambda gap: (gap.by_us, gap.after_us)):
        if not births_us or births_us[-1] <= gap.after_us:
            births_us.append(gap.by_us)
    of_id: dict[str | None, int] = {}
    for name in ids:
        # Lines with two ids may overlap, on one clock or on two.
        if of_id and bisect_right(births_us, spans[name][0]) <= max(of_id.values()):
            insort(births_us, spans[name][0])
        of_id[name] = bisect_right(births_us, spans[name][0])
    return TopicLives(tuple(births_us), of_id)


def _cut_known_spans(gaps: Iterable[_Gap], spans: Iterable[tuple[int, int]]) -> Iterator[_Gap]:
    """Yield gaps without the times between two lines with one id. Such lines are of one incarnation."""
    known = list(spans)
    for gap in gaps:
        after_us, by_us = gap
        for first_us, last_us in known:
            if first_us <= after_us < last_us:
                after_us = last_us
            if first_us < by_us <= last_us:
                by_us = first_us
        if after_us < by_us:
            yield _Gap(after_us, by_us)


def _find_births(roles: Sequence[tuple[str | None, TopicLine]], committed: Iterable[StateLine]) -> Iterator[_Gap]:
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
            yield _Gap(gone_us, after.time_us)


def find_fallbacks(lines: Iterable[tuple[str | None, AnyLine]]) -> Iterator[AnyLine]:
    """Yield the lines in which a broker's own role returns to an earlier epoch."""
    return (line for _, line in _find_fallback_pairs(lines))


def _find_fallback_pairs(lines: Iterable[tuple[str | None, AnyLine]]) -> Iterator[tuple[AnyLine, AnyLine]]:
    """Yield the lines in which a broker's own role returns to an earlier epoch, each with the line before."""
    last: dict[int | None, AnyLine] = {}
    for _, line in _select_starts(lines):
        before = last.get(line.broker_id)
        if before is not None and (line.leader_epoch or 0) < (before.leader_epoch or 0):
            yield before, line
        last[line.broker_id] = line


def _select_starts(lines: Iterable[tuple[str | None, AnyLine]]) -> Iterator[tuple[str | None, AnyLine]]:
    """Yield lines in which a broker begins a role, in order."""
    # Of lines of one instant none is known to be the first: those that fall back among themselves show nothing.
    for role, line in sorted(lines, key=lambda named: (named[1].time_us, named[1].leader_epoch or 0)):
        # A request can be an old one that comes late, unless it is the first of all.
        is_first = role == "request" and line.leader_epoch == 0 and line.partition_epoch == 0
        if (role in ("leader_start", "follower_start") or is_first) and None not in (line.broker_id, line.leader_epoch):
            yield role, line


def _find_forgotten_epochs(lines: Sequence[tuple[str | None, TopicLine]]) -> Iterator[_Gap]:
    """Yield when a topic began again, by an earlier epoch than its broker knew of as a ZooKeeper controller, or had.

    The broker starts a role at epoch 0 long after its controller knew a later epoch, or its controller finds an earlier
    epoch after the broker deleted its replica of a later one.
    """
    decided = [line for role, line in lines if role == "controller" and line.leader_epoch and line.topic_id is None]
    starts = [line for _, line in _select_starts(lines)]
    for start in starts:
        known = [line.time_us for line in decided if line.broker_id == start.broker_id and line.time_us < start.time_us]
        if start.leader_epoch == 0 and known and start.time_us - max(known) > _LATE_US:
            yield _Gap(max(known), start.time_us)
    for stop in (line for role, line in lines if role == "stopped"):
        before = [line for line in starts if line.broker_id == stop.broker_id and line.time_us < stop.time_us]
        after = [line for line in decided if line.broker_id == stop.broker_id and line.time_us > stop.time_us]
        first = min(after, key=lambda line: line.time_us, default=None)
        last = max(before, key=lambda line: line.time_us, default=None)
        if first and last and (first.leader_epoch or 0) < (last.leader_epoch or 0):
            yield _Gap(stop.time_us, first.time_us)
