"""Facts of real partitions with random ones missing: no violation that the complete ones do not show.

The facts are exported by ``tests/data/export_facts.py``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.rules.partition_audit import PartitionAudit
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.rule import VIOLATION, Case, Settings
from highwater.schemas.audit_facts import Fact
from tests.examples import examples

FACTS = Path(__file__).resolve().parents[2] / "data" / "facts.jsonl.gz"
LOSSES = 300
SHARE_MAX = 0.6
BURST_MAX = 60


@dataclass(frozen=True)
class Partition:
    """A real partition, complete."""

    cluster_id: str
    topic: str
    partition: int
    versions: dict[int, str]
    facts: tuple[Fact, ...]

    def audit(self, facts: Sequence[Fact]) -> list[Case]:
        """Violations in these facts of it."""
        asked = Settings(
            min_insync_replicas=lambda broker_id, time_us: 2,
            version=lambda broker_id, time_us: self.versions.get(broker_id),
            unclean_allowed=lambda broker_id: None,
        )
        audit = PartitionAudit(asked, RULES)
        for fact in facts:
            audit.add(fact)
        outcomes = list(audit.finish())
        assert [outcome.error for outcome in outcomes if outcome.error] == []
        return [case for outcome in outcomes for case in outcome.cases if case.severity == VIOLATION]


@cache
def partitions() -> dict[str, Partition]:
    """All exported ones."""
    found: list[tuple[dict[str, object], list[Fact]]] = []
    for line in gzip.decompress(FACTS.read_bytes()).decode().splitlines():
        row = json.loads(line)
        if "kind" not in row:
            found.append((row, []))
            continue
        for name in ("isr", "replicas"):
            if name in row:
                row[name] = tuple(row[name])
        found[-1][1].append(Fact(**row))
    made = {}
    for head, facts in found:
        versions = {int(broker): str(text) for broker, text in dict(head["versions"]).items()}  # type: ignore[call-overload]
        name = f"{head['topic']}-{head['partition']} of {head['cluster_id']}"
        made[name] = Partition(
            str(head["cluster_id"]), str(head["topic"]), int(str(head["partition"])), versions, tuple(facts)
        )
    return made


@cache
def complete(name: str) -> tuple[Case, ...]:
    """Violations of a partition with all its facts."""
    whole = partitions()[name]
    return tuple(whole.audit(whole.facts))


def within(case: Case, other: Case) -> bool:
    """The same rule, and no offsets beyond."""
    if case.rule_id != other.rule_id or case.offset_start is None or other.offset_start is None:
        return case.rule_id == other.rule_id and case.offset_start == other.offset_start
    end = case.offset_end if case.offset_end is not None else case.offset_start
    return other.offset_start <= case.offset_start and (other.offset_end is None or end <= other.offset_end)


def without(facts: Sequence[Fact], share: float, seed: int, bursts: Sequence[tuple[int, int]]) -> list[Fact]:
    """Some facts at random and some in a row are gone."""
    random = Random(seed)
    gone = {at % len(facts) + step for at, length in bursts for step in range(length)}
    return [fact for at, fact in enumerate(facts) if at not in gone and random.random() >= share]


@pytest.mark.parametrize("name", partitions())
@examples(LOSSES)
@given(
    share=st.floats(0, SHARE_MAX),
    seed=st.integers(0, 2**32),
    bursts=st.lists(st.tuples(st.integers(0, 100_000), st.integers(1, BURST_MAX)), max_size=6),
)
def test_missing_facts_make_no_violation(name: str, share: float, seed: int, bursts: list[tuple[int, int]]) -> None:
    whole = partitions()[name]
    left = without(whole.facts, share, seed, bursts)
    made = [case for case in whole.audit(left) if not any(within(case, other) for other in complete(name))]
    assert made == []


@pytest.mark.parametrize("name", partitions())
def test_no_single_kind_or_broker_makes_a_violation_by_its_absence(name: str) -> None:
    whole = partitions()[name]
    parts: set[object] = {fact.kind for fact in whole.facts} | {fact.broker_id for fact in whole.facts}
    parts |= {(fact.kind, fact.name, fact.broker_id) for fact in whole.facts}
    for part in sorted(parts, key=str):
        left = [
            fact
            for fact in whole.facts
            if part not in (fact.kind, fact.broker_id, (fact.kind, fact.name, fact.broker_id))
        ]
        made = [case for case in whole.audit(left) if not any(within(case, other) for other in complete(name))]
        assert made == [], part


def test_what_is_there_shows() -> None:
    shown = {name: {case.rule_id for case in complete(name)} for name in partitions()}
    assert {rule_id for rules in shown.values() for rule_id in rules} >= {
        "committed-data-lost",
        "late-completion",
        "acked-as-duplicate-of-another-batch",
    }
