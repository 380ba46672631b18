"""Up to where a partition's facts are final for the rules, and the result of one run over its facts. Pure.

Each broker has a window on its own clock: the replay of its log is final before it (`pipelines.kafka.seals`), and so
are its lines, unless a file comes late. A run judges all available facts. The next run resumes from a second audit, of
the facts before the windows only: facts behind are read again. Facts with an order of their own (fetches by connection,
answers by offset) are final up to the first one behind a window. The few facts before the window that come after that
one are *held*: kept with the audit, and given to the next run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from typing import Final, NamedTuple

from highwater.pipelines.rules.facts.selection import selected
from highwater.pipelines.rules.partition_audit import CannotGoOn, PartitionAudit, RuleOutcome, place
from highwater.pipelines.rules.rule import Rule, Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import NO_TIME_US, Fact

#: With more of them a partition is judged whole by the next run.
HELD_MAX: Final = 1_000


class Audited(NamedTuple):
    """The result of one run for one partition."""

    outcomes: Sequence[RuleOutcome]
    brokers: set[int]  #: that its lines name
    writers: set[int]  #: brokers that logged its facts
    frozen: bytes | None  #: state from which the next run resumes; None: it judges the partition whole
    why_whole: str | None  #: for that


def audited(
    facts: Iterable[Fact],
    settings: Settings,
    rules: Sequence[Rule],
    until_us: Mapping[int, int] | None,
    frozen: bytes | None = None,
) -> Audited:
    """Apply the rules to a partition.

    Args:
        facts: in order. For a resumed partition, with those that the earlier run did not judge finally.
        until_us: by broker, up to when facts are judged finally. None if no later run resumes.
        frozen: serialized state of an earlier run. None for a full audit.

    Raises:
        CannotGoOn: the partition must be judged without `frozen`, over all its facts.
    """
    audit = PartitionAudit(settings, rules, frozen)
    final_audit = PartitionAudit(settings, rules, frozen) if until_us is not None else None
    window = JudgedWindow(until_us or {})
    writers: set[int | None] = set()
    why: str | None = None
    for fact in selected(merge(audit.held, facts, key=place) if audit.held else facts):
        audit.add(fact)
        writers.add(fact.broker_id)
        if final_audit is not None and audit.odd is not None:
            final_audit, why = None, audit.unsettled
        if final_audit is not None and window.takes(fact):
            try:
                final_audit.add(fact)
            except CannotGoOn as reason:
                final_audit, why = None, str(reason)
    left = None
    if final_audit is not None:
        try:
            left = final_audit.freeze(window.held)
        except CannotGoOn as reason:
            why = str(reason)
    outcomes = audit.finish()
    if until_us is not None:
        # Facts found in the end count too: the next run would judge the partition again after it has resumed.
        why = audit.unsettled or why or window.why_whole
        why = "it has facts of no broker's log" if None in writers else why
    known = {broker_id for broker_id in writers if broker_id is not None}
    return Audited(outcomes, audit.history.brokers, known, None if why else left, why)


class JudgedWindow:
    """Selects the facts that are final: early enough in their broker's log, and before any fact that is not.

    Attributes:
        held: facts early enough that come after a fact that is not.
        why_whole: reason to judge the partition whole if there are too many of them. Else None.
    """

    def __init__(self, until_us: Mapping[int, int]) -> None:
        self.held: list[Fact] = []
        self.why_whole: str | None = None
        self._until_us = until_us
        self._ended: set[tuple[object, ...]] = set()

    def takes(self, fact: Fact) -> bool:
        """Return True if the next fact is final."""
        row = (fact.kind, fact.broker_id, fact.connection) if fact.kind == a.FETCH else (fact.kind,)
        in_a_row = fact.kind in (a.FETCH, a.ANSWER)
        if not is_before(fact, self._until_us):
            self._ended |= {row} if in_a_row else set()
            return False
        if in_a_row and row in self._ended:
            if len(self.held) < HELD_MAX:
                self.held.append(fact)
            else:
                self.why_whole = f"more than {HELD_MAX} facts are held"
            return False
        return True


def is_before(fact: Fact, until_us: Mapping[int, int]) -> bool:
    """Return True if a fact is before its broker's time in `until_us`. Replay rows count from when they were final."""
    instant_us = fact.time_us
    if fact.kind == a.OPERATION:
        instant_us = fact.latest_us or fact.time_us
    elif fact.kind == a.ISR_REPLAY:
        instant_us = fact.log_append_time_us or NO_TIME_US
    elif fact.name == a.REPLAYED:
        instant_us = NO_TIME_US  # Every run makes them again.
    return fact.broker_id is not None and instant_us < until_us.get(fact.broker_id, -1)
