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

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.controller_rows import (
    NO_LEADER,
    NON_EXISTENT,
    NOWHERE,
    OFFLINE,
    ONLINE,
    EventRow,
    StateRow,
    list_added_brokers,
    list_subjects,
)
from highwater.pipelines.kafka.partition_history import (
    LeaderEpoch,
    Moment,
    PartitionHistory,
    find_leader_start,
    make_moment,
)

# What ended a leadership: the failure that a controller saw, or its own will; and how the next leader was chosen.
#
# The names of strategies are the names of `PartitionLeaderElectionStrategy` (ZooKeeper). In KRaft `offline` means
# `PartitionChangeBuilder.Election.ONLINE`.

#: Clocks of two brokers are taken to agree this well where an event of one has to be found for a line of the other.
CLOCKS_AGREE_US: Final = 1_000_000
#: A record may bear the time of a batch that was begun before it was decided.
_BATCH_US: Final = 100_000
#: Lines of one failure are no further apart: a controller may hang in between, while it closes a connection.
_ONE_FAILURE_US: Final = 60_000_000


#: Event of a broker's lifecycle, as `EventRow`.
STARTED: Final = "starting"

PREFERRED: Final = "preferred"
REASSIGNMENT: Final = "reassignment"
NEW_CONTROLLER: Final = "found_by_new_controller"
#: The leader lives, the directory with its replica does not (KIP-112; in KRaft KIP-858).
LOG_DIR_FAILED: Final = "log_dir_failed"
SHUT_DOWN: Final = "controlled_shutdown"
UNKNOWN: Final = "unknown"
#: Strategies of KIP-966: a replica outside the ISR that certainly has all that was committed; and the last leader
#: known, which may have lost what it had not flushed.
ELR: Final = "elr"
LAST_KNOWN_LEADER: Final = "last_known_leader"

_FAILURES: Final = {
    "broker_failed": "failed",
    "brokers_changed": "failed",
    "broker_fenced": "fenced",
    "log_dir_failed": LOG_DIR_FAILED,
    SHUT_DOWN: SHUT_DOWN,
}
_STRATEGY: Final = {
    "failed": "offline",
    "fenced": "offline",
    LOG_DIR_FAILED: "offline",
    NEW_CONTROLLER: "offline",
    SHUT_DOWN: SHUT_DOWN,
    PREFERRED: "preferred",
    REASSIGNMENT: "reassign",
}
#: What the active KRaft controller logs as it decides; each node's replay of the record follows.
_DECISIONS: Final = ("Fencing broker", "Unfenced broker", "Fenced broker", "Directories ")


class Failure(NamedTuple):
    """A controller's line that shows that a broker failed, was fenced or shuts down."""

    moment: Moment
    reason: str
    decision: bool


def find_failures(events: Iterable[EventRow], broker_id: int) -> list[Failure]:
    """Return the failures of a broker in time order."""
    failures = [
        Failure(make_moment(row), _FAILURES[row.event], (row.detail or "").startswith(_DECISIONS))
        for row in events
        if row.event in _FAILURES and broker_id in list_subjects(row)
    ]
    return sorted(failures, key=lambda failure: failure.moment)


def get_change_us(new: LeaderEpoch | None) -> int:
    """Return when a leadership was decided or first shown, us. `NEVER_US` for None."""
    if new is None:
        return NEVER_US
    return new.elected.time_us if new.elected is not None else new.begun_us()


