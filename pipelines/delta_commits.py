"""Commits that the driver writes itself: files that are there already become a version of a table.

Delta's PROTOCOL.md: a version is one file of actions, put into place whole or not at all, and never over another one.
The files' rows have been asked what Delta would have asked of them (`pipelines.table_files`).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from deltalake import DeltaTable

from pipelines.delta_log import read_log, table_version
from pipelines.table_files import AddedFile

Actions = list[dict[str, Any]]
#: As often as Delta's own writer: a log is read from its last checkpoint on.
_CHECKPOINT_EVERY = 10


def put(log: Path, name: str, content: str) -> bool:
    """Put a file of a log in place; False if another writer has put one there.

    Raises:
        OSError: it cannot be written.
    """
    with tempfile.NamedTemporaryFile("w", dir=log, prefix=".", encoding="utf-8") as written:
        written.write(content)
        written.flush()
        os.fsync(written.fileno())
        try:
            os.link(written.name, log / name)
        except FileExistsError:
            return False
    return True


def append(folder: Path, files: Sequence[AddedFile], stamp: str | None) -> int:
    """Add files to a table.

    Returns:
        The table's Delta version then.
    """
    return _commit(folder, lambda _: ("Append", [file.action() for file in files]), files, stamp)


def replace(folder: Path, files: Sequence[AddedFile], stamp: str | None) -> int:
    """Make a table consist of files; none: of no rows. The change feed has the rows of the old ones as deleted.

    Returns:
        The table's Delta version then.
    """

    def actions(now_ms: int) -> tuple[str, Actions]:
        return "Overwrite", [*_removals(folder, now_ms), *(file.action() for file in files)]

    return _commit(folder, actions, files, stamp)


def _removals(folder: Path, now_ms: int) -> Iterable[dict[str, Any]]:
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
    folder: Path, make: Callable[[int], tuple[str, Actions]], files: Sequence[AddedFile], stamp: str | None
) -> int:
    log = folder / "_delta_log"
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
        }
        if stamp is not None:
            info["userMetadata"] = stamp
        content = "".join(orjson.dumps(action).decode() + "\n" for action in [{"commitInfo": info}, *actions])
        if put(log, f"{before + 1:020}.json", content):
            if (before + 1) % _CHECKPOINT_EVERY == 0:
                DeltaTable(str(folder)).create_checkpoint()
            return before + 1
