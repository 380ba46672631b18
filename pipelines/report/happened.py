"""What happened, as every format tells it: chains of incidents, each with its cause first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import NamedTuple

from pipelines.base.plain import count
from pipelines.report.correctness import NOT_APPLICABLE, NOT_CHECKABLE, rule_states
from pipelines.report.model import CLEAN, INCONCLUSIVE, VIOLATED, Incident, Report

#: Sentences of the first screen.
SENTENCES_MAX = 10
#: Of a chain, so many effects are told with it.
EFFECTS_MAX = 3
#: Texts that are only named.
ALSO_MAX = 5
#: The kind that only names texts of lines.
ALSO_LOGGED = "also_logged"
#: Kinds in which acks=all produces waited: what `whatif` and `compare` answer.
_OF_WAITS = ("slow_replica", "broker_stalled", "broker_died", "isr_shrunk", "log_directory_failed")
#: Kinds of partitions that nobody leads.
_WITHOUT_LEADER = ("partitions_without_leader",)
_TIME = "%Y-%m-%dT%H:%M:%SZ"
#: A window to compare with is at least so long.
_COMPARED = timedelta(seconds=10)
_WEIGHT = ("critical", "major", "minor", "info")


class Chain(NamedTuple):
    """An incident that no other one caused, and what it brought about."""

    cause: Incident
    effects: tuple[Incident, ...]  #: directly or by others, the most harmful first

    @property
    def severity(self) -> str:
        """That of its worst part."""
        return min((self.cause.severity, *(effect.severity for effect in self.effects)), key=_WEIGHT.index)

    @property
    def advice(self) -> str:
        """What to do of the cause, or, where it has nothing, of the most harmful effect that has."""
        return next((incident.advice for incident in (self.cause, *self.effects) if incident.advice), "")


def chains(incidents: Sequence[Incident]) -> list[Chain]:
    """Incidents by the first cause of each, in their order; one whose cause is not among them stands by itself."""
    by_id = {incident.incident_id: incident for incident in incidents}

    def root(incident: Incident) -> Incident:
        seen = {incident.incident_id}
        while incident.caused_by in by_id and incident.caused_by not in seen:
            seen.add(incident.caused_by)
            incident = by_id[incident.caused_by]
        return incident

    effects: dict[str, list[Incident]] = {}
    for incident in incidents:
        cause = root(incident)
        of_cause = effects.setdefault(cause.incident_id, [])
        if cause is not incident:
            of_cause.append(incident)
    return [Chain(by_id[incident_id], tuple(those)) for incident_id, those in effects.items()]


class IncidentSummary(NamedTuple):
    """What the first screen tells."""

    chains: tuple[Chain, ...]  #: chains, the most harmful first, each with as many effects as fit
    left_out: int  #: incidents that are not among them
    also_logged: tuple[Incident, ...]  #: texts at WARN or above that no other incident has


def story(report: Report) -> IncidentSummary:
    """At most `SENTENCES_MAX` sentences, the most harmful first."""
    of_kinds = [incident for incident in report.incidents if not _is_remark(incident)]
    shown: list[Chain] = []
    sentences = 0
    for chain in chains(of_kinds):
        if sentences >= SENTENCES_MAX:
            break
        effects = chain.effects[: min(EFFECTS_MAX, SENTENCES_MAX - sentences - 1)]
        shown.append(Chain(chain.cause, effects))
        sentences += 1 + len(effects)
    also = tuple(filter(_is_remark, report.incidents))[:ALSO_MAX]
    return IncidentSummary(tuple(shown), len(of_kinds) - sentences, also)


def _is_remark(incident: Incident) -> bool:
    return incident.kind == ALSO_LOGGED and incident.severity == "info"


def worst(report: Report) -> list[Chain]:
    """Chains in the order of harm, but what was done on purpose, or only logged."""
    of_kinds = [incident for incident in report.incidents if not _is_remark(incident)]
    return [chain for chain in chains(of_kinds) if chain.severity != "info"]


def window(incident: Incident) -> str:
    """``2026-11-20 15:27:39 to 15:27:53``, ``2026-11-20 15:27:39 to the end of the logs``; UTC."""
    start, end = span(incident.start_time, incident.end_time)
    if incident.end_time is None:
        return f"{start} to the end of the logs"
    return start if end == start[11:] else f"{start} to {end}"


def span(start: str | None, end: str | None) -> tuple[str, str]:
    """Two instants to the second, ``-`` for none; of the later one the time of day alone where both are of one day."""
    since, until = ("-" if time is None else time[:19].replace("T", " ") for time in (start, end))
    return since, until[11:] if since[:10] == until[:10] and until != "-" else until


def bug(incident: Incident) -> str:
    """``Known bug KAFKA-3410, fixed in 2.0.1 and 2.1.0.``; empty where it has no known bug's signature."""
    if incident.known_bug is None:
        return ""
    fixed = f", fixed in {incident.known_bug.fixed_in}" if incident.known_bug.fixed_in else ""
    return f"Known bug {incident.known_bug.id}{fixed}."


