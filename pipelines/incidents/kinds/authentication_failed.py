"""Peers could not authenticate with a broker."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, listed_some, number, when

_FAILED = Signature(
    "authentication_failed",
    ("Selector", "NetworkClient", "SocketServer", "InterBrokerSendThread", "NodeToControllerRequestThread"),
    r"(?:\[[^\]]*\] )?(?:Failed authentication with (?:\S*/)?(?P<key>[^\s:()]+).*"
    r"|Connection to node .* failed authentication due to: .*|Failed to send the following request due to "
    r"authentication error: .*|Request .* failed due to authentication error.*)",
    "org.apache.kafka.common.network.Selector.pollSelectionKeys, 1.1 on; NetworkClient.processDisconnection",
    ("INFO", "WARN", "ERROR"),
)
_REASON = re.compile(r"(?:\((?P<bracketed>[^()]*)\)|due to: (?P<said>.*?))$")


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by cluster."""
    rows = facts.remarked(_FAILED.name)
    for group in together(rows, lambda row: row["cluster_id"], 60_000_000):
        yield _failed(group)


def _failed(group: list[Row]) -> Incident:
    start, end, ids = first(group), last(group), brokers_of(group)
    peers = sorted({row["key"] for row in group if row["key"]})
    reason = _REASON.search(group[0]["message"].split("\n")[0])
    why = f" ({(reason['bracketed'] or reason['said'] or '')[:160]})" if reason is not None else ""
    of = f" of {listed_some(peers, 'addresses')}" if peers else ""
    return Incident(
        kind=KIND.name,
        severity=MINOR,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=ids,
        sentence=(
            f"{number(lines(group), 'authentication')}{of} failed{' at ' + brokers(ids) if ids else ''} "
            f"{when(start, end)}{why}."
        ),
        advice="Look at credentials, certificates and listener security of these peers.",
        figures={"failures": lines(group), "peers": len(peers)},
        places=places(group),
        weight=float(lines(group)),
    )


KIND = Kind(
    name="authentication_failed",
    meaning="Connections were refused since the peer did not authenticate.",
    source="org.apache.kafka.common.network.Selector: Failed authentication with",
    detect=detect,
    signatures=(_FAILED,),
)
