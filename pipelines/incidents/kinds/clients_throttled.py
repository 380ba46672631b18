"""Quotas held back the requests of a client."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Row
from pipelines.incidents.incident import INFO, MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.words import brokers, lasting, number, when

#: A client that is told to wait longer meets its own timeouts, milliseconds.
_LONG_MS = 1_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes by client."""
    for row in facts.throttled:
        yield _throttled(row)


def _throttled(row: Row) -> Incident:
    start, end = row["first_time"], row["last_time"]
    client = f"client {row['client_id']}" if row["client_id"] else "clients without an id"
    return Incident(
        kind=KIND.name,
        severity=MINOR if row["longest_ms"] >= _LONG_MS else INFO,
        cluster_id=row["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=tuple(row["broker_ids"]),
        sentence=(
            f"Quotas held back {number(row['requests'], 'request')} of {client} at {brokers(row['broker_ids'])} "
            f"{when(start, end)}: {lasting(row['total_ms'] * 1000)} in all, the longest "
            f"{lasting(row['longest_ms'] * 1000)}."
        ),
        advice="Look at what this client is allowed: kafka-configs.sh --describe --entity-type clients, and users.",
        figures={"requests": row["requests"], "throttled_s": row["total_ms"] / 1e3, "longest_ms": row["longest_ms"]},
        weight=row["total_ms"] / 1e3,
        subject=row["client_id"] or "",
    )


KIND = Kind(
    name="clients_throttled",
    meaning="Quotas held back requests of a client: its bandwidth, its share of request handlers, or its mutations.",
    source="kafka.server.ClientQuotaManager.maybeRecordAndGetThrottleTimeMs; throttleTimeMs of kafka.request.logger",
    detect=detect,
)
