"""What a Delta table holds, read off its log without Spark: version, files, rows, columns, properties.

Delta's PROTOCOL.md, as far as tables of a lake need it: JSON commits, and checkpoints in one or several Parquet files.
Starting Spark for the same takes eight seconds; this takes milliseconds per table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from pipelines.base.errors import ForeignTable, InputError
from pipelines.storage.place import Place, Uri
from pipelines.storage.store import store_of

#: Layers in the order in which they feed each other; others come after them.
LAYERS = ("bronze", "silver", "quality", "gold", "state")

#: Property that says for how long Delta remembers removed files, in whole hours.
REMOVED_KEPT = "delta.deletedFileRetentionDuration"
REMOVED_KEPT_DEFAULT = "interval 168 hours"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATH_SHOWN_CHARS = 80
#: Of a deletion vector a log keeps its id, encoded in so many characters, behind a prefix for its folder.
_VECTOR_ID_CHARS = 20
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

_COMMIT = re.compile(r"(\d{20})\.json")
#: In one file, or in parts: version, number of the part, how many there are.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_CHECKPOINT_COLUMNS = ("add", "remove", "metaData", "protocol", "domainMetadata", "sidecar")


class DataFile(NamedTuple):
    """One live file of a table."""

    path: str  #: relative to the table's folder, decoded
    size_bytes: int
    #: rows that it counts for, those that a deletion vector hides left out; None if no statistics tell
    rows: int | None
    hides_rows: bool = False  #: a deletion vector hides some of them
    stats: Mapping[str, Any] | None = None  #: statistics of its columns, as Delta keeps them; None if there are none


@dataclass(frozen=True)
class TableLog:
    """A table at its latest version."""

    version: int
    files: tuple[DataFile, ...]  #: live files
    written_ms: int | None  #: time of the latest commit, Unix time in milliseconds
    stamp: str | None  #: ``userMetadata`` of the latest commit that has one: for gold tables the audit's run id
    schema: Mapping[str, Any]  #: the columns as Delta keeps them: Spark's JSON
    properties: Mapping[str, str]  #: table properties
    is_clustered: bool  #: versions up to 0.5 clustered it
    #: files that older versions have, with when they were removed, Unix time in milliseconds
    removed: Mapping[str, int]

    @property
    def removed_kept_hours(self) -> int:
        """How long Delta remembers which files were removed, and when."""
        match = _HOURS.fullmatch(self.properties.get(REMOVED_KEPT, REMOVED_KEPT_DEFAULT))
        return int(match[1]) if match else 0

    @property
    def rows(self) -> int | None:
        """Rows of all files; None if one of them does not tell."""
        known = [file.rows for file in self.files if file.rows is not None]
        return sum(known) if len(known) == len(self.files) else None

    @property
    def is_plain(self) -> bool:
        """Whether the files hold the rows as they are: no vector hides any, and columns have their own names."""
        return "delta.columnMapping.mode" not in self.properties and not any(file.hides_rows for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Size of the live files; older versions' files come on top."""
        return sum(file.size_bytes for file in self.files)


def table_version(path: Place) -> int | None:
    """Latest version of the Delta table in a folder, read off its log's file names; None if there is no table."""
    return max(commits_of(path / "_delta_log"), default=None)


def commits_of(log: Place) -> dict[int, Place]:
    """The commits in a table's log, by version; none if there is no log."""
    return _commits(log, store_of(log).names(log))


def _commits(log: Place, names: Iterable[str]) -> dict[int, Place]:
    return {int(match[1]): log / name for name in names if (match := _COMMIT.fullmatch(name))}


