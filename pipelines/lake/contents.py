"""What of a lake's folder is the lake's: tables that are declared, reached without a link. All else is named and left.

A lake may lie where others write, or have been made by others. So the names of folders say nothing: a table is one of
`schemas.catalog`, in its place. No name that is read off a disk becomes part of a statement, or of a path that is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from pipelines.base.errors import HighwaterError, InputError
from pipelines.lake.commits import commits_back
from pipelines.lake.delta_log import LAYERS, read_log, table_version
from pipelines.lake.lock import LOCK_NAME
from pipelines.lake.program import FOLDER, is_noted
from pipelines.storage.place import STAGING, Place, Uri, resolved
from pipelines.storage.store import store_of
from schemas.catalog import BY_FULL_NAME

#: What lies in a lake's folder beside its layers, and in a table's beside its files. Versions up to 0.5 had two locks.
_OF_LAKE: Final = (FOLDER, STAGING, LOCK_NAME, ".writer-jvm.lock")
_OF_TABLE: Final = ("_delta_log", "_change_data")
_NAMED_MAX: Final = 5
_NAME_CHARS_MAX: Final = 60


class Contents(NamedTuple):
    """What lies in a lake's folder."""

    #: folder of every table by full name, in the order of the layers, then of names; whether there is a table in it
    #: nobody has looked
    folders: Mapping[str, Place]
    #: places of the lake's that are links, by their way down from its folder; their tables are none of `folders`
    links: tuple[str, ...]
    others: tuple[str, ...]  #: what is not the lake's, as it is named to people


def contents_of(root: Place) -> Contents:
    """Look at a lake's folder; nothing in it is opened."""
    by_layer, seen = _names_by_layer(), _Seen(root)
    top = seen.names("", {*_OF_LAKE, *by_layer})
    if FOLDER in top:
        seen.links_in(FOLDER, lambda _: True)
    folders = {}
    for layer in (layer for layer in by_layer if layer in top):
        for name in seen.names(f"{layer}/", by_layer[layer]):
            way = f"{layer}/{name}"
            # Of its other files its log tells: killed writes leave some that it does not name.
            is_whole = not seen.links_in(way, _OF_TABLE.__contains__)
            is_whole = is_whole and not seen.links_in(f"{way}/_delta_log", lambda _: True)
            if is_whole:
                folders[f"{layer}.{name}"] = root / layer / name
    return Contents(folders, tuple(seen.links), tuple(seen.others))


class _Seen:
    """What has been seen of a lake's folder.

    Attributes:
        links, others: as `Contents` has them.
    """

    def __init__(self, root: Place) -> None:
        self._root = root
        self._store = store_of(root)
        self.links: list[str] = []
        self.others: list[str] = []

    def names(self, way: str, of_lake: Collection[str]) -> list[str]:
        """Of the names in a folder those that are the lake's, and no links."""
        folder = self._place(way)
        linked, names = self._store.links(folder), []
        for name in sorted(self._store.names(folder)):
            if name in linked:
                self._see_link(way + name, name in of_lake)
            elif name in of_lake:
                names.append(name)
            else:
                self.others.append(way + name)
        return names

    def links_in(self, way: str, is_lakes: Callable[[str], bool]) -> bool:
        """Whether a link stands in a folder where something of the lake's has its place."""
        linked = sorted(self._store.links(self._place(way)))
        for name in linked:
            self._see_link(f"{way}/{name}", is_lakes(name))
        return any(map(is_lakes, linked))

    def _see_link(self, way: str, is_lakes: bool) -> None:
        self.others.append(f"{way} (a link)")
        if is_lakes:
            self.links.append(way)

    def _place(self, way: str) -> Place:
        place = self._root
        for part in filter(None, way.split("/")):
            place = place / part
        return place


def _names_by_layer() -> dict[str, list[str]]:
    """Names of tables by layer, in the order of the layers."""
    by_layer: dict[str, list[str]] = {layer: [] for layer in LAYERS}
    for full_name in BY_FULL_NAME:
        layer, _, name = full_name.partition(".")
        by_layer.setdefault(layer, []).append(name)
    return by_layer


def find_tables(root: Place) -> dict[str, Place]:
    """Folder of every table of a lake by full name, in the order of the layers, then of names."""
    return {name: folder for name, folder in contents_of(root).folders.items() if table_version(folder) is not None}


@contextmanager
def removed_if_unread(root: Place) -> Iterator[None]:
    """Where the block makes a lake in an empty folder, and fails before any file is read into it, it is gone again.

    Only who holds the writer's lock may ask for this.
    """
    is_new = isinstance(root, Path) and {*store_of(root).names(root)} <= {LOCK_NAME}
    try:
        yield
    except BaseException:
        # What is wrong with the lake itself must not hide what went wrong in the block.
        with suppress(HighwaterError, OSError):
            bronze = [folder for name, folder in find_tables(root).items() if name.startswith("bronze.")]
            if is_new and all(read_log(folder).rows == 0 for folder in bronze):
                for name in (*_names_by_layer(), *_OF_LAKE):
                    store_of(root).remove_tree(resolved(root) / name)
                store_of(root).remove(resolved(root) / LOCK_NAME)
        raise


def named_others(contents: Contents) -> str | None:
    """One line for people of what is left alone; None where there is nothing of the kind."""
    others = [_shown(other) for other in contents.others]
    if not others:
        return None
    more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
    return f"left alone, since no table of a lake: {', '.join(others[:_NAMED_MAX])}{more}"


def _shown(name: str) -> str:
    """A name as a terminal may show it."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in name)
    return plain if len(plain) <= _NAME_CHARS_MAX else plain[:_NAME_CHARS_MAX] + "…"


def require_no_links(root: Place) -> None:
    """Refuse a lake of which a place is a link: what is written or read there would be elsewhere.

    Raises:
        InputError: one is.
    """
    if isinstance(root, Uri):
        return  # stores have none
    links = contents_of(resolved(root)).links
    if links:
        raise link_in(root, links[0])


def link_in(root: Place, way: str) -> InputError:
    """A place of the lake's is a link."""
    remedy = "put the folder or file itself there, or remove the link"
    return InputError(f"{root}/{_shown(way)}", "is a link, and a lake has none", remedy)


def require_own(root: Place) -> None:
    """Refuse to write, or to look after, tables that other programs made: those of a lake are marked.

    The mark is what `pipelines.lake.program` leaves; lakes without it have tables whose first commits are highwater's.

    Raises:
        InputError: there are tables in places of a lake's, and no mark.
    """
    if is_noted(root):
        return
    tables = find_tables(root)
    if not tables or any(_is_made_here(folder) for folder in tables.values()):
        return
    problem = f"is no lake of highwater: others made its tables ({', '.join(list(tables)[:_NAMED_MAX])})"
    raise InputError(root, problem, "choose another folder with --lake")


def _is_made_here(table: Place) -> bool:
    *_, first = commits_back(table)
    return "highwater" in first.programs
