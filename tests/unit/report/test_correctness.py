"""What rules found, as the report tells it."""

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from highwater.pipelines.base.config import load_config
from highwater.pipelines.report.assemble import assemble, decide
from highwater.pipelines.report.correctness import (
    NOT_APPLICABLE,
    NOTHING_JUDGED,
    Correctness,
    derive_rule_state,
    make_correctness,
    place_of,
)
from highwater.pipelines.report.model import Broker, RunInfo, Tier
from highwater.pipelines.report.summary import write_summary
from highwater.pipelines.report.tiers import explain_not_checkable
from highwater.pipelines.rules.findings import Found, results_of
from highwater.pipelines.rules.registry import RULES
from highwater.pipelines.rules.rule import Rule
from highwater.pipelines.rules.texts import TEXTS, RuleTexts
from tests.unit.report import sample
from tests.unit.report.rows import Row, collected, covered, found, log_file, proof, result

LOST, SECOND = (rule.rule_id for rule in RULES[:2])
#: Facts judged, by cluster and rule.
CHECKED = {("c", LOST): 5, ("c", SECOND): 5}


def microseconds(row: Row) -> Row:
    """As the query gives it."""
    time, rest = row["time"], {name: value for name, value in row.items() if name != "time"}
    return rest | {"time": None if time is None else int(time.timestamp() * 1_000_000), "of_severity": 1}


def brokers(*tiers: Tier, version: str | None = "3.9.0") -> list[Broker]:
    return [sample.broker(number, tier=tier, kafka_version=version) for number, tier in enumerate(tiers, start=1)]


@dataclass(frozen=True)
class OfTier(Rule):
    tier: Tier = "T0"

    @property
    def texts(self) -> RuleTexts:
        return msgspec.structs.replace(TEXTS[LOST], tier=self.tier, needs="what it needs")


def rule(tier: Tier, rule_id: str = LOST) -> Rule:
    return OfTier(rule_id, tier=tier)


def judge(*findings: Row, tier: Tier = "T0", evidence: list[Row] | None = None, **given: Any) -> Correctness:
    rows = collected(
        findings=[microseconds(row) for row in findings],
        evidence=evidence or [],
        rule_results=given.pop("results", [result()]),
    )
    return make_correctness(rows, given.pop("brokers", brokers("T1")), "T3", known={LOST: rule(tier)}, **given)


def as_found(row: Row) -> Found:
    """As the audit has it before it is stored."""
    return Found(**{name: row[name] for name in set(row) - {"time"}}, time_us=0, evidence=())


def verdict_of(judged: Correctness, **changes: int) -> tuple[str, tuple[str, ...]]:
    return decide(sample.produce(**changes), 1000, 1.0, [], judged)


# ---------------------------------------------------------------------- findings


def test_what_follows_from_a_finding_is_within_it() -> None:
    made = judge(
        found(1),
        found(2, rule_id="hw-regression", implied_by="v1"),
        found(3, rule_id="late-completion", severity="observation", implied_by="v1"),
        found(4, rule_id="hw-regression"),
        found(5, severity="observation"),
        found(6, severity="open"),
    )
    assert [(one.finding_id, [other.finding_id for other in one.implied]) for one in made.violations] == [
        ("v1", ["v2", "v3"]),
        ("v4", []),
    ]
    assert [one.finding_id for one in made.observations] == ["v5"]
    assert [one.finding_id for one in made.open_cases] == ["v6"]


def test_one_whose_origin_is_not_there_stands_for_itself() -> None:
    made = judge(found(1, implied_by="gone"), found(2, implied_by="v2"))
    assert [one.finding_id for one in made.violations] == ["v1", "v2"]


def test_findings_are_in_order_of_rule_place_and_offset() -> None:
    rows = [
        found(1, rule_id="unheard-of", topic="a"),
        found(2, rule_id=SECOND, topic="a"),
        found(3, partition=10),
        found(4, partition=2, offset_start=100),
        found(5, partition=2, offset_start=20),
        found(6, topic=None, partition=None, offset_start=None),
        found(7, partition=2, offset_start=None, time=None),
    ]
    made = make_correctness(
        collected(
            findings=[microseconds(row) for row in rows],
            rule_results=[result("unheard-of"), result(SECOND), result(LOST)],
        ),
        brokers("T3"),
        "T3",
    )
    assert [one.finding_id for one in made.violations] == ["v6", "v7", "v5", "v4", "v3", "v2", "v1"]
    assert [one.rule_id for one in made.rules] == [LOST, SECOND, "unheard-of"]


