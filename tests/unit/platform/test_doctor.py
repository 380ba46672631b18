"""The doctor tells everything that is wrong at once, and needs no Java to do so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs import doctor
from jobs.exit_codes import ExitCode
from pipelines.base import jars
from pipelines.base.console import CaptureConsole
from pipelines.base.java import parse_release

ROOT = Path(__file__).resolve().parents[3]


def test_without_java_it_says_so_and_checks_the_rest(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", "doctor", "--lake", str(tmp_path / "lake")],
        cwd=ROOT,
        env=environment | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.USAGE
    wrong = [line for line in done.stdout.splitlines() if line.startswith("WRONG")]
    assert any(line.startswith("WRONG java: there is no java on PATH; install Java 17") for line in wrong)
    for subject in ("python", "pyspark", "workers' python", "lake", "memory"):
        assert f" {subject}: " in done.stdout
    assert done.stderr == ""
    assert not (tmp_path / "lake").exists()


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
    artifact = jars.delta_package().split(":")[1]
    (tmp_path / f"io.delta_{artifact}-0.0.1.jar").touch()
    (tmp_path / "io.delta_delta-storage-0.0.1.jar").touch()
    assert jars.delta_jars() == ()
    release = jars.delta_package().split(":")[2]
    (tmp_path / f"io.delta_{artifact}-{release}.jar").touch()
    assert jars.delta_jars() == ()
    (tmp_path / f"io.delta_delta-storage-{release}.jar").touch()
    assert len(jars.delta_jars()) == 4


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
