"""What can be told about a session without starting one."""

import os
import subprocess
import threading

import pytest

from highwater.pipelines.base import java
from highwater.pipelines.base.config import load_config
from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.jars import JARS_VARIABLE
from highwater.pipelines.spark.jvm_stderr import filter_stderr
from highwater.pipelines.spark.session import build_session
from highwater.pipelines.spark.session_settings import local_cores


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[*]", os.cpu_count()),
        ("spark://h:7077", None),
        ("yarn", None),
    ],
)
def test_cores_of_a_master(master: str, cores: int | None) -> None:
    assert local_cores(master) == cores


def test_without_java_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    with pytest.raises(EnvironmentProblem, match="no Java on PATH or in a usual place; install Java 17"):
        build_session(load_config(), "test")


def test_without_jars_there_is_one_clear_error(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="doctor --fetch"):
        build_session(load_config(), "test")


def test_what_the_jvm_says_of_itself_is_kept_back_and_all_else_handed_on(capfd: pytest.CaptureFixture[str]) -> None:
    said = "WARNING: Using incubator modules: jdk.incubator.vector\n15:33:21 spark WARN X: disk is full\nlast\n"
    with filter_stderr() as stderr:
        subprocess.run(["printf", "%s", said], stdout=stderr, check=True)
    pump = next((thread for thread in threading.enumerate() if thread.name == "jvm-stderr"), None)
    if pump is not None:
        pump.join(10)
    assert capfd.readouterr().err == "15:33:21 spark WARN X: disk is full\nlast\n"
