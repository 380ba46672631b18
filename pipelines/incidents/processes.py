"""When processes of brokers began and ended: what several kinds of incidents ask. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pipelines.incidents.broker_runs import BrokerRun, is_orderly, runs
from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import Place
from pipelines.incidents.questions import STEADY_SHARE
from pipelines.incidents.witnesses import Loss, losses

#: A broker has a steady rhythm if it wrote steadily for this long per silence that followed, microseconds. At INFO a
#: broker writes in bursts, and a silence follows nearly each one.
_RHYTHM_US = 15_000_000
#: A process writes so long, at most, before the line that says that its broker starts, microseconds.
BOOT_US = 20_000_000
#: A broker that ends itself says why so long, at most, before its last line, or before it shuts down, microseconds.
FATAL_US = 10_000_000
STOPPING = ("shutting_down", "signal", "controlled_shutdown")
#: Of the ten seconds up to a broker's last line, so many have one if that line is where it ended.
_STEADY_SECONDS = 9
#: Brokers that stop within this of each other and do not come back stop together, microseconds.
_TOGETHER_US = 120_000_000
#: Fewer seconds after a silence do not show how steadily a broker writes.
AFTER_MIN_S = 3


class ProcessRestart(NamedTuple):
    """A process that begins where another one of the same node was before."""

    node: Node
    last_us: int  #: last line of the one before
    boot_us: int  #: first line of this one
    place: Place | None  #: of the line that says that it starts, where there is one
    is_exact: bool  #: it wrote steadily: its last line is where it ended
    #: its end is not later: its last line if that is exact, else when peers began to miss it, else its next first line
    gone_us: int


def restarts(facts: Facts) -> list[ProcessRestart]:
    """All of them, in order of time: by a process's first line, and by the line that a broker starts."""
    silences: dict[Node, list[Row]] = defaultdict(list)
    for row in facts.silences:
        silences[node(row)].append(row)
    starts: dict[Node, list[Row]] = defaultdict(list)
    ends: dict[Node, list[int]] = defaultdict(list)
    ups: dict[Node, list[int]] = defaultdict(list)
    has_started: dict[Node, bool] = defaultdict(bool)
    for row in facts.lifecycle:
        if row["event"] == "starting":
            has_started[node(row)] = False
            starts[node(row)].append(row)
        elif row["event"] == "started":
            if has_started[node(row)]:  # once more: the line that it starts is not in these logs
                starts[node(row)].append(row)
            has_started[node(row)] = True
            ups[node(row)].append(row["time"])
        elif row["event"] in (*STOPPING, "shut_down"):
            ends[node(row)].append(row["time"])
    missed = losses(facts)
    restarted: list[ProcessRestart] = []
    for of_node in sorted(silences.keys() | starts.keys()):
        boots = [row for row in silences[of_node] if row["is_boot"]]
        for row in boots:
            said = [start for start in starts[of_node] if row["end_time"] <= start["time"] <= row["end_time"] + BOOT_US]
            restarted.append(_restart(row, place(said[0]) if said else None, missed))
        boots_us = [*([facts.first_boots[of_node]] if of_node in facts.first_boots else []), *map(_end, boots)]
        turns_us = sorted({row["time"] for row in starts[of_node]} | set(ups[of_node]) | set(ends[of_node]))
        for start in starts[of_node]:
            if any(row["end_time"] <= start["time"] <= row["end_time"] + BOOT_US for row in boots):
                continue
            # A process that waits for a quorum says late that it starts; nothing of another one lies in between.
            boot_us = max((time for time in boots_us if time <= start["time"]), default=None)
            if boot_us is not None and not any(boot_us <= time < start["time"] for time in turns_us):
                continue
            # Between the last line of the one process and the first of the other no line says that a process ends.
            ended = max((time for time in ends[of_node] if time < start["time"]), default=0)
            before = [
                row
                for row in silences[of_node]
                if max(start["time"] - BOOT_US, ended) <= row["end_time"] <= start["time"] + 1_000_000
            ]
            if before:
                gap = max(before, key=lambda row: row["end_time"] - row["start_time"])
                restarted.append(_restart(gap, place(start), missed))
    first: dict[Node, int] = {}
    for row in facts.files:
        if row["broker_id"] is not None and row["first_time"] is not None:
            first[node(row)] = min(first.get(node(row), row["first_time"]), row["first_time"])
    # A process that has only begun was not there before: it may write a line or two before the one that tells it.
    restarted = [restart for restart in restarted if restart.boot_us - first.get(restart.node, 0) > BOOT_US]
    return sorted(restarted, key=lambda restart: (restart.boot_us, restart.node))


def _restart(row: Row, said: Place | None, missed: Mapping[Node, Sequence[Loss]]) -> ProcessRestart:
    """Return the restart that a silence hides."""
    last_us, boot_us, is_exact = row["start_time"], row["end_time"], is_steady(row)
    firsts = [loss.first_us for loss in missed.get(node(row), ()) if last_us <= loss.first_us < boot_us]
    gone_us = last_us if is_exact else min(firsts, default=boot_us)
    return ProcessRestart(node(row), last_us, boot_us, said, is_exact, gone_us)


