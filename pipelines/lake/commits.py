"""Commits of a table: their stamp (of a batch or an audit), and the files that they added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final, NamedTuple

import orjson

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.delta_log import list_commits, resolve_path
from highwater.pipelines.storage.place import Place, Uri
from highwater.pipelines.storage.store import store_of

#: Every audit writes it, with its id as the commit's stamp.
WRITTEN_BY_ALL: Final = "gold.rule_results"


class Commit(NamedTuple):
    """One commit of a table."""

    version: int
    time_ms: int | None  #: when it was made, Unix time in milliseconds
    stamp: str | None  #: its ``userMetadata``
    program: str | None  #: ``clientVersion`` of the program that made it
    added: Mapping[str, int]  #: files whose rows no version before it had: path in the table, size in bytes
    removed: frozenset[str]  #: files that later versions do not have
    removes_rows: bool  #: some of them not because they were compacted


def read_commits(table: Place) -> Iterator[Commit]:
    """Yield the commits in a table's log, newest first.

    Raises:
        InputError: a commit is not in Delta's format.
        ForeignTable: a commit names files outside the table's folder.
    """
    for version, file in sorted(list_commits(table / "_delta_log").items(), reverse=True):
        yield _commit(table, version, file)


def _commit(table: Place, version: int, file: Place) -> Commit:
    said: dict[str, Any] = {}
    added: dict[str, int] = {}
    removed: set[str] = set()
    removes_rows = False
    for line in _content(file).splitlines():
        kind, action = _parse_action(line, file)
        if kind == "commitInfo":
            said |= action
        elif kind == "add" and action.get("dataChange", True):
            added[resolve_path(action["path"], table)] = action["size"]
        elif kind == "remove":
            removed.add(resolve_path(action["path"], table))
            removes_rows = removes_rows or action.get("dataChange", True)
    stamp = None if "userMetadata" not in said else str(said["userMetadata"])
    return Commit(
        version, said.get("timestamp"), stamp, said.get("clientVersion"), added, frozenset(removed), removes_rows
    )


def _parse_action(line: bytes, file: Place) -> tuple[str, dict[str, Any]]:
    try:
        ((kind, action),) = orjson.loads(line).items()
        return kind, dict(action)
    except (AttributeError, TypeError, ValueError):
        raise InputError(file, "is not a commit of Delta", "restore it, or remove the table") from None


def _content(file: Place) -> bytes:
    return _content_in_store(file) if isinstance(file, Uri) else store_of(file).read(file)


@lru_cache(maxsize=4096)
def _content_in_store(file: Uri) -> bytes:
    """Return the content of a commit file in an object store, cached: commits never change."""
    return store_of(file).read(file)


def read_stamps(table: Place) -> Iterator[tuple[int, str]]:
    """Yield (Delta version, commit tag), newest first. Commits without a tag are skipped."""
    return ((commit.version, commit.stamp) for commit in read_commits(table) if commit.stamp is not None)


def find_unsettled_files(table: Place, settled: Callable[[str], bool]) -> list[tuple[str, int]] | None:
    """Return (path, size in bytes) of the files added since the newest commit that the caller has processed.

    None if the log does not show it: files were rewritten since, or the log does not reach back that far.

    Args:
        settled: returns True for the tag of a commit that is processed, and with it all earlier ones.
    """
    added: list[tuple[str, int]] = []
    gathered: set[str] = set()
    is_rewritten = False
    for commit in read_commits(table):
        if commit.stamp is not None:
            batch_id, *_ = commit.stamp.split(" ")
            if settled(batch_id):
                return added
        is_rewritten = is_rewritten or commit.removes_rows
        # What has been gathered in another file since was added before.
        gathered |= commit.removed
        if commit.added and (is_rewritten or not gathered.isdisjoint(commit.added)):
            return None
        added += commit.added.items()
        if commit.version == 0:
            return added
    return None


def find_added_files(table: Place, version: int) -> list[tuple[str, int]] | None:
    """Return (path, size in bytes) of the files added after a version.

    None if the log does not show it: rows were removed or added files rewritten since, or the log does not reach back
    that far.
    """
    later = [*takewhile(lambda commit: commit.version > version, read_commits(table))]
    later.reverse()
    if [commit.version for commit in later] != [*range(version + 1, version + 1 + len(later))]:
        return None
    added: dict[str, int] = {}
    for commit in later:
        if commit.removes_rows or not commit.removed.isdisjoint(added):
            return None
        added |= commit.added
    return list(added.items())


def find_run_versions(root: Place, tables: Mapping[str, Place], run_id: str) -> dict[str, int]:
    """Return by table its version at the end of the audit whose id starts with `run_id`.

    A table that the audit did not write has its version of that time.

    Raises:
        InputError: no audit, or several, have this prefix.
    """
    known = {name: list(read_commits(path)) for name, path in tables.items()}
    stamps = list(dict.fromkeys(commit.stamp for commit in known.get(WRITTEN_BY_ALL, ()) if commit.stamp is not None))
    fitting = [stamp for stamp in stamps if stamp.startswith(run_id)]
    if len(fitting) != 1:
        problem = f"has {len(fitting) or 'no'} audit{'s' if len(fitting) > 1 else ''} whose id begins with {run_id}"
        raise InputError(root, problem, f"name one of {', '.join(stamp[:12] for stamp in stamps) or 'another lake'}")
    of_run = [commit for of_table in known.values() for commit in of_table if commit.stamp == fitting[0]]
    end_ms = max(commit.time_ms or 0 for commit in of_run)
    versions = {}
    for name, of_table in known.items():
        written = [commit.version for commit in of_table if commit.stamp == fitting[0]]
        before = [commit.version for commit in of_table if (commit.time_ms or 0) <= end_ms]
        if written or before:
            versions[name] = max(written or before)
    return versions
