"""What one broker alone says, where others would say it, too: it may be the text of a client in one of its lines.

**A deletion or a new creation of the topic** takes evidence away: what was promised before it binds nobody after it. A
broker also writes that a log is deleted when it moves it to another directory, or gives that up. So it counts if
another broker says as much about then: that it deleted its replica, that the partition begins at an earlier epoch,
comes from nothing or has another topic id, or that the broker is no replica any more; or if the metadata log does.

**The start of a leader epoch** is what losses are measured by. Its number is known to followers and to the controller,
and epochs only grow: one that nobody else names, while lines of later times name lower ones, is its broker's alone.

Source: ``LogManager.asyncDelete``, ``replaceCurrentWithFutureLog``; ``TopicDeletionManager``, KIP-516;
``Partition.makeLeader``, ``makeFollower``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pipelines.kafka.controller_rows import NON_EXISTENT
from pipelines.kafka.topic_lives import begun_again
from pipelines.rules.history import FactHistory
from pipelines.rules.proofs.own_lines import OWN_ROLES
from schemas import audit_facts as a
from schemas.audit_facts import Fact

#: A replica may be deleted that much later than others: its broker was down.
ABOUT_US: Final = 3_600_000_000
_STOPPED: Final = "stopped"
#: What names leader epochs, and what of it is no line of a log.
_EPOCHS: Final = (a.LEADERSHIP, a.PARTITION_STATE, a.ISR_CHANGE, a.ELECTION, a.METADATA, a.EPOCH_ENTRY)
_FILES: Final = frozenset({a.METADATA, a.EPOCH_ENTRY})


class LoneLines(NamedTuple):
    """What one broker alone says."""

    lines: tuple[Fact, ...] = ()  #: those that say it; of deletions first
    topic_ids: frozenset[str] = frozenset()  #: that only such lines name


def lone_lines(history: FactHistory) -> LoneLines:
    """Lines of a partition that one broker alone has, where others' logs tell of it, too."""
    leaderships = history.facts[a.LEADERSHIP]
    if len({fact.broker_id for fact in leaderships if fact.name in OWN_ROLES}) < 2:
        return LoneLines()
    deletions, topic_ids = _deletions(history)
    lines = [fact for fact in leaderships if fact.topic_id is not None and fact.topic_id in topic_ids]
    return LoneLines(tuple(dict.fromkeys([*deletions, *lines, *_starts(history)])), topic_ids)


def _deletions(history: FactHistory) -> tuple[list[Fact], frozenset[str]]:
    known = {fact.topic_id for fact in history.facts[a.METADATA]}
    lines = sorted(_ends_and_creations(history), key=_time_us)
    confirmed = {*_confirmed(lines), *_confirmed(reversed(lines))}
    assigned = {
        (None if kind == a.METADATA else fact.broker_id, fact.replicas)
        for kind in (a.METADATA, a.LEADERSHIP)
        for fact in history.facts[kind]
        if fact.replicas is not None
    }
    lone = [
        fact
        for fact in lines
        if fact not in confirmed
        and (fact.topic_id is None or fact.topic_id not in known)
        and not (fact.name == _STOPPED and _is_moved_away(fact, assigned))
    ]
    return lone, frozenset(fact.topic_id for fact in lone if fact.topic_id is not None)


def _starts(history: FactHistory) -> Iterator[Fact]:
    """Starts of leader epochs that nobody else names, and behind which lines name lower ones."""
    tellers: dict[int | None, set[tuple[str, int | None]]] = defaultdict(set)
    for kind in _EPOCHS:
        for fact in history.facts[kind]:
            tellers[fact.leader_epoch].add((kind if kind in _FILES else "line", fact.broker_id))
    lowest: list[tuple[int, int]] = []  # times, descending, with the lowest epoch that a role has from then on
    for fact in sorted(history.facts[a.LEADERSHIP], key=_time_us, reverse=True):
        if fact.leader_epoch is None or fact.name not in OWN_ROLES:
            continue
        is_alone = fact.name == "leader_start" and tellers[fact.leader_epoch] <= {("line", fact.broker_id)}
        behind = next((epoch for at_us, epoch in reversed(lowest) if at_us > fact.time_us + history.skew_max_us), None)
        if is_alone and behind is not None and behind < fact.leader_epoch:
            yield fact
        lowest.append((fact.time_us, min(fact.leader_epoch, lowest[-1][1] if lowest else fact.leader_epoch)))


def _ends_and_creations(history: FactHistory) -> Iterator[Fact]:
    """Lines of a deletion or a new creation; of a topic id each broker's first."""
    leaderships = history.facts[a.LEADERSHIP]
    yield from (fact for fact in leaderships if fact.name == _STOPPED)
    created = [fact for fact in history.facts[a.PARTITION_STATE] if fact.detail == NON_EXISTENT]
    first_us = min((fact.time_us for fact in created), default=0)
    yield from (fact for fact in created if fact.time_us > first_us)
    first: dict[str, dict[int | None, Fact]] = defaultdict(dict)
    for fact in sorted(leaderships, key=_time_us):
        if fact.topic_id is not None:
            first[fact.topic_id].setdefault(fact.broker_id, fact)
    if first:
        _, *anew = first.values()
        yield from (fact for of_broker in anew for fact in of_broker.values())
    else:
        yield from begun_again((fact.name, fact) for fact in leaderships)


def _confirmed(lines: Iterable[Fact]) -> Iterator[Fact]:
    """Lines that come soon after another broker's one."""
    last: Fact | None = None
    other: Fact | None = None  # the last one that is not of the same broker as `last`
    for fact in lines:
        if last is not None and last.broker_id != fact.broker_id:
            other = last
        if other is not None and abs(other.time_us - fact.time_us) <= ABOUT_US:
            yield fact
        last = fact


def _is_moved_away(stopped: Fact, assigned: Iterable[tuple[int | None, tuple[int, ...]]]) -> bool:
    """Somebody else says that the broker is no replica."""
    return any(stopped.broker_id not in replicas for teller, replicas in assigned if teller != stopped.broker_id)


def _time_us(fact: Fact) -> int:
    return fact.time_us
