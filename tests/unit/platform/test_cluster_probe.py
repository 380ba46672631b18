"""What the answers of executors mean. Tasks are plain functions, so they are run here as an executor would."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pyspark
import pytest
from pyspark import cloudpickle

from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.fingerprint import code_version, compute_package_hash
from highwater.pipelines.lake.cluster_probe import (
    FileHead,
    _explain_failure,
    _make_probe,
    _read_heads,
    _require_same,
    _require_written,
    judge,
)


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "lake" / "_staging" / "probe-1"
    folder.mkdir(parents=True)
    (folder / "driver").write_text(folder.name)
    return folder


def _told(folder: Path | None, compared: list[FileHead], modules: tuple[str, ...] = ("json",)) -> list[dict[str, Any]]:
    return [orjson.loads(text) for text in _make_probe(folder and str(folder), compared, modules)([0])]


def test_an_executor_that_has_and_sees_all_is_let_pass(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    compared = _read_heads([str(folder / "driver")])
    told = _told(folder, compared)
    assert judge(told, code_version(), compute_package_hash()) is None
    _require_written(folder, told)
    _require_same(told, compared)


def test_a_package_that_lacks_is_named(tmp_path: Path) -> None:
    problem = judge(_told(None, [], ("no_such_package",)), code_version(), compute_package_hash())
    assert problem is not None
    assert "lacks what the driver has: No module named 'no_such_package' (on " in str(problem)


def test_a_task_runs_where_nothing_is_installed(tmp_path: Path) -> None:
    """As on an executor whose Python has only what Spark itself brings."""
    task = tmp_path / "task"
    task.write_bytes(cloudpickle.dumps(_make_probe(None, [], ())))
    brought = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
    done = subprocess.run(
        [os.path.realpath(sys.executable), "-c", f"import pickle; print(*pickle.load(open({str(task)!r}, 'rb'))([0]))"],
        cwd=tmp_path,
        env={"PYTHONPATH": os.pathsep.join(map(str, brought))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert orjson.loads(done.stdout)["lacks"] == "No module named 'highwater'"


def test_other_code_is_told_from_another_version() -> None:
    told = _told(None, [])
    assert "executors have other code of highwater (on " in str(judge(told, code_version(), "0" * 16))
    assert f"executors have highwater {code_version()}, the driver 9.9" in str(judge(told, "9.9", "0" * 16))


def test_hosts_are_named_but_not_all() -> None:
    told = [{"host": f"h{number}", "python": "p", "lacks": "x"} for number in range(5)]
    assert str(judge(told, "1", "2")).count("(on h0, h1, h2 and 2 more)") == 1


def test_a_lake_on_another_disk(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    compared = _read_heads([str(folder / "driver")])
    shutil.move(tmp_path / "lake", tmp_path / "elsewhere")
    told = _told(folder, compared)
    shutil.move(tmp_path / "elsewhere", tmp_path / "lake")
    with pytest.raises(EnvironmentProblem, match=r"/lake: the lake is not there for executors \(on "):
        _require_written(folder, told)


def test_a_lake_at_the_same_path_of_another_disk(tmp_path: Path) -> None:
    """The executor's folder is made by somebody else, so it can be written, and the driver sees nothing of it."""
    folder = _folder(tmp_path)
    told = _told(folder, [])
    (folder / "0").unlink()
    with pytest.raises(EnvironmentProblem, match="what executors write there is not there for the driver"):
        _require_written(folder, told)


def test_logs_that_are_others_on_the_executor(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("theirs")
    told = _told(None, [FileHead(str(log), 4, "0" * 64)])
    log.write_text("ours")
    compared = _read_heads([str(log)])
    with pytest.raises(EnvironmentProblem, match=r"server.log: not the same for executors: another file \(on "):
        _require_same(told, compared)
    # One that has been rotated since is no sign of another disk.
    log.write_text("next")
    _require_same(told, compared)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11",
            "Python 3.9",
        ),
        ('java.io.IOException: Cannot run program "./environment/bin/python": error=2', "no ./environment/bin/python"),
        ("Traceback\nModuleNotFoundError: No module named 'pyspark'\n", "No module named 'pyspark'"),
        (
            "org.apache.spark.SparkException: \nError from python worker:\n  python3: bad interpreter\nPYTHONPATH was:",
            "does not run (Error from python worker: python3: bad interpreter)",
        ),
        (
            "SparkException: Python worker failed to connect back.",
            "does not run (Python worker failed to connect back)",
        ),
    ],
)
def test_why_tasks_do_not_begin(text: str, told: str) -> None:
    assert told in " ".join(str(_explain_failure(text)).split())


def test_what_is_not_known_is_not_explained() -> None:
    assert _explain_failure("java.lang.IllegalStateException") is None
