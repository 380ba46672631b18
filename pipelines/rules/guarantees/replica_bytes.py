"""Replicas' logs, compared batch by batch where both say that it is committed."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OPEN, VIOLATION, Case, Ref, Rule, Settings, Severity
from schemas import audit_facts as a
from schemas.audit_facts import Fact

RULE_ID = "replica-bytes-diverged"
HIGH_WATERMARK = "replication-offset-checkpoint"
#: Cases of one partition: what parts once stays apart.
CASES_MAX = 3


class _Checker:
    """Batches come in the order of their offsets: those of one base offset are compared."""

    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        self.checked = 0
        self._cases = 0
        self._same: list[Fact] = []
        self._compacted = settings.compacted
        self._committed = {
            fact.broker_id: fact.offset
            for fact in history.facts[a.CHECKPOINT]
            if fact.name == HIGH_WATERMARK and fact.broker_id is not None and fact.offset is not None
        }

    def observe(self, fact: Fact) -> Iterable[Case]:
        cases: list[Case] = []
        if self._same and self._same[0].offset != fact.offset:
            cases = self._compare()
            self._same = []
        self._same.append(fact)
        return cases

    def finish(self) -> Iterable[Case]:
        return self._compare() if self._same else ()

    def _compare(self) -> list[Case]:
        self.checked += len(self._same)
        if self._cases >= CASES_MAX:
            return []
        whole = [fact for fact in self._same if fact.name != "corrupt"]
        corrupt = [fact for fact in self._same if fact.name == "corrupt" and self._is_committed(fact)]
        cases = [_corrupt(fact, whole) for fact in corrupt]
        intact = [fact for fact in whole if self._is_committed(fact)]
        different = {(fact.checksum, fact.end_offset, fact.leader_epoch): fact for fact in intact}
        # The cleaner rewrites each replica's batches by itself: those that lost records, and those with a tombstone.
        if len(different) > 1 and not self._compacted:
            cases.append(_diverged(list(different.values()), VIOLATION if self._compacted is False else OPEN))
        self._cases += len(cases)
        return cases

    def _is_committed(self, fact: Fact) -> bool:
        """The replica itself has it below its high watermark: a tail that no leader confirmed may still differ."""
        mark = self._committed.get(fact.broker_id or -1)
        return mark is not None and fact.end_offset is not None and fact.end_offset <= mark


def _corrupt(fact: Fact, whole: list[Fact]) -> Case:
    """A batch below the replica's high watermark; what another replica holds there is the second witness."""
    return Case(
        RULE_ID,
        VIOLATION,
        f"The batch at offset {fact.offset} of broker {fact.broker_id} does not have the checksum that it was stored "
        "with.",
        tuple(Ref.of(one) for one in (fact, *whole)),
        leader_epoch=fact.leader_epoch,
        offset_start=fact.offset,
        offset_end=fact.end_offset,
        brokers=() if fact.broker_id is None else (fact.broker_id,),
        cause="corrupt",
    )


def _diverged(facts: list[Fact], severity: Severity) -> Case:
    told = "; ".join(
        f"broker {fact.broker_id}: to {fact.end_offset}, epoch {fact.leader_epoch}, CRC {fact.checksum:08x}"
        for fact in facts
    )
    unless = "" if severity == VIOLATION else "; open, as no line tells whether the topic is compacted"
    return Case(
        RULE_ID,
        severity,
        f"Replicas hold different batches at offset {facts[0].offset}, which each of them counts as committed: {told}"
        f"{unless}.",
        tuple(Ref.of(fact) for fact in facts),
        leader_epoch=max((fact.leader_epoch or 0) for fact in facts),
        offset_start=facts[0].offset,
        offset_end=max(fact.end_offset or 0 for fact in facts),
        brokers=tuple(fact.broker_id for fact in facts if fact.broker_id is not None),
        cause="diverged",
    )


RULE = Rule(
    rule_id=RULE_ID,
    guarantee="Below their high watermarks all replicas hold the same bytes.",
    source="Kafka documentation, Replicated Logs; DefaultRecordBatch (CRC-32C); TLA+ NoLogDivergence",
    versions="all",
    tier="T0",
    needs="topic segments and replication-offset-checkpoint of several replicas",
    proof=(
        "Files, not lines, show it: two replicas' batches below the high watermark that each has checkpointed. "
        "Compacted topics are left out, since each replica's cleaner rewrites batches by itself; a wrong checksum "
        "takes another replica that holds the batch."
    ),
    kinds=frozenset({a.BATCH}),
    make=_Checker,
    shows=(
        (VIOLATION, "two replicas with different batches at one offset, or a batch with a wrong checksum"),
        (OPEN, "the same, where no line tells the topic's cleanup.policy, or no other replica has the batch"),
    ),
)
