"""What a reader sees of a lake, read off the Delta logs and Parquet files alone: no Spark, and nothing of the product.

A version is its log: the files that its commits added and did not remove. So a file that a killed run left is not a
row, and a commit that names a file that is not there, or that cannot be read, is an error here as for any reader.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from tests.crash.commands import table_name

#: Columns that tell of the run, not of what it read: the ledger's clock, and the id of the ingest, which begins with
#: the time at which it ran. Every other column is compared.
OF_THE_RUN = {
    "gold.runs": ("started_time", "ended_time"),
    "bronze.log_files": ("run_id",),
    "bronze.data_files": ("run_id",),
}
COMPARED_LAYERS = ("gold", "silver", "bronze")
_COMMIT = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True)
class Version:
    """A table at its latest version."""

    number: int  #: Delta version
    files: tuple[Path, ...]  #: data files of the version
    orphans: int  #: data files in the folder that no commit ever named
    #: the table's; a MERGE leaves columns of its own in files that it copies, which are none of them
    columns: tuple[str, ...]

    def rows(self) -> list[dict[str, Any]]:
        """All rows."""
        return [row for file in self.files for row in pq.ParquetFile(file).read(self.columns).to_pylist()]

    def count(self) -> int:
        """Number of rows, as the files tell it."""
        return sum(pq.read_metadata(file).num_rows for file in self.files)


def tables(lake: Path) -> dict[str, Version]:
    """Every table of a lake.

    Raises:
        AssertionError: versions are missing, or a commit is not whole.
    """
    return {table_name(log.parent): _version(log) for log in sorted(lake.glob("*/*/_delta_log"))}


def _version(log: Path) -> Version:
    commits = sorted(name for name in os.listdir(log) if _COMMIT.fullmatch(name))
    assert [int(name[:20]) for name in commits] == list(range(len(commits))), f"{log}: versions {commits}"
    present: dict[str, None] = {}
    ever = set()
    columns: tuple[str, ...] = ()
    for name in commits:
        for line in (log / name).read_text().splitlines():
            action = json.loads(line)  # a torn commit fails here
            if "add" in action:
                # Neither is used here; rows are read as if there were none.
                assert not action["add"].get("deletionVector")
                assert not action["add"].get("partitionValues")
                present[unquote(action["add"]["path"])] = None
                ever.add(unquote(action["add"]["path"]))
            elif "remove" in action:
                present.pop(unquote(action["remove"]["path"]), None)
            elif "metaData" in action:
                fields = json.loads(action["metaData"]["schemaString"])["fields"]
                columns = tuple(field["name"] for field in fields)
    folder = log.parent
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}
    missing = [name for name in present if not (folder / name).is_file()]
    assert not missing, f"{log}: the latest version names files that are not there: {missing}"
    return Version(len(commits) - 1, tuple(folder / name for name in present), len(found - ever), columns)


@dataclass
class Comparison:
    """Tables of two lakes, row by row."""

    rows: dict[str, int]  #: rows of the first lake by table
    differences: list[str]  #: what differs, in words

    def __str__(self) -> str:
        by_layer: Counter[str] = Counter()
        filled: Counter[str] = Counter()
        total: Counter[str] = Counter()
        for table, count in self.rows.items():
            layer = table.split(".")[0]
            by_layer[layer] += count
            filled[layer] += bool(count)
            total[layer] += 1
        said = ", ".join(
            f"{layer} {by_layer[layer]} rows in {filled[layer]} of {total[layer]} tables" for layer in sorted(total)
        )
        return f"compared {said}: {len(self.differences)} differences"


def compare(
    one: Path,
    other: Path,
    layers: Iterable[str] = COMPARED_LAYERS,
    without: Iterable[str] = (),
    but_columns: Iterable[str] = (),
) -> Comparison:
    """Compare lakes by all columns but those `OF_THE_RUN`.

    Args:
        without: tables that are left out.
        but_columns: columns that are left out of every table.
    """
    first, second = tables(one), tables(other)
    wanted = sorted(name for name in {*first, *second} if name.split(".")[0] in layers and name not in without)
    rows: dict[str, int] = {}
    differences: list[str] = []
    for name in wanted:
        if name not in first or name not in second:
            differences.append(f"{name} is only in {one if name in first else other}")
            continue
        ignored = {*OF_THE_RUN.get(name, ()), *but_columns}
        left, right = _counted(first[name], ignored), _counted(second[name], ignored)
        rows[name] = sum(left.values())
        for what, extra in (("only in the first", left - right), ("only in the second", right - left)):
            if extra:
                differences.append(f"{name}: {sum(extra.values())} of {rows[name]} rows {what}: {next(iter(extra))}")
    return Comparison(rows, differences)


def _counted(version: Version, ignored: Set[str]) -> Counter[str]:
    return Counter(
        json.dumps({key: value for key, value in row.items() if key not in ignored}, sort_keys=True, default=repr)
        for row in version.rows()
    )


def digest(lake: Path) -> dict[str, tuple[int, int, str]]:
    """Size, time of change and hash of every file that a reader of the lake may look at: data, logs, checksums.

    Hidden files at the top (the lock) and state of writers that ended are not among them.
    """
    found = {}
    for path in sorted(lake.glob("*/*/**/*")):
        if path.is_file():
            status = path.stat()
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(lake))] = status.st_size, status.st_mtime_ns, content
    return found
