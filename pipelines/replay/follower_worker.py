"""One worker's part of the follower side, on plain Arrow data: events by partition in, blobs out. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from highwater.pipelines.base.blobs import Batches, Tables
from highwater.pipelines.base.groups import each, groups
from highwater.pipelines.cluster.premises import SHUT_DOWN, STARTING, Premises
from highwater.pipelines.kafka.context import PROTOCOL_VERSION, REPLICA_FETCHERS, Contexts, History, find_value
from highwater.pipelines.kafka.versions import Rules, rules_for
from highwater.pipelines.replay.coarse import blurred_truncation, is_coarse, untraced
from highwater.pipelines.replay.follower import by_broker, tenures
from highwater.pipelines.replay.follower_events import KEY, events_of
from highwater.pipelines.replay.follower_truncation import effective_rules, truncation_rows
from highwater.pipelines.replay.java_hash import absolute, hash_code, signed
from highwater.schemas import replicas as r
from highwater.schemas.replicas import ReplicaEvent

# Stays of a partition in a broker's replica fetchers: rows of ``gold.fetcher_timeline``. Pure, no Spark.
#
# A broker has ``num.replica.fetchers`` threads per leader that it follows. A partition is added to one of them when the
# broker becomes its follower, and leaves it when the leadership changes again, when its leader fences it (it has failed
# until there is a new epoch), or with the broker. A failed fetch does not remove it: it is fetched again after
# ``replica.fetch.backoff.ms``.
#
# Source: ``AbstractFetcherManager``, ``AbstractFetcherThread`` (0.10.2, 2.8.2, 3.9).

# Values of `end_reason`.
REMOVED = "removed"
LEADER_CHANGED = "leader_changed"
FAILED = "failed"
BROKER_STOPPED = "broker_stopped"
LOG_ENDS = "log_ends"


def fetcher_id(topic: str, partition: int, fetchers: int) -> int:
    """Return the fetcher thread of a partition among ``num.replica.fetchers`` threads.

    Raises:
        ValueError: fewer than one fetcher.

    Source: ``AbstractFetcherManager.getFetcherId``: ``Utils.abs(31 * topic.hashCode() + partition) % numFetchers``.
    """
    if fetchers < 1:
        raise ValueError(f"{fetchers} fetchers")
    return absolute(signed(31 * hash_code(topic) + partition)) % fetchers


@dataclass
class Stay:
    """The time of a partition in a fetcher thread."""

    added_us: int  #: when it was added
    #: leader, leader_epoch, initial_offset: from the manager's line
    leader: int
    leader_epoch: int | None
    initial_offset: int | None
    fetcher_id: int | None = None  #: thread, from its own line or the leader's request log
    ended_us: int | None = None  #: when it left
    end_reason: str | None = None  #: as in gold; None until the end, or until later events decide
    #: errors, delays, first_error, last_error: as in gold
    errors: int = 0
    delays: int = 0
    first_error: str | None = None
    last_error: str | None = None
    readded_us: int | None = None  #: when it was added again as a follower

    @property
    def open(self) -> bool:
        return self.ended_us is None and self.end_reason is None


def stays(events: Iterable[ReplicaEvent]) -> list[Stay]:
    """Return the times that a partition was in a fetcher of one broker, in time order.

    Args:
        events: events of one broker and one partition, ordered by time and `schemas.replicas.RANK`.
    """
    in_order: list[Stay] = []
    epoch: int | None = None
    for event in events:
        last = in_order[-1] if in_order else None
        match event.kind:
            case r.STARTING | r.STOPPED:
                if last is not None and last.open:
                    last.end_reason = BROKER_STOPPED
                    last.ended_us = event.time_us if event.kind == r.STOPPED else None
                if event.kind == r.STARTING:
                    epoch = None
            case r.FOLLOWER | r.LEADER | r.STATE:
                epoch = _observe_leadership(event, last, epoch)
            case r.ADDED:
                if event.leader is None:
                    continue
                added = Stay(event.time_us, event.leader, event.leader_epoch, event.offset, event.fetcher_id)
                if last is not None:
                    _follow(last, added)
                in_order.append(added)
            case r.REMOVED | r.FAILED:
                if last is not None and last.open:
                    _leave(last, event, epoch)
            case r.ERROR | r.DELAYED | r.FENCED:
                if last is not None and last.open and event.leader in (None, last.leader):
                    _count(last, event)
    for stay in in_order:
        if stay.end_reason is None:
            stay.end_reason = LOG_ENDS if stay.ended_us is None else REMOVED
    return in_order


def _observe_leadership(event: ReplicaEvent, last: Stay | None, epoch: int | None) -> int | None:
    """Return the replica's leader epoch after the event. A replica that becomes leader leaves its fetcher.

    Args:
        last: the partition's last time in a fetcher. None before the first.
        epoch: leader epoch before the event.
    """
    if event.leader_epoch is None:
        return epoch
    leads = event.kind == r.LEADER or (event.kind == r.STATE and event.leader == event.broker_id)
    if leads and last is not None and (last.leader_epoch is None or last.leader_epoch < event.leader_epoch):
        last.ended_us = event.time_us if last.open else last.ended_us
        last.end_reason = last.end_reason or LEADER_CHANGED
        last.readded_us = last.readded_us or -1
    return event.leader_epoch if epoch is None else max(epoch, event.leader_epoch)


def _leave(stay: Stay, event: ReplicaEvent, epoch: int | None) -> None:
    stay.ended_us = event.time_us
    if event.kind == r.FAILED:
        stay.end_reason = FAILED
    elif stay.leader_epoch is not None and epoch is not None and epoch > stay.leader_epoch:
        stay.end_reason = LEADER_CHANGED


def _follow(last: Stay, added: Stay) -> None:
    """End the partition's time in a fetcher when it is added to the next one. Without a removal line it was moved."""
    moved = (last.leader, last.leader_epoch) != (added.leader, added.leader_epoch)
    if last.open:
        last.ended_us = added.added_us
    last.end_reason = last.end_reason or (LEADER_CHANGED if moved else REMOVED)
    if last.readded_us is None:
        last.readded_us = added.added_us


