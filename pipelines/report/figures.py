"""What the queries give, and the arithmetic on it that several parts of the report share. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from highwater.pipelines.base.recurrence import RunBefore
from highwater.pipelines.grammars.coordinator_bodies import SHARE_APIS
from highwater.pipelines.report.tiers import Node

Rows = list[dict[str, Any]]

WITHIN_MS = (1, 5, 20)
#: Kinds of operations: clients' acks=all produces, requests of coordinators that wait for replication alike, fetches.
PRODUCE, COORDINATOR, FETCH = "produce", "coordinator", "fetch"
#: Requests to coordinators that append a record; each is a kind of request in ``latency`` by its name in lower case.
COORDINATOR_APIS = (
    "OFFSET_COMMIT",
    "TXN_OFFSET_COMMIT",
    "SYNC_GROUP",
    "INIT_PRODUCER_ID",
    "ADD_PARTITIONS_TO_TXN",
    "ADD_OFFSETS_TO_TXN",
    "END_TXN",
    "WRITE_TXN_MARKERS",
    "INITIALIZE_SHARE_GROUP_STATE",
    "WRITE_SHARE_GROUP_STATE",
    "DELETE_SHARE_GROUP_STATE",
)
#: APIs with a latency in the report, besides produces and fetches.
APIS = (*COORDINATOR_APIS, *SHARE_APIS)
#: Parts of an acks=all wait: name in the report, column of gold.delayed_operations.
SPLIT = {
    "wait_for_fetch": "wait_for_fetch_ms",
    "carry": "wait_carry_ms",
    "follower": "wait_follower_ms",
    "closing_fetch": "wait_closing_fetch_ms",
    "completion": "wait_completion_ms",
    "isr_change": "wait_isr_change_ms",
}
#: Phases of a request's header: name in the report, column of gold.request_phases.
PHASES = {
    "request_queue": "request_queue_time_ms",
    "local": "local_time_ms",
    "remote": "remote_time_ms",
    "throttle": "throttle_time_ms",
    "response_queue": "response_queue_time_ms",
    "send": "send_time_ms",
    "unaccounted": "unaccounted_ms",
}
#: Quantiles come in such ticks.
TICKS_PER_MS = 100


@dataclass(frozen=True)
class Collected:
    """Rows that the queries of `pipelines.report.collect` returned."""

    groups: Rows  #: counts of operations per combination of their columns with few values
    quantiles: Mapping[str, dict[str, Any]]  #: a row of all quantiles per kind of operation
    blamed: tuple[Node, ...]  #: brokers that ``quantiles`` has figures of; the position is part of the column names
    singled_out: Mapping[str, frozenset[Node]]  #: brokers with conspicuous waits, by kind of operation
    #: timeline, interval_s: counts of acks=all produces per interval, and its length
    timeline: Rows
    interval_s: int
    worst: Rows  #: operations worth looking at, of each kind in order
    latency: Mapping[str | None, dict[str, Any]]  #: a row per kind of request; None: other APIs
    files: Rows  #: a row per input file
    coverage: Rows  #: a row per broker
    unparsed: Rows  #: most frequent unparsed templates, in order
    configs: Rows  #: a row per broker and key
    lifecycle: Rows  #: version and mode per broker
    delta_versions: dict[str, int]  #: of every table
    #: rows of gold.violations, limited per severity; ``of_severity`` has the full counts
    findings: Rows = field(default_factory=list)
    evidence: Rows = field(default_factory=list)  #: their lines
    clocks: Rows = field(default_factory=list)  #: rows of gold.clock_bounds of the brokers that wrote them
    far_clocks: Rows = field(default_factory=list)  #: rows of gold.clock_bounds of brokers whose clocks are far apart
    rule_results: Rows = field(default_factory=list)  #: a row per rule; empty where no rule was run
    before: RunBefore | None = None  #: what the run before came to; None: there is none
    topics: Rows = field(default_factory=list)  #: cluster and name, in order
    #: rows of gold.incidents that were under way in the window, the most harmful first
    incidents: Rows = field(default_factory=list)
    outside: Rows = field(default_factory=list)  #: rows of gold.violations outside of the window
    holes: Rows = field(default_factory=list)  #: rows of gold.holes; ``is_inside``: of the window
    share_members: Rows = field(default_factory=list)  #: a row per member of a share group, in order
    throttled: Rows = field(default_factory=list)  #: a row per client and API that quotas held back, the longest first

    def groups_of(self, kind: str) -> Rows:
        """Return the rows of counts for one kind of operation."""
        return [row for row in self.groups if row["kind"] == kind]

    def quantiles_of(self, kind: str) -> Mapping[str, Any]:
        """Return quantiles of the operations of one kind; empty without any."""
        return self.quantiles.get(kind, {})


def from_ticks(value: float | None) -> float | None:
    """Return a quantile in ticks of 0.01 ms as milliseconds."""
    return None if value is None else to_ms(value / TICKS_PER_MS)


def to_ms(value: float | None) -> float | None:
    """Return milliseconds to three decimals; 0.0, never -0.0."""
    return None if value is None else round(float(value), 3) + 0.0


def share_of(part: float, whole: float) -> float:
    return min(round(part / whole, 6), 1.0) if whole > 0 else 0.0


def count_by(groups: Rows, key: str, of: Callable[[dict[str, Any]], bool] = lambda row: True) -> dict[str, int]:
    """Return the number of operations per value of a column, most frequent first. Null values are omitted.

    Args:
        groups: rows with a count of operations.
        key: the column.
        of: returns True for rows to count.
    """
    counts: dict[str, int] = defaultdict(int)
    for row in groups:
        if row[key] is not None and of(row):
            counts[row[key]] += row["operations"]
    return sort_most_first(counts)


def sort_most_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts, the largest first."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
