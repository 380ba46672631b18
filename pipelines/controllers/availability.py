"""Windows in which a partition had no leader, or fewer in-sync replicas than ``min.insync.replicas``.

They are read off the timeline of the partition. Epochs that no line shows are counted: in one of them the window may
have been interrupted. Under ZooKeeper every failover leaves a leaderless state for some milliseconds. A window begins
there only if no leader was elected within a second.

States that follow within the tick of a log, or faster than two clocks agree, leave no window. A window proves nothing
wrong: which partitions are unavailable follows from which brokers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.controllers.partition_timeline import DELETED, LEADERLESS, PartitionSpan

WITHOUT_LEADER: Final = "offline"
UNDER_MIN_ISR: Final = "under_min_isr"

#: A ZooKeeper controller that elects within this time does so at once.
_AT_ONCE_US: Final = 1_000_000
#: (broker, instant, number of replicas or None): the partition's min.insync.replicas as that broker knew it.
MinIsrOf = Callable[[int, int, int | None], int | None]


class Unavailability(NamedTuple):
    """A row of gold `availability`, without cluster and partition. A clock is a broker id: its clock gave the time."""

    state: str
    started_time_us: int
    started_clock: int
    ended_time_us: int | None  #: None where it lasts until the logs end
    ended_clock: int | None
    #: leader_epoch, isr: with which it began
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None
    min_insync_replicas: int | None = None
    states_missing: int = 0  #: partition epochs within it that no line shows
    produces_refused: int | None = None
    previous_leader: int | None = None  #: leader before a window without leader; None if no line shows it
    #: last instant at which the state before certainly held; None if no line shows the state before
    started_after_time_us: int | None = None


def _classify_span(span: PartitionSpan, before: str | None, min_isr: int | None) -> str | None:
    if span.state == LEADERLESS:
        return WITHOUT_LEADER
    if span.state == DELETED:
        return None
    if span.isr is None or min_isr is None:
        return before if before == UNDER_MIN_ISR and span.isr is None else None
    return UNDER_MIN_ISR if len(span.isr) < min_isr else None


def find_unavailability(
    timeline: Sequence[PartitionSpan], min_isr_of: MinIsrOf, kraft: bool, refused: Mapping[int, int] | None = None
) -> list[Unavailability]:
    """Return the times of one partition without a leader or below min.insync.replicas, in order.

    Args:
        timeline: states of the partition, in order.
        min_isr_of: returns min.insync.replicas of a broker at a time.
        kraft: True if the cluster runs KRaft.
        refused: by second since the epoch, the number of acks=all produces refused with too few in-sync replicas.
    """
    windows = [
        window
        for _, spans in groupby(timeline, key=lambda span: span.incarnation)
        for window in _find_in_incarnation(spans, min_isr_of)
    ]
    windows = [
        window._replace(produces_refused=_count_refused(window, refused or {}))
        if window.state == UNDER_MIN_ISR
        else window
        for window in windows
        if kraft or window.state == UNDER_MIN_ISR or not _is_at_once(window)
    ]
    lasting = (
        window for window in windows if window.ended_time_us is None or window.ended_time_us > window.started_time_us
    )
    return sorted(lasting, key=lambda window: (window.started_time_us, window.state))


def _find_in_incarnation(spans: Iterable[PartitionSpan], min_isr_of: MinIsrOf) -> Iterator[Unavailability]:
    current: Unavailability | None = None
    leader, epoch, is_held = None, None, False
    for span in spans:
        witness = span.begin_clock if span.leader is None else span.leader
        min_isr = min_isr_of(witness, span.begin_by_us, None if span.replicas is None else len(span.replicas))
        kind = _classify_span(span, None if current is None else current.state, min_isr)
        if current is not None:
            if None not in (epoch, span.partition_epoch):
                missing = max(0, (span.partition_epoch or 0) - (epoch or 0) - 1)
                current = current._replace(states_missing=current.states_missing + missing)
            if kind != current.state:
                ended_clock = None if span.state == DELETED else span.begin_clock
                yield current._replace(ended_time_us=span.begin_by_us, ended_clock=ended_clock)
                current = None
            elif kind == WITHOUT_LEADER and is_held:
                # The epoch follows the machine's line.
                current, is_held = current._replace(leader_epoch=span.leader_epoch), span.partition_epoch == epoch
        if current is None and kind is not None:
            began = span.begin_by_us, span.begin_clock
            current = Unavailability(*(kind, *began, None, None, span.leader_epoch, span.isr, min_isr))
            current = current._replace(started_after_time_us=span.begin_after_us)
            if kind == WITHOUT_LEADER:
                current, is_held = current._replace(previous_leader=leader), span.partition_epoch == epoch
        leader = leader if span.leader is None else span.leader
        epoch = epoch if span.partition_epoch is None else span.partition_epoch
    if current is not None:
        yield current


def _is_at_once(window: Unavailability) -> bool:
    ended = window.ended_time_us
    return ended is not None and ended - window.started_time_us < _AT_ONCE_US


def _count_refused(window: Unavailability, refused: Mapping[int, int]) -> int:
    until = window.ended_time_us
    return sum(
        count
        for second, count in refused.items()
        if second >= window.started_time_us // SECOND_US and (until is None or second <= until // SECOND_US)
    )
