"""Partitions that nobody led."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, partition_name
from pipelines.incidents.incident import CRITICAL, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.words import partitions, sentence, span

#: Windows that begin so close to each other are of one episode, microseconds.
TOGETHER_US = 2_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Windows of `gold.availability` without leader, those that begin together as one."""
    for rows in together(outages(facts, "offline")):
        yield _without_leader(rows)


def outages(facts: Facts, state: str) -> list[Row]:
    """Windows of a state, without those with which a cluster ends that is shut down as a whole."""
    ends = shutdown_times(facts)
    return [
        row
        for row in facts.availability
        if row["state"] == state and row["started_time"] < ends.get(row["cluster_id"], row["started_time"] + 1)
    ]


def together(rows: Iterable[Row]) -> list[list[Row]]:
    """Windows of one cluster that begin within `TOGETHER_US` of the one before."""
    groups: dict[str, list[list[Row]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["cluster_id"], row["started_time"])):
        of_cluster = groups[row["cluster_id"]]
        if of_cluster and row["started_time"] - of_cluster[-1][-1]["started_time"] <= TOGETHER_US:
            of_cluster[-1].append(row)
        else:
            of_cluster.append([row])
    return [group for of_cluster in groups.values() for group in of_cluster]


def _without_leader(rows: list[Row]) -> Incident:
    names = frozenset(map(partition_name, rows))
    start = min(row["started_time"] for row in rows)
    ends = [row["ended_time"] for row in rows]
    open_ended = sum(end is None for end in ends)
    end = None if open_ended else max(ends)
    some = open_ended not in (0, len(rows))
    still = f" {open_ended:,} of them still had none when the logs end." if some else ""
    longest_s = max(((row["ended_time"] or start) - row["started_time"]) / 1e6 for row in rows)
    return Incident(
        kind=KIND.name,
        severity=CRITICAL,
        cluster_id=rows[0]["cluster_id"],
        start_us=start,
        end_us=end,
        partitions=names,
        sentence=sentence(f"{partitions(names)} had no leader {span(start, end)}.{still}"),
        advice="Bring back a broker that was in the ISR before; an unclean election would lose what only it has.",
        figures={"partitions": len(names), "longest_s": longest_s, "to_the_end": open_ended},
        weight=len(names) * (longest_s or 60.0),
    )


KIND = Kind(
    name="partitions_without_leader",
    meaning="Partitions had no leader: nobody could write to them or read from them.",
    source="OfflinePartitionsCount; kafka.controller.PartitionStateMachine, ReplicationControlManager in KRaft",
    detect=detect,
    causes=("broker_died", "broker_halted", "log_directory_failed", "broker_stopped", "broker_stalled"),
)
