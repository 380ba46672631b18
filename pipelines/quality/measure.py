"""Measures of rows of a table by file, made in tasks of the screen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.quality.expectation import Expectation, add_derived
from highwater.schemas import bronze, silver
from highwater.schemas.table import TableSpec

#: Tables whose `time` is the time of a log line. Unread times of unparsed lines are stored as 0.
_TIMED = frozenset(spec.full_name for spec in silver.TABLES)
#: Rows shown of those that break an expectation.
_SHOWN_MAX = 3
_PLACES = ("file_id", "path", "line_no", "byte_offset")


class Measured(NamedTuple):
    """Figures about one log file's rows in one Parquet file of a table."""

    table: str
    file_id: str
    row_count: int
    broken: Mapping[str, int] = {}  #: rows that break an expectation, by its id
    shown: Mapping[str, str] = {}  #: some of them, as JSON
    #: first_us, last_us: earliest and latest time of its rows, where the table has log lines' times
    first_us: int | None = None
    last_us: int | None = None
    #: lowest, highest: place of its first and last row: what follows the file in the table's key
    lowest: int = 0
    highest: int = 0
    line_count: int | None = None  #: of bronze lines and of line counts: the sum of that column
    unparsed: int | None = None  #: of line counts: the records of it that were not understood
    first_line: int | None = None  #: of bronze lines: number of the first one


def list_columns(spec: TableSpec, suite: Iterable[Expectation]) -> tuple[str, ...]:
    """Return the names of the columns that `measure` needs."""
    names = [*spec.keys, *(name for item in suite for name in item.stored_columns)]
    wanted = ("time", "line_count", "outcome", *_PLACES)
    return tuple(dict.fromkeys([*names, *(name for name in spec.column_names if name in wanted)]))


def measure(spec: TableSpec, rows: pa.Table, suite: Sequence[Expectation]) -> Iterator[Measured]:
    """Yield figures about the rows of a table, by log file."""
    broken: dict[str, dict[str, int]] = {}
    shown: dict[str, str] = {}
    for item in suite:
        breaking = rows.filter(item.broken(rows))
        if breaking.num_rows:
            counts = pc.value_counts(breaking["file_id"]).to_pylist()
            broken[item.expectation_id] = {count["values"]: count["counts"] for count in counts}
            shown[item.expectation_id] = show_rows(rows, item)
    figures = _compute_figures(spec, rows)
    aggregates = [
        ([], "count_all"),
        *[("us", "min"), ("us", "max"), ("place", "min"), ("place", "max")],
        *[("line_count", "sum"), ("unparsed", "sum"), ("line_no", "min")],
    ]
    for file in figures.group_by("file_id").aggregate(aggregates).to_pylist():
        mine = {key: files[file["file_id"]] for key, files in broken.items() if file["file_id"] in files}
        yield Measured(
            spec.full_name,
            file["file_id"],
            file["count_all"],
            mine,
            {key: shown[key] for key in mine},
            file["us_min"],
            file["us_max"],
            file["place_min"],
            file["place_max"],
            file["line_count_sum"],
            file["unparsed_sum"],
            file["line_no_min"],
        )


def _compute_figures(spec: TableSpec, rows: pa.Table) -> pa.Table:
    nothing = pa.nulls(rows.num_rows, pa.int64())
    us = place = line_count = unparsed = line_no = nothing
    if spec.full_name in _TIMED:
        us = rows["time"].cast(pa.int64())
        us = pc.if_else(pc.greater(us, 0), us, None)
    # A key is the file and numbers.
    place = rows[spec.keys[1]].cast(pa.int64()) if len(spec.keys) > 1 else pa.repeat(0, rows.num_rows).cast(pa.int64())
    # By name: a task has a copy of the declaration.
    if spec.full_name == bronze.LOG_LINES.full_name:
        line_count, line_no = rows["line_count"].cast(pa.int64()), rows["line_no"]
    if spec.full_name == silver.LINE_COUNTS.full_name:
        line_count = rows["line_count"].cast(pa.int64())
        unparsed = pc.if_else(pc.equal(rows["outcome"], "unparsed"), line_count, 0)
    names = ("file_id", "us", "place", "line_count", "unparsed", "line_no")
    return pa.table([rows["file_id"], us, place, line_count, unparsed, line_no], names=list(names))


def show_rows(rows: pa.Table, item: Expectation) -> str:
    """Return as JSON some rows that fail a check, with their locations if the table has them."""
    rows = add_derived(rows, [item]).filter(item.broken(rows)).slice(0, _SHOWN_MAX)
    names = dict.fromkeys([*(name for name in _PLACES if name in rows.column_names), *item.columns])
    return orjson.dumps(rows.select(list(names)).to_pylist(), default=str).decode()


def pack_measures(measured: Iterable[Measured]) -> pa.RecordBatch:
    """Return measures as one batch of JSON texts."""
    return pa.record_batch([[orjson.dumps(item._asdict()).decode() for item in measured]], names=["measured"])


def parse_measure(text: str) -> Measured:
    return Measured(**orjson.loads(text))
