"""What each broker's log says of its version and configuration, as the kernel needs it.

Pure: built from small rows that the driver collects (one per distinct value and broker, never per log line).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.replay.kernel import Context
from pipelines.replay.versions import rules_for

LAG_TIME_MAX = "replica.lag.time.max.ms"
MIN_ISR = "min.insync.replicas"

#: (instant in microseconds, value) in time order.
History = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Contexts:
    """Versions and configuration of all brokers.

    Attributes:
        versions: Kafka version by (cluster, broker).
        broker_configs: histories by (cluster, broker, key).
        topic_configs: histories by (cluster, broker, topic, key).
        settle_us: passed on to `Context`.
    """

    versions: Mapping[tuple[str, int], str] = field(default_factory=dict)
    broker_configs: Mapping[tuple[str, int, str], History] = field(default_factory=dict)
    topic_configs: Mapping[tuple[str, int, str, str], History] = field(default_factory=dict)
    settle_us: int = 5_000_000

    def of(self, cluster_id: str, broker_id: int, topic: str) -> Context:
        """Context of a topic's partitions on a broker."""
        rules = rules_for(self.versions.get((cluster_id, broker_id)))
        lag = _integers(self.broker_configs.get((cluster_id, broker_id, LAG_TIME_MAX), ()))
        minimum = _integers(self.broker_configs.get((cluster_id, broker_id, MIN_ISR), ()))
        override = _integers(self.topic_configs.get((cluster_id, broker_id, topic, MIN_ISR), ()))
        return Context(
            broker_id=broker_id,
            rules=rules,
            lag_time_max_us=(lag[-1][1] if lag else rules.lag_time_max_ms) * 1000,
            min_insync_replicas=tuple(_merged(minimum, override)),
            settle_us=self.settle_us,
        )


def _integers(history: History) -> list[tuple[int, int]]:
    return [(since_us, int(value)) for since_us, value in history if value.strip().isdigit()]


def _merged(broker: list[tuple[int, int]], topic: list[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """A topic's value as time goes: the broker's until a line tells the topic's own.

    The first value of a broker is its configuration at start, so it held from before the log began.
    """
    first_own_us = topic[0][0] if topic else None
    for index, (since_us, value) in enumerate(broker):
        if first_own_us is None or index == 0 or since_us < first_own_us:
            yield (0 if index == 0 else since_us, value)
    yield from topic
