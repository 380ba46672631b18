"""A fetch that names another leader epoch than the leader's, answered as if nothing was wrong.

The leader's own line tells that it had entered an epoch. A fetch that was surely handled after that line and names an
earlier epoch must be fenced (FENCED_LEADER_EPOCH, 74); one that was surely handled before a line of a lower epoch than
it names must be refused (UNKNOWN_LEADER_EPOCH, 75).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.rules.proofs.own_epochs import OwnEpochs, epoch_of
from pipelines.rules.proofs.repeated import Repeated
from pipelines.rules.rule import KEPT, Case, Checker, Ref, Rule
from schemas import audit_facts as a
from schemas.audit_facts import Fact


@dataclass
class _Checker(Checker):
    _epochs: OwnEpochs = field(init=False)
    _cases: Repeated = field(default_factory=lambda: Repeated("{} such fetches"))
    #: By broker, the highest epoch that a fetch named, and when its last one was answered.
    _named: dict[int, tuple[int, int]] = field(default_factory=dict, metadata=KEPT)

    def __post_init__(self) -> None:
        self._epochs = OwnEpochs(self._history)

    def observe(self, fact: Fact) -> Iterable[Case]:
        chain = self._history.chain
        if chain.fact is not fact or not chain.answered or fact.leader_epoch is None or fact.broker_id is None:
            return ()
        self.checked += 1
        epoch, last_us = self._named.get(fact.broker_id, (fact.leader_epoch, fact.time_us))
        self._named[fact.broker_id] = max(epoch, fact.leader_epoch), max(last_us, fact.time_us)
        if chain.before is not None:
            entered = self._epochs.highest_before(fact.broker_id, chain.before.time_us)
            if entered is not None and epoch_of(entered) > fact.leader_epoch:
                # A run that began before the line and goes on past it: one life of the topic.
                one_run = chain.run is not None and chain.run.time_us < entered.time_us
                self._judge(fact, entered, (chain.before,), one_run=one_run)
        lower = self._epochs.lowest_after(fact.broker_id, fact.time_us)
        if lower is not None and epoch_of(lower) < fact.leader_epoch:
            self._judge(fact, lower, (), one_run=False)
        return ()

    def finish(self) -> Iterable[Case]:
        return self._cases.cases()

    def stands(self) -> bool:
        named = self._named.items()
        after = [(epoch, self._epochs.lowest_after(broker_id, last_us)) for broker_id, (epoch, last_us) in named]
        return self.is_final and all(line is None or epoch_of(line) >= epoch for epoch, line in after)

    def _judge(self, fact: Fact, line: Fact, between: tuple[Fact, ...], *, one_run: bool) -> None:
        assert fact.broker_id is not None
        assert fact.leader_epoch is not None
        severity = self._severity(fact, line, one_run=one_run)
        if severity is None:
            return
        leader, named, entered = fact.broker_id, fact.leader_epoch, epoch_of(line)
        replica = fact.replica_id if fact.replica_id is not None else -1
        where, error = ("after", "FENCED") if named < entered else ("before", "UNKNOWN")
        self._cases.add(
            (leader, replica, named, entered, severity),
            lambda: Case(
                severity,
                f"Broker {leader} answered a fetch of replica {replica} that names leader epoch {named} without error, "
                f"{where} it had entered epoch {entered} by its own line; {error}_LEADER_EPOCH was due",
                tuple(Ref.of(shown) for shown in (line, *between, fact)),
                leader_epoch=entered,
                offset_start=fact.offset,
                time_us=fact.time_us,
                brokers=(leader, replica),
            ),
        )


RULE = Rule("stale-epoch-accepted", kinds=frozenset({a.FETCH}), make=_Checker)
