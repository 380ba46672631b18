"""Commits of the lake's tables, by deltalake on the driver: files that are there already become a version of a table.

A version is put into place whole or not at all, and never over another one, in a store as on a disk. The library asks
the rows of files nothing: who wrote them has (`pipelines.lake.table_files`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from pipelines.base.errors import LakeError, SchemaMismatch
from pipelines.lake.delta_log import CLUSTERING, DataFile, read_log, table_version
from pipelines.lake.table_files import AddedFile
from pipelines.storage.place import Place, Uri
from pipelines.storage.store import store_of

Actions = list[dict[str, Any]]
#: Called before each commit; raises where this process may not write the lake any more.
Fence = Callable[[], None]

#: What a commit says that the library would say of itself.
PROGRAM = {"clientVersion": "highwater"}
#: Logs stay: stamps and states of earlier runs are looked up in them.
_HOOKS = PostCommitHookProperties(cleanup_expired_logs=False)


def no_fence() -> None:
    """Let every commit through: on a local disk the kernel's lock is held as long as the process lives."""


def create(folder: Place, schema: str, comment: str, properties: Mapping[str, str], fence: Fence) -> None:
    """Put version 0 in place; another process may be the one that makes the table.

    Args:
        schema: Spark's JSON.

    Raises:
        OSError: the folder cannot be written.
    """
    fence()
    store_of(folder).make_folder(folder / "_delta_log")
    try:
        DeltaTable.create(
            _uri(folder),
            Schema.from_json(schema),
            description=comment,
            configuration=properties,
            storage_options=_options(folder),
            commit_properties=CommitProperties(custom_metadata=PROGRAM),
            raise_if_key_not_exists=False,
        )
    except DeltaError:
        if table_version(folder) is None:
            raise


def append(folder: Place, files: Sequence[AddedFile], stamp: str | None, fence: Fence = no_fence) -> int:
    """Add files to a table.

    Returns:
        The table's Delta version then.
    """
    return _commit(_writable(folder), folder, files, (), {"mode": "Append"}, stamp, fence)


def replace(
    folder: Place,
    files: Sequence[AddedFile],
    stamp: str | None,
    fence: Fence = no_fence,
    staying: Collection[str] = (),
) -> int:
    """Make a table consist of files; none: of no rows.

    Args:
        staying: files of the table that stay, by their paths in its folder.

    Returns:
        The table's Delta version then.

    Raises:
        LakeError: another process has written the table meanwhile.
    """
    table = _writable(folder)
    gone = [file for file in read_log(folder, table.version()).files if file.path not in staying]
    # As Delta says that some rows were replaced, and not all.
    parameters = {"mode": "Overwrite"} | ({"predicate": "of some rows"} if staying else {})
    return _commit(table, folder, files, gone, parameters, stamp, fence)


def stay(folder: Place, stamp: str | None, fence: Fence = no_fence) -> int:
    """Say by a commit that a table was looked at and is as it was; gives its Delta version then."""
    parameters = {"mode": "Overwrite", "predicate": "of changed rows"}
    return _commit(_writable(folder), folder, (), (), parameters, stamp, fence)


def drop(folder: Place, staying: Collection[str], files: Sequence[AddedFile], fence: Fence) -> None:
    """Drop rows of a table: it consists of files that it has, and of some that were written of the rest of others.

    Args:
        staying: files of the table that stay, by their paths in its folder.

    Raises:
        LakeError: another process has written the table meanwhile.
    """
    table = _writable(folder)
    gone = [file for file in read_log(folder, table.version()).files if file.path not in staying]
    _commit(table, folder, files, gone, {"mode": "Overwrite", "predicate": "expired"}, None, fence)


def replace_fed(
    folder: Place,
    files: Sequence[AddedFile],
    changes: Actions,
    stamp: str | None,
    fence: Fence,
    staying: Collection[str],
) -> int:
    """As `replace`, of a table whose change feed is to have some rows, and not all old as deleted and new as inserted.

    Args:
        changes: actions that name files of changed rows (`pipelines.lake.changes`).
    """
    table = _writable(folder)
    version, now_ms = table.version(), time.time_ns() // 1_000_000
    info = {"timestamp": now_ms, "operation": "MERGE", "operationParameters": {}, "txnId": str(uuid4()), **PROGRAM}
    gone = [file for file in read_log(folder, version).files if file.path not in staying]
    actions = [
        {"commitInfo": info if stamp is None else info | {"userMetadata": stamp}},
        *({"remove": _removal(file, now_ms)} for file in gone),
        *(file.action() for file in files),
        *changes,
    ]
    commit_actions(folder, version + 1, actions, fence)
    return version + 1


