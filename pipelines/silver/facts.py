"""From bronze records to rows of the silver tables, on plain Arrow data: what one worker does.

No Spark session here. A worker reads batches of ``bronze.log_lines`` and gives blobs of the silver tables: one
pass over the lines feeds all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.blobs import BLOB_ROWS_MAX, pack
from pipelines.bronze.raw_record import DOUBTFUL, FOREIGN
from pipelines.bronze.strays import TIME_OUT_OF_RANGE, is_possible
from pipelines.silver.record import BAD_VALUE, KNOWN, UNPARSED, Parsed, Record
from pipelines.silver.request_log import parse_request
from pipelines.silver.text_log import mask, parse_text
from schemas import silver

#: Columns of ``bronze.log_lines`` that a worker needs, in this order.
LINE_COLUMNS = (
    "file_id",
    "byte_offset",
    "line_no",
    "cluster_id",
    "broker_id",
    "kind",
    "time",
    "level",
    "logger",
    "problem",
    "message",
)

REQUEST_LOGGER = "kafka.request.logger"
_MESSAGE_CHARS_MAX = 4_000
_PROBLEM_CHARS_MAX = 200
#: What Arrow raises where a value is not of the declared type, or does not fit into it.
_UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, AttributeError, TypeError)
#: Offsets, epochs and the like are added to and subtracted: no number that Kafka counts comes near the end of 64 bits.
LONG_MAX = 1 << 62
#: Records whose rows are made at a time. Bounds a worker's memory.
_RECORDS_MAX = 8_192

Row = dict[str, Any]
#: Rows by table.
Rows = dict[str, list[Row]]


class _Line(NamedTuple):
    """A record of bronze and what became of it."""

    source: Row
    kind: str
    level: str | None
    logger: str | None
    message: str | None
    parsed: Parsed


def named(rows: pa.RecordBatch, names: Mapping[tuple[str, str], str]) -> pa.RecordBatch:
    """Rows with the name of their topic; of those that have only its id, by cluster and id, else ``id:<topic id>``."""
    topics = rows.column("topic")
    if not topics.null_count:
        return rows
    places = zip(*[rows.column(name).to_pylist() for name in ("topic", "cluster_id", "topic_id")], strict=True)
    filled = [
        names.get((cluster, topic_id), f"id:{topic_id or 'unknown'}") if topic is None else topic
        for topic, cluster, topic_id in places
    ]
    index = rows.schema.get_field_index("topic")
    return rows.set_column(index, rows.schema.field(index), pa.array(filled, pa.string()))


def parse_lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Parse records of ``bronze.log_lines`` (`LINE_COLUMNS`) into blobs (`pipelines.blobs`).

    Every record is counted under its template in ``line_counts``; one that no grammar knows also becomes a row of
    ``unparsed_lines``, and so does one with a value that is not of its column's type: none of its facts is kept.
    """
    counts: dict[tuple[Any, ...], Row] = {}
    for batch in batches:
        for start in range(0, batch.num_rows, _RECORDS_MAX):
            lines, tables = _fitting(_parsed(batch.slice(start, _RECORDS_MAX)))
            _count(lines, counts)
            for table, rows in tables:
                yield pack(table, rows)
    for table, rows in _as_batches({silver.LINE_COUNTS.name: list(counts.values())}):
        yield pack(table, rows)


def _parsed(batch: pa.RecordBatch) -> list[_Line]:
    time_us = batch.column("time").cast(pa.int64()).to_pylist()
    columns = [batch.column(name).to_pylist() for name in LINE_COLUMNS if name != "time"]
    lines = []
    for line, at in zip(zip(*columns, strict=True), time_us, strict=True):
        file_id, byte_offset, line_no, cluster_id, broker_id, kind, level, logger, problem, message = line
        source: Row = {
            "cluster_id": cluster_id,
            "broker_id": broker_id,
            "time": at if at is not None and is_possible(at) else 0,
            "file_id": file_id,
            "byte_offset": byte_offset,
            "line_no": line_no,
        }
        parsed = parse_record(kind, at, level, logger, problem, message)
        lines.append(_Line(source, kind, level, logger, message, parsed))
    return lines


def _fitting(lines: list[_Line]) -> tuple[list[_Line], list[tuple[str, pa.RecordBatch]]]:
    """Lines, of which those with a value that fits into no column are unparsed, and their rows by table."""
    tables = _rows_of(lines)
    try:
        return lines, _as_batches(tables)
    except _UNFIT:
        unfit = {
            (row["file_id"], row["byte_offset"]): problem
            for table, rows in tables.items()
            for row, problem in _unfit_rows(rows, silver.BY_NAME[table].arrow_schema)
        }
    lines = [
        line
        if (problem := unfit.get((line.source["file_id"], line.source["byte_offset"]))) is None
        else line._replace(parsed=Parsed(line.parsed.template, UNPARSED, reason=BAD_VALUE, problem=problem))
        for line in lines
    ]
    return lines, _as_batches(_rows_of(lines))


