"""What the report takes from tables that the driver can hold: rows of files, templates, settings and findings. Pure.

Rows are dicts; their times are microseconds since the epoch, and have the names of their columns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from itertools import count
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.values import instant, micros
from pipelines.report.figures import Rows
from pipelines.report.tiers import Node
from pipelines.rules.rule import OPEN, VIOLATION
from schemas.gold import MISSING

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
#: Either shows, check by check, whom an operation waits for. 4.x moved the first: levels set for its old name miss it.
_COMPLETION_LOGGERS = ("DelayedProduce", "cluster.Partition")


@dataclass(frozen=True)
class Bounds:
    """The window, microseconds since the epoch, the end exclusive; None: no bound."""

    since_us: int | None
    until_us: int | None

    def arrived(self) -> pc.Expression | None:
        """Which requests arrived in the window; None: all."""
        conditions = []
        if self.since_us is not None:
            conditions.append(pc.field(ARRIVAL) >= instant(self.since_us))
        if self.until_us is not None:
            conditions.append(pc.field(ARRIVAL) < instant(self.until_us))
        return reduce(and_, conditions) if conditions else None

    def overlap(self, start_us: int, end_us: int) -> bool:
        """Whether an interval, its end exclusive, has at least an instant in the window."""
        return (self.since_us is None or end_us > self.since_us) and (self.until_us is None or start_us < self.until_us)

    def hold(self, time_us: int | None) -> bool:
        """Whether a time is in the window; what has no time may well be of it."""
        return time_us is None or self.overlap(time_us, time_us + 1)


def bounds(since: datetime | None, until: datetime | None) -> Bounds:
    """The window between two times; one without a zone is UTC."""
    return Bounds(micros(since), micros(until))


def singled_out(intervals: Rows, bounds: Bounds) -> dict[str, frozenset[Node]]:
    """Brokers that stood out in an interval of the window, by kind of operation."""
    nodes: dict[str, set[Node]] = defaultdict(set)
    for row in intervals:
        start_us = row["interval_start"]
        if row["singled_out"] and bounds.overlap(start_us, start_us + row["interval_s"] * 1_000_000):
            nodes[row["kind"]].add((row["cluster_id"], row["replica_id"]))
    return {kind: frozenset(those) for kind, those in nodes.items()}


# ------------------------------------------------------------------ findings


def findings(rows: Rows, bounds: Bounds, at_most: int = FINDINGS_MAX) -> Rows:
    """Findings of the window, of a severity at most so many: those of their own first, of every rule as many as fit.

    Each says in `of_severity` how many there are.
    """
    rows = sorted((row for row in rows if bounds.hold(row["time"])), key=_place)
    of_severity = Counter(row["severity"] for row in rows)
    places: dict[tuple[str, str], count[int]] = defaultdict(count)
    ranked: dict[str, list[tuple[tuple[bool, int, str], dict[str, Any]]]] = defaultdict(list)
    for row in rows:
        rank = (row["implied_by"] is not None, next(places[row["severity"], row["rule_id"]]), row["rule_id"])
        time_us = {"time_us": row["time"], "of_severity": of_severity[row["severity"]]}
        ranked[row["severity"]].append((rank, {name: value for name, value in row.items() if name != "time"} | time_us))
    return [row for those in ranked.values() for _, row in sorted(those, key=lambda item: item[0])[:at_most]]


def incidents(rows: Rows, lines: Rows, bounds: Bounds) -> Rows:
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


def outside(rows: Rows, bounds: Bounds, at_most: int = FINDINGS_MAX) -> Rows:
    """Findings of their own that are outside of the window, but for observations; violations first, by time."""
    weights = {VIOLATION: 0, OPEN: 1}
    those = [
        row for row in rows if row["severity"] in weights and row["implied_by"] is None and not bounds.hold(row["time"])
    ]
    return sorted(those, key=lambda row: (weights[row["severity"]], row["time"], _place(row)))[:at_most]


def holes(rows: Rows, bounds: Bounds) -> Rows:
    """Holes in the logs; ``is_inside``: something of it may be of the window."""
    bounded = ((row, row["since_time"], row["until_time"]) for row in rows)
    return [
        row
        | {
            "is_inside": (bounds.since_us is None or until_us is None or until_us >= bounds.since_us)
            and (bounds.until_us is None or since_us is None or since_us < bounds.until_us)
        }
        for row, since_us, until_us in bounded
    ]


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Those of their own first, then by place; what has none of it first."""
    parts = ((row[name] is not None, row[name] or 0) for name in ("partition", "offset_start", "time"))
    return (row["implied_by"] is not None, row["topic"] is not None, row["topic"] or "", *parts, row["finding_id"])


