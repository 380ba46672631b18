"""Produces that were answered with an error although their records were appended and are committed: a retry doubles "
"them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OBSERVATION, Case, Checker, Ref, Rule, Settings
from schemas import audit_facts as a
from schemas.audit_facts import Fact

RULE_ID = "error-yet-committed"
#: Requests that a case shows of each error.
SHOWN = 5
ERRORS = {
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
}


class _Checker(Checker):
    """One case per partition, leader epoch and error: a fail-over answers all that wait at once."""

    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        super().__init__(history, settings)
        self._found: dict[tuple[int, int], list[Fact]] = defaultdict(list)
        self._count: dict[tuple[int, int], int] = defaultdict(int)
        self._proof: dict[tuple[int, int], Fact] = {}
        self._span: dict[tuple[int, int], tuple[int, int]] = {}

    def observe(self, fact: Fact) -> Iterable[Case]:
        if not fact.error_code or fact.offset is None or fact.broker_id is None:
            return ()
        self.checked += 1
        tenure = self._history.tenure(fact.broker_id, fact.earliest_us or fact.time_us)
        if tenure is None:
            return ()
        proof = self._survived(fact, tenure.epoch)
        if proof is not None:
            key = (tenure.epoch, fact.error_code)
            self._count[key] += 1
            self._proof[key] = proof
            low, high = self._span.get(key, (fact.offset, fact.offset))
            self._span[key] = (min(low, fact.offset), max(high, fact.offset))
            if len(self._found[key]) < SHOWN:
                self._found[key].append(fact)
        return ()

    def _survived(self, fact: Fact, number: int) -> Fact | None:
        """What shows that the record is committed: the high watermark passed it, and no later epoch starts before
        it."""
        assert fact.offset is not None
        later = self._history.later(number, fact.time_us)
        if any(bound[0] <= fact.offset for epoch in later if (bound := epoch.bound) is not None):
            return None
        known = self._history.epoch(number, fact.time_us).high_watermark
        if known is not None and known[0] > fact.offset:
            return known[1]
        started = next((epoch.start for epoch in later if epoch.start is not None), None)
        return None if started is None else started[1]

    def finish(self) -> Iterable[Case]:
        for (number, error_code), facts in sorted(self._found.items()):
            low, high = self._span[number, error_code]
            error = ERRORS.get(error_code, f"error {error_code}")
            count = self._count[number, error_code]
            message = (
                f"{count} produce{'s' if count > 1 else ''} answered with {error} in leader epoch {number} had been "
                f"appended, at offsets {low} to {high}, and {'are' if count > 1 else 'is'} in the log: a retry "
                "without idempotence writes the records again."
            )
            refs = (*(Ref.of(fact) for fact in facts), Ref.of(self._proof[number, error_code]))
            yield Case(
                RULE_ID,
                OBSERVATION,
                message,
                refs,
                leader_epoch=number,
                offset_start=low,
                offset_end=high + 1,
                time_us=facts[0].time_us,
                brokers=tuple({fact.broker_id for fact in facts if fact.broker_id is not None}),
                records=count,
            )


RULE = Rule(
    rule_id=RULE_ID,
    guarantee="None: an error does not mean that nothing was written; this says where it was.",
    source="DelayedProduce.onComplete, ProducePartitionStatus; Kafka documentation, message delivery semantics",
    versions="1.0 and later, whose request logs show responses",
    tier="T1",
    needs="the request log with responses",
    proof="An observation: the answer gives the offset at which it was appended, and a later line an offset beyond it.",
    kinds=frozenset({a.ANSWER}),
    make=_Checker,
    shows=((OBSERVATION, "produces answered with an error whose records are committed"),),
    suspects_only=True,
)
