"""A fetch that names another leader epoch than the leader's, answered as if nothing was wrong.

The leader's own line tells that it had entered an epoch. A fetch that was surely handled after that line and names an
earlier epoch must be fenced (FENCED_LEADER_EPOCH, 74); one that was surely handled before a line of a lower epoch than
it names must be refused (UNKNOWN_LEADER_EPOCH, 75).
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.rules.history import PartitionHistory
from pipelines.rules.proofs.own_epochs import OwnEpochs, epoch_of
from pipelines.rules.proofs.repeated import Repeated
from pipelines.rules.rule import OPEN, VIOLATION, Case, Checker, Ref, Rule, Settings
from schemas import audit_facts as a
from schemas.audit_facts import Fact

RULE_ID = "stale-epoch-accepted"


class _Checker(Checker):
    KEPT = ("_named",)
    MADE = ("_epochs", "_cases")

    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        super().__init__(history, settings)
        self._epochs = OwnEpochs(history)
        self._cases = Repeated("{} such fetches")
        #: By broker, the highest epoch that a fetch named, and when its last one was answered.
        self._named: dict[int, tuple[int, int]] = {}

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
                RULE_ID,
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


RULE = Rule(
    rule_id=RULE_ID,
    guarantee=(
        "A leader answers a fetch that names another leader epoch than its own with FENCED_LEADER_EPOCH or "
        "UNKNOWN_LEADER_EPOCH, never with records."
    ),
    source="KIP-320; Partition.checkCurrentLeaderEpoch",
    versions="2.5 and later: before, fetch sessions forget the epoch that a fetch names (KAFKA-9338)",
    tier="T1",
    needs="followers' fetches in request logs; lines by which brokers enter leader epochs",
    proof=(
        "Two lines are there: the broker's own one of an epoch and the fetch's. A fetch is read only after the line of "
        "the one before on its connection, so it was handled after any line that was written earlier than that; and "
        "it was handled before its own line. A broker's epochs only grow, so lines missing between change nothing; "
        "that the topic was not created anew between is shown by its id or by fetches without a gap, else it is open."
    ),
    kinds=frozenset({a.FETCH}),
    make=_Checker,
    shows=(
        (VIOLATION, "a fetch of a stale or unknown leader epoch that was answered without error"),
        (OPEN, "the same, where the topic may have been created anew between"),
    ),
)
