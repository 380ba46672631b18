"""What is read in half a minute: verdict, what it rests on, the worst, who was slow, what to do next. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from shlex import quote as shell_quoted
from urllib.parse import quote

from pipelines.report.cluster.parts import Unavailable
from pipelines.report.correctness import place_of
from pipelines.report.model import INCONCLUSIVE, VIOLATED, ClusterVerdict, Finding, Report
from pipelines.report.plain import count, ms, share
from pipelines.report.recurrence import BY_WEIGHT
from pipelines.report.summary import gaps
from pipelines.report.tiers import DELAYED_OPERATIONS, FINER_TIMES
from pipelines.report.values import UNKNOWN_BROKER
from schemas.gold import REPLICA_BLAME
from schemas.views import table_alias

#: Entries of each list.
SHOWN_MAX = 6
_TIERS = {
    "T0": "default log levels: elections, ISRs, truncations, but no single request",
    "T1": "with the request log: which writes were lost, and what every request waited for",
    "T2": "with the request log and every high watermark",
    "T3": "with the brokers' own account of what operations waited for",
}
_STATES = {"offline": "without leader", "under_min_isr": "under min.insync.replicas"}


@dataclass(frozen=True)
class Item:
    """One line: a lead, which may link to a section or finding of the page, and what follows it."""

    lead: str
    text: str = ""
    anchor: str = ""


@dataclass(frozen=True)
class FirstScreen:
    """All of it, as text."""

    headline: str
    when: str
    span: str
    clusters: tuple[Item, ...]
    tier: str
    tiers: str
    rules: str
    gaps: tuple[Item, ...]
    worst: tuple[Item, ...]
    slow: tuple[Item, ...]
    next: tuple[Item, ...]


def first_screen(report: Report) -> FirstScreen:
    """What the first screen says of a report."""
    first = min((broker.first_time for broker in report.brokers if broker.first_time), default=None)
    last = max((broker.last_time for broker in report.brokers if broker.last_time), default=None)
    tiers = Counter(report.tier_by_broker.values())
    return FirstScreen(
        headline=_headline(report),
        when=first[:16].replace("T", " ") if first else "",
        span=f"{_spoken(first)} to {_spoken(last)} UTC" if first and last else "",
        clusters=tuple(_clusters(report)),
        tier=_TIERS[report.tier],
        tiers=", ".join(f"{number} at {tier}" for tier, number in sorted(tiers.items())) if len(tiers) > 1 else "",
        rules=_rules(report),
        gaps=tuple(Item(what, needs) for what, needs in gaps(report.coverage))[:SHOWN_MAX],
        worst=tuple(_worst(report))[:SHOWN_MAX],
        slow=tuple(_slow(report)),
        next=tuple(_next(report))[:SHOWN_MAX],
    )


def anchor(kind: str, name: str) -> str:
    """The id of an element of the page, as ``dom.js`` makes it."""
    quoted = quote(name.encode("utf-8", "replace"), safe="!'()*~")
    return f"{kind}-" + "".join(char if char.isalnum() or char in "._-" else f".{ord(char):x}" for char in quoted)


def _spoken(time: str) -> str:
    return time[:19].replace("T", " ")


def _headline(report: Report) -> str:
    number = len(report.violations)
    if number:
        return f"{count(number)} violation{'s' if number > 1 else ''} of what Kafka guarantees."
    if report.verdict == VIOLATED:
        contradicted = report.operations.produce.contradicted
        if not report.rules:
            return f"{count(contradicted)} acks=all produces were answered before Kafka's rules allowed it."
        return "A rule found what Kafka guarantees violated."
    if report.verdict == INCONCLUSIVE:
        return "Nothing firm can be said from these logs."
    opening = "Every guarantee that these logs allow to check was kept, and no" if report.rules else "No"
    return f"{opening} acks=all produce was answered before Kafka's rules allowed it."


def _rules(report: Report) -> str:
    if not report.rules:
        return "No rule of correctness was run."
    missing = {gap.rule_id for gap in report.coverage.not_checkable}
    states = Counter(
        "not checkable" if rule.verdict == INCONCLUSIVE and rule.rule_id in missing else rule.verdict
        for rule in report.rules
    )
    counts = [
        f"{states[state]} {state}" for state in ("violated", "inconclusive", "clean", "not checkable") if states[state]
    ]
    judged = sum(rule.checked for rule in report.rules)
    return f"{len(report.rules)} rules: {', '.join(counts)}; {count(judged)} facts judged."


def _clusters(report: Report) -> Iterator[Item]:
    """Several clusters, those first that most is to be said of."""
    if len(report.clusters) < 2:
        return
    parts = _worst_first(report.clusters)
    for part in parts[:SHOWN_MAX]:
        reasons = f": {'; '.join(part.inconclusive[:2])}" if part.inconclusive else ""
        others = len(part.inconclusive) - 2
        more = f"; and {others} more reason{'s' if others > 1 else ''}" if others > 0 else ""
        yield Item(f"{part.cluster_id}: {part.verdict}, {part.tier}", f"{reasons}{more}".lstrip(": "))
    if len(parts) > SHOWN_MAX:
        yield Item(f"{count(len(parts) - SHOWN_MAX)} more clusters", "in report.json")


def _worst_first(parts: Sequence[ClusterVerdict]) -> list[ClusterVerdict]:
    return sorted(parts, key=lambda part: -BY_WEIGHT.index(part.verdict))


# ------------------------------------------------------------------ the worst


def _worst(report: Report) -> Iterator[Item]:
    for finding in report.violations[:3]:
        bug = f" ({finding.known_bug})" if finding.known_bug else ""
        yield Item(
            f"{finding.rule_id}{bug}: {place_of(finding)}", finding.message, anchor("finding", finding.finding_id)
        )
    if len(report.violations) > 3:
        yield Item(f"{count(len(report.violations) - 3)} more violations", "", "findings")
    produce = report.operations.produce
    if produce.contradicted:
        yield Item(f"{count(produce.contradicted)} acks=all produces were answered too early", "", "requests")
    if report.detail is not None:
        yield from _outages(report)
    if produce.late:
        farthest = f", up to {ms(produce.residual_ms.max)} ms after they had to" if produce.residual_ms.max else ""
        bugs = f": signature of {', '.join(produce.known_bugs)}" if produce.known_bugs else ""
        yield Item(
            f"{count(produce.late)} acks=all produces were answered late", f"{farthest}{bugs}".lstrip(", "), "requests"
        )
    yield from _longest(report)
    for rule_id, those in _by_rule(report.open_cases).items():
        yield Item(f"{rule_id}: {_cases(those)} left open", "", anchor("finding", those[0].finding_id))
    for rule_id, those in _by_rule(report.observations).items():
        text = those[0].message if len(those) == 1 else f"{count(len(those))} times; the first: {those[0].message}"
        yield Item(f"{rule_id} (legal)", text, anchor("finding", those[0].finding_id))


def _by_rule(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule_id].append(finding)
    return by_rule


def _cases(findings: Sequence[Finding]) -> str:
    return "1 case" if len(findings) == 1 else f"{count(len(findings))} cases"


def _outages(report: Report) -> Iterator[Item]:
    assert report.detail is not None
    cluster = report.detail.cluster
    for state, words in _STATES.items():
        windows = [window for window in cluster.unavailable if window.state == state]
        if windows:
            yield Item(f"{_partitions(windows)} {words}", _windows(windows), "moves")
    for restart in [restart for restart in cluster.restarts if restart.ending != "clean"][:2]:
        gone = f" was found gone at {_spoken(restart.down)[11:]}," if restart.down else ""
        if restart.isr_full:
            back = f"was back in all {count(restart.isr_lost)} ISRs at {_spoken(restart.isr_full)[11:]}"
        else:
            back = f"took back {count(restart.isr_back)} of {count(restart.isr_lost)} ISRs"
        yield Item(
            f"Broker {restart.broker_id}", f"{gone} came back at {_spoken(restart.starting)[11:]}, {back}.", "restarts"
        )


def _partitions(windows: Sequence[Unavailable]) -> str:
    number = len({(window.cluster_id, window.topic, window.partition) for window in windows})
    return f"{count(number)} partition{'s' if number > 1 else ''}"


def _windows(windows: Sequence[Unavailable]) -> str:
    ended = [(window.duration_ms, window) for window in windows if window.duration_ms is not None]
    clauses = []
    if ended:
        longest_ms, longest = max(ended, key=lambda item: item[0])
        clauses.append(f"the longest for {ms(longest_ms / 1000)} s ({longest.topic}-{longest.partition})")
    if len(ended) < len(windows):
        clauses.append(f"{count(len(windows) - len(ended))} to the end of the logs")
    if refused := sum(window.produces_refused or 0 for window in windows):
        clauses.append(f"{count(refused)} produces refused")
    return "; ".join(clauses) + "."


def _longest(report: Report) -> Iterator[Item]:
    stories = report.detail.cluster.stories if report.detail is not None else ()
    longest = max(stories, key=lambda story: story.wait_ms, default=None)
    if longest is not None and longest.wait_ms > report.slow_ms:
        whom = f"for broker {longest.closing_replica} " if longest.closing_replica is not None else ""
        ended = "" if longest.succeeded else ", and ended with an error"
        where = f"on {longest.closing_partition}" if longest.closing_partition else f"at broker {longest.broker_id}"
        text = f"{whom}{where}, client {longest.client_id}{ended}."
        yield Item(f"The longest wait: {ms(longest.wait_ms / 1000)} s", text, anchor("request", longest.request_id))


# ------------------------------------------------------------------- who was slow


def _slow(report: Report) -> Iterator[Item]:
    if not report.blame:
        yield Item("No acks=all produce was replayed: nobody can be told to have been slow.", "", "waiting")
        return
    slow = [row for row in report.blame if row.operations_slow and row.broker_id != UNKNOWN_BROKER]
    if not slow:
        yield Item(f"Nobody: no acks=all produce waited longer than {report.slow_ms} ms.", "", "waiting")
    for row in slow[:3]:
        stands_out = "; stands out" if row.singled_out else ""
        text = (
            f"waited for last by {count(row.operations)} produces, {count(row.operations_slow)} of them slow; "
            f"{share(row.share)} of all waiting beyond {report.slow_ms} ms; p99 {ms(row.p99_ms_actual)} ms, "
            f"{ms(row.p99_ms_without)} without it{stands_out}."
        )
        yield Item(f"Broker {row.broker_id}:", text, "waiting")


# --------------------------------------------------------------------- what next


def _next(report: Report) -> Iterator[Item]:
    if len(report.clusters) > 1:
        name = shell_quoted(_worst_first(report.clusters)[0].cluster_id)
        yield Item("This page adds clusters up. One cluster by itself:", f"highwater report --cluster {name}")
    for rule_id in list(_by_rule((*report.violations, *report.open_cases)))[:2]:
        yield Item("What the rule is, and how it is proven:", f"highwater explain {rule_id}")
    bugs = {finding.known_bug for finding in report.violations if finding.known_bug}
    for bug in sorted({*bugs, *report.operations.produce.known_bugs})[:2]:
        yield Item(f"{bug} is a known bug of the running version: look for the release that has its fix.")
    worst = max(report.timeline, key=lambda interval: (interval.slow, interval.with_error), default=None)
    if worst is not None and (worst.slow or worst.with_error):
        start = datetime.fromisoformat(worst.time)
        until = start + timedelta(seconds=worst.interval_s)
        window = f"--from {start:%Y-%m-%dT%H:%M:%SZ} --until {until:%Y-%m-%dT%H:%M:%SZ}"
        what = f"{count(worst.slow)} slow, {count(worst.with_error)} with an error"
        yield Item(f"The worst {worst.interval_s} s ({what}), exactly:", f"highwater report {window}")
    for row in [row for row in report.blame if row.singled_out][:1]:
        query = (
            "select interval_start, role, slow_operations, slow_wait_ms_total from "
            f"{table_alias(REPLICA_BLAME.full_name)} where replica_id = {row.broker_id} and singled_out "
            "order by interval_start"
        )
        yield Item(f"When broker {row.broker_id} stood out:", f'highwater sql "{query}"')
    gaps = [gap for gap in report.coverage.not_checkable if gap.needs != FINER_TIMES]
    if len(gaps) < len(report.coverage.not_checkable):
        yield Item(f"For waits and what was late, {FINER_TIMES}.")
    if any(gap.rule_id == DELAYED_OPERATIONS for gap in gaps):
        yield Item(
            "Log requests on every broker (see what cannot be shown), so that waits and lost writes can be told."
        )
    elif gaps:
        yield Item("Raise the log levels named beside this, for what cannot be shown.")
    if report.verdict == INCONCLUSIVE and not report.coverage.not_checkable:
        yield Item("Add the logs that are missing (see the reasons above), and audit again.")
    for rule_id in list(_by_rule(report.observations))[:1]:
        yield Item("What the observation means:", f"highwater explain {rule_id}")