def test_a_finding_has_its_lines_in_order() -> None:
    lines = [proof("v1", 10) | {"time": None}, proof("v1", 9) | {"time": 1_763_647_200_009_000}]
    made = judge(found(1, known_bug="KAFKA-1", cause="c", records=2), evidence=lines)
    one = made.violations[0]
    assert [line.text for line in one.evidence] == ["line 9", "line 10"]
    assert (one.evidence[0].file, one.evidence[0].line_no, one.evidence[0].byte_offset) == ("1/server.log", 10, 900)
    assert [line.time for line in one.evidence] == ["2025-11-20T14:00:00.009Z", None]
    assert (one.known_bug, one.cause, one.records, one.time) == ("KAFKA-1", "c", 2, "2026-11-20T14:00:00.001Z")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "orders-3, offsets 12-14, leader epoch 5"),
        ({"offset_end": 13, "leader_epoch": None}, "orders-3, offset 12"),
        ({"offset_end": None, "partition": None}, "orders, offset 12 and later, leader epoch 5"),
        ({"topic": None, "offset_start": None, "leader_epoch": None}, ""),
    ],
)
def test_a_place_in_words(changes: dict[str, Any], place: str) -> None:
    assert place_of(sample.finding(**changes)) == place


def test_what_is_left_out_is_counted() -> None:
    row = microseconds(found(1)) | {"of_severity": 1200}
    made = make_correctness(collected(findings=[row], rule_results=[result(cases=1200)]), brokers("T3"), "T3")
    assert made.notes == ("Of 1,200 violations 1,199 are left out here; gold.violations and gold.evidence have all.",)


# ----------------------------------------------------------------------- verdict


def test_without_results_of_rules_the_replay_decides() -> None:
    made = judge(results=[])
    assert (made.rules, made.violations, made.not_checkable) == ((), (), ())
    assert "acks=all produces only" in made.notes[0]
    assert verdict_of(made) == ("clean", ())
    assert verdict_of(made, contradicted=1) == ("violated", ())


def test_rules_outweigh_the_replay() -> None:
    assert verdict_of(judge(), contradicted=1) == ("clean", ())
    assert verdict_of(judge(found(1))) == ("violated", ())
    assert verdict_of(judge(found(1, severity="observation"))) == ("clean", ())


def test_open_cases_and_reasons_leave_it_inconclusive() -> None:
    def results(*findings: Found, errors: dict[str, str], doubts: list[str]) -> list[Row]:
        failed = {("c", rule_id): error for rule_id, error in errors.items()}
        return [vars(row) for row in results_of(RULES[:2], findings, CHECKED, failed, {"c": doubts})]

    failed = {SECOND: "ZeroDivisionError"}
    assert verdict_of(judge(results=results(errors=failed, doubts=[])))[1] == (
        f"{SECOND}: the rule failed: ZeroDivisionError",
    )
    # What every rule doubts is said once.
    made = judge(results=results(errors=failed, doubts=["no version; add it", "clocks differ"]))
    assert verdict_of(made) == (
        "inconclusive",
        ("no version; add it; clocks differ", f"{SECOND}: the rule failed: ZeroDivisionError"),
    )
    one_open = found(1, severity="open")
    opened = results(as_found(one_open), errors={}, doubts=["clocks differ"])
    assert opened[0]["reason"] == "1 case cannot be decided from these logs; clocks differ"
    assert verdict_of(judge(one_open, results=opened)) == (
        "inconclusive",
        ("clocks differ", f"{LOST}: 1 case cannot be decided from these logs"),
    )
    opened = results(as_found(one_open), errors={}, doubts=[])
    assert verdict_of(judge(one_open, results=opened))[1] == (f"{LOST}: 1 case cannot be decided from these logs",)
    # Without a reason only the evidence is not there, which says nothing against the rest.
    assert verdict_of(judge(results=[result(verdict="inconclusive")])) == ("clean", ())
    # A reason is for people: what is decided does not depend on its words.
    worded = [result(verdict="inconclusive", reason="clocks differ", doubts=["their clocks differ"])]
    assert verdict_of(judge(results=worded))[1] == ("their clocks differ",)


def test_a_rule_that_had_nothing_to_judge_says_so() -> None:
    nothing = [result(verdict="inconclusive")]
    assert judge(results=nothing).rules[0].reason == NOTHING_JUDGED
    # Whatever the table says of it: it is one situation.
    of_each = [judge(results=rows).rules[0] for rows in (nothing, [result()])]
    assert [(rule.verdict, rule.applicable, derive_rule_state(rule, ())) for rule in of_each] == [
        ("clean", False, NOT_APPLICABLE)
    ] * 2
    assert "needs evidence T2" in (judge(results=nothing, tier="T2").rules[0].reason or "")
    assert judge(results=[result(checked=3)]).rules[0].reason is None
    doubted = judge(results=[result(verdict="inconclusive", reason="a clock was set back")]).rules[0]
    assert (doubted.verdict, derive_rule_state(doubted, ())) == ("inconclusive", "inconclusive")


