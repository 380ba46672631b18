"""What every rule owes its reader, and the documents that are made from the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from highwater.pipelines.rules.explain import examples, explain, known_bugs, rules_markdown
from highwater.pipelines.rules.findings import IMPLIED
from highwater.pipelines.rules.registry import BY_ID, RULES
from highwater.pipelines.rules.rule import Rule
from highwater.schemas.audit_facts import HISTORY_RANK, RANK
from tests.unit.rules.rule_ids import RULE_IDS

ROOT = Path(__file__).resolve().parents[3]


def test_the_public_names_are_there_each_once() -> None:
    assert {rule.rule_id for rule in RULES} == RULE_IDS
    assert len(RULES) == len(BY_ID)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
def test_a_rule_says_what_it_promises_and_why_it_can_be_trusted(rule: Rule) -> None:
    for text in (rule.texts.guarantee, rule.texts.source, rule.texts.versions, rule.texts.needs, rule.texts.proof):
        assert text.strip()
    assert rule.texts.shows
    assert all(RANK[kind] > HISTORY_RANK for kind in rule.kinds), "the history is given to every rule anyway"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule_id)
def test_an_explanation_fits_a_terminal_and_names_its_bugs(rule: Rule) -> None:
    lines = explain(rule).splitlines()
    assert max(map(len, lines)) <= 200
    assert lines[0] == rule.rule_id
    assert lines[2].startswith("what it means for your data: ")
    assert [line.partition(":")[0] for line in lines if line.startswith(("what to do", "guarantee"))] == [
        "what to do now",
        "guarantee",
    ]
    assert all(any(bug.jira in line for line in lines) for bug in known_bugs(rule))


def test_examples_are_of_rules_that_there_are() -> None:
    assert set(examples()) <= set(BY_ID)
    assert len(examples()) >= 6
    for example in examples().values():
        assert example["lines"]
        assert not any(line["file"].startswith("/") for line in example["lines"])


def test_the_document_is_what_the_rules_say() -> None:
    assert (ROOT / "docs" / "rules.md").read_text() == rules_markdown(RULES), (
        "run `highwater explain --markdown > docs/rules.md`"
    )


def test_what_is_implied_are_rules() -> None:
    assert {*IMPLIED, *(name for names in IMPLIED.values() for name in names)} <= set(BY_ID)
