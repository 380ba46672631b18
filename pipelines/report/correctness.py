"""From rows of the correctness audit to its part of the report. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from highwater.pipelines.base.plain import offsets
from highwater.pipelines.base.recurrence import RunBefore, fingerprint
from highwater.pipelines.base.values import iso_or_none
from highwater.pipelines.report.figures import Collected, Rows
from highwater.pipelines.report.model import (
    CLEAN,
    INCONCLUSIVE,
    VIOLATED,
    Broker,
    Evidence,
    Finding,
    NotCheckable,
    Report,
    RuleResult,
)
from highwater.pipelines.report.tiers import explain_coarse_times, explain_not_checkable, find_in_seconds
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, VIOLATION, Rule
from highwater.pipelines.timing.clocks.order import sort_lines

_PLURALS = {VIOLATION: "violations", OBSERVATION: "observations", OPEN: "undecided cases"}
#: Why a rule is not applicable: its evidence is there, and has nothing in it that the rule is about.
NOTHING_JUDGED = "not applicable: nothing in these logs triggers this rule"
NOT_CHECKABLE = "not checkable"
NOT_APPLICABLE = "not applicable"
_NOT_RUN = (
    "No results of correctness rules are in the lake: rules, violations and observations are empty. The verdict speaks "
    "of the replay of acks=all produces only."
)
_WINDOW = "Findings are of the window, or have no time; verdicts and counts of rules are of all logs read."

#: Begins the note that names the rules which the configuration switches off.
SWITCHED_OFF = "Switched off, as configured (audit.severity): "

#: What may become of a rule, what matters most first.
RULE_STATES = (VIOLATED, INCONCLUSIVE, CLEAN, NOT_CHECKABLE, NOT_APPLICABLE)

#: Place of a rule in the report.
_Order = Callable[[str], tuple[int, str]]


@dataclass(frozen=True)
class Correctness:
    """Results of the rules."""

    rules: tuple[RuleResult, ...] = ()  #: in the order in which they are reported; empty where none was run
    #: violations, observations, open_cases: findings of their own; what follows from one is within it
    violations: tuple[Finding, ...] = ()
    observations: tuple[Finding, ...] = ()
    open_cases: tuple[Finding, ...] = ()
    violated: bool = False  #: whether a guarantee was broken
    doubts: tuple[str, ...] = ()  #: why nothing firm can be said
    not_checkable: tuple[NotCheckable, ...] = ()  #: rules whose evidence is not there
    notes: tuple[str, ...] = ()  #: how the above is meant


NO_RULES = Correctness()


def make_correctness(
    rows: Collected,
    brokers: Sequence[Broker],
    highest: str,
    *,
    in_window: bool = False,
    several: bool = False,
    known: Mapping[str, Rule] = BY_ID,
) -> Correctness:
    """Return the results of the rules from the rows that the queries returned.

    Args:
        brokers: brokers whose logs decide which rules can be checked.
        highest: highest log detail that was used (T0 to T3).
        in_window: True if findings are limited to a time window. Verdicts of rules never are.
        several: True if the findings are from several clusters. Each then names its cluster.
        known: rules by id, in the order of the report.
    """
    numbers = {rule_id: number for number, rule_id in enumerate(known)}

    def order(rule_id: str) -> tuple[int, str]:
        return numbers.get(rule_id, len(numbers)), rule_id

    results = sorted(rows.rule_results, key=lambda row: order(row["rule_id"]))
    gaps: dict[str, NotCheckable] = {}
    coarse = find_in_seconds(rows.files)
    requests_per_s = _count_requests_per_s(rows, brokers)
    for row in results:
        rule = known.get(row["rule_id"])
        gap = explain_not_checkable(rule, brokers, highest, requests_per_s) if rule else None
        if gap is None and rule is not None and rule.compares_times and coarse and not row["checked"]:
            gap = explain_coarse_times(rule.rule_id, coarse)
        if gap:
            gaps[gap.rule_id] = gap
    findings = _make_findings(rows, order, several)
    violated = any(row["severity"] == VIOLATION for row in rows.findings)
    return Correctness(
        rules=tuple(_make_result(row, gaps.get(row["rule_id"]), rows.before) for row in results),
        violations=findings[VIOLATION],
        observations=findings[OBSERVATION],
        open_cases=findings[OPEN],
        violated=violated or (not in_window and any(_is_violated(row) for row in results)),
        doubts=(*_list_doubts(results, {row["message"] for row in rows.holes}), *_describe_left_open(findings[OPEN])),
        not_checkable=tuple(gaps.values()),
        notes=tuple(_make_notes(rows, in_window)),
    )


def _count_requests_per_s(rows: Collected, brokers: Sequence[Broker]) -> float | None:
    """Return the mean request rate of brokers with a request log, per second and broker. None without a request log."""
    requests = sum(row["requests"] for row in rows.latency.values())
    seconds = sum(
        (datetime.fromisoformat(broker.last_time) - datetime.fromisoformat(broker.first_time)).total_seconds()
        for broker in brokers
        if broker.tier != "T0" and broker.first_time and broker.last_time
    )
    return requests / seconds if requests and seconds else None


def derive_rule_state(rule: RuleResult, gaps: Iterable[NotCheckable]) -> str:
    """Return the state of a rule: its verdict, ``not checkable`` without evidence, or ``not applicable``."""
    if rule.verdict == INCONCLUSIVE and any(gap.rule_id == rule.rule_id for gap in gaps):
        return NOT_CHECKABLE
    return rule.verdict if rule.applicable else NOT_APPLICABLE


def count_rule_states(report: Report) -> dict[str, int]:
    """Return the number of rules by state, the most important state first. States without rules are left out."""
    gaps = report.coverage.not_checkable
    states = Counter(derive_rule_state(rule, gaps) for rule in report.rules)
    return {state: states[state] for state in RULE_STATES if states[state]}


def place_of(finding: Finding) -> str:
    """Return the place of a finding: ``orders-3, offsets 12-14, leader epoch 5``. Empty if the finding has no place.

    With several clusters the place begins with the cluster: ``cluster east, orders-3, ...``.
    """
    parts = [] if finding.cluster_id is None else [f"cluster {finding.cluster_id}"]
    if finding.topic is not None:
        parts.append(finding.topic if finding.partition is None else f"{finding.topic}-{finding.partition}")
    if finding.offset_start is not None:
        parts.append(offsets(finding.offset_start, finding.offset_end))
    if finding.leader_epoch is not None:
        parts.append(f"leader epoch {finding.leader_epoch}")
    return ", ".join(parts)


# ------------------------------------------------------------------------ rules


def _is_violated(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] == VIOLATED or row["cases"] > 0)


def _make_result(row: Mapping[str, Any], gap: NotCheckable | None, before: RunBefore | None) -> RuleResult:
    """Return the result of a rule. A rule without the evidence that it needs is never clean.

    A rule that judged nothing is not applicable, unless there is a reason for doubt.

    Args:
        row: row of ``gold.rule_results``. Its verdict is not used: it does not consider missing evidence.
        gap: the evidence that the rule lacks. None if complete.
        before: results of the previous audit. None without one.
    """
    short = gap if gap and not _is_violated(row) else None
    judged = any(row[name] for name in ("checked", "cases", "observations", "open_cases"))
    applicable = bool(short or judged or row["reason"])
    return RuleResult.of(
        row,
        verdict=INCONCLUSIVE if short else row["verdict"] if applicable else CLEAN,
        reason=row["reason"] or (short.reason if short else None if applicable else NOTHING_JUDGED),
        is_new=None if before is None else before.verdicts.get(row["rule_id"]) != row["verdict"],
        applicable=applicable,
    )


def _list_doubts(results: Rows, holes: Set[str]) -> Iterable[str]:
    """Yield why rules are inconclusive, except holes in the logs, open cases and missing evidence."""
    doubts = dict.fromkeys(doubt for row in results for doubt in row["doubts"] if doubt not in holes)
    if doubts:
        yield "; ".join(doubts)
    for row in results:
        if row["error"] is not None:
            yield f"{row['rule_id']}: the rule failed: {row['error']}"


def _describe_left_open(open_cases: Sequence[Finding]) -> Iterable[str]:
    for rule_id, number in Counter(finding.rule_id for finding in open_cases).items():
        yield f"{rule_id}: {number} case{'s' if number > 1 else ''} cannot be decided from these logs"


# --------------------------------------------------------------------- findings


def _make_findings(rows: Collected, order: _Order, several: bool) -> dict[str, tuple[Finding, ...]]:
    """Return findings by severity, each with the findings that follow from it. Those are not listed separately."""
    lines: dict[str, Rows] = defaultdict(list)
    for row in rows.evidence:
        lines[row["finding_id"]].append(row)
    there = {row["finding_id"] for row in rows.findings}
    by_severity: dict[str, Rows] = {severity: [] for severity in _PLURALS}
    following: dict[str, Rows] = defaultdict(list)
    for row in sorted(rows.findings, key=lambda row: _make_key(row, order)):
        # What it follows from may be outside the window, or one too many.
        if row["implied_by"] in there and row["implied_by"] != row["finding_id"]:
            following[row["implied_by"]].append(row)
        else:
            by_severity[row["severity"]].append(row)

    clocks: dict[str, Rows] = defaultdict(list)
    for row in rows.clocks:
        clocks[row["cluster_id"]].append(row)

    def make_finding(row: Mapping[str, Any]) -> Finding:
        mark = fingerprint(row, row["time"])
        evidence, note = sort_lines(lines[row["finding_id"]], clocks[row["cluster_id"]])
        return Finding.of(
            row,
            time=iso_or_none(row["time"]),
            brokers=tuple(row["brokers"]),
            evidence=tuple(Evidence.of(line, time=iso_or_none(line["time"])) for line in evidence),
            evidence_order=note,
            implied=tuple(make_finding(other) for other in following[row["finding_id"]]),
            fingerprint=mark,
            is_new=None if rows.before is None else mark not in rows.before.fingerprints,
            cluster_id=row["cluster_id"] if several else None,
        )

    return {severity: tuple(make_finding(row) for row in findings) for severity, findings in by_severity.items()}


def _make_key(row: Mapping[str, Any], order: _Order) -> tuple[Any, ...]:
    """Return a sort key: rule, place, offset. Missing values sort first."""
    numbers = (-1 if row[name] is None else row[name] for name in ("partition", "offset_start", "time"))
    return (*order(row["rule_id"]), row["topic"] or "", *numbers, row["finding_id"])


def _make_notes(rows: Collected, in_window: bool) -> Iterable[str]:
    if not rows.rule_results:
        yield _NOT_RUN
        return
    if in_window:
        yield _WINDOW
    only_counted: Counter[str] = Counter()
    for row in rows.rule_results:
        only_counted[row["rule_id"]] += row["left_out"]
    for rule_id, number in only_counted.items():
        if number:
            yield f"{rule_id}: {number:,} more findings are counted in its result and shown nowhere."
    shown = Counter(row["severity"] for row in rows.findings)
    totals = {row["severity"]: row["of_severity"] for row in rows.findings}
    for severity, plural in _PLURALS.items():
        left_out = totals.get(severity, 0) - shown[severity]
        if left_out > 0:
            yield (
                f"Of {totals[severity]:,} {plural} {left_out:,} are left out here; gold.violations and gold.evidence "
                "have all."
            )
