"""Holes in the logs and coverage as a stage: what the registers, silver and the premises tell of what is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import arrow_schema, micros, one_batch, shaped
from pipelines.base.blobs import shape
from pipelines.cluster.premises import Premises
from pipelines.lake.lake import Lake
from pipelines.lake.lake_reads import reader_of
from pipelines.lake.readings import Reading, by_batch, few_rows
from pipelines.lake.table_files import rows_table
from pipelines.rules.holes import NOT_UNDERSTOOD, Hole, holes_of_requests, without_request_log
from pipelines.rules.unread import Nul, hole_of_requests, holes_of_files, holes_of_nuls
from schemas import gold, silver
from schemas.bronze import LOG_FILES, LOG_LINES, UNREAD_FILES

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: A record that no grammar reads, of a request that was answered.
_COMPLETED: Final = ("request.completed", "request.completed_text")
_BINARY: Final = "binary"
_OF_LINES: Final = ("cluster_id", "broker_id", "file_id", "byte_offset", "time", "template", "reason")
#: Files with NUL bytes whose other lines are looked at, for the times around these.
_FILES_MAX: Final = 100


def write_holes(lake: Lake, premises: Premises, named: Mapping[str, set[int]], stamp: str) -> list[Hole]:
    """Find holes, write them, and with them how many records fell to which template.

    Args:
        named: brokers that facts name as leader, replica or member of an ISR, by cluster.
    """
    counts = _counts(lake)
    holes = [
        *unread(lake),
        *_unparsed(lake),
        *holes_of_requests(premises.files, premises.lives, premises.runs, premises.fetch_ends),
        *without_request_log(_logging(counts), premises.files, named),
    ]
    lake.replace(gold.HOLES, rows_table(gold.HOLES, [_row(hole) for hole in holes]), stamp=stamp)
    lake.replace(gold.COVERAGE, pa.concat_tables([counts, _missing(holes)]), stamp=stamp)
    return holes


def unread(lake: Lake) -> list[Hole]:
    """Holes of files that were not read, or not to their end."""
    return holes_of_files(_files(lake), _with_micros(lake.rows(UNREAD_FILES, *UNREAD_FILES.column_names)))


def _files(lake: Lake) -> list[dict[str, Any]]:
    names = ("file_id", "path", "kind", "cluster_id", "broker_id", "first_time", "last_time", "problem", "run_id")
    return _with_micros(lake.rows(LOG_FILES, *names))


def _with_micros(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows with instants in microseconds: ``first_us`` for ``first_time``."""
    columns = {
        name.removesuffix("_time") + "_us" if name.endswith("_time") else name: (
            column.cast(pa.int64()) if name.endswith("_time") else column
        )
        for name, column in zip(rows.column_names, rows.columns, strict=True)
    }
    told: list[dict[str, Any]] = pa.table(columns).to_pylist()
    return told


def _unparsed(lake: Lake) -> list[Hole]:
    """Holes of records that no grammar reads: with NUL bytes, and requests."""
    where = (pc.field("reason") == _BINARY) | pc.field("template").isin(_COMPLETED)
    reading = Reading(silver.UNPARSED_LINES, _OF_LINES, by_batch(_counted_unparsed), where, digest="holes")
    nuls: list[tuple[str, int, int]] = []
    requests: dict[tuple[str, int | None], list[tuple[int, int, int]]] = {}
    for row in few_rows(lake, reading, shape(_UNPARSED)).to_pylist():
        if row["file_id"] is not None:
            nuls.append((row["file_id"], row["byte_offset"], row["last_us"]))
        else:
            owner = row["cluster_id"], row["broker_id"]
            requests.setdefault(owner, []).append((row["records"], row["first_us"], row["last_us"]))
    holes = []
    for owner, parts in requests.items():
        records, first_us, last_us = zip(*parts, strict=True)
        holes.append(hole_of_requests(*owner, sum(records), min(first_us), max(last_us)))
    if nuls:
        holes += holes_of_nuls(_around(lake, nuls), {row["file_id"]: row for row in _files(lake)})
    return holes


_UNPARSED: Final = {
    "cluster_id": "string",
    "broker_id": "int",
    "file_id": "string",
    "byte_offset": "long",
    "records": "long",
    "first_us": "long",
    "last_us": "long",
}
_UNPARSED_SCHEMA: Final = arrow_schema(_UNPARSED)


