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
from pipelines.replay.fetchers import fetcher_rows, stays
from pipelines.replay.follower import by_broker, tenures
from pipelines.replay.follower_events import KEY, events_of
from pipelines.replay.follower_truncation import effective_rules, truncation_rows
from schemas import replicas as r

#: Tables that a worker gives.
SPECS = (r.REPLICA_TRUNCATIONS, r.FETCHER_TIMELINE)
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
            brokers = dict(by_broker(events))
            replicas = {broker: tenures(of_broker) for broker, of_broker in brokers.items()}
            for values in truncation_rows(replicas, partial(rules_of, cluster_id)):
                if _is_coarse(contexts, cluster_id, values):
                    values = blurred_truncation(values)
                tables.add_named(r.REPLICA_TRUNCATIONS.name, {**key, **_times(values)})
            of_leaders = _threads(brokers)
            for broker, of_broker in brokers.items():
                fetchers = fetchers_of.get((cluster_id, broker), ())
                of_epochs = of_leaders.get(broker, {})
                for values in fetcher_rows(broker, stays(of_broker), topic, partition, fetchers, of_epochs):
                    tables.add_named(r.FETCHER_TIMELINE.name, {**key, **_times(values)})
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


def _threads(brokers: Mapping[int, list[r.ReplicaEvent]]) -> dict[int, dict[int, int]]:
    """By follower and leader epoch, the fetcher thread that the leader's request log names."""
    threads: dict[int, dict[int, int]] = {}
    for of_broker in brokers.values():
        for event in of_broker:
            follower, epoch, thread = event.replica_id, event.leader_epoch, event.fetcher_id
            if event.kind == r.FETCHED and follower is not None and epoch is not None and thread is not None:
                threads.setdefault(follower, {})[epoch] = thread
    return threads
