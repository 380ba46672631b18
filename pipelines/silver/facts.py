"""From bronze records to rows of the silver tables, on plain Arrow data: what one worker does.

No Spark session here. A worker reads batches of ``bronze.log_lines`` and gives blobs of the silver tables: one
pass over the lines feeds all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from pipelines.blobs import BLOB_ROWS_MAX, pack
from pipelines.silver.record import UNPARSED, Parsed, Record
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
#: What Arrow raises where a value is not of the declared type, or does not fit into it.
_UNFIT = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, AttributeError, TypeError)

Row = dict[str, Any]


class _Tables:
    """Rows of every table, until there are enough for a blob."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {table.name: [] for table in silver.TABLES}

    def add(self, table: str, row: Row) -> pa.RecordBatch | None:
        rows = self._rows[table]
        rows.append(row)
        return self._blob(table) if len(rows) >= BLOB_ROWS_MAX else None

    def rest(self) -> Iterator[pa.RecordBatch]:
        # Unparsed ones last: filling the others may add to them.
        for table in sorted(self._rows, key=lambda name: name == "unparsed_lines"):
            if self._rows[table]:
                yield self._blob(table)

    def _blob(self, table: str) -> pa.RecordBatch:
        rows, self._rows[table] = self._rows[table], []
        schema = silver.BY_NAME[table].arrow_schema
        try:
            return pack(table, pa.RecordBatch.from_pylist(rows, schema=schema))
        except _UNFIT:
            return pack(table, pa.RecordBatch.from_pylist([row for row in rows if self._fits(row, schema)], schema))

    def _fits(self, row: Row, schema: pa.Schema) -> bool:
        """Whether a row has values of the declared types; one that has not is kept as unparsed."""
        try:
            pa.RecordBatch.from_pylist([row], schema=schema)
        except _UNFIT as problem:
            source = {name: row[name] for name in silver.SOURCE_NAMES}
            unfit = {"kind": "unknown", "template": "value of another type", "reason": "bad_value"}
            self._rows["unparsed_lines"].append({**source, **unfit, "problem": str(problem)[:200]})
            return False
        return True


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
    ``unparsed_lines``.
    """
    tables = _Tables()
    counts: dict[tuple[Any, ...], Row] = {}
    for batch in batches:
        time_us = batch.column("time").cast(pa.int64()).to_pylist()
        columns = [batch.column(name).to_pylist() for name in LINE_COLUMNS if name != "time"]
        for line, at in zip(zip(*columns, strict=True), time_us, strict=True):
            file_id, byte_offset, line_no, cluster_id, broker_id, kind, level, logger, problem, message = line
            source: Row = {
                "cluster_id": cluster_id,
                "broker_id": broker_id,
                "time": at if at is not None else 0,
                "file_id": file_id,
                "byte_offset": byte_offset,
                "line_no": line_no,
            }
            parsed = parse_record(kind, at, level, logger, problem, message)
            for fact_no, fact in enumerate(parsed.facts):
                blob = tables.add(fact.table, {**source, "fact_no": fact_no, **fact.row})
                if blob is not None:
                    yield blob
            if parsed.outcome == UNPARSED:
                blob = tables.add("unparsed_lines", _unparsed(source, parsed, kind, level, logger, message))
                if blob is not None:
                    yield blob
            key = (file_id, kind, logger, level, parsed.template, parsed.outcome)
            counted = counts.get(key)
            if counted is None:
                counts[key] = {
                    **source,
                    "fact_no": 0,
                    "kind": kind,
                    "logger": logger,
                    "level": level,
                    "template": parsed.template,
                    "outcome": parsed.outcome,
                    "line_count": 1,
                }
            else:
                counted["line_count"] += 1
    for counted in counts.values():
        blob = tables.add("line_counts", counted)
        if blob is not None:
            yield blob
    yield from tables.rest()


def parse_record(
    kind: str, time_us: int | None, level: str | None, logger: str | None, problem: str | None, message: str | None
) -> Parsed:
    """Parse one record with the grammar of its logger; one that the reader found fault with stays as it is."""
    text = message or ""
    if time_us is None or level is None or logger is None:
        return Parsed(mask(text), UNPARSED, reason=problem or "layout")
    record = Record(kind, time_us, level, logger, text)
    parsed = parse_request(record) if logger == REQUEST_LOGGER else parse_text(record)
    if parsed.outcome == UNPARSED and problem is not None:
        return parsed._replace(reason=problem)
    return parsed


def _unparsed(
    source: Row, parsed: Parsed, kind: str, level: str | None, logger: str | None, message: str | None
) -> Row:
    return {
        **source,
        "fact_no": 0,
        "kind": kind,
        "logger": logger,
        "level": level,
        "template": parsed.template,
        "reason": parsed.reason or "no_grammar",
        "problem": parsed.problem,
        "message": (message or "")[:_MESSAGE_CHARS_MAX],
    }
