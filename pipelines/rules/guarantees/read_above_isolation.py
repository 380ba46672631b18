"""A consumer was given records at or past the limit of its isolation level.

A consumer's position proves nothing: it may seek anywhere, and take a position over from another member of its group.
Bytes do: an answer with records to a fetch at or past the limit. The limit in the same answer was read before the
records, and may have grown meanwhile. The limit in a later answer of the same leader epoch cannot be lower than the
limit at that time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from highwater.pipelines.rules.rule import OPEN, VIOLATION, Case, Checker, Severity, unless_anew
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: Reads that a case shows.
SHOWN = 4


@dataclass
class _Found:
    """The first reads beyond the limit of one isolation level in one leader epoch, and their number."""

    facts: list[Fact]
    limit: int
    times: int = 0


@dataclass
class ReadAboveIsolation(Checker):
    _reads: dict[tuple[int, int, str], _Found] = field(default_factory=dict)

    def observe(self, fact: Fact) -> None:
        """Record a read at or beyond the limit of its isolation level.

        ``previous`` is the limit in a later answer of that epoch.
        """
        if fact.offset is None:
            return
        self.checked += 1
        later = fact.previous
        if not fact.size_bytes or fact.error_code or later is None or fact.leader_epoch is None:
            return
        shown = fact.end_offset if fact.name == a.READ_COMMITTED else fact.high_watermark
        if fact.broker_id is None or fact.offset < max(later, shown if shown is not None else later):
            return
        reads = self._reads.setdefault((fact.broker_id, fact.leader_epoch, fact.name or ""), _Found([], later))
        reads.times += 1
        if len(reads.facts) < SHOWN:
            reads.facts.append(fact)

    def finish(self) -> Iterable[Case]:
        for (broker_id, epoch, isolation), reads in sorted(self._reads.items()):
            yield _make_case(broker_id, epoch, isolation, reads)


def _make_case(broker_id: int, epoch: int, isolation: str, reads: _Found) -> Case:
    fact = reads.facts[0]
    assert fact.offset is not None
    what = "last stable offset" if isolation == a.READ_COMMITTED else "high watermark"
    severity: Severity = VIOLATION if all(read.topic_id is not None for read in reads.facts) else OPEN
    message = (
        f"Leader {broker_id} gave {fact.size_bytes} bytes of records from offset {fact.offset} on to client "
        f"{fact.client}, which reads {isolation}, while its {what} in epoch {epoch} was at most {reads.limit}"
    )
    if reads.times > 1:
        message += f"; {reads.times} such answers"
    return Case(
        severity,
        f"{message}{unless_anew(severity)}.",
        tuple(reads.facts),
        leader_epoch=epoch,
        offset_start=reads.limit,
        offset_end=max(fact.offset + 1, reads.limit + 1),
        time_us=fact.time_us,
        brokers=(broker_id,),
        records=reads.times,
    )
