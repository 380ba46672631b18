"""What a table's change feed tells of a commit that replaces files: rows that differ, and no others.

Files that are replaced hold mostly rows that are in the new ones too. Without a file of changes Delta's readers take
all of the old rows for deleted and all of the new ones for inserted (PROTOCOL.md, "Add CDC File").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.lake.dated import Wanted
from pipelines.lake.delta_log import DataFile, read_log
from pipelines.lake.parquet import Piece, columns_schema, read_pieces
from pipelines.lake.table_files import AddedFile
from pipelines.lake.table_queries import answer
from pipelines.storage.place import Place
from pipelines.storage.store import store_of
from schemas.table import TableSpec

CHANGE_TYPE: Final = "_change_type"
#: Rows that take less than this all together are compared: half a million findings.
COMPARED_BYTES: Final = 64_000_000
_FOLDER: Final = "_change_data"


def changes_of(
    folder: Place,
    spec: TableSpec,
    files: Sequence[AddedFile],
    staying: Collection[str],
    stays: Wanted | None = None,
) -> pa.Table | None:
    """Rows in which new files differ from those that they replace; None where all are new, or they are large.

    Args:
        staying: files of the table that are not replaced, by their paths in its folder.
        stays: rows of the others that are in new files as they are, beside these files; None: none is.
    """
    old = [file for file in read_log(folder).files if file.path not in staying]
    size_bytes = sum(file.size_bytes for file in (*files, *(() if stays else old)))
    if not old or size_bytes > COMPARED_BYTES:
        return None
    gone = (batch.filter(pc.invert(stays(batch))) if stays else batch for batch in _batches(folder, spec, old))
    return changed_rows(spec, gone, _batches(folder, spec, files))


def _batches(folder: Place, spec: TableSpec, files: Sequence[AddedFile | DataFile]) -> Iterator[pa.RecordBatch]:
    return (batch for file in files for batch in read_pieces(spec, Piece(folder / file.path, 0), spec.column_names))


def changed_rows(spec: TableSpec, old: Iterable[pa.RecordBatch], new: Iterable[pa.RecordBatch]) -> pa.Table:
    """Rows in which two tables differ, with what became of each.

    Returns:
        The columns of the table and `CHANGE_TYPE`: ``insert``, ``delete``, and for a key that is in both
        ``update_preimage`` and ``update_postimage``.
    """
    schema = columns_schema(spec, spec.column_names)
    old_rows, new_rows = (
        pa.Table.from_batches((batch.cast(schema) for batch in batches), schema) for batches in (old, new)
    )
    names = ", ".join(f'"{name}"' for name in spec.column_names)
    rows = answer(_differences(names, spec.keys), old_rows=old_rows, new_rows=new_rows)
    return rows.cast(_fed_schema(spec))


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


def change_action(folder: Place, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """Write changed rows below a table's folder; gives the action of Delta's log that names their file."""
    import pyarrow.parquet as pq

    store, file = store_of(folder), folder / _FOLDER / f"cdc-{uuid4()}.zstd.parquet"
    store.make_folder(folder / _FOLDER)
    sink = store.arrow_sink(file)
    with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
        for batch in batches:
            writer.write_batch(batch)
    if not isinstance(sink, str):
        sink.close()
    path = f"{_FOLDER}/{file.name}"
    return {"cdc": {"path": path, "partitionValues": {}, "size": store.size_bytes(file), "dataChange": False}}


def deletions(folder: Place, spec: TableSpec, paths: Sequence[str], wanted: Wanted) -> dict[str, Any]:
    """The action for rows of files that are deleted, while those that are wanted stay."""
    batches = (batch for path in paths for batch in read_pieces(spec, Piece(folder / path, 0), spec.column_names))
    gone = (batch.filter(pc.invert(wanted(batch))) for batch in batches)
    schema = _fed_schema(spec)
    return change_action(folder, schema, (_deleted(rows).cast(schema) for rows in gone))


def _deleted(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.append_column(CHANGE_TYPE, pa.array(["delete"] * rows.num_rows, pa.string()))


def _fed_schema(spec: TableSpec) -> pa.Schema:
    return pa.schema([*spec.arrow_schema, pa.field(CHANGE_TYPE, pa.string(), nullable=False)])
