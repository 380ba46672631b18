"""A node could not reach another one over the connections of the KRaft quorum."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import INFO, MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_stopped import shutdown_times
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, listed, number, sentence, when

_UNREACHABLE = Signature(
    "quorum_unreachable",
    ("NetworkClient",),
    r"\[(?:RaftManager (?:node)?[iI]d=\d+|(?:BrokerToController|NodeToController)ChannelManager (?:broker|id)=\d+ "
    r"name=[\w-]+)\] (?:Connection to node (?P<key>-?\d+)\b.* could not be established\..*"
    r"|Attempting to close NetworkClient that has already been closed\.)",
    "org.apache.kafka.clients.NetworkClient of kafka.raft.KafkaRaftManager and NodeToControllerChannelManager",
    ("WARN",),
    gap_s=15,
)
_TOGETHER_US = 15_000_000
#: Nodes that start one after the other miss each other no longer, microseconds.
_LONG_US = 10_000_000
#: A quorum that is started comes up within this of its first line, microseconds.
_COMES_UP_US = 60_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by the node that could not be reached, those of several nodes together."""
    ends = shutdown_times(facts)
    rows = [
        row
        for row in facts.remarked(_UNREACHABLE.name)
        if row["key"] and row["first_time"] < ends.get(row["cluster_id"], row["first_time"] + 1)
    ]
    brief: list[Row] = []
    for group in together(rows, lambda row: (row["cluster_id"], row["key"]), _TOGETHER_US):
        if last(group) - first(group) >= _LONG_US:
            yield _unreachable(group)
        else:
            brief += group
    begins = _begins(facts)
    for group in together(brief, lambda row: row["cluster_id"], _TOGETHER_US):
        if first(group) > begins.get(group[0]["cluster_id"], 0) + _COMES_UP_US:
            yield _unreachable(group)


def _begins(facts: Facts) -> dict[str, int]:
    begins: dict[str, int] = {}
    for row in facts.files:
        if row["first_time"] is not None:
            cluster_id = row["cluster_id"] or "unknown"
            begins[cluster_id] = min(begins.get(cluster_id, row["first_time"]), row["first_time"])
    return begins


def _unreachable(group: list[Row]) -> Incident:
    start, end, ids = first(group), last(group), brokers_of(group)
    peers = sorted({int(row["key"]) for row in group})
    who = brokers(ids) if ids else "nodes that no line names"
    # Below 0 are addresses of the configuration, before a node has told its number.
    known = [peer for peer in peers if peer >= 0]
    whom = f"node{'s' if len(known) > 1 else ''} {listed([*map(str, known)])}" if known else "its configured addresses"
    is_long = end - start >= _LONG_US
    return Incident(
        kind=KIND.name,
        severity=MINOR if is_long else INFO,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=ids,
        sentence=sentence(
            f"{who} could not reach {whom} of the quorum {when(start, end)}: {number(lines(group), 'attempt')}."
        ),
        unexplained=f"If {whom} was up meanwhile, look at the network, and at its listener." if is_long else "",
        figures={"attempts": lines(group), "peers": len(peers)},
        places=places(group),
        weight=(end - start) / 1e6,
        by=tuple(peers),
    )


KIND = Kind(
    name="quorum_unreachable",
    meaning="Nodes got no connection to a node of the KRaft quorum.",
    source="org.apache.kafka.clients.NetworkClient.processDisconnection, of RaftManager and the channel to controllers",
    detect=detect,
    signatures=(_UNREACHABLE,),
    causes=("broker_died", "broker_halted", "broker_stalled", "broker_stopped", "logs_end_early"),
)
