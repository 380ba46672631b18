"""Brokers' lives and restarts, from their own lines and from controllers'. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from pipelines.base.values import iso_or_none, iso_utc
from pipelines.incidents.broker_runs import BrokerRun
from pipelines.report.cluster.parts import Life, Restart
from pipelines.report.tiers import Node

Rows = Sequence[Mapping[str, Any]]

#: A start so soon after a change belongs to it.
_LATE_US = 1_000_000


def lives(of_node: Mapping[Node, Sequence[BrokerRun]]) -> tuple[Life, ...]:
    """Stretches of all brokers."""
    stretches = []
    for (cluster_id, broker_id), those in of_node.items():

        def life(
            state: Literal["up", "starting", "stopping", "down"],
            start: int | None,
            end: int | None,
            node: Node = (cluster_id, broker_id),
        ) -> Life:
            return Life(
                cluster_id=node[0], broker_id=node[1], state=state, start=iso_or_none(start), end=iso_or_none(end)
            )

        for number, run in enumerate(those):
            after = those[number + 1].starting if number + 1 < len(those) else None
            if run.starting is not None:
                stretches.append(life("starting", run.starting, run.started or run.stopping or run.end or after))
            if run.started is not None or run.starting is None:
                stretches.append(life("up", run.started, run.stopping or run.end or after))
            if run.stopping is not None and (run.end or after):
                stretches.append(life("stopping", run.stopping, run.end or after))
            if run.end is not None:
                stretches.append(life("down", run.end, after))
    return tuple(stretches)


def restarts(of_node: Mapping[Node, Sequence[BrokerRun]], isr: Rows) -> tuple[Restart, ...]:
    """Every start but a broker's first, and its first if the logs show it running before."""
    starts = []
    changes: dict[Node, list[Mapping[str, Any]]] = defaultdict(list)
    for row in isr:
        changes[row["cluster_id"], row["replica_id"]].append(row)
    for node, those in of_node.items():
        for number, (before, run) in enumerate(pairwise(those), 1):
            if run.starting is None:
                continue
            following = those[number + 1].starting if number + 1 < len(those) else None
            starts.append(_restart(node, before, run, following, changes[node]))
    return tuple(sorted(starts, key=lambda restart: (restart.starting, restart.cluster_id, restart.broker_id)))


def _restart(node: Node, before: BrokerRun, run: BrokerRun, following: int | None, changes: Rows) -> Restart:
    assert run.starting is not None
    lost: set[tuple[str, int]] = set()
    back: dict[tuple[str, int], int] = {}
    for row in sorted(changes, key=lambda row: int(row["change_time"])):
        time, place = row["change_time"], (row["topic"], row["partition"])
        if following is not None and time >= following:
            break
        if time < run.starting:
            (lost.add if row["change"] == "shrink" else lost.discard)(place)
        elif row["change"] == "shrink" and time < (run.started or run.starting) + _LATE_US:
            lost.add(place)
            back.pop(place, None)
        elif row["change"] == "expand":
            # Where it led, its going was a move of the leader, and no line says that it left the ISR.
            lost.add(place)
            back.setdefault(place, time)
    ending: Literal["clean", "found_gone", "unknown"] = "unknown"
    if before.stopped is not None:
        ending = "clean"
    elif before.gone is not None:
        ending = "found_gone"
    full = lost and len(back) == len(lost)
    return Restart(
        cluster_id=node[0],
        broker_id=node[1],
        ending=ending,
        down=iso_or_none(before.stopping or before.end),
        starting=iso_utc(run.starting),
        started=iso_or_none(run.started),
        isr_lost=len(lost),
        isr_back=len(back),
        isr_full=iso_utc(max(back.values())) if full else None,
    )
