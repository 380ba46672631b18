"""Rows of Parquet files of a table, for tasks and for what the driver reads itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.storage.place import Place
from pipelines.storage.store import store_of

if TYPE_CHECKING:
    from schemas.table import TableSpec

#: A file of more bytes is read by several tasks: log text shrinks to a thirtieth in a table.
PIECE_BYTES = 16_000_000
#: Rows of a batch.
BATCH_ROWS = 32_768


def read_files(
    spec: TableSpec, files: Iterable[Place], columns: Sequence[str], where: pc.Expression | None = None
) -> pa.Table:
    """Columns of all rows, or of those that a condition names, in the declared types; what a file lacks is null.

    Args:
        files: of the table.
        columns: some of the table's.
        where: over any of the table's columns.
    """
    schema, files = columns_schema(spec, columns), list(files)
    if not files:
        return schema.empty_table()
    read = (batch for file in files for batch in read_pieces(spec, Piece(file, 0), columns, where))
    return pa.Table.from_batches(read, schema)


def scanned(files: Iterable[Place]) -> Any:
    """A dataset over the files of a table in a store, for readers that take one; a column that a file lacks is null."""
    import pyarrow.dataset as ds

    form = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    fragments = [form.make_fragment(store_of(file).arrow_source(file)) for file in files]
    schema = pa.unify_schemas([fragment.physical_schema for fragment in fragments])
    return ds.FileSystemDataset(fragments, schema, form)


class Stored(NamedTuple):
    """A data file of a table."""

    place: Place
    size_bytes: int


class Piece(NamedTuple):
    """Some row groups of a Parquet file; all if None."""

    place: Place
    size_bytes: int
    row_groups: tuple[int, ...] | None = None


def pieces_of(file: Stored) -> list[Piece]:
    """Pieces of a file that a task each can read; a small file, which is not looked into, is one."""
    place, size_bytes = file
    if size_bytes <= PIECE_BYTES:
        return [Piece(place, size_bytes)]
    import pyarrow.parquet as pq

    groups = pq.read_metadata(store_of(place).arrow_source(place)).num_row_groups
    count = min(groups, size_bytes // PIECE_BYTES + 1)
    bounds = [groups * number // count for number in range(count + 1)]
    return [Piece(place, size_bytes // count, tuple(range(begin, end))) for begin, end in pairwise(bounds)]


def read_pieces(
    spec: TableSpec, piece: Piece, columns: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """Columns of the rows of a piece, by the batch, in the declared types; what a file does not have is null.

    Args:
        where: rows that are given; row groups are skipped by their statistics.
    """
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    file_format = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    source = store_of(piece.place).arrow_source(piece.place)
    local = LocalFileSystem() if isinstance(source, str) else None
    fragment = file_format.make_fragment(source, local, row_groups=piece.row_groups)
    there, schema = fragment.physical_schema, columns_schema(spec, columns)
    # What the file lacks is null, also to a filter; and its instants may be of a type without a time zone (INT96).
    declared = columns_schema(spec, spec.column_names)
    fields = [there.field(name) if _is_plain(there, name) else declared.field(name) for name in declared.names]
    batches = fragment.to_batches(
        schema=pa.schema(fields),
        columns=list(columns),
        filter=where,
        batch_size=BATCH_ROWS,
        use_threads=False,
    )
    for batch in batches:
        if batch.num_rows:
            # The items of arrays are named by who wrote the file.
            yield batch.cast(schema)


def _is_plain(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and not pa.types.is_timestamp(schema.field(name).type)


def columns_schema(spec: TableSpec, columns: Sequence[str]) -> pa.Schema:
    """Declared types of some columns; what was read may hold nulls whatever the declaration."""
    return pa.schema([spec.arrow_schema.field(name).with_nullable(True) for name in columns])
