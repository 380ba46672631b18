"""Producers that may not write any more: their epoch is over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipelines.incidents.episodes import brokers_of, first, last, lines, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.produces_refused import FENCED, episodes, refused
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import listed_some, number, when

_ABORTED = Signature(
    "producer_aborted",
    ("Sender",),
    r"^\[Producer clientId=[^,\]]+, transactionalId=(?P<key>[^\]]+)\] Aborting producer batches due to fatal error *\n"
    r"org\.apache\.kafka\.common\.errors\.(?:ProducerFenced|InvalidProducerEpoch)Exception",
    "org.apache.kafka.clients.producer.internals.Sender.maybeAbortBatches, of a producer that logs beside brokers",
    ("ERROR",),
    is_whole=True,
)
_ADVICE = (
    "Look for a second instance with the same transactional.id, and for transactions that were open for longer than "
    "transaction.timeout.ms."
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Produces that were refused for their epoch, by episode; and producers that say that they gave up."""
    for cluster_id, error, rows in episodes(facts):
        if error in FENCED:
            yield replace(refused(KIND.name, cluster_id, error, rows), advice=_ADVICE)
    for group in together(facts.remarked(_ABORTED.name), lambda row: row["cluster_id"], 60_000_000):
        yield _gave_up(group)


def _gave_up(group: list[Row]) -> Incident:
    names = sorted({row["key"] for row in group})
    return Incident(
        kind=KIND.name,
        severity=MINOR,
        cluster_id=group[0]["cluster_id"],
        start_us=first(group),
        end_us=last(group),
        broker_ids=brokers_of(group),
        sentence=(
            f"{number(len(names), 'producer')} ({listed_some(names, 'transactional ids')}) gave up "
            f"{when(first(group), last(group))}: fenced by another one with the same transactional id."
        ),
        advice=_ADVICE,
        figures={"producers": len(names), "lines": lines(group)},
        places=places(group),
        weight=float(lines(group)),
    )


KIND = Kind(
    name="producers_fenced",
    meaning="Produces were refused since the epoch of their producer is over: it is fenced.",
    source="org.apache.kafka.storage.internals.log.ProducerAppendInfo.checkProducerEpoch; KIP-98, KIP-360, KIP-890",
    detect=detect,
    signatures=(_ABORTED,),
    causes=("transactions_timed_out",),
)
