"""What one broker alone says of a topic that was deleted, or created anew.

Such a line takes evidence away: what was promised before it binds nobody after it. A broker also writes that a log is
deleted when it moves it to another directory, or gives that up; and one line may be another's text. So it counts if
another broker says as much about then: that it deleted its replica, that the partition begins at an earlier epoch,
comes from nothing or has another topic id, or that the broker is no replica any more; or if the metadata log does.

Source: ``LogManager.asyncDelete``, ``replaceCurrentWithFutureLog``; ``TopicDeletionManager``, KIP-516.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from pipelines.rules.history import NON_EXISTENT, PartitionHistory
from pipelines.rules.proofs.own_lines import OWN_ROLES
from pipelines.topic_lives import begun_again
from schemas import audit_facts as a
from schemas.audit_facts import Fact

#: A replica may be deleted that much later than others: its broker was down.
ABOUT_US: Final = 3_600_000_000
_STOPPED: Final = "stopped"


class Deletions(NamedTuple):
    """What one broker alone says.

    Attributes:
        lines: each that says so.
        topic_ids: of topics of which only such lines tell.
    """

    lines: tuple[Fact, ...] = ()
    topic_ids: frozenset[str] = frozenset()


def lone_deletions(history: PartitionHistory) -> Deletions:
    """Deletions and creations of a partition's topic that one broker alone tells, where others' logs are there, too."""
    leaderships = history.facts[a.LEADERSHIP]
    if len({fact.broker_id for fact in leaderships if fact.name in OWN_ROLES}) < 2:
        return Deletions()
    known = {fact.topic_id for fact in history.facts[a.METADATA]}
    told = sorted(_told(history), key=_time_us)
    confirmed = {*_confirmed(told), *_confirmed(reversed(told))}
    assigned = {
        (None if kind == a.METADATA else fact.broker_id, fact.replicas)
        for kind in (a.METADATA, a.LEADERSHIP)
        for fact in history.facts[kind]
        if fact.replicas is not None
    }
    lone = [
        fact
        for fact in told
        if fact not in confirmed
        and (fact.topic_id is None or fact.topic_id not in known)
        and not (fact.name == _STOPPED and _is_moved_away(fact, assigned))
    ]
    topic_ids = frozenset(fact.topic_id for fact in lone if fact.topic_id is not None)
    lines = [fact for fact in leaderships if fact.topic_id is not None and fact.topic_id in topic_ids]
    return Deletions(tuple(dict.fromkeys([*lone, *lines])), topic_ids)


def _told(history: PartitionHistory) -> Iterator[Fact]:
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


def _confirmed(told: Iterable[Fact]) -> Iterator[Fact]:
    """Lines that come soon after another broker's one."""
    last: Fact | None = None
    other: Fact | None = None  # the last one that is not of the same broker as `last`
    for fact in told:
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
