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

from highwater.pipelines.base import fingerprint
from highwater.pipelines.replay.fetch_sessions import FetchSession
from highwater.pipelines.replay.isr_evidence import Gap, IsrEvidence
from highwater.pipelines.replay.partition_fold import PartitionFold
from highwater.pipelines.replay.runs import folds_shape
from highwater.pipelines.rules.partition_audit import FREEZER
from highwater.pipelines.rules.proofs.fetch_chain import FetchChain
from highwater.schemas.audit_facts import Fact
from highwater.schemas.session_events import FETCH, SessionEvent
from tests.unit.replay.histories import context, fetch, leader_start, produce

ROOT = Path(__file__).resolve().parents[2]


def _hatch_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = _hatch_build()
MODULES = sorted(path for package in (*BUILD.CODE, "tests") for path in (ROOT / package).rglob("*.py"))


def test_the_changelog_is_cut_at_the_version_that_is_built() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[:2] == ["Unreleased", version]


def test_the_name_of_the_distribution_is_the_same_everywhere() -> None:
    """Documents and scripts may install no other project of a similar name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == fingerprint.DISTRIBUTION
    assert project["scripts"].keys() == {BUILD.PACKAGE}
    files = [path for name in ("*", "docs/*", "airflow_dags/*", ".github/**/*") for path in ROOT.glob(name)]
    command = re.compile(r"\b(?:pip|pipx|uvx?|tool|python -m pip) (?:wheel|install|run|download)\b[^\n`#]*")
    for path in files:
        if path.suffix in {".md", ".yaml", ".yml", ".py", ".ipynb", ""} and path.is_file():
            for line in command.findall(path.read_text(encoding="utf-8")):
                named = re.findall(r"(?<![\w/.-])highwater(?![/.])[\w-]*", line)
                assert {name.replace("_", "-").split("-0")[0].rstrip("-") for name in named} <= {project["name"]}, line


def test_the_version_of_what_is_not_installed_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "DISTRIBUTION", "no-such-distribution")
    assert fingerprint.code_version() == "unknown"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_is_imported_by_its_one_name(path: Path) -> None:
    """By another name it would be another module, with other classes."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.split(".")[0] for name in names} & set(BUILD.CODE)


def test_the_package_links_to_the_folders_of_code() -> None:
    assert {path.name for path in (ROOT / BUILD.PACKAGE).iterdir() if path.is_symlink()} == set(BUILD.CODE)


def test_a_package_as_in_a_wheel_imports_nothing_else_of_ours(tmp_path: Path) -> None:
    BUILD.lay_out(ROOT, tmp_path / "site" / BUILD.PACKAGE)
    program = (
        "import sys, importlib\n"
        "for name in ('__main__', 'views', 'interface', 'log_source', 'jobs.steps', 'jobs.cli',"
        "             'jobs.demo', 'jobs.doctor', 'jobs.inquiries'):\n"
        "    importlib.import_module(f'highwater.{name}')\n"
        "from highwater.jobs.demo import LOGS\n"
        "from highwater.pipelines.base.resources import find_conf_file\n"
        "assert LOGS.is_dir() and find_conf_file('default.toml')\n"
        f"print(sorted({{name.split('.')[0] for name in sys.modules}} & {{*{BUILD.CODE!r}}}))\n"
    )
    assert _run(program, tmp_path, tmp_path / "site") == "[]\n"


#: Thaws each state and prints it frozen again, after the shapes of all states of a lake.
_THAW = """
import sys
from highwater.pipelines.kafka.context import Context
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay.fetch_sessions import FetchSession
from highwater.pipelines.replay.isr_evidence import IsrEvidence
from highwater.pipelines.replay.partition_fold import PartitionFold
from highwater.pipelines.replay.runs import folds_shape
from highwater.pipelines.rules.partition_audit import FREEZER
rules = rules_for("3.9.1")
partition, session, evidence, audit = map(bytes.fromhex, sys.argv[1:])
print(folds_shape(), FREEZER.shape())
print(PartitionFold.thawed(partition, Context(1, rules, 6_000_000, ((0, 1),)), IsrEvidence()).freeze().hex())
print(FetchSession.thawed(session, rules).freeze().hex())
print(IsrEvidence.thawed(evidence).freeze().hex())
print(FREEZER.freeze(FREEZER.thaw(audit, ()), ()).hex())
"""


def test_a_wheel_resumes_the_state_of_a_checkout(tmp_path: Path) -> None:
    BUILD.lay_out(ROOT, tmp_path / "site" / BUILD.PACKAGE)
    partition = PartitionFold(context(), IsrEvidence())
    for event in (leader_start(0, (1, 2)), produce(1, 0), fetch(2, 2, 0)):
        list(partition.observe(event))
    session = FetchSession(context().rules)
    list(session.observe(SessionEvent(5, FETCH, 5, operation_id="o", replica_id=2, session_epoch=-1)))
    frozen = [
        partition.freeze(),
        session.freeze(),
        IsrEvidence(gaps={"c": (Gap(1, 2, 3),)}).freeze(),
        FREEZER.freeze([Fact(*[None] * len(Fact._fields)), FetchChain()], ()),
    ]
    texts = [text.hex() for text in frozen]
    shapes, *back = _run(_THAW, tmp_path, tmp_path / "site", *texts).splitlines()
    assert shapes == f"{folds_shape()} {FREEZER.shape()}"
    assert back == texts


def _run(program: str, folder: Path, path: Path, *arguments: str) -> str:
    """Return what a program prints. Its modules are those below `path`."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout
