"""What a caller can have printed of a report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pipelines.base.plain import count, plain
from pipelines.report.correctness import place_of
from pipelines.report.happened import account_of, window, worst
from pipelines.report.model import CLEAN, Finding, Report
from pipelines.report.page.first_screen import first_screen
from pipelines.report.render_markdown import render_markdown
from pipelines.report.render_sarif import render_sarif
from pipelines.report.sections import SECTIONS, sections_text
from pipelines.report.summary import summary_text, window_text
from pipelines.report.write import render_json

#: Characters of a line for a pager: two short messages.
PAGER_WIDTH = 300


def pager_text(report: Report) -> str:
    """At most four lines: the verdict, the worst that happened, since when, what to do next."""
    return "\n".join(plain(line, PAGER_WIDTH) for line in _pager_lines(report))


def _pager_lines(report: Report) -> Iterator[str]:
    clusters = sorted({broker.cluster_id for broker in report.brokers})
    asked = f", {window_text(report.window)}" if report.window.since or report.window.until else ""
    outside = f"; outside: {report.window.outside[0]}" if report.window.outside else ""
    cluster = f", cluster {clusters[0]}" if len(clusters) == 1 else ""
    yield f"highwater: {report.verdict}{cluster}{asked}{_counts(report)}{outside}"
    finding = next(iter((*report.violations, *report.open_cases)), None)
    happened = next(iter(worst(report)), None)
    if finding is not None:
        known_bug = f", {finding.known_bug}" if finding.known_bug else ""
        yield f"worst: {finding.rule_id} {place_of(finding)}{known_bug}"
        yield f"since: {_since(report)}"
    elif happened is not None:
        incident = happened.cause
        yield f"worst: {happened.severity}: {account_of(incident)}"
        yield f"since: {window(incident)}"
        if report.verdict == CLEAN and happened.advice:
            yield f"next: {happened.advice}"
    elif report.verdict != CLEAN and report.inconclusive:
        yield f"why: {report.inconclusive[0]}"
    if report.verdict != CLEAN:
        command = next((item.text for item in first_screen(report).next if item.text), "see report.html")
        yield f"next: {command}"


def _counts(report: Report) -> str:
    counts = []
    for findings, singular, many in (
        (report.violations, "violation", "violations"),
        (report.open_cases, "open case", "open cases"),
    ):
        if findings:
            new = sum(finding.is_new is True for finding in findings)
            counts.append(
                f"{count(len(findings))} {singular if len(findings) == 1 else many}{f' ({new} new)' if new else ''}"
            )
    return f": {', '.join(counts)}" if counts else ""


def _since(report: Report) -> str:
    """The first time of what the verdict is about."""
    findings: tuple[Finding, ...] = report.violations or report.open_cases
    return min((finding.time for finding in findings if finding.time), default="at no known time")


#: By name; ``text`` is what is printed unless another one is asked for.
PRINTED: Mapping[str, Callable[[Report], str]] = {
    "text": summary_text,
    "json": lambda report: render_json(report).decode(),
    "markdown": render_markdown,
    "sarif": lambda report: render_sarif(report).decode(),
    "pager": pager_text,
}


def printed(report: Report, form: str, sections: Sequence[str] = ()) -> str:
    """What is printed of a report.

    Args:
        form: a name of `PRINTED`.
        sections: names of `SECTIONS`, printed instead of the text; all of them: below it.
    """
    parts = [] if sections and len(sections) < len(SECTIONS) else [PRINTED[form](report)]
    return "\n\n".join(part.rstrip("\n") for part in (*parts, *([sections_text(report, sections)] if sections else [])))
