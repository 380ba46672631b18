"""Which version of highwater wrote a lake last: ``_highwater/program.json`` in it."""

from __future__ import annotations

import re
from typing import Final

import orjson

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.fingerprint import code_version
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of

#: Folder of a lake for what the program notes of it.
FOLDER: Final = "_highwater"
_VERSION: Final = re.compile(r"\d{1,9}(\.\d{1,9})*", re.ASCII)
_PLACE: Final = (FOLDER, "program.json")


#: What to do with a lake that is too old.
REBUILD: Final = "rebuild it: audit the logs into a new --lake"
_OLDEST: Final = (0, 6)


def require_known_version(root: Place) -> None:
    """Raise an error for a lake that a newer version wrote, or that is too old to upgrade.

    Raises:
        InputError: names the version.
    """
    wrote, runs = _read_notes(root).get("version", ""), code_version()
    if () < _parse_version(wrote) < _OLDEST:
        raise InputError(root, f"was written by highwater {wrote}, and lakes of 0.5 and older are not read", REBUILD)
    if _parse_version(wrote) > _parse_version(runs) > ():
        problem = f"was written by highwater {wrote}, and this is {runs}"
        raise InputError(root, problem, f"use version {wrote} or a later one, or another --lake")


def is_noted(root: Place) -> bool:
    """Return True if the lake has a marker file with the version that wrote it."""
    return bool(_read_notes(root))


def read_declarations_hash(root: Place) -> str | None:
    """Return the hash of the table declarations of the version that last wrote the lake. None if unknown."""
    return _read_notes(root).get("tables")


def note_program(root: Place, declarations: str) -> None:
    """Write the marker file with this version.

    Args:
        declarations: hash of the table declarations.
    """
    now, folder = {"version": code_version(), "tables": declarations}, root / _PLACE[0]
    if _read_notes(root) != now:
        store_of(root).make_folder(folder)
        store_of(root).replace(folder / _PLACE[1], orjson.dumps(now))


def _read_notes(root: Place) -> dict[str, str]:
    file, store = root / _PLACE[0] / _PLACE[1], store_of(root)
    if not store.is_file(file):
        return {}
    try:
        noted = orjson.loads(store.read(file))
    except orjson.JSONDecodeError:
        noted = None
    if not isinstance(noted, dict) or not all(isinstance(value, str) for value in noted.values()):
        raise InputError(file, "does not say which version wrote the lake", "remove it: the tables are looked at then")
    return noted


def _parse_version(version: str) -> tuple[int, ...]:
    """Return a version as a tuple of numbers. Empty if it is not a release version."""
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()
