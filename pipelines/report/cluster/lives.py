"""Brokers' lives and restarts, from their own lines and from controllers'. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from pipelines.report.cluster.parts import Life, Restart
from pipelines.report.tiers import Node
from pipelines.report.values import UNKNOWN_BROKER, iso_utc

Rows = Sequence[Mapping[str, Any]]

#: What tells one run from another.
_SAID = frozenset({"starting", "started", "unfenced", "shutting_down", "signal", "controlled_shutdown", "shut_down"})
#: A broker logs so long, at most, before it says that it starts.
_BOOT_US = 20_000_000
_GONE = ("broker_fenced", "broker_failed")
_ALIVE = ("broker_unfenced", "broker_registered")
#: A controller that notices late, by another clock: so much after a start it still speaks of what was before.
_LATE_US = 1_000_000


@dataclass
class _Run:
    """One run of a broker, from its start to its end; times in microseconds."""

    starting: int | None
    started: int | None = None
    stopping: int | None = None
    stopped: int | None = None
    gone: int | None = None

    @property
    def end(self) -> int | None:
        return self.stopped if self.stopped is not None else self.gone


def runs(lifecycle: Rows, controller: Rows, files: Rows) -> dict[Node, list[_Run]]:
    """The runs of each broker in order.

    Args:
        files: with the first time in each: a broker that logged long before its first start was there before.
    """
    said: dict[Node, list[tuple[int, str]]] = defaultdict(list)
    begun: dict[Node, int] = {}
    for row in files:
        if row["broker_id"] not in (None, UNKNOWN_BROKER) and row["first_time"] is not None:
            node = (row["cluster_id"] or "unknown", row["broker_id"])
            begun[node] = min(begun.get(node, row["first_time"]), row["first_time"])
            said.setdefault(node, [])
    for row in lifecycle:
        if row["broker_id"] is not None and row["event"] in _SAID:
            said[row["cluster_id"] or "unknown", row["broker_id"]].append((row["time"], row["event"]))
    noticed: dict[Node, list[tuple[int, bool]]] = defaultdict(list)
    for row in controller:
        if row["event"] in (*_GONE, *_ALIVE):
            for broker_id in {row["subject_broker_id"], *(row["brokers"] or ())} - {None, UNKNOWN_BROKER}:
                # What a node says of itself as it starts is what it reads in the metadata log, and long past.
                if row["event"] in _GONE or broker_id != row["broker_id"]:
                    node = (row["cluster_id"] or "unknown", broker_id)
                    noticed[node].append((row["time"], row["event"] in _GONE))
    return {
        node: _with_ends(_of_own_lines(sorted(lines), begun.get(node)), sorted(noticed[node]))
        for node, lines in sorted(said.items())
    }


def _of_own_lines(lines: Sequence[tuple[int, str]], begun: int | None) -> list[_Run]:
    of_broker: list[_Run] = []
    first = next((time for time, event in lines if event == "starting"), None)
    if begun is not None and (first is None or begun < first - _BOOT_US):
        of_broker.append(_Run(None))
    for time, event in lines:
        if event == "starting" or not of_broker:
            of_broker.append(_Run(time if event == "starting" else None))
        run = of_broker[-1]
        if event in ("started", "unfenced") and run.started is None:
            run.started = time
        elif event in ("shutting_down", "signal", "controlled_shutdown") and run.stopping is None:
            run.stopping = time
        elif event == "shut_down":
            run.stopped = time
    return of_broker


def _with_ends(of_broker: list[_Run], noticed: Sequence[tuple[int, bool]]) -> list[_Run]:
    """A run that does not say that it ended, though another began, ended when a controller found it gone for good.

    Args:
        noticed: when a controller said that the broker was gone (true), or there again.
    """
    for number, run in enumerate(of_broker):
        after = of_broker[number + 1].starting if number + 1 < len(of_broker) else None
        since = run.stopping or run.started or run.starting or 0
        if run.stopped is None and (after is not None or run.stopping is not None):
            until = None if after is None else after + _LATE_US
            meanwhile = [(time, gone) for time, gone in noticed if time > since and (until is None or time < until)]
            alive = max((time for time, gone in meanwhile if not gone and (after is None or time < after)), default=0)
            times = [time for time, gone in meanwhile if gone and time > alive]
            if times:
                run.gone = times[0] if after is None else min(times[0], after)
    return of_broker


def lives(of_node: Mapping[Node, Sequence[_Run]]) -> tuple[Life, ...]:
    """Stretches of all brokers."""
    stretches = []
    for (cluster_id, broker_id), those in of_node.items():

        def life(
            state: Literal["up", "starting", "stopping", "down"],
            start: int | None,
            end: int | None,
            node: Node = (cluster_id, broker_id),
        ) -> Life:
            return Life(cluster_id=node[0], broker_id=node[1], state=state, start=_iso(start), end=_iso(end))

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


def restarts(of_node: Mapping[Node, Sequence[_Run]], isr: Rows) -> tuple[Restart, ...]:
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


def _restart(node: Node, before: _Run, run: _Run, following: int | None, changes: Rows) -> Restart:
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
        down=_iso(before.stopping or before.end),
        starting=iso_utc(run.starting),
        started=_iso(run.started),
        isr_lost=len(lost),
        isr_back=len(back),
        isr_full=iso_utc(max(back.values())) if full else None,
    )


def _iso(time_us: int | None) -> str | None:
    return None if time_us is None else iso_utc(time_us)
