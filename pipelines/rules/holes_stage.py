"""Holes in the logs and coverage as a stage: what the file registers, silver and the premises show as missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.values import instant
from highwater.pipelines.bronze.identity import kind_of_logger
from highwater.pipelines.cluster.premises import REQUEST_FILE, LogFile, Premises
from highwater.pipelines.cluster.rows import RESERVED_NUMBER
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import SEARCHED_MAX, open_reader
from highwater.pipelines.lake.table_files import build_table
from highwater.pipelines.rules.holes import (
    NOT_UNDERSTOOD,
    Hole,
    NumberGap,
    holes_of_numbers,
    holes_of_requests,
    missing_kinds,
)
from highwater.pipelines.rules.silences import (
    Leadership,
    Unpaired,
    silent_logs,
    unlogged_leaderships,
    unpaired_silences,
)
from highwater.pipelines.rules.unread import (
    LOST_REASONS,
    Lost,
    hole_of_requests,
    holes_of_files,
    holes_of_losses,
    stretches_of,
)
from highwater.pipelines.rules.vanished import NEAR_US
from highwater.schemas import gold, silver
from highwater.schemas.bronze import LOG_FILES, LOG_LINES, UNREAD_FILES
from highwater.schemas.package_data import read_queries

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
#: Limit of the numbers of one gap that are looked for.
GAP_MAX: Final = 10_000
NUMBERED: Final = (silver.PRODUCE_REQUESTS, silver.REQUESTS, silver.FETCH_REQUESTS)
SQL: Final = read_queries(
    __package__ or "",
    "holes.sql",
    gap_max=GAP_MAX,
    near_us=NEAR_US,
    number_max=RESERVED_NUMBER - 1,
    lost_reasons=LOST_REASONS,
)
#: Limit of stretches whose surrounding lines are searched for times.
_STRETCHES_MAX: Final = 500


def write_holes(lake: Lake, premises: Premises, named: Mapping[str, set[int]], stamp: str) -> list[Hole]:
    """Find missing log lines and write them to gold, with the number of records per message template.

    Args:
        named: by cluster, brokers that facts name as leader, replica or ISR member.
        stamp: id of the audit, stored with the commit.
    """
    counts = _counts(lake)
    holes = [
        *unread(lake),
        *_unparsed(lake),
        *holes_of_requests(premises.files, premises.lives, premises.runs, premises.fetch_ends),
        *holes_of_numbers(_number_gaps(lake)),
        *silent_logs(premises.stretches, premises.runs, premises.topic_names),
        *unlogged_leaderships(_leaderships(lake), premises.stretches, premises.lives),
        *unpaired_silences(_unpaired(lake), premises.stretches, premises.lives),
        *missing_kinds(logging_kinds(counts, premises.files), premises.files, named),
    ]
    lake.replace(gold.HOLES, build_table(gold.HOLES, [_row(hole) for hole in holes]), stamp=stamp)
    lake.replace(gold.COVERAGE, pa.concat_tables([counts, _missing(holes)]), stamp=stamp)
    return holes


def unread(lake: Lake) -> list[Hole]:
    """Return a gap (`Hole`) for each file that was not read, or not to its end."""
    return holes_of_files(_files(lake), lake.dicts(UNREAD_FILES, *UNREAD_FILES.column_names))


def _files(lake: Lake) -> list[dict[str, Any]]:
    return lake.dicts(LOG_FILES, *_OF_FILES)


def _unparsed(lake: Lake) -> list[Hole]:
    """Return a gap (`Hole`) for records that were not understood and may have contained facts."""
    reader = open_reader(lake, [(silver.UNPARSED_LINES, None)])
    holes = [hole_of_requests(**row) for row in reader.rows(SQL["requests"])]
    if losses := stretches_of(reader.rows(SQL["lost"])):
        holes += holes_of_losses(_with_times(lake, losses), {row["file_id"]: row for row in _files(lake)})
    return holes


def _with_times(lake: Lake, losses: Sequence[Lost]) -> Iterable[Lost]:
    """Return the lost records with the times of the lines before and after them."""
    near = losses[:_STRETCHES_MAX]
    reader = open_reader(lake, [(LOG_LINES, pc.field("file_id").isin(sorted({lost.file_id for lost in near})))])
    places = [{"file_id": lost.file_id, "first": lost.first, "last": lost.last} for lost in near]
    reader.show("places", pa.Table.from_pylist(places))
    around = {(row["file_id"], row["first"], row["last"]): row for row in reader.rows(SQL["around"])}
    for lost in losses:
        row = around.get((lost.file_id, lost.first, lost.last), {})
        yield lost._replace(since_us=row.get("since_us"), until_us=row.get("until_us"))


def _number_gaps(lake: Lake) -> list[NumberGap]:
    """Return the missing correlation ids of producers. Large tables are searched in several parts."""
    parts = 1 + sum(file.size_bytes for spec in NUMBERED for file in lake.files(spec)) // SEARCHED_MAX
    reader = open_reader(lake, [(spec, None) for spec in NUMBERED])
    found = (reader.rows(SQL["number_gaps"], part=part, parts=parts) for part in range(parts))
    return [NumberGap(**row) for rows in found for row in rows]


def _leaderships(lake: Lake) -> list[Leadership]:
    """Return leaderships that followers name and the leader itself did not log."""
    of_epochs = pc.field("role").isin(["leader_start", "follower_start"])
    reader = open_reader(lake, [(silver.LEADER_AND_ISR, of_epochs), (LOG_FILES, None)])
    return [Leadership(**row) for row in reader.rows(SQL["leaderships"])]


def _unpaired(lake: Lake) -> list[Unpaired]:
    """Return lines about a replica's role or fetcher whose counterpart in another log of the broker is missing."""
    of_changes = pc.field("role").isin(["request", "leader_start", "follower_start"])
    of_fetchers = pc.field("action").isin(["added", "removed"])
    needed = [(silver.LEADER_AND_ISR, of_changes), (silver.FETCHER_EVENTS, of_fetchers), (LOG_FILES, None)]
    return [Unpaired(**row) for row in open_reader(lake, needed).rows(SQL["unpaired"])]


