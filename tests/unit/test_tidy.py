"""Hygiene of the repository, as a test."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "pipelines", "jobs", "tests/testbed")
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".lock", ".properties", ".sh", ".cfg", ".txt", ""}


def _files() -> list[str]:
    """What is, or would be, under version control; logs bundled as data hold whatever a broker wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    return [name for name in names if Path(name).suffix in TEXT and not name.startswith("tests/data/")]


def _matches(pattern: str) -> list[str]:
    found = []
    for name in _files():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if re.search(pattern, line):
                found.append(f"{name}:{number}: {line.strip()}")
    return found


def test_no_path_of_one_machine() -> None:
    folders = "|".join(("wor" + "k", "roo" + "t", "tm" + "p/hw"))
    assert _matches(rf"(?<![\w.~/])/(?:{folders})\b") == []


def test_nothing_is_left_to_do_in_a_comment() -> None:
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X"))
    assert _matches(rf"\b(?:{words})\b") == []


@pytest.mark.parametrize("kind", ["", "-airflow", "-testbed", "-s3"])
def test_a_lock_names_packages_only(kind: str) -> None:
    lines = (ROOT / f"requirements{kind}.lock").read_text(encoding="utf-8").splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.!+]+", line)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_and_package_says_what_it_is_for(package: str) -> None:
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []
    for path in (ROOT / package).rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), f"{path} has no docstring"
