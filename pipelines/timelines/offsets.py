"""Offsets between clocks, from registrations of brokers, and rows of all nodes on one clock. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from highwater.pipelines.timelines.missed import CLOCKS_US
from highwater.pipelines.timelines.rows import Node, Row, Rows, node

#: A controller sees registrations of one broker after delays that differ by less, microseconds.
_SPREAD_US = 500_000
#: Registrations with the same offset that show a clock that is off.
_REGISTRATIONS_MIN = 2


def clock_offsets(lifecycle: Rows, controller_events: Rows) -> dict[Node, int]:
    """Return how far the clocks of brokers are ahead of the controllers' clocks, microseconds. Negative if behind.

    A controller logs a registration at once. A clock has an offset if no registration of its broker has the same time
    in both logs, and at least two registrations differ by the same offset.
    """
    own: dict[Node, list[int]] = defaultdict(list)
    seen: dict[Node, set[int]] = defaultdict(set)
    for row in lifecycle:
        if row["event"] == "registered" and row["broker_id"] is not None:
            own[node(row)].append(row["time"])
    for row in controller_events:
        if row["event"] == "broker_registered" and row["subject_broker_id"] not in (None, row["broker_id"]):
            seen[row["cluster_id"], row["subject_broker_id"]].add(row["time"])
    found = {}
    for of_node, times in own.items():
        offsets = sorted(time - other for time in times for other in seen[of_node])
        if any(abs(offset) <= CLOCKS_US for offset in offsets):
            continue
        counts = {
            offset: sum(any(abs(time - other - offset) <= _SPREAD_US for other in seen[of_node]) for time in times)
            for offset in offsets
        }
        best = max(counts, key=lambda offset: (counts[offset], -abs(offset)), default=None)
        if best is not None and counts[best] >= _REGISTRATIONS_MIN:
            found[of_node] = best
    return found


def on_one_clock(rows: Iterable[Row], offsets: Mapping[Node, int]) -> list[Row]:
    """Return the rows with times of nodes with a clock offset corrected.

    A time is corrected by the node in its clock column (``left_clock`` for ``left_time``), else by the row's broker.
    """
    corrected: list[Row] = []
    for row in rows:
        changes: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, int) and (name == "time" or name.endswith("_time")):
                clock = row.get(f"{name.removesuffix('time')}clock", row.get("broker_id"))
                changes[name] = value - offsets.get((row["cluster_id"], clock), 0)
        corrected.append({**row, **changes})
    return corrected
