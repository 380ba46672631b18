"""Tables of a lake as declared: made in one commit without Delta's planning, and compared with what is there."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import StructType

from highwater.pipelines.base.errors import ForeignTable, InputError, SchemaMismatch
from highwater.pipelines.lake.delta_commits import Fence, allow_commits, alter, create
from highwater.pipelines.lake.delta_log import TableLog, read_log
from highwater.pipelines.lake.delta_table import (
    describe_difference,
    describe_widening,
    find_foreign_parts,
    find_missing_properties,
    find_odd_properties,
    is_same,
)
from highwater.pipelines.lake.program import REBUILD
from highwater.pipelines.storage.place import Place, Uri, resolved
from highwater.pipelines.storage.store import store_of
from highwater.schemas.table import TableSpec


def create_table(folder: Place, spec: TableSpec, fence: Fence = allow_commits) -> None:
    """Create version 0 of a table, unless another process creates it first.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        create(folder, spec, fence)
    except OSError as error:
        remedy = "make it writable and make room, or choose another folder with --lake"
        # The message of the library ends with the text of the system.
        words = error.strerror or str(error).rpartition("↳\x1b[0m")[2].partition(" (os error")[0].strip()
        raise InputError(folder / "_delta_log", f"cannot be written ({words})", remedy) from None


def bring_up(folder: Place, spec: TableSpec, fence: Fence) -> str | None:
    """Upgrade a table of an older version to its declaration without changing rows, in one commit.

    Nullable columns are added and properties are set.

    Returns:
        A description of the changed columns and constraints. None if none changed.

    Raises:
        SchemaMismatch: rows would have to change.
    """
    how = _describe_change(folder, spec)
    if how is not None:
        alter(folder, spec, how or "properties", fence)
    return how or None


def describe_upgrade(folder: Place, spec: TableSpec) -> str | None:
    """Describe the changes of columns and constraints that `bring_up` would make. None for no change.

    Raises:
        SchemaMismatch: rows would have to change.
    """
    return _describe_change(folder, spec) or None


def require_readable(folder: Place) -> TableLog:
    """Return the log of a table that is safe to read with Delta or DuckDB.

    Raises:
        InputError: the log is damaged.
        ForeignTable: the table names files elsewhere, or has unknown properties.
    """
    log = read_log(folder)
    if what := find_odd_properties(log.properties):
        raise _explain_foreign(folder, what, "read")
    return log


def _explain_foreign(folder: Place, what: Sequence[str], done: str) -> ForeignTable:
    problem = f"has what is not declared ({', '.join(what)}), and is not {done}"
    remedy = "run `highwater replay` if an older version set it, else drop it with what set it, or remove the table"
    return ForeignTable(folder, problem, remedy)


def require_declared(folder: Place, spec: TableSpec) -> None:
    """Raise an error unless columns, constraints, generated columns and properties of a table are as declared.

    Delta evaluates their SQL at each write, and foreign SQL may call any class of the JVM (``reflect``).

    Raises:
        SchemaMismatch: the columns are of another version.
        ForeignTable: no version declared a part of the table.
    """
    log = read_log(folder)
    if what := find_foreign_parts(spec, log.schema, log.properties):
        raise _explain_foreign(folder, what, "written")
    schema = StructType.fromJson(dict(log.schema))
    if not is_same(spec, schema, dict(log.properties)):
        problem = f"differs from what this version declares for {spec.full_name} ({describe_difference(spec, schema)})"
        raise SchemaMismatch(folder, problem, "run `highwater replay` on the lake, which brings it up to this version")


def make_empty(folder: Place, spec: TableSpec, why: str, fence: Fence, stamp: str | None) -> None:
    """Change a table to its declaration and remove all rows, in one commit."""
    alter(folder, spec, why, fence, rows_too=True, stamp=stamp)


def _describe_change(folder: Place, spec: TableSpec) -> str | None:
    """Describe how a table must change to be as declared. Empty if only properties change, None if nothing does."""
    now = read_log(folder)
    if now.is_clustered:
        raise InputError(folder, "was made by highwater 0.5 or older", REBUILD)
    schema, properties = StructType.fromJson(dict(now.schema)), dict(now.properties)
    if is_same(spec, schema, properties) and not find_missing_properties(spec, properties):
        return None
    how = describe_widening(spec, schema, properties)
    if how is None:
        raise SchemaMismatch(
            folder,
            f"differs from what this version declares for {spec.full_name} ({describe_difference(spec, schema)})",
            REBUILD,
        )
    return how


def make_lake(root: Place) -> None:
    """Make the lake's folder if it is not there.

    Raises:
        InputError: it cannot be made.
    """
    if isinstance(root, Uri) and "%" in root.key:
        raise InputError(root, "has a %, which readers of Delta take for an escape", "choose another --lake")
    if not str(root).isprintable():
        raise InputError(root, "has control characters, which paths of Delta must not have", "choose another --lake")
    try:
        store_of(root).make_folder(resolved(root))
    except OSError as error:
        remedy = "choose another folder with --lake"
        raise InputError(root, f"cannot hold the lake ({error.strerror})", remedy) from None


def format_hadoop_path(place: Place) -> str:
    """Return a location for Hadoop and Spark. A local path needs the scheme ``file:``, else it means the default store.

    It is not percent-encoded, because Hadoop's paths are not.
    """
    return str(place) if isinstance(place, Uri) else f"file:{place.absolute()}"


def escape_text(text: str) -> str:
    """Return a text as an SQL literal, safe for any content: cluster ids come from logs."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