def test_an_open_case_outside_the_window_leaves_nothing_open() -> None:
    results = [result(verdict="inconclusive", open_cases=2, reason="2 cases cannot be decided from these logs")]
    made = judge(results=results, in_window=True)
    assert verdict_of(made) == ("clean", ())
    assert made.rules[0].verdict == "inconclusive"
    assert "findings are of the window" in made.notes[0].lower()


def test_a_violation_outside_the_window_is_none_of_it() -> None:
    results = [result(verdict="violated", cases=1)]
    assert verdict_of(judge(results=results, in_window=True))[0] == "clean"
    # Without a window a rule that says so is enough, whatever became of its findings.
    assert verdict_of(judge(results=results))[0] == "violated"


# ------------------------------------------------------------------------- tiers


def test_a_rule_above_the_logs_tier_alone_does_not_make_it_inconclusive() -> None:
    made = judge(tier="T2")
    assert verdict_of(made) == ("clean", ())
    assert made.rules[0].verdict == "inconclusive"
    gap = made.not_checkable[0]
    assert (gap.rule_id, gap.reason) == (LOST, "needs evidence T2 (what it needs); broker 1 has T1")
    assert gap.needs.endswith("--entity-name 1 --alter --add-config kafka.cluster.Partition=DEBUG")
    assert made.rules[0].reason == gap.reason


def test_a_rule_above_the_tier_keeps_what_it_found() -> None:
    made = judge(found(1), tier="T3", results=[result(verdict="violated", cases=1)])
    assert (made.rules[0].verdict, made.rules[0].reason, len(made.not_checkable)) == ("violated", None, 1)
    failed = judge(tier="T3", results=[result(verdict="inconclusive", error="E")])
    assert verdict_of(failed) == ("inconclusive", (f"{LOST}: the rule failed: E",))


def test_the_remedy_for_a_rule() -> None:
    def needs(tier: Tier, *have: Tier, version: str | None = None) -> str:
        gap = explain_not_checkable(rule(tier), brokers(*have, version=version), "T3")
        assert gap is not None
        return gap.needs

    assert explain_not_checkable(rule("T1"), brokers("T1", "T3"), "T3") is None
    assert needs("T2", "T0").endswith("--add-config kafka.request.logger=DEBUG,kafka.cluster.Partition=DEBUG")
    assert needs("T3", "T2", "T3").endswith(
        "--entity-name 1 --alter --add-config kafka.cluster.Partition=TRACE,kafka.server.DelayedProduce=TRACE,"
        "kafka.server.ReplicaManager=TRACE"
    )
    assert "DelayedProduce" not in needs("T3", "T1", version="4.1.0")
    assert needs("T1", "T1", "T0", "T0").endswith(
        "--entity-name 2 --alter --add-config kafka.request.logger=DEBUG; likewise for broker 3"
    )
    assert needs("T2", "T0", version="0.10.2.2") == (
        "set log4j.logger.kafka.request.logger=TRACE, log4j.logger.kafka.cluster.Partition=DEBUG in "
        "config/log4j.properties and restart the broker"
    )
    assert "server.log" in needs("T1")


def test_evidence_that_is_not_to_be_used_has_another_remedy() -> None:
    gap = explain_not_checkable(rule("T2"), brokers("T1"), "T1")
    assert gap is not None
    assert gap.needs == "set replay.evidence_tier_max to T2 or above"
    unknown = explain_not_checkable(rule("T2"), [sample.broker(-1, tier="T0")], "T3")
    assert unknown is not None
    assert "files of no known broker has T0" in unknown.reason
    assert "server.log" in unknown.needs


# ------------------------------------------------------------------------- whole


def test_the_report_holds_it() -> None:
    info = RunInfo("r", "0", "c", "f")
    config = load_config(None, {"audit.severity": {"unclean-election": "off"}})
    coverage = [
        covered(1, "-", 9)
        | {"lines": 9, "unparsed": 0, "missing": 0, "request_log": True}
        | {"partition_debug": False, "completion_trace": False}
    ]
    files = [log_file("1/server.log", 1, first_time=0, last_time=1, kafka_version=None, mode=None, problem=None)]
    results = [result(one.rule_id) for one in RULES]
    rows = collected(files=files, coverage=coverage, findings=[microseconds(found(1))], rule_results=results)
    report = assemble(rows, config, info)
    assert (report.verdict, report.tier) == ("violated", "T1")
    above = [one.rule_id for one in RULES if one.texts.tier > "T1"]
    assert [gap.rule_id for gap in report.coverage.not_checkable] == above
    assert [one.rule_id for one in report.rules if one.verdict == "inconclusive"] == above
    assert [one.finding_id for one in report.violations] == ["v1"]
    assert "\nswitched off, as configured (audit.severity): unclean-election.\n" in write_summary(report)
    assert not any("not run" in note for note in report.notes)