def _count(stay: Stay, event: ReplicaEvent) -> None:
    if event.kind == r.DELAYED:
        stay.delays += 1
    else:
        stay.errors += 1
        stay.first_error = stay.first_error or event.error
        stay.last_error = event.error or stay.last_error
    if stay.fetcher_id is None:
        stay.fetcher_id = event.fetcher_id


def fetcher_rows(
    broker_id: int, timeline: list[Stay], topic: str, partition: int, fetchers: History, threads: dict[int, int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``gold.fetcher_timeline`` without cluster. Times are us integers.

    Args:
        timeline: the times that the partition was in a fetcher, in order.
        fetchers: history of the broker's ``num.replica.fetchers``.
        threads: by leader epoch, the thread in the leader's request log.
    """
    for sequence, stay in enumerate(timeline):
        idle_us = None
        if stay.ended_us is not None and stay.readded_us is not None and stay.readded_us >= stay.ended_us:
            idle_us = stay.readded_us - stay.ended_us
        thread = stay.fetcher_id
        if thread is None and stay.leader_epoch is not None:
            thread = threads.get(stay.leader_epoch)
        count = _get_value(fetchers, stay.added_us)
        yield {
            "broker_id": broker_id,
            "sequence": sequence,
            "added_us": stay.added_us,
            "leader": stay.leader,
            "leader_epoch": stay.leader_epoch,
            "initial_offset": stay.initial_offset,
            "fetcher_id": thread,
            "predicted_fetcher_id": None if count is None else fetcher_id(topic, partition, count),
            "ended_us": stay.ended_us,
            "end_reason": stay.end_reason,
            "errors": stay.errors,
            "delays": stay.delays,
            "first_error": stay.first_error,
            "last_error": stay.last_error,
            "idle_ms": None if idle_us is None else idle_us / 1000,
        }


def _get_value(history: History, time_us: int) -> int | None:
    """Return the value of a numeric setting at a time. Before the first entry, the first value applies."""
    values = [(since_us, int(value)) for since_us, value in history if value.strip().isdigit() and int(value) > 0]
    if not values:
        return None
    return next((value for since_us, value in reversed(values) if since_us <= time_us), values[0][1])


#: Tables that a worker writes.
SPECS = (r.REPLICA_TRUNCATIONS, r.FETCHER_TIMELINE)
_TURNS = {STARTING: r.STARTING, SHUT_DOWN: r.STOPPED}


def follower_worker(premises: Premises) -> Callable[[Batches], Batches]:
    """Return a ``mapInArrow`` function that makes follower rows of gold from events sorted by partition."""
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
                events = [_blur_coarse(contexts, cluster_id, event) for event in events]
            key = {"cluster_id": cluster_id, "topic": topic, "partition": partition}
            brokers = dict(by_broker(events))
            replicas = {broker: tenures(of_broker) for broker, of_broker in brokers.items()}
            for values in truncation_rows(replicas, partial(rules_of, cluster_id)):
                if _is_coarse(contexts, cluster_id, values):
                    values = blurred_truncation(values)
                tables.add_named(r.REPLICA_TRUNCATIONS.name, {**key, **_rename_times(values)})
            of_leaders = _map_threads(brokers)
            for broker, of_broker in brokers.items():
                fetchers = fetchers_of.get((cluster_id, broker), ())
                of_epochs = of_leaders.get(broker, {})
                for values in fetcher_rows(broker, stays(of_broker), topic, partition, fetchers, of_epochs):
                    tables.add_named(r.FETCHER_TIMELINE.name, {**key, **_rename_times(values)})
            yield from tables.take()
        yield from tables.rest()

    def rules_of(cluster_id: str, broker_id: int, time_us: int) -> Rules:
        version = find_value(eras.get((cluster_id, broker_id), ()), time_us)
        return effective_rules(rules_for(version), find_value(protocols.get((cluster_id, broker_id), ()), time_us))

    return replay


def _blur_coarse(contexts: Contexts, cluster_id: str, event: r.ReplicaEvent) -> r.ReplicaEvent:
    broker = cluster_id, event.broker_id
    return untraced(event) if is_coarse(contexts.coarse, broker, event.time_us, event.time_us) else event


def _is_coarse(contexts: Contexts, cluster_id: str, truncation: Mapping[str, Any]) -> bool:
    instants = [us for us in (truncation["started_us"], truncation["logged_us"]) if us is not None]
    return is_coarse(contexts.coarse, (cluster_id, truncation["broker_id"]), min(instants), max(instants))


def _rename_times(values: dict[str, Any]) -> dict[str, Any]:
    return {(name[:-3] + "_time" if name.endswith("_us") else name): value for name, value in values.items()}


def _map_threads(brokers: Mapping[int, list[r.ReplicaEvent]]) -> dict[int, dict[int, int]]:
    """Return by follower and leader epoch the fetcher thread in the leader's request log.

    Args:
        brokers: events of a partition by broker.
    """
    threads: dict[int, dict[int, int]] = {}
    for of_broker in brokers.values():
        for event in of_broker:
            follower, epoch, thread = event.replica_id, event.leader_epoch, event.fetcher_id
            if event.kind == r.FETCHED and follower is not None and epoch is not None and thread is not None:
                threads.setdefault(follower, {})[epoch] = thread
    return threads
