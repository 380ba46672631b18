"""The code of each component of the program, by what it does: comments, docstrings and line breaks are none of it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from highwater.pipelines.base.fingerprint import NUMBERS
from highwater.pipelines.base.syntax import parse_source
from highwater.schemas import silver

ROOT = Path(__file__).resolve().parents[1]
#: Number of each component, and the hash of its code when it was given or looked at last.
PINNED = ROOT / "tests" / "data" / "components.toml"
#: Declarations of tables are none of the replay: a table that is not as declared is made anew.
PLACES = {
    "readers": ("pipelines/bronze", "pipelines/data_dir"),
    "grammar": ("pipelines/grammars", "pipelines/silver", "pipelines/base/json_text.py"),
    "replay": (
        *("pipelines/kafka", "pipelines/lake/bounds.py", "pipelines/timing/latency", "pipelines/metrics"),
        "pipelines/replay",
        *("pipelines/base/arrow_rows.py", "pipelines/cluster/premises.py", "pipelines/cluster/rows.py"),
        *("schemas/broker_lines.py", "schemas/connection_rows.py", "schemas/events.py", "schemas/fields.py"),
        *("schemas/session_events.py", "schemas/topics.py"),
    ),
    "rules": (
        *("pipelines/timing/clocks", "pipelines/controllers", "pipelines/rules", "pipelines/gold/audit_stage.py"),
        "schemas/audit_facts.py",
    ),
}
#: Modules, and data that they read.
_CODE = (".py", ".toml", ".sql")
#: The package of a wheel, which has all others in it.
_PACKAGE = "highwater"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def pinned() -> dict[str, dict[str, int | str]]:
    """What was noted of each component: ``number`` and ``code``."""
    return tomllib.loads(PINNED.read_text(encoding="utf-8"))


def now() -> dict[str, dict[str, int | str]]:
    """The same of the code that is there."""
    hashes = {name: hash_of(places) for name, places in PLACES.items()}
    hashes["grammar"] = sha256(f"{hashes['grammar']}\n{silver_columns()}".encode()).hexdigest()[:16]
    return {name: {"number": NUMBERS[name], "code": code} for name, code in hashes.items()}


def silver_columns() -> str:
    """Names and types of silver's columns: a grammar's groups are read by them."""
    return repr(
        [
            (spec.name, column.name, column.dataType.simpleString(), column.nullable)
            for spec in silver.TABLES
            for column in spec.columns
        ]
    )


def hash_of(places: tuple[str, ...], root: Path = ROOT) -> str:
    """Hash of modules and their data, and of all that lie in folders: 16 hex digits."""
    files = {path for place in places for path in (root / place, *(root / place).rglob("*"))}
    paths = {path for path in files if path.name.endswith(_CODE) and path.is_file()}
    return code_hash({path.relative_to(root).as_posix(): path.read_bytes() for path in paths})


def code_hash(sources: Mapping[str, bytes]) -> str:
    """Hash of Python modules by what they do, and of other files by what they hold: 16 hex digits.

    Args:
        sources: by name of the file.
    """
    digest = sha256()
    for name, source in sorted(sources.items()):
        what = _tree(source) if name.endswith(".py") else sha256(source).hexdigest()
        digest.update(f"{name}\0{what}\0".encode())
    return digest.hexdigest()[:16]


def _tree(source: bytes) -> str:
    tree = parse_source(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            # A wheel has all under one name, and does the same.
            node.module = node.module.removeprefix(f"{_PACKAGE}.")
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return sha256(ast.dump(tree).encode()).hexdigest()
