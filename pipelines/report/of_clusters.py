"""What the report says of each of several clusters, and what that comes to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from highwater.pipelines.base.recurrence import BY_WEIGHT
from highwater.pipelines.base.values import UNKNOWN_BROKER, UNKNOWN_CLUSTER
from highwater.pipelines.lake.clusters import FileCluster, list_clusters
from highwater.pipelines.report.correctness import Correctness
from highwater.pipelines.report.figures import Collected, Rows
from highwater.pipelines.report.model import NotCheckable, Report, RuleResult, Verdict
from highwater.pipelines.report.small_tables import WindowBounds

#: Rows that are of one cluster each.
_OF_ONE = (
    *("groups", "files", "coverage", "configs", "lifecycle", "findings", "evidence", "clocks", "far_clocks", "topics"),
    "outside",
)


def find_clusters(rows: Collected, bounds: WindowBounds) -> list[str]:
    """Return the ids of the clusters to judge: with results of rules, or with broker logs.

    Args:
        bounds: time window. Clusters without logs and findings in it are omitted: a retired cluster would make every
            window inconclusive. If no cluster has any, all are returned.
    """
    # A lake of an older version has one result for all clusters.
    judged = {row["cluster_id"] for row in rows.rule_results if row["cluster_id"] is not None}
    clusters = judged.union(list_clusters(FileCluster(row["cluster_id"], row["broker_id"]) for row in rows.files))
    present = {row["cluster_id"] for row in rows.findings} | {
        row["cluster_id"] or UNKNOWN_CLUSTER
        for row in rows.files
        if row["first_time"] is not None and bounds.overlap(row["first_time"], row["last_time"] + 1)
    }
    is_whole = bounds.since_us is None and bounds.until_us is None
    return sorted(clusters if is_whole else clusters & present or clusters)


def find_silent_clusters(report: Report) -> set[str]:
    """Return the ids of clusters without a verdict, because they have no logs in the window."""
    if report.window.since is None and report.window.until is None:
        return set()
    there = {broker.cluster_id for broker in report.brokers if broker.broker_id != UNKNOWN_BROKER}
    return there - {part.cluster_id for part in report.clusters}


def select_cluster(rows: Collected, cluster_id: str) -> Collected:
    """Return the collected rows of one cluster. Quantiles and timeline cover all clusters, so they are left out."""

    def of(table: Rows) -> Rows:
        return [row for row in table if (row["cluster_id"] or UNKNOWN_CLUSTER) == cluster_id]

    changed: dict[str, Any] = {name: of(getattr(rows, name)) for name in _OF_ONE}
    return replace(
        rows,
        **changed,
        rule_results=[row for row in rows.rule_results if row["cluster_id"] in (None, cluster_id)],
        holes=[row for row in rows.holes if row["cluster_id"] in (cluster_id, UNKNOWN_CLUSTER)],
    )


def choose_worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts."""
    return max(verdicts, key=BY_WEIGHT.index)


def join_correctness(whole: Correctness, parts: Mapping[str, Correctness]) -> Correctness:
    """Merge the results of the rules of several clusters: all findings, and the worst verdict per rule.

    Args:
        whole: results over all clusters.
        parts: results by cluster id.
    """
    results: dict[str, list[tuple[str, RuleResult]]] = {}
    for cluster_id, part in parts.items():
        for result in part.rules:
            results.setdefault(result.rule_id, []).append((cluster_id, result))
    is_new = {result.rule_id: result.is_new for result in whole.rules}
    order = dict.fromkeys(result.rule_id for result in whole.rules)
    return replace(
        whole,
        rules=tuple(_join_results(results[rule_id], is_new[rule_id]) for rule_id in order),
        doubts=tuple(f"cluster {cluster_id}: {doubt}" for cluster_id, part in parts.items() for doubt in part.doubts),
        not_checkable=tuple(name_gaps({cluster_id: part.not_checkable for cluster_id, part in parts.items()})),
    )


def name_gaps(gaps: Mapping[str, Iterable[NotCheckable]]) -> Iterable[NotCheckable]:
    """Yield what cannot be checked in each cluster, prefixed by the cluster's name."""
    for cluster_id, of_cluster in gaps.items():
        for gap in of_cluster:
            yield gap.model_copy(update={"reason": f"cluster {cluster_id}: {gap.reason}"})


def _join_results(results: Sequence[tuple[str, RuleResult]], is_new: bool | None) -> RuleResult:
    sums: dict[str, Any] = {
        name: sum(getattr(result, name) for _, result in results)
        for name in ("checked", "cases", "observations", "open_cases", "left_out")
    }
    applicable = [(cluster_id, result) for cluster_id, result in results if result.applicable] or results
    reasons = [f"cluster {cluster_id}: {result.reason}" for cluster_id, result in applicable if result.reason]
    return RuleResult(
        rule_id=results[0][1].rule_id,
        verdict=choose_worst(result.verdict for _, result in results),
        reason="; ".join(reasons) or None,
        is_new=is_new,
        applicable=any(result.applicable for _, result in results),
        **sums,
    )
