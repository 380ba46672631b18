"""The runs of a broker, from its own lines and from controllers'. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.base.values import UNKNOWN_CLUSTER

Rows = Sequence[Mapping[str, Any]]
#: Cluster and broker.
Node = tuple[str, int]

_UNKNOWN = -1
#: What tells one run from another.
_SAID = frozenset({"starting", "started", "unfenced", "shutting_down", "signal", "controlled_shutdown", "shut_down"})
#: A broker logs so long, at most, before it says that it starts.
_BOOT_US = 20_000_000
_GONE = ("broker_fenced", "broker_failed")
_ALIVE = ("broker_unfenced", "broker_registered")
#: A controller that notices late, by another clock: so much after a start it still speaks of what was before.
_LATE_US = 1_000_000


@dataclass
class BrokerRun:
    """One run of a broker; instants are microseconds, None where no line shows them."""

    starting: int | None  #: its first line says that it starts
    started: int | None = None  #: it says that it has started
    stopping: int | None = None  #: it begins to shut down
    stopped: int | None = None  #: it has shut down
    gone: int | None = None  #: a controller found it gone, where it says no end itself

    @property
    def end(self) -> int | None:
        return self.stopped if self.stopped is not None else self.gone


def runs(lifecycle: Rows, controller: Rows, files: Rows) -> dict[Node, list[BrokerRun]]:
    """The runs of each broker in order.

    Args:
        files: with the first time in each: a broker that logged long before its first start was there before.
    """
    said: dict[Node, list[tuple[int, str]]] = defaultdict(list)
    begun: dict[Node, int] = {}
    for row in files:
        if row["broker_id"] not in (None, _UNKNOWN) and row["first_time"] is not None:
            node = (row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"])
            begun[node] = min(begun.get(node, row["first_time"]), row["first_time"])
            said.setdefault(node, [])
    for row in lifecycle:
        if row["broker_id"] is not None and row["event"] in _SAID:
            said[row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"]].append((row["time"], row["event"]))
    noticed: dict[Node, list[tuple[int, bool]]] = defaultdict(list)
    for row in controller:
        if row["event"] in (*_GONE, *_ALIVE):
            for broker_id in {row["subject_broker_id"], *(row["brokers"] or ())} - {None, _UNKNOWN}:
                # What a node says of itself as it starts is what it reads in the metadata log, and long past.
                if row["event"] in _GONE or broker_id != row["broker_id"]:
                    node = (row["cluster_id"] or UNKNOWN_CLUSTER, broker_id)
                    noticed[node].append((row["time"], row["event"] in _GONE))
    return {
        node: _with_ends(_of_own_lines(sorted(lines), begun.get(node)), sorted(noticed[node]))
        for node, lines in sorted(said.items())
    }


def is_orderly(lifecycle: Rows, node: Node, from_us: int, to_us: int) -> bool:
    """Whether a start within a span found the file that the run before writes last, once it has closed its logs.

    kafka.log.LogManager.loadLogs and shutdown, 3.0 on: the lines of an orderly end may be lost with the process.
    """
    return any(
        row["event"] == "log_loading"
        and (row["cluster_id"] or UNKNOWN_CLUSTER, row["broker_id"]) == node
        and from_us <= row["time"] <= to_us
        and "since clean shutdown file was found" in (row["detail"] or "")
        for row in lifecycle
    )


def _of_own_lines(lines: Sequence[tuple[int, str]], begun: int | None) -> list[BrokerRun]:
    of_broker: list[BrokerRun] = []
    first = next((time for time, event in lines if event == "starting"), None)
    if begun is not None and (first is None or begun < first - _BOOT_US):
        of_broker.append(BrokerRun(None))
    has_started = False
    for time, event in lines:
        # A log may lack the line with which a run begins: what has started, or stops, does not start again within it.
        is_anew = event == "started" and of_broker and (has_started or of_broker[-1].stopping is not None)
        if event == "starting" or not of_broker or is_anew:
            of_broker.append(BrokerRun(time if event == "starting" else None))
            has_started = False
        has_started |= event == "started"
        run = of_broker[-1]
        if event in ("started", "unfenced") and run.started is None:
            run.started = time
        elif event in ("shutting_down", "signal", "controlled_shutdown") and run.stopping is None:
            run.stopping = time
        elif event == "shut_down":
            run.stopped = time
    return of_broker


def _with_ends(of_broker: list[BrokerRun], noticed: Sequence[tuple[int, bool]]) -> list[BrokerRun]:
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
