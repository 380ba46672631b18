"""Conversion of bronze records to rows of the silver tables, on plain Arrow data: the work of one worker.

No Spark session here. A worker reads batches of ``bronze.log_lines`` and yields blobs of the silver tables: one pass
over the lines fills all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.blobs import BLOB_ROWS_MAX, pack
from highwater.pipelines.grammars.record import BAD_VALUE, KNOWN, UNPARSED, LogRecord, Parsed
from highwater.pipelines.grammars.request_log import parse_request
from highwater.pipelines.grammars.text_log import mask, parse_text
from highwater.pipelines.kafka.raw_record import DOUBTFUL, FOREIGN
from highwater.pipelines.kafka.strays import TIME_OUT_OF_RANGE, is_possible
from highwater.schemas import silver

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
#: Exceptions of Arrow for a value that does not fit the declared type.
_UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, AttributeError, TypeError)
#: Largest valid number: arithmetic on offsets and epochs must not overflow 64 bits.
LONG_MAX = 1 << 62
#: Records whose rows are made at a time. Bounds a worker's memory.
_RECORDS_MAX = 8_192

Row = dict[str, Any]
#: Number of a record within its batch, number of the fact within the record, and its row.
_Numbered = tuple[int, int, Row]


class _Line(NamedTuple):
    """A log record of bronze and its parse result."""

    kind: str
    level: str | None
    logger: str | None
    message: str | None
    parsed: Parsed


def named(rows: pa.RecordBatch, names: Mapping[tuple[str, str], str]) -> pa.RecordBatch:
    """Set column ``topic`` from topic ids. An id without a known name becomes ``id:<topic id>``.

    Args:
        names: topic names by (cluster, topic id).
    """
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
    """Parse records of ``bronze.log_lines`` (`LINE_COLUMNS`) into rows of silver tables, serialized by table.

    Each record is counted by message template in ``line_counts``. Unknown records, and records with a value that does
    not fit its column, become rows of ``unparsed_lines``. No other row of such a record is kept.
    """
    counts: dict[tuple[Any, ...], Row] = {}
    for batch in batches:
        for start in range(0, batch.num_rows, _RECORDS_MAX):
            records = batch.slice(start, _RECORDS_MAX)
            sources = _make_sources(records)
            lines, tables = _fit_lines(_parse_records(records), sources)
            _count(lines, sources, counts)
            for table, rows in tables:
                yield pack(table, rows)
    schema = silver.LINE_COUNTS.arrow_schema
    for counted in pa.Table.from_pylist(list(counts.values()), schema=schema).to_batches(BLOB_ROWS_MAX):
        yield pack(silver.LINE_COUNTS.name, counted)


def _make_sources(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return the locations of the records: columns of `schemas.silver.SOURCE` except the fact's number."""
    times = [at if at is not None and is_possible(at) else 0 for at in _read_times(records)]
    schema = pa.schema([field for field in silver.LINE_COUNTS.arrow_schema if field.name in silver.SOURCE_NAMES[:-1]])
    columns = [pa.array(times, field.type) if field.name == "time" else records.column(field.name) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _read_times(records: pa.RecordBatch) -> list[int | None]:
    times: list[int | None] = records.column("time").cast(pa.int64()).to_pylist()
    return times


def _parse_records(records: pa.RecordBatch) -> list[_Line]:
    columns = [records.column(name).to_pylist() for name in ("kind", "level", "logger", "problem", "message")]
    return [
        _Line(kind, level, logger, message, parse_record(kind, at, level, logger, problem, message))
        for at, kind, level, logger, problem, message in zip(_read_times(records), *columns, strict=True)
    ]


def _fit_lines(lines: list[_Line], sources: pa.RecordBatch) -> tuple[list[_Line], list[tuple[str, pa.RecordBatch]]]:
    """Return (lines, rows by table). A line with a value that does not fit its column is marked as unparsed."""
    tables = _collect_facts(lines)
    try:
        return lines, _make_batches(tables, sources)
    except _UNFIT:
        unfit = {
            number: problem
            for table, facts in tables.items()
            for number, problem in _find_unfit(facts, silver.BY_NAME[table].arrow_schema)
        }
    lines = [
        line
        if (problem := unfit.get(number)) is None
        else line._replace(parsed=Parsed(line.parsed.template, UNPARSED, reason=BAD_VALUE, problem=problem))
        for number, line in enumerate(lines)
    ]
    return lines, _make_batches(_collect_facts(lines), sources)


def _collect_facts(lines: Iterable[_Line]) -> dict[str, list[_Numbered]]:
    tables: dict[str, list[_Numbered]] = defaultdict(list)
    for number, line in enumerate(lines):
        for fact_no, fact in enumerate(line.parsed.facts):
            tables[fact.table].append((number, fact_no, fact.row))
        if line.parsed.outcome == UNPARSED:
            tables[silver.UNPARSED_LINES.name].append((number, 0, _make_unparsed(line)))
    return tables


def _make_batches(tables: Mapping[str, list[_Numbered]], sources: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """Return (table, batch of rows) of limited size.

    Raises:
        One of `_UNFIT`: a value has another type than its column, or is out of range.
    """
    batches = []
    for table, facts in tables.items():
        schema = silver.BY_NAME[table].arrow_schema
        for start in range(0, len(facts), BLOB_ROWS_MAX):
            part = facts[start : start + BLOB_ROWS_MAX]
            source = sources.take(pa.array([number for number, _, _ in part]))
            fact_nos = pa.array([fact_no for _, fact_no, _ in part], pa.int32())
            columns = [*source.columns, fact_nos, *_make_columns(part, schema)]
            batches.append((table, pa.RecordBatch.from_arrays(columns, schema=schema)))
    return batches


def _make_columns(facts: list[_Numbered], schema: pa.Schema) -> list[pa.Array]:
    """Return the columns of a table's schema that follow the location."""
    fields = list(schema)[len(silver.SOURCE_NAMES) :]
    names = [field.name for field in fields]
    rows = [row if isinstance(row, tuple) else tuple(map(row.get, names)) for _, _, row in facts]
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), fields, strict=True)]
    for name, column in zip(names, columns, strict=True):
        _require_range(name, column)
    return columns


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


