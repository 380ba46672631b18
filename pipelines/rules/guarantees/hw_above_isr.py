"""A leader's high watermark above the log end offset of a replica in its ISR.

A follower's fetch at an offset is its log end offset as its leader knows it. So an answer whose high watermark is above
the fetch's own offset, given to a replica that was in the ISR all the while, is a contradiction in one line; and a
line that moves the high watermark is contradicted by any later fetch of such a replica below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from highwater.pipelines.rules.proofs.repeated import Repeated
from highwater.pipelines.rules.rule import Case, Checker
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact


@dataclass
class HighWatermarkAboveIsr(Checker):
    _cases: Repeated = field(default_factory=lambda: Repeated("{} times in this epoch"))

    def observe(self, fact: Fact) -> None:
        if fact.kind == a.FETCH:
            self._apply_fetch(fact)
        elif fact.name == "updated":
            self._apply_update(fact)

    def finish(self) -> Iterable[Case]:
        return self._cases.cases()

    # ------------------------------------------------------------------ proofs

    def _apply_fetch(self, fact: Fact) -> None:
        chain = self._history.chain
        if chain.before is None or chain.epoch is None or not chain.accepted or fact.leader_epoch is None:
            return
        assert fact.offset is not None
        assert fact.high_watermark is not None
        self.checked += 1
        if fact.high_watermark > fact.offset:
            # Read after the line before it, answered before its own.
            facts = (fact, chain.before)
            self._judge(facts, fact, chain.epoch, (chain.before.time_us, fact.time_us), fact.high_watermark, line=False)

    def _apply_update(self, fact: Fact) -> None:
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
        how = "moved its high watermark to" if line else "sent a high watermark of"
        self._cases.add(
            (leader, epoch, replica, severity),
            lambda: Case(
                severity,
                f"Leader {leader} of epoch {epoch} {how} {high_watermark} while replica "
                f"{replica}, in the ISR before and after, had only {position}",
                (*facts, before, states[-1]),
                leader_epoch=epoch,
                offset_start=position,
                offset_end=high_watermark,
                time_us=facts[0].time_us,
                brokers=(leader, replica),
            ),
        )
