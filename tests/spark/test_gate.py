"""`highwater gate` over gold tables: which findings count in a window, and which lake cannot be judged."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs import steps
from jobs.exit_codes import ExitCode
from pipelines.config import load_config
from pipelines.console import CaptureConsole
from pipelines.errors import InputError
from pipelines.lake import Lake
from schemas.audit import RULE_RESULTS, VIOLATIONS
from schemas.bronze import LOG_FILES
from schemas.catalog import TABLES
from schemas.gold import COVERAGE, DELAYED_OPERATIONS
from schemas.table import TableSpec
from tests.unit.report.rows import Row, at, covered, found, log_file, operation, result

HOUR_MS = 3_600_000


def fill(lake: Lake, spec: TableSpec, rows: list[Row]) -> None:
    values = [tuple(row.get(name) for name in spec.column_names) for row in rows]
    lake.replace(spec, lake.spark.createDataFrame(values, spec.worker_schema), stamp="audit-1")


@pytest.fixture(scope="module")
def hours(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake whose two hours each have a produce; tests write findings into it, and `audited` takes them out."""
    lake = Lake(spark, tmp_path_factory.mktemp("gate"))
    lake.create(TABLES)
    fill(lake, LOG_FILES, [log_file("a/server.log", 1)])
    fill(lake, COVERAGE, [covered(1, "request.produce", 10)])
    return lake


@pytest.fixture
def judge(hours: Lake, monkeypatch: pytest.MonkeyPatch):
    """The step in the ring's session; gives code and lines."""

    @contextmanager
    def opened(_: steps.Run) -> Iterator[Lake]:
        yield hours

    monkeypatch.setattr(steps, "lake_of", opened)
    monkeypatch.setattr(steps.gold, "is_current", lambda _lake, _run_id: True)

    def gate(since: datetime | None, until: datetime | None, fail_on: str = "inconclusive") -> tuple[ExitCode, str]:
        console = CaptureConsole()
        run = steps.Run(load_config(), console, hours.root, Path("unused"), since, until)
        code = steps.gate(run, fail_on)
        return code, "\n".join(console.texts("result"))

    return gate


@pytest.fixture(scope="module")
def produced(hours: Lake) -> Lake:
    fill(hours, DELAYED_OPERATIONS, [operation(1), operation(2, arrival_ms=HOUR_MS + 5)])
    fill(hours, RULE_RESULTS, [result()])
    return hours


@pytest.fixture
def audited(produced: Lake) -> Iterator[Lake]:
    yield produced
    if produced.has_rows(VIOLATIONS):
        fill(produced, VIOLATIONS, [])


def test_a_lake_without_an_audit_is_an_error(judge) -> None:
    with pytest.raises(InputError, match="holds no audit"):
        judge(None, None)


@pytest.fixture
def violated(audited: Lake) -> Iterator[Lake]:
    """Of all hours together, which is what rules have results of, one is violated."""
    fill(audited, RULE_RESULTS, [result(verdict="violated", cases=1)])
    yield audited
    fill(audited, RULE_RESULTS, [result()])


def test_a_violation_fails_its_own_hour_only(violated: Lake, judge) -> None:
    fill(violated, VIOLATIONS, [found(12)])
    code, said = judge(at(0), at(HOUR_MS))
    assert code == ExitCode.VIOLATED
    assert "violated: committed-data-lost  orders-0, offset 12, leader epoch 5  2026-11-20T14:00:00.012Z" in said
    code, said = judge(at(HOUR_MS), at(2 * HOUR_MS))
    assert code == ExitCode.CLEAN
    assert "offset 12" not in said
    assert judge(None, None)[0] == ExitCode.VIOLATED


def test_a_violation_without_a_time_fails_every_hour(audited: Lake, judge) -> None:
    fill(audited, VIOLATIONS, [found(12, time=None)])
    for hour in (0, 1):
        code, said = judge(at(hour * HOUR_MS), at((hour + 1) * HOUR_MS), "violated")
        assert code == ExitCode.VIOLATED
        assert "at no known time" in said


def test_the_bounds_are_the_first_instant_and_the_one_after_the_last(audited: Lake, judge) -> None:
    fill(audited, VIOLATIONS, [found(1, time=at(HOUR_MS))])
    assert judge(at(0), at(HOUR_MS))[0] == ExitCode.CLEAN
    assert judge(at(HOUR_MS), at(2 * HOUR_MS))[0] == ExitCode.VIOLATED


def test_a_case_left_open_is_inconclusive_in_its_hour(audited: Lake, judge) -> None:
    fill(audited, VIOLATIONS, [found(12, severity="open")])
    code, said = judge(at(0), at(HOUR_MS))
    assert code == ExitCode.INCONCLUSIVE
    assert "1 case cannot be decided" in said
    assert judge(at(0), at(HOUR_MS), "violated")[0] == ExitCode.CLEAN
    assert judge(at(HOUR_MS), at(2 * HOUR_MS))[0] == ExitCode.CLEAN


def test_an_observation_fails_nothing(audited: Lake, judge) -> None:
    fill(audited, VIOLATIONS, [found(12, severity="observation")])
    assert judge(None, None)[0] == ExitCode.CLEAN


def test_an_hour_that_nobody_wrote_in_shows_nothing(audited: Lake, judge) -> None:
    code, said = judge(at(2 * HOUR_MS), at(3 * HOUR_MS))
    assert code == ExitCode.INCONCLUSIVE
    assert "no acks=all produce" in said


def test_files_that_no_audit_has_seen_yet_are_no_clean_hour(
    audited: Lake, judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.gold, "is_current", lambda _lake, _run_id: False)
    code, said = judge(at(0), at(HOUR_MS))
    assert code == ExitCode.INCONCLUSIVE
    assert "highwater replay" in said
    fill(audited, VIOLATIONS, [found(12)])
    assert judge(at(0), at(HOUR_MS))[0] == ExitCode.VIOLATED