def _find_unfit(facts: list[_Numbered], schema: pa.Schema) -> Iterator[tuple[int, str]]:
    """Yield (number of the record, problem) for values that do not fit their column, found by bisection."""
    try:
        _make_columns(facts, schema)
    except _UNFIT as problem:
        if len(facts) == 1:
            yield facts[0][0], str(problem)[:_PROBLEM_CHARS_MAX]
            return
        middle = len(facts) // 2
        yield from _find_unfit(facts[:middle], schema)
        yield from _find_unfit(facts[middle:], schema)


def _count(lines: Iterable[_Line], sources: pa.RecordBatch, counts: dict[tuple[Any, ...], Row]) -> None:
    file_ids = sources.column("file_id").to_pylist()
    for number, line in enumerate(lines):
        key = (file_ids[number], line.kind, line.logger, line.level, line.parsed.template, line.parsed.outcome)
        counted = counts.get(key)
        if counted is None:
            counts[key] = {
                **sources.slice(number, 1).to_pylist()[0],
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
    """Parse one record with the templates of its logger. A record with a problem of the file reader is unparsed."""
    text = message or ""
    if problem is not None and problem.startswith(FOREIGN):
        return Parsed(problem, KNOWN)
    if problem == DOUBTFUL:
        return Parsed(mask(text), UNPARSED, reason=problem)
    if time_us is not None and not is_possible(time_us):  # stored by a version that took any time for one
        return Parsed(mask(text), UNPARSED, reason=TIME_OUT_OF_RANGE)
    if time_us is None or level is None or logger is None:
        return Parsed(mask(text), UNPARSED, reason=problem or "layout")
    record = LogRecord(kind, time_us, level, logger, text)
    parsed = parse_request(record) if logger == REQUEST_LOGGER else parse_text(record)
    if parsed.outcome == UNPARSED and problem is not None:
        return parsed._replace(reason=problem)
    return parsed


def _make_unparsed(line: _Line) -> Row:
    return {
        "kind": line.kind,
        "logger": line.logger,
        "level": line.level,
        "template": line.parsed.template,
        "reason": line.parsed.reason or "no_grammar",
        "problem": line.parsed.problem,
        "message": (line.message or "")[:_MESSAGE_CHARS_MAX],
    }
