"""Lines of one broker alone that others would log too: they may be a client's text in one of its lines.

**A deletion or re-creation of the topic** removes evidence: no promise from before applies after it. A broker also logs
that a log is deleted when it moves it to another directory, or cancels the move. So the line counts if another broker
confirms it at about that time. It may log that it deleted its replica, or that the broker is not a replica any more. Or
it logs that the partition begins at an earlier epoch, comes from nothing or has another topic id. The metadata log also
confirms it.

It does not count either if later lines contradict it, even when confirmed: a client can write into several brokers'
logs. A broker that deleted its log has none to lead, to load or to serve from, until it creates an empty one. Its data
directory holds none. And a topic id that is gone never comes back.

**The start of a leader epoch** measures losses. Followers, the controller and files name the epoch, too. A start that
none of them confirms does not count in three cases. They name another leader or offset. A later line has a lower epoch.
Or another broker followed in a lower epoch before and runs on, so it would log the start as well. A broker that starts
twice in one epoch loads its log between. A start in ``state-change.log`` always counts: no client can write there.

Source: ``LogManager.asyncDelete``, ``replaceCurrentWithFutureLog``; ``TopicDeletionManager``, KIP-516;
``Partition.makeLeader``, ``makeFollower``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.controller_rows import NON_EXISTENT
from highwater.pipelines.kafka.topic_lives import find_fallbacks
from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.proofs.own_lines import OWN_ROLES, ROLES
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: A replica may be deleted that much later than others: its broker was down.
ABOUT_US: Final = 3_600_000_000
_STOPPED: Final = "stopped"
#: Roles of a broker that has the log; a request comes before it is created.
_OF_A_LOG: Final = ROLES | {_STOPPED}
#: Kinds of facts that need a log on the broker.
_SERVED: Final = frozenset({a.FETCH, a.OPERATION, a.ANSWER, a.APPEND, a.HIGH_WATERMARK, a.BATCH})
_REQUESTS: Final = frozenset({a.FETCH, a.OPERATION, a.ANSWER})
#: Kinds of facts with leader epochs, and the kinds among them that come from files.
_EPOCHS: Final = (a.LEADERSHIP, a.PARTITION_STATE, a.ELECTION, a.METADATA, a.EPOCH_ENTRY)
_FILES: Final = frozenset({a.METADATA, a.EPOCH_ENTRY})


#: Roles of a broker that follows, by its own lines.
_FOLLOWING: Final = frozenset({"follower_start", "request"})
#: Roles of a broker that leads, by its own lines.
_CLAIMS: Final = frozenset({"leader_start", "leader_update"})


class LoneLines(NamedTuple):
    """Lines of one broker that need confirmation by another broker. A client may have injected them."""

    lines: tuple[Fact, ...] = ()  #: of deletions and creations first
    topic_ids: frozenset[str] = frozenset()  #: that only such lines name
    contradicted: tuple[Fact, ...] = ()  #: members of `lines` that later lines or files contradict


def lone_lines(history: FactHistory) -> LoneLines:
    """Return lines that only one broker has although the logs of others are there, and contradicted lines."""
    leaderships = history.facts[a.LEADERSHIP]
    contradicted = [*_still_there(history), *_old_ids_again(history)]
    topic_ids = {fact.topic_id for fact in contradicted if fact.topic_id is not None}
    lines = list(contradicted)
    if len({fact.broker_id for fact in leaderships if fact.name in OWN_ROLES}) >= 2:
        deletions, lone_ids = _deletions(history, contradicted)
        topic_ids |= lone_ids
        starts = dict.fromkeys((*_starts(history), *_starts_again(history)))
        lines += [*deletions, *(line for line in starts if line.file_id not in history.client_free_files)]
    lines += [fact for fact in leaderships if fact.topic_id is not None and fact.topic_id in topic_ids]
    return LoneLines(tuple(dict.fromkeys(lines)), frozenset(topic_ids), tuple(contradicted))


class Deletions:
    """Deletions of a partition's logs, and facts that contradict them.

    Attributes:
        lines: the brokers' deletion lines.
        contradicted: deletions after which the broker served the log before it logged a role again.
    """

    def __init__(self, history: FactHistory) -> None:
        self._until_us: dict[int | None, list[tuple[Fact, int]]] = defaultdict(list)
        next_us: dict[int | None, int] = {}
        for line in sorted(history.facts[a.LEADERSHIP], key=_time_us, reverse=True):
            if line.name == _STOPPED:
                self._until_us[line.broker_id].append((line, next_us.get(line.broker_id, NEVER_US)))
            elif line.name in ROLES:
                next_us[line.broker_id] = line.time_us
        self.lines = tuple(line for lines in self._until_us.values() for line, _ in lines)
        self.contradicted: list[Fact] = []

    def see(self, fact: Fact) -> None:
        """Check if a fetch, append or answer contradicts a deletion."""
        if fact.kind not in _SERVED or fact.broker_id not in self._until_us or fact.error_code:
            return
        is_answered = fact.kind != a.FETCH or fact.high_watermark is not None
        if not is_answered or fact.derived == a.COMPUTED_PARTITION:
            return
        # A request that waited has a later line; by the end of its handling the log was there.
        served_us = fact.latest_us if fact.kind in _REQUESTS else fact.time_us
        for line, until_us in self._until_us[fact.broker_id]:
            is_within = served_us is not None and line.time_us < served_us < until_us
            is_on_disk = fact.kind == a.BATCH and until_us == NEVER_US
            if (is_within or is_on_disk) and line not in self.contradicted:
                self.contradicted.append(line)


def _still_there(history: FactHistory) -> Iterator[Fact]:
    """Yield deletions of logs that their broker still has later: leads, is in the ISR, loads or stores."""
    kinds = (a.LEADERSHIP, a.LOADED, a.ISR_CHANGE)
    by_broker: dict[int | None, list[Fact]] = defaultdict(list)
    for fact in sorted((fact for kind in kinds for fact in history.facts[kind]), key=_time_us):
        if fact.kind != a.LEADERSHIP or fact.name in _OF_A_LOG:
            by_broker[fact.broker_id].append(fact)
    on_disk = {fact.broker_id for fact in history.facts[a.EPOCH_ENTRY]}
    for broker_id, lines in by_broker.items():
        last: Fact | None = None
        for line in lines:
            if line.name == _STOPPED:
                last = line
            elif last is not None and line.time_us > last.time_us:
                if _has_records(line) and line.topic_id in (None, last.topic_id, *_ids_before(lines, last)):
                    yield last
                last = None
        if last is not None and broker_id in on_disk:
            yield last


def _has_records(line: Fact) -> bool:
    """Return True if a broker's line shows a log that was not created just before."""
    if line.kind == a.ISR_CHANGE or line.name == "leader_update":
        return True
    return bool(line.offset) or bool(line.high_watermark)


