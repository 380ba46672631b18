"""Holes in the logs and coverage as a stage: what the registers, silver and the premises tell of what is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.values import instant
from highwater.pipelines.bronze.identity import kind_of_logger
from highwater.pipelines.cluster.premises import REQUEST_FILE, LogFile, Premises
from highwater.pipelines.cluster.rows import RESERVED_NUMBER
from highwater.pipelines.lake.batches import small_rows
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import is_searchable, reader_of
from highwater.pipelines.lake.table_files import rows_table
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
#: Limit of stretches whose surrounding lines are searched for times.
_STRETCHES_MAX: Final = 500


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
        *holes_of_numbers(_number_gaps(lake)),
        *silent_logs(premises.stretches, premises.runs, premises.topic_names),
        *unlogged_leaderships(_leaderships(lake), premises.stretches, premises.lives),
        *unpaired_silences(_unpaired(lake), premises.stretches, premises.lives),
        *missing_kinds(logging_kinds(counts, premises.files), premises.files, named),
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
    """Return the holes of records without facts that might have had some."""
    reader = reader_of(lake, [(silver.UNPARSED_LINES, None)])
    holes = [hole_of_requests(**row) for row in reader.rows(_REQUESTS)]
    if losses := stretches_of(reader.rows(LOST)):
        holes += holes_of_losses(_with_times(lake, losses), {row["file_id"]: row for row in _files(lake)})
    return holes


def _with_times(lake: Lake, losses: Sequence[Lost]) -> Iterable[Lost]:
    """Return lost records with the times of the lines before and after them."""
    near = losses[:_STRETCHES_MAX]
    reader = reader_of(lake, [(LOG_LINES, pc.field("file_id").isin(sorted({lost.file_id for lost in near})))])
    places = [{"file_id": lost.file_id, "first": lost.first, "last": lost.last} for lost in near]
    reader.show("places", pa.Table.from_pylist(places))
    around = {(row["file_id"], row["first"], row["last"]): row for row in reader.rows(_AROUND)}
    for lost in losses:
        row = around.get((lost.file_id, lost.first, lost.last), {})
        yield lost._replace(since_us=row.get("since_us"), until_us=row.get("until_us"))


def _number_gaps(lake: Lake) -> list[NumberGap]:
    """Return the gaps in the numbers of producers' requests. Tables that are too large are not searched."""
    if not all(is_searchable(lake, spec) or not lake.has_rows(spec) for spec in NUMBERED):
        return []
    return [NumberGap(**row) for row in reader_of(lake, [(spec, None) for spec in NUMBERED]).rows(NUMBER_GAPS)]


#: Limit of the numbers of one gap that are looked for.
GAP_MAX: Final = 10_000
NUMBERED: Final = (silver.PRODUCE_REQUESTS, silver.REQUESTS, silver.FETCH_REQUESTS)
#: Numbers that a producer's connection leaves out. A client numbers the requests of each connection, or of all of its
#: connections together. In the second case its other connections have these numbers at that time.
NUMBER_GAPS: Final = f"""
    WITH numbered AS (
        {
    " UNION ALL ".join(
        f"SELECT cluster_id, broker_id, client_id, connection, correlation_id AS number, epoch_us(time) AS time_us "
        f"FROM {spec.full_name.replace('.', '_')} WHERE correlation_id BETWEEN 0 AND {RESERVED_NUMBER - 1}"
        for spec in NUMBERED
    )
}
    ), producers AS (
        SELECT DISTINCT cluster_id, client_id FROM silver_produce_requests WHERE client_id IS NOT NULL
    ), lines AS (
        SELECT DISTINCT *, regexp_extract(connection, '-(.+):[0-9]+(?:-[0-9]+)*$', 1) AS host
        FROM numbered SEMI JOIN producers USING (cluster_id, client_id)
        WHERE broker_id IS NOT NULL AND connection IS NOT NULL AND time_us IS NOT NULL
    ), steps AS (
        SELECT *, lag(number) OVER places AS before, lag(time_us) OVER places AS since_us
        FROM lines SEMI JOIN silver_produce_requests USING (cluster_id, broker_id, client_id, connection)
        WINDOW places AS (PARTITION BY cluster_id, broker_id, client_id, connection ORDER BY number, time_us)
    ), left_out AS (
        SELECT * EXCLUDE (number), unnest(range(before + 1, least(number, before + {GAP_MAX} + 1))) AS number
        FROM steps WHERE number > before + 1 AND time_us >= since_us
    )
    SELECT g.cluster_id, g.broker_id, g.client_id, g.connection, g.since_us, g.time_us AS until_us, count(*) AS missing
    FROM left_out g ANTI JOIN lines l ON (l.cluster_id, l.client_id, l.host, l.number)
            = (g.cluster_id, g.client_id, g.host, g.number)
        AND l.time_us BETWEEN g.since_us - {NEAR_US} AND g.time_us + {NEAR_US}
    GROUP BY ALL ORDER BY ALL
"""


