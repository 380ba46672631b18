"""A fault written into real logs is found by the rule whose business it is; what is no fault is not found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark.mutants.judged import MUTANTS, UNDAMAGED, caught, registered, unknown
from tests.spark.mutants.mutant import Mutant
from tests.spark.mutants.slices import SLICES
from tests.spark.mutants.variants import Audited

pytestmark = pytest.mark.corpora
CAUGHT_MIN = 0.95


def _caught(mutant: Mutant, judged: Audited) -> bool:
    findings = judged.findings
    return caught(mutant, findings.get(mutant.variant, []), findings.get(UNDAMAGED + mutant.part, []))


def test_no_rule_fails(judged: Audited) -> None:
    assert judged.errors == ()


@pytest.mark.parametrize("part", SLICES)
def test_a_slice_shows_what_happened_to_its_cluster(judged: Audited, part: str) -> None:
    assert {one.rule_id for one in judged.violations(UNDAMAGED + part)} == SLICES[part].shows


def test_mutants_are_caught_by_the_rule_whose_business_they_are(judged: Audited, tell: Callable[[str], None]) -> None:
    faults = [mutant for mutant in MUTANTS if mutant.rule is not None]
    tell("")
    for mutant in faults:
        found = "caught" if _caught(mutant, judged) else "MISSED" if registered(mutant) else "no such rule yet"
        tell(f"  {found:<17} {mutant.rule:<36} {mutant.variant}")
    asked = [mutant for mutant in faults if registered(mutant)]
    assert len(asked) == len(faults), "a fault names a rule that is not asked"
    missed = [mutant.variant for mutant in asked if not _caught(mutant, judged)]
    tell(f"  {len(asked) - len(missed)} of {len(asked)} caught; {len(faults) - len(asked)} wait for their rule")
    assert len(missed) <= (1 - CAUGHT_MIN) * len(asked), missed


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.rule is None], ids=lambda one: one.variant)
def test_what_is_no_fault_is_no_violation(judged: Audited, mutant: Mutant) -> None:
    assert unknown(judged.violations(mutant.variant), judged.violations(UNDAMAGED + mutant.part)) == []


def test_there_are_mutants_enough() -> None:
    assert len({mutant.variant for mutant in MUTANTS}) == len(MUTANTS)
    assert sum(mutant.rule is not None for mutant in MUTANTS) >= 40