def _ids_before(lines: Iterable[Fact], last: Fact) -> set[str]:
    return {line.topic_id for line in lines if line.topic_id is not None and line.time_us < last.time_us}


def _old_ids_again(history: FactHistory) -> Iterator[Fact]:
    """Yield a broker's lines with one topic id between its lines with another topic id."""
    by_broker: dict[int | None, list[Fact]] = defaultdict(list)
    for fact in sorted(history.facts[a.LEADERSHIP], key=_time_us):
        if fact.topic_id is not None and fact.name in ROLES:
            by_broker[fact.broker_id].append(fact)
    for lines in by_broker.values():
        last = {line.topic_id: line.time_us for line in lines}
        first: dict[str | None, int] = {}
        for line in lines:
            first.setdefault(line.topic_id, line.time_us)
            if any(first[other] < first[line.topic_id] < last[other] for other in first if other != line.topic_id):
                yield line


def _deletions(history: FactHistory, contradicted: Collection[Fact]) -> tuple[list[Fact], frozenset[str]]:
    """Return (deletion and creation lines that no other broker confirms, topic ids that only they name)."""
    known = {fact.topic_id for fact in history.facts[a.METADATA]}
    # A line that does not count confirms none.
    lines = sorted((fact for fact in _ends_and_creations(history) if fact not in contradicted), key=_time_us)
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
    """Yield starts of leader epochs that no other source confirms, and that others contradict or would name."""
    named: dict[int, list[Fact]] = defaultdict(list)
    for kind in _EPOCHS:
        for fact in history.facts[kind]:
            if fact.leader_epoch is not None and fact.name not in _CLAIMS:
                named[fact.leader_epoch].append(fact)
    roles = [
        (fact.time_us, fact.leader_epoch, fact) for fact in history.facts[a.LEADERSHIP] if fact.leader_epoch is not None
    ]
    roles.sort(key=lambda role: role[0])
    own = [role for role in roles if role[2].name in OWN_ROLES]
    lowest_after = [*accumulate((epoch for _, epoch, _ in reversed(own)), min)][::-1]
    lowest_before: dict[int, int] = {}  # by broker, the lowest epoch in which it followed so far
    for time_us, epoch, line in roles:
        if line.name != "leader_start":
            if line.broker_id is not None and line.name in _FOLLOWING:
                lowest_before[line.broker_id] = min(epoch, lowest_before.get(line.broker_id, epoch))
            continue
        others = [fact for fact in named[epoch] if fact.kind in _FILES or fact.broker_id != line.broker_id]
        if any(_confirms(fact, line) for fact in others):
            continue
        later = bisect_right(own, time_us + history.skew_max_us, key=lambda role: role[0])
        is_behind = later < len(own) and lowest_after[later] < epoch
        would_name = any(
            low < epoch and broker_id != line.broker_id and history.is_running(broker_id, time_us)
            for broker_id, low in lowest_before.items()
        )
        if others or is_behind or would_name:
            yield line


