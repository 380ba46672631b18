"""What controllers said of brokers: fenced, shutting down, or neither. Pure.

Only a controller within a broker, or one that writes beside it, is on that broker's clock.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from pipelines.cluster.premises import Premises
from pipelines.kafka.seals import Broker
from pipelines.replay.isr_evidence import FENCED, SHUTTING_DOWN, UNFENCED

KRAFT: Final = "kraft"
_OF_KRAFT = {
    "broker_fenced": FENCED,
    "broker_registered": FENCED,  # a broker is fenced from its registration until it has caught up with the metadata
    "broker_unfenced": UNFENCED,
    "controlled_shutdown": SHUTTING_DOWN,
}
_OF_ZOOKEEPER = {
    "broker_failed": FENCED,
    "broker_registered": UNFENCED,
    "controlled_shutdown": SHUTTING_DOWN,
}

#: (from when, `FENCED`, `SHUTTING_DOWN` or `UNFENCED`), in time order.
Fencing = tuple[tuple[int, str], ...]


def fencings(premises: Premises) -> dict[Broker, dict[int, Fencing]]:
    """By broker beside which a controller writes, and by replica: how it stood."""
    by_broker: dict[Broker, dict[int, list[tuple[int, str]]]] = defaultdict(lambda: defaultdict(list))
    for cluster_id, row in sorted(premises.events, key=lambda event: (event[1].time_us, event[1].ref.byte_offset)):
        broker, replica_id = (cluster_id, row.broker_id), row.subject_broker_id
        states = _OF_KRAFT if premises.modes.get(broker, KRAFT) == KRAFT else _OF_ZOOKEEPER
        state = states.get(row.event)
        if state is None or replica_id is None:
            continue
        history = by_broker[broker][replica_id]
        if history and history[-1][0] == row.time_us:
            history.pop()  # a controller that starts replays what was, all at once: the last word counts
        if not history or history[-1][1] != state:
            history.append((row.time_us, state))
    return {
        broker: {replica_id: tuple(history) for replica_id, history in histories.items()}
        for broker, histories in by_broker.items()
    }
