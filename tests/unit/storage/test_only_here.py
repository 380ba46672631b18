"""Files of logs, lakes and reports are touched in `pipelines.storage` only: elsewhere a path may be a URI.

Read off the syntax trees: no module uses what works on paths of this machine alone, but those that are about it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: Modules about this machine, and why.
OF_THIS_MACHINE = {
    "pipelines/storage/local.py": "this is where",
    "pipelines/storage/objects.py": "a file of this machine becomes an object",
    "pipelines/storage/hdfs.py": "a file of this machine becomes one of HDFS",
    "pipelines/storage/place.py": "paths without links",
    "pipelines/bronze/bundles.py": "members of archives",
    "pipelines/quality/great.py": "Data Docs, which no store is given",
    "pipelines/storage/connectors.py": "jars of the installation",
    "pipelines/lake/lock.py": "the kernel's locks, which only local disks have",
    "pipelines/storage/machine_faults.py": "which disk is full",
    "pipelines/storage/unmade.py": "folders, which stores have none of",
    "pipelines/spark/session.py": "scratch folders, jars",
    "pipelines/spark/import_path.py": "folders that modules are imported from",
    "pipelines/spark/session_settings.py": "settings of Spark's installation",
    "pipelines/base/java.py": "where Java is",
    "pipelines/base/plain.py": "the width of the terminal",
    "pipelines/base/jars.py": "jars of the installation",
    "pipelines/spark/class_archive.py": "the JVM's archive",
    "pipelines/spark/jvm_stderr.py": "a pipe",
    "pipelines/base/resources.py": "files of the package",
    "pipelines/base/fingerprint.py": "the source of the package",
    "pipelines/base/config.py": "the file of --conf",
    "pipelines/redact/text.py": "the source of the package",
    "pipelines/lake/reader.py": "where DuckDB puts what does not fit into memory",
    "pipelines/report/bundle.py": "scratch files, which a store then takes",
    "pipelines/report/page/render.py": "files of the package",
    "pipelines/rules/explain.py": "files of the package",
    "pipelines/kafka/releases/__init__.py": "files of the package",
    "pipelines/messages/atlas.py": "files of the package",
    "pipelines/messages/exceptions.py": "files of the package",
    "pipelines/rules/known_bugs.py": "files of the package",
    "pipelines/rules/texts.py": "files of the package",
    "pipelines/bronze/layouts/loggers.py": "files of the package",
    "pipelines/grammars/templates.py": "files of the package",
    "pipelines/kafka/waits.py": "files of the package",
    "schemas/package_data.py": "files of the package",
    "pipelines/lake/table_docs.py": "files of the package",
    "jobs/options.py": "the file of --conf",
    "jobs/help.py": "none: click's formatter",
    "jobs/streams.py": "stdin, stdout and stderr",
    "jobs/alerts.py": "whether a program can be run",
    "jobs/redaction.py": "the file of a key",
    "jobs/archive_classes.py": "the JVM's archive",
    "jobs/fetch_jars.py": "jars of the installation",
    "jobs/airflow.py": "the folder of DAGs",
    "jobs/doctor.py": "what this machine lacks",
}
#: Of `os`: no files.
_OF_OS = {
    "PathLike",
    "fspath",
    "environ",
    "path",
    "getpid",
    "dup",
    "dup2",
    "close",
    "open",
    "devnull",
    "O_WRONLY",
    "_exit",
}
#: Of `os.path`: no files.
_OF_OS_PATH = {"basename", "split", "join"}
_MODULES = {"shutil", "tempfile", "glob", "fcntl", "mmap", "fileinput"}
#: Methods of paths; what a store has takes the place as its argument.
_METHODS = {
    *("chmod", "exists", "glob", "hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lstat", "mkdir"),
    *("read_bytes", "read_text", "resolve", "rglob", "rmdir", "stat", "symlink_to", "touch", "unlink"),
    *("write_bytes", "write_text"),
}
_WITH_ARGUMENTS = {"glob", "mkdir", "read_text", "rglob", "unlink", "write_bytes", "write_text"}


def on_paths(source: str) -> Iterator[str]:
    """What in a module works on paths of this machine alone."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"imports {name}" for name in names if name.split(".")[0] in _MODULES)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            yield "open()"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr not in _OF_OS:
                yield f"os.{node.attr}"
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os.path":
            if node.attr not in _OF_OS_PATH:
                yield f"os.path.{node.attr}"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _METHODS
            and (not node.args or node.func.attr in _WITH_ARGUMENTS)
        ):
            yield f".{node.func.attr}()"


def _modules() -> Iterator[str]:
    for package in ("pipelines", "jobs", "schemas"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix()


def test_nothing_else_touches_files() -> None:
    found = {name: sorted(set(on_paths((ROOT / name).read_text(encoding="utf-8")))) for name in _modules()}
    assert {name: what for name, what in found.items() if what and name not in OF_THIS_MACHINE} == {}


@pytest.mark.parametrize("name", OF_THIS_MACHINE)
def test_an_exemption_is_needed(name: str) -> None:
    assert list(on_paths((ROOT / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "source",
    ["open(x)", "x.read_bytes()", "x.exists()", "os.stat(x)", "os.path.getsize(x)", "import shutil", "x.glob('*')"],
)
def test_what_works_on_paths_is_seen(source: str) -> None:
    assert list(on_paths(source))


@pytest.mark.parametrize("source", ["store.is_file(x)", "lake.exists(x)", "os.path.join(x, y)", "os.fspath(x)"])
def test_what_works_anywhere_is_left_alone(source: str) -> None:
    assert not list(on_paths(source))
