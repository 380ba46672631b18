"""Commits that the driver writes itself: files that are there already become a version of a table.

Delta's PROTOCOL.md: a version is one file of actions, put into place whole or not at all, and never over another one.
The files' rows have been asked what Delta would have asked of them (`pipelines.table_files`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
from deltalake import DeltaTable

from pipelines.delta_log import read_log, table_version
from pipelines.errors import LakeError
from pipelines.storage.place import Place, Uri
from pipelines.storage.store import store_of
from pipelines.table_files import AddedFile

Actions = list[dict[str, Any]]
#: As often as Delta's own writer: a log is read from its last checkpoint on.
_CHECKPOINT_EVERY = 10


#: Called before each commit; raises where this process may not write the lake any more.
Fence = Callable[[], None]


def no_fence() -> None:
    """Let every commit through: on a local disk the kernel's lock is held as long as the process lives."""


def append(folder: Place, files: Sequence[AddedFile], stamp: str | None, fence: Fence = no_fence) -> int:
    """Add files to a table.

    Returns:
        The table's Delta version then.
    """
    return _commit(folder, lambda _: ("Append", [file.action() for file in files]), files, stamp, fence)


def replace(
    folder: Place,
    files: Sequence[AddedFile],
    stamp: str | None,
    fence: Fence = no_fence,
    staying: Collection[str] = (),
    changes: Actions | None = None,
) -> int:
    """Make a table consist of files; none: of no rows.

    Args:
        staying: files of the table that stay, by their paths in its folder.
        changes: what its change feed has of it (`pipelines.changes`); None: old rows as deleted, new as inserted.

    Returns:
        The table's Delta version then.
    """

    def actions(now_ms: int) -> tuple[str, Actions]:
        removed = _removals(folder, now_ms, staying)
        return "Overwrite", [*removed, *(file.action() for file in files), *(changes or ())]

    # As Delta says that some rows were replaced, and not all.
    return _commit(folder, actions, files, stamp, fence, {"predicate": "of some rows"} if staying else {})


def stay(folder: Place, stamp: str | None, fence: Fence = no_fence) -> int:
    """Say by a commit that a table was looked at and is as it was; gives its Delta version then."""
    return _commit(folder, lambda _: ("Overwrite", []), (), stamp, fence, {"predicate": "of changed rows"})


def drop(
    folder: Place, staying: Collection[str], files: Sequence[AddedFile], fence: Fence, changes: Actions | None = None
) -> None:
    """Drop rows of a table: it consists of files that it has, and of some that were written of the rest of others.

    Args:
        staying: files of the table that stay, by their paths in its folder.
        changes: actions that name files of changed rows, where files are not what the feed is to tell.

    Raises:
        LakeError: another process has written the table meanwhile.
    """
    now_ms, version = time.time_ns() // 1_000_000, table_version(folder) or 0
    info = {
        "timestamp": now_ms,
        "operation": "DELETE",
        "operationParameters": {"predicate": "expired"},
        "readVersion": version,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {"numAddedFiles": str(len(files))},
        "engineInfo": "highwater",
        "txnId": str(uuid4()),
    }
    actions = [*_removals(folder, now_ms, staying), *(file.action() for file in files), *(changes or ())]
    commit_actions(folder, version + 1, [{"commitInfo": info}, *actions], fence)


def gather(folder: Place, version: int, gathered: Collection[str], files: Sequence[AddedFile], fence: Fence) -> None:
    """Have the rows of some files in others; no row changes.

    Args:
        version: the table's Delta version that the files are of.
        gathered: by their paths in its folder.

    Raises:
        LakeError: another process has written the table meanwhile.
    """
    now_ms = time.time_ns() // 1_000_000
    info = {
        "timestamp": now_ms,
        "operation": "OPTIMIZE",
        "operationParameters": {"predicate": "[]"},
        "readVersion": version,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "operationMetrics": {"numRemovedFiles": str(len(gathered)), "numAddedFiles": str(len(files))},
        "engineInfo": "highwater",
        "txnId": str(uuid4()),
    }
    staying = {file.path for file in read_log(folder, version).files} - set(gathered)
    actions = [*_removals(folder, now_ms, staying), *(file.action() for file in files)]
    for action in actions:
        ((_, content),) = action.items()
        content["dataChange"] = False
    commit_actions(folder, version + 1, [{"commitInfo": info}, *actions], fence)