def find_detection(
    events: Sequence[EventRow], old: LeaderEpoch, begun_us: int, new: LeaderEpoch | None
) -> Failure | None:
    """Return the first line of the failure that ended a leadership. None if no line shows one.

    The last failure before `new` counts. One failure may have several lines: the change of the live brokers and the
    callback of `processBrokerChange`, or repeated requests of a controlled shutdown. Its first line is returned, unless
    the broker came back in between.

    Args:
        events: controller events about the old leader.
        old: the leadership that ended.
        begun_us: since when the broker led, us. This may be several epochs earlier: if a dead follower is removed from
            the ISR, the leader stays and the leader epoch grows.
        new: the next leadership, possibly without a leader. None if there is none.
    """
    assert old.leader is not None
    until = get_change_us(new)
    elected = None if new is None else new.elected
    slack = CLOCKS_AGREE_US if elected is None or new is None else 0 if new.offset is None else _BATCH_US
    within = [
        failure for failure in find_failures(events, old.leader) if begun_us <= failure.moment.time_us <= until + slack
    ]
    # Only partitions in the directory are moved, and these at once: what comes later has another cause.
    within = [
        failure
        for failure in within
        if failure.reason != LOG_DIR_FAILED or until - failure.moment.time_us <= CLOCKS_AGREE_US
    ]
    within = [failure for failure in within if failure.decision] or within
    if elected is not None:
        within = [failure for failure in within if failure.moment.broker_id == elected.broker_id] or within
    if new is not None and new.from_state == ONLINE:
        # Of lines of the election's own instant those came after it that would have taken the leader away before.
        within = [
            failure for failure in within if failure.moment.time_us < until or failure.reason == SHUT_DOWN
        ] or within
    if not within:
        recorded = new is not None and new.offset is not None
        # A new controller lives: it finds others dead, never itself.
        itself = elected is not None and elected.broker_id == old.leader
        return None if recorded or itself else _find_new_controller(events, begun_us, elected)
    first = within[-1]
    for failure in reversed(within[:-1]):
        apart = first.moment.time_us - failure.moment.time_us > _ONE_FAILURE_US
        if failure.reason != first.reason or apart or _has_come_back(events, old.leader, failure.moment, first.moment):
            break
        first = failure
    return first


def _has_come_back(events: Iterable[EventRow], broker_id: int, after: Moment, before: Moment) -> bool:
    return any(
        (row.event in ("broker_registered", "broker_unfenced") and broker_id in list_subjects(row))
        or (row.event == "brokers_changed" and broker_id in list_added_brokers(row))
        for row in events
        if after.time_us < row.time_us < before.time_us
    )


def _find_new_controller(events: Iterable[EventRow], begun_us: int, elected: Moment | None) -> Failure | None:
    """Return a failure that a new controller found at its start and did not log (`onControllerFailover`), or None."""
    if elected is None:
        return None
    moments = [
        make_moment(row)
        for row in events
        if row.event == "controller_elected" and row.subject_broker_id == row.broker_id == elected.broker_id
    ]
    within = [moment for moment in moments if begun_us < moment.time_us <= elected.time_us]
    return Failure(max(within), NEW_CONTROLLER, True) if within else None


def derive_reason(
    old: LeaderEpoch, between: Sequence[LeaderEpoch], new: LeaderEpoch | None, failure: Failure | None
) -> str:
    """Return why a leadership ended: for example failure, move or reassignment.

    A leader that stays in the ISR was moved. A leader that ceased to be a replica was reassigned.

    Args:
        between: leaderless epochs between both leaderships.
        new: the next leadership. None if there is none.
    """
    if new is not None and not between and new.leader != old.leader:
        if new.replicas is not None and old.leader not in new.replicas:
            return REASSIGNMENT
        if old.leader in (new.isr or ()):
            return REASSIGNMENT if new.reassigning_first or old.reassigning_last else PREFERRED
    return UNKNOWN if failure is None else failure.reason


def derive_strategy(new: LeaderEpoch | None, reason: str, unclean: bool) -> str | None:
    """Return how the new leader was chosen. None if no line shows it."""
    if new is None:
        return None
    if unclean:
        return LAST_KNOWN_LEADER if new.recovering and new.last_known_before == (new.leader,) else "unclean"
    if new.leader in (new.elr_before or ()):
        return ELR
    return "offline" if new.from_state == OFFLINE else _STRATEGY.get(reason)


def is_unclean(before: Sequence[LeaderEpoch], new: LeaderEpoch, events: Iterable[EventRow]) -> bool:
    """Return True if the election was unclean: the leader was not in the last known ISR, or a line or record shows it.

    An election that takes over from a live leader is never unclean. ZooKeeper's controller elects from outside the ISR
    only if the partition was offline (``PartitionStateMachine``, `OfflinePartitionLeaderElectionStrategy`). A record of
    the metadata log also shows whether the new leader recovers (KIP-704) or was eligible (KIP-966).
    """
    if new.recovering:
        return True
    if new.leader in (new.elr_before or ()):
        return False
    if new.isr is None or set(new.isr) != {new.leader}:
        return False
    last = next((leadership for leadership in reversed(before) if leadership.last_isr is not None), None)
    may_be_in_sync = last is None or new.leader in {*(last.last_isr or ()), *last.asked}
    if not may_be_in_sync and new.from_state != ONLINE:
        return True
    at = get_change_us(new)
    return any(
        row.event == "unclean_election" and row.leader == new.leader and abs(row.time_us - at) < CLOCKS_AGREE_US
        for row in events
    )


