"""From facts to incidents: each kind detects, causes are linked, the most harmful come first. Pure.

What brought which about follows from kind, broker, partition and order in time, never from likeness alone: each kind
lists the kinds that can cause it. A cause begins no later than its effect, and is still under way, or over for no
longer than `LAG_US`, when the effect begins; two brokers' clocks are given `SLACK_US`. Both have a subject in common:
the broker that the effect names as its origin, a partition, or a broker. A produce that waits also has the replicas
of its partition in common with what happens to one of them.

Of several, the cause is one that is under way, and of these the one that begins last: an earlier one is behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelines.incidents.advice import with_due_advice
from pipelines.incidents.facts import Facts
from pipelines.incidents.incident import LoggedIncident
from pipelines.incidents.kind import Kind
from schemas.incidents import SEVERITIES

#: What is over brings about nothing that begins later than this: a replica that catches up is taken out no more.
LAG_US = 15_000_000
#: Clocks of two brokers of one cluster may differ so much unnoticed.
SLACK_US = 1_500_000
#: Brokers that are replicas of a partition, as lines show, by cluster and name.
Replicas = Mapping[tuple[str, str], frozenset[int]]


def linked(
    incidents: Sequence[LoggedIncident], causes: Mapping[str, Sequence[str]], replicas: Replicas | None = None
) -> list[LoggedIncident]:
    """The incidents, each with its cause where there is one; without one it says so, where that needs to be said.

    Args:
        causes: kinds that can bring a kind about; of two that begin at once the first one does.
        replicas: of partitions, for effects that are about nothing else.
    """
    by_kind: dict[str, list[LoggedIncident]] = {}
    for incident in incidents:
        by_kind.setdefault(incident.kind, []).append(incident)

    def cause_of(effect: LoggedIncident) -> LoggedIncident | None:
        possible = [
            cause
            for kind in causes.get(effect.kind, ())
            for cause in by_kind.get(kind, ())
            if can_cause(cause, effect, replicas)
        ]
        return max(possible, key=lambda cause: _nearness(cause, effect), default=None)

    linked = []
    for incident in incidents:
        cause = cause_of(incident)
        linked.append(incident.without_cause() if cause is None else incident.because_of(cause))
    return linked


def _nearness(cause: LoggedIncident, effect: LoggedIncident) -> tuple[bool, bool, int]:
    is_under_way = cause.end_us is None or cause.end_us + SLACK_US >= effect.start_us
    return is_under_way, cause.start_us <= effect.start_us, cause.start_us


def can_cause(cause: LoggedIncident, effect: LoggedIncident, replicas: Replicas | None = None) -> bool:
    """Whether subjects and order allow that one brought the other about."""
    if cause is effect or cause.cluster_id != effect.cluster_id:
        return False
    if cause.start_us > effect.start_us + max(effect.waited_us, SLACK_US):
        return False
    if cause.end_us is not None and effect.start_us > cause.end_us + LAG_US:
        return False
    if effect.by:
        return not set(cause.broker_ids).isdisjoint(effect.by)
    if cause.partitions and effect.partitions:
        return bool(cause.partitions & effect.partitions)
    if set(cause.broker_ids) & set(effect.broker_ids):
        return True
    holders = (replicas or {}).get
    return any(
        not holders((effect.cluster_id, name), frozenset()).isdisjoint(cause.broker_ids) for name in effect.partitions
    )


def roots(incidents: Sequence[LoggedIncident]) -> dict[str, str]:
    """The first incident of the chain that each is part of, by incident_id; of itself where nothing caused it."""
    causes = {incident.incident_id: incident.caused_by for incident in incidents}

    def root(incident_id: str) -> str:
        seen = {incident_id}
        while (cause := causes.get(incident_id)) is not None and cause not in seen:
            seen.add(cause)
            incident_id = cause
        return incident_id

    return {incident_id: root(incident_id) for incident_id in causes}


#: Incidents of a cluster that are stored, the most harmful ones.
STORED_MAX = 1000


def incidents_of(facts: Facts, kinds: Sequence[Kind]) -> list[LoggedIncident]:
    """Return all incidents, of each cluster the most harmful first, at most `STORED_MAX`.

    Raises:
        ValueError: two different incidents have the same id.
    """
    detected = [incident for kind in kinds if not kind.is_rest for incident in kind.detect(facts)]
    detected += [incident for kind in kinds if kind.is_rest for incident in kind.detect(facts, detected)]
    causes = {kind.name: kind.causes for kind in kinds}
    ordered = by_harm(linked(_distinct(detected), causes, facts.replicas))
    of_cluster: dict[str, int] = defaultdict(int)
    stored = []
    for incident in ordered:
        of_cluster[incident.cluster_id] += 1
        if of_cluster[incident.cluster_id] <= STORED_MAX:
            stored.append(with_due_advice(facts, incident))
    return stored


def _distinct(incidents: Sequence[LoggedIncident]) -> list[LoggedIncident]:
    """Return each incident once. Lines that two files contain may show one incident twice.

    Raises:
        ValueError: two different incidents have the same id.
    """
    by_id: dict[str, LoggedIncident] = {}
    for incident in incidents:
        first = by_id.setdefault(incident.incident_id, incident)
        if replace(first, places=()) != replace(incident, places=()):
            raise ValueError(
                f"two incidents of kind {incident.kind} have the id {incident.incident_id}: {first.sentence!r} and "
                f"{incident.sentence!r}; expected a subject that names the difference"
            )
    return list(by_id.values())


def by_harm(incidents: Sequence[LoggedIncident]) -> list[LoggedIncident]:
    """The most harmful first. A chain stands where its worst part does: its first cause, then the rest by harm."""
    root_of = roots(incidents)

    def harm(incident: LoggedIncident) -> tuple[int, float, int, str]:
        return SEVERITIES.index(incident.severity), -incident.weight, incident.start_us, incident.incident_id

    worst: dict[str, tuple[int, float, int, str]] = {}
    for incident in incidents:
        root = root_of[incident.incident_id]
        worst[root] = min(worst.get(root, harm(incident)), harm(incident))

    def place(incident: LoggedIncident) -> tuple[object, ...]:
        root = root_of[incident.incident_id]
        return incident.cluster_id, worst[root], root, incident.incident_id != root, harm(incident)

    return sorted(incidents, key=place)
