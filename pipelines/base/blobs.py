"""Rows of several tables in one stream. A blob is an Arrow IPC stream with rows of one table.

So one pass of a worker feeds tables with different columns. No Spark session here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from highwater.schemas.table import BINARY, BOOLEAN, DOUBLE, INT, INTS, LONG, LONGS, STRING, STRINGS

Batches = Iterator[pa.RecordBatch]

BLOB_SCHEMA = pa.schema([("table", pa.string()), ("row_count", pa.int64()), ("rows", pa.binary())])
#: The same in Spark.
BLOBS = StructType([StructField("table", STRING), StructField("row_count", LONG), StructField("rows", BINARY)])
#: Rows of one table in one blob. Bounds a worker's memory.
BLOB_ROWS_MAX = 20_000
#: Rows of logs repeat themselves: a tenth of the bytes to hand to the JVM and to keep there.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_TYPES = {
    "string": STRING,
    "int": INT,
    "long": LONG,
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "binary": BINARY,
    "array<int>": INTS,
    "array<long>": LONGS,
    "array<string>": STRINGS,
}


def shape(types: Mapping[str, str]) -> StructType:
    """Return the struct type of nullable columns with Spark type names."""
    return StructType([StructField(name, _TYPES[type_]) for name, type_ in types.items()])


def pack(table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Serialize rows of a table (Arrow IPC, zstd) as one row of `BLOB_SCHEMA`."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_COMPRESSED) as stream:
        stream.write_batch(batch)
    blob = sink.getvalue().to_pybytes()
    return pa.RecordBatch.from_pylist([{"table": table, "row_count": batch.num_rows, "rows": blob}], BLOB_SCHEMA)


def pack_all(table: str, batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield batches of one table, serialized as `pack` does."""
    for batch in batches:
        yield pack(table, batch)


def unpack(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Yield the deserialized rows of column ``rows``, which `pack` made. All must be of one table."""
    for batch in batches:
        for blob in batch.column("rows"):
            with pa.ipc.open_stream(blob.as_buffer()) as stream:
                yield from stream


def read_blobs(blobs: Iterable[tuple[str, bytes]]) -> defaultdict[str, list[dict[str, Any]]]:
    """Return the deserialized rows as dicts, by table. Only for small tables."""
    rows_of: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for table, rows in blobs:
        with pa.ipc.open_stream(rows) as stream:
            rows_of[table] += stream.read_all().to_pylist()
    return rows_of


class Tables:
    """Buffers rows of several tables and serializes them when enough are collected.

    Args:
        shapes: columns by table. Times are given in us.

    Attributes:
        full: serialized rows, not yet taken.
    """

    def __init__(self, shapes: Mapping[str, StructType]) -> None:
        self._schemas = {table: to_arrow_schema(columns, timezone="UTC") for table, columns in shapes.items()}
        self._names = {table: columns.names for table, columns in shapes.items()}
        self._rows: dict[str, list[Sequence[Any]]] = {table: [] for table in shapes}
        self.full: list[pa.RecordBatch] = []

    def add(self, table: str, row: Sequence[Any]) -> None:
        """Add the values of a row, in the order of the table's columns."""
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= BLOB_ROWS_MAX:
            self._fill(table)

    def add_named(self, table: str, row: Mapping[str, Any]) -> None:
        """Add a row by column names; missing columns are null."""
        self.add(table, list(map(row.get, self._names[table])))

    def take(self) -> Batches:
        """Yield and clear the serialized rows."""
        full, self.full = self.full, []
        yield from full

    def rest(self) -> Batches:
        """Serialize and yield all remaining rows."""
        for table, rows in self._rows.items():
            if rows:
                self._fill(table)
        yield from self.take()

    def _fill(self, table: str) -> None:
        rows, self._rows[table] = self._rows[table], []
        schema = self._schemas[table]
        columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
        self.full.append(pack(table, pa.RecordBatch.from_arrays(columns, schema=schema)))
