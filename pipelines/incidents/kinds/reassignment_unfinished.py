"""A reassignment that began and did not end within the logs."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, partition_name, place
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, clock, lasting, partitions

_PREFIX = r"(?:\[[^\]]*\]:?,? ?)?"
_BEGUN = Signature(
    "reassignment_begun",
    ("KafkaController",),
    _PREFIX + r"Handling reassignment of partition (?P<key>\S+) to new replicas .*",
    "kafka.controller.KafkaController.onPartitionReassignment, up to 2.3",
    ("INFO",),
)
_ENDED = Signature(
    "reassignment_ended",
    ("KafkaController",),
    _PREFIX + r"(?:Removed|Removing) partitions? (?P<key>.+) from the list of reassigned partitions in zookeeper",
    "kafka.controller.KafkaController.removePartitionsFromReassignedPartitions",
    ("INFO",),
)
#: One that is younger may end at any time, microseconds.
_OLD_US = 60_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Partitions whose last state within the logs adds or removes replicas, each by itself."""
    ends = shutdown_times(facts)
    for row in (*facts.reassignments, *_by_controller(facts)):
        end = ends.get(row["cluster_id"], facts.ends.get(row["cluster_id"], row["first_time"]))
        if end - row["first_time"] >= _OLD_US:
            yield _unfinished(row, end)


def _by_controller(facts: Facts) -> Iterable[Row]:
    """The same by lines of ZooKeeper controllers whose brokers do not log what a reassignment adds."""
    ended = facts.remarked(_ENDED.name)
    for row in facts.remarked(_BEGUN.name):
        topic, _, number = row["key"].strip("[]").replace(",", "-").rpartition("-")
        names = (f"{topic}-{number}", f"{topic},{number}")
        is_over = any(
            other["cluster_id"] == row["cluster_id"]
            and other["last_time"] >= row["last_time"]
            and any(name in other["key"] for name in names)
            for other in ended
        )
        if not is_over and number.isdigit():
            yield {**row, "topic": topic, "partition": int(number), "adding": (), "removing": ()}


def _unfinished(row: Row, end_us: int) -> Incident:
    name, start = partition_name(row), row["first_time"]
    changes = [f"{verb} {brokers(ids)}" for verb, ids in (("adds", row["adding"]), ("removes", row["removing"])) if ids]
    what = f" ({' and '.join(changes)})" if changes else ""
    return Incident(
        kind=KIND.name,
        severity=MINOR,
        cluster_id=row["cluster_id"],
        start_us=start,
        end_us=None,
        broker_ids=tuple(sorted({*row["adding"], *row["removing"]})),
        partitions=frozenset({name}),
        sentence=(
            f"The reassignment of {partitions([name])}{what} began at {clock(start)} and had not ended "
            f"{lasting(end_us - start)} later, when the logs end."
        ),
        advice=(
            "Ask kafka-reassign-partitions --verify: a broker that is away, a full disk, or a throttle below what is "
            "produced (follower.replication.throttled.rate) keep a new replica back. --cancel ends it."
        ),
        figures={"unfinished_s": (end_us - start) / 1e6},
        places=(place(row),),
        weight=(end_us - start) / 1e6,
    )


KIND = Kind(
    name="reassignment_unfinished",
    meaning="A reassignment of a partition began, and had not ended a minute or more later, when the logs end.",
    source="KIP-455; kafka.controller.KafkaController, org.apache.kafka.controller.ReplicationControlManager: "
    "addingReplicas and removingReplicas of a partition's state",
    detect=detect,
    signatures=(_BEGUN, _ENDED),
    causes=("broker_died", "broker_halted", "log_directory_failed", "fetcher_died"),
)
