"""Offsets between clocks, from registrations and elections, and rows of all nodes on one clock. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median_low
from typing import Any

from highwater.pipelines.timelines.missed import CLOCKS_US
from highwater.pipelines.timelines.rows import Node, Row, Rows, node

#: A controller sees registrations of one broker after delays that differ by less, microseconds.
_SPREAD_US = 500_000
#: Registrations with the same offset that show a clock that is off.
_REGISTRATIONS_MIN = 2
#: Elections so far apart do not reach a leader with the same delay by chance, microseconds.
_APART_US = 10_000_000
#: Instants in a row of `gold.failovers` without a column of their clock, by the column of the broker.
_CLOCKS = {"received": "new_leader", "taken_up": "new_leader", "serving": "new_leader", "stepped_down": "old_leader"}


def clock_offsets(lifecycle: Rows, controller_events: Rows, failovers: Rows = ()) -> dict[Node, int]:
    """Return how far the clocks of brokers are ahead of the controllers' clocks, microseconds. Negative if behind.

    A controller logs a registration at once. A clock has an offset if no registration of its broker has the same time
    in both logs, and at least two registrations differ by the same offset. Without such registrations in a cluster,
    elections show offsets.

    Args:
        failovers: rows of `gold.failovers`.
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
    known = {cluster_id for cluster_id, _ in found}
    return found | _find_offsets_of_elections([row for row in failovers if row["cluster_id"] not in known])


def _find_offsets_of_elections(failovers: Rows) -> dict[Node, int]:
    """Return the offsets of clocks by elections: a leader starts an epoch after its controller decided it.

    Elections in both directions bound the difference of two clocks. The reference is the largest group of brokers
    whose clocks agree. A clock differs from it if a leader starts before it is elected, or if elections far apart give
    one delay.
    """
    seen: dict[str, dict[tuple[int, int], list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in failovers:
        times = row["elected_time"], row["taken_up_time"]
        if None not in times and row["elected_clock"] not in (None, row["new_leader"]):
            seen[row["cluster_id"]][row["new_leader"], row["elected_clock"]].append((times[0], times[1] - times[0]))
    found = {}
    for cluster_id, delays in seen.items():
        reference = _find_reference(delays)
        if reference is None:
            continue
        for broker_id in sorted({each for pair in delays for each in pair} - reference):
            sure, offsets = False, []
            for (leader, controller), of_pair in delays.items():
                least_us = min(delay_us for _, delay_us in of_pair)
                alike = [time_us for time_us, delay_us in of_pair if delay_us - least_us <= _SPREAD_US]
                if {leader, controller} - reference == {broker_id} and abs(least_us) > CLOCKS_US:
                    offsets.append(least_us if leader == broker_id else -least_us)
                    sure |= least_us < 0 or max(alike) - min(alike) >= _APART_US
            if sure and max(offsets) - min(offsets) <= CLOCKS_US:
                found[cluster_id, broker_id] = median_low(offsets)
    return found


def _find_reference(delays: Mapping[tuple[int, int], Sequence[tuple[int, int]]]) -> set[int] | None:
    """Return the largest group of brokers whose clocks agree. None if two groups have this size.

    Two clocks agree if an election between them has no delay, or if both have one delay to a third clock.

    Args:
        delays: times and delays of elections, by leader and controller.
    """
    least = {pair: min(delay_us for _, delay_us in of_pair) for pair, of_pair in delays.items()}
    prompt = [
        set(pair) for pair, of_pair in delays.items() if min(abs(delay_us) for _, delay_us in of_pair) <= CLOCKS_US
    ]
    alike = [
        set(pair) ^ set(other)
        for pair, other in combinations(least, 2)
        if (pair[0] == other[0] or pair[1] == other[1]) and abs(least[pair] - least[other]) <= CLOCKS_US
    ]
    groups = [{broker_id} for broker_id in {each for pair in delays for each in pair}]
    for agreed in [*prompt, *alike]:
        joined = [group for group in groups if group & agreed]
        groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    groups.sort(key=len)
    return groups[-1] if len(groups) == 1 or len(groups[-2]) < len(groups[-1]) else None


def on_one_clock(rows: Iterable[Row], offsets: Mapping[Node, int]) -> list[Row]:
    """Return the rows with times of nodes with a clock offset corrected.

    A time is corrected by the node in its clock column (``left_clock`` for ``left_time``), else by the row's broker.
    """
    corrected: list[Row] = []
    for row in rows:
        changes: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, int) and (name == "time" or name.endswith("_time")):
                instant = name.removesuffix("_time")
                clock = row.get(f"{instant}_clock", row.get(_CLOCKS.get(instant, "broker_id")))
                changes[name] = value - offsets.get((row["cluster_id"], clock), 0)
        corrected.append({**row, **changes})
    return corrected
