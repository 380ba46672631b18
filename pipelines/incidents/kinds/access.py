"""Who may connect, and do what: brokers that reject each other, peers without credentials or rights, full listeners."""

from __future__ import annotations

import re
from collections.abc import Iterable

from highwater.pipelines.incidents.episodes import Episode, episodes
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.incident import MAJOR, MINOR, LoggedIncident
from highwater.pipelines.incidents.kind import Signature, kind
from highwater.pipelines.incidents.words import brokers, clock, listed_some, number, numbered, sentence, shortened
from highwater.pipelines.messages.exceptions import Thrown, cause_of

_PEER_DENIED = Signature(
    "broker_denied",
    ("kafka.authorizer.logger",),
    r"Principal = (?P<key>\S+) is Denied [Oo]peration = (?:ClusterAction|CLUSTER_ACTION) .*",
    "The authorizer's audit of Fetch by a follower, LeaderAndIsr, UpdateMetadata, AlterPartition and other requests "
    "between brokers",
    ("INFO", "WARN"),
    gap_s=600,
)
_LOGIN_FAILED = Signature(
    "broker_login_failed",
    ("NetworkClient", "Selector", "InterBrokerSendThread", "NodeToControllerRequestThread"),
    r"(?:\[(?:ReplicaFetcher|Controller|RaftManager|BrokerToController|NodeToController|Transaction|AddPartitionsToTxn)"
    r"[^\]]*\] Connection to node (?P<key>-?\d+)\b.* failed authentication due to: .*"
    r"|Failed to send the following request due to authentication error: .*"
    r"|Request .* failed due to authentication error.*)",
    "org.apache.kafka.clients.NetworkClient.processDisconnection, of the clients that brokers have of each other",
    ("INFO", "WARN", "ERROR"),
    gap_s=600,
)
_LOGIN_REASON = re.compile(r"due to: (?P<said>.*)")
_NOT_AUTHENTICATED = Signature(
    "authentication_failed",
    ("Selector", "NetworkClient", "SocketServer"),
    r"(?:\[[^\]]*\] )?(?:Failed authentication with (?:\S*/)?(?P<key>[^\s:()]+).*"
    r"|Connection to node .* failed authentication due to: .*)",
    "org.apache.kafka.common.network.Selector.pollSelectionKeys, 1.1 on; NetworkClient.processDisconnection",
    ("INFO", "WARN", "ERROR"),
)
_REASON = re.compile(r"\((?P<bracketed>[^()]*)\)$|due to: (?P<said>.*)")
_DENIED = Signature(
    "authorization_denied",
    ("kafka.authorizer.logger",),
    r"Principal = (?P<key>\S+) is Denied [Oo]peration = .*",
    "kafka.security.authorizer.AclAuthorizer.logAuditMessage, StandardAuthorizerData.logAuditMessage in KRaft",
    ("INFO", "WARN"),
)
_OPERATION = re.compile(r"[Oo]peration = (?P<operation>\S+) (?:(?![Oo]peration = ).)*?on resource = (?P<resource>\S+)")
_REFUSED = Signature(
    "connection_refused",
    ("Acceptor", "DataPlaneAcceptor", "SocketServer"),
    r"(?:\[[^\]]*\] )?Rejected connection from /?(?P<key>[^\s,]+), address already has the configured maximum of "
    r"\d+ connections\.",
    "kafka.network.Acceptor.accept: max.connections.per.ip and its overrides",
    ("INFO",),
    gap_s=300,
)
_CONNECTIONS = re.compile(r"maximum of (?P<count>\d+) connections")


