"""Change feed of a commit that replaces files: the rows that differ, and no others.

Files that are replaced hold mostly rows that are in the new ones too. Without a file of changes Delta's readers take
all of the old rows for deleted and all of the new ones for inserted (PROTOCOL.md, "Add CDC File").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.lake.delta_log import LiveFile
from highwater.pipelines.lake.parquet import ParquetPiece, read_pieces, select_schema
from highwater.pipelines.lake.row_parts import Wanted
from highwater.pipelines.lake.table_files import AddedFile
from highwater.pipelines.lake.table_queries import answer
from highwater.pipelines.storage.place import Place
from highwater.pipelines.storage.store import store_of
from highwater.schemas.table import TableSpec

CHANGE_TYPE: Final = "_change_type"
#: Rows that take less than this all together are compared: half a million findings.
COMPARED_BYTES: Final = 64_000_000
_FOLDER: Final = "_change_data"


def find_changes(
    folder: Place,
    spec: TableSpec,
    files: Sequence[AddedFile],
    gone: Sequence[LiveFile],
    stays: Wanted | None = None,
) -> pa.Table | None:
    """Return the rows in which new files differ from replaced ones, for Delta's change feed.

    None if all rows are new, or if there are too many to compare.

    Args:
        gone: replaced files of the table.
        stays: selects rows that the new files repeat unchanged. None if none are.
    """
    size_bytes = sum(file.size_bytes for file in files) + (0 if stays else sum(file.size_bytes for file in gone))
    if not gone or size_bytes > COMPARED_BYTES:
        return None
    old = _read_batches(folder, spec, [file.path for file in gone], stays)
    return compare_rows(spec, old, _read_batches(folder, spec, [file.path for file in files]))


def _read_batches(
    folder: Place, spec: TableSpec, paths: Sequence[str], stays: Wanted | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, without those that `stays` selects."""
    batches = (
        batch for path in paths for batch in read_pieces(spec, ParquetPiece(folder / path, 0), spec.column_names)
    )
    return batches if stays is None else (batch.filter(pc.invert(stays.of(batch))) for batch in batches)


def compare_rows(spec: TableSpec, old: Iterable[pa.RecordBatch], new: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return rows in which two tables differ, with the type of change.

    Returns:
        The columns of the table and `CHANGE_TYPE`: ``insert``, ``delete``, and for a key that is in both
        ``update_preimage`` and ``update_postimage``.
    """
    schema = select_schema(spec, spec.column_names)
    old_rows, new_rows = (
        pa.Table.from_batches((batch.cast(schema) for batch in batches), schema) for batches in (old, new)
    )
    names = ", ".join(f'"{name}"' for name in spec.column_names)
    rows = answer(_differences(names, spec.keys), old_rows=old_rows, new_rows=new_rows)
    return rows.cast(_build_schema(spec))


def _differences(names: str, keys: Sequence[str]) -> str:
    same_key = " AND ".join(f'gone."{key}" IS NOT DISTINCT FROM come."{key}"' for key in keys)
    return f"""
        WITH gone AS (SELECT {names} FROM old_rows EXCEPT ALL SELECT {names} FROM new_rows),
             come AS (SELECT {names} FROM new_rows EXCEPT ALL SELECT {names} FROM old_rows)
        SELECT *, CASE WHEN EXISTS (SELECT 1 FROM come WHERE {same_key})
                  THEN 'update_preimage' ELSE 'delete' END AS {CHANGE_TYPE} FROM gone
        UNION ALL
        SELECT *, CASE WHEN EXISTS (SELECT 1 FROM gone WHERE {same_key})
                  THEN 'update_postimage' ELSE 'insert' END AS {CHANGE_TYPE} FROM come
    """


def write_changes(folder: Place, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """Write changed rows below a table's folder. Return the entry for Delta's log."""
    import pyarrow.parquet as pq

    store, file = store_of(folder), folder / _FOLDER / f"cdc-{uuid4()}.zstd.parquet"
    store.make_folder(folder / _FOLDER)
    sink = store.open_arrow_sink(file)
    with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
        for batch in batches:
            writer.write_batch(batch)
    if not isinstance(sink, str):
        sink.close()
    path = f"{_FOLDER}/{file.name}"
    return {"cdc": {"path": path, "partitionValues": {}, "size": store.size_bytes(file), "dataChange": False}}


def write_deletions(folder: Place, spec: TableSpec, paths: Sequence[str], stays: Wanted) -> dict[str, Any]:
    """Write the rows of files that `stays` does not select as deleted. Return the entry for Delta's log."""
    schema = _build_schema(spec)

    def mark_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.append_column(CHANGE_TYPE, pa.array(["delete"] * rows.num_rows, pa.string())).cast(schema)

    return write_changes(folder, schema, map(mark_rows, _read_batches(folder, spec, paths, stays)))


def _build_schema(spec: TableSpec) -> pa.Schema:
    return pa.schema([*spec.arrow_schema, pa.field(CHANGE_TYPE, pa.string(), nullable=False)])
