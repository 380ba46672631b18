"""Handovers of a leadership: from the failure that the controller saw to the new leader's first answer.

A ZooKeeper controller that learns of a failed broker (`KafkaController.onBrokerFailure`) moves each partition that it
led to OfflinePartition, elects leaders from the ISR (`Election.leaderForOffline`), and lets go of the replicas; one
that has no candidate stays offline, and its leader becomes -1. In KRaft `ReplicationControlManager` does the same in
one write (handleBrokerFenced, handleBrokerInControlledShutdown). A controller that was itself just elected finds
leaders dead that no line of its own reported: its election is what detects them.

Instants of a handover are on the clocks of several brokers: each one says whose it is, and a duration across two clocks
is marked approximate. Lines may be missing: what is not there is `not_observed`. What breaks the promise is in
`unhandled`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pipelines.base.instants import NEVER_US
from pipelines.controllers.failover_causes import (
    CLOCKS_AGREE_US,
    NEW_CONTROLLER,
    PREFERRED,
    REASSIGNMENT,
    Failure,
    changed_at,
    detection,
    is_unclean,
    offline_moments,
    reason_of,
    refused_moments,
    returns,
    stepped_down,
    strategy_of,
    topic_deleted_us,
)
from pipelines.kafka.controller_rows import NO_LEADER, NOWHERE, EventRow, StateRow
from pipelines.kafka.partition_history import LeaderEpoch, Moment, PartitionHistory, since_us

COMPLETED: Final = "completed"
OFFLINE_REPORTED: Final = "offline_reported"
SUPERSEDED: Final = "superseded"
NOT_OBSERVED: Final = "not_observed"
UNFINISHED: Final = "unfinished"


#: Instants whose distance is told, and whether only on one clock. There it is none if it is negative: a metadata record
#: bears the time at which its batch was begun.
_SPANS: Final = {
    "detected_to_elected": True,
    "elected_to_sent": True,
    "received_to_taken_up": True,
    "taken_up_to_serving": True,
    "detected_to_taken_up": False,
    "detected_to_serving": False,
    "elected_to_stepped_down": False,
}


class FailoverRow(NamedTuple):
    """A row of gold `failovers`, whose instants are times and clocks there; a clock is a broker's id.

    Received, taken up and serving are on the new leader's clock, sent on the one that elected.
    """

    reason: str
    old_leader_epoch: int
    new_leader_epoch: int | None
    old_leader: int
    new_leader: int | None
    strategy: str | None
    detected: Moment | None
    elected: Moment | None
    sent: Moment | None
    received: Moment | None
    taken_up: Moment | None
    serving: Moment | None
    stepped_down: Moment | None
    ended_offline: bool
    isr_before: tuple[int, ...] | None
    outcome: str
    approximate: bool

    def spans_us(self) -> dict[str, int | None]:
        """How long it took from one instant to another, by column of gold without its unit."""
        spans = {}
        for name, one_clock in _SPANS.items():
            begin, end = name.split("_to_")
            spans[name] = _span_us(getattr(self, begin), getattr(self, end), one_clock)
        return spans


def _span_us(begin: Moment | None, end: Moment | None, one_clock: bool) -> int | None:
    if begin is None or end is None or (one_clock and begin.broker_id != end.broker_id):
        return None
    span_us = end.time_us - begin.time_us
    return None if one_clock and span_us < 0 else span_us


def failovers(
    history: PartitionHistory,
    states: Sequence[StateRow] = (),
    events: Sequence[EventRow] = (),
    serving: Mapping[tuple[int, int], int] | None = None,
) -> list[FailoverRow]:
    """Handovers of one partition.

    Args:
        states: `silver.partition_states` of the partition.
        events: `silver.controller_events` of the cluster: failures and returns of brokers, elections of controllers;
            those that name a partition or a topic, of this one only. And starts of brokers, of their lifecycles.
        serving: when a leader answered its first produce or fetch of the partition, by (broker, leader epoch).
    """
    chain = [leadership for leadership in history.epochs if leadership.leader is not None]
    result: list[FailoverRow] = []
    for at, old in enumerate(chain):
        if old.leader is None or old.leader == NO_LEADER:
            continue
        later = [leadership for leadership in chain[at + 1 :] if leadership.incarnation == old.incarnation]
        new = next((leadership for leadership in later if leadership.leader != NO_LEADER), None)
        between = later[: later.index(new)] if new is not None else later
        change = _Change(old, between, new, len(later) - len(between) > 1)
        begun_us = since_us(chain, at)
        failure = detection(events, old, begun_us, between[0] if between else new)
        deleted_us = topic_deleted_us(states, events, begun_us)
        if new is None and _ended_with_topic(failure, deleted_us):
            continue
        if change.happened(states, failure):
            result.append(_row(change, failure, states, events, serving or {}))
    return result


def _ended_with_topic(failure: Failure | None, deleted_us: int) -> bool:
    """A leadership without a next one ended as its topic was deleted, not by a failure.

    A ZooKeeper controller moves the partitions of a topic that it deletes to OfflinePartition and takes the replicas
    out of the ISR, the leader last: that its own election came some time before is no cause.
    """
    if failure is None or failure.reason == NEW_CONTROLLER:
        return deleted_us < NEVER_US
    return failure.moment.time_us >= deleted_us - CLOCKS_AGREE_US


class _Change(NamedTuple):
    """A leadership, the leaderless epochs after it, and the next leadership, if any."""

    old: LeaderEpoch
    between: Sequence[LeaderEpoch]
    new: LeaderEpoch | None
    superseded: bool

    def happened(self, states: Sequence[StateRow], failure: Failure | None) -> bool:
        """The same leader in a new epoch is no handover, unless the partition was offline in between."""
        if self.new is None:
            return failure is not None or bool(self.between)
        if self.new.leader != self.old.leader or self.between:
            return True
        return bool(offline_moments(states, (), self.old.begun_us(), changed_at(self.new)))


def _outcome(change: _Change, offline: Sequence[Moment], refused: Sequence[Moment], ended: bool, served: bool) -> str:
    new = change.new
    if new is None:
        return OFFLINE_REPORTED if offline else UNFINISHED if refused else NOT_OBSERVED
    if ended:
        return OFFLINE_REPORTED
    if served or new.taken_up is not None or new.received is not None:
        return COMPLETED
    return SUPERSEDED if change.superseded else UNFINISHED


def _row(
    change: _Change,
    failure: Failure | None,
    states: Sequence[StateRow],
    events: Sequence[EventRow],
    serving: Mapping[tuple[int, int], int],
) -> FailoverRow:
    old, between, new, _ = change
    assert old.leader is not None
    reason = reason_of(old, between, new, failure)
    detected = None if failure is None or reason in (PREFERRED, REASSIGNMENT) else failure.moment
    after_us = old.begun_us() if detected is None else detected.time_us - 1
    offline = offline_moments(states, between, after_us, changed_at(new))
    refused = refused_moments(states, after_us) if new is None else []
    ended = bool(offline) and (new is None or returns(events, offline[0].time_us, changed_at(new)))
    elected = sent = received = taken_up = served = None
    if new is not None and new.leader is not None:
        elected, sent, received, taken_up = new.elected, new.sent, new.received, new.taken_up
        served_us = serving.get((new.leader, new.leader_epoch))
        if served_us is not None:
            served = Moment(served_us, new.leader, NOWHERE)
    down = None if new is None or new.leader == old.leader else stepped_down(old, (*between, new), events)
    unclean = new is not None and is_unclean((old, *between), new, events)
    return FailoverRow(
        reason=reason,
        old_leader_epoch=old.leader_epoch,
        new_leader_epoch=None if new is None else new.leader_epoch,
        old_leader=old.leader,
        new_leader=None if new is None else new.leader,
        strategy=strategy_of(new, reason, unclean),
        detected=detected,
        elected=elected,
        sent=sent,
        received=received,
        taken_up=taken_up,
        serving=served,
        stepped_down=down,
        ended_offline=ended,
        isr_before=old.last_isr,
        outcome=_outcome(change, offline, refused, ended, served is not None),
        approximate=detected is not None and new is not None and detected.broker_id != new.leader,
    )
