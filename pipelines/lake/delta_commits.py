"""Commits of tables by deltalake on the driver: written files become a version of a table.

A version is put into place whole or not at all, and never over another one, in a store as on a disk. The library asks
the rows of files nothing: who wrote them has (`pipelines.lake.table_files`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import orjson
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, WriterProperties
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from highwater.pipelines.base.errors import LakeError, SchemaMismatch
from highwater.pipelines.lake.delta_log import (
    CHECKPOINT_EVERY,
    CONSTRAINT,
    FEATURES,
    REMOVED_KEPT,
    WRITER,
    LiveFile,
    find_version,
    open_table,
    read_open_table,
    storage_options,
    table_uri,
)
from highwater.pipelines.lake.delta_table import build_properties, build_stored_schema
from highwater.pipelines.lake.table_files import AddedFile
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of
from highwater.schemas.table import TableSpec

#: Called before each commit; raises where this process may not write the lake any more.
Fence = Callable[[], None]

#: What a commit says that the library would say of itself.
PROGRAM = {"clientVersion": "highwater"}
#: Logs stay: stamps and states of earlier runs are looked up in them.
_HOOKS = PostCommitHookProperties(cleanup_expired_logs=False)
#: Of files that the library writes; a row group is what a read of some hours can skip.
_WRITER = WriterProperties(compression="ZSTD", max_row_group_size=100_000)


def allow_commits() -> None:
    """Allow every commit: the default `fence`. On a local disk the kernel's lock lasts as long as the process."""


def create(folder: Place, spec: TableSpec, fence: Fence) -> None:
    """Create version 0 of a table, unless another process creates it first.

    Args:
        fence: called before the commit; raises if this process may no longer write.

    Raises:
        OSError: the folder cannot be written.
    """
    fence()
    store_of(folder).make_folder(folder / "_delta_log")
    try:
        DeltaTable.create(
            table_uri(folder),
            Schema.from_json(build_stored_schema(spec).json()),
            description=spec.comment,
            configuration=build_properties(spec),
            storage_options=storage_options(folder),
            commit_properties=CommitProperties(custom_metadata=PROGRAM),
            raise_if_key_not_exists=False,
        )
    except DeltaError:
        if find_version(folder) is None:
            raise


def append(folder: Place, files: Sequence[AddedFile], stamp: str | None, fence: Fence = allow_commits) -> int:
    """Add files to a table. Return its new Delta version."""
    return _commit(_open_writable(folder), folder, files, (), {"mode": "Append"}, stamp, fence)