def _starts_again(history: FactHistory) -> Iterator[Fact]:
    """Yield starts of one broker in one epoch at other offsets, without a load of its log between them."""
    loads = sorted((fact.broker_id or 0, fact.time_us) for fact in history.facts[a.LOADED])
    last: dict[tuple[int, int | None, int | None], Fact] = {}
    for start in sorted(history.facts[a.LEADERSHIP], key=_time_us):
        if start.name != "leader_start" or start.leader_epoch is None:
            continue
        before = last.setdefault((history.incarnation(start.time_us), start.leader_epoch, start.broker_id), start)
        last[history.incarnation(start.time_us), start.leader_epoch, start.broker_id] = start
        broker_id = start.broker_id or 0
        is_loaded = bisect_left(loads, (broker_id, before.time_us)) < bisect_right(loads, (broker_id, start.time_us))
        if before.offset != start.offset and not is_loaded:
            yield from (before, start)


def _confirms(fact: Fact, start: Fact) -> bool:
    """Return True if a fact with the epoch of a start names its leader, or no leader, or its offset in a file."""
    if fact.kind == a.EPOCH_ENTRY:
        return fact.offset == start.offset
    return fact.leader in (None, start.broker_id)


def _ends_and_creations(history: FactHistory) -> Iterator[Fact]:
    """Yield lines of a deletion or re-creation. For a new topic id, each broker's first line."""
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
        yield from find_fallbacks((fact.name, fact) for fact in leaderships)


def _confirmed(lines: Iterable[Fact]) -> Iterator[Fact]:
    """Yield lines within `ABOUT_US` after another broker's line."""
    last: Fact | None = None
    other: Fact | None = None  # the last one that is not of the same broker as `last`
    for fact in lines:
        if last is not None and last.broker_id != fact.broker_id:
            other = last
        if other is not None and abs(other.time_us - fact.time_us) <= ABOUT_US:
            yield fact
        last = fact


def _is_moved_away(stopped: Fact, assigned: Iterable[tuple[int | None, tuple[int, ...]]]) -> bool:
    """Return True if a line of another source assigns replicas without this broker."""
    return any(stopped.broker_id not in replicas for teller, replicas in assigned if teller != stopped.broker_id)


def _time_us(fact: Fact) -> int:
    return fact.time_us
