"""What Airflow makes of the DAG files: no import error, tasks in order, retries, timetables, assets, parameters."""

from __future__ import annotations

import ast
import copy
import itertools
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.dags.conftest import DAGS

AUDIT = ("new_logs", "ingest", "parse", "quality", "replay", "report", "gate")


def test_no_file_has_an_import_error(dag_bag: Callable[[], Any]) -> None:
    bag = dag_bag()
    assert bag.import_errors == {}
    assert set(bag.dags) == {"highwater_audit", "highwater_maintenance"}


def test_every_file_says_what_it_is_for() -> None:
    for path in DAGS.glob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path.name


def test_the_audit_is_one_chain(dag_bag: Callable[[], Any]) -> None:
    dag = dag_bag().dags["highwater_audit"]
    downstream = {task.task_id: task.downstream_task_ids for task in dag.tasks}
    assert downstream == {one: {after} for one, after in itertools.pairwise(AUDIT)} | {"gate": set()}


def test_every_task_but_the_gate_is_tried_again(dag_bag: Callable[[], Any]) -> None:
    for dag in dag_bag().dags.values():
        for task in dag.tasks:
            assert (task.retries > 0) == (task.task_id != "gate"), task.task_id
            assert task.execution_timeout is not None
            assert task.doc_md
            assert getattr(task, "skip_on_exit_code", []) == []


def test_one_run_at_a_time_and_none_of_the_past_by_itself(dag_bag: Callable[[], Any]) -> None:
    for dag in dag_bag().dags.values():
        assert (dag.max_active_runs, dag.catchup) == (1, False)


def test_an_interval_is_the_hour_before(dag_bag: Callable[[], Any]) -> None:
    from airflow.serialization.encoders import coerce_to_core_timetable

    timetable = coerce_to_core_timetable(dag_bag().dags["highwater_audit"].timetable)
    interval = timetable.infer_manual_data_interval(run_after=_moment(16))
    assert (interval.start, interval.end) == (_moment(15), _moment(16))


def _moment(hour: int) -> Any:
    from airflow.sdk import timezone

    return timezone.coerce_datetime(datetime(2026, 11, 20, hour, tzinfo=UTC))


def test_the_replay_updates_an_asset_per_gold_table(dag_bag: Callable[[], Any]) -> None:
    dag = dag_bag().dags["highwater_audit"]
    from highwater_lake import GOLD_TABLES

    assets = {asset.uri for asset in dag.task_dict["replay"].outlets}
    assert assets == {f"x-highwater://gold/{name}" for name in GOLD_TABLES}
    assert [task.task_id for task in dag.tasks if task.outlets] == ["replay"]


@pytest.mark.parametrize(
    ("dag_id", "name", "value"),
    [
        ("highwater_audit", "logs", "relative/folder"),
        ("highwater_audit", "logs", None),
        ("highwater_audit", "lake", ""),
        ("highwater_audit", "lake", "/two\nlines"),
        ("highwater_audit", "reports", 7),
        ("highwater_audit", "fail_on", "clean"),
        ("highwater_audit", "lookback_hours", -1),
        ("highwater_audit", "lookback_hours", "1"),
        ("highwater_audit", "lookback_hours", 1.5),
        ("highwater_maintenance", "retention_hours", 23),
        ("highwater_maintenance", "retention_hours", 721),
        ("highwater_maintenance", "retention_hours", None),
        ("highwater_maintenance", "reports_days", 0),
    ],
)
def test_a_wrong_parameter_is_refused(dag_bag: Callable[[], Any], dag_id: str, name: str, value: object) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    params = copy.deepcopy(dag_bag().dags[dag_id].params)
    params.validate()
    with pytest.raises(ParamValidationError):
        params[name] = value


@pytest.mark.parametrize("name", ["HIGHWATER_LAKE", "HIGHWATER_LOGS", "HIGHWATER_REPORTS"])
def test_a_wrong_default_is_an_import_error_that_says_so(
    dag_bag: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "not/absolute")
    errors = dag_bag().import_errors
    assert any(path.endswith("highwater_audit.py") for path in errors)
    assert all("not/absolute" in error for error in errors.values())


def test_a_command_that_no_shell_could_read_is_an_import_error(
    dag_bag: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIGHWATER_COMMAND", "highwater 'unclosed")
    assert len(dag_bag().import_errors) == 2


def test_a_backfill_makes_a_run_per_hour_of_the_past(airflow_home: object, dag_bag: Callable[[], Any]) -> None:
    from airflow.models import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    airflow = [sys.executable, "-m", "airflow"]
    subprocess.run([*airflow, "dags", "reserialize"], check=True, capture_output=True)
    span = ["--from-date", "2026-10-01T00:00:00+00:00", "--to-date", "2026-10-01T02:00:00+00:00"]
    subprocess.run(
        [*airflow, "backfill", "create", "--dag-id", "highwater_audit", *span, "--max-active-runs", "1"],
        check=True,
        capture_output=True,
    )
    with create_session() as session:
        runs = session.scalars(select(DagRun).where(DagRun.run_type == "backfill")).all()
        intervals = sorted((run.data_interval_start.isoformat(), run.data_interval_end.isoformat()) for run in runs)
    hours = [f"2026-10-01T{hour:02}:00:00+00:00" for hour in range(4)]
    assert intervals == list(itertools.pairwise(hours))
