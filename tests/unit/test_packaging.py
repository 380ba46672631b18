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

from pipelines.base import fingerprint
from pipelines.replay.fetch_sessions import FetchSession
from pipelines.replay.isr_evidence import Gap, IsrEvidence
from pipelines.replay.partition_fold import PartitionFold
from pipelines.replay.runs import folds_shape
from pipelines.rules.partition_audit import FREEZER
from pipelines.rules.proofs.fetch_chain import FetchChain
from schemas.audit_facts import Fact
from schemas.session_events import FETCH, SessionEvent
from tests.components import code_hash
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
        "for name in ('__main__', 'views', 'interface', 'log_source', 'jobs.steps', 'jobs.cli',"
        "             'jobs.demo', 'jobs.doctor', 'jobs.inquiries'):\n"
        "    importlib.import_module(f'highwater.{name}')\n"
        "from highwater.jobs.demo import LOGS\n"
        "from highwater.pipelines.base.resources import conf_file\n"
        "assert LOGS.is_dir() and conf_file('default.toml')\n"
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