@kind(
    meaning="Brokers or controllers rejected each other: a follower or controller could not authenticate, or its "
    "principal lacks the right that requests between brokers need.",
    source="NetworkClient of fetchers, controllers and channels to controllers; kafka.authorizer.logger: ClusterAction",
    signatures=(_PEER_DENIED, _LOGIN_FAILED),
)
def brokers_rejected(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield an incident per broker that denied requests of peers, and per broker that failed to log in at peers."""
    for episode in episodes(facts.remarked(_PEER_DENIED), "broker_id", within_s=600):
        who = f"{sentence(brokers(episode.broker_ids))} denied" if episode.broker_ids else "The authorizer denied"
        principals = listed_some(episode.keys, "principals")
        yield episode.incident(
            MAJOR,
            f"{who} {number(episode.lines, 'request')} of {principals} {episode.when}: requests between brokers need "
            "ClusterAction on the cluster. A broker with this principal cannot replicate from there.",
            advice=f"If brokers use {principals}, add them to super.users on all nodes, or grant them ClusterAction.",
            figures={"rejected": episode.lines},
        )
    for episode in episodes(facts.remarked_by_brokers(_LOGIN_FAILED), "broker_id", within_s=600):
        yield _not_logged_in(facts, episode)


def _not_logged_in(facts: Facts, episode: Episode) -> LoggedIncident:
    """Return the failed logins of a node at its peers, with the line before that explains them."""
    name = facts.named(episode.cluster_id, episode.broker_ids)
    # Below 0 are addresses of the configuration.
    peers = sorted(int(key) for key in episode.keys if int(key) >= 0)
    whom = numbered("node", peers) if peers else "its peers"
    said = _LOGIN_REASON.search(episode.message.partition("\n")[0])
    why = f" ({shortened(said['said'].rstrip('. '), 160)})" if said else ""
    cause = cause_of(Thrown("SaslAuthenticationException", said["said"] if said else ""))
    meaning = f" {cause[1].meaning}" if cause is not None and cause[1].texts else ""
    earlier = [
        text
        for text in facts.loud_texts
        if text.cluster_id == episode.cluster_id
        and episode.broker_ids[0] in text.broker_ids
        and "brokers_rejected" in text.kinds
        and text.found is not None
        and text.last_us <= episode.start_us
    ]
    last = max(earlier, key=lambda text: text.last_us, default=None)
    before = f" Before, at {clock(last.last_us)}: {last.found.message.meaning}" if last and last.found else ""
    advice = cause[1].action if cause is not None else "Look at credentials and certificates of this node."
    return episode.incident(
        MAJOR,
        f"{sentence(name)} could not authenticate to {whom} {episode.when}: {number(episode.lines, 'attempt')}{why}."
        f"{meaning}{before}",
        start_us=min((text.first_us for text in earlier), default=episode.start_us),
        broker_ids=tuple(sorted({*episode.broker_ids, *peers})),
        advice=advice,
        figures={"rejected": episode.lines},
    )


@kind(
    meaning="Connections were refused since the peer did not authenticate.",
    source="org.apache.kafka.common.network.Selector: Failed authentication with",
    signatures=(_NOT_AUTHENTICATED,),
)
def authentication_failed(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield failed authentications: one incident per cluster for failures with short gaps between them."""
    for episode in episodes(facts.remarked(_NOT_AUTHENTICATED)):
        peers = episode.keys
        reason = _REASON.search(episode.message.split("\n")[0])
        why = f" ({(reason['bracketed'] or reason['said'] or '')[:160]})" if reason is not None else ""
        of = f" of {listed_some(peers, 'addresses')}" if peers else ""
        yield episode.incident(
            MINOR,
            f"{number(episode.lines, 'authentication')}{of} failed{episode.at_brokers} {episode.when}{why}.",
            advice="Look at credentials, certificates and listener security of these peers.",
            figures={"failures": episode.lines, "peers": len(peers)},
        )


@kind(
    meaning="The authorizer denied operations of a principal.",
    source="kafka.authorizer.logger",
    signatures=(_DENIED,),
)
def authorization_denied(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield denials of the authorizer: one incident per principal for those with short gaps, over all brokers."""
    for episode in episodes(facts.remarked(_DENIED), "key"):
        principal = episode.rows[0]["key"]
        what = _OPERATION.search(episode.message)
        such_as = f", first {what['operation']} on {what['resource']}" if what is not None else ""
        yield episode.incident(
            MINOR,
            f"{principal} was denied {number(episode.lines, 'operation')}{episode.at_brokers} {episode.when}{such_as}.",
            partitions=frozenset() if episode.broker_ids else frozenset({principal}),
            advice="Grant the principal what it needs, or find out who uses it.",
            figures={"denied": episode.lines},
        )


@kind(
    meaning="A broker closed new connections of an address that had as many as max.connections.per.ip allows.",
    source="kafka.network.Acceptor.accept",
    signatures=(_REFUSED,),
)
def connections_refused(facts: Facts) -> Iterable[LoggedIncident]:
    """Yield refused connections: one incident per cluster for refusals with short gaps, over all addresses."""
    for episode in episodes(facts.remarked(_REFUSED), within_s=300):
        limit = _CONNECTIONS.search(episode.message)
        has = f" It has the configured maximum of {limit['count']}." if limit and len(episode.keys) == 1 else ""
        yield episode.incident(
            MINOR,
            f"{number(episode.lines, 'connection')} of {listed_some(episode.keys, 'addresses')} "
            f"{'was' if episode.lines == 1 else 'were'} refused{episode.at_brokers} {episode.when}: "
            f"max.connections.per.ip.{has}",
            advice=(
                "Look for clients there that leak connections, or many clients behind one address (NAT, proxy). Raise "
                "max.connections.per.ip.overrides for it if so many are wanted."
            ),
            figures={"refused": episode.lines, "addresses": len(episode.keys)},
        )