def add_lengths(evidence: Rows, lines: pa.Table) -> None:
    """Put ``byte_length`` into lines of findings: up to where the next record of the same file begins.

    Args:
        lines: file_id and byte_offset of the records of those files.
    """
    files = lines.group_by("file_id").aggregate([("byte_offset", "list")])
    offsets = {
        file_id: np.sort(those.values.to_numpy())
        for file_id, those in zip(files["file_id"].to_pylist(), files["byte_offset_list"], strict=True)
    }
    for row in evidence:
        of_file = offsets.get(row["file_id"])
        if of_file is None:
            continue
        place = int(np.searchsorted(of_file, row["byte_offset"], side="right"))
        # A line of a data directory is in a file of its own, which has no records.
        is_record = place > 0 and of_file[place - 1] == row["byte_offset"]
        if is_record and place < len(of_file):
            row["byte_length"] = int(of_file[place]) - row["byte_offset"] - 1


# ---------------------------------------------------- coverage, configurations


def coverage(rows: Rows) -> Rows:
    """Records and marks of evidence, per broker."""
    of_node: dict[tuple[str | None, int], Rows] = defaultdict(list)
    for row in rows:
        of_node[row["cluster_id"], row["broker_id"]].append(row)
    return [
        {
            "cluster_id": cluster_id,
            "broker_id": broker_id,
            "lines": sum(row["line_count"] for row in those if row["outcome"] != MISSING),
            "unparsed": sum(row["line_count"] for row in those if row["outcome"] == "unparsed"),
            "missing": sum(row["line_count"] for row in those if row["outcome"] == MISSING),
            # At INFO only requests of deprecated versions are logged (KAFKA-18272, 4.0): none of the others.
            "request_log": any(
                row["template"].startswith("request.") and row["level"] in ("DEBUG", "TRACE") for row in _typed(those)
            ),
            "partition_debug": any(
                row["level"] == "DEBUG" and (row["logger"] or "").endswith("cluster.Partition") for row in _typed(those)
            ),
            "completion_trace": any(
                row["level"] == "TRACE" and (row["logger"] or "").endswith(_COMPLETION_LOGGERS) for row in _typed(those)
            ),
        }
        for (cluster_id, broker_id), those in of_node.items()
    ]


def _typed(rows: Rows) -> Rows:
    return [row for row in rows if row["outcome"] == "typed"]


def unparsed(rows: Rows) -> Rows:
    """The most frequent templates that were not understood."""
    counts: Counter[tuple[str, str | None]] = Counter()
    for row in rows:
        if row["outcome"] == "unparsed":
            counts[row["template"], row["logger"]] += row["line_count"]
    ordered = sorted(counts, key=lambda key: (-counts[key], key[0], key[1] is not None, key[1] or ""))
    return [{"template": key[0], "logger": key[1], "count": counts[key]} for key in ordered[:UNPARSED_MAX]]


def configs(rows: Rows) -> Rows:
    """The last value of each key that a broker logged at a start."""
    last = {(row["cluster_id"], row["broker_id"], row["key"]): row for row in sorted(rows, key=_said)}
    return list(last.values())


def lifecycle(rows: Rows, files: Rows) -> Rows:
    """Version and mode that each broker logged last; versions of clients that write beside it are none of its own.

    Args:
        files: rows of `bronze.log_files`, with the versions of their brokers.
    """
    versions = {
        (row["cluster_id"], broker, row["kafka_version"])
        for row in files
        for broker in row["broker_ids"] or (row["broker_id"],)
    }
    last: dict[tuple[str | None, int | None], dict[str, Any]] = {}
    for row in sorted(rows, key=_said):
        node = {"cluster_id": row["cluster_id"], "broker_id": row["broker_id"], "kafka_version": None, "mode": None}
        said = {name: row[name] for name in ("kafka_version", "mode") if row[name] is not None}
        if (row["cluster_id"], row["broker_id"], row["kafka_version"]) not in versions:
            said.pop("kafka_version", None)
        if said:
            last[row["cluster_id"], row["broker_id"]] = last.get((row["cluster_id"], row["broker_id"]), node) | said
    return list(last.values())


def _said(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["time"], row["file_id"], row["byte_offset"], row["fact_no"]
