"""What made a result: version of the code, grammars and rules, configuration, inputs. Pure hashes.

They change only when results may: code counts by its syntax tree, so a comment, a docstring or a line break is none.
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

_ROOT = Path(__file__).parents[1]
_READ_AND_REPLAYED = (
    *("pipelines/bronze", "pipelines/latency", "pipelines/metrics", "pipelines/replay", "pipelines/silver", "schemas"),
    *("pipelines/arrow_rows.py", "pipelines/premises.py", "pipelines/premises_rows.py"),
)
#: Whatever decides what a line means, when an operation may be answered, and what breaks a guarantee.
_RULES = (*_READ_AND_REPLAYED, "pipelines/clocks", "pipelines/controllers", "pipelines/data_dir", "pipelines/rules")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("highwater")
    except PackageNotFoundError:
        return "unknown"


def rules_fingerprint() -> str:
    """Hash of readers, grammars, replay and rules, and of the tables: 16 hex digits."""
    return _hash_of(_RULES)[:16]


def replay_fingerprint(config_hash: str) -> str:
    """What decides what the replay carries from run to run and merges. Rows of another one are never gone on from.

    Args:
        config_hash: of the sections that it depends on, `pipelines.config.Config.replay_hash`.
    """
    return sha256(f"{_hash_of(_READ_AND_REPLAYED)}\n{config_hash}".encode()).hexdigest()[:32]


def run_id(file_ids: Iterable[str], config_hash: str) -> str:
    """Identity of an audit: the same contents, code and configuration have the same id, 32 hex digits."""
    parts = [code_version(), rules_fingerprint(), config_hash, *sorted(file_ids)]
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def code_hash(sources: Mapping[str, bytes]) -> str:
    """Hash of Python modules by what they do.

    Args:
        sources: by name of the module.
    """
    digest = sha256()
    for name, source in sorted(sources.items()):
        digest.update(f"{name}\0{_tree(source)}\0".encode())
    return digest.hexdigest()


@lru_cache
def package_hash() -> str:
    """Hash of all that tasks may run, byte by byte, from wherever it is imported, be it an archive: 16 hex digits."""
    digest = sha256()
    for package in ("pipelines", "schemas"):
        for name, source in sorted(_modules(files(package), package)):
            digest.update(f"{name}\0".encode() + source + b"\0")
    return digest.hexdigest()[:16]


def _modules(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            yield f"{name}/{entry.name}", entry.read_bytes()
        elif entry.is_dir():
            yield from _modules(entry, f"{name}/{entry.name}")


@lru_cache
def _hash_of(places: tuple[str, ...]) -> str:
    """Hash of modules, and of all that lie in folders."""
    paths = {path for place in places for path in (_ROOT / place, *(_ROOT / place).rglob("*.py")) if path.is_file()}
    return code_hash({path.relative_to(_ROOT).as_posix(): path.read_bytes() for path in paths})


@lru_cache(maxsize=512)
def _tree(source: bytes) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return sha256(ast.dump(tree).encode()).hexdigest()
