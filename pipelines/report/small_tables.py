"""What the report takes from tables that the driver can hold: rows of files, templates, settings and findings. Pure.

Rows are dicts; their times are microseconds since the epoch, and have the names of their columns. What is added up is
asked in DuckDB's SQL.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_

import pyarrow.compute as pc

from highwater.pipelines.base.values import UNKNOWN_CLUSTER, instant, micros
from highwater.pipelines.report.figures import Rows
from highwater.pipelines.report.tiers import Node
from highwater.pipelines.rules.rule import OPEN, VIOLATION
from highwater.schemas.gold import MISSING

#: Keys of a broker's configuration that matter for replication, and so are shown in the report.
CONFIG_KEYS = (
    "process.roles",
    "listeners",
    "inter.broker.protocol.version",
    "default.replication.factor",
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "auto.leader.rebalance.enable",
    "replica.lag.time.max.ms",
    "replica.fetch.wait.max.ms",
    "replica.fetch.min.bytes",
    "replica.fetch.max.bytes",
    "replica.fetch.backoff.ms",
    "replica.socket.timeout.ms",
    "replica.high.watermark.checkpoint.interval.ms",
    "replica.selector.class",
    "num.replica.fetchers",
    "num.io.threads",
    "num.network.threads",
    "queued.max.requests",
    "log.flush.interval.messages",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "zookeeper.session.timeout.ms",
    "controlled.shutdown.enable",
    "request.timeout.ms",
    "transaction.state.log.min.isr",
    "offsets.topic.replication.factor",
)
#: Column by which requests and operations are of a window.
ARRIVAL = "arrival_time"
UNPARSED_MAX = 20
#: Findings of one severity that are shown.
FINDINGS_MAX = 1000


@dataclass(frozen=True)
class WindowBounds:
    """The window, microseconds since the epoch, the end exclusive; None: no bound."""

    since_us: int | None
    until_us: int | None

    def arrived(self) -> pc.Expression | None:
        """Return which requests arrived in the window; None: all."""
        conditions = []
        if self.since_us is not None:
            conditions.append(pc.field(ARRIVAL) >= instant(self.since_us))
        if self.until_us is not None:
            conditions.append(pc.field(ARRIVAL) < instant(self.until_us))
        return reduce(and_, conditions) if conditions else None

    def overlap(self, start_us: int, end_us: int) -> bool:
        """Return whether an interval, its end exclusive, has at least an instant in the window."""
        return (self.since_us is None or end_us > self.since_us) and (self.until_us is None or start_us < self.until_us)

    @property
    def parameters(self) -> dict[str, datetime | None]:
        """Return parameters ``since`` and ``until`` of a statement."""
        since, until = (None if us is None else instant(us) for us in (self.since_us, self.until_us))
        return {"since": since, "until": until}


def bounds(since: datetime | None, until: datetime | None) -> WindowBounds:
    """Return the window between two times; one without a zone is UTC."""
    return WindowBounds(micros(since), micros(until))


def singled_out(intervals: Rows, bounds: WindowBounds) -> dict[str, frozenset[Node]]:
    """Return brokers that stood out in an interval of the window, by kind of operation."""
    nodes: dict[str, set[Node]] = defaultdict(set)
    for row in intervals:
        start_us = row["interval_start"]
        if row["singled_out"] and bounds.overlap(start_us, start_us + row["interval_s"] * 1_000_000):
            nodes[row["kind"]].add((row["cluster_id"], row["replica_id"]))
    return {kind: frozenset(those) for kind, those in nodes.items()}


def incidents(rows: Rows, lines: Rows, bounds: WindowBounds) -> Rows:
    """Incidents that were under way in the window, the most harmful first; of several clusters in their order.

    Args:
        lines: rows of `gold.incident_lines`: each incident has its own as ``evidence``.
    """
    of_incident: dict[tuple[str, str], Rows] = defaultdict(list)
    for line in sorted(lines, key=lambda line: int(line["position"])):
        of_incident[line["cluster_id"], line["incident_id"]].append(line)
    under_way = [
        row | {"evidence": of_incident[row["cluster_id"], row["incident_id"]]}
        for row in rows
        if row["end_time"] is None or bounds.overlap(row["start_time"], row["end_time"] + 1)
        if bounds.until_us is None or row["start_time"] < bounds.until_us
    ]
    return sorted(under_way, key=lambda row: (row["harm"], row["cluster_id"]))


# ------------------------------------------------------------------------- in SQL

#: Rows of a cluster, of any for null: parameter ``cluster``, as of all that follow.
OF_CLUSTER = "($cluster IS NULL OR cluster_id = $cluster)"
#: In the order in which lines of one broker are told apart.
_PLACE = "(time, file_id, byte_offset, fact_no)"

#: Findings of the window; what has no time may well be of it. Parameters ``since`` and ``until``, as of what follows.
_INSIDE = "(time IS NULL OR (($since IS NULL OR time >= $since) AND ($until IS NULL OR time < $until)))"
#: Those of their own first, then by place; what has none of it first.
_BY_PLACE = ", ".join(
    ("implied_by IS NOT NULL", *(f"{name} NULLS FIRST" for name in ("topic", "partition", "offset_start", "time")))
)
#: Findings of the window, of a severity at most ``most``: those of their own first, of every rule as many as fit. Each
#: says in ``of_severity`` how many there are.
FINDINGS = f"""
    SELECT * EXCLUDE (number) FROM (
        SELECT *, count(*) OVER (PARTITION BY severity) AS of_severity,
            row_number() OVER (PARTITION BY severity, rule_id ORDER BY {_BY_PLACE}, finding_id) AS number
        FROM gold_violations WHERE {OF_CLUSTER} AND {_INSIDE}
    ) QUALIFY row_number() OVER (PARTITION BY severity ORDER BY implied_by IS NOT NULL, number, rule_id) <= $most
