"""Tables of a lake as declared: made in one commit without Delta's planning, and compared with what is there."""

from __future__ import annotations

import time
from uuid import uuid4

from pyspark.sql.types import StructType

from pipelines.delta_log import read_log
from pipelines.delta_table import (
    difference,
    first_checksum,
    first_commit,
    first_metadata,
    is_same,
    missing_properties,
)
from pipelines.errors import InputError, SchemaMismatch
from pipelines.storage.place import Place, Uri
from pipelines.storage.store import store_of
from schemas.table import TableSpec


def create_table(folder: Place, spec: TableSpec) -> None:
    """Put version 0 in place, whole or not at all; another process may be the one that makes the table.

    Raises:
        InputError: the folder cannot be written.
    """
    log, store = folder / "_delta_log", store_of(folder)
    commit = first_commit(spec, str(uuid4()), time.time_ns() // 1_000_000)
    try:
        store.make_folder(log)
        for name, content in ((f"{0:020}.json", commit), (f"{0:020}.crc", first_checksum(commit))):
            if not store.create(log / name, content.encode()):
                return
    except OSError as error:
        remedy = "make it writable and make room, or choose another folder with --lake"
        raise InputError(log, f"cannot be written ({error.strerror})", remedy) from None


def lacking_properties(folder: Place, spec: TableSpec) -> dict[str, str]:
    """Declared properties that a table lacks: those of a later version of highwater. No row changes by them.

    Columns and constraints are compared by the table's first commit, and by its whole log only if that differs.

    Raises:
        SchemaMismatch: the table has other columns or constraints than its declaration.
    """
    schema, properties = first_metadata(folder) or (None, {})
    if is_same(spec, schema, properties) and not missing_properties(spec, properties):
        return {}
    now = read_log(folder)
    schema = StructType.fromJson(dict(now.schema))
    if not is_same(spec, schema, dict(now.properties)):
        raise SchemaMismatch(
            folder,
            f"differs from what this version declares for {spec.full_name} ({difference(spec, schema)})",
            "use another --lake, or the version of highwater that made this one",
        )
    return missing_properties(spec, now.properties)


def make_lake(root: Place) -> None:
    """Make the lake's folder if it is not there.

    Raises:
        InputError: it cannot be made.
    """
    if isinstance(root, Uri) and "%" in root.key:
        raise InputError(root, "has a %, which readers of Delta take for an escape", "choose another --lake")
    try:
        store_of(root).make_folder(root)
    except OSError as error:
        remedy = "choose another folder with --lake"
        raise InputError(root, f"cannot hold the lake ({error.strerror})", remedy) from None


def hadoop_path(place: Place) -> str:
    """A place as Hadoop and Spark name it: a path without a scheme is one of the cluster's own store.

    Not a URI with escapes: Hadoop's paths have none.
    """
    return str(place) if isinstance(place, Uri) else f"file:{place.absolute()}"


def sql_name(path: Place) -> str:
    """A table's folder as SQL names it."""
    return f"delta.`{hadoop_path(path).replace('`', '``')}`"


def sql_text(text: str) -> str:
    """A text as SQL writes it, whatever stands in it: cluster ids come from logs."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
