"""Version, files, rows, columns and properties of a Delta table, read by deltalake without Spark.

A table of a lake has reader version 1, so that its files hold the rows as they are. What newer features say (rows that
deletion vectors hide, columns with other names in files) others have set, and such a table is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import orjson
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from highwater.pipelines.base.errors import ForeignTable, InputError
from highwater.pipelines.lake.parquet import has_values
from highwater.pipelines.storage.place import Place, Uri
from highwater.pipelines.storage.store import store_of

#: Layers in the order in which they feed each other; others come after them.
LAYERS = ("bronze", "silver", "quality", "gold", "state")

#: Property that says for how long Delta remembers removed files, in whole hours.
REMOVED_KEPT = "delta.deletedFileRetentionDuration"
REMOVED_KEPT_DEFAULT = "interval 168 hours"
#: So often a log gets a checkpoint, which it is read from: the library's own measure is ten times as long.
CHECKPOINT_EVERY = 10
#: How constraints are named among properties.
CONSTRAINT = "delta.constraints."
#: Of Delta's versions of writers the one that knows what declarations need, and its features.
WRITER = 4
FEATURES = frozenset({"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"})
#: A feature that only writers have to know: Delta's liquid clustering.
CLUSTERING = "clustering"
_HOURS = re.compile(r"interval (\d+) hours")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:.+\.)?(?P<form>parquet|json)")
#: Errors of the library about a log that is not as Delta writes it.
_LOG_ERRORS = (DeltaError, ValueError)
_SHOWN_CHARS = 80
_LEAVE = "take it off with Delta (ALTER TABLE DROP FEATURE), or remove the table"


class LiveFile(NamedTuple):
    """One data file of a table version, with column statistics if it has any (Delta's PROTOCOL.md)."""

    path: str  #: relative to the table's folder, decoded
    size_bytes: int
    rows: int | None = None  #: None without statistics
    lowest: Mapping[str, Any] = {}  #: no value of a column is lower; instants are cut to milliseconds
    highest: Mapping[str, Any] = {}  #: no value of a column is higher, but for what an instant was cut by
    nulls: Mapping[str, int | None] = {}  #: how many rows have none


@dataclass(frozen=True)
class TableLog:
    """A table at one version."""

    version: int
    files: tuple[LiveFile, ...]  #: live files
    schema: Mapping[str, Any]  #: the columns as Delta keeps them: Spark's JSON
    columns: pa.Schema  #: the same for Arrow
    properties: Mapping[str, str]  #: table properties
    is_clustered: bool  #: versions up to 0.5 clustered it

    @property
    def removed_kept_hours(self) -> int:
        """Return for how many hours Delta lists removed files in its log."""
        match = _HOURS.fullmatch(self.properties.get(REMOVED_KEPT, REMOVED_KEPT_DEFAULT))
        return int(match[1]) if match else 0

    @property
    def rows(self) -> int | None:
        """Return the number of rows. None if a file has no row count."""
        known = [file.rows for file in self.files if file.rows is not None]
        return sum(known) if len(known) == len(self.files) else None

    @property
    def size_bytes(self) -> int:
        """Return the size of all data files in bytes."""
        return sum(file.size_bytes for file in self.files)


def find_version(path: Place) -> int | None:
    """Return the latest version of a Delta table, from the file names of its log; None if the table does not exist."""
    return max(list_commits(path / "_delta_log"), default=None)


def list_commits(log: Place) -> dict[int, Place]:
    """Return the commit files in a table's log by version. Empty without a log."""
    return {int(match[1]): log / name for name in store_of(log).names(log) if (match := _COMMIT.fullmatch(name))}


def open_table(path: Place, version: int | None = None) -> DeltaTable:
    """Return the library's table, at its latest version or at a given one.

    Raises:
        InputError: the table is missing, or its log is incomplete or damaged.
        ForeignTable: a link, a FIFO or a device is among the files of its log, or its checkpoint names other files.
    """
    if find_version(path) is None:
        raise InputError(path, "is not a Delta table", "name a table of the lake")
    _require_regular(path, (path / "_delta_log", path / "_delta_log" / "_sidecars"))
    _require_whole_checkpoint(path, version)
    try:
        return DeltaTable(table_uri(path), version, storage_options=storage_options(path))
    except _LOG_ERRORS as error:
        raise _explain_damage(path, error) from None


def _require_regular(table: Place, folders: Iterable[Place], names: Collection[str] | None = None) -> None:
    """Raise an error if a link, FIFO or device is in a table's folders: the library would follow it, or block.

    Args:
        names: entries to check. None checks all.

    Raises:
        ForeignTable: names the entry.
    """
    for folder in folders:
        odd = store_of(table).find_odd_entries(folder)
        for name in sorted(odd if names is None else odd.keys() & names):
            remedy = "put the file itself there, or remove the table"
            raise ForeignTable(folder / name, f"is {odd[name]}, and a lake has none", remedy)


def _require_whole_checkpoint(table: Place, version: int | None) -> None:
    """Raise an error if a checkpoint refers to other files, which the library would open at any location.

    Raises:
        ForeignTable: names the checkpoint.
        InputError: the checkpoint cannot be read.
    """
    log = table / "_delta_log"
    matches = [match for name in store_of(log).names(log) if (match := _CHECKPOINT.fullmatch(name))]
    newest = max((int(match[1]) for match in matches if version is None or int(match[1]) <= version), default=None)
    for match in matches:
        if int(match[1]) == newest and (match["form"] == "json" or has_values(log / match[0], "sidecar")):
            problem = "is a checkpoint with parts in other files, and a lake has none"
            raise ForeignTable(log / match[0], problem, "remove the table, or use another --lake")


def _explain_damage(path: Place, error: Exception) -> InputError:
    said = ascii(str(error).partition("\n")[0][:_SHOWN_CHARS])[1:-1]
    return InputError(path / "_delta_log", f"cannot be read ({said})", "restore it, or remove the table")


def table_uri(path: Place) -> str:
    """Return the table's folder as deltalake expects it: a path, or an escaped URI."""
    return quote(str(path), safe="/:@") if isinstance(path, Uri) else str(path)


def storage_options(path: Place) -> dict[str, str] | None:
    """Return deltalake's settings for the store of a table. None on a local disk."""
    if not isinstance(path, Uri):
        return None
    # Only where there is a URI is its library imported.
    from highwater.pipelines.storage.objects import build_client_settings

    return build_client_settings(path.scheme)


def read_log(path: Place, version: int | None = None) -> TableLog:
    """Return the log of a table, at its latest version or at a given one.

    Raises:
        InputError: as `open_table`; or the table needs reader features that lakes do not use.
        ForeignTable: the log names files elsewhere, or hides rows.
    """
    return read_open_table(open_table(path, version), path)


class OpenLogs:
    """Cache of table logs. A repeated read parses only new commits."""

    def __init__(self) -> None:
        self._opened: dict[Place, tuple[DeltaTable, TableLog]] = {}

    def log(self, path: Place) -> TableLog:
        """Return the log as `read_log` does."""
        table, log = self._opened.get(path) or (open_table(path), None)
        try:
            table.update_incremental()
        except _LOG_ERRORS as error:
            raise _explain_damage(path, error) from None
        if log is None or log.version != table.version():
            log = read_open_table(table, path)
        self._opened[path] = table, log
        return log


def read_open_table(table: DeltaTable, path: Place) -> TableLog:
    """Return the log of an open table, as `read_log` does. `path` is the table's folder."""
    protocol = table.protocol()
    if protocol.min_reader_version > 1:
        features = ", ".join(protocol.reader_features or ()) or "columns with other names in its files"
        raise InputError(path, f"has features that a lake's tables do not have ({features})", _LEAVE)
    if partitioned_by := table.metadata().partition_columns:
        columns = ascii(", ".join(partitioned_by))[:_SHOWN_CHARS]
        problem = f"is partitioned by {columns}, and a lake's tables are not"
        raise ForeignTable(path, problem, "remove the table, or use another --lake")
    try:
        added = pa.table(table.get_add_actions()).sort_by([("modification_time", "ascending"), ("path", "ascending")])
        hides_rows = next(table.deletion_vectors(), None) is not None
    except _LOG_ERRORS as error:
        raise _explain_damage(path, error) from None
    if hides_rows:
        raise ForeignTable(path, "has deletion vectors, which no table of a lake has", _LEAVE)
    files = tuple(_parse_file(action, path) for action in added.to_pylist())
    _require_files_here(path, [file.path for file in files])
    return TableLog(
        version=table.version(),
        files=files,
        schema=orjson.loads(table.schema().to_json()),
        columns=pa.schema(table.schema().to_arrow()),
        properties=dict(table.metadata().configuration),
        is_clustered=CLUSTERING in (protocol.writer_features or ()),
    )


def _parse_file(action: Mapping[str, Any], table: Place) -> LiveFile:
    statistics = (action.get(name) or {} for name in ("min", "max", "null_count"))
    return LiveFile(resolve_path(action["path"], table), action["size_bytes"], action.get("num_records"), *statistics)


def resolve_path(path: str, table: Place) -> str:
    """Return the decoded path of a data file, relative to the table's folder.

    Raises:
        ForeignTable: the path leads out of the folder. A shallow clone has such paths.
    """
    name = unquote(path)
    if {"", ".", ".."}.intersection(name.split("/")) or "\0" in name or _SCHEME.match(name):
        problem = f"names a file elsewhere in its log ({path[:_SHOWN_CHARS]!a})"
        raise ForeignTable(table, problem, "remove the table: nothing outside its folder is read or removed")
    return name


def _require_files_here(table: Place, names: Iterable[str]) -> None:
    """Raise an error if a data file, or a folder above it, is a link, FIFO or device."""
    parts_of: dict[tuple[str, ...], set[str]] = {}
    for name in names:
        parts = tuple(name.split("/"))
        for depth in range(len(parts)):
            parts_of.setdefault(parts[:depth], set()).add(parts[depth])
    for above, names_there in parts_of.items():
        folder = table
        for part in above:
            folder = folder / part
        _require_regular(table, [folder], names_there)


def format_type(data_type: Any) -> str:
    """Return a type in Spark's JSON as Spark SQL, for example ``array<struct<topic:string,partition:int>>``."""
    if isinstance(data_type, str):
        return _SHORT.get(data_type, data_type)
    kind = data_type["type"]
    if kind == "array":
        return f"array<{format_type(data_type['elementType'])}>"
    if kind == "map":
        return f"map<{format_type(data_type['keyType'])},{format_type(data_type['valueType'])}>"
    fields = [f"{field['name']}:{format_type(field['type'])}" for field in data_type["fields"]]
    return f"struct<{','.join(fields)}>"


_SHORT = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
