"""Jars are fetched whole, by the lock, from the repository that is configured; else one sentence says what to do."""

from hashlib import sha256
from pathlib import Path

import pytest

from highwater.jobs import fetch_jars
from highwater.pipelines.base import jars
from highwater.pipelines.base.errors import EnvironmentProblem
from tests.console import CaptureConsole


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two jars, and the lock of them."""
    monkeypatch.setenv(jars.JARS_VARIABLE, str(tmp_path / "jars"))
    monkeypatch.setenv(fetch_jars.MIRROR_VARIABLE, (tmp_path / "maven").as_uri())
    lines = []
    for artifact in ("a", "b"):
        path = tmp_path / "maven" / "org" / "x" / artifact / "1.0" / f"{artifact}-1.0.jar"
        path.parent.mkdir(parents=True)
        path.write_bytes(artifact.encode())
        lines.append(f". org.x:{artifact}:1.0 1 {sha256(artifact.encode()).hexdigest()}")
    lock = tmp_path / "jars.lock"
    lock.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(fetch_jars, "find_conf_file", lambda name: lock)
    return tmp_path / "maven"


def test_jars_are_fetched_once_and_older_ones_go(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "org.x_a-0.9.jar").touch()
    console = CaptureConsole()
    assert fetch_jars.fetch(console, fetch_jars.DELTA) == tmp_path / "jars"
    assert sorted(path.name for path in (tmp_path / "jars").iterdir()) == ["org.x_a-1.0.jar", "org.x_b-1.0.jar"]
    fetch_jars.fetch(console, fetch_jars.DELTA)
    assert console.texts("stage") == ["fetch 2 jars, 0 MB"]


@pytest.mark.parametrize("damage", ["absent", "other bytes"])
def test_what_cannot_be_fetched_is_one_sentence_with_the_folder(damage: str, repository: Path, tmp_path: Path) -> None:
    jar = repository / "org" / "x" / "b" / "1.0" / "b-1.0.jar"
    if damage == "absent":
        jar.unlink()
    else:
        jar.write_bytes(b"c")
    with pytest.raises(EnvironmentProblem, match=r"org\.x:b could not be fetched") as raised:
        fetch_jars.fetch(CaptureConsole(), fetch_jars.DELTA)
    assert "highwater doctor --fetch" in str(raised.value)
    assert str(tmp_path / "jars") in str(raised.value)
    assert [path.name for path in (tmp_path / "jars").iterdir() if path.suffix == ".jar"] == ["org.x_a-1.0.jar"]


def test_the_lock_has_the_jars_that_sessions_look_for() -> None:
    names = [jar.place.name for jar in fetch_jars.read_locked(fetch_jars.DELTA)]
    _, artifact, release = jars.find_delta_package().split(":")
    assert {f"io.delta_{artifact}-{release}.jar", f"io.delta_delta-storage-{release}.jar"} <= set(names)
    assert any("hadoop-aws" in jar.artifact for jar in fetch_jars.read_locked(fetch_jars.S3))


def test_a_mirror_is_that_of_mavens_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fetch_jars.MIRROR_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fetch_jars._find_repository() == fetch_jars.CENTRAL
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(
        '<settings xmlns="http://maven.apache.org/SETTINGS/1.0.0"><mirrors>'
        "<mirror><mirrorOf>other</mirrorOf><url>https://other.test/</url></mirror>"
        "<mirror><mirrorOf>central,x</mirrorOf><url>https://mirror.test/maven/</url></mirror>"
        "</mirrors></settings>",
        encoding="utf-8",
    )
    assert fetch_jars._find_repository() == "https://mirror.test/maven"
