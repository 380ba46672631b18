"""A replica that joined the ISR too early, before its log end offset was high enough, or left it too late.

The leader proposes a replica after it has committed the ISR before, and by the offset of a fetch. So its high watermark
before the line of that commit is a lower bound of the offset that the replica needed. The replica's first fetch after
it joined is an upper bound of the offset that it had.

A leader checks every half of replica.lag.time.max.ms. So a follower leaves within one and a half of that time after it
was last caught up. A paused leader could not check, which is not a case.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.proofs.fetch_chain import high_watermark_of
from highwater.pipelines.rules.rule import KEPT, OBSERVATION, Case, Checker, Settings, unless_anew
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: Stretches between lines of the ISR that are looked at for a fetch that proves.
TRIES_MAX = 64

_Key = tuple[int, int]


@dataclass
class Join:
    """A replica joined the ISR: the leader's ISR line before it, and the one with the replica."""

    replica: int
    before: Fact
    after: Fact
    #: the highest high watermark that an answer showed before the ISR before was committed
    answered: Fact | None = None
    low: tuple[Fact, ...] = ()  #: the replica's lowest fetch surely after it joined, and facts that prove it remained
    #: stretches that do not show that the replica remained until then: all fetches of a stretch are alike
    tried: set[tuple[int | None, int | None]] = field(default_factory=set)


