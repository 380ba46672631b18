"""A broker that was running lost its session, and so its leaderships."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, node, place
from pipelines.incidents.incident import MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.words import clock, lasting

#: The expiry and what follows are of one episode, microseconds.
_TOGETHER_US = 10_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """ZooKeeper sessions that expired, by the broker's own lines."""
    last: dict[tuple[str, int], int] = {}
    for row in facts.lifecycle:
        if row["event"] == "zookeeper_expired":
            if row["time"] - last.get(node(row), -_TOGETHER_US) >= _TOGETHER_US:
                yield _expired(facts, row)
            last[node(row)] = row["time"]


def _expired(facts: Facts, row: Row) -> Incident:
    back = [
        other["time"]
        for other in facts.lifecycle
        if node(other) == node(row) and other["event"] == "registered" and other["time"] >= row["time"]
    ]
    end = min(back, default=None)
    again = (
        f"it registered again after {lasting(end - row['time'])}" if end is not None else "it did not register again"
    )
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=row["cluster_id"],
        start_us=row["time"],
        end_us=end,
        broker_ids=(row["broker_id"],),
        sentence=(
            f"Broker {row['broker_id']} noticed at {clock(row['time'])} that its ZooKeeper session had expired; "
            f"{again}. Until then it may have gone on as leader of partitions that others led."
        ),
        unexplained=(
            "Look at what kept it from ZooKeeper for longer than zookeeper.session.timeout.ms: a long garbage "
            "collection, the network, ZooKeeper itself."
        ),
        places=(place(row),),
        weight=50.0,
        by=(row["broker_id"],),
    )


KIND = Kind(
    name="session_expired",
    meaning="The ZooKeeper session of a running broker expired.",
    source="kafka.zookeeper.ZooKeeperClient, org.I0Itec.zkclient.ZkClient up to 1.0: state Expired",
    detect=detect,
    causes=("broker_stalled", "broker_died"),
)