def read_log(path: Place, version: int | None = None) -> TableLog:
    """Rebuild a table as it is, or as it was at a version.

    Raises:
        InputError: there is no table, or its log is not whole, or is of a kind that this module does not know.
    """
    log = path / "_delta_log"
    commits = _until(commits_of(log), version)
    state = _State(path)
    try:
        for actions in _pieces(path, version):
            state.take(actions)
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"has an action that no log of Delta has ({type(error).__name__}: {error})"
        raise InputError(log, problem, "restore it, or remove the table") from None
    if state.metadata is None:
        raise InputError(log, "does not say what columns the table has", "restore it, or make the table anew")
    _require_files_here(path, [file.path for file in state.files.values()])
    written, stamp = _last_written(commits)
    return TableLog(
        version=max(commits),
        files=tuple(state.files.values()),
        written_ms=written,
        stamp=stamp,
        schema=orjson.loads(state.metadata["schemaString"]),
        properties=dict(state.metadata["configuration"] or {}),
        is_clustered=state.is_clustered,
        removed=state.removed,
    )


def path_within(path: str, table: Place) -> str:
    """The path of a file as a log has it, decoded: relative to the table's folder, and within it.

    Raises:
        ForeignTable: it leads elsewhere, as a log may say that others wrote (a shallow clone's does).
    """
    name = unquote(path)
    if {"", ".", ".."}.intersection(name.split("/")) or "\0" in name or _SCHEME.match(name):
        problem = f"names a file elsewhere in its log ({path[:_PATH_SHOWN_CHARS]!a})"
        raise ForeignTable(table, problem, "remove the table: nothing outside its folder is read or removed")
    return name


def _require_files_here(table: Place, names: Iterable[str]) -> None:
    """Refuse a table of which a file, or a folder on the way to it, is a link."""
    parts_of: dict[tuple[str, ...], set[str]] = {}
    for name in names:
        parts = tuple(name.split("/"))
        for depth in range(len(parts)):
            parts_of.setdefault(parts[:depth], set()).add(parts[depth])
    store = store_of(table)
    for above, names_there in parts_of.items():
        folder = table
        for part in above:
            folder = folder / part
        if linked := sorted(names_there & store.links(folder)):
            raise ForeignTable(
                folder / linked[0], "is a link, and a lake has none", "put the file itself there, or remove the table"
            )


def _pieces(path: Place, version: int | None = None) -> Iterator[Iterator[dict[str, Any]]]:
    """Actions of a table's version, the oldest first: of its checkpoint, and of the commits after it."""
    log = path / "_delta_log"
    names = store_of(log).names(log)
    commits = _until(_commits(log, names), version)
    if not commits:
        raise InputError(path, "is no Delta table", "name a table of the lake")
    latest = max(commits)
    start, parts = _checkpoint(log, names, latest)
    later = [number for number in sorted(commits) if number > start]
    if later != list(range(start + 1, latest + 1)):
        raise InputError(log, "has commits missing", "restore them, or make the table anew")
    yield from (_checkpoint_actions(part) for part in parts)
    yield from (actions_of(commits[number]) for number in later)


def _until(commits: dict[int, Place], version: int | None) -> dict[int, Place]:
    return commits if version is None else {number: path for number, path in commits.items() if number <= version}


class _State:
    """Actions folded in their order: the last one of a file, and of the metadata, counts.

    Args:
        table: its folder.
    """

    def __init__(self, table: Place) -> None:
        self._table = table
        self.files: dict[tuple[str, str | None], DataFile] = {}
        self.removed: dict[str, int] = {}
        self.metadata: dict[str, Any] | None = None
        self.is_clustered = False

    def take(self, actions: Iterable[dict[str, Any]]) -> None:
        # Within one commit a file that gets a deletion vector is removed and added in any order: they differ in it.
        for action in actions:
            if added := action.get("add"):
                stats = orjson.loads(added["stats"]) if added.get("stats") else added.get("stats_parsed")
                vector = added.get("deletionVector")
                name = path_within(added["path"], self._table)
                _require_vector_here(vector, self._table)
                file = DataFile(name, added["size"], _rows(stats, vector), bool(vector), stats)
                self.files[_identity(added)] = file
            elif removed := action.get("remove"):
                self.files.pop(_identity(removed), None)
                self.removed[path_within(removed["path"], self._table)] = removed.get("deletionTimestamp") or 0
            elif metadata := action.get("metaData"):
                self.metadata = metadata
            elif protocol := action.get("protocol"):
                self.is_clustered = CLUSTERING in (protocol.get("writerFeatures") or ())


