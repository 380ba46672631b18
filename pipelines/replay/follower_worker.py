"""One worker's part of the follower side, on plain Arrow data: events by partition in, blobs out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pipelines.blobs import Batches, Tables
from pipelines.groups import Columns, groups
from pipelines.replay.context import PROTOCOL_VERSION, REPLICA_FETCHERS, Contexts, value_at
from pipelines.replay.follower_truncation import effective_rules
from pipelines.replay.replica_rows import STAY, TRUNCATION, partition_rows
from pipelines.replay.versions import Rules, rules_for
from schemas import replicas as r

#: Tables that a worker gives.
SPECS = (r.REPLICA_TRUNCATIONS, r.FETCHER_TIMELINE)
_TABLES = {TRUNCATION: r.REPLICA_TRUNCATIONS.name, STAY: r.FETCHER_TIMELINE.name}
_KEY_WIDTH = 3


def follower_worker(contexts: Contexts) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over events that are sorted by partition."""
    eras = {broker: contexts.eras[broker] for broker in contexts.versions}
    protocols, fetchers_of = contexts.settings(PROTOCOL_VERSION), contexts.settings(REPLICA_FETCHERS)

    def replay(batches: Batches) -> Batches:
        tables = Tables({spec.name: spec.schema for spec in SPECS})
        for (cluster_id, topic, partition), rows in groups(batches, _KEY_WIDTH, _events):
            events = list(dict.fromkeys(rows))  # two files that overlap tell a line twice
            key = {"cluster_id": cluster_id, "topic": topic, "partition": partition}
            fetchers = {broker: fetchers_of.get((cluster_id, broker), ()) for broker in {e.broker_id for e in events}}
            for kind, values in partition_rows(events, topic, partition, partial(rules_of, cluster_id), fetchers):
                tables.add_named(_TABLES[kind], {**key, **_times(values)})
            yield from tables.take()
        yield from tables.rest()

    def rules_of(cluster_id: str, broker_id: int, time_us: int) -> Rules:
        version = value_at(eras.get((cluster_id, broker_id), ()), time_us)
        return effective_rules(rules_for(version), value_at(protocols.get((cluster_id, broker_id), ()), time_us))

    return replay


def _events(columns: Columns) -> Iterable[r.ReplicaEvent]:
    return map(r.ReplicaEvent._make, zip(*columns, strict=True))


def _times(values: dict[str, Any]) -> dict[str, Any]:
    return {(name[:-3] + "_time" if name.endswith("_us") else name): value for name, value in values.items()}
