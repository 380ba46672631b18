"""A migration from ZooKeeper to KRaft that does not begin."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, place
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, clock

_WAITS = Signature(
    "migration_waits_for_brokers",
    ("KRaftMigrationDriver",),
    r"\[[^\]]*\] (?:Controller Quorum is ready for Zk to KRaft migration\. Now waiting for ZK brokers\."
    r"|Still waiting for ZK brokers \[?[\d, ]*\]?.* to register with KRaft\."
    r"|No brokers are (?:known to KRaft|registered in ZK), waiting for brokers to register\.)",
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver, 3.4 to 3.9 (KIP-866)",
    ("INFO", "WARN"),
    gap_s=600,
)
_BEGUN = Signature(
    "migration_begun",
    ("KRaftMigrationDriver",),
    r"\[[^\]]*\] (?:Starting ZK migration|Completed migration of metadata from Z[Kk]|.* transitioning from .* to "
    r"ZK_MIGRATION state).*",
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver",
    ("INFO",),
    gap_s=600,
)
_IDS = re.compile(r"Still waiting for ZK brokers \[?([\d, ]+)\]?")


def detect(facts: Facts) -> Iterable[Incident]:
    """Waiting that no line of the migration's begin follows."""
    begun = facts.remarked(_BEGUN.name)
    for row in facts.remarked(_WAITS.name):
        after = [other["first_time"] for other in begun if other["first_time"] >= row["first_time"]]
        end = min(after, default=None)
        ids = [
            int(broker_id) for match in _IDS.finditer(row["last_message"]) for broker_id in re.findall(r"\d+", match[1])
        ]
        whom = f"{brokers(ids)} to register with KRaft" if ids else "brokers to register with KRaft"
        since = clock(row["first_time"])
        until = (
            f"at {since}, and it still waits at the end of the logs" if end is None else f"from {since} to {clock(end)}"
        )
        yield Incident(
            kind=KIND.name,
            severity=MINOR,
            cluster_id=row["cluster_id"],
            start_us=row["first_time"],
            end_us=end,
            broker_ids=tuple(sorted(ids)),
            sentence=f"The migration from ZooKeeper to KRaft waited for {whom} {until}.",
            advice=(
                "Give each of these brokers zookeeper.metadata.migration.enable=true, controller.quorum.voters and "
                "controller.listener.names, and restart it; the migration begins when all have registered."
            ),
            figures={"brokers": len(ids)},
            places=(place(row),),
            weight=60.0,
        )


KIND = Kind(
    name="migration_waits",
    meaning="The controllers are ready to migrate from ZooKeeper, and brokers have not registered with them.",
    source="KIP-866; org.apache.kafka.metadata.migration.KRaftMigrationDriver.WaitForZkBrokersEvent",
    detect=detect,
    signatures=(_WAITS, _BEGUN),
)
