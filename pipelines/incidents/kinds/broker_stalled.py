"""A broker wrote no line for seconds, though it wrote steadily before and after, and went on in the same process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pipelines.incidents.facts import Facts, Node, Row, node
from pipelines.incidents.incident import MAJOR, MINOR, Incident
from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds.broker_died import BOOT_US, restarts
from pipelines.incidents.questions import STEADY_S
from pipelines.incidents.words import clock, lasting, span

#: Of the seconds beside a silence, so many have a line of a broker that writes steadily.
STEADY_SHARE = 0.9
#: A silence of this length is worth more than a note, microseconds.
_LONG_US = 5_000_000


def detect(facts: Facts) -> Iterable[Incident]:
    """Silences of brokers that write steadily, within one run."""
    ends = ends_of_runs(facts)
    for row in facts.silences:
        if is_steady(facts, row) and not any(_is_near(row, time) for time in ends[node(row)]):
            yield _stalled(row)


def ends_of_runs(facts: Facts) -> dict[Node, list[int]]:
    """When processes of each broker began, and began to end: a silence there is another thing."""
    times: dict[Node, list[int]] = defaultdict(list)
    for restart in restarts(facts):
        times[restart.node] += [restart.last_us, restart.boot_us]
    for row in facts.lifecycle:
        if row["event"] in ("starting", "started", "shutting_down", "signal", "controlled_shutdown", "shut_down"):
            times[node(row)].append(row["time"])
    return times


def _is_near(row: Row, time_us: int) -> bool:
    """Whether a process began or ended meanwhile, or within seconds of the silence."""
    return bool(row["start_time"] - BOOT_US <= time_us <= row["end_time"] + 1_000_000)


def is_steady(facts: Facts, row: Row) -> bool:
    """Whether the broker wrote a line in nearly each second before and after."""
    after_s = min(STEADY_S, (facts.ends.get(row["cluster_id"], 0) - row["end_time"]) // 1_000_000)
    enough = after_s >= 3
    return bool(
        enough and row["seconds_before"] >= STEADY_SHARE * STEADY_S and row["seconds_after"] >= STEADY_SHARE * after_s
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
