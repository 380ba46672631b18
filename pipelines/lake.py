"""The lake: a folder of Delta tables. Every Delta write of the program goes through here.

A table lives at ``<root>/<layer>/<name>`` and looks as its `TableSpec` says. Three kinds of writes, all safe to
repeat:

- `Lake.append_once`: the batch that was added last is not added again;
- `Lake.replace`: a whole table, or the part of it that a condition names, is what the rows say;
- `Lake.merge`: the rows with these keys are what the rows say; those that are so already are no change to the feed.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pipelines.delta_log import REMOVED_KEPT, actions_of, commits_of, find_tables, read_log, table_version
from pipelines.delta_table import (
    difference,
    first_checksum,
    first_commit,
    first_metadata,
    is_same,
    missing_properties,
)
from pipelines.errors import InputError, LakeError, SchemaMismatch
from schemas.table import TableSpec

#: A small Delta write keeps one core of the driver busy with planning; more threads than this only wait.
THREADS = 4
#: Clustered files that make up so much are settled: OPTIMIZE rewrites them no more. Delta's own default, 100 GB, has it
#: rewrite most tables of a lake as a whole each time.
_SETTLED_CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize.threshold"
_SETTLED_CUBE_BYTES = 1 << 30

#: How Delta words a broken constraint, with the values of the row, each on a line of its own.
_BROKEN = re.compile(r"\[DELTA_(?:VIOLATE_CONSTRAINT|NOT_NULL_CONSTRAINT)\w*\] *(?P<what>.*(?:\n - .*)*)")
#: Tables of so many files are read without Delta's help. Beyond 32 paths Spark lists them by a job.
_FEW_FILES = 32
_PATTERN = re.compile(r"[\\*?\[\]{}]")


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
        return {name: table_version(path) or 0 for name, path in sorted(find_tables(self.root).items())}

    def create(self, specs: Iterable[TableSpec]) -> list[TableSpec]:
        """Create the tables that are not there, each in one commit, and check the others.

        Returns:
            The specs of the tables that were created.

        Raises:
            SchemaMismatch: a table that is there has other columns or constraints than its declaration.
            InputError: the lake's folder cannot be made or written.
        """
        make_lake(self.root)
        specs = tuple(specs)
        there = [spec for spec in specs if self.exists(spec)]
        missing = [spec for spec in specs if spec not in there]
        concurrently([partial(self._check, spec) for spec in there])
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
        if version is None and (files := self._few_files(spec)):
            return self._parquet(spec, files)
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(str(self.path(spec)))

    def _few_files(self, spec: TableSpec) -> list[Path]:
        """The table's files where they are few; nothing where they are many or only Delta can read them.

        Delta reads the log, and plans each scan, by jobs of its own: half of the 316 queries of a small audit.
        """
        try:
            log = read_log(self.path(spec))
        except InputError:
            return []
        plain = log.is_plain and len(log.files) <= _FEW_FILES
        return [self.path(spec) / file.path for file in log.files] if plain else []

    def _parquet(self, spec: TableSpec, files: Iterable[Path]) -> DataFrame:
        # Spark takes paths for patterns.
        paths = [_PATTERN.sub(r"\\\g<0>", str(path)) for path in files]
        return self.spark.read.schema(spec.worker_schema).parquet(*paths)

    def append_once(self, spec: TableSpec, df: DataFrame, stamp: str) -> None:
        """Add the rows of one batch, unless the batch that was added last is this one.

        For batches that come one after the other. Unlike a transaction id, the stamp is found without rebuilding the
        table's state: 25 small writes take 12 s of CPU against 30 s.

        Raises:
            LakeError: the columns of df are not those of the table, or a row breaks a constraint; nothing is written.
        """
        if self.stamp(spec) == stamp:
            return
        self._write(spec, self._shaped(spec, df), "append", stamp)

    def replace(self, spec: TableSpec, df: DataFrame, where: str | None = None, stamp: str | None = None) -> int:
        """Make the table, or its rows that satisfy `where`, consist of df; the same call twice leaves the same rows.

        Args:
            stamp: kept with the commit (its ``userMetadata``) for `stamp` to read: whose rows these are.

        Returns:
            The table's Delta version then.

        Raises:
            LakeError: the columns of df are not those of the table, or a row breaks a constraint; nothing is written.
        """
        rows = self._shaped(spec, df)
        if where is None and not self.has_rows(spec):
            # Nothing was ever written: there is nothing to replace, and Delta need not look for it.
            self._write(spec, rows, "append", stamp)
            if self.has_rows(spec):
                return table_version(self.path(spec)) or 0
            # To append no rows is no commit, and leaves no stamp.
            rows = self.spark.createDataFrame([], spec.worker_schema)
        self._write(spec, rows, "overwrite", stamp, where)
        return table_version(self.path(spec)) or 0

    def _write(self, spec: TableSpec, rows: DataFrame, mode: str, stamp: str | None, where: str | None = None) -> None:
        writer = rows.write.format("delta").mode(mode)
        if where is not None:
            writer = writer.option("replaceWhere", where)
        if stamp is not None:
            writer = writer.option("userMetadata", stamp)
        with _constraints_kept(spec):
            writer.save(self._made(spec))

    def stamp(self, spec: TableSpec) -> str | None:
        """Stamp of the latest commit that has one (maintenance leaves none); None if there is none, or no table."""
        return next((stamp for _, stamp in self.stamps(spec)), None)

    def stamps(self, spec: TableSpec) -> Iterator[tuple[int, str]]:
        """Stamps of the commits that have one, the newest first, each with its Delta version."""
        for version, commit in sorted(self._commits(spec).items(), reverse=True):
            stamp = _stamp(commit)
            if stamp is not None:
                yield version, stamp

    def added(self, spec: TableSpec, stamp: str) -> DataFrame | None:
        """Rows that the latest commit added, read from its own files, if it has this stamp and removed nothing.

        None where that is not so; `read` then has the rows, at the price of looking through the whole table.
        """
        path = self.path(spec)
        version = table_version(path)
        if version is None:
            return None
        actions = list(actions_of(path / "_delta_log" / f"{version:020}.json"))
        if not any(action.get("commitInfo", {}).get("userMetadata") == stamp for action in actions):
            return None
        files = [path / unquote(action["add"]["path"]) for action in actions if "add" in action]
        if any("remove" in action for action in actions) or not files:
            return None
        return self._parquet(spec, files)

    def is_batch_absent(self, spec: TableSpec, stamp: str) -> bool:
        """Whether the table's log, which still goes back to its beginning, has no commit with this stamp."""
        commits = self._commits(spec)
        return 0 in commits and not any(_stamp(commit) == stamp for commit in commits.values())

    def remove(self, spec: TableSpec, where: str) -> None:
        """Remove the rows that satisfy a condition; where none does, nothing is committed."""
        if self.has_rows(spec):
            DeltaTable.forPath(self.spark, str(self.path(spec))).delete(where)

    def keeps(self, spec: TableSpec, version: int) -> bool:
        """Whether the files that a version was written with are there: maintenance removes those of old ones."""
        path = self.path(spec)
        commit = path / "_delta_log" / f"{version:020}.json"
        if not commit.is_file():
            return False
        added = (action["add"]["path"] for action in actions_of(commit) if "add" in action)
        return all((path / unquote(name)).is_file() for name in added)

    def merge(self, spec: TableSpec, df: DataFrame, since: Mapping[str, datetime] | None = None) -> None:
        """Make the rows with df's keys what df says; others stay, and rows that are so already do not change.

        Args:
            df: rows with distinct keys.
            since: by column, the instant, in UTC, at which the rows of df begin: older ones need not be looked at.

        Raises:
            LakeError: the columns of df are not those of the table, or a row breaks a constraint; nothing is written.
        """
        same = [f"old.`{name}` <=> new.`{name}`" for name in spec.keys]
        same += [
            f"old.`{name}` >= timestamp '{time:%Y-%m-%d %H:%M:%S.%f}+00:00'" for name, time in (since or {}).items()
        ]
        others = [name for name in spec.column_names if name not in spec.keys]
        differs = " OR ".join(f"NOT (old.`{name}` <=> new.`{name}`)" for name in others)
        table = DeltaTable.forPath(self.spark, self._made(spec)).alias("old")
        with _constraints_kept(spec):
            merge = table.merge(self._shaped(spec, df).alias("new"), " AND ".join(same))
            merge.whenMatchedUpdateAll(differs).whenNotMatchedInsertAll().execute()

    def compact(self, path: Path) -> None:
        """Rewrite a table's small files as few large ones, in its clustering; rows and change feed stay as they are."""
        with self._settings({_SETTLED_CUBE: str(_SETTLED_CUBE_BYTES)}):
            self.spark.sql(f"OPTIMIZE {sql_name(path)}")

    def vacuum(self, path: Path, retention_hours: int) -> None:
        """Remove the files that no version within the retention needs, and those that no version names."""
        # Delta refuses less than a table's own retention; what is too little is the caller's decision here.
        settings = {
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
            # Else Delta 4.4 takes the table's own retention, whatever is asked for.
            "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
            # Delta lists a folder in as many tasks as this says, 10,000 by default: 50 s for a table of ten files.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        }
        with self._settings(settings):
            self.spark.sql(f"VACUUM {sql_name(path)} FULL RETAIN {retention_hours} HOURS")

    def remember_removed(self, path: Path, hours: int) -> None:
        """Have Delta remember removed files for so long: VACUUM cannot keep what the log has forgotten."""
        self.spark.sql(f"ALTER TABLE {sql_name(path)} SET TBLPROPERTIES ('{REMOVED_KEPT}' = 'interval {hours} hours')")

    @contextmanager
    def stamped(self, stamp: str) -> Iterator[None]:
        """Commits within the block have this stamp unless they are given another one: a MERGE cannot be given any."""
        with self._settings({"spark.databricks.delta.commitInfo.userMetadata": stamp}):
            yield

    @contextmanager
    def _settings(self, settings: Mapping[str, str]) -> Iterator[None]:
        before = {name: self.spark.conf.get(name, None) for name in settings}
        for name, value in settings.items():
            self.spark.conf.set(name, value)
        try:
            yield
        finally:
            for name, old in before.items():
                if old is None:
                    self.spark.conf.unset(name)
                else:
                    self.spark.conf.set(name, old)

    def _commits(self, spec: TableSpec) -> dict[int, Path]:
        return commits_of(self.path(spec) / "_delta_log")

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
            remedy = "make it writable and make room, or choose another folder with --lake"
            raise InputError(log, f"cannot be written ({error.strerror})", remedy) from None

    def _check(self, spec: TableSpec) -> None:
        """Compare a table with its declaration: by its first commit, and by its whole log only if that differs.

        A property that a later version of highwater declares (change data feed) is set: no row changes by it.
        """
        schema, properties = first_metadata(self.path(spec)) or (None, {})
        if is_same(spec, schema, properties) and not missing_properties(spec, properties):
            return
        now = read_log(self.path(spec))
        schema = StructType.fromJson(dict(now.schema))
        if not is_same(spec, schema, dict(now.properties)):
            raise SchemaMismatch(
                self.path(spec),
                f"differs from what this version declares for {spec.full_name} ({difference(spec, schema)})",
                "use another --lake, or the version of highwater that made this one",
            )
        missing = missing_properties(spec, now.properties)
        if missing:
            pairs = ", ".join(f"'{name}' = '{value}'" for name, value in missing.items())
            self.spark.sql(f"ALTER TABLE {sql_name(self.path(spec))} SET TBLPROPERTIES ({pairs})")

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


def make_lake(root: Path) -> None:
    """Make the lake's folder if it is not there.

    Raises:
        InputError: it cannot be made.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "choose another folder with --lake"
        raise InputError(root, f"cannot hold the lake ({error.strerror})", remedy) from None


def concurrently(tasks: Sequence[Callable[[], Any]], threads: int = THREADS) -> list[Any]:
    """Run tasks of one session in a few threads; results in order, the first failure raised when all have ended."""
    if len(tasks) <= 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def sql_name(path: Path) -> str:
    """A table's folder as SQL names it."""
    return f"delta.`{str(path).replace('`', '``')}`"


def sql_text(text: str) -> str:
    """A text as SQL writes it, whatever stands in it: cluster ids come from logs."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _stamp(commit: Path) -> str | None:
    """The stamp of a commit, None if it has none."""
    found = (action.get("commitInfo", {}).get("userMetadata") for action in actions_of(commit))
    return next((str(stamp) for stamp in found if stamp is not None), None)
