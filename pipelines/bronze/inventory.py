"""Files that need not be opened again, because they have not changed since a run read them. Pure.

A file is identified by its path, its size and its modification time, which a file system or a store returns without
opening it. If one of them differs or was not recorded, the file is hashed. A file that was modified just before it was
read is hashed as well, since a later change may leave its time unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from highwater.pipelines.storage.place import place_of
from highwater.pipelines.storage.store import store_of

#: Clocks of machines differ, and stores report whole seconds.
SETTLED_US = 10_000_000


class Stat(NamedTuple):
    """Size and modification time of a file, read without opening it. Times are microseconds since the epoch."""

    size_bytes: int
    modified_us: int


class ReadLog(NamedTuple):
    """A log at the time when it was read; a row of ``state.inventory``."""

    path: str  #: of the file
    name: str  #: of the log: of a member of a bundle ``BUNDLE!/MEMBER``, else the path
    size_bytes: int
    modified_us: int
    file_id: str  #: of its content
    looked_us: int  #: when the file's size and time were asked for
    patterns: str = ""  #: patterns that selected the logs of a bundle; empty for a file that is not a bundle


def stat(path: str) -> Stat | None:
    """Return the size and time of a file. None if the file is gone."""
    store, place = store_of(path), place_of(path)
    try:
        return Stat(store.size_bytes(place), round(store.modified_ms(place) * 1000))
    except OSError:
        return None


def unchanged(
    stats: Mapping[str, Stat | None], entries: Iterable[ReadLog], registered: Mapping[str, str], patterns: str = ""
) -> dict[str, list[tuple[str, str]]]:
    """Return by path the (log name, stored hash) of logs in files that have not changed.

    Args:
        stats: current size and time of the files.
        registered: stored hash by content id. A bundle is unchanged only if all its logs are registered.
        patterns: patterns that select members of bundles. Entries made with other patterns are not used.
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
        stats: size and time of files before they were read.
        logs: (log name, content id) of the logs read in each file. Files that were not read completely are missing.
        looked_us: time of the run, us.
    """
    unread = [entry for entry in entries if entry.path not in logs]
    new = [
        ReadLog(path, name, *stamp, file_id, looked_us, "" if name == path else patterns)
        for path, contents in logs.items()
        if (stamp := stats.get(path)) is not None
        for name, file_id in contents
    ]
    return sorted([*unread, *new])
