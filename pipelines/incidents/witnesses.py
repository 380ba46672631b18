"""Lines by which peers show that a node no longer answers. Pure."""

from __future__ import annotations

from collections import defaultdict

from highwater.pipelines.incidents.kind import Signature
from highwater.pipelines.timelines.missed import Loss
from highwater.pipelines.timelines.rows import Node, Row, Rows, node, place

#: Begin of a line of the fetcher thread from the leader ``key``.
FETCHER = (
    r"\[(?:ReplicaFetcher replicaId=\d+, leaderId=|ReplicaFetcherThread-\d+-)(?P<key>\d+)(?:, fetcherId=\d+)?\]:?,? "
)
#: A fetch that gets no answer fails after replica.socket.timeout.ms, and is sent again 1 s later, seconds.
_RETRY_S = 40
LEADER_UNREACHABLE = Signature(
    "leader_unreachable",
    ("NetworkClient", "ReplicaFetcherThread", "ReplicaFetcherBlockingSend"),
    FETCHER + r"(?:Connection to node -?\d+.* could not be established.*|Error in response for fetch request .*"
    r"|Error in fetch .*|Error sending fetch request .*|Error when sending leader epoch request .*)",
    "kafka.server.AbstractFetcherThread.processFetchRequest; org.apache.kafka.clients.NetworkClient",
    ("WARN", "INFO", "ERROR"),
    gap_s=_RETRY_S,
)
QUORUM_UNREACHABLE = Signature(
    "quorum_unreachable",
    ("NetworkClient",),
    r"\[(?:RaftManager (?:node)?[iI]d=\d+|(?:BrokerToController|NodeToController)ChannelManager (?:broker|id)=\d+ "
    r"name=[\w-]+)\] (?:Connection to node (?P<key>-?\d+)\b.* could not be established\..*"
    r"|Attempting to close NetworkClient that has already been closed\.)",
    "org.apache.kafka.clients.NetworkClient of kafka.raft.KafkaRaftManager and NodeToControllerChannelManager",
    ("WARN",),
    gap_s=15,
)
CONTROLLER_UNREACHABLE = Signature(
    "controller_misses_broker",
    ("RequestSendThread", "NetworkClient", "ControllerChannelManager"),
    r"(?:\[[^\]]*\]:?,? ?)?(?:Controller \d+'s connection to broker .* was unsuccessful"
    r"|Controller \d+ epoch \d+ fails to send request .*|Not sending request .* since it is offline\."
    r"|(?:Connection to node (?P<key>-?\d+)|Bootstrap broker) .*)",
    "kafka.controller.RequestSendThread.doWork, ControllerBrokerRequestBatch; NetworkClient",
    gap_s=15,
)
#: The ZooKeeper client logs it at WARN, Kafka at INFO. Later lines of one expiry follow within a second.
SESSION_EXPIRED = Signature(
    "zookeeper_session_expired",
    ("ClientCnxn",),
    r"Unable to reconnect to ZooKeeper service, session \S+ has expired.*",
    "org.apache.zookeeper.ClientCnxn.SendThread.onConnected, ZooKeeper 3.4 to 3.8",
    ("INFO", "WARN"),
    gap_s=1,
)
SIGNATURES = (LEADER_UNREACHABLE, QUORUM_UNREACHABLE, CONTROLLER_UNREACHABLE)


def losses(remarks: Rows, by: Node | None = None) -> dict[Node, list[Loss]]:
    """Return when peers could not reach each node, in time order.

    Args:
        remarks: `pipelines.incidents.facts.Facts.remarks`: matched log lines.
        by: count only this peer. None: any peer.
    """
    names = {signature.name for signature in SIGNATURES}
    of_nodes: dict[Node, list[Loss]] = defaultdict(list)
    for row in remarks:
        is_of_peer = row["key"].isdigit() and int(row["key"]) != row["broker_id"] and by in (None, node(row))
        if row["signature"] in names and is_of_peer:
            loss = Loss(row["first_time"], row["last_time"], place(row))
            of_nodes[row["cluster_id"], int(row["key"])].append(loss)
    return {of_node: sorted(of_losses) for of_node, of_losses in of_nodes.items()}


def losses_by_peer(remarks: Rows) -> dict[Node, list[Loss]]:
    """Return when each node could not reach its peers, in time order.

    A peer that a third node also misses at that time is down, so the node is not isolated: it is left out.
    """
    writers = {node(row) for row in remarks if row["broker_id"] is not None}
    of_writers = {writer: losses(remarks, by=writer) for writer in writers}
    found: dict[Node, list[Loss]] = {writer: [] for writer in writers}
    for writer, of_peers in of_writers.items():
        for peer, of_peer in of_peers.items():
            others = [loss for other, lost in of_writers.items() if other != writer for loss in lost.get(peer, ())]
            found[writer] += [
                loss
                for loss in of_peer
                if not any(other.first_us <= loss.last_us and loss.first_us <= other.last_us for other in others)
            ]
    return {writer: sorted(lost) for writer, lost in found.items()}


def expiries(remarks: Rows) -> list[Row]:
    """Return expired sessions as rows of `silver.broker_lifecycle`.

    Args:
        remarks: `pipelines.incidents.facts.Facts.remarks`.
    """
    return [
        {**row, "time": row["first_time"], "event": "zookeeper_expired", "detail": None}
        for row in remarks
        if row["signature"] == SESSION_EXPIRED.name
    ]
