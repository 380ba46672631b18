"""A replica left and joined in-sync sets again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Node, partition_name
from pipelines.incidents.incident import MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.words import number, partitions, span

#: Leaving so often, with no more than the gap between two times, is flapping.
_TIMES_MIN = 4
_GAP_US = 600_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Replicas that leaders took out of one partition's ISR four times or more, each within ten minutes of the last."""
    left: dict[tuple[Node, str], list[int]] = defaultdict(list)
    out: set[tuple[Node, str]] = set()
    for row in facts.isr_changes:
        member = (row["cluster_id"], row["replica_id"]), partition_name(row)
        if row["change"] == "expand":
            out.discard(member)
        elif row["made_by"] == "leader" and member not in out:
            out.add(member)
            left[member].append(row["change_time"])
    flapping: dict[Node, dict[str, list[int]]] = defaultdict(dict)
    for (replica, name), times in left.items():
        run = [times[0]]
        for time in times[1:]:
            run = [*run, time] if time - run[-1] <= _GAP_US else [time]
        if len(run) >= _TIMES_MIN:
            flapping[replica][name] = run
    for replica, of_partition in sorted(flapping.items()):
        yield _flapped(replica, of_partition)


def _flapped(replica: Node, of_partition: dict[str, list[int]]) -> Incident:
    start, end = min(run[0] for run in of_partition.values()), max(run[-1] for run in of_partition.values())
    count = sum(map(len, of_partition.values()))
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=replica[0],
        start_us=start,
        end_us=end,
        broker_ids=(replica[1],),
        partitions=frozenset(of_partition),
        sentence=(
            f"Broker {replica[1]} left the ISR of {partitions(of_partition)} again and again {span(start, end)}: "
            f"{number(count, 'time')}."
        ),
        advice=(
            f"Broker {replica[1]} keeps up only now and then: look at its disk and network, at num.replica.fetchers, "
            "and at replica.lag.time.max.ms if it was lowered."
        ),
        figures={"times": count, "partitions": len(of_partition)},
        weight=float(count),
        by=(replica[1],),
    )


KIND = Kind(
    name="isr_flapping",
    meaning="A leader took one replica out of the ISR of a partition four times or more, ten minutes apart at most.",
    source="kafka.cluster.Partition.maybeShrinkIsr and maybeExpandIsr; IsrShrinksPerSec",
    detect=detect,
    causes=("slow_replica", "zombie_leader"),
)
