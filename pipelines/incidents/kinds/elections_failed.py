"""A controller could not elect a leader that it wanted."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, partitions_of, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, number, partitions, when

_FAILED = Signature(
    "election_failed",
    ("logger", "KafkaController"),
    r"(?:\[[^\]]*\]:? )?(?:Controller \d+ epoch \d+ (?:failed to change state for partition (?P<partition>\S+) from .*"
    r"|initiated state change for partition .* failed|encountered error while electing leader for partition .*"
    r"|aborted leader election for partition .*)|Error completing (?:preferred )?replica leader election .*"
    r"|Partition .* failed to complete preferred replica leader election.*)",
    "kafka.controller.PartitionStateMachine, ZooKeeper controllers",
    ("ERROR", "WARN"),
    gap_s=10,
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by cluster, but for those in which the whole cluster is shut down."""
    ends = shutdown_times(facts)
    rows = [
        row
        for row in facts.remarked(_FAILED.name)
        if row["first_time"] < ends.get(row["cluster_id"], row["first_time"] + 1)
    ]
    for group in together(rows, lambda row: row["cluster_id"], 15_000_000):
        yield _failed(group)


def _failed(group: list[Row]) -> Incident:
    start, end, ids, names = first(group), last(group), brokers_of(group), partitions_of(group)
    who = f"the controller ({brokers(ids)})" if ids else "the controller"
    where = f" of {partitions(names)}" if names else ""
    return Incident(
        kind=KIND.name,
        severity=MINOR,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=ids,
        partitions=names,
        sentence=(
            f"{who[:1].upper()}{who[1:]} could not elect a leader{where} {when(start, end)}: "
            f"{number(lines(group), 'failed attempt')}."
        ),
        advice="Bring back a broker that was in the ISR: no other replica is eligible.",
        figures={"attempts": lines(group), "partitions": len(names)},
        places=places(group),
        weight=float(lines(group)),
    )


KIND = Kind(
    name="elections_failed",
    meaning="A ZooKeeper controller found no eligible replica, or another controller had elected before it.",
    source="kafka.controller.PartitionStateMachine.doElectLeaderForPartitions",
    detect=detect,
    signatures=(_FAILED,),
    causes=(
        *("partitions_without_leader", "controlled_shutdown_failed", "broker_died", "broker_stalled", "broker_stopped"),
        "controller_changed",
    ),
)
