"""Rows of a table by their date: parts of its files, read and written by Arrow, without a query.

A row's date is the greatest instant in the columns that its table is dated by (`schemas.table.TableSpec.dated_by`). One
without any, such as a window that lasts still, has none, and is younger than any instant. Each cluster has an
instant of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import look_up
from pipelines.lake.clusters import ClusterInstants
from pipelines.lake.delta_log import read_log
from pipelines.lake.parquet import Piece, Stored, pieces_of, pieces_where, read_pieces, rows_of_file
from pipelines.lake.table_files import AddedFile, TableWriter, declared
from pipelines.storage.place import Place
from schemas.table import TableSpec

#: Which rows of a batch are wanted, as booleans.
Wanted = Callable[[pa.RecordBatch], pa.Array]


class Part(NamedTuple):
    """The wanted rows of some files."""

    whole: tuple[str, ...]  #: files that have no other rows, by their paths in the table's folder
    mixed: tuple[str, ...]  #: files that have others, too
    #: files that were written of the wanted rows of those; no version of the table has them yet
    written: tuple[AddedFile, ...]
    rows_left_out: int  #: rows of the files that are not wanted


def part_of(
    folder: Place,
    spec: TableSpec,
    paths: Sequence[str],
    wanted: Wanted,
    columns: Sequence[str],
    searched: pc.Expression | None = None,
) -> Part:
    """The wanted rows of files of a table. Only files of which some rows are wanted and some are not are written anew.

    Args:
        paths: of the files, in the table's folder.
        columns: what `wanted` looks at.
        searched: all rows but these are wanted, so what cannot have any of them is not read.
    """
    whole, mixed, written, left_out = [], [], [], 0
    for path in paths:
        file = Stored(folder / path, 0)
        pieces = pieces_of(file) if searched is None else pieces_where(spec, file, searched)
        masks = [wanted(batch) for piece in pieces for batch in read_pieces(spec, piece, columns)]
        row_count, chosen = sum(map(len, masks)), sum(pc.sum(mask).as_py() or 0 for mask in masks)
        left_out += row_count - chosen
        if chosen == row_count:
            whole.append(path)
        elif chosen or row_count < rows_of_file(file.place):
            mixed.append(path)
            written.append(_written(folder, spec, path, wanted))
    return Part(tuple(whole), tuple(mixed), tuple(written), left_out)


def rows_in(folder: Place, spec: TableSpec, paths: Sequence[str], wanted: Wanted, columns: Sequence[str]) -> int:
    """How many rows of files are wanted; nothing is written."""
    batches = (batch for path in paths for batch in read_pieces(spec, Piece(folder / path, 0), columns))
    return sum(pc.sum(wanted(batch)).as_py() or 0 for batch in batches)


def rows_left_out(folder: Place, spec: TableSpec, paths: Sequence[str], wanted: Wanted, columns: Sequence[str]) -> int:
    """How many rows `part_of` would leave out; nothing is written."""
    return rows_in(folder, spec, paths, lambda rows: pc.invert(wanted(rows)), columns)


def _written(folder: Place, spec: TableSpec, path: str, wanted: Wanted) -> AddedFile:
    writer = TableWriter(folder, spec)
    rows = (batch.filter(wanted(batch)) for batch in read_pieces(spec, Piece(folder / path, 0), spec.column_names))
    for batch in declared(spec)(rows):
        writer.write(batch)
    return writer.close()


def columns_of_date(spec: TableSpec) -> tuple[str, ...]:
    """Columns that `before` and `from_on` look at."""
    return ("cluster_id", *spec.dated_by)


def has_closed_days(spec: TableSpec, instants: ClusterInstants) -> bool:
    """Whether a table has rows of closed days, which stay whatever is written."""
    return spec.layer == "gold" and bool(spec.dated_by and instants.latest_us)


def before(spec: TableSpec, instants: ClusterInstants) -> Wanted:
    """Rows that are older than the instant of their cluster."""
    return partial(_is_before, names=spec.dated_by, instants=instants)


def from_on(spec: TableSpec, instants: ClusterInstants) -> Wanted:
    """Rows that are not older than the instant of their cluster."""
    return partial(_is_from_on, names=spec.dated_by, instants=instants)


def but_for(part: pc.Expression) -> Wanted:
    """Rows that do not satisfy a condition."""
    return partial(_is_out_of, part=part)


def either(first: Wanted, second: Wanted) -> Wanted:
    """Rows that one of two wants."""
    return lambda rows: pc.or_(first(rows), second(rows))


def _is_out_of(rows: pa.RecordBatch, part: pc.Expression) -> pa.Array:
    numbers = pa.array(range(rows.num_rows), pa.int64())
    within = rows.append_column("_number", numbers).filter(part)
    return pc.invert(pc.is_in(numbers, value_set=within.column("_number")))


def _is_before(rows: pa.RecordBatch, names: Sequence[str], instants: ClusterInstants) -> pa.Array:
    date = pc.max_element_wise(*(rows.column(name).cast(pa.int64()) for name in names))
    since = pc.fill_null(look_up(instants.by_cluster, rows.column("cluster_id"), pa.int64()), instants.others_us)
    return pc.fill_null(pc.less(date, since), False)


def _is_from_on(rows: pa.RecordBatch, names: Sequence[str], instants: ClusterInstants) -> pa.Array:
    return pc.invert(_is_before(rows, names, instants))


def but_for_closed(
    folder: Place, spec: TableSpec, files: Sequence[AddedFile], closed: ClusterInstants
) -> tuple[list[AddedFile], tuple[str, ...]]:
    """What makes a table consist of files but for closed days, whose rows stay: files to be added, and those that stay.

    Args:
        files: with the new rows, of whatever day.
        closed: days before are closed.
    """
    given, there = {file.path: file for file in files}, [file.path for file in read_log(folder).files]
    new = part_of(folder, spec, list(given), from_on(spec, closed), columns_of_date(spec))
    old = part_of(folder, spec, there, before(spec, closed), columns_of_date(spec))
    return [*(given[path] for path in new.whole), *new.written, *old.written], old.whole