def alter(
    folder: Place,
    version: int,
    actions: Actions,
    why: str,
    fence: Fence,
    rows_too: bool = False,
    stamp: str | None = None,
) -> None:
    """Give a table other columns, constraints or properties.

    Args:
        version: the table's Delta version, which the actions were made for.
        actions: ``metaData``, and what belongs to it.
        why: kept in Delta's history.
        rows_too: the table's rows go, since they are not as the new columns say.

    Raises:
        LakeError: another process has written the table meanwhile.
    """
    now_ms = time.time_ns() // 1_000_000
    info: dict[str, Any] = {
        "timestamp": now_ms,
        "operation": "UPGRADE SCHEMA",
        "operationParameters": {"changes": why},
        "readVersion": version,
        "isolationLevel": "Serializable",
        "isBlindAppend": not rows_too,
        "operationMetrics": {},
        "engineInfo": "highwater",
        "txnId": str(uuid4()),
    }
    if stamp is not None:
        info["userMetadata"] = stamp
    removals = _removals(folder, now_ms, ()) if rows_too else ()
    commit_actions(folder, version + 1, [{"commitInfo": info}, *actions, *removals], fence)


def _removals(folder: Place, now_ms: int, staying: Collection[str]) -> Iterable[dict[str, Any]]:
    for file in read_log(folder).files:
        if file.path in staying:
            continue
        yield {
            "remove": {
                "path": quote(file.path),
                "deletionTimestamp": now_ms,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": {},
                "size": file.size_bytes,
            }
        }


def _commit(
    folder: Place,
    make: Callable[[int], tuple[str, Actions]],
    files: Sequence[AddedFile],
    stamp: str | None,
    fence: Fence,
    parameters: Mapping[str, str] = MappingProxyType({}),
) -> int:
    log, store = folder / "_delta_log", store_of(folder)
    while True:
        before = table_version(folder) or 0
        now_ms = time.time_ns() // 1_000_000
        mode, actions = make(now_ms)
        info = {
            "timestamp": now_ms,
            "operation": "WRITE",
            "operationParameters": {"mode": mode, "partitionBy": "[]", **parameters},
            "readVersion": before,
            "isolationLevel": "Serializable",
            "isBlindAppend": mode == "Append",
            "operationMetrics": {
                "numFiles": str(len(files)),
                "numOutputRows": str(sum(file.row_count for file in files)),
                "numOutputBytes": str(sum(file.size_bytes for file in files)),
            },
            "engineInfo": "highwater",
            # No two commits are equal: a store is asked whether the one that is there is ours.
            "txnId": str(uuid4()),
        }
        if stamp is not None:
            info["userMetadata"] = stamp
        fence()
        if store.create(log / f"{before + 1:020}.json", lines_of([{"commitInfo": info}, *actions])):
            _checkpoint(folder, before + 1)
            return before + 1


def commit_actions(folder: Place, version: int, actions: Actions, fence: Fence) -> None:
    """Make actions, the first of them a ``commitInfo``, a version of a table.

    Raises:
        LakeError: there is such a version already.
    """
    fence()
    if not store_of(folder).create(folder / "_delta_log" / f"{version:020}.json", lines_of(actions)):
        raise LakeError(f"{folder}: version {version} was written by another process")
    _checkpoint(folder, version)


def lines_of(actions: Actions) -> bytes:
    """Actions as a commit has them."""
    return b"".join(orjson.dumps(action) + b"\n" for action in actions)


def _checkpoint(folder: Place, version: int) -> None:
    if version % _CHECKPOINT_EVERY == 0:
        _opened(folder).create_checkpoint()


def _opened(folder: Place) -> DeltaTable:
    if not isinstance(folder, Uri):
        return DeltaTable(str(folder))
    # Only where there is a URI is its library imported. Unlike a place, a URI is escaped.
    from pipelines.storage.objects import client_settings

    return DeltaTable(quote(str(folder), safe="/:@"), storage_options=client_settings(folder.scheme))
