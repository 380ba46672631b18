"""What the tables of a lake hold, and whose commits they have. Nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pipelines.base.errors import ForeignTable, InputError, LakeError
from pipelines.lake.clusters import ClusterInstants, latest
from pipelines.lake.contents import find_tables
from pipelines.lake.delta_log import read_log, table_version
from pipelines.lake.parquet import Stored, columns_schema, read_files
from pipelines.lake.skipping import files_within
from pipelines.lake.stamps import added_since, added_until, stamps_of
from pipelines.lake.table_files import AddedFile
from pipelines.lake.tables import hadoop_path, require_readable
from pipelines.storage.place import Place, resolved
from schemas.state import EXPIRIES
from schemas.table import TableSpec

#: Tables of so many files are read without Delta's help. Beyond 32 paths Spark lists them by a job.
_FEW_FILES = 32
_PATTERN = re.compile(r"[\\*?\[\]{}]")


class StoredTables:
    """Delta tables below one folder, to be looked at.

    Args:
        spark: None for who only asks what files tell.
        root: the lake's folder.
    """

    def __init__(self, spark: SparkSession | None, root: Place) -> None:
        self._spark = spark
        self.root = resolved(root)

    @property
    def spark(self) -> SparkSession:
        """The session.

        Raises:
            LakeError: there is none.
        """
        if self._spark is None:
            raise LakeError(f"{self.root}: Spark is needed, and was not started")
        return self._spark

    @property
    def has_spark(self) -> bool:
        """Whether there is a session."""
        return self._spark is not None

    @cached_property
    def closed(self) -> ClusterInstants:
        """Days of a cluster before its instant are closed (`pipelines.upkeep.expiry`)."""
        rows = self.rows(EXPIRIES, "cluster_id", "closed_time")
        instants = rows["closed_time"].cast(pa.int64()).to_pylist()
        return latest(zip(rows["cluster_id"].to_pylist(), instants, strict=True))

    def path(self, spec: TableSpec) -> Place:
        """Folder of a table."""
        return self.root / spec.layer / spec.name

    def exists(self, spec: TableSpec) -> bool:
        """Whether the table has been created."""
        return table_version(self.path(spec)) is not None

    def has_rows(self, spec: TableSpec) -> bool:
        """Whether anything was ever written to the table: version 0 only makes it."""
        return (table_version(self.path(spec)) or 0) > 0

    def versions(self) -> dict[str, int]:
        """Delta version of every table of the lake, by full name."""
        return {name: table_version(path) or 0 for name, path in sorted(find_tables(self.root).items())}

    def read(self, spec: TableSpec, version: int | None = None, needed: pc.Expression | None = None) -> DataFrame:
        """The table's rows, at its latest or at a given Delta version.

        Args:
            needed: rows that the caller goes on to ask for; files that surely have none are left out.

        Raises:
            InputError: the table is not there.
        """
        if not self.exists(spec):
            raise InputError(self.root, f"holds no table {spec.full_name}", "ingest and parse logs into it first")
        if version is None and (files := self.files(spec, needed)) and len(files) <= _FEW_FILES:
            # Delta reads the log, and plans each scan, by jobs of its own: half of the 316 queries of a small audit.
            return self._parquet(spec, [file.place for file in files])
        require_readable(self.path(spec), version)
        reader = self.spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(hadoop_path(self.path(spec)))

    def files(
        self, spec: TableSpec, where: pc.Expression | None = None, version: int | None = None
    ) -> list[Stored] | None:
        """The table's Parquet files; None where only Delta can read them.

        Args:
            where: files of which the table's statistics say that no row satisfies it are left out.
            version: of the table; its latest one if not given.
        """
        try:
            log = read_log(self.path(spec), version)
        except ForeignTable:
            raise
        except InputError:
            return None
        folder = self.path(spec)
        if not log.is_plain:
            return None
        return [
            Stored(folder / file.path, file.size_bytes) for file in files_within(spec.arrow_schema, log.files, where)
        ]

    def rows(self, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> pa.Table:
        """Rows of a table that the driver can hold, in the declared types; none where there is no table."""
        files = self.files(spec, where) if self.has_rows(spec) else []
        if files is not None:
            return read_files(spec, [file.place for file in files], columns, where)
        rows = self.read(spec).toArrow()
        return (rows if where is None else rows.filter(where)).select(columns).cast(columns_schema(spec, columns))

    def _parquet(self, spec: TableSpec, files: Iterable[Place]) -> DataFrame:
        # Spark takes paths for patterns.
        paths = [_PATTERN.sub(r"\\\g<0>", hadoop_path(path)) for path in files]
        if not paths:
            return self.spark.createDataFrame([], spec.worker_schema)
        return self.spark.read.schema(spec.worker_schema).parquet(*paths)

    def rows_of_files(self, spec: TableSpec, files: Sequence[AddedFile]) -> DataFrame:
        """The rows of files that tasks have written."""
        return self._parquet(spec, [self.path(spec) / file.path for file in files])

    def stamp(self, spec: TableSpec) -> str | None:
        """Stamp of the latest commit that has one (maintenance leaves none); None if there is none, or no table."""
        return next((stamp for _, stamp in self.stamps(spec)), None)

    def stamps(self, spec: TableSpec) -> Iterator[tuple[int, str]]:
        """Stamps of the commits that have one, the newest first, each with its Delta version."""
        return stamps_of(self.path(spec))

    def added_until(self, spec: TableSpec, settled: Callable[[str], bool]) -> tuple[Stored, ...] | None:
        """Files that were added since the newest commit of a settled batch; None where the log does not tell.

        Args:
            settled: whether a batch, and so all before it, is done with.
        """
        added = added_until(self.path(spec), settled)
        return None if added is None else tuple(Stored(self.path(spec) / name, size) for name, size in added)

    def added_since(self, spec: TableSpec, version: int) -> tuple[Stored, ...] | None:
        """Files that were added after a version; None where the log does not tell (`lake.stamps.added_since`)."""
        added = added_since(self.path(spec), version)
        return None if added is None else tuple(Stored(self.path(spec) / name, size) for name, size in added)