def find_offline_moments(
    states: Iterable[StateRow], between: Sequence[LeaderEpoch], after_us: int, until_us: int
) -> list[Moment]:
    """Return controller lines which show that the partition has no leader, or that no candidate was found.

    Args:
        between: leaderless epochs.
        after_us, until_us: time range, us.
    """
    moments = [leadership.elected or leadership.shown for leadership in between if leadership.leader == NO_LEADER]
    for row in states:
        gone = row.to_state == OFFLINE and row.succeeded
        none_found = row.from_state == OFFLINE and row.to_state == ONLINE and not row.succeeded
        if (gone or none_found) and after_us < row.time_us <= until_us:
            moments.append(make_moment(row))
    return sorted(moment for moment in moments if moment is not None)


def find_refused_moments(states: Iterable[StateRow], after_us: int) -> list[Moment]:
    """Return moments at which the controller tried to move a leadership and found no candidate."""
    return sorted(
        make_moment(row)
        for row in states
        if (row.from_state, row.to_state) == (ONLINE, ONLINE) and not row.succeeded and row.time_us >= after_us
    )


def find_topic_deletion_us(states: Iterable[StateRow], events: Iterable[EventRow], after_us: int) -> int:
    """Return when the topic was deleted after `after_us`, us. `NEVER_US` if it was not."""
    times = [row.time_us for row in events if row.event == "topic_deleted"]
    times += [row.time_us for row in states if row.to_state == NON_EXISTENT and row.succeeded]
    return min((time_us for time_us in times if time_us > after_us), default=NEVER_US)


def find_resignation(old: LeaderEpoch, later: Iterable[LeaderEpoch], events: Iterable[EventRow]) -> Moment | None:
    """Return the old leader's first own line of a later epoch. None if the broker restarted before that line."""
    assert old.leader is not None
    moments = [leadership.heard[old.leader] for leadership in later if old.leader in leadership.heard]
    if not moments:
        return None
    first, begun_us = min(moments), old.begun_us()
    starts = (row for row in events if row.event == STARTED and row.broker_id == old.leader)
    return None if any(begun_us < row.time_us <= first.time_us for row in starts) else first


def has_returned(events: Iterable[EventRow], after_us: int, until_us: int) -> bool:
    """Return True if a broker came back between both times, so that an offline partition can get a leader."""
    back = ("broker_registered", "broker_unfenced", "config_changed")
    return any(row.event in back and after_us < row.time_us <= until_us for row in events)


COMPLETED: Final = "completed"
OFFLINE_REPORTED: Final = "offline_reported"
SUPERSEDED: Final = "superseded"
NOT_OBSERVED: Final = "not_observed"
UNFINISHED: Final = "unfinished"


#: Pairs of instants, and whether both must be on one clock. Then a negative distance is null: a metadata record
#: has the time at which its batch began.
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
    """A row of gold `failovers`: a change of leader. Each time names the broker whose clock it is.

    `received`, `taken_up` and `serving` are on the new leader's clock, `sent` on the clock of the electing controller.
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
        """Return the durations between the times of this row, us, by gold column without its unit. None if unknown."""
        spans = {}
        for name, one_clock in _SPANS.items():
            begin, end = name.split("_to_")
            spans[name] = _measure_us(getattr(self, begin), getattr(self, end), one_clock)
        return spans


def _measure_us(begin: Moment | None, end: Moment | None, one_clock: bool) -> int | None:
    if begin is None or end is None or (one_clock and begin.broker_id != end.broker_id):
        return None
    span_us = end.time_us - begin.time_us
    return None if one_clock and span_us < 0 else span_us


def collect_failovers(
    history: PartitionHistory,
    states: Sequence[StateRow] = (),
    events: Sequence[EventRow] = (),
    serving: Mapping[tuple[int, int], int] | None = None,
) -> list[FailoverRow]:
    """Return the leader changes of one partition.

    Args:
        history: leader epochs of the partition.
        states: `silver.partition_states` of the partition.
        events: `silver.controller_events` of the cluster: failures and returns of brokers, elections of controllers,
            and events of this partition or topic. Broker starts are included.
        serving: when a leader answered its first produce or fetch of the partition, us, by (broker, leader epoch).
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
        begun_us = find_leader_start(chain, at)
        failure = find_detection(events, old, begun_us, between[0] if between else new)
        deleted_us = find_topic_deletion_us(states, events, begun_us)
        if new is None and _has_ended_with_topic(failure, deleted_us):
            continue
        if change.happened(states, failure):
            result.append(_make_row(change, failure, states, events, serving or {}))
    return result


