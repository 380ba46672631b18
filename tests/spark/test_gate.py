"""`highwater gate` over gold tables: which findings count in a window, and which lake cannot be judged."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from highwater.jobs import steps
from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.lake import Lake
from highwater.schemas.audit import RULE_RESULTS, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES
from highwater.schemas.catalog import TABLES
from highwater.schemas.gold import COVERAGE, DELAYED_OPERATIONS
from highwater.schemas.incidents import INCIDENTS
from highwater.schemas.table import TableSpec
from tests.console import CaptureConsole
from tests.unit.report.rows import Row, at, covered, found, happened, log_file, operation, result

HOUR_MS = 3_600_000


def fill(lake: Lake, spec: TableSpec, rows: list[Row], stamp: str = "audit-1") -> None:
    values = [tuple(row.get(name) for name in spec.column_names) for row in rows]
    lake.replace(spec, lake.spark.createDataFrame(values, spec.worker_schema), stamp=stamp)


#: What each hour of the lake has, beside a produce; of the last one nobody wrote anything.
QUIET, VIOLATED, OPEN, OBSERVED, EMPTY = range(5)
FINDINGS = [
    found(12, time=at(VIOLATED * HOUR_MS)),
    found(13, time=at(OPEN * HOUR_MS + 12), severity="open"),
    found(14, time=at(OBSERVED * HOUR_MS + 12), severity="observation"),
]


@pytest.fixture(scope="module")
def hours(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake of those hours, which no audit has judged yet."""
    lake = Lake(spark, tmp_path_factory.mktemp("gate"))
    lake.create(TABLES)
    fill(lake, LOG_FILES, [log_file("a/server.log", 1, last_time=at(EMPTY * HOUR_MS - 1))])
    fill(lake, COVERAGE, [covered(1, "request.produce", 10)])
    fill(lake, DELAYED_OPERATIONS, [operation(hour, arrival_ms=hour * HOUR_MS + 5) for hour in range(EMPTY)])
    return lake


@pytest.fixture(scope="module")
def audited(hours: Lake) -> Lake:
    """The same with what the rules found; their results are of all hours together, and one is violated."""
    fill(hours, VIOLATIONS, FINDINGS)
    fill(hours, RULE_RESULTS, [result(verdict="violated", cases=1)])
    fill(hours, INCIDENTS, [happened("a")])
    return hours


@pytest.fixture
def judge(hours: Lake, monkeypatch: pytest.MonkeyPatch):
    """The step in the ring's session, of an hour or of all; gives code and lines."""

    @contextmanager
    def opened(_: steps.Run, verb: str) -> Iterator[Lake]:
        yield hours

    monkeypatch.setattr(steps, "open_lake", opened)
    monkeypatch.setattr(steps.gold, "is_current", lambda _lake, _run_id: True)

    def gate(hour: int | None, fail_on: str = "inconclusive") -> tuple[ExitCode, str]:
        console = CaptureConsole()
        bounds = (None, None) if hour is None else (at(hour * HOUR_MS), at((hour + 1) * HOUR_MS))
        code = steps.gate(steps.Run(load_config(), console, hours.root, Path("unused"), *bounds), fail_on)
        return code, "\n".join(console.texts("result"))

    return gate


def test_a_lake_without_an_audit_is_an_error(judge) -> None:
    with pytest.raises(InputError, match="holds no audit"):
        judge(None)


def test_a_violation_fails_its_own_hour_only(audited: Lake, judge) -> None:
    """Its time is the hour's first instant, and the one after the last of the hour before."""
    code, said = judge(VIOLATED)
    assert code == ExitCode.VIOLATED
    assert "violated: committed-data-lost  orders-0, offset 12, leader epoch 5  2026-11-20T15:00:00.000Z" in said
    code, said = judge(QUIET)
    assert code == ExitCode.CLEAN
    assert "offset 12" not in said
    assert judge(None)[0] == ExitCode.VIOLATED


def test_a_case_left_open_is_inconclusive_in_its_hour(audited: Lake, judge) -> None:
    code, said = judge(OPEN)
    assert code == ExitCode.INCONCLUSIVE
    assert "1 case cannot be decided" in said
    assert judge(OPEN, "violated")[0] == ExitCode.CLEAN


def test_an_observation_fails_nothing(audited: Lake, judge) -> None:
    assert judge(OBSERVED)[0] == ExitCode.CLEAN


def test_an_hour_that_nobody_wrote_in_shows_nothing(audited: Lake, judge) -> None:
    code, said = judge(EMPTY)
    assert code == ExitCode.INCONCLUSIVE
    assert "inconclusive: --from 2026-11-20T18:00:00.000Z is after the last line" in said
    assert "newest line: broker 1 2026-11-20T17:59:59.999Z" in said
    assert judge(EMPTY, "violated")[0] == ExitCode.CLEAN


def test_a_broker_whose_logs_stopped_to_come_fails_whatever_the_verdict(audited: Lake, judge) -> None:
    code, said = judge(EMPTY + 3, "violated")
    assert code == ExitCode.INCONCLUSIVE
    assert "stale: no line of cluster" in said


def test_files_that_no_audit_has_seen_yet_are_no_clean_hour(
    audited: Lake, judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.gold, "is_current", lambda _lake, _run_id: False)
    code, said = judge(QUIET)
    assert code == ExitCode.INCONCLUSIVE
    assert "highwater replay" in said
    assert judge(VIOLATED)[0] == ExitCode.VIOLATED


def test_a_violation_without_a_time_fails_every_hour(audited: Lake, judge) -> None:
    # Nothing else is in the table from here on.
    fill(audited, VIOLATIONS, [found(12, time=None)])
    for hour in (QUIET, OBSERVED):
        code, said = judge(hour, "violated")
        assert code == ExitCode.VIOLATED
        assert "at no known time" in said


def test_what_the_run_before_had_is_known(audited: Lake, judge) -> None:
    assert "new since the run before: no earlier run" in judge(None)[1]
    fill(audited, VIOLATIONS, [found(12, time=None, message="more of it", offset_end=20), found(13)], "audit-2")
    fill(audited, RULE_RESULTS, [result(verdict="violated", cases=2)], "audit-2")
    fill(audited, INCIDENTS, [happened("a"), happened("b")], "audit-2")
    code, said = judge(None)
    assert code == ExitCode.VIOLATED
    assert "new since the run before: 1 incident, 1 violation" in said
    assert "happened: AT RISK" in said
    assert [line.startswith("violated: new: ") for line in said.split("\n") if line.startswith("violated:")] == [
        False,
        True,
    ]
    for path in audited.path(VIOLATIONS).rglob("*.parquet"):
        if path not in {file.place for file in audited.files(VIOLATIONS) or []}:
            path.unlink()
    assert "new since the run before: no earlier run" in judge(None)[1]
