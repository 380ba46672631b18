"""Which incident brought which about: by kind, broker, partition and order in time, never by likeness alone. Pure.

Each kind lists the kinds that can cause it, the likeliest first. A cause begins no later than its effect, and is
still under way, or over for no longer than `LAG_US`, when the effect begins; two brokers' clocks are given `SLACK_US`.
Both have a subject in common: the broker that the effect names as its origin, a partition, or a broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipelines.incidents.incident import Incident

#: What a fault does is seen so late at the most: beyond replica.lag.time.max.ms (30 s) and session timeouts (18 s).
LAG_US = 60_000_000
#: Clocks of two brokers of one cluster may differ so much unnoticed.
SLACK_US = 1_500_000


def linked(incidents: Sequence[Incident], causes: Mapping[str, Sequence[str]]) -> list[Incident]:
    """The incidents, each with its cause where there is one.

    Args:
        causes: kinds that can bring a kind about, the likeliest first.
    """
    by_kind: dict[str, list[Incident]] = {}
    for incident in incidents:
        by_kind.setdefault(incident.kind, []).append(incident)

    def cause_of(effect: Incident) -> Incident | None:
        for kind in causes.get(effect.kind, ()):
            possible = [cause for cause in by_kind.get(kind, ()) if can_cause(cause, effect)]
            if possible:
                return max(possible, key=lambda cause: cause.start_us)
        return None

    linked = []
    for incident in incidents:
        cause = cause_of(incident)
        linked.append(incident if cause is None else incident.because_of(cause))
    return linked


def can_cause(cause: Incident, effect: Incident) -> bool:
    """Whether subjects and order allow that one brought the other about."""
    if cause is effect or cause.cluster_id != effect.cluster_id or cause.start_us > effect.start_us + SLACK_US:
        return False
    if cause.end_us is not None and effect.start_us > cause.end_us + LAG_US:
        return False
    if effect.by is not None:
        return effect.by in cause.broker_ids
    if cause.partitions and effect.partitions:
        return bool(cause.partitions & effect.partitions)
    return bool(set(cause.broker_ids) & set(effect.broker_ids))


def roots(incidents: Sequence[Incident]) -> dict[str, str]:
    """The first incident of the chain that each is part of, by incident_id; of itself where nothing caused it."""
    causes = {incident.incident_id: incident.caused_by for incident in incidents}

    def root(incident_id: str) -> str:
        seen = {incident_id}
        while (cause := causes.get(incident_id)) is not None and cause not in seen:
            seen.add(cause)
            incident_id = cause
        return incident_id

    return {incident_id: root(incident_id) for incident_id in causes}
