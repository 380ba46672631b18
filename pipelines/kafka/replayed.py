"""Lines of a KRaft node about brokers that are replayed from the metadata log at its start, long past. Pure.

``ClusterControlManager.replay`` logs a record as the node applies it. On the active controller and its followers that
is live. A node that starts applies all records since its snapshot: such a line is as old as its record, and detects
nothing.
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
#: Beginnings of the lines of ``ClusterControlManager.replay``; other lines are decisions of the active controller.
_REPLAYED: Final = (
    *("Replayed ", "Registered new broker: ", "Re-registered broker ", "Unregistered broker: "),
    *("Fenced broker: ", "Unfenced broker: "),
)

#: Begin and end of each start by cluster and node, in order of time.
StartUps = Mapping[tuple[str, int], Sequence[tuple[int, int]]]


def start_ups(lives: Iterable[tuple[str, int | None, int, str]]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return the (start, end) times of all node starts, by (cluster, node). A start without an end ends at the next.

    Args:
        lives: (cluster, node, time in us, event of `silver.broker_lifecycle`).
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
    """Return True if a line shows an old record that a node replays at its start."""
    if node_id is None or not (detail or "").startswith(_REPLAYED):
        return False
    spans = starts.get((cluster_id, node_id), ())
    at = bisect_right(spans, time_us, key=lambda span: span[0]) - 1
    return at >= 0 and time_us < spans[at][1]


def drop_past(rows: Iterable[Mapping[str, Any]], lifecycle: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Drop rows of `silver.controller_events` about old records that nodes replay at their starts.

    Args:
        lifecycle: rows of `silver.broker_lifecycle`, ``time`` in us.
    """
    starts = start_ups((row["cluster_id"], row["broker_id"], row["time"], row["event"]) for row in lifecycle)
    return [row for row in rows if not is_past(starts, row["cluster_id"], row["broker_id"], row["time"], row["detail"])]
