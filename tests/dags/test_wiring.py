"""What the DAGs call, and what becomes of its exit code: real runs of a command that only notes how it was called."""

from __future__ import annotations

import json
import os
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import ROOT, Deployment, states

AT_16 = datetime(2026, 11, 20, 16, tzinfo=UTC)
CHAIN = ("new_logs", "ingest", "parse", "quality", "replay", "report", "gate")


class Recorded:
    """A deployment whose command notes how it was called."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.folder = deployment.folder
        self.command = shlex.join([sys.executable, str(Path(__file__).with_name("recorder.py")), str(self.folder)])

    def ends_with(self, **codes: int) -> None:
        (self.folder / "codes.json").write_text(json.dumps(codes))

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "calls.jsonl").read_text().splitlines()]

    @property
    def arguments(self) -> list[list[str]]:
        return [call["arguments"] for call in self.calls]


@pytest.fixture
def recorded(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    made = Recorded(deployment)
    monkeypatch.setenv("HIGHWATER_COMMAND", made.command)
    return made


def test_the_verbs_get_the_interval(recorded: Recorded) -> None:
    run = recorded.deployment.run("highwater_audit", AT_16)
    assert states(run) == dict.fromkeys(CHAIN, "success")
    lake = ["--lake", str(recorded.deployment.lake)]
    start, end, before = (f"2026-11-20T{hour}:00:00+00:00" for hour in (15, 16, 14))
    out = str(recorded.deployment.reports / "20261120T1500")
    assert recorded.arguments == [
        ["ingest", str(recorded.folder / "logs"), *lake],
        ["parse", *lake],
        ["quality", *lake],
        ["replay", *lake],
        ["report", *lake, "--out", out, "--from", start, "--until", end],
        ["gate", *lake, "--from", before, "--until", end, "--fail-on", "violated", "--stale-after", "2.0"],
    ]


def test_report_and_gate_may_be_of_one_cluster(recorded: Recorded) -> None:
    odd = 'east $(touch pwned) "; touch pwned'
    run = recorded.deployment.run("highwater_audit", AT_16, cluster=odd)
    assert str(run.state) == "success"
    assert [call[0] for call in recorded.arguments if "--cluster" in call] == ["report", "gate"]
    assert all(call[-2:] == ["--cluster", odd] for call in recorded.arguments[-2:])
    assert list(recorded.folder.rglob("pwned")) == []


def test_parameters_are_data_whatever_they_look_like(recorded: Recorded) -> None:
    odd = str(recorded.folder / "it's $(touch pwned) `touch pwned` \"; touch pwned; {{ 1 + 1 }}")
    run = recorded.deployment.run(
        "highwater_audit", AT_16, logs=odd, fail_on="inconclusive", lookback_hours=0, stale_after_hours=5
    )
    assert str(run.state) == "success"
    assert recorded.arguments[0][:2] == ["ingest", odd]
    assert recorded.arguments[-1][-8:] == [
        *("--from", "2026-11-20T15:00:00+00:00", "--until", "2026-11-20T16:00:00+00:00", "--fail-on", "inconclusive"),
        *("--stale-after", "5"),
    ]
    assert list(recorded.folder.rglob("pwned")) == []


@pytest.mark.parametrize("code", [1, 3])
def test_a_verdict_does_not_fail_the_report(recorded: Recorded, code: int) -> None:
    recorded.ends_with(report=code)
    run = recorded.deployment.run("highwater_audit", AT_16)
    assert states(run) == dict.fromkeys(CHAIN, "success")


@pytest.mark.parametrize("code", [1, 2, 3, 70, 99])
def test_the_gate_fails_the_run_at_once(recorded: Recorded, code: int) -> None:
    recorded.ends_with(gate=code)
    run = recorded.deployment.run("highwater_audit", AT_16)
    assert str(run.state) == "failed"
    assert states(run) == dict.fromkeys(CHAIN, "success") | {"gate": "failed"}
    assert [call[0] for call in recorded.arguments] == list(CHAIN[1:])


@pytest.mark.parametrize(("report", "gate"), [("inconclusive", "clean"), ("clean", "inconclusive"), ("clean", "clean")])
def test_an_hour_that_shows_nothing_is_not_green(recorded: Recorded, report: str, gate: str) -> None:
    said = {"report": f"\nverdict: {report} (not enough evidence)", "gate": f"gate: {gate}, from A until B"}
    (recorded.folder / "says.json").write_text(json.dumps(said))
    recorded.ends_with(report=3 if report == "inconclusive" else 0)
    run = recorded.deployment.run("highwater_audit", AT_16)
    assert str(run.state) == "success"
    state = "skipped" if "inconclusive" in (report, gate) else "success"
    assert states(run) == dict.fromkeys(CHAIN, "success") | {"gate": state}


def test_an_inconclusive_gate_says_why(recorded: Recorded) -> None:
    text = """gate: inconclusive (not enough evidence), from 2026-11-20T14:00:00.000Z until 2026-11-20T16:00:00.000Z
