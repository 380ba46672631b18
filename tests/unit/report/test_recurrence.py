"""What makes a finding the same one in another run."""

from dataclasses import replace

import pytest

from highwater.pipelines.base.recurrence import RunBefore, fingerprint, summarize_run
from highwater.pipelines.report.correctness import make_correctness
from tests.unit.report import sample
from tests.unit.report.rows import Row, collected, found, result
from tests.unit.report.test_correctness import microseconds

TIME_US = 1_763_647_200_000_000


def mark(**changes: object) -> str:
    return fingerprint(found(1, **changes), TIME_US)


@pytest.mark.parametrize(
    "later", [{"offset_end": 99}, {"message": "more"}, {"records": 7}, {"brokers": [1, 2, 3]}, {"known_bug": "KAFKA-1"}]
)
def test_what_later_logs_add_is_no_other_finding(later: Row) -> None:
    assert mark(**later) == mark()
    assert fingerprint(found(1), TIME_US + 1) == mark()


@pytest.mark.parametrize(
    "other",
    [
        {"rule_id": "hw-regression"},
        {"severity": "open"},
        {"cluster_id": "d"},
        {"topic": "payments"},
        {"topic": None},
        {"partition": 1},
        {"leader_epoch": 6},
        {"offset_start": 2},
    ],
)
def test_another_place_is_another_finding(other: Row) -> None:
    assert mark(**other) != mark()


def test_without_offsets_the_time_tells_findings_apart() -> None:
    first, second = (fingerprint(found(1, offset_start=None), TIME_US + number) for number in (0, 1))
    assert first != second


def test_a_topic_may_be_named_by_half_a_character() -> None:
    assert mark(topic="half a pair \ud800")


def judged(before: RunBefore | None):
    rows = collected(findings=[microseconds(found(number)) for number in (1, 2)], rule_results=[result()])
    return make_correctness(replace(rows, before=before), [sample.broker()], "T3")


def test_findings_are_compared_with_the_run_before() -> None:
    rows = [found(1) | {"time": TIME_US}]
    made = judged(summarize_run("r", rows, [result()], []))
    assert [finding.is_new for finding in made.violations] == [False, True]
    assert [rule.is_new for rule in made.rules] == [False]
    other = judged(summarize_run("r", [], [result(verdict="violated")], []))
    assert [finding.is_new for finding in other.violations] == [True, True]
    assert [rule.is_new for rule in other.rules] == [True]


def test_without_a_run_before_nothing_is_new_or_known() -> None:
    made = judged(None)
    assert [finding.is_new for finding in made.violations] == [None, None]
    assert [rule.is_new for rule in made.rules] == [None]
    assert len({finding.fingerprint for finding in made.violations}) == 2
