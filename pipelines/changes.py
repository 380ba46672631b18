"""What a table's change feed tells of a commit that replaces files: rows that differ, and no others.

Files that are replaced hold mostly rows that are in the new ones too. Without a file of changes Delta's readers take
all of the old rows for deleted and all of the new ones for inserted (PROTOCOL.md, "Add CDC File").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from pipelines.delta_log import read_log
from pipelines.parquet import read_files
from pipelines.storage.place import Place
from pipelines.storage.store import store_of
from pipelines.table_files import AddedFile
from schemas.table import TableSpec

CHANGE_TYPE: Final = "_change_type"
#: Old and new files are compared if they are smaller than this all together: half a million findings.
COMPARED_BYTES: Final = 64_000_000
_FOLDER: Final = "_change_data"


def changes_of(folder: Place, spec: TableSpec, files: Sequence[AddedFile], staying: Collection[str]) -> pa.Table | None:
    """Rows in which new files differ from those that they replace; None where all are new, or they are large.

    Args:
        staying: files of the table that are not replaced, by their paths in its folder.
    """
    old = [file for file in read_log(folder).files if file.path not in staying]
    size_bytes = sum(file.size_bytes for file in old) + sum(file.size_bytes for file in files)
    if not old or size_bytes > COMPARED_BYTES:
        return None
    return changed_rows(spec, [folder / file.path for file in old], [folder / file.path for file in files])


def changed_rows(spec: TableSpec, old: Sequence[Place], new: Sequence[Place]) -> pa.Table:
    """Rows in which files differ, with what became of each.

    Returns:
        The columns of the table and `CHANGE_TYPE`: ``insert``, ``delete``, and for a key that is in both
        ``update_preimage`` and ``update_postimage``.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, files in (("old_rows", old), ("new_rows", new)):
            connection.register(name, read_files(spec, files, spec.column_names))
        names = ", ".join(f'"{name}"' for name in spec.column_names)
        rows = connection.sql(_differences(names, spec.keys)).to_arrow_table()
    fields = [*spec.arrow_schema, pa.field(CHANGE_TYPE, pa.string(), nullable=False)]
    return rows.cast(pa.schema(fields))


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


def change_action(folder: Place, rows: pa.Table) -> dict[str, Any]:
    """Write changed rows below a table's folder; gives the action of Delta's log that names their file."""
    import pyarrow.parquet as pq

    store, file = store_of(folder), folder / _FOLDER / f"cdc-{uuid4()}.zstd.parquet"
    store.make_folder(folder / _FOLDER)
    sink = store.arrow_sink(file)
    pq.write_table(rows, sink, compression="zstd", store_schema=False)
    if not isinstance(sink, str):
        sink.close()
    path = f"{_FOLDER}/{file.name}"
    return {"cdc": {"path": path, "partitionValues": {}, "size": store.size_bytes(file), "dataChange": False}}
