"""The lake: a folder of Delta tables. Every Delta write of the program goes through here.

A table lives at ``<root>/<layer>/<name>`` and looks as its `TableSpec` says. Four kinds of writes, all safe to
repeat:

- `Lake.append_once`: the batch that was added last is not added again;
- `Lake.append`: rows of one batch under a transaction id; the same id again is skipped, unseen and silently, so it
  is for input that cannot differ the second time (bronze);
- `Lake.replace`: a whole table, or the part of it that a condition names, is what the rows say;
- `Lake.insert_new`: rows whose keys are not there yet; nothing new means no new version.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipelines.delta_table import difference, first_checksum, first_commit, first_metadata, is_same
from pipelines.errors import InputError, LakeError, SchemaMismatch
from schemas.table import TableSpec

#: A small Delta write keeps one core of the driver busy with planning; more threads than this only wait.
THREADS = 4

#: How Delta words a broken constraint, with the values of the row, each on a line of its own.
_BROKEN = re.compile(r"\[DELTA_(?:VIOLATE_CONSTRAINT|NOT_NULL_CONSTRAINT)\w*\] *(?P<what>.*(?:\n - .*)*)")
_COMMIT = re.compile(r"(\d{20})\.json")


class TableInfo(NamedTuple):
    """What is stored of one table.

    Attributes:
        rows: rows at that version.
        size_bytes: size of the data files of that version; older versions' files come on top.
    """

    layer: str
    name: str
    rows: int
    version: int
    size_bytes: int


class Lake:
    """Delta tables below one folder.

    Args:
        spark: a session made by `pipelines.session.build_session`.
        root: the lake's folder; made when the first table is.
    """

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark = spark
        self.root = root.resolve()

    def path(self, spec: TableSpec) -> Path:
        """Folder of a table."""
        return self.root / spec.layer / spec.name

    def exists(self, spec: TableSpec) -> bool:
        """Whether the table has been created."""
        return table_version(self.path(spec)) is not None

    def has_rows(self, spec: TableSpec) -> bool:
        """Whether anything was ever written to the table: version 0 only makes it."""
        return (table_version(self.path(spec)) or 0) > 0

    def versions(self) -> dict[str, int]:
        """Delta version of every table of the lake, by full name; tables without a declaration included."""
        found = {}
        for log in sorted(self.root.glob("*/*/_delta_log")):
            version = table_version(log.parent)
            if version is not None:
                found[f"{log.parent.parent.name}.{log.parent.name}"] = version
        return found

    def inventory(self) -> list[TableInfo]:
        """What is stored of every table, ordered by layer and name."""
        order = {"bronze": 0, "silver": 1, "quality": 2, "gold": 3}
        names = [full_name.split(".", 1) for full_name in self.versions()]
        found: list[TableInfo] = concurrently([partial(self._info, layer, name) for layer, name in names])
        return sorted(found, key=lambda info: (order.get(info.layer, len(order)), info.layer, info.name))

    def create(self, specs: Iterable[TableSpec]) -> list[TableSpec]:
        """Create the tables that are not there, each in one commit, and check the others.

        Returns:
            The specs of the tables that were created.

        Raises:
            SchemaMismatch: a table that is there has other columns or constraints than its declaration.
            InputError: the lake's folder cannot be made or written.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(self.root, f"cannot hold the lake ({error.strerror})", "choose another folder") from None
        missing = []
        for spec in specs:
            if self.exists(spec):
                self._check(spec)
            else:
                missing.append(spec)
        for spec in missing:
            self._create(spec)
        return missing

    def read(self, spec: TableSpec, version: int | None = None) -> DataFrame:
        """The table's rows, at its latest or at a given Delta version.

        Raises:
            InputError: the table is not there.
        """
        if not self.exists(spec):
            raise InputError(self.root, f"holds no table {spec.full_name}", "ingest and parse logs into it first")
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(str(self.path(spec)))

    def append(self, spec: TableSpec, df: DataFrame, txn_app_id: str, txn_version: int) -> None:
        """Add rows once: a repeated (txn_app_id, txn_version), or a lower version, adds nothing, *whatever is in df*.

        Raises:
            LakeError: the columns of df are not those of the table, or a row breaks a constraint; nothing is written.
        """
        writer = self._shaped(spec, df).write.format("delta").mode("append")
        writer = writer.option("txnAppId", txn_app_id).option("txnVersion", txn_version)
        with _constraints_kept(spec):
            writer.save(self._made(spec))

    def append_once(self, spec: TableSpec, df: DataFrame, stamp: str) -> None:
        """Add the rows of one batch, unless the batch that was added last is this one.

        For batches that come one after the other. Unlike a transaction id, the stamp is found without rebuilding the
        table's state: 25 small writes take 12 s of CPU against 30 s.

        Raises:
            LakeError: the columns of df are not those of the table, or a row breaks a constraint; nothing is written.
        """
        if self.stamp(spec) == stamp:
            return
        writer = self._shaped(spec, df).write.format("delta").mode("append").option("userMetadata", stamp)
        with _constraints_kept(spec):
            writer.save(self._made(spec))

    def replace(self, spec: TableSpec, df: DataFrame, where: str | None = None, stamp: str | None = None) -> None:
        """Make the table, or its rows that satisfy `where`, consist of df; the same call twice leaves the same rows.

        Args:
            stamp: kept with the commit (its ``userMetadata``) for `stamp` to read: whose rows these are.

        Raises:
            LakeError: the columns of df are not those of the table, or a row breaks a constraint; nothing is written.
        """
        writer = self._shaped(spec, df).write.format("delta").mode("overwrite")
        if where is not None:
            writer = writer.option("replaceWhere", where)
        if stamp is not None:
            writer = writer.option("userMetadata", stamp)
        with _constraints_kept(spec):
            writer.save(self._made(spec))

    def stamp(self, spec: TableSpec) -> str | None:
        """Stamp of the latest commit that has one (maintenance leaves none); None if there is none, or no table."""
        return next((stamp for commit in _commits(self.path(spec)) if (stamp := _stamp(commit)) is not None), None)

    def added(self, spec: TableSpec, stamp: str) -> DataFrame | None:
        """Rows that the latest commit added, read from its own files, if it has this stamp and removed nothing.

        None where that is not so; `read` then has the rows, at the price of looking through the whole table.
        """
        path = self.path(spec)
        version = table_version(path)
        if version is None:
            return None
        actions = _actions(path / "_delta_log" / f"{version:020}.json")
        if not any(action.get("commitInfo", {}).get("userMetadata") == stamp for action in actions):
            return None
        files = [str(path / unquote(action["add"]["path"])) for action in actions if "add" in action]
        if any("remove" in action for action in actions) or not files:
            return None
        return self.spark.read.schema(spec.worker_schema).parquet(*files)

    def is_batch_absent(self, spec: TableSpec, stamp: str) -> bool:
        """Whether the table's log, which still goes back to its beginning, has no commit with this stamp."""
        commits = _commits(self.path(spec))
        whole = bool(commits) and commits[-1].name == f"{0:020}.json"
        return whole and not any(_stamp(commit) == stamp for commit in commits)

    def remove(self, spec: TableSpec, where: str) -> None:
        """Remove the rows that satisfy a condition; where none does, nothing is committed."""
        if self.has_rows(spec):
            DeltaTable.forPath(self.spark, str(self.path(spec))).delete(where)

    def insert_new(self, spec: TableSpec, df: DataFrame, keys: Sequence[str] | None = None) -> int:
        """Add the rows whose keys are not in the table; of rows of df with equal keys one is taken.

        A MERGE without an update: it commits nothing when there is nothing to insert.

        Args:
            keys: what identifies a row; the keys of the declaration unless given.

        Returns:
            How many rows were added.

        Raises:
            LakeError: the columns of df are not those of the table, or a row breaks a constraint; nothing is written.
        """
        names = tuple(keys or spec.keys)
        rows = self._shaped(spec, df).dropDuplicates(list(names))
        same = " AND ".join(f"old.`{name}` <=> new.`{name}`" for name in names)
        table = DeltaTable.forPath(self.spark, self._made(spec)).alias("old")
        with _constraints_kept(spec):
            done = table.merge(rows.alias("new"), same).whenNotMatchedInsertAll().execute()
        return int(done.collect()[0]["num_inserted_rows"])

    def _made(self, spec: TableSpec) -> str:
        if not self.exists(spec):
            self.create([spec])
        return str(self.path(spec))

    def _create(self, spec: TableSpec) -> None:
        """Put version 0 in place, whole or not at all; another process may be the one that makes the table."""
        log = self.path(spec) / "_delta_log"
        commit = first_commit(spec, str(uuid4()), time.time_ns() // 1_000_000)
        try:
            log.mkdir(parents=True, exist_ok=True)
            for name, content in ((f"{0:020}.json", commit), (f"{0:020}.crc", first_checksum(commit))):
                with tempfile.NamedTemporaryFile("w", dir=log, prefix=".", encoding="utf-8") as written:
                    written.write(content)
                    written.flush()
                    os.link(written.name, log / name)
        except FileExistsError:
            return
        except OSError as error:
            raise InputError(
                log, f"cannot be written ({error.strerror})", "choose another folder with --lake"
            ) from None

    def _info(self, layer: str, name: str) -> TableInfo:
        path = str(self.root / layer / name)
        # Delta answers a bare count from the statistics in its log, without reading data.
        rows = self.spark.read.format("delta").load(path).count()
        size = DeltaTable.forPath(self.spark, path).detail().select("sizeInBytes").collect()[0][0]
        return TableInfo(layer, name, rows, table_version(self.root / layer / name) or 0, int(size))

    def _check(self, spec: TableSpec) -> None:
        """Compare a table with its declaration: by its first commit, and only if that differs by asking Spark."""
        if is_same(spec, *(first_metadata(self.path(spec)) or (None, {}))):
            return
        row = DeltaTable.forPath(self.spark, str(self.path(spec))).detail().select("properties").collect()[0]
        schema = self.spark.read.format("delta").load(str(self.path(spec))).schema
        if not is_same(spec, schema, row["properties"]):
            raise SchemaMismatch(
                self.path(spec),
                f"differs from what this version declares for {spec.full_name} ({difference(spec, schema)})",
                "use another --lake, or the version of highwater that made this one",
            )

    @staticmethod
    def _shaped(spec: TableSpec, df: DataFrame) -> DataFrame:
        """The declared columns in the declared order, so that neither a lack nor an extra goes unnoticed."""
        odd = set(df.columns) ^ set(spec.column_names)
        if odd or len(df.columns) != len(spec.columns):
            raise LakeError(f"{spec.full_name}: rows and table differ in columns: {', '.join(sorted(odd))}")
        return df.select(*spec.column_names)


@contextmanager
def _constraints_kept(spec: TableSpec) -> Iterator[None]:
    """A broken constraint as one line; Spark wraps it in the traces of the task, the stage and the job."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        broken = _BROKEN.search(str(error))
        if broken is None:
            raise
        raise LakeError(f"{spec.full_name}: {' '.join(broken['what'].split())}") from error


def concurrently(tasks: Sequence[Callable[[], Any]], threads: int = THREADS) -> list[Any]:
    """Run tasks of one session in a few threads; results in order, the first failure raised when all have ended."""
    if len(tasks) <= 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def _commits(path: Path) -> list[Path]:
    """Commits in the log of the table in a folder, the latest one first."""
    log = path / "_delta_log"
    found = [entry for entry in log.iterdir() if _COMMIT.fullmatch(entry.name)] if log.is_dir() else []
    return sorted(found, reverse=True)


def _actions(commit: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]


def _stamp(commit: Path) -> str | None:
    """The stamp of a commit, None if it has none."""
    found = (action.get("commitInfo", {}).get("userMetadata") for action in _actions(commit))
    return next((str(stamp) for stamp in found if stamp is not None), None)


def table_version(path: Path) -> int | None:
    """Latest version of the Delta table in a folder, read off its log's file names; None if there is no table."""
    log = path / "_delta_log"
    if not log.is_dir():
        return None
    return max((int(match[1]) for entry in log.iterdir() if (match := _COMMIT.fullmatch(entry.name))), default=None)