@dataclass
class IsrJoins(Checker):
    """Finds replicas that joined the ISR before their log end reached the high watermark."""

    #: By leader and epoch, the highest answer before its last line of an ISR, if any, and the highest of all.
    _highest: dict[_Key, tuple[Fact | None, Fact]] = field(default_factory=dict, metadata=KEPT)
    _lines: dict[_Key, Fact] = field(init=False, metadata=KEPT)
    _joins: dict[_Key, list[Join]] = field(init=False, metadata=KEPT)
    _of_replica: dict[tuple[int, int, int], list[Join]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        lines = _find_isr_lines(self._history)
        self._lines = {(leader, epoch): by_epoch[max(by_epoch)] for (_, leader, epoch), by_epoch in lines.items()}
        self._joins = _joins(lines)
        for (leader, epoch), joins in self._joins.items():
            for join in sorted(joins, key=lambda join: join.after.time_us):
                self._of_replica[leader, epoch, join.replica].append(join)

    def observe(self, fact: Fact) -> None:
        chain = self._history.chain
        if not chain.answered or fact.leader_epoch is None or fact.broker_id is None or fact.replica_id is None:
            return
        self._limit_high_watermark(fact, (fact.broker_id, fact.leader_epoch))
        if chain.accepted and chain.before is not None:
            self._limit_position(fact, chain.before, (fact.broker_id, fact.leader_epoch, fact.replica_id))

    def _limit_high_watermark(self, fact: Fact, key: _Key) -> None:
        """Record the fact's high watermark as a lower bound for all ISRs committed later."""
        below, highest = self._highest.get(key, (None, fact))
        line = self._lines.get(key)
        if line is not None and fact.time_us < line.time_us:
            below = _take_higher(below, fact)
        self._highest[key] = below, _take_higher(highest, fact)
        joins = self._joins.get(key, [])
        at = bisect_right(joins, fact.time_us, key=lambda join: join.before.time_us)
        if at < len(joins):
            joins[at].answered = _take_higher(joins[at].answered, fact)

    def _limit_position(self, fact: Fact, before: Fact, key: tuple[int, int, int]) -> None:
        """Record the fact's fetch offset as an upper bound of the log end with which the replica joined."""
        joins = self._of_replica.get(key, [])
        at = bisect_left(joins, before.time_us, key=lambda join: join.after.time_us)
        if not at:
            return
        join = joins[at - 1]
        if join.low and (fact.offset or 0) >= (join.low[0].offset or 0):
            return
        since = self._history.chain.since
        if since is not None and since.time_us < join.before.time_us:
            join.low = (fact, before, since)
            return
        leader, epoch, replica = key
        within = (before.time_us, fact.time_us)
        stretch = self._history.isr_known.stretch(leader, epoch, *within)
        if stretch in join.tried:
            return
        if len(join.tried) >= TRIES_MAX:
            self.is_final = False
            return
        stayed = self._history.isr_known.stayed(leader, epoch, replica, join.after, within)
        if stayed is not None:
            join.low = (fact, before, *stayed)
        else:
            join.tried.add(stretch)
            self.awaits_history = True

    def go_on(self, kept: Mapping[str, Any]) -> None:
        """Restore the state of an earlier run. Its fetches also count for ISR joins that later lines show."""
        lines = kept["_lines"]
        joins = {_get_place(key, join): join for key, before in kept["_joins"].items() for join in before}
        super().go_on({**kept, "_lines": self._lines, "_joins": self._joins})
        for key, now in self._joins.items():
            for join in now:
                known = joins.pop(_get_place(key, join), None)
                if known is not None:
                    join.answered, join.low, join.tried = known.answered, known.low, known.tried
                else:
                    self._begin_join(join, lines.get(key), *self._highest.get(key, (None, None)))
        # A join that disappeared, or a second life with the same epoch numbers.
        born_anew = self._history.topic_lives.births_us
        self.is_final = self.is_final and not joins and not (born_anew and self._lines != lines)
        for key, (_, highest) in self._highest.items():
            if self._lines.get(key) != lines.get(key):
                self._highest[key] = highest, highest

    def _begin_join(self, join: Join, last: Fact | None, below: Fact | None, highest: Fact | None) -> None:
        """Set the bounds of an ISR join that no earlier run knew."""
        if last is None or _get_version(join.before) > _get_version(last):
            join.answered = highest
        elif join.before == last:
            join.answered = below
        else:
            self.is_final = False

    def finish(self) -> Iterable[Case]:
        for (leader, epoch), joins in sorted(self._joins.items()):
            highest: Fact | None = None
            for join in joins:
                highest = _take_higher(highest, join.answered) if join.answered is not None else highest
                yield from self._judge(leader, epoch, join, highest)

    def _judge(self, leader: int, epoch: int, join: Join, highest: Fact | None) -> Iterator[Case]:
        if not join.low or join.low[0].offset is None:
            return
        self.checked += 1
        position = join.low[0].offset
        limits = []
        if highest is not None:
            limits.append((high_watermark_of(highest), highest, "the high watermark, already"))
        start = self._history.epoch(epoch, join.after.time_us).start
        if start is not None and self._is_gate(start[1], leader):
            limits.append((*start, "the start of the leader's epoch,"))
        if not limits:
            return
        limit, fact, what = max(limits, key=lambda known: known[0])
        evidence = (fact, join.before, join.after, *join.low)
        severity = self._severity(*evidence) if position < limit else None
        if severity is None:
            return
        yield Case(
            severity,
            f"Replica {join.replica} joined the ISR of leader {leader} in epoch {epoch} with a log end offset of "
            f"at most {position}, below {what} {limit}{unless_anew(severity)}.",
            tuple(evidence),
            leader_epoch=epoch,
            offset_start=position,
            offset_end=limit,
            time_us=join.after.time_us,
            brokers=(leader, join.replica),
        )

    def _is_gate(self, start: Fact, leader: int) -> bool:
        """Return True if the leader's version lets no replica join the ISR below the start offset in this line."""
        version = self._settings.version(leader, start.time_us)
        gated = rule_of(version, lambda rules: rules.epoch_start_gates_expansion) is True
        return start.broker_id == leader and gated and self._history.starts_once(start)


def _take_higher(highest: Fact | None, fact: Fact) -> Fact:
    return fact if highest is None or high_watermark_of(fact) > high_watermark_of(highest) else highest


def _get_place(key: _Key, join: Join) -> tuple[_Key, int, Fact, Fact]:
    return key, join.replica, join.before, join.after


def _get_version(line: Fact) -> int:
    assert line.partition_epoch is not None
    return line.partition_epoch


def _find_isr_lines(history: FactHistory) -> dict[tuple[int, int, int], dict[int, Fact]]:
    """Return the leader's first line of each ISR, by (incarnation, leader, epoch), then by partition epoch."""
    by_epoch: dict[tuple[int, int, int], dict[int, Fact]] = defaultdict(dict)
    for leadership, lines in history.isr_known.of_leadership.items():
        for line in lines:
            if line.fact.isr is not None and line.fact.name in ("leader_start", "committed"):
                by_epoch[leadership].setdefault(line.partition_epoch, line.fact)
    return by_epoch


def _joins(lines: Mapping[tuple[int, int, int], Mapping[int, Fact]]) -> dict[_Key, list[Join]]:
    """Return ISR joins by replica in time order, with the leader's line of the ISR directly before."""
    joins: dict[_Key, list[Join]] = defaultdict(list)
    for (_, leader, epoch), by_epoch in lines.items():
        for partition_epoch, after in by_epoch.items():
            before = by_epoch.get(partition_epoch - 1)
            if before is None or after.kind != a.ISR_CHANGE or before.time_us >= after.time_us:
                continue
            for replica in sorted(set(after.isr or ()) - set(before.isr or ())):
                joins[leader, epoch].append(Join(replica, before, after))
    for of_leader in joins.values():
        of_leader.sort(key=lambda join: (join.before.time_us, join.replica))
    return dict(joins)


#: The leader was stopped, the change was under way, or the controller made it: not the leader's rule.
EXCUSED = frozenset({"leader_paused", "in_flight", "refused", "commit_delayed"})


def isr_shrinks(history: FactHistory, settings: Settings) -> tuple[int, list[Case]]:
    """Return the number of ISR shrinks judged, and cases of followers that stayed in the ISR without keeping up."""
    shrinks = [fact for fact in history.facts[a.ISR_REPLAY] if fact.client == "shrink"]
    judged = [fact for fact in shrinks if fact.name in ("predicted", "late", "early")]
    return len(judged), list(_make_cases(judged))


def _make_cases(shrinks: Iterable[Fact]) -> Iterable[Case]:
    for fact in shrinks:
        if fact.name != "late" or fact.detail in EXCUSED:
            continue
        due = ""
        if fact.latest_us is not None:
            due = f", {(fact.time_us - fact.latest_us) / 1000:.0f} ms after the leader should have seen it"
        isr = ", ".join(map(str, fact.replicas or ()))
        message = (
            f"Replica {fact.replica_id} left the ISR [{isr}] of leader {fact.broker_id} late{due}: until then every "
            "acks=all produce waited for it."
        )
        yield Case(
            OBSERVATION,
            message,
            (fact,),
            leader_epoch=fact.leader_epoch,
            time_us=fact.time_us,
            brokers=tuple(broker for broker in (fact.broker_id, fact.replica_id) if broker is not None),
        )
