"""What a caller can have printed of a report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pipelines.base.plain import count, plain
from pipelines.report.happened import verdict_words
from pipelines.report.model import Report
from pipelines.report.render_markdown import render_markdown
from pipelines.report.render_sarif import render_sarif
from pipelines.report.sections import SECTIONS, sections_text
from pipelines.report.summary import summary_text, window_text
from pipelines.report.write import render_json

#: Characters of a line for a pager: two short messages.
PAGER_WIDTH = 300


def pager_text(report: Report) -> str:
    """Return at most four lines: the verdict, then what and how much, why, and what to do now."""
    return "\n".join(plain(line, PAGER_WIDTH) for line in _pager_lines(report))


def _pager_lines(report: Report) -> Iterator[str]:
    clusters = sorted({broker.cluster_id for broker in report.brokers})
    asked = f", {window_text(report.window)}" if report.window.since or report.window.until else ""
    outside = f"; outside: {report.window.outside[0]}" if report.window.outside else ""
    cluster = f", cluster {clusters[0]}" if len(clusters) == 1 else ""
    yield f"highwater: {verdict_words(report)}{cluster}{asked}{_counts(report)}{outside}"
    yield from report.headline.text


def _counts(report: Report) -> str:
    counts = []
    for findings, singular, many in (
        (report.violations, "violation", "violations"),
        (report.open_cases, "undecided case", "undecided cases"),
    ):
        if findings:
            new = sum(finding.is_new is True for finding in findings)
            counts.append(
                f"{count(len(findings))} {singular if len(findings) == 1 else many}{f' ({new} new)' if new else ''}"
            )
    return f": {', '.join(counts)}" if counts else ""


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