def _identity(action: dict[str, Any]) -> tuple[str, str | None]:
    vector = action.get("deletionVector")
    if not vector:
        return action["path"], None
    return action["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _require_vector_here(vector: Mapping[str, Any] | None, table: Place) -> None:
    """Deletion vectors are in the log itself (``i``), or in the table's folder below a prefix (``u``)."""
    if vector and (vector["storageType"] not in "iu" or "/" in vector["pathOrInlineDv"][:-_VECTOR_ID_CHARS]):
        problem = "names a deletion vector elsewhere in its log"
        raise ForeignTable(table, problem, "remove the table: nothing outside its folder is read")


def _rows(stats: Mapping[str, Any] | None, vector: Mapping[str, Any] | None) -> int | None:
    rows = (stats or {}).get("numRecords")
    return None if rows is None else int(rows) - (int(vector["cardinality"]) if vector else 0)


def actions_of(commit: Place) -> Iterator[dict[str, Any]]:
    """The actions of a commit.

    Raises:
        InputError: a line of it is none.
    """
    for line in _content(commit).splitlines():
        if line.strip():
            yield _action(line, commit)


def _action(line: bytes, commit: Place) -> dict[str, Any]:
    try:
        action = orjson.loads(line)
    except orjson.JSONDecodeError:
        action = None
    if not isinstance(action, dict):
        raise InputError(commit, "is no commit of Delta", "restore it, or remove the table")
    return action


def _content(commit: Place) -> bytes:
    return _content_of(commit) if isinstance(commit, Uri) else store_of(commit).read(commit)


@lru_cache(maxsize=4096)
def _content_of(commit: Uri) -> bytes:
    """A commit is never written anew, and asking a store takes tens of milliseconds."""
    return store_of(commit).read(commit)


def _checkpoint(log: Place, names: Iterable[str], version: int) -> tuple[int, list[Place]]:
    """Version and files of the latest checkpoint up to a version that is whole; -1 if there is none."""
    parts_of: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            parts_of.setdefault((int(match[1]), int(match[2] or 1)), []).append(name)
    whole = {
        number: [log / name for name in sorted(parts)]
        for (number, count), parts in parts_of.items()
        if len(parts) == count and number <= version
    }
    latest = max(whole, default=-1)
    return latest, whole.get(latest, [])


def _checkpoint_actions(part: Place) -> Iterator[dict[str, Any]]:
    # Importing it takes a quarter of a second, and most tables have no checkpoint yet.
    import pyarrow.parquet as pq

    file = pq.ParquetFile(store_of(part).arrow_source(part))
    for batch in file.iter_batches(columns=_CHECKPOINT_COLUMNS):
        for action in batch.to_pylist():
            if action.get("sidecar"):
                raise InputError(part, "is a checkpoint with sidecars", "read this table with Spark")
            yield action


def _last_written(commits: Mapping[int, Place]) -> tuple[int | None, str | None]:
    """Time of the latest commit, and the latest stamp: maintenance leaves none."""
    written: int | None = None
    for version in sorted(commits, reverse=True):
        info: dict[str, Any] = next(
            (action["commitInfo"] for action in actions_of(commits[version]) if "commitInfo" in action), {}
        )
        if version == max(commits):
            written = info.get("timestamp")
        if info.get("userMetadata") is not None:
            return written, str(info["userMetadata"])
    return written, None


def type_name(data_type: Any) -> str:
    """A type in Spark's JSON as Spark's SQL writes it: ``array<struct<topic:string,partition:int>>``."""
    if isinstance(data_type, str):
        return _SHORT.get(data_type, data_type)
    kind = data_type["type"]
    if kind == "array":
        return f"array<{type_name(data_type['elementType'])}>"
    if kind == "map":
        return f"map<{type_name(data_type['keyType'])},{type_name(data_type['valueType'])}>"
    fields = [f"{field['name']}:{type_name(field['type'])}" for field in data_type["fields"]]
    return f"struct<{','.join(fields)}>"


_SHORT = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
