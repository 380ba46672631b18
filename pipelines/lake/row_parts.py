"""Some rows of a table: parts of its files, read and written by Arrow, without a query.

A row's date is the greatest instant in the columns that its table is dated by (`schemas.table.TableSpec.dated_by`). One
without any, such as a window that lasts still, has none, and is younger than any instant. Each cluster has an
instant of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import look_up
from highwater.pipelines.lake.clusters import ClusterInstants
from highwater.pipelines.lake.parquet import ParquetPiece, Stored, count_rows, read_pieces, select_pieces, split_file
from highwater.pipelines.lake.table_files import AddedFile, TableWriter, make_cast
from highwater.pipelines.lake.table_queries import answer
from highwater.pipelines.storage.place import Place
from highwater.schemas.table import TableSpec


class Wanted(NamedTuple):
    """A selection of rows: the columns that it needs, and a function from a batch to a mask."""

    columns: tuple[str, ...]  #: what is looked at
    of: Callable[[pa.RecordBatch], pa.Array]  #: booleans, for a batch with these columns at least

    def invert(self) -> Wanted:
        """Return the complement of this selection."""
        return Wanted(self.columns, lambda rows: pc.invert(self.of(rows)))

    def beside(self, other: Wanted) -> Wanted:
        """Return the union of both selections."""
        columns = tuple(dict.fromkeys((*self.columns, *other.columns)))
        return Wanted(columns, lambda rows: pc.or_(self.of(rows), other.of(rows)))


class RowPart(NamedTuple):
    """The selected rows of some files."""

    whole: tuple[str, ...]  #: files that have no other rows, by their paths in the table's folder
    mixed: tuple[str, ...]  #: files that have others, too
    #: files that were written of the wanted rows of those; no version of the table has them yet
    written: tuple[AddedFile, ...]
    rows_left_out: int  #: rows of the files that are not wanted


def split_rows(
    folder: Place, spec: TableSpec, paths: Sequence[str], wanted: Wanted, searched: pc.Expression | None = None
) -> RowPart:
    """Split the files of a table by a selection. Files with selected and other rows are rewritten without the others.

    Args:
        paths: files, relative to the table's folder.
        searched: filter for rows that may be unselected. Files without any are not read.
    """
    whole, mixed, written, left_out = [], [], [], 0
    for path in paths:
        file = Stored(folder / path, 0)
        pieces = split_file(file) if searched is None else select_pieces(spec, file, searched)
        masks = [wanted.of(batch) for piece in pieces for batch in read_pieces(spec, piece, wanted.columns)]
        row_count, chosen = sum(map(len, masks)), sum(pc.sum(mask).as_py() or 0 for mask in masks)
        left_out += row_count - chosen
        if chosen == row_count:
            whole.append(path)
        elif chosen or row_count < count_rows(file.place):
            mixed.append(path)
            written.append(_write_wanted(folder, spec, path, wanted))
    return RowPart(tuple(whole), tuple(mixed), tuple(written), left_out)


def count_wanted(folder: Place, spec: TableSpec, paths: Sequence[str], wanted: Wanted) -> int:
    """Return the number of selected rows in files."""
    batches = (batch for path in paths for batch in read_pieces(spec, ParquetPiece(folder / path, 0), wanted.columns))
    return sum(pc.sum(wanted.of(batch)).as_py() or 0 for batch in batches)


def _write_wanted(folder: Place, spec: TableSpec, path: str, wanted: Wanted) -> AddedFile:
    writer = TableWriter(folder, spec)
    rows = (
        batch.filter(wanted.of(batch)) for batch in read_pieces(spec, ParquetPiece(folder / path, 0), spec.column_names)
    )
    for batch in make_cast(spec)(rows):
        writer.write(batch)
    return writer.close()


def has_closed_days(spec: TableSpec, instants: ClusterInstants) -> bool:
    """Return True if a table may have rows of closed days, which no run changes."""
    return spec.layer == "gold" and bool(spec.dated_by and instants.latest_us)


def select_old(spec: TableSpec, instants: ClusterInstants) -> Wanted:
    """Return a selection of rows older than the time of their cluster."""

    def mask_old(rows: pa.RecordBatch) -> pa.Array:
        date = pc.max_element_wise(*(rows.column(name).cast(pa.int64()) for name in spec.dated_by))
        since = pc.fill_null(look_up(instants.by_cluster, rows.column("cluster_id"), pa.int64()), instants.others_us)
        return pc.fill_null(pc.less(date, since), False)

    return Wanted(("cluster_id", *spec.dated_by), mask_old)


def leave_out_part(part: pc.Expression, columns: Sequence[str]) -> Wanted:
    """Return a selection of rows that do not match a filter.

    Args:
        columns: columns that the filter uses, and possibly others.
    """

    def mask_kept(rows: pa.RecordBatch) -> pa.Array:
        within = rows.append_column("_number", _number_rows(rows)).filter(part)
        return pc.invert(pc.is_in(_number_rows(rows), value_set=within.column("_number")))

    return Wanted(tuple(columns), mask_kept)


def leave_out_keys(keys: pa.Table, by: str | None = None, since: datetime | None = None) -> Wanted:
    """Return a selection of rows whose keys are not in `keys`, matched by DuckDB on the driver.

    Args:
        by: timestamp column. Rows before `since` are selected whatever their keys. None checks all rows.
    """
    same = [f'old."{key}" IS NOT DISTINCT FROM new."{key}"' for key in keys.column_names]
    begun = [] if by is None else [f"old.\"{by}\" >= TIMESTAMPTZ '{since:%Y-%m-%d %H:%M:%S.%f}+00'"]
    query = f"SELECT old._number FROM old SEMI JOIN new ON {' AND '.join([*same, *begun])}"

    def mask_kept(rows: pa.RecordBatch) -> pa.Array:
        old = pa.Table.from_batches([rows.append_column("_number", _number_rows(rows))])
        return pc.invert(pc.is_in(_number_rows(rows), value_set=answer(query, old=old, new=keys).column("_number")))

    return Wanted(tuple(dict.fromkeys((*keys.column_names, *([] if by is None else [by])))), mask_kept)


def _number_rows(rows: pa.RecordBatch) -> pa.Array:
    return pa.array(range(rows.num_rows), pa.int64())
