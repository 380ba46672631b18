"""A broker's process ended, and none of its lines says that it shuts down."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from pipelines.incidents.broker_runs import is_orderly
from pipelines.incidents.facts import Facts, Node, Row, node, place
from pipelines.incidents.incident import MAJOR, Incident, Place
from pipelines.incidents.kind import Kind
from pipelines.incidents.questions import STEADY_S, STEPS_PER_S
from pipelines.incidents.words import clock, lasting

#: Of the half seconds before a silence, so many have a line of a broker that writes steadily.
STEADY_SHARE = 0.9
#: A process writes so long, at most, before the line that says that its broker starts, microseconds.
BOOT_US = 20_000_000
#: kafka.log.LogManager.loadLogs: the second one up to 2.6.
_LOADED = re.compile(r"Loaded \d+ logs|Logs loading complete")
_STOPPING = ("shutting_down", "signal", "controlled_shutdown")


#: Of the ten seconds up to a broker's last line, so many have one if that line is where it ended.
_STEADY_SECONDS = 9


class Restart(NamedTuple):
    """A process that begins where another one of the same node was before.

    Attributes:
        last_us: last line of the one before.
        boot_us: first line of this one.
        place: of the line that says that it starts, where there is one.
        is_exact: it wrote in nearly each half second: its last line is where it ended.
    """

    node: Node
    last_us: int
    boot_us: int
    place: Place | None
    is_exact: bool


def restarts(facts: Facts) -> list[Restart]:
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
        elif row["event"] in (*_STOPPING, "shut_down"):
            ends[node(row)].append(row["time"])
    found = []
    for of_node in sorted(silences.keys() | starts.keys()):
        boots = [row for row in silences[of_node] if row["is_boot"]]
        for row in boots:
            said = [start for start in starts[of_node] if row["end_time"] <= start["time"] <= row["end_time"] + BOOT_US]
            found.append(
                Restart(of_node, row["start_time"], row["end_time"], place(said[0]) if said else None, _is_exact(row))
            )
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
                found.append(Restart(of_node, gap["start_time"], gap["end_time"], place(start), _is_exact(gap)))
    first: dict[Node, int] = {}
    for row in facts.files:
        if row["broker_id"] is not None and row["first_time"] is not None:
            first[node(row)] = min(first.get(node(row), row["first_time"]), row["first_time"])
    # A process that has only begun was not there before: it may write a line or two before the one that tells it.
    found = [restart for restart in found if restart.boot_us - first.get(restart.node, 0) > BOOT_US]
    return sorted(found, key=lambda restart: (restart.boot_us, restart.node))


class Death(NamedTuple):
    """A broker's last line, and the first of its next process; None: there is none."""

    node: Node
    last_us: int
    boot_us: int | None


def deaths(facts: Facts) -> list[Death]:
    """Ends of processes that are known to the instant, orderly ones among them."""
    ends = [Death(restart.node, restart.last_us, restart.boot_us) for restart in restarts(facts) if restart.is_exact]
    return ends + [
        Death(node(row), row["last_time"], None)
        for row in facts.last_lines
        if row["seconds_before"] >= _STEADY_SECONDS and row["last_time"] < facts.ends.get(row["cluster_id"], 0)
    ]


def _end(row: Row) -> int:
    time_us: int = row["end_time"]
    return time_us


def _is_exact(row: Row) -> bool:
    return bool(row["steps_before"] >= STEADY_SHARE * STEADY_S * STEPS_PER_S)


