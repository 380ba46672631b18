"""A follower could not connect to its leader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row, place
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, number, span

#: Begin of a line of the fetcher thread from the leader ``key``.
FETCHER = (
    r"\[(?:ReplicaFetcher replicaId=\d+, leaderId=|ReplicaFetcherThread-\d+-)(?P<key>\d+)(?:, fetcherId=\d+)?\]:?,? "
)
_UNREACHABLE = Signature(
    "leader_unreachable",
    ("NetworkClient", "ReplicaFetcherThread", "ReplicaFetcherBlockingSend"),
    FETCHER + r"(?:Connection to node -?\d+.* could not be established.*|Error in response for fetch request .*"
    r"|Error in fetch .*|Error sending fetch request .*|Error when sending leader epoch request .*)",
    "kafka.server.AbstractFetcherThread.processFetchRequest; org.apache.kafka.clients.NetworkClient",
    ("WARN", "INFO", "ERROR"),
    gap_s=30,
)
#: Fewer lines, over less time, are the ordinary end of a connection, microseconds.
_LINES_MIN, _LASTS_US = 2, 1_000_000
#: Followers that lose the same leader within this lose it together, microseconds.
_TOGETHER_US = 15_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by leader, those of several followers together."""
    by_leader: dict[tuple[str, int], list[list[Row]]] = defaultdict(list)
    ends = shutdown_times(facts)
    for row in facts.remarked(_UNREACHABLE.name):
        if row["first_time"] >= ends.get(row["cluster_id"], row["first_time"] + 1):
            continue
        if (
            row["line_count"] < _LINES_MIN
            or row["last_time"] - row["first_time"] < _LASTS_US
            or row["broker_id"] is None
        ):
            continue
        groups = by_leader[row["cluster_id"], int(row["key"])]
        if groups and row["first_time"] - groups[-1][0]["first_time"] <= _TOGETHER_US:
            groups[-1].append(row)
        else:
            groups.append([row])
    for (cluster_id, leader), groups in sorted(by_leader.items()):
        for group in groups:
            yield _unreachable(cluster_id, leader, group)


def _unreachable(cluster_id: str, leader: int, group: list[Row]) -> Incident:
    start, end = min(row["first_time"] for row in group), max(row["last_time"] for row in group)
    followers = sorted({row["broker_id"] for row in group})
    lines = sum(row["line_count"] for row in group)
    return Incident(
        kind=KIND.name,
        severity=MINOR,
        cluster_id=cluster_id,
        start_us=start,
        end_us=end,
        broker_ids=tuple(followers),
        sentence=(
            f"{brokers(followers).capitalize()} could not fetch from leader {leader} {span(start, end)}: "
            f"{number(lines, 'error')}."
        ),
        unexplained=f"If broker {leader} was up meanwhile, look at the network between it and {brokers(followers)}.",
        figures={"errors": lines, "leader": leader},
        places=tuple(map(place, group)),
        weight=(end - start) / 1e6,
        by=(leader,),
    )


KIND = Kind(
    name="leader_unreachable",
    meaning="Fetcher threads of followers got no connection to, or no answer from, a leader.",
    source="kafka.server.AbstractFetcherThread.processFetchRequest",
    detect=detect,
    signatures=(_UNREACHABLE,),
    causes=("broker_died", "broker_halted", "broker_stalled", "broker_stopped"),
)
