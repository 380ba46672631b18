"""The hourly audit as it is run: two consecutive hours of real logs, then one in which a file comes late.

What the lake holds afterwards has to be what a single audit of all files gives.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import COMMAND, ROOT, Deployment, states
from tests.dags.hours import write_hours

CHAIN = ("new_logs", "ingest", "parse", "quality", "replay", "report", "gate")
LATE = "broker-3/logs/kafka-request.log.2026-11-20-15.gz"
#: Only `audit` keeps the ledger of runs.
LEDGER = "runs"


@dataclass(frozen=True)
class Hour:
    """A run of the DAG: the states of its tasks, and what its asset events said, by gold table."""

    states: dict[str, str]
    events: dict[str, dict[str, Any]]
    report: dict[str, Any]


@dataclass(frozen=True)
class Audited:
    """Three hours in one lake, and one audit of all files in another one."""

    deployment: Deployment
    hours: tuple[Hour, ...]
    whole: Path


@pytest.fixture(scope="module")
def audited(airflow_home: Path, tmp_path_factory: pytest.TempPathFactory, dag_bag: Callable[[], Any]) -> Audited:
    folder = tmp_path_factory.mktemp("hours")
    arrived, whole = folder / "logs", folder / "whole"
    write_hours(folder / "everything")
    deployment = Deployment(folder, dag_bag)
    with pytest.MonkeyPatch.context() as patch:
        deployment.use(patch)
        hours = (
            _hour(deployment, 16, lambda name: name.endswith("-15.gz") and name != LATE),
            _hour(deployment, 17, lambda name: name.endswith("-16.gz")),
            _hour(deployment, 18, lambda name: name == LATE),
        )
    # Files of the same names, so that what the reports say of them can be compared.
    _highwater("audit", arrived, "--lake", whole / "lake", "--out", whole / "report")
    return Audited(deployment, hours, whole)


def _hour(deployment: Deployment, until: int, arrives: Callable[[str], bool]) -> Hour:
    """Let files arrive, then run the DAG for the hour that has ended."""
    everything, arrived = deployment.folder / "everything", deployment.folder / "logs"
    names = [str(file.relative_to(everything)) for file in everything.rglob("*.gz")]
    for name in filter(arrives, names):
        (arrived / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(everything / name, arrived / name)
    run = deployment.run("highwater_audit", datetime(2026, 11, 20, until, tzinfo=UTC))
    report = deployment.reports / f"20261120T{until - 1}00" / "report.json"
    return Hour(states(run), _events(run.run_id), json.loads(report.read_text()) if report.is_file() else {})


def _events(run_id: str) -> dict[str, dict[str, Any]]:
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        chosen = select(AssetModel.name, AssetEvent.extra).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        rows = session.execute(chosen.where(AssetEvent.source_run_id == run_id).order_by(AssetEvent.id)).all()
        # Of a run that was cleared and ran again the last events count.
        return {name.removeprefix("highwater.gold."): extra for name, extra in rows}


def _highwater(*arguments: object) -> None:
    """Run a verb whose exit code is a verdict."""
    done = subprocess.run(
        [*shlex.split(COMMAND), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode in (0, 1, 3), done.stderr


def test_every_task_of_every_hour_succeeds(audited: Audited) -> None:
    passed = dict.fromkeys(CHAIN, "success")
    # Nobody wrote in the last hour: its gate is inconclusive, passes, and is seen to be no clean one.
    assert [hour.states | {"gate": "success"} for hour in audited.hours] == [passed] * 3
    assert audited.hours[2].states["gate"] == "skipped"


def test_every_hour_reads_what_has_arrived(audited: Audited) -> None:
    inputs = [len(hour.report["provenance"]["inputs"]) for hour in audited.hours]
    assert inputs[0] < inputs[1] == inputs[2] - 1
    names = {Path(one["file"]).name for one in audited.hours[0].report["provenance"]["inputs"]}
    assert all(name.endswith("-15.gz") for name in names)


def test_the_tables_grow_hour_by_hour(audited: Audited) -> None:
    for name in ("delayed_operations", "request_phases"):
        rows = [hour.events[name]["rows"] for hour in audited.hours]
        assert 0 < rows[0] < rows[1] < rows[2], name
    lines = [hour.report["coverage"]["lines"] for hour in audited.hours]
    assert lines[0] < lines[1] < lines[2]


def test_a_report_is_of_its_hour(audited: Audited) -> None:
    windows = [hour.report["window"] for hour in audited.hours]
    assert [window["since"][11:16] for window in windows] == ["15:00", "16:00", "17:00"]
    observed = [hour.report["operations"]["produce"]["observed"] for hour in audited.hours]
    assert observed[0] > 0
    assert observed[1] > 0
    # Nobody wrote then: the report is inconclusive, and so is the gate, which only fails on what is violated.
    assert observed[2] == 0
    assert audited.hours[2].report["verdict"] == "inconclusive"


def test_an_event_per_gold_table_says_whose_rows_these_are(audited: Audited) -> None:
    from highwater_lake import GOLD_TABLES

    runs = []
    for hour in audited.hours:
        assert set(hour.events) == set(GOLD_TABLES)
        (run_id,) = {event["run_id"] for name, event in hour.events.items() if name != LEDGER}
        assert run_id == hour.report["provenance"]["run_id"]
        runs.append(run_id)
        assert {event["lake"] for event in hour.events.values()} == {str(audited.deployment.lake)}
    assert len(set(runs)) == 3
    for earlier, later in zip(audited.hours, audited.hours[1:], strict=False):
        for name in set(GOLD_TABLES) - {LEDGER}:
            assert earlier.events[name]["delta_version"] < later.events[name]["delta_version"], name


def test_gold_is_that_of_one_audit_of_all_files(audited: Audited) -> None:
    from highwater_lake import GOLD_TABLES, read_state

    names = sorted(set(GOLD_TABLES) - {LEDGER})
    hourly, at_once = (
        {name: read_state(lake / "gold" / name) for name in names}
        for lake in (audited.deployment.lake, audited.whole / "lake")
    )
    assert {name: state.rows for name, state in hourly.items()} == {name: state.rows for name, state in at_once.items()}
    assert {state.run_id for state in hourly.values()} == {state.run_id for state in at_once.values()}


def test_the_report_is_that_of_one_audit_of_all_files(audited: Audited) -> None:
    out = audited.deployment.folder / "report-of-all"
    _highwater("report", "--lake", audited.deployment.lake, "--out", out)
    hourly, at_once = (json.loads((folder / "report.json").read_text()) for folder in (out, audited.whole / "report"))
    for part in set(at_once) - {"provenance"}:
        assert _without_news(hourly[part]) == _without_news(at_once[part]), part
    assert hourly["provenance"]["inputs"] == at_once["provenance"]["inputs"]
    assert hourly["verdict"] != "violated"
    assert hourly["operations"]["produce"]["observed"] > 500


def _without_news(value: Any) -> Any:
    """What a report says, but for what is new since the run before: one of all files has none."""
    if isinstance(value, dict):
        return {name: _without_news(each) for name, each in value.items() if name != "is_new"}
    return [_without_news(each) for each in value] if isinstance(value, list) else value


def test_an_hour_once_more_on_a_cluster_changes_no_table(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through spark-submit, with a master that every machine has."""
    audited.deployment.use(monkeypatch)
    jars = ",".join(map(str, (ROOT / ".venv/share/highwater/jars").glob("*.jar")))
    submit = [str(ROOT / ".venv/bin/spark-submit"), "--master", "local[2]", "--driver-memory", "2g", "--jars", jars]
    monkeypatch.setenv("HIGHWATER_SUBMIT", shlex.join(submit))
    monkeypatch.setenv("HIGHWATER_PYTHON", str(ROOT / ".venv/bin/python"))
    last = audited.hours[-1]
    again = _hour(audited.deployment, 18, lambda _: False)
    assert again.states == last.states
    assert again.events == last.events
    assert again.report["verdict"] == last.report["verdict"]
    assert again.report["provenance"]["run_id"] == last.report["provenance"]["run_id"]


def test_maintenance_leaves_the_rows(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    from highwater_lake import read_state

    tables = sorted(path.parent for path in audited.deployment.lake.glob("gold/*/_delta_log"))
    before = {table: (read_state(table).rows, read_state(table).run_id) for table in tables}
    audited.deployment.use(monkeypatch)
    run = audited.deployment.run("highwater_maintenance", datetime(2026, 11, 21, 4, tzinfo=UTC))
    assert states(run) == dict.fromkeys(("expire", "maintain", "expire_reports"), "success")
    assert {table: (read_state(table).rows, read_state(table).run_id) for table in tables} == before
    assert len(list(audited.deployment.reports.iterdir())) == 3
