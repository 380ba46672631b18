"""What is read in half a minute: verdict, what happened, what it rests on, what to do next. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote as shell_quoted
from urllib.parse import quote

from pipelines.base.plain import count
from pipelines.base.recurrence import BY_WEIGHT
from pipelines.incidents.incident import releases_of
from pipelines.report.correctness import rule_states
from pipelines.report.happened import IncidentSummary, about, story, verdict_sentence, verdict_words, window
from pipelines.report.model import INCONCLUSIVE, ClusterVerdict, Finding, Report
from pipelines.report.summary import gaps
from pipelines.report.tiers import DELAYED_OPERATIONS, FINER_TIMES, TIER_WORDS

#: Entries of each list.
SHOWN_MAX = 6


@dataclass(frozen=True)
class Item:
    """One line: a lead, and what follows it."""

    lead: str
    text: str = ""


@dataclass(frozen=True)
class FirstScreen:
    """All of it, as text."""

    verdict: str
    headline: str
    about: str
    when: str
    made: str
    clusters: tuple[Item, ...]
    tier: str
    tiers: str
    rules: str
    gaps: tuple[Item, ...]
    story: IncidentSummary
    next: tuple[Item, ...]


def first_screen(report: Report) -> FirstScreen:
    """What the first screen says of a report."""
    first = min((broker.first_time for broker in report.brokers if broker.first_time), default=None)
    made = report.detail.cost.made if report.detail else None
    tiers = Counter(report.tier_by_broker.values())
    return FirstScreen(
        verdict=verdict_words(report),
        headline=verdict_sentence(report),
        about=", ".join(about(report)),
        when=first[:16].replace("T", " ") if first else "",
        made=made[:16].replace("T", " ") if made else "",
        clusters=tuple(_clusters(report)),
        tier=TIER_WORDS[report.tier],
        tiers=", ".join(f"{number} at {tier}" for tier, number in sorted(tiers.items())) if len(tiers) > 1 else "",
        rules=_rules(report),
        gaps=tuple(Item(what, needs) for what, needs in gaps(report.coverage))[:SHOWN_MAX],
        story=story(report),
        next=tuple(_next(report))[:SHOWN_MAX],
    )


def anchor(kind: str, name: str) -> str:
    """The id of an element of the page, as ``dom.js`` makes it."""
    quoted = quote(name.encode("utf-8", "replace"), safe="!'()*~")
    return f"{kind}-" + "".join(char if char.isalnum() or char in "._-" else f".{ord(char):x}" for char in quoted)


def _rules(report: Report) -> str:
    if not report.rules:
        return "No rule of correctness was run."
    states = rule_states(report)
    counts = [f"{number} {state}" for state, number in states.items()]
    judged = sum(rule.checked for rule in report.rules)
    of_all = ", of all logs read" if report.window.since or report.window.until else ""
    return f"{len(report.rules)} rules{of_all}: {', '.join(counts)}; {count(judged)} facts judged."


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


def _by_rule(findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule_id].append(finding)
    return by_rule


# --------------------------------------------------------------------- what next


def _next(report: Report) -> Iterator[Item]:
    if len(report.clusters) > 1:
        name = shell_quoted(_worst_first(report.clusters)[0].cluster_id)
        yield Item("This page adds clusters up. One cluster by itself:", f"highwater report --cluster {name}")
    for rule_id in list(_by_rule((*report.violations, *report.open_cases)))[:2]:
        yield Item("What the rule is, and how it is proven:", f"highwater explain {rule_id}")
    bugs = {finding.known_bug for finding in report.violations if finding.known_bug}
    for bug in sorted({*bugs, *report.operations.produce.known_bugs})[:2]:
        fixed = releases_of(bug)
        yield Item(f"{bug} is a known bug of the running version{f', fixed in {fixed}' if fixed else ''}.")
    for chain in story(report).chains[:1]:
        for command in chain.commands(bool(report.operations.produce.observed))[:2]:
            yield Item(f"{window(chain)} UTC, in figures:", command)
    gaps = [gap for gap in report.coverage.not_checkable if gap.needs != FINER_TIMES]
    if len(gaps) < len(report.coverage.not_checkable):
        yield Item(f"For waits and what was late, {FINER_TIMES}.")
    if any(gap.rule_id == DELAYED_OPERATIONS for gap in gaps):
        yield Item("Log requests on every broker (see what cannot be shown): waits and lost writes need them.")
    elif gaps:
        yield Item("Raise the log levels named above, for what cannot be shown.")
    if report.verdict == INCONCLUSIVE and not report.coverage.not_checkable:
        yield Item("Add the logs that are missing (see the reasons above), and audit again.")
    for rule_id in list(_by_rule(report.observations))[:1]:
        yield Item("What the observation means:", f"highwater explain {rule_id}")
