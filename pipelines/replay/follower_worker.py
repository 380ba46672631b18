"""One worker's part of the follower side, on plain Arrow data: events by partition in, blobs out. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pipelines.base.blobs import Batches, Tables
from pipelines.base.groups import each, groups
from pipelines.cluster.premises import SHUT_DOWN, STARTING, Premises
from pipelines.kafka.context import PROTOCOL_VERSION, REPLICA_FETCHERS, Contexts, value_at
from pipelines.kafka.versions import Rules, rules_for
from pipelines.replay.coarse import blurred_truncation, is_coarse, untraced
from pipelines.replay.follower_events import KEY, events_of
from pipelines.replay.follower_truncation import effective_rules
from pipelines.replay.replica_rows import STAY, TRUNCATION, partition_rows
from schemas import replicas as r

#: Tables that a worker gives.
SPECS = (r.REPLICA_TRUNCATIONS, r.FETCHER_TIMELINE)
_TABLES = {TRUNCATION: r.REPLICA_TRUNCATIONS.name, STAY: r.FETCHER_TIMELINE.name}
_TURNS = {STARTING: r.STARTING, SHUT_DOWN: r.STOPPED}


def follower_worker(premises: Premises) -> Callable[[Batches], Batches]:
    """A function for ``mapInArrow`` over rows (`pipelines.replay.follower_events`) that are sorted by partition."""
    contexts, threads = premises.contexts, premises.threads
    turns: dict[str, dict[int, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for life in premises.lives:
        if life.event in _TURNS:
            turns[life.cluster_id][life.broker_id].append((life.time_us, _TURNS[life.event]))
    eras = {broker: contexts.eras[broker] for broker in contexts.versions}
    protocols, fetchers_of = contexts.settings(PROTOCOL_VERSION), contexts.settings(REPLICA_FETCHERS)

    def replay(batches: Batches) -> Batches:
        tables = Tables({spec.name: spec.schema for spec in SPECS})
        for (cluster_id, topic, partition), rows in groups(batches, len(KEY), each(tuple)):
            events = events_of(rows, threads.get(cluster_id, {}), turns.get(cluster_id, {}))
            if contexts.coarse:
                events = [_as_coarse(contexts, cluster_id, event) for event in events]
            key = {"cluster_id": cluster_id, "topic": topic, "partition": partition}
            fetchers = {broker: fetchers_of.get((cluster_id, broker), ()) for broker in {e.broker_id for e in events}}
            for kind, values in partition_rows(events, topic, partition, partial(rules_of, cluster_id), fetchers):
                if kind == TRUNCATION and _is_coarse(contexts, cluster_id, values):
                    values = blurred_truncation(values)
                tables.add_named(_TABLES[kind], {**key, **_times(values)})
            yield from tables.take()
        yield from tables.rest()

    def rules_of(cluster_id: str, broker_id: int, time_us: int) -> Rules:
        version = value_at(eras.get((cluster_id, broker_id), ()), time_us)
        return effective_rules(rules_for(version), value_at(protocols.get((cluster_id, broker_id), ()), time_us))

    return replay


def _as_coarse(contexts: Contexts, cluster_id: str, event: r.ReplicaEvent) -> r.ReplicaEvent:
    broker = cluster_id, event.broker_id
    return untraced(event) if is_coarse(contexts.coarse, broker, event.time_us, event.time_us) else event


def _is_coarse(contexts: Contexts, cluster_id: str, truncation: Mapping[str, Any]) -> bool:
    instants = [us for us in (truncation["started_us"], truncation["logged_us"]) if us is not None]
    return is_coarse(contexts.coarse, (cluster_id, truncation["broker_id"]), min(instants), max(instants))


def _times(values: dict[str, Any]) -> dict[str, Any]:
    return {(name[:-3] + "_time" if name.endswith("_us") else name): value for name, value in values.items()}