def _has_ended_with_topic(failure: Failure | None, deleted_us: int) -> bool:
    """Return True if a leadership without a successor ended because its topic was deleted.

    A ZooKeeper controller moves partitions of a deleted topic to OfflinePartition and removes their replicas from the
    ISR, the leader last. An election some time before does not count as the cause.
    """
    if failure is None or failure.reason == NEW_CONTROLLER:
        return deleted_us < NEVER_US
    return failure.moment.time_us >= deleted_us - CLOCKS_AGREE_US


class _Change(NamedTuple):
    """A leadership, the leaderless epochs after it, and the next leadership. None if there is none."""

    old: LeaderEpoch
    between: Sequence[LeaderEpoch]
    new: LeaderEpoch | None
    superseded: bool

    def happened(self, states: Sequence[StateRow], failure: Failure | None) -> bool:
        """Return True if the leader changed.

        The same leader in a new epoch counts only if the partition was offline in between.
        """
        if self.new is None:
            return failure is not None or bool(self.between)
        if self.new.leader != self.old.leader or self.between:
            return True
        return bool(find_offline_moments(states, (), self.old.begun_us(), get_change_us(self.new)))


def _derive_outcome(
    change: _Change, offline: Sequence[Moment], refused: Sequence[Moment], ended: bool, served: bool
) -> str:
    new = change.new
    if new is None:
        return OFFLINE_REPORTED if offline else UNFINISHED if refused else NOT_OBSERVED
    if ended:
        return OFFLINE_REPORTED
    if served or new.taken_up is not None or new.received is not None:
        return COMPLETED
    return SUPERSEDED if change.superseded else UNFINISHED


def _make_row(
    change: _Change,
    failure: Failure | None,
    states: Sequence[StateRow],
    events: Sequence[EventRow],
    serving: Mapping[tuple[int, int], int],
) -> FailoverRow:
    old, between, new, _ = change
    assert old.leader is not None
    reason = derive_reason(old, between, new, failure)
    detected = None if failure is None or reason in (PREFERRED, REASSIGNMENT) else failure.moment
    after_us = old.begun_us() if detected is None else detected.time_us - 1
    offline = find_offline_moments(states, between, after_us, get_change_us(new))
    refused = find_refused_moments(states, after_us) if new is None else []
    ended = bool(offline) and (new is None or has_returned(events, offline[0].time_us, get_change_us(new)))
    elected = sent = received = taken_up = served = None
    if new is not None and new.leader is not None:
        elected, sent, received, taken_up = new.elected, new.sent, new.received, new.taken_up
        served_us = serving.get((new.leader, new.leader_epoch))
        if served_us is not None:
            served = Moment(served_us, new.leader, NOWHERE)
    down = None if new is None or new.leader == old.leader else find_resignation(old, (*between, new), events)
    unclean = new is not None and is_unclean((old, *between), new, events)
    return FailoverRow(
        reason=reason,
        old_leader_epoch=old.leader_epoch,
        new_leader_epoch=None if new is None else new.leader_epoch,
        old_leader=old.leader,
        new_leader=None if new is None else new.leader,
        strategy=derive_strategy(new, reason, unclean),
        detected=detected,
        elected=elected,
        sent=sent,
        received=received,
        taken_up=taken_up,
        serving=served,
        stepped_down=down,
        ended_offline=ended,
        isr_before=old.last_isr,
        outcome=_derive_outcome(change, offline, refused, ended, served is not None),
        approximate=detected is not None and new is not None and detected.broker_id != new.leader,
    )
