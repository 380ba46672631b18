"""Rows of Parquet files of a table, for tasks and for what the driver reads itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.errors import InputError
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of

if TYPE_CHECKING:
    from highwater.schemas.table import TableSpec

#: A file of more bytes is read by several tasks: log text shrinks to a thirtieth in a table.
PIECE_BYTES = 16_000_000
#: In files above this size, and in this many files of a table at most, row groups are selected by the condition: a
#: file may hold the last hours of a table and all earlier ones.
_LOOKED_INTO_BYTES = 1_000_000
_LOOKED_INTO_MAX = 64
#: Rows of a batch.
BATCH_ROWS = 32_768
_SHOWN_CHARS = 80


def read_files(
    spec: TableSpec, files: Iterable[Place], columns: Sequence[str], where: pc.Expression | None = None
) -> pa.Table:
    """Return columns of the rows that match `where`, in the declared types. Missing columns are null.

    Args:
        files: files of the table.
        columns: columns to return.
        where: filter over any of the table's columns. None selects all rows.
    """
    schema, files = select_schema(spec, columns), list(files)
    if not files:
        return schema.empty_table()
    read = (batch for file in files for batch in read_pieces(spec, ParquetPiece(file, 0), columns, where))
    return pa.Table.from_batches(read, schema)


def scan_files(files: Iterable[Place]) -> Any:
    """Return an Arrow dataset over files of a table in a store. Missing columns are null."""
    import pyarrow.dataset as ds

    fragments, schemas = [], []
    for file in files:
        with translate_read_errors(file):
            fragments.append(_open_fragment(file))
            schemas.append(fragments[-1].physical_schema)
            schema = pa.unify_schemas(schemas)
    return ds.FileSystemDataset(fragments, schema, fragments[0].format, fragments[0].filesystem)


class Stored(NamedTuple):
    """A data file of a table."""

    place: Place
    size_bytes: int


class ParquetPiece(NamedTuple):
    """Some row groups of a Parquet file. `row_groups` None means all."""

    place: Place
    size_bytes: int
    row_groups: tuple[int, ...] | None = None


def split_file(file: Stored) -> list[ParquetPiece]:
    """Return pieces of a file, each for one task. A small file is one piece and is not opened."""
    place, size_bytes = file
    if size_bytes <= PIECE_BYTES:
        return [ParquetPiece(place, size_bytes)]
    import pyarrow.parquet as pq

    with translate_read_errors(place):
        groups = pq.read_metadata(store_of(place).open_arrow_source(place)).num_row_groups
    return _cut(place, size_bytes, range(groups))


def count_rows(place: Place) -> int:
    """Return the number of rows in a file."""
    import pyarrow.parquet as pq

    with translate_read_errors(place):
        return int(pq.read_metadata(store_of(place).open_arrow_source(place)).num_rows)


def has_values(file: Place, column: str) -> bool:
    """Return True if a column, whatever its case, has a value that is not null.

    Raises:
        InputError: the file is missing or damaged.
    """
    import pyarrow.parquet as pq

    with translate_read_errors(file), pq.ParquetFile(store_of(file).open_arrow_source(file)) as opened:
        names = [name for name in opened.schema_arrow.names if name.lower() == column]
        if not names:
            return False
        columns = opened.read(columns=names).columns
        return any(values.null_count < len(values) for values in columns)


def require_whole(file: Place) -> None:
    """Read a file to its end, to detect damage.

    Raises:
        InputError: the file is missing or damaged.
    """
    with translate_read_errors(file):
        for batch in _open_fragment(file).to_batches(batch_size=BATCH_ROWS, use_threads=False, batch_readahead=1):
            batch.validate()


def _cut(place: Place, size_bytes: int, groups: Sequence[int]) -> list[ParquetPiece]:
    count = min(len(groups), size_bytes // PIECE_BYTES + 1)
    bounds = [len(groups) * number // count for number in range(count + 1)]
    return [ParquetPiece(place, size_bytes // count, tuple(groups[begin:end])) for begin, end in pairwise(bounds)]


def plan_pieces(spec: TableSpec, files: Sequence[Stored], where: pc.Expression | None) -> list[ParquetPiece]:
    """Return pieces of files, each for one task. Large files are limited to row groups that may match `where`."""
    large = [file for file in files if file.size_bytes > _LOOKED_INTO_BYTES]
    if where is None or len(large) > _LOOKED_INTO_MAX:
        return [piece for file in files for piece in split_file(file)]
    rest = [ParquetPiece(*file) for file in files if file.size_bytes <= _LOOKED_INTO_BYTES]
    return [*rest, *(piece for file in large for piece in select_pieces(spec, file, where))]


def select_pieces(spec: TableSpec, file: Stored, where: pc.Expression) -> list[ParquetPiece]:
    """Return pieces of the row groups that may match `where`, by their statistics."""
    place, size_bytes = file
    fragment = _open_fragment(place)
    with translate_read_errors(place):
        schema = _read_schema(spec, fragment.physical_schema)
        there = fragment.row_groups
        wanted = fragment.subset(where, schema=schema).row_groups if there else []
    share = sum(group.total_byte_size for group in wanted) / (sum(group.total_byte_size for group in there) or 1)
    return _cut(place, round(size_bytes * share), [group.id for group in wanted]) if wanted else []


def read_pieces(
    spec: TableSpec, piece: ParquetPiece, columns: Sequence[str], where: pc.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the matching rows of a piece in batches, in the declared types. Missing columns are null.

    Args:
        where: filter for rows; row groups are skipped by their statistics.
    """
    fragment, schema = _open_fragment(piece.place, piece.row_groups), select_schema(spec, columns)
    with translate_read_errors(piece.place):
        batches = fragment.to_batches(
            schema=_read_schema(spec, fragment.physical_schema),
            columns=list(columns),
            filter=where,
            batch_size=BATCH_ROWS,
            use_threads=False,
            # Sixteen batches ahead, as Arrow reads else, are half a gigabyte of log text, and no faster.
            batch_readahead=1,
        )
    while True:
        # Only Arrow's own work is in the block: what a caller raises is not about the file.
        with translate_read_errors(piece.place):
            batch = next(batches, None)
            if batch is None:
                return
            # The items of arrays are named by who wrote the file.
            rows = batch.cast(schema)
        if rows.num_rows:
            yield rows


