"""Rows of ``gold.broker_metrics`` from what is known of each broker: its spans, counts and events. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import stdev
from typing import Any, Final

from pipelines.metrics import mbeans
from pipelines.metrics.intervals import RunningInterval, RunSpan, Steps
from pipelines.metrics.mbeans import Metric
from pipelines.replay import partition_counts as p
from schemas.metrics import AT_LEAST, AT_MOST, EXACT, PERCENTILES

Row = dict[str, Any]
#: Cluster and broker.
Node = tuple[str, int]

# Values of `measured_reason`.
LOG_BEGINS: Final = "log_begins"
REPLICAS_NOT_LOGGED: Final = "replicas_not_logged"
MIN_ISR_NOT_LOGGED: Final = "min_isr_not_logged"
REQUESTS_IN_FLIGHT: Final = "requests_in_flight"
ON_SEVERAL_LISTS: Final = "on_several_lists"
BEFORE_THE_ANSWER: Final = "before_the_answer"
FIRST_TO_LAST_LINE: Final = "first_to_last_line"


@dataclass(frozen=True)
class BrokerFigures:
    """What is known of one broker beside its requests; instants in microseconds."""

    intervals: Sequence[RunningInterval]  #: in which it ran and its log tells of its partitions
    counts: Mapping[str, Steps] = field(default_factory=dict)  #: `pipelines.replay.partition_counts.COUNTS`
    #: shrinks, expands: changes of ISRs that it made as leader
    shrinks: Sequence[int] = ()
    expands: Sequence[int] = ()
    is_controller: bool = False  #: it may become the active controller
    active: Steps = field(default_factory=lambda: Steps((), ()))  #: whether it is, as steps of 0 and 1
    offline: Steps = field(default_factory=lambda: Steps((), ()))  #: partitions of the cluster that have no leader
    unclean: Sequence[int] = ()  #: elections that it decided
    #: changes of the live brokers that it handled: when it was done, and how long it took, ms; None where its release
    #: has no such metric
    elections: Sequence[tuple[int, float]] | None = None


def rows_of(node: Node, broker: BrokerFigures, length_us: int) -> Iterator[Row]:
    """All rows of a broker but those about requests."""
    if broker.counts:
        yield from _of_partitions(node, broker)
        yield from _meter(node, broker, mbeans.ISR_SHRINKS, broker.shrinks, length_us)
        yield from _meter(node, broker, mbeans.ISR_EXPANDS, broker.expands, length_us)
    if broker.is_controller:
        yield from _of_controller(node, broker, length_us)


def _of_partitions(node: Node, broker: BrokerFigures) -> Iterator[Row]:
    unknown = {name: broker.counts[name] for name in (p.REPLICAS_UNKNOWN, p.MIN_ISR_UNKNOWN)}
    gauges = (
        (mbeans.LEADER_COUNT, p.LEADERS, None, None),
        (mbeans.PARTITION_COUNT, p.HOSTED, None, None),
        (mbeans.UNDER_REPLICATED, p.UNDER_REPLICATED, p.REPLICAS_UNKNOWN, REPLICAS_NOT_LOGGED),
        (mbeans.UNDER_MIN_ISR, p.UNDER_MIN_ISR, p.MIN_ISR_UNKNOWN, MIN_ISR_NOT_LOGGED),
        (mbeans.AT_MIN_ISR, p.AT_MIN_ISR, p.MIN_ISR_UNKNOWN, MIN_ISR_NOT_LOGGED),
    )
    for metric, count, lacking, why in gauges:
        for interval, value, highest in broker.counts[count].over(broker.intervals):
            reason = None if interval.from_start else LOG_BEGINS
            if reason is None and lacking and unknown[lacking].highest(interval.first_us, interval.last_us):
                reason = why
            yield gauge(node, interval.start_us, metric, value, highest, AT_LEAST if reason else EXACT, reason)


def _of_controller(node: Node, broker: BrokerFigures, length_us: int) -> Iterator[Row]:
    for interval, value, highest in broker.active.over(broker.intervals):
        known = interval.from_start or bool(broker.active.times_us and broker.active.times_us[0] <= interval.first_us)
        bound = (EXACT, None) if known else (AT_LEAST, LOG_BEGINS)
        yield gauge(node, interval.start_us, mbeans.ACTIVE_CONTROLLER, value, highest, *bound)
        if highest:
            offline = broker.offline
            last_us = interval.last_us - 1
            most = offline.highest(interval.first_us, interval.last_us)
            yield gauge(node, interval.start_us, mbeans.OFFLINE_PARTITIONS, offline.at(last_us), most, *bound)
    yield from _meter(node, broker, mbeans.UNCLEAN_ELECTIONS, broker.unclean, length_us)
    if broker.elections is not None:
        by_interval: dict[int, list[float]] = defaultdict(list)
        for time_us, took_ms in broker.elections:
            by_interval[time_us // length_us * length_us].append(took_ms)
        for start_us, took in sorted(by_interval.items()):
            yield _timer(node, start_us, sorted(took))


def _timer(node: Node, start_us: int, took_ms: Sequence[float]) -> Row:
    def percentile(share: float) -> float:
        return took_ms[ceil(share * len(took_ms)) - 1]

    return mbeans.LEADER_ELECTIONS.row(
        node,
        start_us,
        AT_LEAST,
        FIRST_TO_LAST_LINE,
        event_count=len(took_ms),
        mean_ms=sum(took_ms) / len(took_ms),
        min_ms=took_ms[0],
        max_ms=took_ms[-1],
        stddev_ms=stdev(took_ms) if len(took_ms) > 1 else 0.0,
        **{name: percentile(share) for name, share in PERCENTILES.items()},
    )


def _meter(node: Node, broker: BrokerFigures, metric: Metric, instants: Iterable[int], length_us: int) -> Iterator[Row]:
    """A row per interval, also of none: lines of the default level tell each event."""
    counts: dict[int, int] = defaultdict(int)
    for time_us in instants:
        counts[time_us // length_us * length_us] += 1
    for interval in broker.intervals:
        yield metric.row(node, interval.start_us, EXACT, None, event_count=counts[interval.start_us])


def gauge(
    node: Node,
    start_us: int,
    metric: Metric,
    value: float,
    highest: float | None,
    measured: str,
    reason: str | None,
    **tags: object,
) -> Row:
    """A row of a gauge."""
    most = None if highest is None else float(highest)
    return metric.row(node, start_us, measured, reason, value=float(value), value_max=most, **tags)


def purgatory_rows(
    node: Node, operation: str, started: Mapping[int, int], ended: Mapping[int, int], wanted: Iterable[int]
) -> Iterator[Row]:
    """Rows of a purgatory.

    Args:
        operation: Produce or Fetch.
        started, ended: by interval, how many operations began to wait and were answered.
        wanted: intervals that have requests at all.
    """
    waiting, sums = 0, {}
    for start_us in sorted({*started, *ended, *wanted}):
        waiting += started.get(start_us, 0) - ended.get(start_us, 0)
        sums[start_us] = waiting
    for start_us in sorted(wanted):
        tags = {"delayedOperation": operation}
        number = sums[start_us]
        yield gauge(node, start_us, mbeans.DELAYED_OPERATIONS, number, None, AT_LEAST, REQUESTS_IN_FLIGHT, **tags)
        yield gauge(node, start_us, mbeans.PURGATORY_SIZE, number, None, AT_LEAST, ON_SEVERAL_LISTS, **tags)


def lag_row(node: Node, start_us: int, lag: int) -> Row:
    """The largest lag of a follower."""
    return gauge(node, start_us, mbeans.MAX_LAG, lag, lag, AT_MOST, BEFORE_THE_ANSWER, clientId="Replica")


def spans_of(states: Sequence[Row], first_us: int, last_us: int) -> list[RunSpan]:
    """Return when a broker ran.

    Args:
        states: rows of `gold.broker_timeline` of the broker, in order.
        first_us, last_us: first and last line of the broker.
    """
    spans: list[RunSpan] = []
    begun: tuple[int, bool] | None = None
    for row in (*states, {"state": "down", "begin_by_time": last_us + 1}):
        state, time_us = row["state"], row["begin_by_time"]
        is_end = state in ("starting", "down", "unknown")
        if begun is not None and is_end and time_us is not None:
            spans += [RunSpan(begun[0], time_us, begun[1])] if time_us > begun[0] else []
            begun = None
        if begun is None and state in ("starting", "up", "stopping"):
            begun = first_us if time_us is None else time_us, state == "starting"
    return spans
