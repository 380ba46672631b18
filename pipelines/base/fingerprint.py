"""Identity of a result: components of the program, configuration, inputs. Pure.

Each component has a number, which is raised if its result for equal input may differ. A component starts over if its
own number changed, or the number of a component that it depends on: grammars compute silver from bronze, the replay and
the rules compute gold from silver. Readers are left out, since files are read once; the report stores no computed
values. `tests/unit/platform/test_components.py` reports code that changed under the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

#: Name on PyPI, where `highwater` is another project.
DISTRIBUTION: Final = "highwater-kafka"
#: Components of a replay's fingerprint, in its order, by the names that the ledger has them by.
REPLAY, GRAMMAR, SETTINGS, RULES = "replay", "grammar", "settings", "rules"
_COMPONENTS: Final = (REPLAY, GRAMMAR, SETTINGS)
#: *readers*: rows of a new file; rows of earlier files stay. *grammar*: meaning of a line. *replay*: time at which an
#: operation may be answered, and the parts of its wait. *rules*: broken guarantees, and other results that every
#: run computes from silver.
NUMBERS: Final = {"readers": 5, GRAMMAR: 2, REPLAY: 1, RULES: 2}
#: Component of a lake whose tables an upgrade has rebuilt: no state is reused.
TABLES: Final = "tables"
#: Modules, and data that they read.
_CODE: Final = (".py", ".toml", ".sql")


def code_version() -> str:
    """Return the version of the installed distribution. "unknown" if it is not installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"


def rules_fingerprint() -> str:
    """Return the component versions, for example `readers-4 grammar-1`."""
    return " ".join(f"{name}-{number}" for name, number in NUMBERS.items())


def compute_grammar_fingerprint() -> str:
    """Return the version tag of the grammars that parse bronze into silver, without spaces."""
    return f"{GRAMMAR}-{NUMBERS[GRAMMAR]}"


def compute_replay_fingerprint(config_hash: str, grammar: str) -> str:
    """Return the version tag of replay code, grammars and settings. State with another tag is not reused.

    Args:
        config_hash: `pipelines.base.config.Config.replay_hash`.
        grammar: version tag of the grammars that parsed silver.
    """
    return " ".join((f"{REPLAY}-{NUMBERS[REPLAY]}", grammar, config_hash[:16]))


def compute_audit_fingerprint() -> str:
    """Return the version tag of replay and rules. Saved rule state with another tag is not reused."""
    return f"{REPLAY}-{NUMBERS[REPLAY]} {RULES}-{NUMBERS[RULES]}"


def list_changed_components(before: str, now: str) -> list[str]:
    """Return the names of the components in which two replay fingerprints differ."""
    old, new = before.split(" "), now.split(" ")
    if before == TABLES or len(old) != len(new):
        return [TABLES if before == TABLES else REPLAY]
    return [name for name, was, is_now in zip(_COMPONENTS, old, new, strict=True) if was != is_now]


def compute_inputs_fingerprint(file_ids: Iterable[str], replay: str) -> str:
    """Return the hash of the files of an audit and of the replay fingerprint: 32 hex digits."""
    return sha256("\n".join([replay, *sorted(file_ids)]).encode()).hexdigest()[:32]


def run_id(inputs: str, config_hash: str) -> str:
    """Return the id of an audit, 32 hex digits. Equal files, grammars, replay, rules and settings give equal ids.

    Args:
        inputs: result of `compute_inputs_fingerprint`.
        config_hash: `pipelines.base.config.Config.rules_hash`.
    """
    return sha256("\n".join([inputs, str(NUMBERS[RULES]), config_hash]).encode()).hexdigest()[:32]


@lru_cache
def compute_package_hash() -> str:
    """Return the hash of all code that tasks may run, also from an archive: 16 hex digits."""
    digest = sha256()
    base = __package__.rpartition(".")[0].removesuffix("pipelines")
    for package in ("pipelines", "schemas"):
        for name, source in sorted(_walk_modules(files(base + package), package)):
            digest.update(f"{name}\0".encode() + source + b"\0")
    return digest.hexdigest()[:16]


def _walk_modules(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.endswith(_CODE):
            yield f"{name}/{entry.name}", entry.read_bytes()
        elif entry.is_dir():
            yield from _walk_modules(entry, f"{name}/{entry.name}")