def _leaderships(lake: Lake) -> list[Leadership]:
    """Return the leaderships that only followers name."""
    of_epochs = pc.field("role").isin(["leader_start", "follower_start"])
    reader = reader_of(lake, [(silver.LEADER_AND_ISR, of_epochs), (LOG_FILES, None)])
    return [Leadership(**row) for row in reader.rows(LEADERSHIPS)]


#: Leader epochs that a follower starts and the leader does not, with the kind of log that has such lines.
LEADERSHIPS: Final = """
    WITH epochs AS (
        SELECT cluster_id, if(role = 'leader_start', broker_id, leader) AS broker_id, topic, partition, leader_epoch,
            epoch_us(min(time)) AS time_us, bool_or(role = 'leader_start') AS is_logged
        FROM silver_leader_and_isr
        WHERE role = 'leader_start' OR (role = 'follower_start' AND leader >= 0 AND leader <> broker_id)
        GROUP BY ALL
    ), kinds AS (
        SELECT l.cluster_id, mode(f.kind) AS kind
        FROM silver_leader_and_isr l JOIN bronze_log_files f USING (file_id)
        WHERE l.role = 'leader_start' GROUP BY ALL
    ), ordered AS (
        SELECT *, min(time_us) OVER (
            PARTITION BY cluster_id, topic, partition ORDER BY leader_epoch
            RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AS next_us FROM epochs
    )
    SELECT cluster_id, broker_id, kind, topic, partition, leader_epoch, time_us, next_us
    FROM ordered LEFT JOIN kinds USING (cluster_id)
    WHERE NOT is_logged AND broker_id IS NOT NULL AND leader_epoch IS NOT NULL AND time_us IS NOT NULL ORDER BY ALL
"""


def _unpaired(lake: Lake) -> list[Unpaired]:
    """Return lines about changes of replicas whose counterpart in another log is not there."""
    of_changes = pc.field("role").isin(["request", "leader_start", "follower_start"])
    of_fetchers = pc.field("action").isin(["added", "removed"])
    needed = [(silver.LEADER_AND_ISR, of_changes), (silver.FETCHER_EVENTS, of_fetchers), (LOG_FILES, None)]
    return [Unpaired(**row) for row in reader_of(lake, needed).rows(UNPAIRED)]


