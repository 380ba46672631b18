"""The authorizer denied operations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, number, when

_DENIED = Signature(
    "authorization_denied",
    ("kafka.authorizer.logger",),
    r"Principal = (?P<key>\S+) is Denied [Oo]peration = .*",
    "kafka.security.authorizer.AclAuthorizer.logAuditMessage, StandardAuthorizerData.logAuditMessage in KRaft",
    ("INFO", "WARN"),
)
_WHAT = re.compile(r"[Oo]peration = (?P<operation>\S+) .*?on resource = (?P<resource>\S+)")


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by principal, over all brokers."""
    rows = facts.remarked(_DENIED.name)
    for group in together(rows, lambda row: (row["cluster_id"], row["key"]), 60_000_000):
        yield _denied(group)


def _denied(group: list[Row]) -> Incident:
    start, end, ids = first(group), last(group), brokers_of(group)
    what = _WHAT.search(group[0]["message"])
    such_as = f", first {what['operation']} on {what['resource']}" if what is not None else ""
    return Incident(
        kind=KIND.name,
        severity=MINOR,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=ids,
        partitions=frozenset() if ids else frozenset({group[0]["key"]}),
        sentence=(
            f"{group[0]['key']} was denied {number(lines(group), 'operation')}{' at ' + brokers(ids) if ids else ''} "
            f"{when(start, end)}{such_as}."
        ),
        advice="Grant the principal what it needs, or find out who uses it.",
        figures={"denied": lines(group)},
        places=places(group),
        weight=float(lines(group)),
    )


KIND = Kind(
    name="authorization_denied",
    meaning="The authorizer denied operations of a principal.",
    source="kafka.authorizer.logger",
    detect=detect,
    signatures=(_DENIED,),
)
