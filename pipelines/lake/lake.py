"""The lake: a folder of Delta tables. Every Delta write of the program goes through here.

A table lives at ``<root>/<layer>/<name>`` and looks as its `TableSpec` says. Three kinds of writes, all safe to
repeat:

- `Lake.append_files`: the batch that was added last is not added again;
- `Lake.replace`, `Lake.replace_part`: a whole table, or the part of it that a condition names, is what the rows say;
- `Lake.merge`: the rows with these keys are what the rows say; those that are so already are no change to the feed.

Rows come as files that tasks have written (`pipelines.lake.staged`), as a DataFrame, as an Arrow table that the driver
made, or as blobs of many tables (`Lake.append_blobs`); the driver alone commits. Closed days of gold
(`pipelines.upkeep.expiry`) stay whatever is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from highwater.pipelines.base.errors import InputError, LakeError
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.lake import delta_commits
from highwater.pipelines.lake.changes import find_changes, write_changes
from highwater.pipelines.lake.parquet import read_files
from highwater.pipelines.lake.row_parts import (
    Wanted,
    count_wanted,
    has_closed_days,
    leave_out_keys,
    leave_out_part,
    select_old,
    split_rows,
)
from highwater.pipelines.lake.skipping import select_files
from highwater.pipelines.lake.stored_tables import StoredTables
from highwater.pipelines.lake.table_files import (
    ADDED_SCHEMA,
    AddedFile,
    ConstraintBroken,
    find_least,
    make_cast,
    make_files_writer,
    make_rows_writer,
    write_rows,
)
from highwater.pipelines.lake.tables import create_table, format_hadoop_path, make_lake, require_declared
from highwater.pipelines.spark.spark_jobs import describe_jobs, override_settings
from highwater.pipelines.spark.tasks import Work, run_in_tasks
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of
from highwater.schemas.table import TableSpec

_BROKEN = re.compile(r"ConstraintBroken: (.*)")


@contextmanager
def translate_constraint_errors() -> Iterator[None]:
    """Convert constraint errors, which Spark wraps in long traces, to one line.

    Raises:
        LakeError: a row within the block breaks a constraint of its table.
    """
    try:
        yield
    except ConstraintBroken as error:
        raise LakeError(str(error)) from error
    except (Py4JJavaError, PySparkException) as error:
        broken = _BROKEN.search(str(error))
        if broken is None:
            raise
        raise LakeError(broken[1]) from error


#: Columns of `AddedFile` in Spark.
ADDED = from_arrow_schema(ADDED_SCHEMA)

#: Files that are smaller are gathered in one where a table has more of them than this.
_SMALL_BYTES = 4_000_000
_SMALL_FILES = 4
#: In a store making one is waiting for it, half a second in HDFS.
_CREATED_AT_ONCE = 16
_PATTERN = re.compile(r"[\\*?\[\]{}]")

T = TypeVar("T")


class Blobs(Protocol):
    """Serialized rows of several tables: a DataFrame of `pipelines.base.blobs.BLOBS`, or the output of keyed stages."""

    def mapInArrow(self, work: Work, columns: StructType) -> DataFrame:  # noqa: N802
        """Return the rows that a ``mapInArrow`` function makes of the serialized rows."""


def read_parquet(spark: SparkSession, files: Iterable[Place], columns: StructType) -> DataFrame:
    """Return the rows of a table's Parquet files, read without Delta.

    Delta plans each scan with jobs of its own: half of the 316 queries of a small audit.
    """
    # Spark takes paths for patterns.
    paths = [_PATTERN.sub(r"\\\g<0>", format_hadoop_path(file)) for file in files]
    return spark.read.schema(columns).parquet(*paths) if paths else spark.createDataFrame([], columns)


class Lake(StoredTables):
    """Delta tables below one folder.

    Args:
        spark: a session of `pipelines.spark.session.build_session`; None to read without Spark.
        root: the lake's folder; the first table creates it.
        fence: called before each commit; raises if this process may no longer write the lake.
    """

    def __init__(
        self, spark: SparkSession | None, root: Place, fence: delta_commits.Fence = delta_commits.allow_commits
    ) -> None:
        super().__init__(root)
        self._spark = spark
        self._fence = fence

    @property
    def spark(self) -> SparkSession:
        """Return the Spark session.

        Raises:
            LakeError: the lake was opened without a session.
        """
        if self._spark is None:
            raise LakeError(f"{self.root}: Spark is needed, and was not started")
        return self._spark

    @property
    def has_spark(self) -> bool:
        """Return True if there is a session."""
        return self._spark is not None

    def read(self, spec: TableSpec) -> DataFrame:
        """Return the table's rows.

        Raises:
            InputError: the table is not there.
        """
        if not self.exists(spec):
            raise InputError(self.root, f"holds no table {spec.full_name}", "ingest and parse logs into it first")
        return read_parquet(self.spark, [file.place for file in self.files(spec)], spec.worker_schema)

    def create(self, specs: Iterable[TableSpec]) -> list[TableSpec]:
        """Create missing tables, each in one commit. An upgrade has changed the others as declared.

        Returns:
            The specs of the tables that were created.

        Raises:
            InputError: the lake's folder cannot be made or written.
        """
        make_lake(self.root)
        missing = [spec for spec in specs if not self.exists(spec)]
        creations = [partial(create_table, self.path(spec), spec, self._fence) for spec in missing]
        run_concurrently(creations, _CREATED_AT_ONCE)
        return missing

    def append_once(self, spec: TableSpec, rows: DataFrame | pa.Table, stamp: str) -> None:
        """Add the rows of one batch, unless the last commit has the same tag. Batches must come in order.

        Raises:
            LakeError: rows and table differ in columns, or a row breaks a constraint; nothing is written.
        """
        if self.stamp(spec) != stamp:
            self.append_files(spec, self.write_rows(spec, rows), stamp)

    def append_files(self, spec: TableSpec, files: Sequence[AddedFile], stamp: str) -> None:
        """Add files in the table's folder, unless the last commit has the same tag. Create the table if missing."""
        if not files:
            return
        if self.stamp(spec) == stamp:
            # A process that slept longer than its lease stops here: another run has added the files.
            self._fence()
            return
        delta_commits.append(self._prepare_table(spec), files, stamp, self._fence)

    def replace(self, spec: TableSpec, rows: DataFrame | pa.Table, stamp: str | None = None) -> None:
        """Replace the rows of the table. Safe to repeat.

        Args:
            stamp: tag stored with the commit (``userMetadata``), later returned by `stamp`.

        Raises:
            LakeError: rows and table differ in columns, or a row breaks a constraint; nothing is written.
        """
        self.replace_files(spec, self.write_rows(spec, rows), stamp)

    def replace_part(self, spec: TableSpec, files: Sequence[AddedFile], part: pc.Expression, stamp: str | None) -> None:
        """Replace the rows that match `part` by files in the table's folder. Rows of closed days stay.

        Files with other rows are rewritten by the driver.

        Raises:
            LakeError: a row of the files does not match.
        """
        rest = leave_out_part(part, spec.column_names)
        outside = count_wanted(self._prepare_table(spec), spec, [file.path for file in files], rest)
        if outside:
            raise LakeError(f"{spec.full_name}: {outside} rows are not of the part that they were to replace")
        self._replace(spec, files, stamp, rest, part)

    def empty(self, spec: TableSpec, stamp: str | None = None) -> None:
        """Remove all rows. Commits even without rows, to record the tag."""
        self.replace_files(spec, [], stamp)

    def commit_unchanged(self, spec: TableSpec, stamp: str) -> None:
        """Commit without changes, to record a tag."""
        delta_commits.commit_unchanged(self._prepare_table(spec), stamp, self._fence)

    def append_made(
        self,
        spec: TableSpec,
        plan: Sequence[Sequence[T]],
        work: Callable[[T], Iterator[pa.RecordBatch]],
        stamp: str,
    ) -> None:
        """Add rows that Spark tasks make and write, as `append_once` does.

        Args:
            plan: inputs of each task.
            work: makes rows from one input.

        Raises:
            LakeError: a row breaks a constraint; nothing is written.
        """
        if self.stamp(spec) != stamp:
            self._prepare_table(spec)
            write = make_rows_writer(self.root, spec, lambda batches: batches)
            added = run_in_tasks(self.spark, plan, work, ADDED, write)
            self.append_files(spec, self.collect_files(added, spec.full_name), stamp)

    def append_blobs(self, blobs: Blobs, specs: Sequence[TableSpec], stamp: str, rows: Work | None = None) -> None:
        """Add the rows of one batch to several tables in one query. Tables are committed in the order of `specs`.

        Args:
            blobs: serialized rows of these tables only (`pipelines.base.blobs.BLOB_SCHEMA`).
            rows: applied to `blobs` in the tasks. None to write them unchanged.

        Raises:
            LakeError: a row breaks a constraint; nothing is written.
            LeaseLost: this process may no longer write the lake.
        """
        self._fence()
        specs = [spec for spec in specs if self.stamp(spec) != stamp]
        files = self.write_blobs(blobs, specs, rows) if specs else []
        for spec in specs:
            self.append_files(spec, [file for file in files if file.table == spec.name], stamp)

    def write_blobs(self, blobs: Blobs, specs: Sequence[TableSpec], rows: Work | None = None) -> list[AddedFile]:
        """Write serialized rows as files of these tables, in one query, without committing them.

        Args:
            rows: applied to `blobs` in the tasks. None to write them unchanged.

        Raises:
            LakeError: a row breaks a constraint.
        """
        names = {spec.name: spec for spec in specs}
        what = ", ".join(spec.full_name for spec in specs)
        return self._files_of(blobs, make_files_writer(self.root, names, rows), what)

    def write_rows(self, spec: TableSpec, rows: DataFrame | pa.Table) -> list[AddedFile]:
        """Write rows as files of a table, without committing them.

        Raises:
            LakeError: rows and table differ in columns, or a row breaks a constraint.
        """
        folder = self._prepare_table(spec)
        if not isinstance(rows, pa.Table):
            return self._files_of(
                self._select_columns(spec, rows), make_rows_writer(self.root, spec, make_cast(spec)), spec.full_name
            )
        if rows.schema.names != list(spec.column_names):
            odd = set(rows.schema.names) ^ set(spec.column_names)
            raise LakeError(f"{spec.full_name}: rows and table differ in columns: {', '.join(sorted(odd))}")
        with translate_constraint_errors():
            return write_rows(folder, spec, rows)

    def _files_of(self, source: Blobs, write: Work, what: str) -> list[AddedFile]:
        return self.collect_files(source.mapInArrow(write, ADDED), what)

    def collect_files(self, added: DataFrame, what: str) -> list[AddedFile]:
        """Run the query and return the files that its tasks wrote. `what` names them in a message.

        Raises:
            LakeError: a row breaks a constraint.
        """
        with translate_constraint_errors(), describe_jobs(self.spark, what):
            return sorted(AddedFile(*row) for row in added.collect())

    def replace_files(
        self, spec: TableSpec, files: Sequence[AddedFile], stamp: str | None, staying: Collection[str] = ()
    ) -> None:
        """Replace the files of a table by files in its folder. Rows of closed days stay.

        Args:
            staying: paths of the table's files to keep.
        """
        self._replace(spec, files, stamp, staying=staying)

    def _replace(
        self,
        spec: TableSpec,
        files: Sequence[AddedFile],
        stamp: str | None,
        stays: Wanted | None = None,
        searched: pc.Expression | None = None,
        staying: Collection[str] = (),
    ) -> None:
        """Replace the rows of a table. Rows of closed days, and rows that `stays` selects, are kept.

        Args:
            stays: selects own rows to keep. None keeps none.
            searched: filter for the rows that may go; files without any are not read.
            staying: paths of files to keep unread.
        """
        folder, there = self._prepare_table(spec), self.log(spec).files
        if has_closed_days(spec, self.closed):
            closed = select_old(spec, self.closed)
            new = {file.path: file for file in files}
            of_open = split_rows(folder, spec, list(new), closed.invert())
            files = [*(new[path] for path in of_open.whole), *of_open.written]
            stays = closed if stays is None else stays.beside(closed)
        written: Sequence[AddedFile] = ()
        if stays is not None:
            within = [file.path for file in select_files(spec.arrow_schema, there, searched)]
            touched = [path for path in within if path not in staying]
            rest = split_rows(folder, spec, touched, stays, searched)
            staying = {file.path for file in there}.difference(touched).union(rest.whole)
            written = rest.written
        gone = [file for file in there if file.path not in staying]
        changes = find_changes(folder, spec, files, gone, stays) if spec.feeds_changes else None
        files = [*files, *written]
        if changes is None:
            delta_commits.replace(folder, files, stamp, self._fence, staying)
        elif changes.num_rows:
            fed = [write_changes(folder, changes.schema, changes.to_batches())]
            delta_commits.replace(folder, files, stamp, self._fence, staying, fed)
        else:
            for file in files:
                store_of(folder).remove(folder / file.path)
            delta_commits.commit_unchanged(folder, stamp, self._fence)

    def remove(self, spec: TableSpec, column: str, values: Sequence[str]) -> None:
        """Remove the rows with one of these values in a column. Without such rows nothing is committed."""
        part = pc.field(column).isin(list(values))
        if not self.has_rows(spec):
            return
        require_declared(self.path(spec), spec)
        if self.rows(spec, column, where=part).num_rows:
            self._replace(spec, [], None, leave_out_part(part, [column]), part)

    def merge(
        self, spec: TableSpec, rows: DataFrame | pa.Table, by: str | None = None, stamp: str | None = None
    ) -> None:
        """Write rows, then merge them as `merge_files` does.

        Raises:
            LakeError: rows and table differ in columns, or a row breaks a constraint; nothing is written.
        """
        self.merge_files(spec, self.write_rows(spec, rows), by, stamp)

    def merge_files(self, spec: TableSpec, files: Sequence[AddedFile], by: str | None, stamp: str | None) -> None:
        """Merge files in the table's folder into the table by key. Without files only the tag is committed.

        Args:
            files: files with distinct keys. Rows equal to existing ones are no change.
            by: timestamp column. Table rows older than all new rows are not searched. None searches all.
            stamp: tag stored with the commit.
        """
        folder = self._prepare_table(spec)
        require_declared(folder, spec)
        if not files:
            delta_commits.commit_unchanged(folder, stamp, self._fence)
            return
        keys = read_files(spec, [folder / file.path for file in files], spec.keys)
        since = None if by is None else find_least(files, by)
        searched = None if by is None else pc.field(by) >= pa.scalar(since, pa.timestamp("us", "UTC"))
        self._replace(spec, files, stamp, leave_out_keys(keys, by, since), searched)

    def gather(self, spec: TableSpec) -> None:
        """Merge small files of a table if there are many, because every reader opens each file.

        Each run adds some. Large files are not rewritten, so the cost does not grow with the table.
        """
        files = self.files(spec)
        if sum(file.size_bytes < _SMALL_BYTES for file in files) > _SMALL_FILES:
            require_declared(self.path(spec), spec)
            delta_commits.compact(self.path(spec), 2 * _SMALL_BYTES, self._fence)

    def settings(self, settings: Mapping[str, str]) -> AbstractContextManager[None]:
        """Set Spark settings within the block, and restore them after it."""
        return override_settings(self.spark, settings)

    def _prepare_table(self, spec: TableSpec) -> Place:
        if not self.exists(spec):
            self.create([spec])
        return self.path(spec)

    @staticmethod
    def _select_columns(spec: TableSpec, df: DataFrame) -> DataFrame:
        """Return the declared columns in order, and refuse missing or extra ones."""
        odd = set(df.columns) ^ set(spec.column_names)
        if odd or len(df.columns) != len(spec.columns):
            raise LakeError(f"{spec.full_name}: rows and table differ in columns: {', '.join(sorted(odd))}")
        return df.select(*spec.column_names)
