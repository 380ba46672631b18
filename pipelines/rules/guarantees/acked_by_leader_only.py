"""Records that were acknowledged with acks=1 and then truncated: legal, and the first thing a user suspects Kafka of.

acks=1 is answered by the leader alone. If another replica is elected before it has fetched the records, the former
leader cuts them off as it becomes its follower. Records below the leader's high watermark were committed: their loss is
one of `pipelines.rules.guarantees.committed_data_lost`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from highwater.pipelines.rules.leader_epoch import Epoch, in_one_file
from highwater.pipelines.rules.proofs.loss_cause import CORRUPTION
from highwater.pipelines.rules.rule import KEPT, OBSERVATION, Case, Checker, brokers_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: Names of lines of a truncated log.
_CUTS = frozenset({"log", "fetcher"})


@dataclass
class _Lost:
    """Records that one former leader truncated and a later epoch lacks: first and last answer, and their number."""

    epoch: int
    lost_by: Epoch
    start_fact: Fact
    cut: Fact
    first: Fact
    last: Fact
    answered: int = 0


@dataclass
class AckedByLeaderOnly(Checker):
    """Finds acks=1 records that were later truncated. It keeps a few facts per leader and later epoch."""

    _lost: dict[tuple[int, int, int, int], _Lost] = field(default_factory=dict)
    #: By broker, the highest offset that it answered, and when it answered last.
    _answered: dict[int, tuple[int, int]] = field(default_factory=dict, metadata=KEPT)
    _cuts: dict[int, list[Fact]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for fact in self._history.facts[a.TRUNCATION]:
            is_recovery = fact.detail == CORRUPTION
            if fact.name in _CUTS and not is_recovery and fact.broker_id is not None and fact.offset is not None:
                self._cuts[fact.broker_id].append(fact)
        for cuts in self._cuts.values():
            cuts.sort(key=lambda fact: fact.time_us)

    def observe(self, fact: Fact) -> None:
        if fact.name != "1" or fact.error_code or fact.broker_id is None or fact.offset is None:
            return
        self.checked += 1
        answered_us = fact.latest_us or fact.time_us
        highest, last_us = self._answered.get(fact.broker_id, (fact.offset, answered_us))
        self._answered[fact.broker_id] = max(highest, fact.offset), max(last_us, answered_us)
        if fact.broker_id not in self._cuts:
            return
        tenure = self._history.tenure(fact.broker_id, answered_us)
        cut = self._find_cut(fact.broker_id, answered_us, fact.offset)
        if cut is not None:
            self.is_final = False  # A later fetch may show the epoch in which it surely led.
        if tenure is None or tenure.latest is None or cut is None:
            return
        lost_by = self._history.lost_by(tenure.latest, fact.time_us, fact.offset + 1)
        committed = self._history.epoch(tenure.epoch, fact.time_us).high_watermark
        if committed is not None and committed[0] > fact.offset:
            return
        if lost_by is not None:
            later, (_, start_fact) = lost_by
            key = (self._history.incarnation(fact.time_us), fact.broker_id, tenure.epoch, later.number)
            lost = self._lost.setdefault(key, _Lost(tenure.epoch, later, start_fact, cut, fact, fact))
            lost.last = fact
            lost.answered += 1

    def _find_cut(self, broker_id: int, time_us: int, offset: int) -> Fact | None:
        """Return the broker's first truncation after `time_us` to `offset` or below. None without one."""
        cuts = self._cuts.get(broker_id, [])
        at = bisect_right(cuts, time_us, key=lambda fact: fact.time_us)
        return next((fact for fact in cuts[at:] if fact.offset is not None and fact.offset <= offset), None)

    def stands(self) -> bool:
        later = (
            self._find_cut(broker_id, last_us, highest) for broker_id, (highest, last_us) in self._answered.items()
        )
        return self.is_final and not any(later)

    def finish(self) -> Iterable[Case]:
        for _, lost in sorted(self._lost.items(), key=lambda item: item[0]):
            if self._is_one_life(lost):
                yield _make_case(lost)

    def _is_one_life(self, lost: _Lost) -> bool:
        """Return True if both epochs are of one incarnation of the topic. An epoch file suffices for an observation."""
        first, last, time_us = lost.epoch, lost.lost_by.number, lost.start_fact.time_us
        known = self._history.are_of_one_life(first, last, time_us)
        if known is not None or self._history.topic_lives.births_us:
            return bool(known)
        starts = [fact for fact in self._history.facts[a.LEADERSHIP] if fact.name == "leader_start"]
        return in_one_file(self._history.facts[a.EPOCH_ENTRY], starts, first, last)


def _make_case(lost: _Lost) -> Case:
    first, last = lost.first, lost.last
    assert first.offset is not None
    assert last.offset is not None
    times = f"{lost.answered} produce{'s' if lost.answered > 1 else ''}"
    whose = f" of client {first.client}" if first.client is not None and first.client == last.client else ""
    message = (
        f"{times}{whose} that broker {first.broker_id}, the leader of epoch {lost.epoch}, had acknowledged with acks=1 "
        f"from offset {first.offset} to {last.offset} are lost: epoch {lost.lost_by.number} started without them, and "
        f"the broker truncated to {lost.cut.offset} as its follower. That is legal: acks=1 waits for the leader alone."
    )
    return Case(
        OBSERVATION,
        message,
        (first, last, lost.start_fact, lost.cut),
        leader_epoch=lost.epoch,
        offset_start=first.offset,
        offset_end=max(last.offset + 1, lost.cut.end_offset or 0),
        time_us=lost.cut.time_us,
        brokers=brokers_of((first, lost.start_fact)),
        cause="acks_1",
        records=lost.answered,
    )
