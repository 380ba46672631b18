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
from highwater.schemas.package_data import read_queries

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
    """A time window, microseconds since the epoch, end exclusive. None: no bound."""

    since_us: int | None
    until_us: int | None

    def arrived(self) -> pc.Expression | None:
        """Return a filter for requests that arrived in the window. None if the window has no bounds."""
        conditions = []
        if self.since_us is not None:
            conditions.append(pc.field(ARRIVAL) >= instant(self.since_us))
        if self.until_us is not None:
            conditions.append(pc.field(ARRIVAL) < instant(self.until_us))
        return reduce(and_, conditions) if conditions else None

    def overlap(self, start_us: int, end_us: int) -> bool:
        """Return True if an interval, microseconds, end exclusive, overlaps the window."""
        return (self.since_us is None or end_us > self.since_us) and (self.until_us is None or start_us < self.until_us)

    @property
    def parameters(self) -> dict[str, datetime | None]:
        """Return the parameters ``since`` and ``until`` of a SQL statement."""
        since, until = (None if us is None else instant(us) for us in (self.since_us, self.until_us))
        return {"since": since, "until": until}


def make_bounds(since: datetime | None, until: datetime | None) -> WindowBounds:
    """Return the window between two times. A time without a zone is UTC."""
    return WindowBounds(micros(since), micros(until))


def find_singled_out(intervals: Rows, bounds: WindowBounds) -> dict[str, frozenset[Node]]:
    """Return by kind of operation the brokers with conspicuous waits in an interval of the window."""
    nodes: dict[str, set[Node]] = defaultdict(set)
    for row in intervals:
        start_us = row["interval_start"]
        if row["singled_out"] and bounds.overlap(start_us, start_us + row["interval_s"] * 1_000_000):
            nodes[row["kind"]].add((row["cluster_id"], row["replica_id"]))
    return {kind: frozenset(those) for kind, those in nodes.items()}


def make_incidents(rows: Rows, lines: Rows, bounds: WindowBounds) -> Rows:
    """Return incidents that overlap the window, by cluster, the most harmful first.

    Args:
        rows: rows of `gold.incidents`.
        lines: rows of `gold.incident_lines`. Each incident gets its own as ``evidence``.
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
#: SQL sort key of the lines of one broker.
_PLACE = "(time, file_id, byte_offset, fact_no)"

#: Findings of the window; what has no time may well be of it. Parameters ``since`` and ``until``, as of what follows.
_INSIDE = "(time IS NULL OR (($since IS NULL OR time >= $since) AND ($until IS NULL OR time < $until)))"
#: SQL sort key of findings: roots first, then by place, missing places first.
_BY_PLACE = ", ".join(
    ("implied_by IS NOT NULL", *(f"{name} NULLS FIRST" for name in ("topic", "partition", "offset_start", "time")))
)
SQL = read_queries(
    __package__ or "",
    "small_tables.sql",
    of_cluster=OF_CLUSTER,
    inside=_INSIDE,
    by_place=_BY_PLACE,
    place=_PLACE,
    violation=VIOLATION,
    open=OPEN,
    unknown=UNKNOWN_CLUSTER,
    missing=MISSING,
    findings_max=FINDINGS_MAX,
    unparsed_max=UNPARSED_MAX,
)