"""
#: Findings of their own that are outside of the window, but for observations; violations first, by time.
OUTSIDE = f"""
    SELECT * FROM gold_violations
    WHERE severity IN ('{VIOLATION}', '{OPEN}') AND implied_by IS NULL AND {OF_CLUSTER} AND NOT {_INSIDE}
    ORDER BY severity = '{OPEN}', time, {_BY_PLACE}, finding_id LIMIT {FINDINGS_MAX}
"""
#: Holes in the logs of a cluster, or that may be of any; ``is_inside``: something of it may be of the window.
HOLES = f"""
    SELECT *, ($since IS NULL OR until_time IS NULL OR until_time >= $since)
        AND ($until IS NULL OR since_time IS NULL OR since_time < $until) AS is_inside
    FROM gold_holes WHERE $cluster IS NULL OR cluster_id IN ($cluster, '{UNKNOWN_CLUSTER}')
"""
#: Lines of findings; ``byte_length`` is up to where the next record of the same file begins. A line of a data directory
#: is in a file of its own, which has no records. Parameter ``ids``: of the findings.
EVIDENCE = f"""
    WITH shown AS (SELECT * FROM gold_evidence WHERE finding_id IN (SELECT unnest($ids)) AND {OF_CLUSTER})
    SELECT shown.*, byte_length FROM shown LEFT JOIN (
        SELECT file_id, byte_offset,
            lead(byte_offset) OVER (PARTITION BY file_id ORDER BY byte_offset) - byte_offset - 1 AS byte_length
        FROM bronze_log_lines WHERE file_id IN (SELECT file_id FROM shown)
    ) USING (file_id, byte_offset)
"""
#: Records and marks of evidence, per broker. At INFO only requests of deprecated versions are logged (KAFKA-18272,
#: 4.0): none of the others. Either logger of completions shows, check by check, whom an operation waits for; 4.x moved
#: the first: levels set for its old name miss it.
COVERAGE = f"""
    SELECT cluster_id, broker_id,
        coalesce(sum(line_count) FILTER (outcome <> '{MISSING}'), 0)::BIGINT AS lines,
        coalesce(sum(line_count) FILTER (outcome = 'unparsed'), 0)::BIGINT AS unparsed,
        coalesce(sum(line_count) FILTER (outcome = '{MISSING}'), 0)::BIGINT AS missing,
        count(*) FILTER (outcome = 'typed' AND starts_with(template, 'request.') AND level IN ('DEBUG', 'TRACE')) > 0
            AS request_log,
        count(*) FILTER (outcome = 'typed' AND ends_with(logger, 'cluster.Partition') AND level = 'DEBUG') > 0
            AS partition_debug,
        count(*) FILTER (outcome = 'typed' AND level = 'TRACE'
            AND (ends_with(logger, 'DelayedProduce') OR ends_with(logger, 'cluster.Partition'))) > 0 AS completion_trace
    FROM gold_coverage WHERE {OF_CLUSTER} GROUP BY cluster_id, broker_id
"""
#: The most frequent templates that were not understood.
UNPARSED = f"""
    SELECT template, logger, sum(line_count)::BIGINT AS count FROM gold_coverage
    WHERE outcome = 'unparsed' AND {OF_CLUSTER}
    GROUP BY template, logger ORDER BY count DESC, template, logger NULLS FIRST LIMIT {UNPARSED_MAX}
"""
#: The last value of each key that a broker logged at a start.
CONFIGS = f"""
    SELECT cluster_id, broker_id, key, value FROM silver_broker_configs WHERE scope = 'broker' AND {OF_CLUSTER}
    QUALIFY row_number() OVER (PARTITION BY cluster_id, broker_id, key ORDER BY {_PLACE} DESC) = 1
"""
#: Version and mode that each broker logged last; versions of clients that write beside it are none of its own.
LIFECYCLE = f"""
    WITH said AS (SELECT * FROM silver_broker_lifecycle WHERE {OF_CLUSTER}), known AS (
        SELECT DISTINCT cluster_id, kafka_version AS known_version,
            unnest(CASE WHEN len(broker_ids) > 0 THEN broker_ids ELSE [broker_id] END) AS known_id
        FROM bronze_log_files
    )
    SELECT said.cluster_id, broker_id, arg_max(known_version, {_PLACE}) AS kafka_version,
        arg_max(mode, {_PLACE}) AS mode
    FROM said LEFT JOIN known ON said.cluster_id = known.cluster_id AND broker_id IS NOT DISTINCT FROM known_id
        AND kafka_version = known_version
    GROUP BY said.cluster_id, broker_id HAVING count(known_version) + count(mode) > 0
"""
#: Topics whose leaders or in-sync sets lines tell.
TOPICS = f"""
    SELECT cluster_id, topic FROM silver_leader_and_isr WHERE {OF_CLUSTER}
    UNION SELECT cluster_id, topic FROM gold_isr_timeline WHERE {OF_CLUSTER} ORDER BY cluster_id, topic
"""
