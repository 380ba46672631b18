"""Reads the lake for the report: a dozen queries that give aggregates only, plus a row per input file and finding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from pipelines.config import Config
from pipelines.lake import Lake, concurrently
from pipelines.report import queries
from pipelines.report.assemble import assemble
from pipelines.report.figures import COORDINATOR, PRODUCE, Collected, Rows
from pipelines.report.model import Report, RunInfo
from pipelines.report.tiers import Node
from pipelines.report.values import UNKNOWN_BROKER
from schemas.audit import EVIDENCE, RULE_RESULTS, VIOLATIONS
from schemas.bronze import LOG_FILES
from schemas.gold import COVERAGE, DELAYED_OPERATIONS, REPLICA_BLAME, REQUEST_PHASES
from schemas.silver import BROKER_CONFIGS, BROKER_LIFECYCLE
from schemas.table import TableSpec

#: ``p99_ms_without`` is worked out for so many brokers, the most blamed first: each costs a quantile of its own.
BLAMED_MAX = 50
#: Intervals of the timeline; beyond it the configured interval is doubled until they fit.
TIMELINE_MAX = 2000


def collect_report(
    spark: SparkSession, lake: Lake, config: Config, *, run: RunInfo, since: datetime | None, until: datetime | None
) -> Report:
    """Work out the report of what the lake holds.

    Args:
        spark: the lake's session.
        lake: holds the tables named in the imports above.
        config: thresholds and intervals.
        run: what the lake does not say.
        since: operations, requests, blame and timeline from this arrival on, findings from this time on; without a
            zone it is UTC.
        until: and before this one.

    Raises:
        InputError: nothing was ingested into the lake. Other tables may be missing: they count as empty.
    """

    def table(spec: TableSpec) -> DataFrame:
        return lake.read(spec) if lake.has_rows(spec) else spark.createDataFrame([], spec.schema)

    bounds = queries.Bounds(_micros(since), _micros(until))
    slow_ms = config.latency.slow_ms
    operations = bounds.arrived(queries.operations(table(DELAYED_OPERATIONS), slow_ms))
    findings = queries.findings(bounds.found(table(VIOLATIONS)))
    first: dict[str, DataFrame] = {
        "groups": queries.groups(operations),
        "latency": queries.latency(bounds.arrived(table(REQUEST_PHASES))),
        "files": queries.files(lake.read(LOG_FILES)),
        "coverage": queries.coverage(table(COVERAGE)),
        "unparsed": queries.unparsed(table(COVERAGE)),
        "configs": queries.configs(table(BROKER_CONFIGS)),
        "lifecycle": queries.lifecycle(table(BROKER_LIFECYCLE)),
        "singled_out": queries.singled_out(bounds.overlapping(table(REPLICA_BLAME))),
        "findings": findings,
        "evidence": queries.evidence(table(EVIDENCE), findings),
        "rule_results": table(RULE_RESULTS),
    }
    rows = _run(spark, first)

    blamed = _most_blamed(rows["groups"])
    produces = [row for row in rows["groups"] if row["kind"] == PRODUCE]
    interval_s = _interval_s(produces, config.report.timeline_interval_s)
    second: dict[str, DataFrame] = {}
    if rows["groups"]:
        second |= {"quantiles": queries.quantiles(operations, blamed), "worst": queries.worst(operations)}
    if produces:
        second["timeline"] = queries.timeline(operations, interval_s)
    rows |= _run(spark, second)
    return assemble(
        Collected(
            groups=rows["groups"],
            quantiles={row["kind"]: row for row in rows.get("quantiles", [])},
            blamed=tuple(blamed),
            singled_out={
                kind: frozenset(
                    (row["cluster_id"], row["replica_id"]) for row in rows["singled_out"] if row["kind"] == kind
                )
                for kind in (PRODUCE, COORDINATOR)
            },
            timeline=rows.get("timeline", []),
            interval_s=interval_s,
            worst=sorted(rows.get("worst", []), key=lambda row: int(row["place"])),
            latency={row["kind"]: row for row in rows["latency"]},
            files=rows["files"],
            coverage=rows["coverage"],
            unparsed=rows["unparsed"],
            configs=rows["configs"],
            lifecycle=rows["lifecycle"],
            delta_versions=lake.versions(),
            findings=rows["findings"],
            evidence=rows["evidence"],
            rule_results=rows["rule_results"],
        ),
        config,
        run,
        since_us=bounds.since_us,
        until_us=bounds.until_us,
    )


def _run(spark: SparkSession, frames: dict[str, DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """Run queries side by side: a small query leaves a core idle most of its time."""

    def task(name: str, query: DataFrame) -> Callable[[], list[dict[str, Any]]]:
        def collect() -> list[dict[str, Any]]:
            spark.sparkContext.setJobDescription(f"report: {name}")
            try:
                return [_plain(row) for row in query.collect()]
            finally:
                spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]

        return collect

    results = concurrently([task(name, query) for name, query in frames.items()])
    return dict(zip(frames, results, strict=True))


def _plain(row: Row) -> dict[str, Any]:
    return row.asDict(recursive=True)


def _micros(time: datetime | None) -> int | None:
    if time is None:
        return None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    since_epoch = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since_epoch.days * 86_400 + since_epoch.seconds) * 1_000_000 + since_epoch.microseconds


def _most_blamed(groups: Rows) -> list[Node]:
    """Cluster and id of blamed brokers, worst first, at most `BLAMED_MAX`; of produces before those of coordinators."""
    nodes: dict[Node, None] = {}
    for kind in (PRODUCE, COORDINATOR):
        waits: dict[Node, tuple[float, float]] = {}
        for row in groups:
            if row["kind"] == kind and row["succeeded"] and row["blamed"] != UNKNOWN_BROKER:
                slow, wait = waits.get((row["cluster_id"], row["blamed"]), (0.0, 0.0))
                waits[row["cluster_id"], row["blamed"]] = (slow + row["slow_wait_ms"], wait + row["wait_ms"])
        nodes |= dict.fromkeys(sorted(waits, key=lambda node: (-waits[node][0], -waits[node][1], node)))
    return list(nodes)[:BLAMED_MAX]


def _interval_s(groups: Rows, configured_s: int) -> int:
    """The configured interval, doubled until the timeline has at most `TIMELINE_MAX` intervals."""
    if not groups:
        return configured_s
    span_us = max(row["last_us"] for row in groups) - min(row["first_us"] for row in groups)
    interval_s = configured_s
    while span_us // (interval_s * 1_000_000) + 2 > TIMELINE_MAX:
        interval_s *= 2
    return interval_s
