"""A broker could not read from, or write to, its remote storage."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.episodes import brokers_of, first, last, lines, partitions_of, places, together
from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import MAJOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.signatures import Signature
from pipelines.incidents.words import brokers, number, partitions, when

_FAILED = Signature(
    "remote_storage_failed",
    ("RemoteLogReader", "RemoteLogOffsetReader", "RemoteLogManager"),
    r"(?:\[[^\]]*\] )?Error occurred while (?:reading the remote (?:data|log offset) for (?P<partition>\S+)"
    r"|(?:copying log segments|deleting|cleaning|fetching|building).*)",
    "org.apache.kafka.server.log.remote.storage.RemoteLogReader.call, RemoteLogManager (KIP-405), 3.6 on",
    ("ERROR",),
)


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by cluster."""
    rows = [row for row in facts.remarked(_FAILED.name) if row["broker_id"] is not None]
    for group in together(rows, lambda row: row["cluster_id"], 60_000_000):
        yield _failed(group)


def _failed(group: list[Row]) -> Incident:
    start, end, ids, names = first(group), last(group), brokers_of(group), partitions_of(group)
    where = f" for {partitions(names)}" if names else ""
    exceptions = [line for line in group[0]["message"].split("\n")[1:] if line and not line.startswith("\t")]
    why = f" ({exceptions[0][:160].rstrip('. ')})" if exceptions else ""
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=group[0]["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=ids,
        partitions=names,
        sentence=(
            f"The remote storage failed {brokers(ids)}{where} {when(start, end)}: {number(lines(group), 'error')}{why}."
            " Consumers of old offsets get errors meanwhile."
        ),
        advice="Look at the remote storage and at the credentials of its plugin (remote.log.storage.manager.*).",
        figures={"errors": lines(group), "partitions": len(names)},
        places=places(group),
        weight=float(lines(group)),
    )


KIND = Kind(
    name="remote_storage_failed",
    meaning="Reads or copies of tiered segments failed.",
    source="KIP-405; org.apache.kafka.server.log.remote.storage.RemoteLogReader",
    detect=detect,
    signatures=(_FAILED,),
)
