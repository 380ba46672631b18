"""Files that need not be opened again: those that are as they were when a run read them. Pure.

A file is known by its path, its size and the time of its last change, as a file system or a store tells them without
opening it. Where one of them differs, or nobody noted them, the file is hashed; so is one that was changed so shortly
before it was read that a later change need not have moved its time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from highwater.pipelines.storage.place import place_of
from highwater.pipelines.storage.store import store_of

#: Clocks of machines differ, and stores tell whole seconds.
SETTLED_US = 10_000_000


class Stat(NamedTuple):
    """What is told of a file without opening it; instants in microseconds since the epoch."""

    size_bytes: int
    modified_us: int


class ReadLog(NamedTuple):
    """A log as it was when it was read; a row of ``state.inventory``."""

    path: str  #: of the file
    name: str  #: of the log: of a member of a bundle ``BUNDLE!/MEMBER``, else the path
    size_bytes: int
    modified_us: int
    file_id: str  #: of its content
    looked_us: int  #: when the file's size and time were asked for
    patterns: str = ""  #: by which members of a bundle were taken for logs; empty for a file that is no bundle


def stat(path: str) -> Stat | None:
    """Return the size and time of a file; None if it is gone."""
    store, place = store_of(path), place_of(path)
    try:
        return Stat(store.size_bytes(place), round(store.modified_ms(place) * 1000))
    except OSError:
        return None


def unchanged(
    stats: Mapping[str, Stat | None], entries: Iterable[ReadLog], registered: Mapping[str, str], patterns: str = ""
) -> dict[str, list[tuple[str, str]]]:
    """Return files that are as they were: name of each log in them, with the hash by which the register has it.

    Args:
        stats: of the files at hand.
        registered: hash as stored by content id. A bundle is as it was only if the register has all of its logs.
        patterns: by which members of bundles are taken for logs now; with others a bundle may have other logs.
    """
    by_path: dict[str, list[ReadLog]] = defaultdict(list)
    for entry in entries:
        by_path[entry.path].append(entry)
    return {
        path: [(entry.name, registered[entry.file_id]) for entry in sorted(by_path[path])]
        for path, now in stats.items()
        if path in by_path
        and all(
            _is_same(entry, now) and entry.file_id in registered and entry.patterns in ("", patterns)
            for entry in by_path[path]
        )
    }


def _is_same(entry: ReadLog, now: Stat | None) -> bool:
    is_settled = entry.looked_us - entry.modified_us >= SETTLED_US
    return is_settled and now is not None and (entry.size_bytes, entry.modified_us) == now


def updated(
    entries: Iterable[ReadLog],
    stats: Mapping[str, Stat | None],
    logs: Mapping[str, Sequence[tuple[str, str]]],
    looked_us: int,
    patterns: str = "",
) -> list[ReadLog]:
    """Return the entries after a run.

    Args:
        stats: of files as they were before they were read.
        logs: name and content id of what was read in each file; files that could not be read wholly are missing.
    """
    unread = [entry for entry in entries if entry.path not in logs]
    new = [
        ReadLog(path, name, *stamp, file_id, looked_us, "" if name == path else patterns)
        for path, contents in logs.items()
        if (stamp := stats.get(path)) is not None
        for name, file_id in contents
    ]
    return sorted([*unread, *new])
