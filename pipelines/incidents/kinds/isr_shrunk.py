"""A replica left in-sync sets: partitions were one fault nearer to losing writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from pipelines.incidents.facts import Facts, Node, partition_name
from pipelines.incidents.incident import MAJOR, MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.words import brokers, clock, lasting, number, partitions, span, times

#: Leaders take a replica out within this of each other for one reason, microseconds.
_TOGETHER_US = 10_000_000


#: A produce that waited for a replica is answered so shortly after it left at most, microseconds.
_ANSWERED_US = 2_000_000
#: Role of a replica that closed a wait by leaving the in-sync set.
LEFT = "left_isr"


class Absence(NamedTuple):
    """A replica out of the in-sync set of a partition; microseconds, `back_us` None: to the end of the logs."""

    partition: str
    left_us: int
    back_us: int | None
    leader: int


def detect(facts: Facts) -> Iterable[Incident]:
    """Absences of each replica, those that begin together as one."""
    ends = shutdown_times(facts)
    for replica, absences in _absences(facts).items():
        groups: list[list[Absence]] = []
        for absence in sorted(absences, key=lambda absence: absence.left_us):
            if absence.left_us >= ends.get(replica[0], absence.left_us + 1):
                continue
            if groups and absence.left_us - groups[-1][0].left_us <= _TOGETHER_US:
                groups[-1].append(absence)
            else:
                groups.append([absence])
        for group in groups:
            yield _shrunk(facts, replica, group)


def _absences(facts: Facts) -> dict[Node, list[Absence]]:
    out: dict[tuple[str, int, str], tuple[int, int]] = {}
    absences: dict[Node, list[Absence]] = defaultdict(list)
    for row in facts.isr_changes:
        key = (row["cluster_id"], row["replica_id"], partition_name(row))
        if row["change"] == "shrink":
            out.setdefault(key, (row["change_time"], row["broker_id"]))
        elif key in out:
            left, leader = out.pop(key)
            absences[key[:2]].append(Absence(key[2], left, row["change_time"], leader))
    for (cluster_id, replica_id, partition), (left, leader) in out.items():
        absences[cluster_id, replica_id].append(Absence(partition, left, None, leader))
    return dict(sorted(absences.items()))


def _shrunk(facts: Facts, replica: Node, group: list[Absence]) -> Incident:
    names = frozenset(absence.partition for absence in group)
    start = group[0].left_us
    backs = [absence.back_us for absence in group if absence.back_us is not None]
    away = len(names - {absence.partition for absence in group if absence.back_us is not None})
    end = None if away else max(backs)
    repeated = len(group) - len(names)
    again = f" It left {times(repeated)} more." if repeated else ""
    never = f" It never came back into {away:,} of them." if away and backs else ""
    leaders = {absence.leader for absence in group} - {replica[1], -1}
    by = f" (leader: {brokers(leaders)})" if len(leaders) == 1 else ""
    operations, longest_ms = _waits(facts, replica, [absence.left_us for absence in group])
    produces = number(operations, "acks=all produce")
    waited = (
        f" Until then {produces} had waited for it, the longest {lasting(longest_ms * 1000)}." if operations else ""
    )
    lasted_s = 60.0 if end is None else (end - start) / 1e6
    return Incident(
        kind=KIND.name,
        severity=MAJOR if away else MINOR,
        cluster_id=replica[0],
        start_us=start,
        end_us=end,
        broker_ids=(replica[1],),
        partitions=names,
        sentence=(
            f"Broker {replica[1]} was out of the ISR of {partitions(names)}{by} {span(start, end)}."
            f"{again}{never}{waited}"
        ),
        advice=f"Find out why broker {replica[1]} did not keep up or is not there." if away else "",
        unexplained=(
            f"Look outside Kafka at broker {replica[1]} at {clock(start)}: garbage collection (gc.log), its disk, its "
            "network to the leader."
        ),
        figures={"partitions": len(names), "not_back": away, "produces": operations, "longest_ms": longest_ms},
        weight=len(names) * lasted_s,
        # A leader that stood still takes out, as it goes on, all who could not fetch from it.
        by=(replica[1], *sorted(leaders)),
    )


def _waits(facts: Facts, replica: Node, left_us: list[int]) -> tuple[int, float]:
    """Produces that were answered as the replica left, and the longest wait of them, milliseconds."""
    rows = [
        row
        for row in facts.waits
        if row["role"] == LEFT
        and (row["cluster_id"], row["replica_id"]) == replica
        and any(abs(row["completed_us"] - left) <= _ANSWERED_US for left in left_us)
    ]
    return sum(row["operations"] for row in rows), max((row["wait_ms_max"] for row in rows), default=0.0)


KIND = Kind(
    name="isr_shrunk",
    meaning="A replica was taken out of in-sync sets, and came back or did not.",
    source="kafka.cluster.Partition.maybeShrinkIsr: replica.lag.time.max.ms; the controller when a broker is fenced",
    detect=detect,
    causes=("broker_died", "broker_halted", "log_directory_failed", "broker_stalled", "broker_stopped", "slow_replica"),
)
