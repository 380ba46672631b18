"""From cases to findings: severities, nesting, verdicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.rules.findings import findings_of, results_of
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Case
from highwater.pipelines.rules.worker import is_compacted, is_deletable

LOST, BELOW = "committed-data-lost", "truncation-below-hw"


def case(
    rule_id: str = LOST, severity: str = "violation", start: int | None = 10, end: int | None = 20
) -> dict[str, Any]:
    return {
        "rule_id": rule_id,
        "severity": severity,
        "cluster_id": "c",
        "topic": "t",
        "partition": 0,
        "leader_epoch": 1,
        "offset_start": start,
        "offset_end": end,
        "time_us": 5,
        "brokers": [1],
        "cause": None,
        "known_bug": None,
        "records": None,
        "message": "m",
        "evidence": [],
        "witnesses": ["broker 1, fetch x#1", "broker 2, leadership"],
    }


def test_what_follows_from_a_loss_stands_under_it() -> None:
    lost, below, elsewhere = findings_of([case(), case(BELOW, start=15, end=30), case(BELOW, start=30, end=40)], {})
    assert (below.implied_by, elsewhere.implied_by, lost.implied_by) == (lost.finding_id, None, None)
    # An observation implies nothing.
    seen = findings_of([case(severity="observation"), case(BELOW, start=15)], {})
    assert all(one.implied_by is None for one in seen)


def test_severities_are_configuration() -> None:
    assert [one.severity for one in findings_of([case()], {LOST: "observation"})] == ["observation"]
    assert findings_of([case(), case(severity="observation")], {LOST: "off"}) == []
    # Only violations are weighed: what is legal stays an observation.
    assert [one.severity for one in findings_of([case(severity="observation")], {LOST: "violation"})] == ["observation"]


def test_a_finding_has_one_identity() -> None:
    assert len(findings_of([case(), case()], {})) == 1


def test_verdicts() -> None:
    rules = [BY_ID[LOST], BY_ID["late-completion"]]

    def verdicts(cases: list[dict[str, Any]], errors: dict[str, str], doubts: list[str], checked: int = 5) -> list[str]:
        counts = {("c", rule.rule_id): checked for rule in rules}
        failed = {("c", rule_id): error for rule_id, error in errors.items()}
        judged = results_of(rules, findings_of(cases, {}), counts, failed, {"c": doubts, "d": []})
        # Another cluster, of which nothing is known, changes nothing.
        assert [one.verdict for one in judged if one.cluster_id == "d"] == ["clean", "inconclusive"]
        return [one.verdict for one in judged if one.cluster_id == "c"]

    assert verdicts([], {}, []) == ["clean", "clean"]
    assert verdicts([case()], {}, ["a broker is missing"]) == ["violated", "inconclusive"]
    assert verdicts([case(severity="open")], {}, []) == ["inconclusive", "clean"]
    assert verdicts([], {LOST: "ZeroDivisionError"}, []) == ["inconclusive", "clean"]
    # Nothing to go by: a rule that needs a request log does not call it clean.
    assert verdicts([], {}, [], checked=0) == ["clean", "inconclusive"]


def test_what_brokers_say_of_deletion_and_compaction() -> None:
    configs = {("c", 1, "delete.topic.enable"): ((0, "false"),), ("c", 2, "delete.topic.enable"): ((0, "false"),)}
    assert is_deletable(Contexts(), "c")
    assert not is_deletable(Contexts(broker_configs=configs), "c")
    assert is_deletable(Contexts(broker_configs=configs | {("c", 2, "delete.topic.enable"): ((0, "true"),)}), "c")
    policies = {("c", 1, "log.cleanup.policy"): ((0, "[delete]"),)}
    own = {("c", 1, "t", "cleanup.policy"): ((5, "[compact, delete]"),)}
    assert is_compacted(Contexts(), "c", "t") is None
    assert is_compacted(Contexts(broker_configs=policies), "c", "t") is False
    assert is_compacted(Contexts(broker_configs=policies, topic_configs=own), "c", "t") is True
    assert is_compacted(Contexts(), "c", "__consumer_offsets") is True


def test_one_witness_leaves_it_open() -> None:
    lost = Case(VIOLATION, "m", (), witnesses=("broker 1, leadership",))
    assert (lost.settled().severity, lost.settled().message) == (OPEN, "m Open, as a single witness says so.")
    assert replace(lost, witnesses=(*lost.witnesses, "broker 2, leadership")).settled().severity == VIOLATION
    # An observation needs none.
    assert replace(lost, severity=OBSERVATION).settled().severity == OBSERVATION
