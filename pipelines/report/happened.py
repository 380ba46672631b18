"""What happened: chains of incidents, each headed by its worst effect. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import Final, NamedTuple

from highwater.pipelines.base.plain import count, number
from highwater.pipelines.base.values import UNKNOWN_BROKER
from highwater.pipelines.incidents.classes import INCIDENT_CLASSES, IncidentClass
from highwater.pipelines.report.correctness import NOT_APPLICABLE, NOT_CHECKABLE, count_rule_states
from highwater.pipelines.report.model import CLEAN, INCONCLUSIVE, VIOLATED, Incident, Report

#: Chains on the first screen.
CHAINS_MAX = 10
#: Chains that are shown with causes, effects and advice. Of the others the worst effect is shown.
WHOLE_MAX = 3
#: Effects shown per chain.
EFFECTS_MAX = 3
#: Texts that are only named.
ALSO_MAX = 5
#: The kind that only names texts of lines.
ALSO_LOGGED = "also_logged"
#: Kinds in which acks=all produces waited: what `whatif` and `compare` answer.
_OF_WAITS = ("slow_replica", "broker_stalled", "broker_died", "isr_shrunk", "log_directory_failed")
#: Kinds of incidents about partitions without a leader.
_WITHOUT_LEADER = ("partitions_without_leader",)
_TIME = "%Y-%m-%dT%H:%M:%SZ"
#: Minimum length of a window to compare with.
_COMPARED = timedelta(seconds=10)
_WEIGHT = ("critical", "major", "minor", "info")
#: Names end in one of these, or in a digit, before the blank that ends a sentence.
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s+(?=[A-Z(])|$)", re.DOTALL)
#: The beginning of a command.
_COMMAND: Final = re.compile(r"(?:highwater|kafka-[a-z-]+\.sh) ")
_DESCRIBE: Final = "kafka-topics.sh --bootstrap-server HOST:PORT --describe"
#: Kafka's command for what is still under way when the logs end, by kind.
_KAFKA_COMMANDS: Final = {
    "partitions_without_leader": f"{_DESCRIBE} --unavailable-partitions",
    "leader_not_fenced": f"{_DESCRIBE} --unavailable-partitions",
    "partitions_under_min_isr": f"{_DESCRIBE} --under-min-isr-partitions",
    "produces_refused": f"{_DESCRIBE} --under-min-isr-partitions",
    "isr_shrunk": f"{_DESCRIBE} --under-replicated-partitions",
    "partitions_not_fetched": f"{_DESCRIBE} --under-replicated-partitions",
    "reassignment_unfinished": "kafka-reassign-partitions.sh --bootstrap-server HOST:PORT --list",
    "group_rebalances": "kafka-consumer-groups.sh --bootstrap-server HOST:PORT --describe --all-groups --state",
    "quorum_unreachable": "kafka-metadata-quorum.sh --bootstrap-server HOST:PORT describe --status",
    "controller_renounced": "kafka-metadata-quorum.sh --bootstrap-server HOST:PORT describe --replication",
}


class Chain(NamedTuple):
    """An incident without a known cause, and the incidents that it caused."""

    cause: Incident
    effects: tuple[Incident, ...]  #: direct and indirect effects, by rank

    @property
    def parts(self) -> tuple[Incident, ...]:
        """Return all incidents of the chain."""
        return self.cause, *self.effects

    @property
    def head(self) -> Incident:
        """Return the worst effect: by class of harm, then severity, then rank."""
        return min(self.parts, key=lambda part: (INCIDENT_CLASSES.index(part.class_), _WEIGHT.index(part.severity)))

    @property
    def harm(self) -> IncidentClass:
        """Return the class of harm of the worst effect."""
        return self.head.class_

    @property
    def because(self) -> tuple[Incident, ...]:
        """Return the causes of the worst effect, the nearest first."""
        by_id = {part.incident_id: part for part in self.parts}
        causes: dict[str, Incident] = {}
        part = self.head
        while (cause := by_id.get(part.caused_by or "")) is not None and cause.incident_id not in causes:
            causes[cause.incident_id] = part = cause
        return tuple(causes.values())

    @property
    def also(self) -> tuple[Incident, ...]:
        """Return the effects other than the worst one, by rank."""
        told = {self.head.incident_id, *(cause.incident_id for cause in self.because)}
        return tuple(part for part in self.parts if part.incident_id not in told)

    @property
    def severity(self) -> str:
        """Return the worst severity of the incidents in the chain."""
        return min((part.severity for part in self.parts), key=_WEIGHT.index)

    @property
    def advice(self) -> str:
        """Return the advice of the head. If the head is over and no guarantee is broken, its causes come first.

        If these have no advice, return the first advice of another incident of the chain.
        """
        is_first = self.head.end_time is None or self.harm in ("data_lost", "guarantee_broken")
        causes = () if is_first else reversed(self.because)
        return next((part.advice for part in (*causes, self.head, *self.parts) if part.advice), "")

    @property
    def start_time(self) -> str:
        """Return the start of the worst effect."""
        return self.head.start_time

    @property
    def end_time(self) -> str | None:
        """Return the end of the worst effect. None if it lasts to the end of the logs."""
        return self.head.end_time

    def list_commands(self, has_requests: bool) -> list[str]:
        """Return the next commands for the worst effect, then for its cause.

        Args:
            has_requests: True if request logs were read, so that waits are known.
        """
        kafka = filter(None, [get_kafka_command(self.head)])
        asked = [*kafka, *list_commands(self.head, has_requests), *list_commands(self.cause, has_requests)]
        return list(dict.fromkeys(asked))

    def action(self, has_requests: bool) -> str:
        """Return the advice, then a command to paste.

        Args:
            has_requests: request logs were read, so waits are known.
        """
        _, colon, last = self.advice.rpartition(": ")
        if colon and _COMMAND.match(last) and ". " not in last:
            return self.advice
        return f"{self.advice or 'See its lines:'} {self.list_commands(has_requests)[0]}"


def make_chains(incidents: Sequence[Incident]) -> list[Chain]:
    """Return incidents grouped by their first cause, in the given order. An incident without a known cause begins a
    chain.
    """
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


def sort_by_harm(incidents: Sequence[Incident]) -> list[Chain]:
    """Return chains of incidents: those with lost data first, then other broken guarantees, then by rank.

    Chains of mere log messages are omitted.
    """
    ranked = make_chains([incident for incident in incidents if not _is_remark(incident)])
    first = {"data_lost": 0, "guarantee_broken": 1}
    return sorted(ranked, key=lambda chain: first.get(chain.harm, len(first)))


class IncidentSummary(NamedTuple):
    """The worst chains of incidents, for the first screen."""

    chains: tuple[Chain, ...]  #: worst chains, at most `CHAINS_MAX`
    actions: tuple[str, ...]  #: what to do about each of `chains`, with a command
    left_out: tuple[Chain, ...]  #: chains that are not among them
    also_logged: tuple[Incident, ...]  #: texts at WARN or above that no other incident has, at most `ALSO_MAX`
    more_logged: int  #: further ones

    @property
    def chain_count(self) -> int:
        """Return the number of chains, shown and left out."""
        return len(self.chains) + len(self.left_out)

    @property
    def left_out_text(self) -> str:
        """Return the number of omitted chains by the kind of their worst effect: ``isr shrunk (3), broker died``."""
        kinds = Counter(chain.head.kind.replace("_", " ") for chain in self.left_out)
        return ", ".join(f"{kind} ({count(many)})" if many > 1 else kind for kind, many in kinds.most_common())


def summarize_incidents(report: Report) -> IncidentSummary:
    """Return the worst chains, at most `CHAINS_MAX`, and the omitted ones."""
    ranked = sort_by_harm(report.incidents)
    also = tuple(filter(_is_remark, report.incidents))
    shown = also[: min(ALSO_MAX, max(0, CHAINS_MAX - len(ranked)))]
    first, rest = tuple(ranked[:CHAINS_MAX]), tuple(ranked[CHAINS_MAX:])
    actions = [chain.action(has_requests(report)) for chain in first]
    if first and first[0].harm == report.headline.class_:
        actions[0] = report.headline.action
    return IncidentSummary(first, tuple(actions), rest, shown, len(also) - len(shown))


def _is_remark(incident: Incident) -> bool:
    return incident.kind == ALSO_LOGGED and incident.severity == "info"


def select_worst(report: Report) -> list[Chain]:
    """Return chains by harm, without intended actions and mere log messages (severity info)."""
    return [chain for chain in sort_by_harm(report.incidents) if chain.severity != "info"]


def take_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    found = _SENTENCE.match(text.strip())
    return found[1] if found else text.strip()


def rest_of(text: str) -> str:
    """Return a text without its first sentence."""
    return text.strip()[len(take_sentence(text)) :].strip()


def sentence_case(text: str) -> str:
    """Return the text with a capital letter."""
    return text[:1].upper() + text[1:]


def get_kafka_command(incident: Incident) -> str:
    """Return the Kafka command for an incident that lasts until the logs end. Empty if it ended or has no command."""
    return _KAFKA_COMMANDS.get(incident.kind, "") if incident.end_time is None else ""


def show_window(incident: Incident | Chain) -> str:
    """Return ``2026-11-20 15:27:39 to 15:27:53``, or ``2026-11-20 15:27:39 to the end of the logs``; UTC."""
    return describe_times(incident.start_time, incident.end_time)


def describe_times(start_time: str, end_time: str | None) -> str:
    """Return a window in words. An end of None is the end of the logs."""
    start, end = split_span(start_time, end_time)
    if end_time is None:
        return f"{start} to the end of the logs"
    return start if end == start[11:] else f"{start} to {end}"


def split_span(start: str | None, end: str | None) -> tuple[str, str]:
    """Return two times to the second, ``-`` for None. The second has no date if both are on one day."""
    since, until = ("-" if time is None else time[:19].replace("T", " ") for time in (start, end))
    return since, until[11:] if since[:10] == until[:10] and until != "-" else until


def show_bug(incident: Incident) -> str:
    """Return ``Known bug KAFKA-3410, fixed in 2.0.1 and 2.1.0.`` Empty if the incident matches no known bug."""
    if incident.known_bug is None:
        return ""
    fixed = f", fixed in {incident.known_bug.fixed_in}" if incident.known_bug.fixed_in else ""
    return f"Known bug {incident.known_bug.id}{fixed}."


def get_account(incident: Incident) -> str:
    """Return the account of an incident, followed by its known bug."""
    return f"{incident.sentence} {show_bug(incident)}".rstrip()


def list_commands(incident: Incident, has_requests: bool) -> list[str]:
    """Return the next commands for an incident, with its window and subject filled in.

    Args:
        has_requests: request logs were read, so waits are known.
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
    brokers = f" --broker {incident.broker_ids[0]}" if len(incident.broker_ids) == 1 else ""
    return asked or [f"highwater incidents --from {start:{_TIME}}{until}{brokers}"]


