"""The report in a few lines for a terminal: plain text of at most 100 columns that needs no colour."""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from pipelines.report.correctness import place_of
from pipelines.report.happened import bug, headline, story, verdict_sentence, window
from pipelines.report.measures import Blame, CoordinatorOperations, FetchOperations, Judged, Operations
from pipelines.report.model import CLEAN, INCONCLUSIVE, VIOLATED, Broker, Coverage, Finding, Incident, Report, Window
from pipelines.report.of_clusters import silent_clusters
from pipelines.report.plain import TEXT_MAX, count, ms, plain, share
from pipelines.report.tiers import DELAYED_OPERATIONS, FINER_TIMES
from pipelines.report.values import UNKNOWN_BROKER

WIDTH = 100
#: Of a list that may be long only so many entries are shown.
SHOWN_MAX = 5
#: Characters of a finding's id that tell it from others, as `highwater trace finding` takes it.
ID_SHOWN = 8
#: Observations shown of one rule.
OBSERVATIONS_SHOWN_MAX = 2


def summary_text(report: Report) -> str:
    """What one wants to know first: the verdict, what happened, and a line each for findings, accuracy and coverage."""
    return "\n".join(_lines(report))


def details_text(report: Report) -> str:
    """What `summary_text` says in a line each, in full: brokers, findings, how operations were answered, blame."""
    return "\n".join((*_verdict(report), *_details(report)))


def _lines(report: Report) -> Iterator[str]:
    yield from _verdict(report)
    yield from _wrapped(f"  {plain(', '.join(headline(report)), 2 * TEXT_MAX)}")
    yield ""
    yield from _story(report)
    yield ""
    yield from _in_short(report)


def _verdict(report: Report) -> Iterator[str]:
    yield f"verdict: {report.verdict}   evidence: {report.tier}"
    yield from _wrapped(f"  {verdict_sentence(report)}")
    if _has_several(report):
        for part in report.clusters:
            yield plain(f"  cluster {part.cluster_id}: {part.verdict}   evidence: {part.tier}", WIDTH)
        for name in sorted(silent_clusters(report)):
            yield plain(f"  cluster {name}: no logs of that time", WIDTH)
    yield from _list("", report.inconclusive)
    if report.window.since or report.window.until:
        yield f"  window: {window_text(report.window)}"
        yield from _list("outside the window: ", report.window.outside)


# ------------------------------------------------------------------ what happened


def _story(report: Report) -> Iterator[str]:
    told = story(report)
    if not told.told:
        yield "what happened: nothing that these logs show."
    else:
        number = _number(len(report.incidents) - len(told.also_logged), "incident")
        yield f"what happened: {number}, the most harmful first (UTC)"
    for place, chain in enumerate(told.told, 1):
        yield ""
        yield from _incident(f"{place}. ", chain.cause, chain.severity)
        for effect in chain.effects:
            text = plain(f"{effect.start_time[11:19]}  {effect.sentence} {bug(effect)}".rstrip(), 2 * TEXT_MAX)
            yield from _indented(text, "   - ", " " * 15)
    if told.left_out:
        yield ""
        yield f"and {_number(told.left_out, 'incident')} more: highwater incidents"
    if told.also_logged:
        yield ""
        yield "also logged at WARN or above:"
        for incident in told.also_logged:
            yield from _indented(plain(incident.sentence, 2 * WIDTH), "  ", "    ")


def _incident(mark: str, incident: Incident, severity: str) -> Iterator[str]:
    yield plain(f"{mark}{severity}, {window(incident)}", WIDTH)
    indent = " " * len(mark)
    yield from _indented(plain(f"{incident.sentence} {bug(incident)}".rstrip(), 3 * TEXT_MAX), indent, indent)
    if incident.advice:
        yield from _indented(plain(incident.advice, 2 * TEXT_MAX), f"{indent}> ", f"{indent}  ")


