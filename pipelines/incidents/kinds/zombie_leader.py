"""A broker went on as leader after another one was elected; what it took then was never committed."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, partitions_of, places, together
from pipelines.incidents.facts import Facts, Row, node
from pipelines.incidents.incident import MAJOR, MINOR, Bug, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.known import bug_of
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import number, partitions, when

_REFUSED = Signature(
    "isr_change_refused",
    ("Partition",),
    r"\[?Partition (?P<partition>\S+) (?:broker=\d+\] |on broker \d+: )(?:Cached zkVersion \[\d+\] "
    r"not equal to that in zookeeper, skip updating ISR|Failed to (?:update ISR|alter partition) to .* (?:"
    r"leader epoch is old|an old leader epoch|invalid version|version is invalid|invalid update version).*)",
    "kafka.cluster.Partition.updateIsr up to 2.7, submitAlterPartition from 2.7 on",
    ("INFO", "WARN", "ERROR"),
)
#: A leader whose state is sent anew takes it sooner, microseconds.
_STUCK_US = 30_000_000
#: A leader that is replaced in order learns of it sooner, milliseconds.
_LONG_MS = 1_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Leaders whose ISR changes were refused, each with how long there were two leaders where logs show it."""
    rows = [row for row in facts.remarked(_REFUSED.name) if row["broker_id"] is not None]
    for group in together(rows, lambda row: (row["cluster_id"], row["broker_id"]), 60_000_000):
        yield _zombie(facts, group)


def _zombie(facts: Facts, group: list[Row]) -> Incident:
    cluster_id, (broker_id,) = group[0]["cluster_id"], brokers_of(group)
    start, end, refused, names = first(group), last(group), lines(group), partitions_of(group)
    two_ms = max(
        (
            row["elected_to_stepped_down_ms"]
            for row in facts.failovers
            if row["cluster_id"] == cluster_id
            and row["old_leader"] == broker_id
            and row["elected_to_stepped_down_ms"] is not None
            and row["stepped_down_time"] >= start
            and row["elected_time"] <= end
        ),
        default=0.0,
    )
    two = f" There were two leaders for {two_ms / 1000:.1f} s." if two_ms >= _LONG_MS else ""
    where = f" of {partitions(names)}" if names else ""
    changes = f"{number(refused, 'ISR change')}{where} {'was' if refused == 1 else 'were'} refused {when(start, end)}"
    went_on = f"Broker {broker_id} went on as leader after another one was elected: {changes}.{two}"
    behind = f"{changes} to leader {broker_id}: its state is behind that of ZooKeeper or the controller"
    return Incident(
        kind=KIND.name,
        severity=MAJOR if two else MINOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=end,
        broker_ids=(broker_id,),
        partitions=names,
        sentence=went_on if two else f"{behind}.",
        advice=(
            f"What acks=1 producers sent broker {broker_id} meanwhile is cut off as it becomes a follower."
            if two
            else f"If they go on, restart broker {broker_id}: it does not read its state anew by itself."
        ),
        known_bug=_bug(facts, group) if not two and end - start >= _STUCK_US else None,
        figures={"isr_changes_refused": refused, "two_leaders_s": two_ms / 1000},
        places=places(group),
        weight=700.0 + refused,
        by=(broker_id,),
    )


def _bug(facts: Facts, group: list[Row]) -> Bug | None:
    if not any("Cached zkVersion" in row["message"] for row in group):
        return None
    return bug_of("KAFKA-2729", facts.version(node(group[0]), first(group)))


KIND = Kind(
    name="zombie_leader",
    meaning="A broker took itself for the leader of partitions, and its ISR changes were refused as out of date.",
    source="kafka.cluster.Partition.updateIsr and submitAlterPartition; KAFKA-2729",
    detect=detect,
    signatures=(_REFUSED,),
    causes=("broker_stalled", "session_expired", "controller_changed"),
)
