"""What a KRaft node says of brokers as it starts: it replays the metadata log, and all of it is long past. Pure.

``ClusterControlManager.replay`` logs a record as the node applies it. On the active controller and on those that follow
it that is as it happens; a node that starts applies all since its snapshot, so its line is as old as its record, and is
no detection of anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from highwater.pipelines.base.instants import NEVER_US

#: `silver.broker_lifecycle.event`.
_STARTING: Final = "starting"
_STARTED: Final = "started"
#: Beginnings of the lines of ``ClusterControlManager.replay``; the others are what the active controller decides.
_REPLAYED: Final = (
    *("Replayed ", "Registered new broker: ", "Re-registered broker ", "Unregistered broker: "),
    *("Fenced broker: ", "Unfenced broker: "),
)

#: When each node began to start, and until when it did, by cluster and node; in the order of time.
StartUps = Mapping[tuple[str, int], Sequence[tuple[int, int]]]


def start_ups(lives: Iterable[tuple[str, int | None, int, str]]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return spans of all starts; one that no line ends lasts until the next begins.

    Args:
        lives: cluster, node, instant in microseconds, event of `silver.broker_lifecycle`.
    """
    starts: dict[tuple[str, int], list[tuple[int, str]]] = defaultdict(list)
    for cluster_id, node_id, time_us, event in lives:
        if node_id is not None and event in (_STARTING, _STARTED):
            starts[cluster_id, node_id].append((time_us, event))
    spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for node, events in starts.items():
        spans[node] = []
        begun_us: int | None = None
        for time_us, event in sorted(events, key=lambda entry: (entry[0], entry[1] == _STARTING)):
            if begun_us is not None:
                spans[node].append((begun_us, time_us))
            begun_us = time_us if event == _STARTING else None
        if begun_us is not None:
            spans[node].append((begun_us, NEVER_US))
    return spans


def is_past(starts: StartUps, cluster_id: str, node_id: int | None, time_us: int, detail: str | None) -> bool:
    """Return whether a line shows what a node reads of the past as it starts."""
    if node_id is None or not (detail or "").startswith(_REPLAYED):
        return False
    spans = starts.get((cluster_id, node_id), ())
    at = bisect_right(spans, time_us, key=lambda span: span[0]) - 1
    return at >= 0 and time_us < spans[at][1]


def as_they_happened(rows: Iterable[Mapping[str, Any]], lifecycle: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return rows of `silver.controller_events` without what nodes read as they start.

    Args:
        lifecycle: rows of `silver.broker_lifecycle`; instants in ``time``, microseconds.
    """
    starts = start_ups((row["cluster_id"], row["broker_id"], row["time"], row["event"]) for row in lifecycle)
    return [row for row in rows if not is_past(starts, row["cluster_id"], row["broker_id"], row["time"], row["detail"])]
