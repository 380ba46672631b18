"""From facts to incidents: each kind detects, causes are linked, the most harmful come first. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipelines.incidents.causes import linked, roots
from pipelines.incidents.facts import Facts
from pipelines.incidents.incident import Incident
from pipelines.incidents.kind import Kind
from schemas.incidents import SEVERITIES

#: Incidents of a cluster that are stored, the most harmful ones.
STORED_MAX = 1000


def incidents_of(facts: Facts, kinds: Sequence[Kind]) -> list[Incident]:
    """All incidents, of each cluster the most harmful first, at most `STORED_MAX`."""
    detected = [incident for kind in kinds if not kind.is_rest for incident in kind.detect(facts)]
    detected += [incident for kind in kinds if kind.is_rest for incident in kind.detect(facts, detected)]
    distinct = {incident.incident_id: incident for incident in detected}
    causes = {kind.name: kind.causes for kind in kinds}
    ordered = by_harm(linked(list(distinct.values()), causes, facts.replicas))
    of_cluster: dict[str, int] = defaultdict(int)
    stored = []
    for incident in ordered:
        of_cluster[incident.cluster_id] += 1
        if of_cluster[incident.cluster_id] <= STORED_MAX:
            stored.append(incident)
    return stored


def by_harm(incidents: Sequence[Incident]) -> list[Incident]:
    """The most harmful first. A chain stands where its worst part does: its first cause, then the rest by harm."""
    root_of = roots(incidents)

    def harm(incident: Incident) -> tuple[int, float, int, str]:
        return SEVERITIES.index(incident.severity), -incident.weight, incident.start_us, incident.incident_id

    worst: dict[str, tuple[int, float, int, str]] = {}
    for incident in incidents:
        root = root_of[incident.incident_id]
        worst[root] = min(worst.get(root, harm(incident)), harm(incident))

    def place(incident: Incident) -> tuple[object, ...]:
        root = root_of[incident.incident_id]
        return incident.cluster_id, worst[root], root, incident.incident_id != root, harm(incident)

    return sorted(incidents, key=place)
