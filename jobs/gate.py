"""``highwater gate``: the verdict of an audit for schedulers, as a few lines and an exit code. Pure.

The verdict is the report's, of the same window: a gate that judged by rules of its own could pass what the report
calls violated. Findings without a time count in every window, since they may well be of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from highwater.jobs.exit_codes import OF_VERDICT, ExitCode
from highwater.pipelines.base.plain import plain
from highwater.pipelines.report.classes import WORDS
from highwater.pipelines.report.correctness import place_of
from highwater.pipelines.report.happened import ALSO_LOGGED, describe_verdict, select_worst, show_window, take_sentence
from highwater.pipelines.report.headline import add_headline
from highwater.pipelines.report.model import CLEAN, INCONCLUSIVE, VIOLATED, Finding, Incident, Report, Verdict
from highwater.pipelines.report.of_clusters import find_silent_clusters
from highwater.pipelines.report.small_tables import FINDINGS_MAX

#: Incidents that are named, a line each.
INCIDENTS_MAX = 3

_OUTDATED = (
    "the last audit was of other files, or had another configuration, than there are now: run `highwater parse` and "
    "`highwater replay`"
)


def outdated(report: Report) -> Report:
    """Return the report with a note that the gold tables are outdated. Its verdict is never clean."""
    return doubted(report, _OUTDATED)


def doubted(report: Report, reason: str) -> Report:
    """Return the report with one more reason for an inconclusive verdict."""
    changes = {"verdict": _refuse_clean(report.verdict), "inconclusive": (reason, *report.inconclusive)}
    clusters = [part.model_copy(update={"verdict": _refuse_clean(part.verdict)}) for part in report.clusters]
    return add_headline(report.model_copy(update=changes | {"clusters": tuple(clusters)}))


def _refuse_clean(verdict: Verdict) -> Verdict:
    return VIOLATED if verdict == VIOLATED else INCONCLUSIVE


def choose_gate_code(report: Report, fail_on: str, only_new: bool = False, stale: Sequence[str] = ()) -> ExitCode:
    """Return the exit code of the verdict.

    Args:
        fail_on: lowest verdict that fails. An inconclusive verdict passes if only violations fail.
        only_new: ignore violations that the previous run had already.
        stale: reasons why the logs are not fresh. Nothing passes if there is one.
    """
    verdict = report.verdict
    if only_new and _is_known(report):
        verdict = INCONCLUSIVE if report.inconclusive else CLEAN
    if stale:
        return OF_VERDICT[_refuse_clean(verdict)]
    if verdict == INCONCLUSIVE and fail_on == VIOLATED:
        return ExitCode.CLEAN
    return OF_VERDICT[verdict]


def _is_known(report: Report) -> bool:
    """Return True if the previous run had all violations. False if the report does not list all of them."""
    cut = len(report.violations) >= FINDINGS_MAX or any(rule.left_out and rule.cases for rule in report.rules)
    return bool(report.violations) and not cut and all(finding.is_new is False for finding in report.violations)


def describe_gate(
    report: Report, fail_on: str, only_new: bool = False, cluster_id: str | None = None, stale: Sequence[str] = ()
) -> Iterator[str]:
    """Yield lines: verdict, verdict per cluster, incidents, violations, and reasons for not being clean.

    Args:
        fail_on: lowest verdict that fails.
        only_new: list only violations that the previous run did not have.
        cluster_id: requested cluster. None for all clusters.
        stale: reasons why the logs are not fresh.
    """
    since, until = report.window.since or "the first line", report.window.until or "the last line"
    is_whole = report.window.since is None and report.window.until is None
    of_cluster = "" if cluster_id is None else f"cluster {cluster_id}, "
    span = "whole log" if is_whole else f"from {since} until {until}"
    yield plain(f"gate: {describe_verdict(report)}, {of_cluster}{span}")
    silent = sorted(find_silent_clusters(report))
    if len(report.clusters) + len(silent) > 1:
        for part in report.clusters:
            yield plain(f"cluster {part.cluster_id}: {part.verdict}")
        for name in silent:
            yield plain(f"cluster {name}: no logs of that time")
    yield from _happened(report)
    yield f"new since the run before: {_new(report)}"
    for finding in report.violations:
        yield f"{VIOLATED}: {'new: ' if finding.is_new else ''}{_line(finding)}"
    if report.verdict == VIOLATED and not report.violations:
        # Of rules there are no results, or more cases than findings: the count is all that there is to show.
        yield f"{VIOLATED}: {_unlisted(report)}"
    for outside in report.window.outside:
        yield f"outside the window: {plain(outside)}"
    for reason in report.inconclusive:
        yield f"{INCONCLUSIVE}: {plain(reason)}"
    for reason in stale:
        yield f"stale: {plain(reason)}"
    if only_new and _is_known(report):
        yield "violations that the run before reported already do not fail the gate (--only-new)"
    if report.verdict == INCONCLUSIVE and fail_on == VIOLATED and not stale:
        yield f"exit code 0: only violations fail the gate (--fail-on {VIOLATED})"


def _happened(report: Report) -> Iterator[str]:
    """Yield a line for each of the most harmful chains of incidents, except intended actions."""
    chains = select_worst(report)
    for chain in chains[:INCIDENTS_MAX]:
        yield f"happened: {plain(f'{WORDS[chain.harm]}, {show_window(chain)}: {take_sentence(chain.head.sentence)}')}"
    more = len(chains) - INCIDENTS_MAX
    if more > 0:
        yield f"happened: {more} more, see highwater incidents"


def _new(report: Report) -> str:
    """Return a text with the number of new incidents, and of new findings of each kind."""
    if report.provenance.run_before is None:
        return "no earlier run to compare with"
    kinds: tuple[tuple[str, Sequence[Finding | Incident]], ...] = (
        ("incident", [incident for incident in report.incidents if incident.kind != ALSO_LOGGED]),
        ("violation", report.violations),
        ("open case", report.open_cases),
        ("observation", report.observations),
    )
    new = [(sum(finding.is_new is True for finding in findings), kind) for kind, findings in kinds]
    counts = ", ".join(f"{number} {kind}{'' if number == 1 else 's'}" for number, kind in new if number)
    return counts or "nothing"


def _line(finding: Finding) -> str:
    """Return a line with rule, place, offsets and time of a finding."""
    parts = [finding.rule_id, place_of(finding), finding.time or "at no known time"]
    implied = f", implies {len(finding.implied)} more" if finding.implied else ""
    return plain("  ".join(part for part in parts if part)) + implied


def _unlisted(report: Report) -> str:
    rules = [f"{rule.rule_id} ({rule.cases})" for rule in report.rules if rule.verdict == VIOLATED]
    return ", ".join(rules) or f"{report.operations.produce.contradicted} answers contradict the replay"
