"""The report in a few lines for a terminal: plain text of at most 100 columns that needs no colour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from highwater.pipelines.base.plain import TEXT_MAX, WIDTH_MAX, count, number, plain, share
from highwater.pipelines.report.classes import WORDS
from highwater.pipelines.report.correctness import SWITCHED_OFF, count_rule_states
from highwater.pipelines.report.happened import (
    EFFECTS_MAX,
    WHOLE_MAX,
    Chain,
    describe_age,
    describe_report,
    describe_verdict,
    get_account,
    make_verdict_sentence,
    show_bug,
    show_window,
    summarize_incidents,
    take_sentence,
)
from highwater.pipelines.report.lines import SHOWN_MAX, indent_text, list_texts, wrap_line
from highwater.pipelines.report.model import Coverage, NotCheckable, Report, Window
from highwater.pipelines.report.of_clusters import find_silent_clusters
from highwater.pipelines.report.sources import summarize_sources
from highwater.pipelines.report.tiers import DELAYED_OPERATIONS, FINER_TIMES, TIER_WORDS


def write_summary(report: Report) -> str:
    """Return the console summary of a report.

    It contains headline, verdict, incidents, one line each for findings, accuracy and coverage, and open questions.
    """
    return "\n".join(_write_lines(report))


def _write_lines(report: Report) -> Iterator[str]:
    for line in report.headline.text:
        lead = line.partition(":")[0] + ": "
        yield from indent_text(line, "", " " * min(len(lead), 5), 3 * TEXT_MAX)
    yield ""
    yield from _write_verdict(report)
    yield ""
    yield from _write_story(report)
    yield ""
    yield from _write_in_short(report)
    yield from _open(report)


def _write_verdict(report: Report) -> Iterator[str]:
    yield f"verdict: {describe_verdict(report)}"
    yield from wrap_line(f"  {plain(make_verdict_sentence(report), 2 * TEXT_MAX)}")
    if has_several(report):
        for part in report.clusters:
            yield plain(f"  cluster {part.cluster_id}: {part.verdict}", WIDTH_MAX)
        for name in sorted(find_silent_clusters(report)):
            yield plain(f"  cluster {name}: no logs of that time", WIDTH_MAX)
    yield from wrap_line(f"  {plain(', '.join(describe_report(report)), 2 * TEXT_MAX)}{describe_age(report)}")
    if report.window.since or report.window.until:
        yield f"  window: {write_window(report.window)}"
        yield from list_texts("outside the window: ", report.window.outside)


# ------------------------------------------------------------------ what happened


def _write_story(report: Report) -> Iterator[str]:
    summary = summarize_incidents(report)
    if not summary.chains:
        yield "What happened: no incident in these logs."
    else:
        yield f"What happened: {number(summary.chain_count, 'incident')}, worst first (times in UTC)"
    for place, (chain, action) in enumerate(zip(summary.chains, summary.actions, strict=True), 1):
        if place <= WHOLE_MAX:
            yield ""
            yield from _write_chain(f"{place}. ", chain, action)
        else:
            yield from _write_one_line(f"{place}. ", chain)
        if place == WHOLE_MAX and len(summary.chains) > WHOLE_MAX:
            yield ""
    if summary.left_out:
        more = number(len(summary.left_out), "more incident")
        yield from wrap_line(plain(f"{more}, see highwater incidents: {summary.left_out_text}", TEXT_MAX))
    if summary.also_logged or summary.more_logged:
        yield ""
        yield "Also logged at WARN or above:"
        for incident in summary.also_logged:
            yield from indent_text(incident.sentence, "  ", "    ", 2 * WIDTH_MAX)
        if summary.more_logged:
            yield f"  {number(summary.more_logged, 'more text')}, see highwater incidents"


def _write_chain(mark: str, chain: Chain, action: str) -> Iterator[str]:
    """Yield lines about a chain: its worst effect, the cause, the other effects, and the next action."""
    yield plain(f"{mark}{WORDS[chain.harm]}  {show_window(chain)}", WIDTH_MAX)
    indent = " " * len(mark)
    yield from indent_text(get_account(chain.head), indent, indent)
    for cause in chain.because:
        yield from indent_text(get_account(cause), f"{indent}because  ", " " * (len(indent) + 9), 2 * TEXT_MAX)
    for effect in chain.also[:EFFECTS_MAX]:
        yield from indent_text(get_account(effect), f"{indent}also     ", " " * (len(indent) + 9), 2 * TEXT_MAX)
    if len(chain.also) > EFFECTS_MAX:
        yield f"{indent}         and {number(len(chain.also) - EFFECTS_MAX, 'more effect')}"
    yield from indent_text(action, f"{indent}do       ", " " * (len(indent) + 9), 2 * TEXT_MAX)


def _write_one_line(mark: str, chain: Chain) -> Iterator[str]:
    text = (
        f"{WORDS[chain.harm]}  {show_window(chain)[:19]}  {take_sentence(chain.head.sentence)} {show_bug(chain.head)}"
    )
    yield from indent_text(text.rstrip(), mark, " " * len(mark))


def _write_in_short(report: Report) -> Iterator[str]:
    """Yield one line each for findings, accuracy and coverage, and the location of the full report."""
    counts = [
        f"{number(len(findings), noun)}"
        for findings, noun in (
            (report.violations, "violation"),
            (report.open_cases, "undecided case"),
            (report.observations, "observation"),
        )
        if findings
    ]
    if report.rules:
        yield from wrap_line(f"findings: {', '.join(counts) or 'none'}. {_sentence(describe_rules(report))}.")
    for note in report.notes:
        if note.startswith(SWITCHED_OFF):
            yield from wrap_line(note[:1].lower() + note[1:])
    produce, parked = report.operations.produce, report.operations.fetch.parked
    near = []
    if produce.succeeded and produce.within_ms.get("5") is not None:
        near.append(f"{share(produce.within_ms['5'])} of {number(produce.succeeded, 'acks=all produce')}")
    if parked.within_ms.get("5") is not None:
        near.append(f"{share(parked.within_ms['5'])} of {number(parked.observed, 'waiting fetch', 'waiting fetches')}")
    if near:
        yield from wrap_line(f"replay accuracy: {' and '.join(near)} within 5 ms of the predicted time.")
    if any(gap.needs == FINER_TIMES for gap in report.coverage.not_checkable):
        yield from wrap_line(f"replay accuracy: cannot be shown, times have whole seconds: {FINER_TIMES}")
    yield from wrap_line(f"{describe_covered(report.coverage)}. Evidence {report.tier}: {TIER_WORDS[report.tier]}.")
    if report.coverage.sources:
        yield from wrap_line(summarize_sources(report.coverage.sources))
    yield from list_texts("input: ", report.problems)
    yield "more: highwater report --verbose (or --section NAME), highwater incidents, and report.html"


def _open(report: Report) -> Iterator[str]:
    """Yield why the verdict is undecided, and the most useful remedy with its cost and how to undo it."""
    yield from list_texts("undecided: ", report.inconclusive)
    best = choose_most_useful(report.coverage)
    if best is not None:
        rules, gap = best
        cost = f" {gap.cost}" if gap.cost else ""
        yield from wrap_line(plain(f"not checked: {rules}. To check next time: {gap.needs}.{cost}", 3 * TEXT_MAX))


def choose_most_useful(coverage: Coverage) -> tuple[str, NotCheckable] | None:
    """Return what is not checkable, in words, and the remedy that most gaps need. None if everything is checkable."""
    by_remedy: dict[str, list[NotCheckable]] = defaultdict(list)
    for gap in coverage.not_checkable:
        by_remedy[gap.needs].append(gap)
    if not by_remedy:
        return None
    waits = [gaps for gaps in by_remedy.values() if any(gap.rule_id == DELAYED_OPERATIONS for gap in gaps)]
    gaps = max(waits or by_remedy.values(), key=len)
    rules = {gap.rule_id for gap in coverage.not_checkable} - {DELAYED_OPERATIONS}
    parts = [number(len(rules), "rule")] if rules else []
    parts += ["what requests waited for"] if waits else []
    return " and ".join(parts), gaps[0]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def describe_covered(coverage: Coverage) -> str:
    """Return the number of parsed records and of missing records, in words."""
    missing = f"; at least {number(coverage.missing, 'more record')} must have been logged" if coverage.missing else ""
    understood = f"{count(coverage.parsed)} of {number(coverage.lines, 'log record')} ({share(coverage.share_parsed)})"
    return f"coverage: {understood}{missing}"


def write_window(window: Window) -> str:
    """Return the start and the end of a window in words."""
    return f"from {window.since or 'the first line'} until {window.until or 'the last line'}"


def list_gaps(coverage: Coverage) -> Iterator[tuple[str, str]]:
    """Yield what cannot be checked, and the remedy. Rules with the same remedy are joined."""
    rules: dict[str, list[str]] = defaultdict(list)
    for gap in coverage.not_checkable:
        if gap.rule_id == DELAYED_OPERATIONS:
            yield gap.reason, gap.needs
        else:
            rules[gap.needs].append(gap.rule_id)
    for needs, rule_ids in rules.items():
        more = f" and {len(rule_ids) - SHOWN_MAX} more rules" if len(rule_ids) > SHOWN_MAX else ""
        yield f"{', '.join(rule_ids[:SHOWN_MAX])}{more}", needs


def list_costs(coverage: Coverage) -> list[str]:
    """Return the costs of the remedies, without duplicates."""
    return list(dict.fromkeys(gap.cost for gap in coverage.not_checkable if gap.cost))


def describe_rules(report: Report) -> str:
    """Return the number of rules by state, in words."""
    states = count_rule_states(report)
    of_all = ", of all logs read" if report.window.since or report.window.until else ""
    return f"rules{of_all}: {', '.join(f'{number} {state}' for state, number in states.items())}"


def has_several(report: Report) -> bool:
    """Return True if the report covers several clusters."""
    return len(report.clusters) + len(find_silent_clusters(report)) > 1
