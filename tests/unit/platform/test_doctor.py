"""The doctor tells everything that is wrong at once, and needs no Java to do so."""

import os
from pathlib import Path

import pytest

from highwater.jobs import doctor
from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base import jars, java
from highwater.pipelines.base.errors import EnvironmentProblem
from highwater.pipelines.base.java import parse_release
from tests.console import CaptureConsole


def test_without_java_it_says_so_and_checks_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    console = CaptureConsole()
    assert doctor.doctor(None, console, tmp_path / "lake") == ExitCode.USAGE
    said = console.texts("result")
    wrong = [line for line in said if line.startswith("WRONG")]
    assert any(
        line.startswith("WRONG java: there is no Java on PATH or in a usual place; install Java") for line in wrong
    )
    for subject in ("python", "pyspark", "workers' python", "lake", "memory"):
        assert any(f" {subject}: " in line for line in said)
    assert not (tmp_path / "lake").exists()


def _java(home: Path, release: str | None) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\n", encoding="utf-8")
    binary.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n', encoding="utf-8")
    return binary


def test_java_is_looked_for_where_it_usually_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"))
    monkeypatch.setattr(java, "USUAL_PLACES", (str(tmp_path / "jvm" / "*"),))
    assert java.find_java() is None
    old = _java(tmp_path / "old", "1.8.0_402")
    assert java.find_java() == old
    with pytest.raises(EnvironmentProblem, match="is Java 8; Spark 4 needs 17 or later; install Java 17"):
        java.use_java()
    _java(tmp_path / "jvm" / "11", "11.0.2")
    _java(tmp_path / "jvm" / "unknown", None)
    _java(tmp_path / "jvm" / "25", "25")
    suitable = _java(tmp_path / "jvm" / "17", "17.0.15")
    assert java.find_java() == suitable
    java.use_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jvm" / "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert java.find_java() == old


@pytest.mark.parametrize(
    ("system", "how"),
    [({"ID": "debian"}, "apt install"), ({"ID": "rocky", "ID_LIKE": "rhel fedora"}, "dnf install"), ({}, "or later,")],
)
def test_the_remedy_is_that_of_the_system(system: dict[str, str], how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.sys, "platform", "linux")
    monkeypatch.setattr(java.platform, "freedesktop_os_release", lambda: system)
    assert how in java.describe_java_remedy()


def test_everything_wrong_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "mine.toml"
    conf.write_text("[replay]\nlate = 1\n", encoding="utf-8")
    lake = tmp_path / "lake"
    lake.write_text("a file", encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv(jars.JARS_VARIABLE, str(tmp_path))
    monkeypatch.setitem(doctor.PACKAGES, "pyspark", "3.5.")
    monkeypatch.setitem(doctor.PACKAGES, "no-such-package", "")
    console = CaptureConsole()
    assert doctor.doctor(conf, console, lake) == ExitCode.USAGE
    wrong = [text for text in console.texts("result") if text.startswith("WRONG")]
    subjects = {text.removeprefix("WRONG ").split(":")[0] for text in wrong}
    assert subjects == {"configuration", "java", "pyspark", "no-such-package", "delta jars", "lake"}


def test_jars_of_another_release_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(jars.JARS_VARIABLE, str(tmp_path))
    artifact = jars.find_delta_package().split(":")[1]
    (tmp_path / f"io.delta_{artifact}-0.0.1.jar").touch()
    (tmp_path / "io.delta_delta-storage-0.0.1.jar").touch()
    assert jars.find_delta_jars() == ()
    release = jars.find_delta_package().split(":")[2]
    (tmp_path / f"io.delta_{artifact}-{release}.jar").touch()
    assert jars.find_delta_jars() == ()
    (tmp_path / f"io.delta_delta-storage-{release}.jar").touch()
    assert len(jars.find_delta_jars()) == 4


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ("command not found", None),
    ],
)
def test_java_releases(text: str, release: int | None) -> None:
    assert parse_release(text) == release
