"""A replica that was not in sync was elected leader: what only others had is gone."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, partition_name
from pipelines.incidents.incident import MAJOR, Bug, Incident, Place
from pipelines.incidents.kind import Kind
from pipelines.incidents.known import releases_of


def detect(facts: Facts) -> Iterable[Incident]:
    """Findings of the rule `unclean-election`, legal or not."""
    places: dict[str, list[Place]] = {}
    for row in facts.finding_places:
        places.setdefault(row["finding_id"], []).append(Place(row["file_id"], row["byte_offset"]))
    for row in facts.findings:
        if row["rule_id"] == "unclean-election" and row["topic"] is not None and row["time"] is not None:
            yield _elected(row, places.get(row["finding_id"], []))


def _elected(row: Row, places: list[Place]) -> Incident:
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=row["cluster_id"],
        start_us=row["time"],
        end_us=row["time"],
        broker_ids=tuple(row["brokers"] or ()),
        partitions=frozenset({partition_name(row)}),
        sentence=f"Partition {partition_name(row)}: {row['message'].rstrip('.')}.",
        advice="Set unclean.leader.election.enable=false for topics whose records matter more than their availability.",
        figures={} if row["offset_start"] is None else {"offset_start": row["offset_start"]},
        places=tuple(places),
        known_bug=Bug(row["known_bug"], releases_of(row["known_bug"])) if row["known_bug"] else None,
        weight=800.0,
    )


KIND = Kind(
    name="unclean_election",
    meaning="A replica outside the in-sync set was elected leader.",
    source="unclean.leader.election.enable; kafka.controller.Election, PartitionChangeBuilder in KRaft",
    detect=detect,
    causes=("partitions_without_leader",),
)