@contextmanager
def translate_read_errors(file: Place) -> Iterator[None]:
    """Convert Arrow's errors about a missing, truncated or unexpected data file.

    Raises:
        InputError: names the file.
    """
    try:
        yield
    except (FileNotFoundError, pa.ArrowException, OSError) as error:
        # Arrow has no number for damage. With one, the system refuses a file: permissions, limits.
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno not in (None, ENOENT)):
            raise
        said = ascii(str(error).partition("\n")[0][:_SHOWN_CHARS])[1:-1]
        missing = isinstance(error, FileNotFoundError)
        problem = "is missing" if missing else f"cannot be read as a file of its table ({said})"
        raise InputError(file, problem, "restore it, or audit into a new lake") from error


def _open_fragment(place: Place, row_groups: Sequence[int] | None = None) -> Any:
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    source = store_of(place).open_arrow_source(place)
    local = LocalFileSystem() if isinstance(source, str) else None
    file_format = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    return file_format.make_fragment(source, local, row_groups=row_groups)


def _read_schema(spec: TableSpec, there: pa.Schema) -> pa.Schema:
    """Return the schema for reading a file: declared types for missing columns, so that a filter sees null.

    Timestamps may be of a type without a time zone (INT96).
    """
    declared = select_schema(spec, spec.column_names)
    return pa.schema([there.field(name) if _is_plain(there, name) else declared.field(name) for name in declared.names])


def _is_plain(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and not pa.types.is_timestamp(schema.field(name).type)


def select_schema(spec: TableSpec, columns: Sequence[str]) -> pa.Schema:
    """Return the declared types of some columns, all nullable."""
    return pa.schema([spec.arrow_schema.field(name).with_nullable(True) for name in columns])
