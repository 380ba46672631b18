"""The report in a few lines for a terminal: plain text of at most 100 columns that needs no colour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pipelines.base.plain import TEXT_MAX, WIDTH_MAX, count, number, plain, share
from pipelines.report.correctness import rule_states
from pipelines.report.happened import Chain, account_of, headline, story, verdict_sentence, window
from pipelines.report.lines import SHOWN_MAX, indented, listed, wrapped
from pipelines.report.model import Coverage, Report, Window
from pipelines.report.of_clusters import silent_clusters
from pipelines.report.tiers import DELAYED_OPERATIONS, FINER_TIMES


def summary_text(report: Report) -> str:
    """What one wants to know first: the verdict, what happened, and a line each for findings, accuracy and coverage."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from _verdict(report)
    yield from wrapped(f"  {plain(', '.join(headline(report)), 2 * TEXT_MAX)}")
    yield ""
    yield from _story(report)
    yield ""
    yield from _in_short(report)


def _verdict(report: Report) -> Iterator[str]:
    yield f"verdict: {report.verdict}   evidence: {report.tier}"
    yield from wrapped(f"  {verdict_sentence(report)}")
    if has_several(report):
        for part in report.clusters:
            yield plain(f"  cluster {part.cluster_id}: {part.verdict}   evidence: {part.tier}", WIDTH_MAX)
        for name in sorted(silent_clusters(report)):
            yield plain(f"  cluster {name}: no logs of that time", WIDTH_MAX)
    yield from listed("", report.inconclusive)
    if report.window.since or report.window.until:
        yield f"  window: {window_text(report.window)}"
        yield from listed("outside the window: ", report.window.outside)


# ------------------------------------------------------------------ what happened


def _story(report: Report) -> Iterator[str]:
    summary = story(report)
    if not summary.chains:
        yield "what happened: nothing that these logs show."
    else:
        incidents = number(len(report.incidents) - len(summary.also_logged), "incident")
        yield f"what happened: {incidents}, the most harmful first (UTC)"
    for place, chain in enumerate(summary.chains, 1):
        yield ""
        yield from _chain(f"{place}. ", chain)
        for effect in chain.effects:
            yield from indented(f"{effect.start_time[11:19]}  {account_of(effect)}", "   - ", " " * 15, 2 * TEXT_MAX)
    if summary.left_out:
        yield ""
        yield f"and {number(summary.left_out, 'incident')} more: highwater incidents"
    if summary.also_logged:
        yield ""
        yield "also logged at WARN or above:"
        for incident in summary.also_logged:
            yield from indented(incident.sentence, "  ", "    ", 2 * WIDTH_MAX)


def _chain(mark: str, chain: Chain) -> Iterator[str]:
    """The cause, and what to do."""
    yield plain(f"{mark}{chain.severity}, {window(chain.cause)}", WIDTH_MAX)
    indent = " " * len(mark)
    yield from indented(account_of(chain.cause), indent, indent)
    if chain.advice:
        yield from indented(chain.advice, f"{indent}> ", f"{indent}  ", 2 * TEXT_MAX)


def _in_short(report: Report) -> Iterator[str]:
    """Findings, accuracy and coverage, a line each, and where the rest is."""
    counts = [
        f"{number(len(findings), noun)}"
        for findings, noun in (
            (report.violations, "violation"),
            (report.open_cases, "open case"),
            (report.observations, "observation"),
        )
        if findings
    ]
    if report.rules:
        yield from wrapped(f"findings: {', '.join(counts) or 'none'}. {_sentence(rules_text(report))}.")
    produce, parked = report.operations.produce, report.operations.fetch.parked
    near = []
    if produce.succeeded and produce.within_ms.get("5") is not None:
        near.append(f"{share(produce.within_ms['5'])} of {count(produce.succeeded)} acks=all produces")
    if parked.within_ms.get("5") is not None:
        near.append(f"{share(parked.within_ms['5'])} of {count(parked.observed)} waiting fetches")
    if near:
        yield from wrapped(f"accuracy: {' and '.join(near)} were answered within 5 ms of when Kafka's rules say.")
    if any(gap.needs == FINER_TIMES for gap in report.coverage.not_checkable):
        yield from wrapped(f"accuracy: cannot be shown, times have whole seconds: {FINER_TIMES}")
    yield covered(report.coverage)
    yield from listed("input: ", report.problems)
    yield "more: highwater report --verbose (or --section NAME), highwater incidents, and report.html"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def covered(coverage: Coverage) -> str:
    """How many records were understood, and how many are known to be missing."""
    missing = f"; {count(coverage.missing)} more, at least, are missing" if coverage.missing else ""
    understood = f"{count(coverage.parsed)} of {count(coverage.lines)} log records ({share(coverage.share_parsed)})"
    return f"coverage: {understood}{missing}"


def window_text(window: Window) -> str:
    """From when until when."""
    return f"from {window.since or 'the first line'} until {window.until or 'the last line'}"


def gaps(coverage: Coverage) -> Iterator[tuple[str, str]]:
    """What cannot be shown, and the remedy; rules that have the same remedy together."""
    rules: dict[str, list[str]] = defaultdict(list)
    for gap in coverage.not_checkable:
        if gap.rule_id == DELAYED_OPERATIONS:
            yield gap.reason, gap.needs
        else:
            rules[gap.needs].append(gap.rule_id)
    for needs, rule_ids in rules.items():
        more = f" and {len(rule_ids) - SHOWN_MAX} more rules" if len(rule_ids) > SHOWN_MAX else ""
        yield f"{', '.join(rule_ids[:SHOWN_MAX])}{more}", needs


def costs(coverage: Coverage) -> list[str]:
    """What the remedies cost, each once."""
    return list(dict.fromkeys(gap.cost for gap in coverage.not_checkable if gap.cost))


def rules_text(report: Report) -> str:
    """How many rules came to which state."""
    states = rule_states(report)
    of_all = ", of all logs read" if report.window.since or report.window.until else ""
    return f"rules{of_all}: {', '.join(f'{number} {state}' for state, number in states.items())}"


def has_several(report: Report) -> bool:
    """Whether it is of several clusters."""
    return len(report.clusters) + len(silent_clusters(report)) > 1
