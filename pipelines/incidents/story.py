"""From facts to incidents: each kind detects, pairs that exclude each other are resolved, causes are linked. Pure.

Kind, broker, partition and order in time decide what caused what, never likeness alone: each kind lists the kinds that
can cause it. By the earliest bound of its begin, a cause begins no later than its effect, or `cause_by_us`. It is under
way when the effect begins, or over for at most `LAG_US`. Clocks of two brokers may differ by `SLACK_US`. Cause and
effect have a subject in common: the broker that the effect names as its origin, a partition, or a broker. A produce
that waits also has the replicas of its partition in common with what happens to one of them.

Of several causes, the one that is under way and began last counts: an earlier one is behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from highwater.pipelines.incidents.advice import with_due_advice
from highwater.pipelines.incidents.candidates import Candidates
from highwater.pipelines.incidents.classes import INCIDENT_CLASSES, IncidentClass, class_of
from highwater.pipelines.incidents.episodes import grouped
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import MINOR, LoggedIncident
from highwater.pipelines.incidents.kind import UNREACHED, Kind
from highwater.schemas.incidents import SEVERITIES

#: A cause that is over for longer has no effect: a replica that catches up stays in the ISR.
LAG_US = 15_000_000
#: Clocks of two brokers of one cluster may differ by this unnoticed.
SLACK_US = 1_500_000
#: Places of classes of harm, the worst first.
_PLACES: Mapping[IncidentClass, int] = {name: place for place, name in enumerate(INCIDENT_CLASSES)}
#: Brokers that are replicas of a partition, as lines show, by cluster and name.
Replicas = Mapping[tuple[str, str], frozenset[int]]


def linked(
    incidents: Sequence[LoggedIncident], causes: Mapping[str, Sequence[str]], replicas: Replicas | None = None
) -> list[LoggedIncident]:
    """Return the incidents, each with its cause if there is one.

    Args:
        causes: kinds of incident that can cause each kind. Of two that begin at the same time, the first kind wins.
        replicas: replicas by partition, for incidents that name only partitions.
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
        linked.append(incident if cause is None else incident.because_of(cause))
    return linked


def _nearness(cause: LoggedIncident, effect: LoggedIncident) -> tuple[bool, bool, int]:
    is_under_way = cause.end_us is None or cause.end_us + SLACK_US >= effect.start_us
    return is_under_way, cause.start_us <= effect.start_us, cause.start_us


def can_cause(cause: LoggedIncident, effect: LoggedIncident, replicas: Replicas | None = None) -> bool:
    """Return True if brokers (or `replicas`), partitions and times allow one incident to be the cause of another."""
    if cause is effect or cause.cluster_id != effect.cluster_id:
        return False
    # The earliest bound may be the last line of a broker that writes rarely.
    begun_us = max(cause.start_us if cause.earliest_us is None else cause.earliest_us, cause.start_us - LAG_US)
    latest_us = effect.start_us + max(effect.waited_us, SLACK_US)
    if begun_us > (latest_us if effect.cause_by_us is None else effect.cause_by_us):
        return False
    lag_us = LAG_US if effect.lag_us is None else effect.lag_us
    if cause.end_us is not None and effect.start_us > cause.end_us + max(lag_us, cause.unseen_us):
        return False
    if cause.is_cluster_wide:
        return True
    if effect.by:
        met = {*cause.broker_ids, *(cause.by if cause.kind in UNREACHED else ())}
        return not met.isdisjoint(effect.by)
    if cause.partitions and effect.partitions:
        return bool(cause.partitions & effect.partitions)
    if set(cause.broker_ids) & set(effect.broker_ids):
        return True
    holders = (replicas or {}).get
    return any(
        not holders((effect.cluster_id, name), frozenset()).isdisjoint(cause.broker_ids) for name in effect.partitions
    )


def roots(incidents: Sequence[LoggedIncident]) -> dict[str, str]:
    """Return the id of the first cause of each incident, by incident id. An incident without a cause has its own id."""
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
    """Return all incidents that the facts show, of each cluster the most harmful first, at most `STORED_MAX`."""
    detected = [incident for kind in kinds if not kind.is_rest for incident in kind.detect(facts)]
    detected = without_excluded(_distinct(detected), {kind.name: kind.yields_to for kind in kinds})
    detected += [incident for kind in kinds if kind.is_rest for incident in kind.detect(facts, detected)]
    causes = {kind.name: kind.causes for kind in kinds}
    merged = _merged(linked(_distinct(detected), causes, facts.replicas), kinds)
    ordered = by_harm(linked(merged, causes, facts.replicas), facts.brokers.shutdown_times)
    of_cluster: dict[str, int] = defaultdict(int)
    stored = []
    candidates = Candidates(facts, ordered)
    for incident in ordered:
        of_cluster[incident.cluster_id] += 1
        if of_cluster[incident.cluster_id] <= STORED_MAX:
            if incident.caused_by is None and incident.unexplained:
                incident = incident.without_cause(candidates.nearest(incident))
            stored.append(with_due_advice(facts, incident))
    return stored