def detect(facts: Facts) -> Iterable[Incident]:
    """Processes that begin anew where the one before says nothing of its end."""
    stops: dict[Node, list[Row]] = defaultdict(list)
    for row in facts.lifecycle:
        if row["event"] in (*_STOPPING, "shut_down"):
            stops[node(row)].append(row)
    since: dict[Node, int] = {}
    for restart in restarts(facts):
        of_run = [row for row in stops[restart.node] if since.get(restart.node, 0) <= row["time"] <= restart.boot_us]
        since[restart.node] = restart.boot_us
        up = _up(facts, restart)
        loads = restart.boot_us, restart.boot_us + BOOT_US if up is None else up
        if not any(row["event"] == "shut_down" for row in of_run) and not is_orderly(
            facts.lifecycle, restart.node, *loads
        ):
            yield _died(facts, restart, bool(of_run))


def _died(facts: Facts, restart: Restart, was_stopping: bool) -> Incident:
    (cluster_id, broker_id), died, boot = restart.node, restart.last_us, restart.boot_us
    up = _up(facts, restart)
    recovery_us = _recovery_us(facts, restart, up)
    noticed = [row for row in facts.controller_events if _is_of(row, restart.node, died, up or boot)]
    if restart.is_exact:
        when = f"at {clock(died)}, its last line"
        seen = f" The controller noticed at {clock(noticed[0]['time'])}." if noticed else ""
    else:
        until = (
            f"{clock(noticed[0]['time'])}, when the controller noticed" if noticed else f"{clock(boot)}, its next start"
        )
        when, seen = f"between {clock(died)}, its last line, and {until}", ""
    begun = "while it was shutting down" if was_stopping else "without shutting down"
    back = (
        f"It was up again at {clock(up)}, after {lasting(up - died)}" if up is not None else "It did not come up again"
    )
    recovered = f", {lasting(recovery_us)} of them to recover its logs" if recovery_us and up is not None else ""
    return Incident(
        kind=KIND.name,
        severity=MAJOR,
        cluster_id=cluster_id,
        start_us=died,
        end_us=up,
        broker_ids=(broker_id,),
        sentence=(f"Broker {broker_id} died {begun} {when}.{seen} {back}{recovered}."),
        unexplained=(
            f"Look outside Kafka for what ended the process of broker {broker_id} from {clock(died)} on: the kernel's "
            "log (OOM killer), the exit code of its container or service, its disk."
        ),
        figures=(
            {}
            if up is None
            else {"away_s": (up - died) / 1e6, "start_s": (up - boot) / 1e6, "recovery_s": recovery_us / 1e6}
        ),
        places=(*(place(row) for row in noticed[:1]), *([] if restart.place is None else [restart.place])),
        weight=60.0 if up is None else (up - died) / 1e6,
    )


def _up(facts: Facts, restart: Restart) -> int | None:
    ups = [row["time"] for row in facts.lifecycle if node(row) == restart.node and row["event"] == "started"]
    return min((time for time in ups if time >= restart.boot_us), default=None)


def _recovery_us(facts: Facts, restart: Restart, up: int | None) -> int:
    """From the line with which a broker begins to load its logs to the one that says that they are loaded."""
    loading = [
        row
        for row in facts.lifecycle
        if node(row) == restart.node
        and row["event"] == "log_loading"
        and restart.boot_us <= row["time"] <= (up or restart.boot_us + BOOT_US)
    ]
    begins = [row["time"] for row in loading if (row["detail"] or "").startswith("Loading logs")]
    ends = [row["time"] for row in loading if _LOADED.match(row["detail"] or "")]
    return max(ends) - min(begins) if begins and ends else 0


def _is_of(row: Row, broker: Node, since_us: int, until_us: int) -> bool:
    if row["cluster_id"] != broker[0] or row["event"] not in ("broker_failed", "broker_fenced"):
        return False
    return broker[1] in (row["subject_broker_id"], *(row["brokers"] or ())) and since_us <= row["time"] <= until_us


KIND = Kind(
    name="broker_died",
    meaning="A broker's process ended, and no line of it says that it shuts down; the same broker started again.",
    source="kafka.server.KafkaServer.startup and shutdown, BrokerServer in KRaft: an orderly end is logged",
    detect=detect,
    causes=("broker_halted", "log_directory_failed"),
)