#: Changes of a replica without the removal of its fetcher near them, and fetchers that are added without a change. A
#: request is a change if it names another leader than the epoch before: others may be old, or change nothing.
UNPAIRED: Final = """
    WITH roles AS (
        SELECT *, epoch_us(time) AS time_us, lag((leader, epoch_us(time))) OVER (
            PARTITION BY cluster_id, broker_id, topic, partition, role ORDER BY leader_epoch, time
        ) AS before
        FROM silver_leader_and_isr
        WHERE role IN ('request', 'leader_start', 'follower_start') AND leader_epoch IS NOT NULL
    ), lines AS (
        SELECT cluster_id, broker_id, topic, partition, time_us, file_id, 'removed' AS counterpart,
            if(role <> 'request' OR (leader <> before[1] AND time_us > before[2]), 'change', 'request') AS line
        FROM roles
        UNION ALL
        SELECT cluster_id, broker_id, topic, partition, epoch_us(time), file_id,
            if(action = 'added', 'change', NULL), action
        FROM silver_fetcher_events WHERE action IN ('added', 'removed')
    ), placed AS (
        SELECT l.*, f.kind FROM lines l JOIN bronze_log_files f USING (file_id)
        WHERE l.broker_id IS NOT NULL AND topic IS NOT NULL AND partition IS NOT NULL AND time_us IS NOT NULL
    ), ends AS (
        SELECT cluster_id, broker_id, topic, partition, time_us, kind,
            if(line = 'removed', 'removed', 'change') AS counterpart
        FROM placed WHERE line <> 'added'
    ), kinds AS (
        SELECT cluster_id, broker_id, counterpart, mode(kind) AS kind FROM ends GROUP BY ALL
    ), near AS (
        SELECT p.*, b.time_us >= p.time_us - 5000000 OR a.time_us <= p.time_us + 5000000 AS is_paired
        FROM placed p
        ASOF LEFT JOIN ends b ON (b.cluster_id, b.broker_id, b.counterpart, b.topic, b.partition)
            = (p.cluster_id, p.broker_id, p.counterpart, p.topic, p.partition) AND p.time_us >= b.time_us
        ASOF LEFT JOIN ends a ON (a.cluster_id, a.broker_id, a.counterpart, a.topic, a.partition)
            = (p.cluster_id, p.broker_id, p.counterpart, p.topic, p.partition) AND p.time_us <= a.time_us
        WHERE p.line IN ('change', 'added')
    ), counted AS (
        SELECT *, count(*) FILTER (is_paired) OVER (PARTITION BY cluster_id, broker_id, counterpart) AS paired FROM near
    )
    SELECT c.cluster_id, c.broker_id, k.kind, c.kind AS other_kind, line, topic, partition, time_us, paired
    FROM counted c JOIN kinds k USING (cluster_id, broker_id, counterpart)
    WHERE is_paired IS NOT TRUE AND k.kind <> c.kind ORDER BY ALL
"""
#: Records without facts. Requests are counted by `_REQUESTS`.
LOST: Final = f"""
    SELECT file_id, byte_offset, reason FROM silver_unparsed_lines
    WHERE reason IN {LOST_REASONS}
        AND (reason IN ('binary', 'doubtful') OR template NOT IN ('request.completed', 'request.completed_text'))
"""
#: Of each broker how many requests that were answered no grammar reads, and when.
_REQUESTS: Final = """
    SELECT cluster_id, broker_id, count(*) AS records, min(time) AS since_us, max(time) AS until_us
    FROM silver_unparsed_lines
    WHERE reason NOT IN ('binary', 'doubtful') AND template IN ('request.completed', 'request.completed_text')
    GROUP BY cluster_id, broker_id ORDER BY cluster_id, broker_id
"""
#: For each stretch of a file the latest time before it and the earliest one after it.
_AROUND: Final = """
    SELECT n.file_id, n.first, n.last, epoch_us(max(time) FILTER (l.byte_offset < n.first)) AS since_us,
        epoch_us(min(time) FILTER (l.byte_offset > n.last)) AS until_us
    FROM places n JOIN bronze_log_lines l ON l.file_id = n.file_id GROUP BY ALL
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


def logging_kinds(counts: pa.Table, files: Iterable[LogFile]) -> set[tuple[str, int, str]]:
    """Return cluster, broker and kind of all lines; a kind is that of the file, or that of the logger.

    At INFO only requests of deprecated versions are logged (KAFKA-18272, 4.0): these make no request log.
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