def has_requests(report: Report) -> bool:
    """Return True if request logs were read, so that waits are known."""
    return bool(report.operations.produce.observed)


def describe_verdict(report: Report) -> str:
    """Return the verdict and its class: ``violated (data lost)``, ``clean``."""
    of_verdict = report.verdict_class.replace("_", " ")
    return report.verdict if report.verdict == CLEAN else f"{report.verdict} ({of_verdict})"


def make_verdict_sentence(report: Report) -> str:
    """Return the reasons for the verdict: broken rules, and the numbers of kept, open and not checkable guarantees."""
    states = count_rule_states(report)
    if not states:
        return "No rule was run."
    kept = states.get(CLEAN, 0)
    idle = f", {count(states[NOT_APPLICABLE])} not applicable" if NOT_APPLICABLE in states else ""
    unchecked = f", {count(states[NOT_CHECKABLE])} not checkable" if NOT_CHECKABLE in states else ""
    opened = f", {count(states[INCONCLUSIVE])} undecided" if INCONCLUSIVE in states else ""
    if report.verdict == VIOLATED:
        times = Counter(finding.rule_id for finding in report.violations)
        rules = times or Counter({rule.rule_id: rule.cases for rule in report.rules if rule.cases})
        broken = ", ".join(f"{rule_id} ({count(many)}x)" if many > 1 else rule_id for rule_id, many in rules.items())
        return f"Broken: {broken or 'a guarantee of Kafka'}. {number(kept, 'guarantee')} kept{opened}{unchecked}{idle}."
    if report.verdict == INCONCLUSIVE:
        lead = report.verdict_class.replace("_", " ").capitalize()
        return f"{lead}: {number(kept, 'guarantee')} kept{opened}{unchecked}{idle}."
    return f"All {number(kept, 'guarantee')} that apply were kept{unchecked}{idle}."


def describe_age(report: Report) -> str:
    """Return how long before the report the logs end: `` (6 days ago)``. Empty if unknown."""
    last = max((broker.last_time for broker in report.brokers if broker.last_time), default=None)
    made = report.detail.cost.made if report.detail else None
    if last is None or made is None:
        return ""
    minutes = (datetime.fromisoformat(made) - datetime.fromisoformat(last)) // timedelta(minutes=1)
    for size, noun in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= 2 * size:
            return f" ({number(minutes // size, noun)} ago)"
    return " (now)" if minutes >= 0 else ""


def describe_report(report: Report) -> Iterator[str]:
    """Yield the cluster, the releases, the brokers and the period of the report."""
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
    known = [broker for broker in report.brokers if broker.broker_id != UNKNOWN_BROKER] or report.brokers
    yield f"{count(len(known))} broker{'' if len(known) == 1 else 's'}"
    if first and last:
        yield f"{' to '.join(split_span(first, last))} UTC"