inconclusive: no acks=all produce in these logs: was kafka.request.logger on at the time?
exit code 0: only violations fail the gate (--fail-on violated)"""
    (recorded.folder / "says.json").write_text(json.dumps({"gate": text}))
    run = recorded.deployment.run("highwater_audit", AT_16)
    assert str(run.state) == "success"
    assert states(run) == dict.fromkeys(CHAIN, "success") | {"gate": "skipped"}
    (gate,) = [instance for instance in run.get_task_instances() if instance.task_id == "gate"]
    assert gate.xcom_pull(task_ids="gate", key="verdict") == "inconclusive"


GATE = """gate: violated (data lost), from 2026-11-20T14:00:00.000Z until 2026-11-20T16:00:00.000Z
happened: critical, 2026-11-20 15:39:52 to 15:41:13: Broker 1 died.
violated: new: committed-data-lost  ledger-0  offset 118  2026-11-20T15:40:30.047Z"""
WORST = "violated: new: committed-data-lost  ledger-0  offset 118  2026-11-20T15:40:30.047Z"
FAILED: list[str] = []


def called(context: Any) -> None:
    """What a deployment may name for HIGHWATER_ON_FAILURE."""
    FAILED.append(f"{context['ti'].task_id}: {context['exception']}")


def _failing(recorded: Recorded, monkeypatch: pytest.MonkeyPatch, task: str, code: int, text: str) -> Any:
    recorded.ends_with(**{task: code})
    (recorded.folder / "says.json").write_text(json.dumps({task: text}))
    monkeypatch.setenv("HIGHWATER_ON_FAILURE", f"{__name__}:called")
    FAILED.clear()
    dag = recorded.deployment.dag_bag().dags["highwater_audit"]
    if task != "gate":
        monkeypatch.setattr(dag.task_dict[task], "retries", 0)
    return dag.test(logical_date=AT_16)


def test_the_verdict_and_the_worst_finding_are_in_the_exception_and_on_xcom(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _failing(recorded, monkeypatch, "gate", 1, GATE)
    assert str(run.state) == "failed"
    assert [f"gate: gate: violated; {WORST} (exit code 1)"] == FAILED
    (gate,) = [instance for instance in run.get_task_instances() if instance.task_id == "gate"]
    told = {key: gate.xcom_pull(task_ids="gate", key=key) for key in ("verdict", "worst")}
    assert told == {"verdict": "violated", "worst": WORST}


def test_what_a_verb_complains_of_is_in_the_exception(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(recorded, monkeypatch, "ingest", 2, "highwater: logs: there is no such folder; give one")
    assert FAILED == ["ingest: ingest: logs: there is no such folder; give one (exit code 2)"]


def test_tasks_that_write_the_lake_share_a_pool_if_there_is_one(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIGHWATER_POOL", "highwater_lake")
    for dag in recorded.deployment.dag_bag().dags.values():
        pools = {task.task_id: task.pool for task in dag.tasks}
        assert pools.pop("new_logs", "default_pool") == "default_pool"
        assert pools.pop("expire_reports", "default_pool") == "default_pool"
        assert set(pools.values()) == {"highwater_lake"}


@pytest.mark.parametrize(
    ("minutes", "age_s", "over"), [("0", 9999, True), ("50", 9999, False), ("50", -1, True), ("0.5", 9999, True)]
)
def test_new_logs_are_waited_for(
    recorded: Recorded, tmp_path: Path, minutes: str, age_s: int, over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded.deployment.dag_bag()
    from highwater_tasks import NewLogs

    end = datetime.now(UTC) - timedelta(minutes=1)
    logs = tmp_path / "kafka" / "broker-1"
    logs.mkdir(parents=True)
    (logs / "server.log").touch()
    then = end.timestamp() - age_s
    os.utime(logs / "server.log", (then, then))
    sensor = NewLogs(task_id="x", logs=str(tmp_path / "kafka"), end=end.isoformat(), minutes=minutes)
    assert sensor.poke({}) is over


def test_a_step_that_fails_stops_what_comes_after_it(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.ends_with(quality=2)
    bag = recorded.deployment.dag_bag()
    dag = bag.dags["highwater_audit"]
    monkeypatch.setattr(dag.task_dict["quality"], "retries", 0)
    run = dag.test(logical_date=AT_16)
    after = dict.fromkeys(("replay", "report", "gate"), "upstream_failed")
    assert states(run) == {"new_logs": "success", "ingest": "success", "parse": "success", "quality": "failed"} | after


def test_a_run_without_an_interval_does_nothing(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = recorded.deployment.dag_bag().dags["highwater_audit"]
    monkeypatch.setattr(dag.task_dict["new_logs"], "retries", 0)
    run = dag.test(logical_date=None)
    assert states(run) == {"new_logs": "failed"} | dict.fromkeys(CHAIN[1:], "upstream_failed")
    assert not (recorded.folder / "calls.jsonl").exists()


def test_maintenance_keeps_what_is_young(recorded: Recorded) -> None:
    reports = recorded.deployment.reports
    for name in ("20260101T0000", "20261120T1500", "not-ours"):
        (reports / name).mkdir(parents=True)
    old = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    for name in ("20260101T0000", "not-ours"):
        os.utime(reports / name, (old, old))
    run = recorded.deployment.run("highwater_maintenance", AT_16, retention_hours=200, reports_days=30)
    assert str(run.state) == "success"
    lake = str(recorded.deployment.lake)
    assert recorded.arguments == [["maintain", "--lake", lake, "--retention-hours", "200"]]
    assert sorted(path.name for path in reports.iterdir()) == ["20261120T1500", "not-ours"]


def test_maintenance_drops_old_days_if_it_is_told_to(recorded: Recorded) -> None:
    run = recorded.deployment.run("highwater_maintenance", AT_16, keep="90d")
    assert str(run.state) == "success"
    assert recorded.arguments[0] == ["expire", "--lake", str(recorded.deployment.lake), "--keep", "90d"]
    assert recorded.arguments[1][0] == "maintain"


def test_a_cluster_by_configuration(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    python = str(ROOT / ".venv/bin/python")
    monkeypatch.setenv("HIGHWATER_SUBMIT", f"{recorded.command} --master spark://host:7077 --packages 'a b'")
    monkeypatch.setenv("HIGHWATER_PYTHON", python)
    run = recorded.deployment.run("highwater_audit", AT_16)
    assert str(run.state) == "success"
    lake = str(recorded.deployment.lake)
    parse = recorded.calls[1]
    options = ["--master", "spark://host:7077", "--packages", "a b"]
    assert parse == {
        "arguments": [*options, str(ROOT / "highwater/__main__.py"), "parse", "--lake", lake],
        "driver_python": python,
    }
