"""Parquet files of a table with their Delta statistics: written by tasks, committed by the driver.

A pass over logs gives rows of some twenty tables at once, so its tasks write the files themselves. The driver commits
them (`pipelines.lake.delta_commits`), which asks their rows nothing. What Delta enforces is enforced here: NOT NULL by
Arrow, CHECK constraints by SQLite, which reads the SQL that declarations use. Like Delta, it takes a condition that is
null for broken.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of
from highwater.schemas.table import TableSpec

#: Columns of what a task says of the files that it wrote.
ADDED_SCHEMA = pa.schema(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("row_count", pa.int64()),
        ("modified_ms", pa.int64()),
        ("stats", pa.string()),
    ]
)
#: A task holds that many rows of a table.
_HELD_ROWS = 100_000
#: Rows are written in order of time where a column has it, as this many row groups of at least this many rows each:
#: a fold gives rows key by key, each with all its hours, and who reads the last hour is to skip the others.
_GROUPS = 8
_GROUP_ROWS = 4_096
#: Delta's statistics keep that many characters of a text, and so does its reader expect.
_STATS_CHARS = 32
_WORD = re.compile(r"\w+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

Batches = Iterator[pa.RecordBatch]


class ConstraintBroken(ValueError):
    """A row breaks a NOT NULL or CHECK constraint of its table."""


class AddedFile(NamedTuple):
    """A file that a commit may add, with Delta's statistics of it as JSON; columns of `ADDED_SCHEMA`."""

    table: str
    path: str  #: relative to the table's folder
    size_bytes: int
    row_count: int
    modified_ms: int
    stats: str

    def action(self) -> dict[str, Any]:
        """Return the "add" entry for Delta's log."""
        return {
            "add": {
                "path": self.path,
                "partitionValues": {},
                "size": self.size_bytes,
                "modificationTime": self.modified_ms,
                "dataChange": True,
                "stats": self.stats,
            }
        }


def find_least(files: Sequence[AddedFile], column: str) -> datetime | None:
    """Return a lower bound of a timestamp column, from file statistics. None if all values are null."""
    instants = (orjson.loads(file.stats)["minValues"].get(column) for file in files)
    return min((datetime.fromisoformat(instant) for instant in instants if instant), default=None)


