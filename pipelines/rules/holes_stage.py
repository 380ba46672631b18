"""Holes in the logs and coverage as a stage: what the registers, silver and the premises tell of what is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.values import instant
from pipelines.cluster.premises import Premises
from pipelines.lake.batches import small_rows
from pipelines.lake.lake import Lake
from pipelines.lake.lake_reads import reader_of
from pipelines.lake.table_files import rows_table
from pipelines.rules.holes import NOT_UNDERSTOOD, Hole, holes_of_requests, without_request_log
from pipelines.rules.unread import Nul, hole_of_requests, holes_of_files, holes_of_nuls
from schemas import gold, silver
from schemas.bronze import LOG_FILES, LOG_LINES, UNREAD_FILES

_OF_FILES: Final = (
    "file_id",
    "path",
    "kind",
    "cluster_id",
    "broker_id",
    "first_time",
    "last_time",
    "problem",
    "run_id",
)
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
    return holes_of_files(_files(lake), small_rows(lake, UNREAD_FILES, *UNREAD_FILES.column_names))


def _files(lake: Lake) -> list[dict[str, Any]]:
    return small_rows(lake, LOG_FILES, *_OF_FILES)


def _unparsed(lake: Lake) -> list[Hole]:
    """Holes of records that no grammar reads: with NUL bytes, and requests."""
    reader = reader_of(lake, [(silver.UNPARSED_LINES, None)])
    holes = [hole_of_requests(**row) for row in reader.rows(_REQUESTS)]
    nuls = reader.rows(_NULS)
    if nuls:
        holes += holes_of_nuls(_around(lake, nuls), {row["file_id"]: row for row in _files(lake)})
    return holes


def _around(lake: Lake, nuls: Sequence[Mapping[str, Any]]) -> list[Nul]:
    """The records with the times of the lines before and after them; a record's own time is before what it lacks."""
    file_ids = sorted({row["file_id"] for row in nuls})[:_FILES_MAX]
    reader = reader_of(lake, [(LOG_LINES, pc.field("file_id").isin(file_ids))])
    places = [{name: row[name] for name in ("file_id", "byte_offset")} for row in nuls if row["file_id"] in file_ids]
    reader.show("nuls", pa.Table.from_pylist(places))
    around = {(row["file_id"], row["byte_offset"]): (row["since_us"], row["until_us"]) for row in reader.rows(_AROUND)}
    made = []
    for row in nuls:
        since_us, until_us = around.get((row["file_id"], row["byte_offset"]), (None, None))
        made.append(Nul(row["file_id"], row["byte_offset"], row["time"] or since_us, until_us))
    return made


#: Records with NUL bytes.
_NULS: Final = "SELECT file_id, byte_offset, time FROM silver_unparsed_lines WHERE reason = 'binary'"
#: Of each broker how many requests that were answered no grammar reads, and when.
_REQUESTS: Final = """
    SELECT cluster_id, broker_id, count(*) AS records, min(time) AS since_us, max(time) AS until_us
    FROM silver_unparsed_lines
    WHERE reason <> 'binary' AND template IN ('request.completed', 'request.completed_text')
    GROUP BY cluster_id, broker_id ORDER BY cluster_id, broker_id
"""
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
    since, until = (None if us is None else instant(us) for us in (hole.since_us, hole.until_us))
    return (hole.cluster_id, _broker(hole), hole.kind, hole.reason, since, until, hole.records, hole.message)


def _broker(hole: Hole) -> int:
    return -1 if hole.broker_id is None else hole.broker_id
