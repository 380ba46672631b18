"""What a wheel holds: one package, in which modules import each other by its name."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from tests.components import code_hash

ROOT = Path(__file__).resolve().parents[2]


def _hatch_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = _hatch_build()
MODULES = sorted(path for package in BUILD.CODE for path in (ROOT / package).rglob("*.py"))


def test_code_counts_by_what_it_does_and_not_by_where_it_is() -> None:
    sources = {path.as_posix(): path.read_text(encoding="utf-8") for path in MODULES}
    installed = {name: BUILD.as_installed(source, name) for name, source in sources.items()}
    assert sum(installed[name] != source for name, source in sources.items()) > 300
    assert all(len(installed[name].splitlines()) == len(source.splitlines()) for name, source in sources.items())
    assert code_hash({name: text.encode() for name, text in installed.items()}) == code_hash(
        {name: text.encode() for name, text in sources.items()}
    )


def test_the_changelog_is_cut_at_the_version_that_is_built() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]


def test_only_imports_change() -> None:
    source = (
        "from pipelines.base import plain\nif x:\n    from jobs import steps\n"
        's = """\nfrom jobs import a\n"""\njobs = 1\nfrom os import path\nimport schemas.gold as g\n'
    )
    assert BUILD.as_installed(source).splitlines() == [
        "from highwater.pipelines.base import plain",
        "if x:",
        "    from highwater.jobs import steps",
        's = """',
        "from jobs import a",
        '"""',
        "jobs = 1",
        "from os import path",
        "import highwater.schemas.gold as g",
    ]
    with pytest.raises(ValueError, match="calls x otherwise"):
        BUILD.as_installed("import pipelines.base.plain\n")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_text_names_a_module(path: Path) -> None:
    """It would name one that a wheel does not have."""
    names = re.compile(rf"({'|'.join(BUILD.CODE)})(\.\w+)+")
    texts = [node.value for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Constant)]
    assert [text for text in texts if isinstance(text, str) and names.fullmatch(text)] == []


def test_a_package_as_in_a_wheel_imports_nothing_else_of_ours(tmp_path: Path) -> None:
    BUILD.lay_out(ROOT, tmp_path / "site" / BUILD.PACKAGE)
    program = (
        "import sys, importlib\n"
        "for name in ('__main__', 'views', 'jobs.steps', 'jobs.cli', 'jobs.demo', 'jobs.doctor', 'jobs.inquiries'):\n"
        "    importlib.import_module(f'highwater.{name}')\n"
        "from highwater.jobs.demo import LOGS\n"
        "from highwater.pipelines.base.resources import conf_file\n"
        "assert LOGS.is_dir() and conf_file('default.toml')\n"
        f"print(sorted({{name.split('.')[0] for name in sys.modules}} & {{*{BUILD.CODE!r}}}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", "[]\n")
