"""What made a result: version of the code, grammars and rules, configuration, inputs. Pure hashes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGE = Path(__file__).parent
#: Whatever decides what a line means, when an operation may be answered, and what breaks a guarantee.
_RULES = ("bronze", "controllers", "data_dir", "latency", "replay", "rules", "silver")


def code_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("highwater")
    except PackageNotFoundError:
        return "unknown"


@lru_cache(maxsize=1)
def rules_fingerprint() -> str:
    """Hash of the source of readers, grammars, replay and rules, and of the tables: 16 hex digits."""
    digest = sha256()
    folders = [*(_PACKAGE / name for name in _RULES), _PACKAGE.parent / "schemas"]
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def gold_fingerprint(config_hash: str) -> str:
    """What decides what silver becomes: code, rules and configuration. Rows of another one are never gone on from."""
    return sha256("\n".join([code_version(), rules_fingerprint(), config_hash]).encode()).hexdigest()[:32]


def run_id(file_ids: Iterable[str], config_hash: str) -> str:
    """Identity of an audit: the same contents, code and configuration have the same id, 32 hex digits."""
    parts = [code_version(), rules_fingerprint(), config_hash, *sorted(file_ids)]
    return sha256("\n".join(parts).encode()).hexdigest()[:32]