def _counted_unparsed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Of each file the first and the last record with NUL bytes; of each broker how many requests are not read."""
    is_nul = pc.equal(rows.column("reason"), _BINARY)
    with_nul = pa.table(rows).filter(is_nul)
    times = micros(with_nul.column("time"))
    columns = {name: with_nul.column(name) for name in ("cluster_id", "broker_id", "file_id", "byte_offset")}
    nuls = shaped(_UNPARSED_SCHEMA, len(with_nul), {**columns, "first_us": times, "last_us": times})
    requests = pa.table(rows).filter(pc.invert(is_nul))
    keys = ["cluster_id", "broker_id"]
    requests = pa.table([*map(requests.column, keys), micros(requests.column("time"))], names=[*keys, "time_us"])
    counts = requests.group_by(keys).aggregate([([], "count_all"), ("time_us", "min"), ("time_us", "max")])
    names = {"records": "count_all", "first_us": "time_us_min", "last_us": "time_us_max"}
    values = {name: counts.column(name) for name in keys} | {name: counts.column(it) for name, it in names.items()}
    of_brokers = shaped(_UNPARSED_SCHEMA, len(counts), values)
    return one_batch(pa.Table.from_batches([nuls, of_brokers]))


def _around(lake: Lake, nuls: Sequence[tuple[str, int, int]]) -> list[Nul]:
    """The records with the times of the lines before and after them; a record's own time is before what it lacks."""
    file_ids = sorted({file_id for file_id, _, _ in nuls})[:_FILES_MAX]
    reader = reader_of(lake, [(LOG_LINES, pc.field("file_id").isin(file_ids))])
    places = [{"file_id": file_id, "byte_offset": offset} for file_id, offset, _ in nuls if file_id in file_ids]
    reader.show("nuls", pa.Table.from_pylist(places))
    around = {(row["file_id"], row["byte_offset"]): (row["since_us"], row["until_us"]) for row in reader.rows(_AROUND)}
    made = []
    for file_id, byte_offset, time_us in nuls:
        since_us, until_us = around.get((file_id, byte_offset), (None, None))
        made.append(Nul(file_id, byte_offset, time_us or since_us, until_us))
    return made


#: For each place of a file the latest time before it and the earliest one after it.
_AROUND: Final = """
    SELECT n.file_id, n.byte_offset, epoch_us(max(time) FILTER (l.byte_offset < n.byte_offset)) AS since_us,
        epoch_us(min(time) FILTER (l.byte_offset > n.byte_offset)) AS until_us
    FROM nuls n JOIN bronze_log_lines l ON l.file_id = n.file_id GROUP BY ALL
"""


# ------------------------------------------------------------------------ coverage


def _counts(lake: Lake) -> pa.Table:
    """How many records of each broker fell to which template."""
    counts = reader_of(lake, [(silver.LINE_COUNTS, None)]).rows(
        """SELECT cluster_id, coalesce(broker_id, -1) AS broker_id, kind, logger, level, template, outcome,
               sum(line_count)::bigint AS line_count
           FROM silver_line_counts GROUP BY ALL ORDER BY ALL"""
    )
    return pa.Table.from_pylist(counts, gold.COVERAGE.arrow_schema)


def _logging(counts: pa.Table) -> set[tuple[str, int]]:
    """Brokers of which requests were read; at INFO only those of deprecated versions are logged (KAFKA-18272, 4.0)."""
    names = ("cluster_id", "broker_id", "level", "template", "outcome")
    return {
        (row["cluster_id"], row["broker_id"])
        for row in counts.select(names).to_pylist()
        if row["template"].startswith("request.") and row["level"] in ("DEBUG", "TRACE") and row["outcome"] == "typed"
    }


def _missing(holes: Sequence[Hole]) -> pa.Table:
    """What is missing as rows of the coverage."""
    counts: dict[tuple[str, int, str, str], int] = {}
    for hole in holes:
        if hole.reason != NOT_UNDERSTOOD:  # these were read, and are counted as what they are
            key = hole.cluster_id, _broker(hole), hole.kind, hole.reason
            counts[key] = counts.get(key, 0) + (hole.records or 1)
    rows = [
        (cluster_id, broker_id, kind, None, None, reason, gold.MISSING, count)
        for (cluster_id, broker_id, kind, reason), count in counts.items()
    ]
    return rows_table(gold.COVERAGE, rows)


def _row(hole: Hole) -> tuple[Any, ...]:
    since, until = (
        None if us is None else _EPOCH + timedelta(microseconds=us) for us in (hole.since_us, hole.until_us)
    )
    return (hole.cluster_id, _broker(hole), hole.kind, hole.reason, since, until, hole.records, hole.message)


def _broker(hole: Hole) -> int:
    return -1 if hole.broker_id is None else hole.broker_id
