"""Partitions that refused acks=all produces: their ISR was smaller than min.insync.replicas."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, partition_name
from pipelines.incidents.incident import CRITICAL, MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.partitions_without_leader import outages, together
from pipelines.incidents.words import number, partitions, sentence, span


def detect(facts: Facts) -> Iterable[Incident]:
    """Windows of `gold.availability` under min.insync.replicas, those that begin together as one."""
    for rows in together(outages(facts, "under_min_isr")):
        yield _under_min_isr(rows)


def _under_min_isr(rows: list[Row]) -> Incident:
    names = frozenset(map(partition_name, rows))
    start = min(row["started_time"] for row in rows)
    ends = [row["ended_time"] for row in rows]
    end = None if None in ends else max(ends)
    refused = sum(row["produces_refused"] or 0 for row in rows)
    lasted_s = 60.0 if end is None else (end - start) / 1e6
    minimum = sorted({row["min_insync_replicas"] for row in rows if row["min_insync_replicas"] is not None})
    wanted = f" ({' or '.join(map(str, minimum))})" if minimum else ""
    clients = f" {number(refused, 'acks=all produce')} {'was' if refused == 1 else 'were'} refused." if refused else ""
    few = "fewer in-sync replicas than min.insync.replicas"
    return Incident(
        kind=KIND.name,
        severity=CRITICAL if refused else MAJOR,
        cluster_id=rows[0]["cluster_id"],
        start_us=start,
        end_us=end,
        partitions=names,
        sentence=sentence(f"{partitions(names)} had {few}{wanted} {span(start, end)}.{clients}"),
        advice="Bring the replicas back that are out of sync; do not lower min.insync.replicas to let writes through.",
        figures={"partitions": len(names), "produces_refused": refused},
        weight=refused + len(names) * lasted_s,
    )


KIND = Kind(
    name="partitions_under_min_isr",
    meaning="Partitions had a leader, and fewer in-sync replicas than min.insync.replicas: acks=all is refused.",
    source="kafka.cluster.Partition.appendRecordsToLeader: NotEnoughReplicasException; UnderMinIsrPartitionCount",
    detect=detect,
    causes=("broker_died", "broker_halted", "log_directory_failed", "broker_stalled", "broker_stopped", "isr_shrunk"),
)
