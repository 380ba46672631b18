"""A leader's high watermark above the log end offset of a replica in its ISR.

A follower's fetch at an offset is its log end offset as its leader knows it. So an answer whose high watermark is above
the fetch's own offset, given to a replica that was in the ISR all the while, is a contradiction in one line; and a
line that moves the high watermark is contradicted by any later fetch of such a replica below it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.rules.history import PartitionHistory
from pipelines.rules.proofs.repeated import Repeated
from pipelines.rules.rule import OPEN, VIOLATION, Case, Checker, Ref, Rule, Settings
from schemas import audit_facts as a
from schemas.audit_facts import Fact

RULE_ID = "hw-above-isr"


class _Checker(Checker):
    MADE = ("_cases",)

    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        super().__init__(history, settings)
        self._cases = Repeated("{} times in this epoch")

    def observe(self, fact: Fact) -> Iterable[Case]:
        if fact.kind == a.FETCH:
            self._fetched(fact)
        elif fact.name == "updated":
            self._updated(fact)
        return ()

    def finish(self) -> Iterable[Case]:
        return self._cases.cases()

    # ------------------------------------------------------------------ proofs

    def _fetched(self, fact: Fact) -> None:
        chain = self._history.chain
        if chain.fact is not fact:
            return
        if chain.before is None or chain.epoch is None or not chain.accepted or fact.leader_epoch is None:
            return
        assert fact.offset is not None
        assert fact.high_watermark is not None
        self.checked += 1
        if fact.high_watermark > fact.offset:
            # Read after the line before it, answered before its own.
            facts = (fact, chain.before)
            self._judge(facts, fact, chain.epoch, (chain.before.time_us, fact.time_us), fact.high_watermark, line=False)

    def _updated(self, fact: Fact) -> None:
        if fact.high_watermark is None or fact.broker_id is None:
            return
        for stretch in self._history.stretches.known:
            if stretch.first.broker_id != fact.broker_id or not stretch.begun(fact.time_us):
                continue
            after = stretch.handled_after(fact.time_us)
            if after is None:
                continue
            self.checked += 1
            if stretch.positions[after] >= fact.high_watermark:
                continue
            fetch = stretch.fact(after)
            facts = (fact, fetch, stretch.fact(stretch.last_before(fact.time_us)))
            self._judge(facts, fetch, stretch.epoch, (fact.time_us, fact.time_us), fact.high_watermark, line=True)

    def _judge(
        self,
        facts: tuple[Fact, ...],
        fetch: Fact,
        epoch: int,
        within: tuple[int, int],
        high_watermark: int,
        *,
        line: bool,
    ) -> None:
        if fetch.broker_id is None or fetch.replica_id is None or fetch.offset is None:
            return
        isr_known, leadership = self._history.isr_known, (fetch.broker_id, epoch, fetch.replica_id)
        around = isr_known.held(*leadership, *within)
        if around is None:
            self.awaits_history = self.awaits_history or isr_known.may_hold(*leadership, within[0])
            return
        before, states = around
        severity = self._severity(*facts, before, *states)
        if severity is None:
            return
        leader, replica, position = fetch.broker_id, fetch.replica_id, fetch.offset
        how = "moved its high watermark to" if line else "told a high watermark of"
        self._cases.add(
            (leader, epoch, replica, severity),
            lambda: Case(
                RULE_ID,
                severity,
                f"Leader {leader} of epoch {epoch} {how} {high_watermark} while replica "
                f"{replica}, in the ISR before and after, had only {position}",
                tuple(Ref.of(fact) for fact in (*facts, before, states[-1])),
                leader_epoch=epoch,
                offset_start=position,
                offset_end=high_watermark,
                time_us=facts[0].time_us,
                brokers=(leader, replica),
            ),
        )


RULE = Rule(
    rule_id=RULE_ID,
    guarantee="A leader's high watermark is never above the log end offset of a replica in its ISR.",
    source=(
        "Kafka documentation, Replication (committed: all in-sync replicas have it); "
        "Partition.maybeIncrementLeaderHW; KIP-497 for the maximal ISR"
    ),
    versions="2.5 and later, which compare the leader epochs of all fetches (KIP-320, KAFKA-9338)",
    tier="T1",
    needs="followers' fetches in the leader's request log, ISRs with partition epochs; T2 adds the leader's moves",
    proof=(
        "Between two of the leader's own lines whose partition epochs, and all between, are known with the replica in "
        "each ISR, it was never out of it. A connection that has a fetch before and one after means that the replica's "
        "broker ran on, so its log end offset only grew: a fetch below, handled after, bounds it. What is missing "
        "makes a partition epoch unknown or a connection end, and then there is no case. One life of the topic is "
        "shown by topic ids; else the case is open."
    ),
    kinds=frozenset({a.FETCH, a.HIGH_WATERMARK}),
    make=_Checker,
    shows=(
        (VIOLATION, "a high watermark above the position of a replica that was in the ISR all the while"),
        (OPEN, "the same, where the topic may have been created anew between"),
    ),
)
