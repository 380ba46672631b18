"""A follower gave partitions up: its fetcher marked them as failed."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import first, partitions_of, places, together
from pipelines.incidents.facts import Facts, Row, node, partition_name
from pipelines.incidents.incident import MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.kinds.leader_unreachable import FETCHER
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import clock, partitions

_FAILED = Signature(
    "partition_marked_as_failed",
    ("ReplicaFetcherThread", "ReplicaAlterLogDirsThread"),
    FETCHER + r"Partition (?P<partition>\S+) marked as failed",
    "kafka.server.AbstractFetcherThread.markPartitionFailed, 2.3 on (KIP-461)",
    gap_s=15,
)
_TOGETHER_US = 15_000_000
#: Before a cluster is shut down its leaders move, microseconds.
_STOPS_US = 5_000_000
#: A fetcher learns of a new leader so late at most, microseconds.
_LATE_US = 10_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Partitions that a fetcher gave up, whose broker left their ISR and did not come back.

    A leader that changes, or a start of the broker, makes it fetch again; a fetcher that learns of a new leader late
    gives partitions up, too.
    """
    ends = shutdown_times(facts)
    rows = [
        row
        for row in facts.remarked(_FAILED.name)
        if row["broker_id"] is not None
        and row["first_time"] + _STOPS_US < ends.get(row["cluster_id"], row["first_time"] + _STOPS_US + 1)
    ]
    for group in together(rows, lambda row: (row["cluster_id"], row["broker_id"]), _TOGETHER_US):
        out = frozenset(name for name in partitions_of(group) if _is_out(facts, group[0], name))
        if out and not any(
            node(row) == node(group[0]) and row["event"] == "starting" and row["time"] > first(group)
            for row in facts.lifecycle
        ):
            yield _given_up(group, out)


def _is_out(facts: Facts, row: Row, name: str) -> bool:
    changes = [
        other["change"]
        for other in facts.isr_changes
        if other["cluster_id"] == row["cluster_id"]
        and other["replica_id"] == row["broker_id"]
        and partition_name(other) == name
    ]
    moves = [
        other["elected_time"]
        for other in facts.failovers
        if other["cluster_id"] == row["cluster_id"]
        and partition_name(other) == name
        and other["elected_time"] is not None
        and other["elected_time"] > row["first_time"] - _LATE_US
    ]
    return changes[-1:] == ["shrink"] and not moves


def _given_up(group: list[Row], names: frozenset[str]) -> Incident:
    broker_id, start = group[0]["broker_id"], first(group)
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=None,
        broker_ids=(broker_id,),
        partitions=names,
        sentence=(
            f"Broker {broker_id} gave up fetching {partitions(names)} at {clock(start)}: its fetcher marked "
            f"{'it' if len(names) == 1 else 'them'} as failed, and it is out of the ISR to the end of the logs."
        ),
        advice=(
            f"Look at the error before it in the log of broker {broker_id}; a new leader, or a restart of the broker, "
            "makes it fetch again."
        ),
        figures={"partitions": len(names)},
        places=places(group),
        weight=float(len(names)),
    )


KIND = Kind(
    name="partitions_not_fetched",
    meaning="A fetcher marked partitions as failed, and its broker did not join their ISR again.",
    source="kafka.server.AbstractFetcherThread.markPartitionFailed, FailedPartitions (KIP-461)",
    detect=detect,
    signatures=(_FAILED,),
    causes=("log_directory_failed", "fetch_errors", "controller_changed", "partitions_without_leader"),
)