def _indented(text: str, first: str, rest: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _in_short(report: Report) -> Iterator[str]:
    """Findings, accuracy and coverage, a line each, and where the rest is."""
    found = [
        f"{_number(len(findings), noun)}"
        for findings, noun in (
            (report.violations, "violation"),
            (report.open_cases, "open case"),
            (report.observations, "observation"),
        )
        if findings
    ]
    if report.rules:
        yield from _wrapped(f"findings: {', '.join(found) or 'none'}. {_sentence(_rules(report))}.")
    produce, parked = report.operations.produce, report.operations.fetch.parked
    near = []
    if produce.succeeded and produce.within_ms.get("5") is not None:
        near.append(f"{share(produce.within_ms['5'])} of {count(produce.succeeded)} acks=all produces")
    if parked.within_ms.get("5") is not None:
        near.append(f"{share(parked.within_ms['5'])} of {count(parked.observed)} waiting fetches")
    if near:
        yield from _wrapped(f"accuracy: {' and '.join(near)} were answered within 5 ms of when Kafka's rules say.")
    if any(gap.needs == FINER_TIMES for gap in report.coverage.not_checkable):
        yield from _wrapped(f"accuracy: cannot be shown, times have whole seconds: {FINER_TIMES}")
    yield _covered(report.coverage)
    yield from _list("input: ", report.problems)
    yield "more: highwater report --verbose, highwater incidents, and report.html beside report.json"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


# ------------------------------------------------------------------ in full


def _details(report: Report) -> Iterator[str]:
    yield ""
    yield from _table(
        ("broker", "kafka", "mode", "tier", "files", "lines", "from", "to"),
        [
            (
                _broker(report, broker),
                broker.kafka_version or "-",
                broker.mode or "-",
                broker.tier,
                count(broker.files),
                count(broker.lines),
                broker.first_time or "-",
                broker.last_time or "-",
            )
            for broker in report.brokers
        ],
        left={1, 2, 3, 6, 7},
    )
    yield ""
    yield _covered(report.coverage)
    yield from _list("cannot be shown: ", [f"{what}: {needs}" for what, needs in gaps(report.coverage)])
    yield from _list("input: ", report.problems)
    yield from _correctness(report)
    yield ""
    yield from _operations(report.operations.produce)
    if report.operations.coordinator.observed:
        yield from _coordinators(report.operations.coordinator)
    if report.operations.fetch.observed:
        yield ""
        yield from _fetches(report.operations.fetch)
    if report.blame:
        yield ""
        yield from _blame(report)


def _covered(coverage: Coverage) -> str:
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


# ------------------------------------------------------------------ correctness


def _correctness(report: Report) -> Iterator[str]:
    """Violations, cases left open, observations, rules: each that there is."""
    for title, findings in (("violations", report.violations), ("cases left open", report.open_cases)):
        if findings:
            yield ""
            yield f"{title}: {count(len(findings))}"
            yield from _list("", [_finding(finding) for finding in findings])
            ids = ", ".join(plain(finding.finding_id[:ID_SHOWN]) for finding in findings[:SHOWN_MAX])
            yield from _wrapped(f"  with all lines: highwater trace finding {'ID, of ' * (len(findings) > 1)}{ids}")
    if report.observations:
        yield ""
        yield f"observations: {count(len(report.observations))}"
        yield from _observations(report.observations)
    if report.rules:
        yield ""
        yield from _wrapped(_rules(report))


def _finding(finding: Finding) -> str:
    place = place_of(finding)
    known_bug = f", {finding.known_bug}" if finding.known_bug else ""
    said = f"{finding.rule_id}{' ' if place else ''}{place}{known_bug}: {finding.message}"
    implies = f", implies {_number(len(finding.implied), 'finding')} more" if finding.implied else ""
    # However long the message, what comes after it is shown.
    return f"{plain(said)} ({_number(len(finding.evidence), 'line')} of evidence{implies})"


def _observations(observations: Sequence[Finding]) -> Iterator[str]:
    of_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in observations:
        of_rule[finding.rule_id].append(finding)
    for rule_id, of_one_rule in list(of_rule.items())[:SHOWN_MAX]:
        yield from _wrapped(f"  {plain(rule_id)}: {count(len(of_one_rule))}")
        for finding in of_one_rule[:OBSERVATIONS_SHOWN_MAX]:
            place = place_of(finding)
            yield from _wrapped(f"    {plain(f'{place}: {finding.message}' if place else finding.message)}")
        if len(of_one_rule) > OBSERVATIONS_SHOWN_MAX:
            yield f"    and {count(len(of_one_rule) - OBSERVATIONS_SHOWN_MAX)} more, see the report"
    if len(of_rule) > SHOWN_MAX:
        yield f"  and of {len(of_rule) - SHOWN_MAX} more rules, see the report"


def _rules(report: Report) -> str:
    """How many rules came to which verdict; one whose evidence is not there was not checked."""
    gaps = {gap.rule_id for gap in report.coverage.not_checkable}
    missing = "not checkable"
    states = Counter(
        missing if rule.verdict == INCONCLUSIVE and rule.rule_id in gaps else rule.verdict for rule in report.rules
    )
    verdicts = ", ".join(f"{states[verdict]} {verdict}" for verdict in (CLEAN, VIOLATED, INCONCLUSIVE))
    of_all = ", of all logs read" if report.window.since or report.window.until else ""
    return f"rules{of_all}: {states.total() - states[missing]} checked, {verdicts}; {states[missing]} {missing}"


def _number(number: int, what: str) -> str:
    return f"{count(number)} {what}{'' if number == 1 else 's'}"


# ------------------------------------------------------------------- operations


def _operations(produce: Operations) -> Iterator[str]:
    yield from _wrapped(f"acks=all produces: {_counted(produce)}")
    if produce.within_ms["1"] is not None:
        yield from _wrapped(f"answered within n ms of the predicted interval: {_near(produce)}")
    if produce.known_bugs:
        bugs = ", ".join(f"{plain(bug)} {count(number)}" for bug, number in produce.known_bugs.items())
        yield from _wrapped(f"signatures of known bugs: {bugs}")


def _coordinators(requests: CoordinatorOperations) -> Iterator[str]:
    near = f", within 5 ms {share(requests.within_ms['5'])}" if requests.within_ms["5"] is not None else ""
    yield from _wrapped(f"coordinators' requests: {_counted(requests)}{near}")


def _fetches(fetches: FetchOperations) -> Iterator[str]:
    yield from _wrapped(f"fetches: {_counted(fetches)}; cause known {share(fetches.cause_known)}")
    if fetches.parked.within_ms["1"] is not None:
        yield from _wrapped(f"that waited: {count(fetches.parked.observed)}, within n ms: {_near(fetches.parked)}")
    yield from _table(
        ("reader", "min.bytes", "isolation", "fetches", "waited", "within 5 ms", "jitter", "late", "unobservable"),
        [
            (
                group.reader,
                count(group.min_bytes),
                group.isolation_level or "-",
                count(group.observed),
                count(group.parked),
                share(group.within_ms["5"]),
                count(group.jitter),
                count(group.late),
                count(group.unobservable),
            )
            for group in fetches.groups[:SHOWN_MAX]
        ],
        left={0, 2},
    )
    if len(fetches.groups) > SHOWN_MAX:
        yield f"  and {len(fetches.groups) - SHOWN_MAX} more kinds of readers, see the report"


def _counted(operations: Judged) -> str:
    classes = ("explained", "jitter", "late", "unobservable", "contradicted")
    counted = ", ".join(f"{name} {count(getattr(operations, name))}" for name in classes)
    return f"{count(operations.observed)} ({counted})"


def _near(operations: Judged) -> str:
    return ", ".join(f"{n} ms {share(value)}" for n, value in operations.within_ms.items())


def _blame(report: Report) -> Iterator[str]:
    yield f"waited for (slow: beyond {report.slow_ms} ms):"
    yield from _table(
        ("broker", "operations", "slow", "share", "waited s", "wait p99 ms", "p99 ms", "p99 without", ""),
        [
            (
                _broker(report, row),
                count(row.operations),
                count(row.operations_slow),
                share(row.share),
                f"{row.wait_ms_total / 1000:,.1f}",
                ms(row.wait_ms_p99),
                ms(row.p99_ms_actual),
                ms(row.p99_ms_without),
                "stands out" if row.singled_out else "",
            )
            for row in report.blame
        ],
        left={8},
    )


def _has_several(report: Report) -> bool:
    return len(report.clusters) + len(silent_clusters(report)) > 1


def _broker(report: Report, node: Broker | Blame) -> str:
    """Its id, with its cluster where there are several."""
    broker = "?" if node.broker_id == UNKNOWN_BROKER else str(node.broker_id)
    return f"{node.cluster_id}/{broker}" if _has_several(report) else broker


def _list(prefix: str, texts: Sequence[str]) -> Iterator[str]:
    for text in texts[:SHOWN_MAX]:
        yield from _wrapped(f"  {prefix}{plain(text, 2 * TEXT_MAX)}")
    if len(texts) > SHOWN_MAX:
        yield f"  {prefix}and {len(texts) - SHOWN_MAX} more, see the report"


def _wrapped(line: str) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    yield from textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: set[int]) -> Iterator[str]:
    """Aligned columns; text that does not fit is cut."""
    cells = [list(columns), *([plain(cell, 26) for cell in row] for row in rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(columns))]
    for row in cells:
        aligned = [
            cell.ljust(widths[number]) if number in left else cell.rjust(widths[number])
            for number, cell in enumerate(row)
        ]
        yield plain("  ".join(aligned).rstrip(), WIDTH)