class Death(NamedTuple):
    """An end of a process, and the first line of the next one."""

    node: Node
    last_us: int  #: it was dead from then on
    boot_us: int | None  #: None if there is no further process


def deaths(facts: Facts) -> list[Death]:
    """Return ends of processes that the process's own last line or its peers date, orderly ones among them."""
    ends = [
        Death(restart.node, restart.gone_us, restart.boot_us)
        for restart in restarts(facts)
        if restart.gone_us < restart.boot_us
    ]
    return ends + [
        Death(node(row), row["last_time"], None)
        for row in facts.last_lines
        if row["seconds_before"] >= _STEADY_SECONDS and row["last_time"] < facts.ends.get(row["cluster_id"], 0)
    ]


def _end(row: Row) -> int:
    time_us: int = row["end_time"]
    return time_us


def is_steady(row: Row) -> bool:
    """Return True if a broker wrote steadily before a silence, and silences seldom follow its steady writing."""
    has_rhythm = row["steady_us"] >= _RHYTHM_US * max(row["steady_silences"], 1)
    return bool(has_rhythm and (row["share_before"] or 0) >= STEADY_SHARE)


class Stop(NamedTuple):
    """An orderly end of a run."""

    node: Node
    began_us: int  #: the broker begins to shut down
    up_us: int | None  #: the same broker has started again; None: not within the logs


def stops(facts: Facts) -> list[Stop]:
    """All orderly ends, in order of time."""
    ends = []
    for broker, those in runs(facts.lifecycle, facts.controller_events, facts.files).items():
        for run, after in zip(those, [*those[1:], None], strict=True):
            if run.stopping is None or facts.has_fatal(broker, run.stopping - FATAL_US, run.stopping):
                continue
            if run.stopped is not None or after is None or _is_orderly(facts, broker, after):
                ends.append(Stop(broker, run.stopping, _up(after)))
    return sorted(ends, key=lambda stop: (stop.node[0], stop.began_us, stop.node[1]))


def _is_orderly(facts: Facts, broker: Node, after: BrokerRun) -> bool:
    return after.starting is not None and is_orderly(
        facts.lifecycle, broker, after.starting, after.started or after.starting + _TOGETHER_US
    )


def _up(after: BrokerRun | None) -> int | None:
    return None if after is None else after.started or after.starting


def shutdowns(facts: Facts) -> dict[str, Sequence[Stop]]:
    """Of each cluster the stops with which the logs of all its brokers end: someone shut the whole cluster down."""
    last: dict[str, dict[Node, Stop]] = {}
    for stop in stops(facts):
        if stop.up_us is None:
            last.setdefault(stop.node[0], {})[stop.node] = stop
    with_lines = {node(row) for row in facts.last_lines}
    whole: dict[str, Sequence[Stop]] = {}
    for cluster_id, of_cluster in last.items():
        ends = sorted(of_cluster.values(), key=lambda stop: stop.began_us)
        is_all = {broker for broker in with_lines if broker[0] == cluster_id} <= of_cluster.keys()
        if is_all and len(ends) > 1 and ends[-1].began_us - ends[0].began_us <= _TOGETHER_US:
            whole[cluster_id] = ends
    return whole


def shutdown_times(facts: Facts) -> dict[str, int]:
    """When the first broker of each cluster that is shut down as a whole began to stop, microseconds."""
    return {cluster_id: min(stop.began_us for stop in ends) for cluster_id, ends in shutdowns(facts).items()}


class Turn(NamedTuple):
    """A process begins or ends."""

    time_us: int  #: its line, or the last line of a process that died
    settled_us: int  #: silences that begin until then belong to it
    is_end: bool  #: it ends


def turns(facts: Facts) -> dict[Node, list[Turn]]:
    """Begins and ends of the processes of each broker: a silence there is another thing."""
    of_nodes: dict[Node, list[Turn]] = defaultdict(list)
    started: dict[Node, list[int]] = defaultdict(list)
    for row in facts.lifecycle:
        if row["event"] == "started":
            started[node(row)].append(row["time"])
        elif row["event"] in (*STOPPING, "shut_down"):
            of_nodes[node(row)].append(Turn(row["time"], row["time"] + BOOT_US, True))
    begins = [(restart.node, restart.boot_us) for restart in restarts(facts)]
    begins += [(node(row), row["time"]) for row in facts.lifecycle if row["event"] == "starting"]
    for of_node, time in begins:
        ups = started[of_node]
        place = bisect_right(ups, time)
        is_up = place < len(ups) and ups[place] - time <= BOOT_US
        settled = ups[place] + AFTER_MIN_S * 1_000_000 if is_up else time + BOOT_US
        of_nodes[of_node].append(Turn(time, settled, False))
    for restart in restarts(facts):
        of_nodes[restart.node].append(Turn(restart.last_us, restart.boot_us, True))
    return of_nodes