def build_table(spec: TableSpec, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return a table of rows with values in the order of the columns."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(spec.columns)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, spec.arrow_schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=spec.arrow_schema)


class TableWriter:
    """Writes one Parquet file of a table, in row groups.

    Args:
        folder: the table's folder, created if missing.

    Raises:
        ConstraintBroken: a row breaks a constraint. The file is then not committed.
    """

    def __init__(self, folder: Place, spec: TableSpec) -> None:
        self._store = store_of(folder)
        self._store.make_folder(folder)
        self._spec = spec
        self._file = folder / f"part-{uuid4()}.zstd.parquet"
        self._sink = self._store.open_arrow_sink(self._file)
        self._writer = pq.ParquetWriter(self._sink, spec.arrow_schema, compression="zstd", store_schema=False)
        self._batches: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._bounds = {name: _Bounds() for name in spec.searched_columns}
        self._row_count = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._batches.append(batch)
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= _HELD_ROWS:
            self._flush()

    def close(self) -> AddedFile:
        """Finish the file and return it with its statistics."""
        self._flush()
        self._writer.close()
        if not isinstance(self._sink, str):
            self._sink.close()
        bounds = self._bounds.items()
        stats = {
            "numRecords": self._row_count,
            "minValues": {name: bound.lowest() for name, bound in bounds if bound.minimum is not None},
            "maxValues": {name: bound.highest() for name, bound in bounds if bound.maximum is not None},
            "nullCount": {name: bound.nulls for name, bound in bounds},
        }
        return AddedFile(
            self._spec.name,
            self._file.name,
            self._store.size_bytes(self._file),
            self._row_count,
            time.time_ns() // 1_000_000,
            orjson.dumps(stats).decode(),
        )

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._batches, self._spec.arrow_schema)
        self._batches, self._waiting_rows = [], 0
        if not table.num_rows:
            return
        check(self._spec, table)
        if self._spec.ordered_by is not None:
            table = table.sort_by(self._spec.ordered_by)
        try:
            self._writer.write_table(table, row_group_size=max(_GROUP_ROWS, -(-table.num_rows // _GROUPS)))
        except pa.ArrowInvalid as problem:
            raise ConstraintBroken(f"{self._spec.full_name}: {problem}") from problem
        self._row_count += table.num_rows
        for name, bound in self._bounds.items():
            bound.see(table.column(name))


class _Bounds:
    """Minimum, maximum and null count of a column, for file statistics."""

    def __init__(self) -> None:
        self.minimum: Any = None
        self.maximum: Any = None
        self.nulls = 0

    def see(self, column: pa.ChunkedArray) -> None:
        self.nulls += column.null_count
        extremes = pc.min_max(column).as_py()
        if extremes["min"] is not None:
            self.minimum = extremes["min"] if self.minimum is None else min(self.minimum, extremes["min"])
            self.maximum = extremes["max"] if self.maximum is None else max(self.maximum, extremes["max"])

    def lowest(self) -> Any:
        """Return the lower bound for statistics: not above any value."""
        if isinstance(self.minimum, str):
            return self.minimum[:_STATS_CHARS]
        return _truncate_instant(self.minimum)

    def highest(self) -> Any:
        """Return the upper bound for statistics: not below any value. A truncated text is raised above its prefix."""
        if isinstance(self.maximum, str):
            cut = self.maximum[:_STATS_CHARS]
            return cut if cut == self.maximum else cut + "\U0010ffff"
        return _truncate_instant(self.maximum)


def _truncate_instant(value: Any) -> Any:
    """Return a timestamp as text truncated to milliseconds, as Delta's statistics require. Other values unchanged."""
    if not isinstance(value, datetime):
        return value
    return (_EPOCH + (value - _EPOCH) // _MILLISECOND * _MILLISECOND).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def check(spec: TableSpec, table: pa.Table) -> None:
    """Check the CHECK constraints of rows. As in Delta, null breaks a condition.

    Raises:
        ConstraintBroken: with the constraint and the values of one row that breaks it.
    """
    if not spec.checks:
        return
    words = {word for condition in spec.checks.values() for word in _WORD.findall(condition)}
    names = [name for name in spec.column_names if name in words]
    columns = [_make_comparable(table.column(name)) for name in names]
    rows = set(zip(*[column.to_pylist() for column in columns], strict=True))
    database = sqlite3.connect(":memory:")
    try:
        database.execute(f"CREATE TABLE checked ({', '.join(names)})")
        database.executemany(f"INSERT INTO checked VALUES ({', '.join('?' * len(names))})", rows)
        for constraint, condition in spec.checks.items():
            broken = database.execute(f"SELECT * FROM checked WHERE NOT coalesce(({condition}), 0) LIMIT 1").fetchone()
            if broken is not None:
                values = ", ".join(f"{name} {value!r}" for name, value in zip(names, broken, strict=True))
                raise ConstraintBroken(
                    f"{spec.full_name}: CHECK constraint {constraint} ({condition}) broken: {values}"
                )
    finally:
        database.close()


def _make_comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        # What is asked of these is only whether they are there.
        return pc.if_else(pc.is_valid(column), True, None)
    return column


def make_files_writer(
    root: Place, specs: Mapping[str, TableSpec], blobs: Callable[[Batches], Batches] | None = None
) -> Callable[[Batches], Batches]:
    """Return a ``mapInArrow`` function that writes serialized rows of several tables and returns files
    (`ADDED_SCHEMA`).

    Args:
        root: the lake's folder, as tasks see it.
        specs: tables to write, by name. Rows of other tables are dropped.
        blobs: applied to the serialized rows first. None to write them unchanged.
    """

    def write(batches: Batches) -> Batches:
        writers: dict[str, TableWriter] = {}
        for batch in blobs(batches) if blobs else batches:
            for name, blob in zip(batch.column("table").to_pylist(), batch.column("rows"), strict=True):
                if name not in specs:
                    continue
                writer = writers.get(name)
                if writer is None:
                    spec = specs[name]
                    writer = writers[name] = TableWriter(root / spec.layer / spec.name, spec)
                with pa.ipc.open_stream(blob.as_buffer()) as stream:
                    for rows in stream:
                        writer.write(rows)
        files = [writer.close()._asdict() for writer in writers.values()]
        if files:
            yield pa.RecordBatch.from_pylist(files, ADDED_SCHEMA)

    return write


def make_rows_writer(root: Place, spec: TableSpec, rows: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """Return a ``mapInArrow`` function that writes the output rows of `rows` to one table and returns the file.

    Args:
        root: the lake's folder, as tasks see it.
    """

    def write(batches: Batches) -> Batches:
        writer = None
        for batch in rows(batches):
            writer = writer or TableWriter(root / spec.layer / spec.name, spec)
            writer.write(batch)
        if writer is not None:
            yield pa.RecordBatch.from_pylist([writer.close()._asdict()], ADDED_SCHEMA)

    return write


def make_cast(spec: TableSpec) -> Callable[[Batches], Batches]:
    """Return a function for `make_rows_writer` that casts Spark rows to the declared types."""
    schema = spec.arrow_schema

    def declare(batches: Batches) -> Batches:
        for batch in batches:
            columns = [column.cast(column_type) for column, column_type in zip(batch, schema.types, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return declare


def write_rows(folder: Place, spec: TableSpec, table: pa.Table) -> list[AddedFile]:
    """Write rows of the driver as one file of a table. No file without rows."""
    if not table.num_rows:
        return []
    writer = TableWriter(folder, spec)
    for batch in table.to_batches():
        writer.write(batch)
    return [writer.close()]
