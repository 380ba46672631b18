"""The gate's lines and exit code are those of the report's verdict."""

import pytest

from jobs.exit_codes import ExitCode
from jobs.gate import gate_code, gate_lines, outdated
from pipelines.report.model import Window
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
    assert gate_code(report, fail_on) == code
    said = any("ends with 0" in line for line in gate_lines(report, fail_on))
    assert said == (verdict == "inconclusive" and code == ExitCode.CLEAN)


def test_a_line_per_violation_says_rule_place_offsets_and_time() -> None:
    implied = sample.finding("truncated-below-high-watermark")
    report = sample.report(
        verdict="violated",
        violations=(sample.finding(implied=(implied,)), sample.finding(time=None, topic=None, offset_start=None)),
        inconclusive=("a reason",),
        window=Window(since=sample.TIME, until=None),
    )
    assert list(gate_lines(report, "violated")) == [
        f"gate: violated, from {sample.TIME} until the last",
        f"violated: committed-data-lost  orders-3, offsets 12 to 14, leader epoch 5  {sample.TIME}, implies 1 more",
        "violated: committed-data-lost  leader epoch 5  at no known time",
        "inconclusive: a reason",
    ]


def test_what_is_violated_without_a_finding_is_told_too() -> None:
    by_rule = sample.report(verdict="violated", rules=(sample.rule(verdict="violated", cases=4), sample.rule("other")))
    assert "violated: committed-data-lost (4)" in list(gate_lines(by_rule, "violated"))
    produce = sample.produce(contradicted=2)
    without_rules = sample.report(verdict="violated", operations=sample.operations(produce=produce))
    assert "violated: 2 answers contradict the replay" in list(gate_lines(without_rules, "violated"))


def test_text_of_logs_stays_on_its_line() -> None:
    report = sample.report(verdict="violated", violations=(sample.finding(topic="a\nviolated: b\x1b[2J"),))
    lines = list(gate_lines(report, "violated"))
    assert [line for line in lines if "\n" in line or "\x1b" in line] == []
    assert len(lines) == 2


@pytest.mark.parametrize(("verdict", "then"), [("clean", "inconclusive"), ("violated", "violated")])
def test_old_gold_tables_are_never_clean(verdict: str, then: str) -> None:
    report = outdated(sample.report(verdict=verdict, inconclusive=("a reason",)))
    assert report.verdict == then
    assert len(report.inconclusive) == 2
    assert "highwater replay" in report.inconclusive[0]
