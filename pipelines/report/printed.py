"""What a caller can have printed of a report. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from highwater.pipelines.base.plain import count, ms, number, plain, share
from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.report.correctness import NOT_APPLICABLE, derive_rule_state, place_of
from highwater.pipelines.report.happened import describe_verdict, split_span
from highwater.pipelines.report.lines import SHOWN_MAX, describe_left_out, list_texts, wrap_line, write_table
from highwater.pipelines.report.measures import Blame, CoordinatorOperations, FetchOperations, Judged, Operations
from highwater.pipelines.report.model import CLEAN, Broker, Finding, Report
from highwater.pipelines.report.render_markdown import KIND_LABELS, render_markdown
from highwater.pipelines.report.render_sarif import render_sarif
from highwater.pipelines.report.sources import describe_source, summarize_sources
from highwater.pipelines.report.summary import (
    describe_covered,
    describe_rules,
    has_several,
    list_costs,
    list_gaps,
    write_summary,
    write_window,
)
from highwater.pipelines.report.write import render_json

#: Characters that identify a finding, as `highwater trace finding` accepts them.
ID_SHOWN = 8
#: Kinds of incidents in which partitions, or the cluster, could not do what they are for.
OUTAGES = (
    *("partitions_without_leader", "partitions_under_min_isr", "leader_not_fenced"),
    *("controller_changed", "controller_renounced", "quorum_unreachable"),
)
#: Observations shown of one rule.
OBSERVATIONS_SHOWN_MAX = 2


def write_parts(report: Report, names: Sequence[str]) -> str:
    """Return parts of the report, with an empty line between them.

    Args:
        names: of `SECTIONS`.
    """
    return "\n\n".join("\n".join(SECTIONS[name](report)).strip("\n") for name in names)


def _describe_brokers(report: Report) -> Iterator[str]:
    yield from write_table(
        ("broker", "kafka", "mode", "tier", "files", "lines", "from", "to"),
        [
            (
                _name_broker(report, broker),
                broker.kafka_version or "-",
                broker.mode or "-",
                broker.tier,
                count(broker.files),
                count(broker.lines),
                *split_span(broker.first_time, broker.last_time),
            )
            for broker in report.brokers
        ],
        left={1, 2, 3, 6, 7},
    )


def _describe_coverage(report: Report) -> Iterator[str]:
    yield describe_covered(report.coverage)
    if report.coverage.sources:
        yield from wrap_line(summarize_sources(report.coverage.sources))
    yield from list_texts("source: ", [text for source in report.coverage.sources if (text := describe_source(source))])
    yield from list_texts("cannot be shown: ", [f"{what}: {needs}" for what, needs in list_gaps(report.coverage)])
    yield from list_texts("cost: ", list_costs(report.coverage))
    yield from list_texts("input: ", report.problems)


def _describe_findings(report: Report) -> Iterator[str]:
    """Yield lines about violations, undecided cases and observations."""
    if not (report.violations or report.open_cases or report.observations):
        yield "findings: none"
    for title, findings in (("violations", report.violations), ("undecided cases", report.open_cases)):
        if findings:
            yield ""
            yield f"{title}: {count(len(findings))}"
            yield from list_texts("", [_describe_finding(finding) for finding in findings])
            ids = ", ".join(plain(finding.finding_id[:ID_SHOWN]) for finding in findings[:SHOWN_MAX])
            yield from wrap_line(f"  with all lines: highwater trace finding {'ID, of ' * (len(findings) > 1)}{ids}")
    if report.observations:
        yield ""
        yield f"observations: {count(len(report.observations))}"
        yield from _describe_observations(report.observations)


def _describe_finding(finding: Finding) -> str:
    place = place_of(finding)
    known_bug = f", {finding.known_bug}" if finding.known_bug else ""
    said = f"{finding.rule_id}{' ' if place else ''}{place}{known_bug}: {finding.message}"
    implies = f", implies {number(len(finding.implied), 'finding')} more" if finding.implied else ""
    # However long the message, what comes after it is shown.
    return f"{plain(said)} ({number(len(finding.evidence), 'line')} of evidence{implies})"


def _describe_observations(observations: Sequence[Finding]) -> Iterator[str]:
    of_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in observations:
        of_rule[finding.rule_id].append(finding)
    for rule_id, of_one_rule in list(of_rule.items())[:SHOWN_MAX]:
        yield from wrap_line(f"  {plain(rule_id)}: {count(len(of_one_rule))}")
        for finding in of_one_rule[:OBSERVATIONS_SHOWN_MAX]:
            place = place_of(finding)
            yield from wrap_line(f"    {plain(f'{place}: {finding.message}' if place else finding.message)}")
        if len(of_one_rule) > OBSERVATIONS_SHOWN_MAX:
            yield f"    and {count(len(of_one_rule) - OBSERVATIONS_SHOWN_MAX)} more, see the report"
    if len(of_rule) > SHOWN_MAX:
        yield f"  and of {len(of_rule) - SHOWN_MAX} more rules, see the report"


def _describe_rules(report: Report) -> Iterator[str]:
    """Yield lines about rules in any state but kept, by name."""
    yield from wrap_line(describe_rules(report))
    states = [(rule, derive_rule_state(rule, report.coverage.not_checkable)) for rule in report.rules]
    rows = [
        (
            rule.rule_id,
            state,
            *map(count, (rule.checked, rule.cases, rule.observations, rule.open_cases)),
        )
        for rule, state in states
        if state not in (CLEAN, NOT_APPLICABLE)
    ]
    if rows:
        columns = ("rule", "verdict", "facts", "violations", "observed", "open")
        yield from write_table(columns, rows, left={0, 1})
    idle = [rule.rule_id for rule, state in states if state == NOT_APPLICABLE]
    if idle:
        yield from wrap_line(f"  {NOT_APPLICABLE}, as these logs show nothing that they are about: {', '.join(idle)}")


def _describe_accuracy(report: Report) -> Iterator[str]:
    """Yield lines about the accuracy of the predicted times."""
    yield from _describe_operations(report.operations.produce)
    if report.operations.coordinator.observed:
        yield from _describe_coordinators(report.operations.coordinator)
    if report.operations.fetch.observed:
        yield ""
        yield from _describe_fetches(report.operations.fetch)


def _describe_operations(produce: Operations) -> Iterator[str]:
    yield from wrap_line(f"acks=all produces: {_list_classes(produce)}")
    if produce.within_ms["1"] is not None:
        yield from wrap_line(f"answered within n ms of the predicted interval: {_list_near(produce)}")
    if produce.known_bugs:
        bugs = ", ".join(f"{plain(bug)} {count(number)}" for bug, number in produce.known_bugs.items())
        yield from wrap_line(f"signatures of known bugs: {bugs}")


def _describe_coordinators(requests: CoordinatorOperations) -> Iterator[str]:
    near = f", within 5 ms {share(requests.within_ms['5'])}" if requests.within_ms["5"] is not None else ""
    yield from wrap_line(f"coordinators' requests: {_list_classes(requests)}{near}")


def _describe_fetches(fetches: FetchOperations) -> Iterator[str]:
    yield from wrap_line(f"fetches: {_list_classes(fetches)}; cause known {share(fetches.cause_known)}")
    if fetches.parked.within_ms["1"] is not None:
        yield from wrap_line(
            f"that waited: {count(fetches.parked.observed)}, within n ms: {_list_near(fetches.parked)}"
        )
    yield from write_table(
        ("reader", "min.bytes", "isolation", "fetches", "waited", "in 5 ms", "jitter", "late", "unseen"),
        [
            (
                group.reader if group.read_from in (None, "leader") else f"{group.reader}, {group.read_from}",
                count(group.min_bytes),
                (group.isolation_level or "-").removeprefix("read_"),
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
    yield from describe_left_out(fetches.groups, "more kinds of readers")


def _list_classes(operations: Judged) -> str:
    classes = ("explained", "jitter", "late", "unobservable", "contradicted")
    counted = ", ".join(f"{name} {count(getattr(operations, name))}" for name in classes)
    return f"{count(operations.observed)} ({counted})"


def _list_near(operations: Judged) -> str:
    return ", ".join(f"{n} ms {share(value)}" for n, value in operations.within_ms.items())


def _describe_shares(report: Report) -> Iterator[str]:
    """Yield lines about the records that members of share groups received and returned."""
    if not report.share_members:
        yield "share groups: no request of a member was read"
        return
    yield from wrap_line(
        "share groups: records that members were given, and gave back (again: delivered before; refused: too late; "
        "locks: its own that ran out on what was delivered again):"
    )
    names = ("delivered", "redelivered", "accepted", "released", "rejected", "refused", "locks_expired")
    heads = ("delivered", "again", "accepted", "released", "rejected", "refused", "locks")
    yield from write_table(
        ("group", "client", "fetches", "waited", *heads),
        [
            (
                member.group_id or "-",
                member.client_id or "-",
                count(member.fetches),
                count(member.waited),
                *(count(getattr(member, name)) for name in names),
            )
            for member in report.share_members[:SHOWN_MAX]
        ],
        left={0, 1},
    )
    yield from describe_left_out(report.share_members, "more members")


def _describe_throttled(report: Report) -> Iterator[str]:
    """Yield lines about clients that quotas throttled."""
    if not report.throttled:
        yield "throttled: no request was delayed by a quota"
        return
    yield "throttled: requests delayed by quotas (Kafka's ThrottleTimeMs):"
    yield from write_table(
        ("client", "request", "requests", "total ms", "longest ms"),
        [
            (row.client_id or "-", row.api, count(row.requests), ms(row.throttle_ms_total), ms(row.throttle_ms_max))
            for row in report.throttled[:SHOWN_MAX]
        ],
        left={0, 1},
    )
    yield from describe_left_out(report.throttled, "more")


def _describe_outages(report: Report) -> Iterator[str]:
    """Yield lines about windows in which partitions, or the cluster, were unavailable."""
    outages = sorted(
        (incident for incident in report.incidents if incident.kind in OUTAGES), key=lambda row: row.start_time
    )
    if not outages:
        yield "outages: none that these logs show"
        return
    yield from wrap_line(
        "outages: partitions without leader or enough in-sync replicas, and times without an active controller (UTC; "
        "-: to the end of the logs):"
    )
    yield from write_table(
        ("what", "from", "to", "brokers", "partitions"),
        [
            (
                incident.kind,
                *split_span(incident.start_time, incident.end_time),
                ", ".join(map(str, incident.broker_ids)) or "-",
                count(incident.partitions),
            )
            for incident in outages[:SHOWN_MAX]
        ],
        left={0, 1, 2, 3},
    )
    yield from describe_left_out(outages, "more")


def _describe_latency(report: Report) -> Iterator[str]:
    kinds = [(KIND_LABELS.get(name, name.upper()), kind) for name, kind in report.latency.by_kind.items()]
    rows = [
        (title, count(kind.requests), *map(ms, kind.total_ms.model_dump().values()))
        for title, kind in kinds
        if kind.requests
    ]
    if rows:
        yield "latency of requests, ms from arrival to the response sent (Kafka's TotalTimeMs):"
        yield from write_table(("request", "requests", "p50", "p95", "p99", "p99.9"), rows, left={0})
    if report.blame:
        yield ""
        yield from _blame(report)
    if not rows and not report.blame:
        yield "latency: no request was read"


def _blame(report: Report) -> Iterator[str]:
    yield from wrap_line(
        f"closing replica of acks=all produces that were answered without error (slow: waiting beyond "
        f"{report.slow_ms} ms):"
    )
    yield from write_table(
        ("broker", "produces", "slow", "of slow", "wait s", "wait p99", "p99", "if skipped", ""),
        [
            (
                _name_broker(report, row),
                count(row.operations),
                count(row.operations_slow),
                share(row.share),
                f"{row.wait_ms_total / 1000:,.1f}",
                ms(row.wait_ms_p99),
                ms(row.p99_ms_actual),
                ms(row.p99_ms_without),
                "outlier" if row.singled_out else "",
            )
            for row in report.blame
        ],
        left={8},
    )
    yield from wrap_line(
        "  of slow: share of that waiting; wait p99, p99 and if skipped: ms. p99: of all of these produces, arrival to "
        "the response sent; if skipped: as if acks=all did not need that broker"
    )


def _name_broker(report: Report, node: Broker | Blame) -> str:
    """Return the id of a broker, with its cluster if there are several."""
    broker = "?" if node.broker_id == UNKNOWN_BROKER else str(node.broker_id)
    return f"{node.cluster_id}/{broker}" if has_several(report) else broker


#: By name, in the order in which ``--verbose`` prints them.
SECTIONS: Mapping[str, Callable[[Report], Iterator[str]]] = {
    "brokers": _describe_brokers,
    "coverage": _describe_coverage,
    "findings": _describe_findings,
    "rules": _describe_rules,
    "accuracy": _describe_accuracy,
    "latency": _describe_latency,
    "shares": _describe_shares,
    "throttled": _describe_throttled,
    "outages": _describe_outages,
}


#: Characters of a line for a pager: two short messages.
PAGER_WIDTH = 300


def write_pager(report: Report) -> str:
    """Return at most four lines: the verdict, then what and how much, why, and what to do now."""
    return "\n".join(plain(line, PAGER_WIDTH) for line in _write_pager_lines(report))


def _write_pager_lines(report: Report) -> Iterator[str]:
    clusters = sorted({broker.cluster_id for broker in report.brokers})
    asked = f", {write_window(report.window)}" if report.window.since or report.window.until else ""
    outside = f"; outside: {report.window.outside[0]}" if report.window.outside else ""
    cluster = f", cluster {clusters[0]}" if len(clusters) == 1 else ""
    yield f"highwater: {describe_verdict(report)}{cluster}{asked}{_describe_counts(report)}{outside}"
    yield from report.headline.text


def _describe_counts(report: Report) -> str:
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
    "text": write_summary,
    "json": lambda report: render_json(report).decode(),
    "markdown": render_markdown,
    "sarif": lambda report: render_sarif(report).decode(),
    "pager": write_pager,
}


def print_report(report: Report, form: str, sections: Sequence[str] = ()) -> str:
    """Return the text that is printed for a report.

    Args:
        form: a key of `PRINTED`.
        sections: names of `SECTIONS`. They replace the text, except that all sections follow the text.
    """
    parts = [] if sections and len(sections) < len(SECTIONS) else [PRINTED[form](report)]
    return "\n\n".join(part.rstrip("\n") for part in (*parts, *([write_parts(report, sections)] if sections else [])))
