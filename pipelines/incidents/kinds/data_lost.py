"""Acknowledged records are gone."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts
from pipelines.incidents.incident import CRITICAL, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.guarantee_broken import LOSS, described, violations


def detect(facts: Facts) -> Iterable[Incident]:
    """Violations of the rules of loss, one by one."""
    for row in violations(facts):
        if row["rule_id"] in LOSS:
            yield Incident(
                kind=KIND.name, severity=CRITICAL, weight=1_000_000.0 + (row["records"] or 0), **described(facts, [row])
            )


KIND = Kind(
    name="data_lost",
    meaning="Records that were acknowledged with acks=all are gone.",
    source="pipelines.rules.guarantees.committed_data_lost, tier_segment_lost, acked_as_duplicate",
    detect=detect,
    causes=("unclean_election", "broker_died", "broker_halted"),
)
