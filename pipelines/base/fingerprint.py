"""What made a result: grammars, replay, rules, configuration, inputs. Pure hashes, one for each component.

They change only when results of that component may: code counts by its syntax tree, so a comment, a docstring or a line
break is none, and tables by their columns and types. A component begins anew if its own fingerprint changed, or if one
did that it rests on: grammars make silver of bronze, the replay and the rules make gold of silver. What reads bronze
from files is no part of it, since files are read once; the report computes nothing that is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from pipelines.base.syntax import parsed

_ROOT = Path(__file__).parents[2]
#: What a line means.
_GRAMMAR: Final = ("pipelines/grammars", "pipelines/silver", "pipelines/base/json_text.py")
#: When an operation may be answered, and where its time went. Declarations of tables are none of it: a table that is
#: not as declared is made anew (`pipelines.upkeep.upgrade`).
_REPLAY: Final = (
    *("pipelines/kafka", "pipelines/lake/bounds.py", "pipelines/timing/latency", "pipelines/metrics"),
    "pipelines/replay",
    *("pipelines/base/arrow_rows.py", "pipelines/cluster/premises.py", "pipelines/cluster/rows.py"),
    *("schemas/broker_lines.py", "schemas/connection_rows.py", "schemas/events.py", "schemas/fields.py"),
    *("schemas/session_events.py", "schemas/topics.py"),
)
#: What breaks a guarantee, and all else that is asked of all of silver in every run.
_RULES: Final = (
    *("pipelines/timing/clocks", "pipelines/controllers", "pipelines/rules", "pipelines/gold/audit_stage.py"),
    "schemas/audit_facts.py",
)
#: What a new file gives; what earlier ones gave stays.
_READERS: Final = ("pipelines/bronze", "pipelines/data_dir")
#: Components of a replay's fingerprint, in its order, by the names that the ledger has them by.
REPLAY, GRAMMAR, SETTINGS, RULES = "replay", "grammar", "settings", "rules"
_COMPONENTS: Final = (REPLAY, GRAMMAR, SETTINGS)
#: Of a lake whose tables an upgrade has made anew: nothing is gone on from.
TABLES: Final = "tables"
#: Modules, and data that they read.
_CODE: Final = (".py", ".toml")
#: The package of a wheel, which has all others in it.
_PACKAGE: Final = "highwater"
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("highwater")
    except PackageNotFoundError:
        return "unknown"


def rules_fingerprint() -> str:
    """Hash of all that decides what is told of a file: 16 hex digits."""
    return _hash_of((*_READERS, *_GRAMMAR, *_REPLAY, *_RULES))[:16]


def grammar_fingerprint() -> str:
    """Hash of what makes silver of bronze, and of silver's columns: 16 hex digits."""
    return sha256(f"{_hash_of(_GRAMMAR)}\n{_silver_columns()}".encode()).hexdigest()[:16]


def replay_fingerprint(config_hash: str, grammar: str) -> str:
    """What decides what the replay carries from run to run and merges. Rows of another one are never gone on from.

    Args:
        config_hash: of the sections that it depends on, `pipelines.base.config.Config.replay_hash`.
        grammar: fingerprint of the grammars that silver was parsed by.
    """
    return " ".join((_hash_of(_REPLAY)[:16], grammar, config_hash[:16]))


def audit_fingerprint() -> str:
    """What decides how rules judge the facts of a partition: 16 hex digits."""
    return _hash_of((*_REPLAY, *_RULES))[:16]


def components_changed(before: str, now: str) -> list[str]:
    """Names of the components in which two fingerprints of replays differ."""
    old, new = before.split(" "), now.split(" ")
    if before == TABLES or len(old) != len(new):
        return [TABLES if before == TABLES else REPLAY]
    return [name for name, was, is_now in zip(_COMPONENTS, old, new, strict=True) if was != is_now]


def inputs_fingerprint(file_ids: Iterable[str], replay: str) -> str:
    """Hash of the files of an audit, and of how they are replayed: 32 hex digits."""
    return sha256("\n".join([replay, *sorted(file_ids)]).encode()).hexdigest()[:32]


def run_id(inputs: str, config_hash: str) -> str:
    """Identity of an audit: the same files, told by the same grammars, replay, rules and settings, have the same id.

    Args:
        inputs: of `inputs_fingerprint`.
        config_hash: of the sections that the rules depend on, `pipelines.base.config.Config.rules_hash`.

    Returns:
        32 hex digits.
    """
    return sha256("\n".join([inputs, _hash_of(_RULES), config_hash]).encode()).hexdigest()[:32]


def code_hash(sources: Mapping[str, bytes]) -> str:
    """Hash of Python modules by what they do, and of other files by what they hold.

    Args:
        sources: by name of the file.
    """
    digest = sha256()
    for name, source in sorted(sources.items()):
        what = _tree(source) if name.endswith(".py") else sha256(source).hexdigest()
        digest.update(f"{name}\0{what}\0".encode())
    return digest.hexdigest()


def _silver_columns() -> str:
    """Names and types of silver's columns: a grammar's groups are read by them."""
    # PySpark's types take a second to import, and some who ask for a version do without.
    from schemas import silver

    columns = [
        (spec.name, column.name, column.dataType.simpleString(), column.nullable)
        for spec in silver.TABLES
        for column in spec.columns
    ]
    return repr(columns)


@lru_cache
def package_hash() -> str:
    """Hash of all that tasks may run, byte by byte, from wherever it is imported, be it an archive: 16 hex digits."""
    digest = sha256()
    base = __package__.rpartition(".")[0].removesuffix("pipelines")
    for package in ("pipelines", "schemas"):
        for name, source in sorted(_modules(files(base + package), package)):
            digest.update(f"{name}\0".encode() + source + b"\0")
    return digest.hexdigest()[:16]


def _modules(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.endswith(_CODE):
            yield f"{name}/{entry.name}", entry.read_bytes()
        elif entry.is_dir():
            yield from _modules(entry, f"{name}/{entry.name}")


@lru_cache
def _hash_of(places: tuple[str, ...]) -> str:
    """Hash of modules and their data, and of all that lie in folders."""
    files_in = {path for place in places for path in (_ROOT / place, *(_ROOT / place).rglob("*"))}
    paths = {path for path in files_in if path.name.endswith(_CODE) and path.is_file()}
    return code_hash({path.relative_to(_ROOT).as_posix(): path.read_bytes() for path in paths})


@lru_cache(maxsize=512)
def _tree(source: bytes) -> str:
    tree = parsed(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            # A wheel has all under one name, and does the same.
            node.module = node.module.removeprefix(f"{_PACKAGE}.")
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return sha256(ast.dump(tree).encode()).hexdigest()
