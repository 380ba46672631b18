"""States and restarts of brokers, read off their timelines. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Literal

from highwater.pipelines.base.values import iso_or_none, iso_utc
from highwater.pipelines.report.cluster.parts import Life, Restart
from highwater.pipelines.report.tiers import Node

Rows = Sequence[Mapping[str, Any]]

#: A change this soon after a start belongs to it, microseconds.
_LATE_US = 1_000_000
#: How the process before a start ended, by the reason of its last state.
_ENDINGS: Mapping[str, Literal["clean", "found_gone", "unknown"]] = {
    "shutdown": "clean",
    "died": "found_gone",
    "halted": "found_gone",
}


def make_lives(timeline: Rows) -> tuple[Life, ...]:
    """Return the states of all brokers over time.

    Args:
        timeline: rows of `gold.broker_timeline`.
    """
    return tuple(
        Life(
            cluster_id=row["cluster_id"],
            broker_id=row["broker_id"],
            state=row["state"],
            start=iso_or_none(row["begin_by_time"]),
            end=iso_or_none(row["end_by_time"]),
        )
        for states in _group_by_node(timeline).values()
        for row in states
        if row["state"] != "unknown"
    )


def make_restarts(timeline: Rows, isr: Rows) -> tuple[Restart, ...]:
    """Return every restart of each broker. The first start counts only if the logs show the broker before."""
    starts = []
    changes: dict[Node, list[Mapping[str, Any]]] = defaultdict(list)
    for row in isr:
        changes[row["cluster_id"], row["replica_id"]].append(row)
    for node, states in _group_by_node(timeline).items():
        begun = [number for number, row in enumerate(states) if row["state"] == "starting"]
        for number, following in zip_longest(begun, begun[1:]):
            if number:
                until = None if following is None else states[following]["begin_by_time"]
                starts.append(_restart(node, states[:number], states[number:following], until, changes[node]))
    return tuple(sorted(starts, key=lambda restart: (restart.starting, restart.cluster_id, restart.broker_id)))


def _group_by_node(timeline: Rows) -> dict[Node, list[Mapping[str, Any]]]:
    of_nodes: dict[Node, list[Mapping[str, Any]]] = defaultdict(list)
    for row in sorted(timeline, key=lambda row: (row["cluster_id"], row["broker_id"], row["position"])):
        of_nodes[row["cluster_id"], row["broker_id"]].append(row)
    return of_nodes


def _restart(node: Node, before: Rows, after: Rows, following: int | None, changes: Rows) -> Restart:
    """Return the restart between two consecutive processes of a broker.

    Args:
        before: states of the earlier process.
        after: states of the later process.
        following: start of the process after these two, microseconds. None if the later process is the last.
    """
    starting = after[0]["begin_by_time"]
    started = next((row["begin_by_time"] for row in after if row["reason"] == "started"), None)
    lost: set[tuple[str, int]] = set()
    back: dict[tuple[str, int], int] = {}
    for row in sorted(changes, key=lambda row: int(row["change_time"])):
        time, place = row["change_time"], (row["topic"], row["partition"])
        if following is not None and time >= following:
            break
        if time < starting:
            (lost.add if row["change"] == "shrink" else lost.discard)(place)
        elif row["change"] == "shrink" and time < (started or starting) + _LATE_US:
            lost.add(place)
            back.pop(place, None)
        elif row["change"] == "expand":
            # Where it led, its going was a move of the leader, and no line says that it left the ISR.
            lost.add(place)
            back.setdefault(place, time)
    end = before[-1]
    stopping = next((row for row in before[-2:] if row["state"] == "stopping"), end)
    is_dated = end["begin_by_time"] is not None and end["begin_by_time"] < starting
    full = lost and len(back) == len(lost)
    return Restart(
        cluster_id=node[0],
        broker_id=node[1],
        ending=_ENDINGS.get(end["reason"], "unknown") if is_dated else "unknown",
        down=iso_or_none(stopping["begin_by_time"]) if is_dated and end["state"] in ("down", "silent") else None,
        starting=iso_utc(starting),
        started=iso_or_none(started),
        isr_lost=len(lost),
        isr_back=len(back),
        isr_full=iso_utc(max(back.values())) if full else None,
    )