def replace(
    folder: Place,
    files: Sequence[AddedFile],
    stamp: str | None,
    fence: Fence = allow_commits,
    staying: Collection[str] = (),
    changes: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Replace the files of a table and return its new Delta version. Without files the table becomes empty.

    Args:
        staying: paths, in the table's folder, of files to keep.
        changes: Delta log entries of change files (`pipelines.lake.changes`); the change feed then has only these rows.
            Such a commit is written by hand: the library cannot commit change files, and its merge writes
            `string_view`, which Arrow's readers do not filter.

    Raises:
        LakeError: another process wrote the table at the same time.
    """
    table = _open_writable(folder)
    gone = [file for file in read_open_table(table, folder).files if file.path not in staying]
    if changes:
        now_ms = time.time_ns() // 1_000_000
        actions = [
            *({"remove": _make_removal(file, now_ms)} for file in gone),
            *(file.action() for file in files),
            *changes,
        ]
        _commit_by_hand(folder, table.version(), "MERGE", {}, actions, stamp, fence)
        return table.version() + 1
    # As Delta says that some rows were replaced, and not all.
    parameters = {"mode": "Overwrite"} | ({"predicate": "of some rows"} if staying else {})
    return _commit(table, folder, files, gone, parameters, stamp, fence)


def commit_unchanged(folder: Place, stamp: str | None, fence: Fence = allow_commits) -> int:
    """Commit without changes, to record a tag. Return the new Delta version."""
    parameters = {"mode": "Overwrite", "predicate": "of changed rows"}
    return _commit(_open_writable(folder), folder, (), (), parameters, stamp, fence)


def compact(folder: Place, target_bytes: int, fence: Fence) -> None:
    """Merge small files into files of about `target_bytes`. Rows do not change.

    Raises:
        LakeError: another process wrote the table at the same time.
    """
    table = _open_writable(folder)
    fence()
    with _translate_conflicts(folder):
        table.optimize.compact(
            target_size=target_bytes,
            writer_properties=_WRITER,
            commit_properties=_make_properties({}, None),
            post_commithook_properties=_HOOKS,
        )


def find_unneeded_files(folder: Place, retention_hours: int) -> set[str]:
    """Return the files in a table's folder, except its log, that no recent version needs.

    Args:
        retention_hours: minimum age since removal, or since the last write if no commit names the file.
    """
    return set(open_table(folder).vacuum(retention_hours, enforce_retention_duration=False, full=True))


def _commit(
    table: DeltaTable,
    folder: Place,
    files: Sequence[AddedFile],
    gone: Sequence[LiveFile],
    parameters: Mapping[str, str],
    stamp: str | None,
    fence: Fence,
) -> int:
    now_ms = time.time_ns() // 1_000_000
    actions: list[AddAction | RemoveAction] = [
        *(AddAction(file.path, file.size_bytes, {}, file.modified_ms, True, file.stats) for file in files),
        *(RemoveAction(file.path, True, now_ms, file.size_bytes, {}) for file in gone),
    ]
    # What was removed was looked up in one version: no other one may come between.
    properties = _make_properties({"operationParameters": dict(parameters)}, stamp, 0 if gone else None)
    fence()
    with _translate_conflicts(folder):
        table.create_write_transaction(
            actions, "append", table.schema(), commit_properties=properties, post_commithook_properties=_HOOKS
        )
    return find_version(folder) or 0


def _make_properties(more: Mapping[str, Any], stamp: str | None, retries: int | None = None) -> CommitProperties:
    metadata = {**PROGRAM, **more} | ({} if stamp is None else {"userMetadata": stamp})
    return CommitProperties(metadata, max_commit_retries=retries)


@contextmanager
def _translate_conflicts(folder: Place) -> Iterator[None]:
    try:
        yield
    except CommitFailedError as error:
        raise LakeError(f"{folder}: was written by another process meanwhile ({error})") from error


def alter(
    folder: Place, spec: TableSpec, why: str, fence: Fence, rows_too: bool = False, stamp: str | None = None
) -> None:
    """Change columns, constraints and properties of a table to the declared ones, in one hand-written commit.

    The library would need one commit for each.

    Args:
        why: stored in Delta's history.
        rows_too: also remove all rows, because they do not fit the new columns.

    Raises:
        LakeError: another process wrote the table at the same time.
        SchemaMismatch: another program added Delta features.
    """
    table, now_ms = _open_writable(folder), time.time_ns() // 1_000_000
    there, version = table.metadata(), table.version()
    properties = {name: text for name, text in there.configuration.items() if CONSTRAINT not in name}
    metadata = {
        "id": str(there.id),
        "description": spec.comment,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": build_stored_schema(spec).json(),
        "partitionColumns": there.partition_columns,
        "configuration": properties | build_properties(spec),
        "createdTime": there.created_time,
    }
    actions: list[Mapping[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": WRITER}},
        {"metaData": metadata},
    ]
    if rows_too:
        actions += ({"remove": _make_removal(file, now_ms)} for file in read_open_table(table, folder).files)
    _commit_by_hand(folder, version, "UPGRADE SCHEMA", {"changes": why}, actions, stamp, fence)


def _make_removal(file: LiveFile, now_ms: int) -> dict[str, Any]:
    return {"path": quote(file.path), "deletionTimestamp": now_ms, "dataChange": True}


def _commit_by_hand(
    folder: Place,
    version: int,
    operation: str,
    parameters: Mapping[str, str],
    actions: Sequence[Mapping[str, Any]],
    stamp: str | None,
    fence: Fence,
) -> None:
    """Write a commit file: `actions` as the version after `version`."""
    info: dict[str, Any] = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": operation,
        "operationParameters": parameters,
        # No two commits are equal: a store is asked whether the one that is there is ours.
        "txnId": str(uuid4()),
        **PROGRAM,
    }
    commit = {"commitInfo": info if stamp is None else info | {"userMetadata": stamp}}
    content = b"".join(orjson.dumps(action) + b"\n" for action in (commit, *actions))
    fence()
    if not store_of(folder).create(folder / "_delta_log" / f"{version + 1:020}.json", content):
        raise LakeError(f"{folder}: version {version + 1} was written by another process")
    if (version + 2) % CHECKPOINT_EVERY == 0:
        open_table(folder).create_checkpoint()


def remember_removed(folder: Place, hours: int, fence: Fence) -> None:
    """Set for how many hours Delta lists removed files in its log. Unlisted files cannot be kept."""
    table = _open_writable(folder)
    fence()
    with _translate_conflicts(folder):
        table.alter.set_table_properties(
            {REMOVED_KEPT: f"interval {hours} hours"},
            commit_properties=_make_properties({}, None),
            post_commithook_properties=_HOOKS,
        )


def _open_writable(folder: Place) -> DeltaTable:
    """Return a table that the library can write, reached without a link.

    Raises:
        SchemaMismatch: another program added Delta features.
    """
    store_of(folder).make_folder(folder / "_delta_log")
    table = open_table(folder)
    features = {*(table.protocol().writer_features or ())}
    if odd := sorted(features - FEATURES):
        problem = f"has features that a lake's tables do not have ({', '.join(odd)})"
        raise SchemaMismatch(
            folder, problem, "take them off with Delta (ALTER TABLE DROP FEATURE), or remove the table"
        )
    return table
