"""The table of safety properties and its document."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.rules.safety_properties import EVIDENCE, SAFETY_PROPERTIES, SPECIFICATIONS, SafetyProperty
from pipelines.rules.safety_properties_doc import safety_properties_markdown
from tests.unit.rules.rule_ids import RULE_IDS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "safety_properties.md"
RANK = {"no": 0, "partly": 1, "checkable": 2}


def test_the_document_is_what_the_table_says():
    assert DOCUMENT.read_text(encoding="utf-8") == safety_properties_markdown()


@pytest.mark.parametrize("safety", SAFETY_PROPERTIES, ids=lambda safety: f"{safety.module}.{safety.name}")
def test_an_entry_is_complete(safety: SafetyProperty):
    assert safety.specification in SPECIFICATIONS
    assert len(safety.reach) == len(EVIDENCE)
    assert set(safety.rule_ids) <= RULE_IDS
    assert safety.meaning.endswith(".")
    assert safety.note.endswith(".")
    assert "|" not in safety.meaning + safety.note


@pytest.mark.parametrize("safety", SAFETY_PROPERTIES, ids=lambda safety: f"{safety.module}.{safety.name}")
def test_a_higher_tier_shows_no_less(safety: SafetyProperty):
    tiers = [RANK[reach] for reach in safety.reach[:4]]
    assert tiers == sorted(tiers)


def test_no_property_is_listed_twice():
    keys = [(safety.specification, safety.module, safety.name) for safety in SAFETY_PROPERTIES]
    assert len(set(keys)) == len(keys)


def test_what_cannot_be_checked_has_no_rule():
    assert [safety.name for safety in SAFETY_PROPERTIES if safety.verdict == "no" and safety.rule_ids] == []
