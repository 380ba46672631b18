"""Modules of the current folder: workers do not import them, and doctor names those that hide others."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from highwater.jobs import doctor
from highwater.pipelines.base.config import load_config
from highwater.pipelines.spark.import_path import Shadow, build_worker_environment, find_shadows
from highwater.pipelines.spark.session_settings import build_settings
from tests.console import CaptureConsole
from tests.unit.test_packaging import BUILD

ROOT = Path(__file__).resolve().parents[3]
#: Ours in a wheel and in a checkout, those that workers import, and the standard library's.
PACKAGES = ("highwater", "jobs", "pipelines", "schemas", "conf", "pyspark", "py4j")
MODULES = ("numpy", "pandas", "pyarrow", "orjson", "random", "socket", "typing", "collections")
STRAY = 'raise RuntimeError("a stray module")\n'
_ENVIRONMENT = "spark.executorEnv."


@pytest.fixture
def strays(tmp_path: Path) -> Path:
    folder = tmp_path / "strays"
    for name in PACKAGES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(STRAY, encoding="utf-8")
    for name in MODULES:
        (folder / f"{name}.py").write_text(STRAY, encoding="utf-8")
    return folder


def _daemon(root: Path, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Start the daemon of workers as Spark does. It writes its port, and ends with its input."""
    return subprocess.run(
        [sys.executable, "-m", "highwater.pipelines.spark.worker_daemon", "pyspark.worker"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("layout", ["checkout", "wheel"])
def test_workers_import_nothing_from_the_current_folder(layout: str, strays: Path, tmp_path: Path) -> None:
    root = ROOT
    if layout == "wheel":
        root = tmp_path / "site"
        BUILD.lay_out(ROOT, root / BUILD.PACKAGE)
    settings = build_settings(load_config().session, "local[2]", 0)
    environment = {
        name.removeprefix(_ENVIRONMENT): value for name, value in settings.items() if name.startswith(_ENVIRONMENT)
    }
    done = _daemon(root, strays, environment)
    assert (len(done.stdout), done.stderr) == (4, b"")
    assert b"a stray module" in _daemon(root, strays, {}).stderr, "without the settings strays are imported"


def test_workers_find_a_package_that_only_the_current_folder_has() -> None:
    named = build_worker_environment({"PYTHONPATH": "/a"}, [str(ROOT), "/lib"])
    assert named == {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), "/a"])}
    for path in (["/lib", str(ROOT)], [str(ROOT), "/lib", str(ROOT)]):
        assert build_worker_environment({"PYTHONPATH": "/a"}, path) == {"PYTHONSAFEPATH": "1"}


def test_modules_that_hide_others_are_found(strays: Path) -> None:
    stdlib = sysconfig.get_path("stdlib")
    found = {shadow.name: shadow for shadow in find_shadows([str(strays), *sys.path])}
    assert found.keys() >= {*PACKAGES, *MODULES} - {"conf"}
    assert found["random"] == Shadow("random", str(strays / "random.py"), f"{stdlib}/random.py")
    assert found["pipelines"] == Shadow("pipelines", str(strays / "pipelines"), str(ROOT / "pipelines"))
    assert list(find_shadows([stdlib, str(strays)])) == [], "what is found later hides nothing"
    assert list(find_shadows([str(ROOT), stdlib, str(ROOT)])) == [], "a folder does not hide itself"


def test_doctor_names_what_hides_what(strays: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(strays)
    console = CaptureConsole()
    doctor.doctor(None, console, tmp_path / "lake")
    assert not any("strays" in text for text in console.texts("result") if " lake:" not in text)
    monkeypatch.setenv("PYTHONPATH", str(strays))
    monkeypatch.setattr(sys, "path", [str(strays), *sys.path])
    doctor.doctor(None, console, tmp_path / "lake")
    wrong = [text for text in console.texts("result") if text.startswith("WRONG")]
    assert any("workers' python" in text and "a stray module" in text for text in wrong)
    assert any(
        text.startswith(f"WRONG import: random is {strays}/random.py, which hides ") and "PYTHONPATH" in text
        for text in wrong
    )
