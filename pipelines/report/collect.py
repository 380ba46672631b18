"""Reads the lake for the report: five questions that give aggregates only, and tables that the driver can hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.base.recurrence import RunBefore, summarize_run
from highwater.pipelines.base.threads import run_concurrently
from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import match_cluster, open_reader, read_version
from highwater.pipelines.report import queries
from highwater.pipelines.report import small_tables as small
from highwater.pipelines.report.assemble import assemble
from highwater.pipelines.report.figures import COORDINATOR, PRODUCE, Collected, Rows
from highwater.pipelines.report.model import Report, RunInfo
from highwater.pipelines.report.tiers import Node
from highwater.pipelines.timing.clocks.order import FAR_APART_MS
from highwater.schemas.audit import EVIDENCE, RULE_RESULTS, VIOLATIONS
from highwater.schemas.bronze import LOG_FILES, LOG_LINES
from highwater.schemas.clocks import CLOCK_BOUNDS
from highwater.schemas.gold import COVERAGE, DELAYED_OPERATIONS, HOLES, REPLICA_BLAME, REQUEST_PHASES
from highwater.schemas.incidents import INCIDENT_LINES, INCIDENTS
from highwater.schemas.isr import ISR_TIMELINE
from highwater.schemas.shares import SHARE_OPERATIONS
from highwater.schemas.silver import BROKER_CONFIGS, BROKER_LIFECYCLE, LEADER_AND_ISR
from highwater.schemas.table import TableSpec

_OF_FILES = (
    *("path", "sha256", "kind", "cluster_id", "broker_id", "broker_ids", "kafka_version", "mode", "line_count"),
    *("problem", "first_time", "last_time", "resolution_us", "layout", "encoding", "excerpt"),
)
#: What statements of `pipelines.report.small_tables` add up.
_ADDED_UP = (LOG_FILES, VIOLATIONS, HOLES, COVERAGE, BROKER_CONFIGS, BROKER_LIFECYCLE, LEADER_AND_ISR, ISR_TIMELINE)
_OF_INTERVALS = ("kind", "cluster_id", "replica_id", "interval_start", "interval_s", "singled_out")
#: Clocks that are further apart than any that are kept in step: one is wrong, or its log is in another time zone.
_FAR = (pc.field("lowest_ms") > FAR_APART_MS) | (pc.field("highest_ms") < -FAR_APART_MS)
#: Tables whose versions identify the previous audit.
_JUDGED = (VIOLATIONS, RULE_RESULTS, INCIDENTS)
#: Number of brokers with a ``p99_ms_without``, the most blamed first. Each broker needs its own quantile.
BLAMED_MAX = 50
#: Intervals of the timeline; beyond it the configured interval is doubled until they fit.
TIMELINE_MAX = 2000


def collect_report(
    lake: Lake,
    config: Config,
    *,
    run: RunInfo,
    since: datetime | None,
    until: datetime | None,
    cluster_id: str | None = None,
) -> Report:
    """Build the report from the tables of a lake.

    Args:
        config: thresholds and intervals.
        run: metadata of the run that the lake does not contain.
        since, until: time window, end exclusive. Requests count by arrival, findings by their own time. Without a zone
            UTC. None for no bound.
        cluster_id: the only cluster to report. None for all clusters.

    Raises:
        InputError: the lake has no log files. Other missing tables count as empty.
    """

    if not lake.exists(LOG_FILES):
        raise InputError(lake.root, f"holds no table {LOG_FILES.full_name}", "ingest and parse logs into it first")
    bounds = small.make_bounds(since, until)
    asked, held = run_concurrently(
        [lambda: _collect_asked(lake, config, bounds, cluster_id), lambda: _collect_held(lake, bounds, cluster_id)]
    )
    return assemble(
        Collected(
            delta_versions=lake.versions(),
            **asked,
            **held,
        ),
        config,
        run if cluster_id is None else _run_of(lake, run, cluster_id),
        since_us=bounds.since_us,
        until_us=bounds.until_us,
    )


def _collect_asked(lake: Lake, config: Config, bounds: small.WindowBounds, cluster_id: str | None) -> dict[str, Any]:
    """Return the fields of `Collected` that DuckDB aggregates from tables of operations and requests."""
    needed = match_cluster(cluster_id, bounds.arrived())
    reader = open_reader(lake, [(spec, needed) for spec in (DELAYED_OPERATIONS, REQUEST_PHASES, SHARE_OPERATIONS)])
    where = queries.match_window(bounds, cluster_id)
    operations = queries.select_operations(where, config.latency.slow_ms)
    groups = reader.rows(queries.select_groups(operations))
    produces = [row for row in groups if row["kind"] == PRODUCE]
    blamed = _select_most_blamed(groups)
    interval_s = _choose_interval_s(produces, config.report.timeline_interval_s)
    worst = reader.rows(queries.select_worst(operations)) if groups else []
    return {
        "groups": groups,
        "quantiles": {row["kind"]: row for row in reader.rows(queries.select_quantiles(operations, blamed))}
        if groups
        else {},
        "blamed": tuple(blamed),
        "timeline": reader.rows(queries.select_timeline(operations, interval_s)) if produces else [],
        "interval_s": interval_s,
        "worst": sorted(worst, key=lambda row: int(row["place"])),
        "latency": {row["kind"]: row for row in reader.rows(queries.select_latency(queries.select_requests(where)))},
        "throttled": reader.rows(queries.select_throttled(where)),
        "share_members": reader.rows(queries.share_members(where)),
    }


def _run_of(lake: Lake, run: RunInfo, cluster_id: str) -> RunInfo:
    """Return the run without problems of other clusters' files. Problems of unreadable files stay: their cluster is
    unknown.
    """
    others = lake.rows(LOG_FILES, "path", where=pc.field("cluster_id") != cluster_id)["path"].to_pylist()
    return replace(run, problems=tuple(problem for problem in run.problems if problem[0] not in set(others)))


def _collect_held(lake: Lake, bounds: small.WindowBounds, cluster_id: str | None) -> dict[str, Any]:
    """Return the fields of `Collected` that are read from small tables without a query."""

    def rows(spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> Rows:
        return lake.dicts(spec, *columns, where=match_cluster(cluster_id, where))

    intervals = rows(REPLICA_BLAME, *_OF_INTERVALS, where=pc.field("singled_out"))
    of_cluster_id = {"cluster": cluster_id}
    of_window = {**of_cluster_id, **bounds.parameters}
    reader = open_reader(lake, [(spec, None) for spec in _ADDED_UP])
    findings = reader.rows(small.SQL["findings"], most=small.FINDINGS_MAX, **of_window)
    evidence = []
    if findings:
        of_findings = open_reader(lake, [(EVIDENCE, None)], [(LOG_LINES, None)])
        evidence = of_findings.rows(small.SQL["evidence"], ids=[row["finding_id"] for row in findings], **of_cluster_id)
    configs = reader.rows(small.SQL["configs"], **of_cluster_id)
    return {
        "files": rows(LOG_FILES, *_OF_FILES),
        "coverage": reader.rows(small.SQL["coverage"], **of_cluster_id),
        "unparsed": reader.rows(small.SQL["unparsed"], **of_cluster_id),
        "configs": [row for row in configs if row["key"] in small.CONFIG_KEYS],
        "lifecycle": reader.rows(small.SQL["lifecycle"], **of_cluster_id),
        "singled_out": small.find_singled_out(intervals, bounds),
        "findings": findings,
        "evidence": evidence,
        "far_clocks": rows(CLOCK_BOUNDS, "cluster_id", "broker_a", "broker_b", "lowest_ms", "highest_ms", where=_FAR),
        "clocks": rows(CLOCK_BOUNDS, *CLOCK_BOUNDS.column_names, where=_select_both(evidence)),
        "rule_results": rows(RULE_RESULTS, *RULE_RESULTS.column_names),
        "before": _read_last_run(lake, cluster_id),
        "topics": reader.rows(small.SQL["topics"], **of_cluster_id),
        "incidents": small.make_incidents(
            rows(INCIDENTS, *INCIDENTS.column_names), rows(INCIDENT_LINES, *INCIDENT_LINES.column_names), bounds
        ),
        "outside": reader.rows(small.SQL["outside"], **of_window),
        "holes": reader.rows(small.SQL["holes"], **of_window),
    }


def _select_both(evidence: Rows) -> pc.Expression:
    """Return a filter for pairs of brokers that both wrote lines of evidence."""
    brokers = pa.array(sorted({row["broker_id"] for row in evidence if row["broker_id"] is not None}), pa.int32())
    return pc.field("broker_a").isin(brokers) & pc.field("broker_b").isin(brokers)


def _read_last_run(lake: Lake, cluster_id: str | None) -> RunBefore | None:
    """Return the results of the previous audit. None for the first audit, or if its files were removed."""
    last = lake.stamp(VIOLATIONS)
    versions = [{stamp: version for version, stamp in reversed([*lake.stamps(spec)])} for spec in _JUDGED]
    earlier = next((stamp for _, stamp in lake.stamps(VIOLATIONS) if stamp != last), None)
    if earlier is None or any(earlier not in those for those in versions):
        return None
    tables = [read_version(lake, spec, those[earlier]) for spec, those in zip(_JUDGED, versions, strict=True)]
    where = match_cluster(cluster_id)
    judged = [table if where is None else table.filter(where) for table in tables if table is not None]
    rows = [dicts(table) for table in judged]
    return summarize_run(earlier, *rows) if len(rows) == len(_JUDGED) else None


def _select_most_blamed(groups: Rows) -> list[Node]:
    """Return (cluster, broker id) of at most `BLAMED_MAX` brokers that produces waited for longest.

    Requests of coordinators are considered after produces.
    """
    nodes: dict[Node, None] = {}
    for kind in (PRODUCE, COORDINATOR):
        waits: dict[Node, tuple[float, float]] = {}
        for row in groups:
            if row["kind"] == kind and row["succeeded"] and row["blamed"] != UNKNOWN_BROKER:
                slow, wait = waits.get((row["cluster_id"], row["blamed"]), (0.0, 0.0))
                waits[row["cluster_id"], row["blamed"]] = (slow + row["slow_wait_ms"], wait + row["wait_ms"])
        nodes |= dict.fromkeys(sorted(waits, key=lambda node: (-waits[node][0], -waits[node][1], node)))
    return list(nodes)[:BLAMED_MAX]


def _choose_interval_s(groups: Rows, configured_s: int) -> int:
    """Return the timeline's interval, s: as configured, doubled until there are at most `TIMELINE_MAX` intervals."""
    if not groups:
        return configured_s
    span_us = max(row["last_us"] for row in groups) - min(row["first_us"] for row in groups)
    interval_s = configured_s
    while span_us // (interval_s * 1_000_000) + 2 > TIMELINE_MAX:
        interval_s *= 2
    return interval_s
