"""A broker was shut down in order: alone, in a rolling restart, or with all others at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipelines.incidents.broker_runs import Run, is_orderly, runs
from pipelines.incidents.facts import Facts, Node, node, place
from pipelines.incidents.incident import INFO, Incident, Place
from pipelines.incidents.kind import Kind
from pipelines.incidents.words import brokers, clock, lasting

#: Brokers that stop within this of each other and do not come back stop together, microseconds.
TOGETHER_US = 120_000_000


class Stop(NamedTuple):
    """An orderly end of a run.

    Attributes:
        began_us: the broker begins to shut down.
        up_us: the same broker has started again; None: not within the logs.
    """

    node: Node
    began_us: int
    up_us: int | None


def stops(facts: Facts) -> list[Stop]:
    """All orderly ends, in order of time."""
    ends = []
    for broker, those in runs(facts.lifecycle, facts.controller_events, facts.files).items():
        for run, after in zip(those, [*those[1:], None], strict=True):
            if run.stopping is not None and (
                run.stopped is not None or after is None or _is_orderly(facts, broker, after)
            ):
                ends.append(Stop(broker, run.stopping, _up(after)))
    return sorted(ends, key=lambda stop: (stop.node[0], stop.began_us, stop.node[1]))


def _is_orderly(facts: Facts, broker: Node, after: Run) -> bool:
    return after.starting is not None and is_orderly(
        facts.lifecycle, broker, after.starting, after.started or after.starting + TOGETHER_US
    )


def _up(after: Run | None) -> int | None:
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
        if is_all and len(ends) > 1 and ends[-1].began_us - ends[0].began_us <= TOGETHER_US:
            whole[cluster_id] = ends
    return whole


def shutdown_times(facts: Facts) -> dict[str, int]:
    """When the first broker of each cluster that is shut down as a whole began to stop, microseconds."""
    return {cluster_id: min(stop.began_us for stop in ends) for cluster_id, ends in shutdowns(facts).items()}


def detect(facts: Facts) -> Iterable[Incident]:
    """Orderly ends, those with which a whole cluster ends as one."""
    places = {
        (node(row), row["time"]): place(row)
        for row in facts.lifecycle
        if row["event"] in ("shutting_down", "signal", "controlled_shutdown")
    }
    whole = shutdowns(facts)
    for cluster_id, ends in whole.items():
        yield _cluster_stopped(cluster_id, ends, places)
    for stop in stops(facts):
        if stop not in whole.get(stop.node[0], ()):
            yield _stopped(stop, places)


def _cluster_stopped(cluster_id: str, ends: Sequence[Stop], places: dict[tuple[Node, int], Place]) -> Incident:
    start, last = ends[0].began_us, ends[-1].began_us
    ids = sorted(stop.node[1] for stop in ends)
    when = f"at {clock(start)}" if last - start < 1_000_000 else f"from {clock(start)} to {clock(last)}"
    return Incident(
        kind=KIND.name,
        severity=INFO,
        cluster_id=cluster_id,
        start_us=start,
        end_us=None,
        broker_ids=tuple(ids),
        sentence=f"The whole cluster was shut down {when}: {brokers(ids)}. Its logs end with it.",
        figures={"brokers": len(ids)},
        places=tuple(places[stop.node, stop.began_us] for stop in ends if (stop.node, stop.began_us) in places),
    )


def _stopped(stop: Stop, places: dict[tuple[Node, int], Place]) -> Incident:
    (cluster_id, broker_id), start, up = stop
    back = "it did not start again within the logs"
    if up is not None:
        back = f"it was up again at {clock(up)}, after {lasting(up - start)}"
    return Incident(
        kind=KIND.name,
        severity=INFO,
        cluster_id=cluster_id,
        start_us=start,
        end_us=up,
        broker_ids=(broker_id,),
        sentence=f"Broker {broker_id} began an orderly shutdown at {clock(start)}; {back}.",
        figures={} if up is None else {"away_s": (up - start) / 1e6},
        places=tuple([places[stop.node, start]] if (stop.node, start) in places else []),
        weight=0.0 if up is None else (up - start) / 1e6,
    )


KIND = Kind(
    name="broker_stopped",
    meaning="A broker was shut down in order, or a whole cluster was.",
    source="kafka.server.KafkaServer.shutdown, BrokerServer.shutdown; SIGTERM by LoggingSignalHandler",
    detect=detect,
    causes=("broker_halted",),
)
