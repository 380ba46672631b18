"""Replication throttles (KIP-73): a leader keeps records from a lagging follower, whose fetches wait. Pure.

While the leader's quota is used up, readable bytes of a throttled partition do not count for out-of-sync followers.
Their fetches wait for the timer (``ReplicaManager.shouldLeaderThrottle``, ``DelayedFetch.tryComplete`` cases F and G).
Lines show which replicas are throttled and that there is a quota (``leader.replication.throttled.replicas`` of a topic,
``leader.replication.throttled.rate`` of a broker). No line shows when the quota is used up. So a late answer under a
throttle is attributed to the throttle, and when it was due is unknown. A throttled follower does not ask for records
that it may not read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.kafka.context import LEADER_THROTTLE_RATE, THROTTLED_LEADERS, Contexts, find_value
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.judge import LATE, UNOBSERVABLE, Tolerances

_EVERY_REPLICA: Final = "*"

#: ISRs from a broker's own lines, by (cluster, broker, topic, partition): (instant, members) in time order.
Isrs = Mapping[tuple[str, int, str, int], tuple[tuple[int, frozenset[int]], ...]]


class Throttles(NamedTuple):
    """Replication throttles that may have delayed followers' fetches, with the ISRs of throttled topics."""

    contexts: Contexts
    isrs: Isrs

    def judged(self, broker: tuple[str, int], operation: dict[str, Any], limits: Tolerances) -> dict[str, Any]:
        """Return the operation. If it is late and a throttle may have delayed it, it is marked unobservable.

        A fetch answered later than its own timeout is not explained by a throttle.

        Args:
            broker: (cluster, broker) that answered.
            operation: a row of ``gold.delayed_operations``, with ``handled_us`` and ``completed_us``.
        """
        waits = operation["operation"] == "fetch" and (operation["replica_id"] or -1) >= 0
        if operation["class"] != LATE or not waits or operation["cause"] == o.TIMER:
            return operation
        expires_us = operation["handled_us"] + (operation["timeout_ms"] or 0) * 1000
        if operation["completed_us"] > expires_us + TICK_US + limits.late_us:
            return operation
        held = self._is_holding(broker, operation)
        if held is False:
            return operation
        reason = o.THROTTLED if held else o.ISR_NOT_LOGGED
        return operation | {"class": UNOBSERVABLE, "class_reason": reason, "cause": o.THROTTLED, "known_bug": None}

    def _is_holding(self, broker: tuple[str, int], operation: Mapping[str, Any]) -> bool | None:
        """Return True if a throttle may have delayed the fetch. None if unknown: no line shows if it was in sync."""
        topic, partition, time_us = (
            operation["closing_topic"],
            operation["closing_partition"],
            operation["handled_us"],
        )
        if topic is None or not is_throttled(self.contexts, broker, topic, partition, time_us):
            return False
        if rules_for(self.contexts.find_version(broker, time_us)).throttles_in_sync_replicas:
            return True
        isrs = self.isrs.get((*broker, topic, partition), ())
        at = bisect_right(isrs, time_us, key=lambda entry: entry[0]) - 1
        return None if at < 0 else operation["replica_id"] not in isrs[at][1]


NO_THROTTLES: Final = Throttles(Contexts(), {})


def is_throttled(contexts: Contexts, broker: tuple[str, int], topic: str, partition: int, time_us: int) -> bool:
    """Return True if the leader's throttle applies to the partition, for followers that are not in sync."""
    rate = find_value(contexts.broker_configs.get((*broker, LEADER_THROTTLE_RATE), ()), time_us)
    replicas = find_value(contexts.topic_configs.get((*broker, topic, THROTTLED_LEADERS), ()), time_us)
    if not rate or not replicas:
        return False
    listed = replicas.replace(" ", "")
    return listed == _EVERY_REPLICA or f"{partition}:{broker[1]}" in listed.split(",")


def throttled_topics(contexts: Contexts) -> frozenset[str]:
    """Return the topics with a leader that was ever throttled."""
    return frozenset(
        topic
        for (_, _, topic, key), history in contexts.topic_configs.items()
        if key == THROTTLED_LEADERS and any(value for _, value in history)
    )
