"""Which files of a table may hold a row that a condition names, by the statistics in its log. Pure; opens no file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from highwater.pipelines.lake.delta_log import LiveFile

#: Delta cuts instants in statistics to milliseconds.
_CUT: Final = timedelta(milliseconds=1)


def select_files(schema: pa.Schema, files: Sequence[LiveFile], where: pc.Expression | None) -> list[LiveFile]:
    """Return the files that may contain a matching row, by their statistics. Arrow evaluates the filter.

    Args:
        schema: the table's columns.
        where: filter. None matches all rows.
    """
    if where is None or not files:
        return list(files)
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    form, nowhere = ds.ParquetFileFormat(), LocalFileSystem()
    numbers = {str(number): file for number, file in enumerate(files)}
    fragments = [
        form.make_fragment(number, nowhere, partition_expression=_describe_file(schema, file))
        for number, file in numbers.items()
    ]
    dataset = ds.FileSystemDataset(fragments, schema, form)
    return [numbers[fragment.path] for fragment in dataset.get_fragments(where)]


def _describe_file(schema: pa.Schema, file: LiveFile) -> pc.Expression:
    """Return the expression that holds for each row of a file with these statistics (Delta's PROTOCOL.md)."""
    return reduce(and_, _describe_columns(schema, file), pc.scalar(True))


def _describe_columns(schema: pa.Schema, file: LiveFile) -> Iterator[pc.Expression]:
    for name in schema.names:
        column, kind, nulls = pc.field(name), schema.field(name).type, file.nulls.get(name)
        bounds = []
        if (least := _make_scalar(kind, file.lowest.get(name))) is not None:
            bounds.append(column >= least)
        if (greatest := _make_scalar(kind, file.highest.get(name), _CUT)) is not None:
            bounds.append(column <= greatest)
        if nulls is not None and nulls == file.rows:
            yield column.is_null()
        elif bounds:
            span = reduce(and_, bounds)
            yield span if nulls == 0 else span | column.is_null()


def _make_scalar(kind: pa.DataType, value: Any, cut: timedelta = timedelta(0)) -> pa.Scalar | None:
    if isinstance(value, datetime):
        return pa.scalar(value + cut, kind)
    return pa.scalar(value, kind) if isinstance(value, int | str) else None