def _rows_of(lines: Iterable[_Line]) -> Rows:
    tables: Rows = defaultdict(list)
    for line in lines:
        for fact_no, fact in enumerate(line.parsed.facts):
            tables[fact.table].append({**line.source, "fact_no": fact_no, **fact.row})
        if line.parsed.outcome == UNPARSED:
            tables[silver.UNPARSED_LINES.name].append(_unparsed(line))
    return tables


def _as_batches(tables: Rows) -> list[tuple[str, pa.RecordBatch]]:
    """Rows in batches of a bounded length, by table.

    Raises:
        One of `_UNFIT`: a value is not of its column's type, or out of its range.
    """
    return [
        (table, _as_batch(rows[start : start + BLOB_ROWS_MAX], silver.BY_NAME[table].arrow_schema))
        for table, rows in tables.items()
        for start in range(0, len(rows), BLOB_ROWS_MAX)
    ]


def _as_batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    for name, column in zip(schema.names, batch.columns, strict=True):
        if name not in silver.SOURCE_NAMES:
            _require_range(name, column)
    return batch


def _require_range(name: str, values: pa.Array) -> None:
    if pa.types.is_int64(values.type):
        bounds = pc.min_max(values).as_py()
        most = LONG_MAX // 1000 if name.endswith("_ms") else LONG_MAX  # they become microseconds
        if bounds["min"] is not None and (bounds["min"] < -most or bounds["max"] > most):
            raise pa.ArrowInvalid(f"{name}: a number that Kafka does not count up to")
    elif pa.types.is_list(values.type):
        _require_range(name, values.flatten())
    elif pa.types.is_struct(values.type):
        for number, field in enumerate(values.type):
            _require_range(f"{name}.{field.name}", values.field(number))


def _unfit_rows(rows: list[Row], schema: pa.Schema) -> Iterator[tuple[Row, str]]:
    """Rows with a value that does not fit, and why: found by halves, so that one costs little more than itself."""
    try:
        _as_batch(rows, schema)
    except _UNFIT as problem:
        if len(rows) == 1:
            yield rows[0], str(problem)[:_PROBLEM_CHARS_MAX]
            return
        middle = len(rows) // 2
        yield from _unfit_rows(rows[:middle], schema)
        yield from _unfit_rows(rows[middle:], schema)


def _count(lines: Iterable[_Line], counts: dict[tuple[Any, ...], Row]) -> None:
    for line in lines:
        key = (line.source["file_id"], line.kind, line.logger, line.level, line.parsed.template, line.parsed.outcome)
        counted = counts.get(key)
        if counted is None:
            counts[key] = {
                **line.source,
                "fact_no": 0,
                "kind": line.kind,
                "logger": line.logger,
                "level": line.level,
                "template": line.parsed.template,
                "outcome": line.parsed.outcome,
                "line_count": 1,
            }
        else:
            counted["line_count"] += 1


def parse_record(
    kind: str, time_us: int | None, level: str | None, logger: str | None, problem: str | None, message: str | None
) -> Parsed:
    """Parse one record with the grammar of its logger; one that the reader found fault with stays as it is."""
    text = message or ""
    if problem is not None and problem.startswith(FOREIGN):
        return Parsed(problem, KNOWN)
    if problem == DOUBTFUL:
        return Parsed(mask(text), UNPARSED, reason=problem)
    if time_us is not None and not is_possible(time_us):  # stored by a version that took any time for one
        return Parsed(mask(text), UNPARSED, reason=TIME_OUT_OF_RANGE)
    if time_us is None or level is None or logger is None:
        return Parsed(mask(text), UNPARSED, reason=problem or "layout")
    record = Record(kind, time_us, level, logger, text)
    parsed = parse_request(record) if logger == REQUEST_LOGGER else parse_text(record)
    if parsed.outcome == UNPARSED and problem is not None:
        return parsed._replace(reason=problem)
    return parsed


def _unparsed(line: _Line) -> Row:
    return {
        **line.source,
        "fact_no": 0,
        "kind": line.kind,
        "logger": line.logger,
        "level": line.level,
        "template": line.parsed.template,
        "reason": line.parsed.reason or "no_grammar",
        "problem": line.parsed.problem,
        "message": (line.message or "")[:_MESSAGE_CHARS_MAX],
    }
