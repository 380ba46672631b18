"""All rows of the follower side of one partition, from what its brokers logged: pure, no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipelines.kafka.context import History
from pipelines.replay.fetchers import fetcher_rows, stays
from pipelines.replay.follower import by_broker, tenures
from pipelines.replay.follower_truncation import RulesOf, truncation_rows
from schemas import replicas as r
from schemas.replicas import ReplicaEvent

TRUNCATION = "truncation"
STAY = "stay"


def partition_rows(
    events: Iterable[ReplicaEvent],
    topic: str,
    partition: int,
    rules_of: RulesOf,
    fetchers: Mapping[int, History],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(`TRUNCATION`, row of ``gold.replica_truncations``) and (`STAY`, row of ``gold.fetcher_timeline``).

    Args:
        events: of all brokers, in any order.
        rules_of: those for truncation (`pipelines.replay.follower_truncation.effective_rules`).
        fetchers: by broker; histories of ``num.replica.fetchers``.

    Returns:
        Rows without cluster, topic and partition; instants are ``_us`` integers.
    """
    brokers = dict(by_broker(events))
    for values in truncation_rows({broker: tenures(held) for broker, held in brokers.items()}, rules_of):
        yield TRUNCATION, values
    threads = _threads(brokers)
    for broker, held in brokers.items():
        rows = fetcher_rows(broker, stays(held), topic, partition, fetchers.get(broker, ()), threads.get(broker, {}))
        for values in rows:
            yield STAY, values


def _threads(brokers: Mapping[int, list[ReplicaEvent]]) -> dict[int, dict[int, int]]:
    """By follower and leader epoch, the fetcher thread that the leader's request log names."""
    threads: dict[int, dict[int, int]] = {}
    for held in brokers.values():
        for event in held:
            follower, epoch, thread = event.replica_id, event.leader_epoch, event.fetcher_id
            if event.kind == r.FETCHED and follower is not None and epoch is not None and thread is not None:
                threads.setdefault(follower, {})[epoch] = thread
    return threads