def account_of(incident: Incident) -> str:
    """What happened, and the known bug that it is."""
    return f"{incident.sentence} {bug(incident)}".rstrip()


def commands(incident: Incident, has_requests: bool) -> list[str]:
    """What to ask next, each with window and subject filled in.

    Args:
        has_requests: request logs were read, so that waits are known.
    """
    start = datetime.fromisoformat(incident.start_time).replace(microsecond=0)
    end = None if incident.end_time is None else datetime.fromisoformat(incident.end_time).replace(microsecond=0)
    end = None if end is None else end + timedelta(seconds=1)
    until = "" if end is None else f" --until {end:{_TIME}}"
    asked = []
    if incident.kind in _OF_WAITS and has_requests and end is not None:
        length = max(end - start, _COMPARED)
        asked.append(f"highwater compare {start - length:{_TIME}}..{start:{_TIME}} {start:{_TIME}}..{end:{_TIME}}")
        asked.append(f"highwater whatif --from {start:{_TIME}}{until}")
    names = [quote(name) for name in incident.topic_partitions]
    if incident.kind in _WITHOUT_LEADER and names:
        asked.append(f"highwater survivors {names[0]} --at {start:{_TIME}}")
    if names:
        asked.append(f"highwater trace partition {names[0]} --from {start - timedelta(seconds=5):{_TIME}}{until}")
    return asked


def verdict_sentence(report: Report) -> str:
    """What the verdict says, and what it does not."""
    states = rule_states(report)
    not_checkable = f", {count(states[NOT_CHECKABLE])} cannot be checked" if NOT_CHECKABLE in states else ""
    idle = f", {count(states[NOT_APPLICABLE])} have nothing to apply to" if NOT_APPLICABLE in states else ""
    if report.verdict == VIOLATED:
        broken = len({finding.rule_id for finding in report.violations}) or states.get(VIOLATED, 0) or 1
        of_all = f" of {count(len(report.rules))}" if report.rules else ""
        guarantees = f"guarantee{'' if broken == 1 and not of_all else 's'} of Kafka {'was' if broken == 1 else 'were'}"
        times = f", {count(len(report.violations))} times" if len(report.violations) > broken else ""
        return f"{count(broken)}{of_all} {guarantees} broken{times}: see below."
    checked = states.get(CLEAN, 0)
    checked_text = f"{count(checked)} guarantee{' was' if checked == 1 else 's were'} checked and kept"
    if not states:
        checked_text = "No rule of correctness was run"
    if report.verdict == INCONCLUSIVE:
        opened = f", {count(states[INCONCLUSIVE])} stay open" if INCONCLUSIVE in states else ""
        return f"These logs do not show whether every guarantee was kept: {checked_text}{opened}{not_checkable}{idle}."
    return f"{checked_text}{not_checkable}{idle}. Clean does not mean that nothing happened: see below."


def headline(report: Report) -> Iterator[str]:
    """Cluster, releases, period: what the report is about, in one line."""
    clusters = sorted({broker.cluster_id for broker in report.brokers})
    versions = sorted({broker.kafka_version for broker in report.brokers if broker.kafka_version})
    first = min((broker.first_time for broker in report.brokers if broker.first_time), default=None)
    last = max((broker.last_time for broker in report.brokers if broker.last_time), default=None)
    if len(clusters) == 1:
        yield f"cluster {clusters[0]}"
    elif clusters:
        yield f"{count(len(clusters))} clusters"
    if versions:
        yield f"Kafka {', '.join(versions[:3])}{' and more' if len(versions) > 3 else ''}"
    yield f"{count(len(report.brokers))} broker{'' if len(report.brokers) == 1 else 's'}"
    if first and last:
        yield f"{' to '.join(span(first, last))} UTC"
