"""The table of safety properties, docs/safety_properties.md, against the rules and against itself."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.rules.rule_ids import RULE_IDS

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "safety_properties.md").read_text(encoding="utf-8")
RANK = {"no": 0, "partly": 1, "yes": 2}
COLUMNS = ("property", "meaning", "T0", "T1", "T2", "T3", "data", "rules", "note")


class SafetyProperty(NamedTuple):
    module: str
    name: str
    meaning: str
    reach: tuple[str, ...]
    rule_ids: frozenset[str]
    note: str

    @property
    def furthest(self) -> str:
        return max(self.reach, key=RANK.__getitem__)


def _properties() -> list[SafetyProperty]:
    properties = []
    for section in DOCUMENT.split("\n## ")[1:]:
        module, _, text = section.partition("\n")
        rows = [tuple(line.strip("| ").split(" | ")) for line in text.splitlines() if line.startswith("|")]
        if module.endswith(".tla"):
            assert rows[0] == COLUMNS
            for name, meaning, *reach, rules, note in rows[2:]:
                rule_ids = frozenset(re.findall(r"`([^`]+)`", rules))
                assert bool(rule_ids) != (rules == "none")
                properties.append(SafetyProperty(module, name, meaning, tuple(reach), rule_ids, note))
    return properties


PROPERTIES = _properties()


@pytest.mark.parametrize("safety", PROPERTIES, ids=lambda safety: f"{safety.module}.{safety.name}")
def test_an_entry_is_complete(safety: SafetyProperty):
    assert len(safety.reach) == 5
    assert safety.rule_ids <= RULE_IDS
    assert safety.meaning.endswith(".")
    assert safety.note.endswith(".")


@pytest.mark.parametrize("safety", PROPERTIES, ids=lambda safety: f"{safety.module}.{safety.name}")
def test_a_higher_tier_shows_no_less(safety: SafetyProperty):
    tiers = [RANK[reach] for reach in safety.reach[:4]]
    assert tiers == sorted(tiers)


def test_no_property_is_listed_twice():
    keys = [(safety.module, safety.name) for safety in PROPERTIES]
    assert len(set(keys)) == len(keys)


def test_every_module_is_of_a_repository_that_is_listed():
    listed = re.compile(r"^\| \[([^]]+)\]\(https://github.com/\1\) \| [0-9a-f]{12} \|", re.MULTILINE)
    repositories = set(listed.findall(DOCUMENT))
    assert {safety.module.partition(":")[0] for safety in PROPERTIES} == repositories


def test_what_cannot_be_checked_has_no_rule():
    assert [safety.name for safety in PROPERTIES if safety.furthest == "no" and safety.rule_ids] == []


def test_the_numbers_are_those_of_the_table():
    counts = Counter(safety.furthest for safety in PROPERTIES)
    numbers = f"{counts['yes']} checkable, {counts['partly']} partly, {counts['no']} not"
    assert f"{len(PROPERTIES)} properties, by the furthest that any evidence goes: {numbers}." in DOCUMENT
