"""A broker wrote no line for seconds, though it wrote steadily before and after, and went on in the same process."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipelines.incidents.facts import Facts, Node, Row, node
from pipelines.incidents.incident import MAJOR, MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_died import BOOT_US, STEADY_SHARE, restarts
from pipelines.incidents.questions import STEADY_S, STEPS_PER_S
from pipelines.incidents.words import clock, lasting, span

#: Of those after it, so many: what it led others may lead by then, and it has less to write.
_AGAIN_SHARE = 0.35
#: Fewer seconds after a silence do not show how steadily a broker writes.
_AFTER_MIN_S = 3
#: A silence of this length is worth more than a note, microseconds.
_LONG_US = 5_000_000
#: A broker that goes on notices within this that its session has expired, microseconds.
_NOTICED_US = 5_000_000
_STOPPING = ("shutting_down", "signal", "controlled_shutdown", "shut_down")


class Turn(NamedTuple):
    """A process begins or ends.

    Attributes:
        time_us: its line, or the last line of a process that died.
        settled_us: silences that begin until then belong to it.
        is_end: it ends.
    """

    time_us: int
    settled_us: int
    is_end: bool


def detect(facts: Facts) -> Iterable[Incident]:
    """Silences of brokers that write steadily, within one run."""
    of_nodes = turns(facts)
    for row in facts.silences:
        beside = of_nodes[node(row)]
        near = any(
            row["start_time"] <= turn.settled_us and turn.time_us <= row["end_time"] + 1_000_000 for turn in beside
        )
        if near or row["steps_before"] < STEADY_SHARE * STEADY_S * STEPS_PER_S:
            continue
        # A broker whose partitions have just moved is asked for nothing more.
        if _is_missed(facts, row) or (_goes_on(facts, row, beside) and not row["moved_before"]):
            yield _stalled(row)


def turns(facts: Facts) -> dict[Node, list[Turn]]:
    """Begins and ends of the processes of each broker: a silence there is another thing."""
    of_nodes: dict[Node, list[Turn]] = defaultdict(list)
    started: dict[Node, list[int]] = defaultdict(list)
    for row in facts.lifecycle:
        if row["event"] == "started":
            started[node(row)].append(row["time"])
        elif row["event"] in _STOPPING:
            of_nodes[node(row)].append(Turn(row["time"], row["time"] + BOOT_US, True))
    begins = [(restart.node, restart.boot_us) for restart in restarts(facts)]
    begins += [(node(row), row["time"]) for row in facts.lifecycle if row["event"] == "starting"]
    for of_node, time in begins:
        ups = started[of_node]
        place = bisect_right(ups, time)
        is_up = place < len(ups) and ups[place] - time <= BOOT_US
        settled = ups[place] + _AFTER_MIN_S * 1_000_000 if is_up else time + BOOT_US
        of_nodes[of_node].append(Turn(time, settled, False))
    for restart in restarts(facts):
        of_nodes[restart.node].append(Turn(restart.last_us, restart.boot_us, True))
    return of_nodes


def _goes_on(facts: Facts, row: Row, beside: Sequence[Turn]) -> bool:
    ends = [turn.time_us for turn in beside if turn.is_end and turn.time_us > row["end_time"]]
    after_us = min([facts.ends.get(row["cluster_id"], 0), *ends]) - row["end_time"]
    after_s = min(STEADY_S, after_us // 1_000_000)
    return bool(after_s >= _AFTER_MIN_S and row["steps_after"] >= _AGAIN_SHARE * after_s * STEPS_PER_S)


def _is_missed(facts: Facts, row: Row) -> bool:
    """Whether it was missed meanwhile: what it led then others lead, and it has little to write after."""
    session_ended = any(
        event["event"] == "zookeeper_expired"
        and node(event) == node(row)
        and row["start_time"] < event["time"] <= row["end_time"] + _NOTICED_US
        for event in facts.lifecycle
    )
    return session_ended or any(
        event["event"] in ("broker_fenced", "broker_failed")
        and event["cluster_id"] == row["cluster_id"]
        and event["broker_id"] != row["broker_id"]
        and row["broker_id"] in (event["subject_broker_id"], *(event["brokers"] or ()))
        and row["start_time"] < event["time"] <= row["end_time"]
        for event in facts.controller_events
    )


def _stalled(row: Row) -> Incident:
    start, end, broker_id = row["start_time"], row["end_time"], row["broker_id"]
    return Incident(
        kind=KIND.name,
        severity=MAJOR if end - start >= _LONG_US else MINOR,
        cluster_id=row["cluster_id"],
        start_us=start,
        end_us=end,
        broker_ids=(broker_id,),
        sentence=(
            f"Broker {broker_id} stood still {span(start, end)}: it wrote no line to any log, and went on in the same "
            "process."
        ),
        advice=(
            f"Look at what stopped the whole process at {clock(start)} for {lasting(end - start)}: a garbage "
            "collection (gc.log), a frozen or migrated virtual machine, a disk that did not answer, SIGSTOP."
        ),
        figures={"silent_s": (end - start) / 1e6},
        weight=(end - start) / 1e6,
    )


KIND = Kind(
    name="broker_stalled",
    meaning="A broker that writes in nearly each second wrote nothing for over two, and went on in the same process.",
    source="A process that runs logs its requests and its peers' as they come: silence of all logs at once is its own",
    detect=detect,
)
