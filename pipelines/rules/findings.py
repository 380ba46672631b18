"""From cases to findings: configured severities, findings nested under their cause, verdicts. Pure.

A rule may depend on lines of days that were dropped since: an answer of last month, and a truncation of today. Missing
lines never make a violation, so findings without them are true. But they may be fewer, and proven findings remain
proven. So a known finding is kept word by word. If it is found again with more records or offsets, the new text
replaces it. Closed days get no new findings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import md5
from itertools import product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.recurrence import fingerprint
from highwater.pipelines.lake.clusters import ClusterInstants
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Case, Ref, Rule

OFF: Final = "off"
VIOLATED: Final = "violated"
INCONCLUSIVE: Final = "inconclusive"
CLEAN: Final = "clean"

#: Rules whose cases follow from one of another rule in the same partition, where their offsets overlap.
IMPLIED: Final[Mapping[str, tuple[str, ...]]] = {
    "committed-data-lost": (
        "truncation-below-hw",
        "hw-regression",
        "hw-above-isr",
        "ack-before-commit",
        "epoch-history-diverged",
        "replica-bytes-diverged",
        "acked-by-leader-only-lost",
    ),
    "acked-as-duplicate-of-another-batch": ("error-yet-committed",),
    "two-leaders-one-epoch": ("stale-epoch-accepted", "illegal-state-transition"),
    "leader-outside-isr": ("illegal-state-transition",),
    "isr-outside-replicas": ("illegal-state-transition",),
}


@dataclass(frozen=True, kw_only=True)
class Found(Case):
    """A reported violation or observation: its partition, id and configured severity."""

    finding_id: str  #: MD5 of rule, place, offsets, time and message; the same whatever the order of the files
    cluster_id: str
    #: topic, partition: its subject; None for a whole cluster
    topic: str | None
    partition: int | None
    evidence: tuple[Ref, ...]
    implied_by: str | None = None  #: id of the finding that it follows from


@dataclass(frozen=True)
class Result:
    """The result of one rule in a cluster; the fields are the columns of ``gold.rule_results``."""

    cluster_id: str
    rule_id: str
    verdict: str
    checked: int
    cases: int
    observations: int
    open_cases: int
    left_out: int
    reason: str | None
    error: str | None
    doubts: tuple[str, ...]


def findings_of(cases: Iterable[Mapping[str, Any]], severities: Mapping[str, str]) -> list[Found]:
    """Return violations to report, in order, with the severities of the configuration.

    Args:
        cases: rows of `CASE`.
        severities: configured severity by rule id.
    """
    findings: dict[str, Found] = {}
    for case in cases:
        configured = severities.get(case["rule_id"], VIOLATION)
        if configured == OFF:
            continue
        identity = "|".join(str(case[name]) for name in _IDENTITY)
        finding_id = md5(identity.encode(), usedforsecurity=False).hexdigest()
        values = dict(case) | {
            "finding_id": finding_id,
            "severity": configured if case["severity"] == VIOLATION else case["severity"],
            "evidence": tuple(Ref(**ref) for ref in case["evidence"]),
            **{name: tuple(case[name]) for name in ("brokers", "witnesses")},
        }
        findings[finding_id] = Found(**values)
    return _link_nested(list(findings.values()))


_IDENTITY = (
    *("rule_id", "cluster_id", "topic", "partition", "leader_epoch", "offset_start", "offset_end", "time_us"),
    *("cause", "known_bug", "records", "message"),
)


def _link_nested(findings: list[Found]) -> list[Found]:
    by_place: dict[tuple[str, str | None, int | None], list[Found]] = defaultdict(list)
    for finding in findings:
        by_place[finding.cluster_id, finding.topic, finding.partition].append(finding)
    nested = []
    for finding in findings:
        parents = [
            other
            for other in by_place[finding.cluster_id, finding.topic, finding.partition]
            if finding.rule_id in IMPLIED.get(other.rule_id, ())
            and other.severity == VIOLATION
            and _is_overlapping(other, finding)
        ]
        nested.append(replace(finding, implied_by=parents[0].finding_id) if parents else finding)
    return nested


def _is_overlapping(finding: Found, other: Found) -> bool:
    if finding.offset_start is None or finding.offset_end is None or other.offset_start is None:
        return other.offset_start is None
    end = other.offset_end if other.offset_end is not None else other.offset_start + 1
    return finding.offset_start < end and other.offset_start < finding.offset_end


def counted(
    left_out: Mapping[tuple[str, str, str], int], severities: Mapping[str, str]
) -> dict[tuple[str, str, str], int]:
    """Count cases that are only counted, by (cluster, rule, configured severity).

    Args:
        left_out: counts by (cluster, rule, original severity).
        severities: configured severity by rule id.
    """
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for (cluster_id, rule_id, severity), count in left_out.items():
        weight = severities.get(rule_id, VIOLATION) if severity == VIOLATION else severity
        counts[cluster_id, rule_id, weight] += count
    return counts


def results_of(
    rules: Sequence[Rule],
    findings: Iterable[Found],
    checked: Mapping[tuple[str, str], int],
    errors: Mapping[tuple[str, str], str],
    doubts: Mapping[str, Sequence[str]],
    left_out: Mapping[tuple[str, str, str], int] = MappingProxyType({}),
) -> list[Result]:
    """Return one result per cluster and rule. Missing evidence in one cluster does not affect other clusters.

    Args:
        checked: number of facts judged, by (cluster, rule).
        errors: message of a rule's exception, by (cluster, rule). The rule is inconclusive unless it found a violation.
        doubts: by cluster, its unmet assumptions. With any, no rule is clean.
        left_out: cases that were only counted, by (cluster, rule, severity).
    """
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for finding in findings:
        counts[finding.cluster_id, finding.rule_id, finding.severity] += 1
    for place, count in left_out.items():
        counts[place] += count
    results = []
    for cluster_id, rule in product(sorted(doubts), rules):
        name = cluster_id, rule.rule_id
        violations, open_cases = counts[*name, VIOLATION], counts[*name, OPEN]
        reasons = []
        if name in errors:
            reasons.append(f"the rule failed: {errors[name]}")
        if open_cases:
            reasons.append(f"{open_cases} case{'s' if open_cases > 1 else ''} cannot be decided from these logs")
        reasons += doubts[cluster_id]
        # A rule without evidence is inconclusive. That is not a reason against the audit as a whole.
        blind = rule.texts.tier != "T0" and not rule.suspects_only and not checked.get(name, 0)
        verdict = VIOLATED if violations else INCONCLUSIVE if reasons or blind else CLEAN
        reason = "; ".join(reasons) or None
        cut = sum(count for (*place, _), count in left_out.items() if tuple(place) == name)
        numbers = (checked.get(name, 0), violations, counts[*name, OBSERVATION], open_cases, cut)
        results.append(Result(*name, verdict, *numbers, reason, errors.get(name), tuple(doubts[cluster_id])))
    return results


Row = Mapping[str, Any]


class Known(NamedTuple):
    """Findings of the last audit: rows of ``gold.violations`` and ``gold.evidence``, with times in microseconds."""

    closed: ClusterInstants  #: days before it get no new findings
    findings: Sequence[Row] = ()
    evidence: Sequence[Row] = ()


def known_of(
    closed: ClusterInstants, known: ClusterInstants, findings: Iterable[Row], evidence: Iterable[Row]
) -> Known:
    """Return the last audit's findings from before the dropped days. Clusters without dropped days have none.

    Args:
        closed: by cluster, the time before which new findings are not accepted.
        known: by cluster, the time before which findings of the last audit are kept.
    """
    rows = [
        row for row in findings if (us := known.of(row["cluster_id"])) and (row["time"] is None or row["time"] < us)
    ]
    ids = {row["finding_id"] for row in rows}
    return Known(closed, rows, [row for row in evidence if row["finding_id"] in ids])


def told_now(known: Known, findings: Iterable[Found]) -> tuple[list[Found], list[Found]]:
    """Split findings into those kept from earlier runs, without their evidence, and new ones."""
    before = {fingerprint(row, row["time"]): row for row in known.findings}
    ids = {row["finding_id"] for row in known.findings}
    new, grown = [], set()
    for finding in findings:
        is_closed = finding.time_us is not None and finding.time_us < known.closed.of(finding.cluster_id)
        if is_closed or finding.finding_id in ids:
            continue
        place = fingerprint(vars(finding), finding.time_us)
        if place not in before:
            new.append(finding)
        elif _get_extent(vars(finding)) > _get_extent(before[place]):
            new.append(finding)
            grown.add(before[place]["finding_id"])
    return [_make_finding(row) for row in known.findings if row["finding_id"] not in grown], new


def _get_extent(row: Row) -> tuple[int, int]:
    return row["offset_end"] or 0, row["records"] or 0


def _make_finding(row: Row) -> Found:
    names = Found.__dataclass_fields__.keys() - {"time_us", "brokers", "evidence", "witnesses"}
    values = {name: row[name] for name in names}
    return Found(**values, time_us=row["time"], brokers=tuple(row["brokers"]), evidence=())
