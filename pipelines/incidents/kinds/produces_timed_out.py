"""Produces whose in-sync replicas did not have the records in time."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.incidents.facts import Facts
from pipelines.incidents.incident import Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.produces_refused import TIMED_OUT, episodes, refused


def detect(facts: Facts) -> Iterable[Incident]:
    """Episodes of timeouts over all brokers of a cluster."""
    for cluster_id, error, rows in episodes(facts):
        if error == TIMED_OUT:
            yield refused(KIND.name, cluster_id, error, rows)


KIND = Kind(
    name="produces_timed_out",
    meaning="Produce requests were answered with REQUEST_TIMED_OUT: the records are in the leader's log, not in all "
    "in-sync replicas.",
    source="kafka.server.DelayedProduce.onExpiration; the client's request.timeout.ms",
    detect=detect,
    causes=(
        *("broker_died", "broker_halted", "broker_stalled", "broker_stopped"),
        *("log_directory_failed", "fetcher_died", "slow_replica"),
    ),
)
