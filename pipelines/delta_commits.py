"""Commits that the driver writes itself: files that are there already become a version of a table.

Delta's PROTOCOL.md: a version is one file of actions, put into place whole or not at all, and never over another one.
The files' rows have been asked what Delta would have asked of them (`pipelines.table_files`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
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


def replace(folder: Place, files: Sequence[AddedFile], stamp: str | None, fence: Fence = no_fence) -> int:
    """Make a table consist of files; none: of no rows. The change feed has the rows of the old ones as deleted.

    Returns:
        The table's Delta version then.
    """

    def actions(now_ms: int) -> tuple[str, Actions]:
        return "Overwrite", [*_removals(folder, now_ms), *(file.action() for file in files)]

    return _commit(folder, actions, files, stamp, fence)


def _removals(folder: Place, now_ms: int) -> Iterable[dict[str, Any]]:
    for file in read_log(folder).files:
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
) -> int:
    log, store = folder / "_delta_log", store_of(folder)
    while True:
        before = table_version(folder) or 0
        now_ms = time.time_ns() // 1_000_000
        mode, actions = make(now_ms)
        info = {
            "timestamp": now_ms,
            "operation": "WRITE",
            "operationParameters": {"mode": mode, "partitionBy": "[]"},
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