def without_excluded(
    incidents: Sequence[LoggedIncident], yields_to: Mapping[str, Sequence[str]]
) -> list[LoggedIncident]:
    """Return the incidents without those that another incident covers.

    Args:
        yields_to: by kind of incident, the kinds that show more of the same event.
    """
    by_kind: dict[tuple[str, str], list[LoggedIncident]] = defaultdict(list)
    for incident in incidents:
        by_kind[incident.cluster_id, incident.kind].append(incident)

    def is_excluded(incident: LoggedIncident) -> bool:
        others = [
            other
            for name in yields_to.get(incident.kind, ())
            for other in by_kind[incident.cluster_id, name]
            if _is_within(incident, other)
        ]
        nodes = {broker_id for other in others for broker_id in other.broker_ids}
        names = {name for other in others for name in other.partitions}
        return bool(others) and (
            incident.partitions <= names if incident.partitions and names else nodes >= {*incident.broker_ids}
        )

    return [incident for incident in incidents if not is_excluded(incident)]


def _is_within(incident: LoggedIncident, other: LoggedIncident) -> bool:
    """Return True if an incident begins while another is under way, or begins at most `SLACK_US` before it."""
    begins_after = incident.start_us + SLACK_US >= other.start_us
    return begins_after and (other.end_us is None or incident.start_us <= other.end_us)


def _merged(incidents: Sequence[LoggedIncident], kinds: Sequence[Kind]) -> list[LoggedIncident]:
    """Return the incidents, with consecutive ones of the same kind and the same first cause merged."""
    merges = {kind.name: kind.merge for kind in kinds if kind.merge is not None}
    root_of = roots(incidents)
    merged = []
    of_root: dict[tuple[str, str], list[LoggedIncident]] = defaultdict(list)
    for incident in incidents:
        if incident.kind in merges and incident.caused_by is not None and incident.end_us is not None:
            of_root[incident.kind, root_of[incident.incident_id]].append(incident)
        else:
            merged.append(incident)
    for (name, _), of_one in of_root.items():
        for group in grouped(sorted(of_one, key=lambda incident: incident.start_us), _follows):
            merged.append(group[0] if len(group) == 1 else replace(merges[name](group), kind=name))
    return [replace(incident, caused_by=None) for incident in merged]


def _follows(group: list[LoggedIncident], incident: LoggedIncident) -> bool:
    return incident.start_us <= max(other.end_us or 0 for other in group) + LAG_US


def _distinct(incidents: Sequence[LoggedIncident]) -> list[LoggedIncident]:
    """Return each incident once. Lines that two files contain may show one incident twice.

    If two different incidents have one id, the end is added to the subject of the second.
    """
    by_id: dict[str, LoggedIncident] = {}
    for incident in incidents:
        first = by_id.setdefault(incident.incident_id, incident)
        if replace(first, places=()) != replace(incident, places=()):
            until = replace(incident, subject=f"{incident.subject} {incident.end_us} {incident.sentence}".strip())
            by_id.setdefault(until.incident_id, until)
    return list(by_id.values())


def _harm_of(incident: LoggedIncident) -> int:
    """Return the rank of harm, 0 for the worst. A minor incident recovered by itself, so it ranks as slow at worst."""
    by_class = _PLACES[class_of(incident.kind, incident.severity, incident.figures)]
    return max(by_class, _PLACES["slow"]) if incident.severity == MINOR else by_class


def by_harm(incidents: Sequence[LoggedIncident], shutdowns: Mapping[str, int] | None = None) -> list[LoggedIncident]:
    """Return incidents sorted by harm. All incidents of one first cause are placed by the worst of them.

    Broken guarantees come first, then incidents that last until the logs end. The rest is sorted by class of harm,
    severity and weight. Incidents that begin with the shutdown of a whole cluster come last. A cause comes before what
    it caused.

    Args:
        shutdowns: start of the shutdown of each whole cluster, microseconds.
    """
    root_of = roots(incidents)
    starts = {incident.incident_id: incident.start_us for incident in incidents}

    def harm(incident: LoggedIncident) -> tuple[int, int, int, float, int, str]:
        by_class = _harm_of(incident)
        is_under_way = incident.end_us is None and by_class <= _PLACES["redundancy_lost"]
        order = 0 if by_class <= _PLACES["guarantee_broken"] else 1 if is_under_way else 2
        root_us = starts.get(root_of[incident.incident_id], incident.start_us)
        if order and root_us >= (shutdowns or {}).get(incident.cluster_id, root_us + 1):
            order = 3
        severity = SEVERITIES.index(incident.severity)
        return order, by_class, severity, -incident.weight, incident.start_us, incident.incident_id

    worst: dict[str, tuple[object, ...]] = {}
    for incident in incidents:
        root = root_of[incident.incident_id]
        worst[root] = min(worst.get(root, harm(incident)), harm(incident))

    def place(incident: LoggedIncident) -> tuple[object, ...]:
        root = root_of[incident.incident_id]
        return incident.cluster_id, worst[root], root, incident.incident_id != root, harm(incident)

    return sorted(incidents, key=place)
