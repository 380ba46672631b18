"""What a Delta table holds, read off its log without Spark: version, files, rows, columns, properties.

Delta's PROTOCOL.md, as far as tables of a lake need it: JSON commits, and checkpoints in one or several Parquet files.
Starting Spark for the same takes eight seconds; this takes milliseconds per table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from pipelines.errors import InputError

#: Layers in the order in which they feed each other; others come after them.
LAYERS = ("bronze", "silver", "quality", "gold", "state")

#: Property that says for how long Delta remembers removed files, in whole hours.
REMOVED_KEPT = "delta.deletedFileRetentionDuration"
REMOVED_KEPT_DEFAULT = "interval 168 hours"
_HOURS = re.compile(r"interval (\d+) hours")

_COMMIT = re.compile(r"(\d{20})\.json")
#: In one file, or in parts: version, number of the part, how many there are.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_CHECKPOINT_COLUMNS = ("add", "remove", "metaData", "domainMetadata", "sidecar")


class DataFile(NamedTuple):
    """One live file of a table.

    Attributes:
        path: relative to the table's folder, decoded.
        rows: rows that it counts for, those that a deletion vector hides left out; None if no statistics tell.
        hides_rows: a deletion vector hides some of them.
    """

    path: str
    size_bytes: int
    rows: int | None
    hides_rows: bool = False


@dataclass(frozen=True)
class TableLog:
    """A table at its latest version.

    Attributes:
        files: live files.
        written_ms: time of the latest commit, Unix time in milliseconds.
        stamp: ``userMetadata`` of the latest commit that has one: for gold tables the audit's run id.
        schema: the columns as Delta keeps them: Spark's JSON.
        properties: table properties.
        clustering: columns of liquid clustering.
        removed: files that older versions have, with when they were removed, Unix time in milliseconds.
    """

    version: int
    files: tuple[DataFile, ...]
    written_ms: int | None
    stamp: str | None
    schema: Mapping[str, Any]
    properties: Mapping[str, str]
    clustering: tuple[str, ...]
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


def find_tables(root: Path) -> dict[str, Path]:
    """Folder of every table of a lake by full name, in the order of the layers, then of names."""
    found = {}
    for log in root.glob("*/*/_delta_log"):
        if table_version(log.parent) is not None:
            found[f"{log.parent.parent.name}.{log.parent.name}"] = log.parent
    return dict(sorted(found.items(), key=lambda table: _order(table[0])))


def _order(full_name: str) -> tuple[int, str]:
    layer = full_name.split(".")[0]
    return (LAYERS.index(layer) if layer in LAYERS else len(LAYERS)), full_name


def table_version(path: Path) -> int | None:
    """Latest version of the Delta table in a folder, read off its log's file names; None if there is no table."""
    return max(commits_of(path / "_delta_log"), default=None)


def commits_of(log: Path) -> dict[int, Path]:
    """The commits in a table's log, by version; none if there is no log."""
    if not log.is_dir():
        return {}
    return {int(match[1]): entry for entry in log.iterdir() if (match := _COMMIT.fullmatch(entry.name))}


def read_log(path: Path, version: int | None = None) -> TableLog:
    """Rebuild a table as it is, or as it was at a version.

    Raises:
        InputError: there is no table, or its log is not whole, or is of a kind that this module does not know.
    """
    log = path / "_delta_log"
    commits = {number: path for number, path in commits_of(log).items() if version is None or number <= version}
    if not commits:
        raise InputError(path, "is no Delta table", "name a table of the lake")
    start, parts = _checkpoint(log, max(commits))
    versions = [number for number in sorted(commits) if number > start]
    if versions != list(range(start + 1, max(commits) + 1)):
        raise InputError(log, "has commits missing", "restore them, or make the table anew")

    state = _State()
    for part in parts:
        state.take(_checkpoint_actions(part))
    for number in versions:
        state.take(actions_of(commits[number]))
    if state.metadata is None:
        raise InputError(log, "does not say what columns the table has", "restore it, or make the table anew")
    written, stamp = _last_written(commits)
    return TableLog(
        version=max(commits),
        files=tuple(state.files.values()),
        written_ms=written,
        stamp=stamp,
        schema=orjson.loads(state.metadata["schemaString"]),
        properties=dict(state.metadata["configuration"] or {}),
        clustering=tuple(".".join(names) for names in state.clustering),
        removed=state.removed,
    )


class _State:
    """Actions folded in their order: the last one of a file, and of the metadata, counts."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str | None], DataFile] = {}
        self.removed: dict[str, int] = {}
        self.metadata: dict[str, Any] | None = None
        self.clustering: list[list[str]] = []

    def take(self, actions: Iterable[dict[str, Any]]) -> None:
        # Within one commit a file that gets a deletion vector is removed and added in any order: they differ in it.
        for action in actions:
            if added := action.get("add"):
                hides_rows = bool(added.get("deletionVector"))
                file = DataFile(unquote(added["path"]), added["size"], _rows(added), hides_rows)
                self.files[_identity(added)] = file
            elif removed := action.get("remove"):
                self.files.pop(_identity(removed), None)
                self.removed[unquote(removed["path"])] = removed.get("deletionTimestamp") or 0
            elif metadata := action.get("metaData"):
                self.metadata = metadata
            elif (domain := action.get("domainMetadata")) and domain["domain"] == "delta.clustering":
                self.clustering = (
                    [] if domain["removed"] else orjson.loads(domain["configuration"])["clusteringColumns"]
                )


def _identity(action: dict[str, Any]) -> tuple[str, str | None]:
    vector = action.get("deletionVector")
    if not vector:
        return action["path"], None
    return action["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _rows(added: dict[str, Any]) -> int | None:
    stats = orjson.loads(added["stats"]) if added.get("stats") else added.get("stats_parsed")
    rows = (stats or {}).get("numRecords")
    if rows is None:
        return None
    vector = added.get("deletionVector")
    return int(rows) - (int(vector["cardinality"]) if vector else 0)


def actions_of(commit: Path) -> Iterator[dict[str, Any]]:
    """The actions of a commit."""
    for line in commit.read_bytes().splitlines():
        if line.strip():
            yield orjson.loads(line)


def _checkpoint(log: Path, version: int) -> tuple[int, list[Path]]:
    """Version and files of the latest checkpoint up to a version that is whole; -1 if there is none."""
    found: dict[tuple[int, int], list[Path]] = {}
    for entry in log.iterdir():
        if match := _CHECKPOINT.fullmatch(entry.name):
            found.setdefault((int(match[1]), int(match[2] or 1)), []).append(entry)
    whole = {
        number: sorted(parts) for (number, count), parts in found.items() if len(parts) == count and number <= version
    }
    latest = max(whole, default=-1)
    return latest, whole.get(latest, [])


def _checkpoint_actions(part: Path) -> Iterator[dict[str, Any]]:
    # Importing it takes a quarter of a second, and most tables have no checkpoint yet.
    import pyarrow.parquet as pq

    file = pq.ParquetFile(part)
    for batch in file.iter_batches(columns=_CHECKPOINT_COLUMNS):
        for action in batch.to_pylist():
            if action.get("sidecar"):
                raise InputError(part, "is a checkpoint with sidecars", "read this table with Spark")
            yield action


def _last_written(commits: Mapping[int, Path]) -> tuple[int | None, str | None]:
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