# ------------------------------------------------------------------------ coverage


def _counts(lake: Lake) -> pa.Table:
    """Count the records of each broker by template."""
    counts = open_reader(lake, [(silver.LINE_COUNTS, None)]).rows(SQL["counts"])
    return pa.Table.from_pylist(counts, gold.COVERAGE.arrow_schema)


def logging_kinds(counts: pa.Table, files: Iterable[LogFile]) -> set[tuple[str, int, str]]:
    """Return (cluster, broker, kind of log) of all lines. The file or the logger determines the kind.

    At INFO only requests of deprecated versions are logged (KAFKA-18272, 4.0). They make no request log.
    """
    names = ("cluster_id", "broker_id", "kind", "logger", "level", "template", "outcome")
    kinds = {(file.cluster_id, file.broker_id, file.kind) for file in files if file.broker_id is not None}
    kinds = {log for log in kinds if log[2] != REQUEST_FILE}
    for row in counts.select(names).to_pylist():
        kind = kind_of_logger(row["logger"] or "")
        is_read = row["template"].startswith("request.") and row["outcome"] == "typed"
        if kind != REQUEST_FILE or (is_read and row["level"] in ("DEBUG", "TRACE")):
            kinds.add((row["cluster_id"], row["broker_id"], kind))
    return kinds


def _missing(holes: Sequence[Hole]) -> pa.Table:
    """Return the numbers of missing records as rows of ``gold.coverage``."""
    counts: dict[tuple[str, int, str, str], int] = {}
    for hole in holes:
        if hole.reason != NOT_UNDERSTOOD:  # these were read, and are counted under their own outcome
            key = hole.cluster_id, _broker(hole), hole.kind, hole.reason
            counts[key] = counts.get(key, 0) + (hole.records or 1)
    rows = [
        (cluster_id, broker_id, kind, None, None, reason, gold.MISSING, count)
        for (cluster_id, broker_id, kind, reason), count in counts.items()
    ]
    return build_table(gold.COVERAGE, rows)


def _row(hole: Hole) -> tuple[Any, ...]:
    since, until = (None if us is None else instant(us) for us in (hole.since_us, hole.until_us))
    return (hole.cluster_id, _broker(hole), hole.kind, hole.reason, since, until, hole.records, hole.message)


def _broker(hole: Hole) -> int:
    return -1 if hole.broker_id is None else hole.broker_id
