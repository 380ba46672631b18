"""A consumer was given records at or past what its isolation level shows.

A consumer's position proves nothing: it may seek anywhere, and take a position over from another member of its group.
Bytes do: an answer with records to a fetch at or past the limit. The limit that the same answer tells was read before
the records were, and may have grown meanwhile; the one of a later answer, in the same leader epoch, cannot be lower
than what it was then.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.rules.history import PartitionHistory
from pipelines.rules.rule import OPEN, VIOLATION, Case, Ref, Rule, Settings, Severity
from schemas import audit_facts as a
from schemas.audit_facts import Fact

RULE_ID = "read-above-isolation"


class _Checker:
    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        self.checked = 0

    def observe(self, fact: Fact) -> Iterable[Case]:
        """A fetch at or past what its answer shows; ``previous`` is what a later answer of that epoch shows."""
        if fact.offset is None:
            return
        self.checked += 1
        later = fact.previous
        if not fact.size_bytes or fact.error_code or later is None or fact.leader_epoch is None:
            return
        committed = fact.name == "read_committed"
        shown = fact.end_offset if committed else fact.high_watermark
        if fact.offset < max(later, shown if shown is not None else later):
            return
        what = "last stable offset" if committed else "high watermark"
        severity: Severity = VIOLATION if fact.topic_id is not None else OPEN
        unless = "; open, as no topic id shows that the topic was not created anew between"
        yield Case(
            RULE_ID,
            severity,
            f"Leader {fact.broker_id} gave {fact.size_bytes} bytes of records from offset {fact.offset} on to client "
            f"{fact.client}, which reads {fact.name}, while its {what} in epoch {fact.leader_epoch} was at most {later}"
            f"{unless if severity == OPEN else ''}.",
            (Ref.of(fact),),
            leader_epoch=fact.leader_epoch,
            offset_start=later,
            offset_end=fact.offset + 1,
            time_us=fact.time_us,
            brokers=(fact.broker_id,) if fact.broker_id is not None else (),
        )

    def finish(self) -> Iterable[Case]:
        return ()


RULE = Rule(
    rule_id=RULE_ID,
    guarantee=(
        "A consumer is never given a record at or past the high watermark, nor past the last stable offset if it reads "
        "read_committed."
    ),
    source="KIP-98; Partition.readRecords, UnifiedLog.read (FetchIsolation HIGH_WATERMARK, TXN_COMMITTED)",
    versions="2.1 and later, whose fetches name a leader epoch (KIP-320)",
    tier="T1",
    needs="consumers' fetches with their answers in leaders' request logs",
    proof=(
        "The fetch and its answer are one line: its position, and that bytes were given. A later answer on the same "
        "connection that names the same leader epoch bounds the limit from above, whatever is missing between, for "
        "neither limit goes back within an epoch. Positions alone, which a seek or a rebalance moves, are no case. "
        "Both answers name one topic id; without one the case is open."
    ),
    kinds=frozenset({a.READ}),
    make=_Checker,
    shows=(
        (VIOLATION, "records given at or past the limit that the isolation level sets"),
        (OPEN, "the same, where the topic may have been created anew between"),
    ),
    suspects_only=True,
)
