"""The gate's lines and exit code are those of the report's verdict."""

from typing import Any

import pytest

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.gate import INCIDENTS_MAX, choose_gate_code, describe_gate, outdated
from highwater.pipelines.report.model import ClusterVerdict, Finding, Report, Window
from highwater.pipelines.report.small_tables import FINDINGS_MAX
from tests.unit.report import sample


@pytest.mark.parametrize(
    ("verdict", "fail_on", "code"),
    [
        ("clean", "inconclusive", ExitCode.CLEAN),
        ("clean", "violated", ExitCode.CLEAN),
        ("inconclusive", "inconclusive", ExitCode.INCONCLUSIVE),
        ("inconclusive", "violated", ExitCode.CLEAN),
        ("violated", "inconclusive", ExitCode.VIOLATED),
        ("violated", "violated", ExitCode.VIOLATED),
    ],
)
def test_the_code_is_the_verdict_unless_it_is_not_to_fail(verdict: str, fail_on: str, code: ExitCode) -> None:
    report = sample.report(verdict=verdict)
    assert choose_gate_code(report, fail_on) == code
    said = any("exit code 0" in line for line in describe_gate(report, fail_on))
    assert said == (verdict == "inconclusive" and code == ExitCode.CLEAN)


def test_a_line_per_violation_says_rule_place_offsets_and_time() -> None:
    implied = sample.finding("truncated-below-high-watermark")
    report = sample.report(
        verdict="violated",
        violations=(sample.finding(implied=(implied,)), sample.finding(time=None, topic=None, offset_start=None)),
        inconclusive=("a reason",),
        window=Window(since=sample.TIME, until=None),
    )
    assert list(describe_gate(report, "violated")) == [
        f"gate: violated (data lost), from {sample.TIME} until the last line",
        "new since the run before: no earlier run to compare with",
        f"violated: committed-data-lost  orders-3, offsets 12-14, leader epoch 5  {sample.TIME}, implies 1 more",
        "violated: committed-data-lost  leader epoch 5  at no known time",
        "inconclusive: a reason",
    ]


def test_the_worst_that_happened_stands_below_the_verdict() -> None:
    rows = [sample.incident(incident_id=f"i{number}") for number in range(INCIDENTS_MAX + 1)]
    on_purpose = sample.incident("broker_stopped", severity="info")
    lines = list(describe_gate(sample.report(verdict="clean", incidents=(*rows, on_purpose)), "violated"))
    line = "happened: AT RISK, 2026-11-20 14:05:00 to 14:05:16: Broker 3 died without shutting down."
    assert lines[1:-1] == [*[line] * INCIDENTS_MAX, "happened: 1 more, see highwater incidents"]


def with_run_before(*violations: Finding, **changes: Any) -> Report:
    before = sample.report().provenance.model_copy(update={"run_before": "0" * 32})
    return sample.report(verdict="violated", violations=violations, provenance=before, **changes)


KNOWN, NEW = sample.finding(is_new=False), sample.finding("hw-regression", is_new=True)


def test_what_the_run_before_did_not_have_is_named() -> None:
    incidents = (sample.incident(is_new=True), sample.incident("also_logged", severity="info", is_new=True))
    lines = list(describe_gate(with_run_before(KNOWN, NEW, observations=(NEW, NEW), incidents=incidents), "violated"))
    assert lines[2] == "new since the run before: 1 incident, 1 violation, 2 observations"
    assert [line.split("  ")[0] for line in lines[3:]] == [
        "violated: committed-data-lost",
        "violated: new: hw-regression",
    ]
    assert "new since the run before: nothing" in list(describe_gate(with_run_before(KNOWN), "violated"))


@pytest.mark.parametrize(
    ("report", "fail_on", "code"),
    [
        (with_run_before(KNOWN), "violated", ExitCode.CLEAN),
        (with_run_before(KNOWN, NEW), "violated", ExitCode.VIOLATED),
        (with_run_before(sample.finding(is_new=None)), "violated", ExitCode.VIOLATED),
        (with_run_before(), "violated", ExitCode.VIOLATED),
        (with_run_before(*[KNOWN] * FINDINGS_MAX), "violated", ExitCode.VIOLATED),
        (with_run_before(KNOWN, rules=(sample.rule(cases=1001, left_out=1),)), "violated", ExitCode.VIOLATED),
        (with_run_before(KNOWN, inconclusive=("a reason",)), "violated", ExitCode.CLEAN),
        (with_run_before(KNOWN, inconclusive=("a reason",)), "inconclusive", ExitCode.INCONCLUSIVE),
        (sample.report(verdict="clean"), "inconclusive", ExitCode.CLEAN),
    ],
)
def test_only_what_is_certainly_known_passes_with_only_new(report: Report, fail_on: str, code: ExitCode) -> None:
    assert choose_gate_code(report, fail_on, only_new=True) == code
    assert choose_gate_code(report, fail_on) == (ExitCode.CLEAN if report.verdict == "clean" else ExitCode.VIOLATED)


def test_what_is_violated_without_a_finding_is_told_too() -> None:
    by_rule = sample.report(verdict="violated", rules=(sample.rule(verdict="violated", cases=4), sample.rule("other")))
    assert "violated: committed-data-lost (4)" in list(describe_gate(by_rule, "violated"))
    produce = sample.produce(contradicted=2)
    without_rules = sample.report(verdict="violated", operations=sample.operations(produce=produce))
    assert "violated: 2 answers contradict the replay" in list(describe_gate(without_rules, "violated"))


def test_text_of_logs_stays_on_its_line() -> None:
    report = sample.report(verdict="violated", violations=(sample.finding(topic="a\nviolated: b\x1b[2J"),))
    lines = list(describe_gate(report, "violated"))
    assert [line for line in lines if "\n" in line or "\x1b" in line] == []
    assert len(lines) == 3


@pytest.mark.parametrize(("verdict", "then"), [("clean", "inconclusive"), ("violated", "violated")])
def test_old_gold_tables_are_never_clean(verdict: str, then: str) -> None:
    report = outdated(sample.report(verdict=verdict, inconclusive=("a reason",)))
    assert report.verdict == then
    assert len(report.inconclusive) == 2
    assert "highwater replay" in report.inconclusive[0]


EAST, WEST = (
    ClusterVerdict(cluster_id=name, verdict=verdict, tier="T1", inconclusive=())
    for name, verdict in (("east", "clean"), ("west", "violated"))
)


def test_each_of_several_clusters_has_a_line() -> None:
    report = sample.report(verdict="violated", clusters=(EAST, WEST))
    assert list(describe_gate(report, "violated"))[1:3] == ["cluster east: clean", "cluster west: violated"]
    # One that has no logs of the window is named, and judged by nobody.
    window = Window(since=sample.TIME, until=None)
    elsewhere = sample.report(clusters=(EAST,), brokers=(sample.broker(cluster_id="north"),), window=window)
    assert list(describe_gate(elsewhere, "violated"))[1:3] == [
        "cluster east: clean",
        "cluster north: no logs of that time",
    ]
    alone = sample.report(clusters=(EAST,), brokers=(sample.broker(cluster_id="east"),))
    assert "cluster east" not in "".join(describe_gate(alone, "violated"))
    assert "cluster east, from" in next(describe_gate(alone, "violated", cluster_id="east"))


def test_no_cluster_of_an_outdated_audit_is_clean() -> None:
    made = outdated(sample.report(verdict="violated", clusters=(EAST, WEST)))
    assert [part.verdict for part in made.clusters] == ["inconclusive", "violated"]
