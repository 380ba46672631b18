"""Contents of a lake's folder: declared tables, reached without a link. Other entries are named and not touched.

Other programs may write the folder of a lake, or may have made it. So a table is one that `schemas.catalog` declares,
in its place. A name read from a disk never becomes part of a statement, or of a path that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from highwater.pipelines.base.errors import HighwaterError, InputError
from highwater.pipelines.lake.commits import read_commits
from highwater.pipelines.lake.delta_log import LAYERS, find_version, read_log
from highwater.pipelines.lake.lock import LOCK_NAME
from highwater.pipelines.lake.program import FOLDER, is_noted
from highwater.pipelines.storage.place import STAGING, Place, Uri, resolved
from highwater.pipelines.storage.store import store_of
from highwater.schemas.catalog import BY_FULL_NAME

#: Entries of a lake's folder besides its layers, and of a table's besides its files.
_OF_LAKE: Final = (FOLDER, STAGING, LOCK_NAME)
_OF_TABLE: Final = ("_delta_log", "_change_data")
_NAMED_MAX: Final = 5
_NAME_CHARS_MAX: Final = 60


class Contents(NamedTuple):
    """Entries of a lake's folder."""

    #: folder of every table by full name, in the order of the layers, then of names; whether there is a table in it
    #: no one has looked
    folders: Mapping[str, Place]
    #: What the lake's places are that are neither folder nor regular file ("a link"), by path relative to the root.
    #: Their tables are not in `folders`.
    odd: Mapping[str, str]
    others: tuple[str, ...]  #: what is not the lake's, as it is named to people


def list_contents(root: Place) -> Contents:
    """Return the contents of a lake's folder, without opening a file."""
    by_layer, seen = _group_names(), _Seen(root)
    top = seen.names("", {*_OF_LAKE, *by_layer})
    if FOLDER in top:
        seen.has_odd(FOLDER, lambda _: True)
    folders = {}
    for layer in (layer for layer in by_layer if layer in top):
        for name in seen.names(f"{layer}/", by_layer[layer]):
            way = f"{layer}/{name}"
            # Other files of the table are left to its log: killed writes leave files that it does not name.
            is_whole = not seen.has_odd(way, _OF_TABLE.__contains__)
            is_whole = is_whole and not seen.has_odd(f"{way}/_delta_log", lambda _: True)
            if is_whole:
                folders[f"{layer}.{name}"] = root / layer / name
    return Contents(folders, seen.odd, tuple(seen.others))


class _Seen:
    """Collects the entries of a lake's folder.

    Attributes:
        odd, others: as in `Contents`.
    """

    def __init__(self, root: Place) -> None:
        self._root = root
        self._store = store_of(root)
        self.odd: dict[str, str] = {}
        self.others: list[str] = []

    def names(self, way: str, of_lake: Collection[str]) -> list[str]:
        """Return the known names in folder `way`. Links, FIFOs and devices go to `odd`, unknown names to `others`."""
        folder = self._place(way)
        odd, names = self._store.find_odd_entries(folder), []
        for name in sorted(self._store.names(folder)):
            if name in odd:
                self._add_odd(way + name, odd[name], name in of_lake)
            elif name in of_lake:
                names.append(name)
            else:
                self.others.append(way + name)
        return names

    def has_odd(self, way: str, is_lakes: Callable[[str], bool]) -> bool:
        """Return True if a link, FIFO or device in folder `way` has a name that belongs to the lake."""
        odd = self._store.find_odd_entries(self._place(way))
        for name in sorted(odd):
            self._add_odd(f"{way}/{name}", odd[name], is_lakes(name))
        return any(map(is_lakes, odd))

    def _add_odd(self, way: str, kind: str, is_lakes: bool) -> None:
        self.others.append(f"{way} ({kind})")
        if is_lakes:
            self.odd[way] = kind

    def _place(self, way: str) -> Place:
        place = self._root
        for part in filter(None, way.split("/")):
            place = place / part
        return place


def _group_names() -> dict[str, list[str]]:
    """Return names of tables by layer, in the order of the layers."""
    by_layer: dict[str, list[str]] = {layer: [] for layer in LAYERS}
    for full_name in BY_FULL_NAME:
        layer, _, name = full_name.partition(".")
        by_layer.setdefault(layer, []).append(name)
    return by_layer


def find_tables(root: Place) -> dict[str, Place]:
    """Return the folder of every table of a lake by full name, in the order of layers and names."""
    return {name: folder for name, folder in list_contents(root).folders.items() if find_version(folder) is not None}


@contextmanager
def remove_if_unread(root: Place) -> Iterator[None]:
    """Remove a lake that the block created in an empty folder, if the block fails before a file was read.

    The caller must hold the writer's lock.
    """
    is_new = isinstance(root, Path) and {*store_of(root).names(root)} <= {LOCK_NAME}
    try:
        yield
    except BaseException:
        # What is wrong with the lake itself must not hide what went wrong in the block.
        with suppress(HighwaterError, OSError):
            bronze = [folder for name, folder in find_tables(root).items() if name.startswith("bronze.")]
            if is_new and all(read_log(folder).rows == 0 for folder in bronze):
                for name in (*_group_names(), *_OF_LAKE):
                    store_of(root).remove_tree(resolved(root) / name)
                store_of(root).remove(resolved(root) / LOCK_NAME)
        raise


def name_others(contents: Contents) -> str | None:
    """Return one line that lists foreign entries of the lake's folder. None without any."""
    others = [_escape_name(other) for other in contents.others]
    if not others:
        return None
    more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
    return f"left alone, since no table of a lake: {', '.join(others[:_NAMED_MAX])}{more}"


def _escape_name(name: str) -> str:
    """Return a name that is safe for a terminal."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)
    return plain if len(plain) <= _NAME_CHARS_MAX else plain[:_NAME_CHARS_MAX] + "…"


def require_regular(root: Place) -> None:
    """Raise an error if a link, FIFO or device is in place of a lake's file: it leads elsewhere, or blocks.

    Raises:
        InputError: names the entry.
    """
    if isinstance(root, Uri):
        return  # stores have none
    for way, kind in list_contents(resolved(root)).odd.items():
        raise refuse_odd_place(root, way, kind)


def refuse_odd_place(root: Place, way: str, kind: str) -> InputError:
    """Return the error for an entry of the lake that is neither folder nor regular file."""
    remedy = f"put the folder or file itself there, or remove {kind.replace('a ', 'the ', 1)}"
    return InputError(f"{root}/{_escape_name(way)}", f"is {kind}, and a lake has none", remedy)


def require_own(root: Place) -> None:
    """Raise an error if other programs created the tables here. Own lakes have a marker file.

    The marker is written by `pipelines.lake.program`. In older lakes the tables' first commits name highwater.

    Raises:
        InputError: there are tables with a lake's names, and no marker.
    """
    if is_noted(root):
        return
    tables = find_tables(root)
    if not tables or any(_is_made_here(folder) for folder in tables.values()):
        return
    problem = f"is not a lake of highwater: others made its tables ({', '.join(list(tables)[:_NAMED_MAX])})"
    raise InputError(root, problem, "choose another folder with --lake")


def _is_made_here(table: Place) -> bool:
    *_, first = read_commits(table)
    return first.program == "highwater"
