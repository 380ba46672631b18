"""Rows that take the place of those with their keys, worked out by DuckDB in the driver's process: no query of Spark's.

Delta's own MERGE is half a dozen queries, however few the rows, and writes them in no order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.lake.dated import Wanted
from pipelines.lake.parquet import Piece, columns_schema, read_pieces
from pipelines.lake.table_queries import answer
from schemas.table import TableSpec

#: By column, the instant from which on the rows of a table are looked at.
Since = Mapping[str, datetime]
_NUMBER = "_number"


def from_instants(since: Since) -> pc.Expression | None:
    """Rows that a merge looks at."""
    condition = None
    for name, time in since.items():
        within = pc.field(name) >= pa.scalar(time, pa.timestamp("us", "UTC"))
        condition = within if condition is None else condition & within
    return condition


def differing(spec: TableSpec, pieces: Sequence[Piece], rows: pa.Table, since: Since) -> pa.Table:
    """Of new rows those that a table does not hold as they are.

    Args:
        pieces: of the table's files.
        rows: with distinct keys.
        since: older rows of the table count as none.
    """
    where = from_instants(since)
    batches = (batch for piece in pieces for batch in read_pieces(spec, piece, spec.column_names, where))
    old = pa.Table.from_batches(batches, columns_schema(spec, spec.column_names))
    others = [name for name in spec.column_names if name not in spec.keys]
    same = " AND ".join([_alike(spec.keys), *(f'old."{name}" IS NOT DISTINCT FROM new."{name}"' for name in others)])
    return rows.take(_numbers(f"SELECT new.{_NUMBER} FROM new ANTI JOIN old ON {same}", old, rows))


def common_keys(
    spec: TableSpec, old: Sequence[Piece], new: Sequence[Piece], searched: pc.Expression | None
) -> pa.Table:
    """Keys of rows of a table, as far as a condition names them, that new rows have too; these stream by.

    Args:
        old: of the table's files.
        new: of the files of the new rows.
    """
    keys = columns_schema(spec, spec.keys)
    batches = (batch for piece in old for batch in read_pieces(spec, piece, spec.keys, searched))
    there = pa.Table.from_batches(batches, keys)
    query = f"SELECT new.{_NUMBER} FROM new SEMI JOIN old ON {_alike(spec.keys)}"
    given = (pa.Table.from_batches([batch]) for piece in new for batch in read_pieces(spec, piece, spec.keys))
    return pa.concat_tables([keys.empty_table(), *(rows.take(_numbers(query, there, rows)) for rows in given)])


def but_for_keys(spec: TableSpec, rows: pa.Table, since: Since) -> Wanted:
    """Rows of a table that stay beside new ones."""
    return partial(_is_of_no_key, keys=rows.select(list(spec.keys)), since=dict(since))


def _is_of_no_key(rows: pa.RecordBatch, keys: pa.Table, since: Since) -> pa.Array:
    old = pa.Table.from_batches([rows])
    begun = [f"old.\"{name}\" >= TIMESTAMPTZ '{time:%Y-%m-%d %H:%M:%S.%f}+00'" for name, time in since.items()]
    same = " AND ".join([_alike(keys.column_names), *begun])
    gone = _numbers(f"SELECT old.{_NUMBER} FROM old SEMI JOIN new ON {same}", old, keys)
    return pc.invert(pc.is_in(pa.array(range(rows.num_rows), pa.int64()), value_set=gone))


def _alike(keys: Sequence[str]) -> str:
    return " AND ".join(f'old."{key}" IS NOT DISTINCT FROM new."{key}"' for key in keys)


def _numbers(query: str, old: pa.Table, new: pa.Table) -> pa.Array:
    """Numbers of rows that a query gives, ascending."""
    tables = {name: rows.append_column(_NUMBER, _counted(rows)) for name, rows in (("old", old), ("new", new))}
    numbers: Any = answer(query, **tables).column(0).combine_chunks()
    return numbers.take(pc.sort_indices(numbers))


def _counted(rows: pa.Table) -> pa.Array:
    return pa.array(range(rows.num_rows), pa.int64())