def gather(folder: Place, version: int, gathered: Collection[str], files: Sequence[AddedFile], fence: Fence) -> None:
    """Have the rows of some files in others; no row changes.

    Args:
        version: the table's Delta version that the files are of.
        gathered: by their paths in its folder.

    Raises:
        LakeError: another process has written the table meanwhile.
    """
    gone = [file for file in read_log(folder, version).files if file.path in gathered]
    _commit(_writable(folder, version), folder, files, gone, {"mode": "Append"}, None, fence, changes_rows=False)


def _commit(
    table: DeltaTable,
    folder: Place,
    files: Sequence[AddedFile],
    gone: Sequence[DataFile],
    parameters: Mapping[str, str],
    stamp: str | None,
    fence: Fence,
    changes_rows: bool = True,
) -> int:
    now_ms = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        *(AddAction(file.path, file.size_bytes, {}, file.modified_ms, changes_rows, file.stats) for file in files),
        *(RemoveAction(file.path, changes_rows, now_ms, file.size_bytes, {}) for file in gone),
    ]
    metadata = {**PROGRAM, "operationParameters": dict(parameters)} | ({} if stamp is None else {"userMetadata": stamp})
    # What was removed was looked up in one version: no other one may come between.
    properties = CommitProperties(metadata, max_commit_retries=0 if gone else None)
    fence()
    try:
        table.create_write_transaction(
            actions, "append", table.schema(), commit_properties=properties, post_commithook_properties=_HOOKS
        )
    except CommitFailedError as error:
        raise LakeError(f"{folder}: was written by another process meanwhile ({error})") from error
    return table_version(folder) or 0


def alter(
    folder: Place,
    version: int,
    actions: Actions,
    why: str,
    fence: Fence,
    rows_too: bool = False,
    stamp: str | None = None,
) -> None:
    """Give a table other columns, constraints or properties, in one commit: the library has one for each.

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
        "engineInfo": "highwater",
        "txnId": str(uuid4()),
    }
    if stamp is not None:
        info["userMetadata"] = stamp
    gone = read_log(folder, version).files if rows_too else ()
    removals = [{"remove": _removal(file, now_ms)} for file in gone]
    commit_actions(folder, version + 1, [{"commitInfo": info}, *actions, *removals], fence)


def _removal(file: DataFile, now_ms: int) -> dict[str, Any]:
    return {"path": quote(file.path), "deletionTimestamp": now_ms, "dataChange": True}


def commit_actions(folder: Place, version: int, actions: Actions, fence: Fence) -> None:
    """Make actions, the first of them a ``commitInfo``, a version of a table.

    Raises:
        LakeError: there is such a version already.
    """
    fence()
    if not store_of(folder).create(folder / "_delta_log" / f"{version:020}.json", lines_of(actions)):
        raise LakeError(f"{folder}: version {version} was written by another process")


def lines_of(actions: Actions) -> bytes:
    """Actions as a commit has them."""
    return b"".join(orjson.dumps(action) + b"\n" for action in actions)


def _writable(folder: Place, version: int | None = None) -> DeltaTable:
    """A table that the library can write, reached without a link.

    Raises:
        SchemaMismatch: an older version made it, clustered.
    """
    store_of(folder).make_folder(folder / "_delta_log")
    table = opened(folder, version)
    if CLUSTERING in (table.protocol().writer_features or ()):
        remedy = "run `highwater replay` on the lake, which brings it up to this version"
        raise SchemaMismatch(folder, "is clustered, as versions up to 0.5 made tables", remedy)
    return table


def opened(folder: Place, version: int | None = None) -> DeltaTable:
    """A table as the library has it, at a version or at its latest."""
    return DeltaTable(_uri(folder), version=version, storage_options=_options(folder))


def _uri(folder: Place) -> str:
    # Unlike a place, a URI is escaped.
    return quote(str(folder), safe="/:@") if isinstance(folder, Uri) else str(folder)


def _options(folder: Place) -> dict[str, str] | None:
    if not isinstance(folder, Uri):
        return None
    # Only where there is a URI is its library imported.
    from pipelines.storage.objects import client_settings

    return client_settings(folder.scheme)