def test_each_of_several_clusters_is_judged_by_itself() -> None:
    info = RunInfo("r", "0", "c", "f", problems=(("2/server.log", "truncated: copy it again"),))
    hole = {"cluster_id": "d", "message": "2/server.log was not read: truncated", "is_inside": True}
    of_all: dict[str, list[Row]] = {"files": [], "coverage": [], "rule_results": [], "holes": [hole]}
    marks = {"request_log": True, "partition_debug": True, "completion_trace": True}
    for number, cluster in enumerate(("c", "d"), 1):
        file = log_file(
            f"{number}/server.log", 1, first_time=0, last_time=1, kafka_version=None, mode=None, problem=None
        )
        of_all["files"].append(file | {"cluster_id": cluster})
        counts = covered(1, "-", 9) | {"lines": 9, "unparsed": 0, "missing": 0} | marks
        of_all["coverage"].append(counts | {"cluster_id": cluster})
        doubts = ["a broker is missing"] if cluster == "d" else []
        of_all["rule_results"] += [
            result(
                one.rule_id, "inconclusive" if doubts else "clean", checked=number, doubts=doubts, cluster_id=cluster
            )
            for one in RULES
        ]
    lost = microseconds(found(1)) | {"cluster_id": "c"}
    together = assemble(collected(findings=[lost], **of_all), load_config(), info)
    assert [(part.cluster_id, part.verdict) for part in together.clusters] == [("c", "violated"), ("d", "inconclusive")]
    assert together.verdict == "violated"
    first, second = (part.inconclusive for part in together.clusters)
    # What is missing of one, and a file of it that was cut, says nothing of the other.
    assert [any(word in reason for reason in second) for word in ("a broker is missing", "truncated")] == [True, True]
    assert not any("missing" in reason or "truncated" in reason for reason in first)
    assert together.inconclusive == (*(f"cluster c: {it}" for it in first), *(f"cluster d: {it}" for it in second))
    assert {(one.verdict, one.checked) for one in together.rules} == {("inconclusive", 3)}
    assert [place_of(finding).partition(",")[0] for finding in together.violations] == ["cluster c"]
    # As if the lake had no other.
    for part in together.clusters:
        own = {name: [row for row in rows if row["cluster_id"] == part.cluster_id] for name, rows in of_all.items()}
        findings = [lost] if part.cluster_id == "c" else []
        problems = info.problems if part.cluster_id == "d" else ()
        alone = assemble(collected(findings=findings, **own), load_config(), replace(info, problems=problems))
        assert alone.clusters == (part,)
        assert (alone.verdict, alone.inconclusive, alone.tier) == (part.verdict, part.inconclusive, part.tier)
        assert all(finding.cluster_id is None for finding in alone.violations)


def test_a_cluster_without_logs_of_a_window_is_not_judged_in_it() -> None:
    info = RunInfo("r", "0", "c", "f")
    files = [
        log_file(
            f"{name}/server.log", 1, first_time=first, last_time=first + 9, kafka_version=None, mode=None, problem=None
        )
        | {"cluster_id": name}
        for name, first in (("early", 0), ("late", 100))
    ]
    rows = collected(files=files, rule_results=[result(cluster_id=name) for name in ("early", "late")])
    findings = [microseconds(found(1)) | {"cluster_id": "early", "time": None}]

    def judged(rows: Any, since_us: int | None, until_us: int | None) -> list[str]:
        report = assemble(rows, load_config(), info, since_us=since_us, until_us=until_us)
        return [part.cluster_id for part in report.clusters]

    assert judged(rows, None, None) == ["early", "late"]
    assert judged(rows, 50, None) == judged(rows, 105, 200) == ["late"]
    assert judged(rows, None, 100) == ["early"]
    # Where nobody has any, nothing is left out; what has no time may well be of the window.
    assert judged(rows, 50, 60) == ["early", "late"]
    assert judged(replace(rows, findings=findings), 105, 200) == ["early", "late"]


def test_a_rule_of_durations_cannot_be_checked_where_times_are_whole_seconds() -> None:
    def gaps(resolution_us: int | None, checked: int) -> list[str]:
        rows = collected(
            files=[log_file("server.log", 1, resolution_us=resolution_us)],
            rule_results=[
                result(rule_id=name, checked=checked, verdict="inconclusive") for name in (LOST, "late-completion")
            ],
        )
        return [gap.rule_id for gap in make_correctness(rows, brokers("T3"), "T3").not_checkable]

    assert gaps(1_000_000, 0) == ["late-completion"]
    assert gaps(1_000, 0) == gaps(None, 0) == gaps(1_000_000, 7) == []
