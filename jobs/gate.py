"""``highwater gate``: what a scheduler needs of an audit, its verdict in a few lines and an exit code. Pure.

The verdict is the report's, of the same window: a gate that judged by rules of its own could pass what the report
calls violated. Findings without a time count in every window, since they may well be of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.exit_codes import OF_VERDICT, ExitCode
from pipelines.report.correctness import place_of
from pipelines.report.model import INCONCLUSIVE, VIOLATED, Finding, Report
from pipelines.report.plain import plain

_OUTDATED = (
    "the last audit was of other files, or had another configuration, than there are now: run `highwater parse` and "
    "`highwater replay`"
)


def outdated(report: Report) -> Report:
    """The report of gold tables that are not of the files and configuration there are now: never clean."""
    verdict = VIOLATED if report.verdict == VIOLATED else INCONCLUSIVE
    return report.model_copy(update={"verdict": verdict, "inconclusive": (_OUTDATED, *report.inconclusive)})


def gate_code(report: Report, fail_on: str) -> ExitCode:
    """The verdict as an exit code; an inconclusive one passes if only what is violated is to fail."""
    if report.verdict == INCONCLUSIVE and fail_on == VIOLATED:
        return ExitCode.CLEAN
    return OF_VERDICT[report.verdict]


def gate_lines(report: Report, fail_on: str) -> Iterator[str]:
    """The verdict, a line per violation, and what keeps the rest from being clean."""
    since, until = report.window.since or "the first line", report.window.until or "the last"
    yield f"gate: {report.verdict}, from {since} until {until}"
    for finding in report.violations:
        yield f"{VIOLATED}: {_told(finding)}"
    if report.verdict == VIOLATED and not report.violations:
        # Of rules there are no results, or more cases than findings: the count is all that there is to show.
        yield f"{VIOLATED}: {_unlisted(report)}"
    for reason in report.inconclusive:
        yield f"{INCONCLUSIVE}: {plain(reason)}"
    if report.verdict == INCONCLUSIVE and fail_on == VIOLATED:
        yield f"ends with 0, since only what is violated fails (--fail-on {VIOLATED})"


def _told(finding: Finding) -> str:
    """Rule, place, offsets and time; the message and its evidence are the report's business."""
    parts = [finding.rule_id, place_of(finding), finding.time or "at no known time"]
    implied = f", implies {len(finding.implied)} more" if finding.implied else ""
    return plain("  ".join(part for part in parts if part)) + implied


def _unlisted(report: Report) -> str:
    rules = [f"{rule.rule_id} ({rule.cases})" for rule in report.rules if rule.verdict == VIOLATED]
    return ", ".join(rules) or f"{report.operations.produce.contradicted} answers contradict the replay"
