"""Executors in processes of their own: the same rows as in one process, or one line before anything is written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from highwater.pipelines.spark.session_settings import local_cores
from tests.bench.contents import main as differing_tables
from tests.cluster.standalone import ARCHIVE, BARE_PYTHON, Done, command, standalone, submitted

Tell = Callable[[str], None]


def test_a_local_cluster_gives_the_rows_of_one_process(
    corpus: Path, local: tuple[Path, Done], tmp_path: Path, tell: Tell
) -> None:
    folder, alone = local
    done = command(tmp_path, "audit", corpus, "--master", "local-cluster[2,1,1024]", python=sys.executable)
    tell(f"local-cluster: {done.seconds:.0f} s; in one process: {alone.seconds:.0f} s")
    assert (done.code, done.out) == (alone.code, alone.out), done.err
    assert differing_tables([str(folder / "lake"), str(tmp_path / "lake")]) == 0


def test_executors_with_nothing_installed_are_brought_an_environment(
    corpus: Path, local: tuple[Path, Done], master: str, tmp_path: Path, tell: Tell
) -> None:
    """spark-submit on a standalone cluster; the event log says what ran there, and where its settings came from."""
    folder, alone = local
    events = tmp_path / "events"
    events.mkdir()
    options = ["--archives", f"{ARCHIVE}#environment", "--name", "nightly audit"]
    options += ["--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events.as_uri()}"]
    options += ["--conf", "spark.eventLog.compress=false", "--conf", "spark.sql.session.timeZone=Asia/Tokyo"]
    done = submitted(tmp_path, master, options, "audit", corpus, python="./environment/bin/python")
    tell(f"spark-submit with an environment: {done.seconds:.0f} s")
    assert done.code == alone.code, done.err
    # spark-submit hands on both of Python's streams as one.
    assert alone.out in done.out
    assert differing_tables([str(folder / "lake"), str(tmp_path / "lake")]) == 0
    _assert_as_its_owner_expects(events, master)


def _assert_as_its_owner_expects(events: Path, master: str) -> None:
    lines = [line for path in events.rglob("*") if path.is_file() for line in path.read_text().splitlines()]
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    (settings,) = [event["Spark Properties"] for event in logged if event["Event"] == "SparkListenerEnvironmentUpdate"]
    assert (settings["spark.master"], settings["spark.app.name"]) == (master, "nightly audit")
    assert local_cores(settings["spark.master"]) is None
    for name in (
        *("spark.ui.enabled", "spark.sql.adaptive.enabled", "spark.python.daemon.module"),
        *("spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions", "spark.driver.memory"),
        "spark.databricks.delta.snapshotPartitions",
    ):
        assert name not in settings, f"{name} is for one process"
    jobs = [event.get("Properties") or {} for event in logged if event["Event"] == "SparkListenerJobStart"]
    named = {(job.get("spark.jobGroup.id"), job.get("spark.job.description")) for job in jobs}
    # DuckDB answers the report.
    assert {group for group, _ in named} == {None, "ingest", "parse", "quality", "replay"}
    assert {what for group, what in named if group is None} == {"probe of the executors"}
    assert ("ingest", "ingest: bronze.log_lines") in named


def test_executors_without_the_package_end_the_run_in_one_line(corpus: Path, master: str, tmp_path: Path) -> None:
    done = command(tmp_path, "audit", corpus, "--master", master, python=BARE_PYTHON)
    assert done.code == 2, done.err
    assert f"the executors' Python ({BARE_PYTHON}) lacks what the driver has: No module named" in done.complaint
    assert "docs/cluster.md" in done.complaint
    assert not list((tmp_path / "lake").rglob("*.parquet"))
    assert not list((tmp_path / "lake").rglob("probe-*"))


def test_executors_without_a_python_end_the_run_in_one_line(corpus: Path, master: str, tmp_path: Path) -> None:
    done = command(tmp_path, "audit", corpus, "--master", master, python="/nowhere/python")
    assert done.code == 2, done.err
    assert "the executors have no /nowhere/python; set PYSPARK_PYTHON" in done.complaint


def test_a_lake_that_executors_do_not_see_ends_the_run_in_one_line(corpus: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "driver only"
    hidden.mkdir()
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not give a process its own mounts")
    with standalone(tmp_path / "standalone", hidden) as url:
        done = command(hidden, "audit", corpus, "--master", url, python=sys.executable)
        assert done.code == 2, done.err
        assert f"{hidden}/lake: the lake is not there for executors (on " in done.complaint
        assert not list(hidden.rglob("*.parquet"))
        # The same with logs that only the driver has, and a lake that all have.
        logs = hidden / "logs"
        subprocess.run(["cp", "-r", str(corpus), str(logs)], check=True)
        done = command(tmp_path / "shared", "audit", logs, "--master", url, python=sys.executable)
    assert done.code == 2, done.err
    assert f"highwater: {logs}/" in done.complaint
    assert "not the same for executors: No such file or directory (on " in done.complaint
    assert not list((tmp_path / "shared" / "lake").rglob("*.parquet"))


def test_a_master_that_does_not_answer_ends_the_run_in_one_line(corpus: Path, tmp_path: Path) -> None:
    done = command(tmp_path, "audit", corpus, "--master", "spark://127.0.0.1:9", python=sys.executable)
    assert done.code == 2, done.err
    assert "no Spark could be had of spark://127.0.0.1:9" in done.complaint
