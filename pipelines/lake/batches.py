"""Rows of tables that the driver reads itself, without a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.parquet import Stored, pieces_of, read_pieces
from highwater.schemas.table import TableSpec


def small_rows(lake: Lake, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> list[dict[str, Any]]:
    """Return rows of a small table as dicts; instants in microseconds."""
    return list(dicts(lake.rows(spec, *dict.fromkeys(columns), where=where)))


def batches_of(
    lake: Lake,
    spec: TableSpec,
    columns: tuple[str, ...],
    where: pc.Expression | None = None,
    files: Sequence[Stored] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a table of any size, some at a time.

    Args:
        files: those that are read; all that may have such rows if None.
    """
    for piece in chain.from_iterable(map(pieces_of, lake.files(spec, where) if files is None else files)):
        yield from read_pieces(spec, piece, columns, where)
