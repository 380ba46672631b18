"""The history of a replica on one broker, read from that broker's log. Pure, no Spark.

`tenures` splits it into tenures: one per leader epoch in which the replica took part on this broker, and one more per
broker start within the epoch. Each tenure holds what the lines show of the log at its start and of its truncations.
`pipelines.replay.follower_truncation` applies the rules to a tenure.

Since 2.6 a follower logs its start (``Partition.makeFollower``). Up to 2.5 only the controller's LeaderAndIsr request
shows that it follows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from highwater.schemas import replicas as r
from highwater.schemas.replicas import ReplicaEvent

# Roles of a tenure.
FOLLOWING = "follower"
LEADING = "leader"
#: Neither: the log is being loaded, or no line of a leadership came yet.
IDLE = "idle"

#: How a tenure ended, where no other one follows in the same life of the broker.
KILLED = "killed"
STOPPED = "stopped"


@dataclass
class Action:
    """A truncation in a replica's log: decision, offset truncated to, and high watermark before."""

    started_us: int  #: time of its first line
    decided_offset: int | None = None  #: offset that the fetcher's line names
    logged_offset: int | None = None  #: offset of the log layer's line, which may have no effect
    logged_us: int | None = None  #: its time
    #: the log layer truncated; False for a "no effect" line, None without a line
    effective: bool | None = None
    previous_end_offset: int | None = None  #: log end offset before; None if unknown
    high_watermark: int | None = None  #: the high watermark that the truncation went below; None if unknown
    refused_offset: int | None = None  #: offset that the leader refused as out of range
    reset_offset: int | None = None  #: where the fetch offset was reset to then
    reason: str | None = None  #: `silver.truncations.reason`
    traced_high_watermark: int | None = None  #: the replica's high watermark before, from TRACE lines

    @property
    def offset(self) -> int | None:
        """Return the offset that the log was truncated to. None if unknown."""
        return self.logged_offset if self.logged_offset is not None else self.decided_offset


class Contact(NamedTuple):
    """A follower's fetch, or its question for the end of an epoch, in its leader's log."""

    time_us: int  #: on the leader's clock; orders the contacts of one epoch, nothing else
    question: bool  #: OffsetForLeaderEpoch; else a fetch
    offset: int | None  #: fetched from, or the end offset answered
    epoch: int | None  #: last fetched epoch, or the epoch asked about; None where the version does not send it
    #: diverging_epoch, diverging_end_offset: of a fetch that was answered with diverging logs
    diverging_epoch: int | None = None
    diverging_end_offset: int | None = None


@dataclass
class ReplicaTenure:
    """A replica's time in one leader epoch."""

    broker_id: int  #: the broker
    role: str  #: follower, leader or idle
    started_us: int  #: time of the line that opens it
    #: leader_epoch, leader: from the lines of this broker
    leader_epoch: int | None = None
    leader: int | None = None
    end_offset: int | None = None  #: log end offset at its start
    high_watermark: int | None = None  #: at its start
    #: the high watermark came from a checkpoint file; no line since the start shows it
    from_checkpoint: bool = False
    #: the tenure before, in the same life
    previous: ReplicaTenure | None = field(default=None, repr=False, compare=False)
    previous_leader_epoch: int | None = None  #: from a leader's line
    #: added_us, added_offset: when it was added to a fetcher, and the initial offset there
    added_us: int | None = None
    added_offset: int | None = None
    actions: list[Action] = field(default_factory=list)  #: truncations in it
    high_watermark_after: int | None = None  #: lowest high watermark that it stepped back to, but for truncations
    #: of followers with this leader, by follower (leaders' tenures only)
    contacts: dict[int, list[Contact]] = field(default_factory=dict)
    ended: str | None = None  #: killed, stopped, or None
    next_end_offset: int | None = None  #: log end offset at the start of the next tenure of the replica


def tenures(events: Iterable[ReplicaEvent]) -> list[ReplicaTenure]:
    """Return the leader epochs of a replica on one broker, in time order.

    Args:
        events: events of one broker and one partition, ordered by time and `schemas.replicas.RANK`.
    """
    held = list(events)
    reader = _TenureFold({event.leader_epoch for event in held if event.kind in (r.FOLLOWER, r.LEADER)})
    for event in held:
        reader.observe(event)
    for tenure, following in zip(reader.tenures, reader.tenures[1:], strict=False):
        tenure.next_end_offset = following.end_offset
    return reader.tenures


class _TenureFold:
    """Builds `ReplicaTenure` objects from events in time order.

    Args:
        begun: epochs that the replica's own lines show. Other epochs come from the controller's requests.
    """

    def __init__(self, begun: Collection[int | None]) -> None:
        self.tenures: list[ReplicaTenure] = []
        self._begun = begun
        self._current: ReplicaTenure | None = None
        self._life_us = 0
        self._begins_life = False
        #: (time, value) of the latest known log end and high watermark.
        self._end: tuple[int, int] | None = None
        self._high_watermark: tuple[int, int] | None = None
        self._leaders: dict[int, int] = {}

    def observe(self, event: ReplicaEvent) -> None:
        self._take_traced(event)
        match event.kind:
            case r.STARTING:
                self._start(event)
            case r.STOPPED:
                if self._current is not None:
                    self._current.ended = STOPPED
            case r.LOADED:
                self._load(event)
            case r.FOLLOWER:
                self._open(event, FOLLOWING, event.leader)
            case r.LEADER:
                self._start_leading(event)
            case r.STATE:
                self._take_state(event)
            case r.ADDED:
                self._note_fetcher(event)
            case r.STEPPED_BACK:
                self._lower_high_watermark(event)
            case r.FETCHED | r.ANSWERED:
                self._add_contact(event)
            case r.DECIDED | r.REPLIED | r.OUT_OF_RANGE | r.BELOW | r.TRUNCATED | r.NO_EFFECT:
                self._add_truncation(event)

    def _start(self, event: ReplicaEvent) -> None:
        if self._current is not None and self._current.ended is None:
            self._current.ended = KILLED
        self._current = None
        self._life_us, self._begins_life = event.time_us, True
        self._end = self._high_watermark = None

    def _load(self, event: ReplicaEvent) -> None:
        if event.offset is not None:
            self._end = (event.time_us, event.offset)
            if event.offset == 0:
                self._high_watermark = (event.time_us, 0)
        if event.high_watermark is not None:
            self._high_watermark = (event.time_us, event.high_watermark)

    def _take_traced(self, event: ReplicaEvent) -> None:
        """Apply log end and high watermark from TRACE lines between the previous event and this one."""
        at, value = event.traced_end_offset_us, event.traced_end_offset
        if at is not None and value is not None and at >= self._life_us and (self._end is None or at >= self._end[0]):
            self._end = (at, value)
        at, value = event.traced_high_watermark_us, event.traced_high_watermark
        known = self._high_watermark
        if at is not None and value is not None and at >= self._life_us and (known is None or at >= known[0]):
            self._high_watermark = (at, value)

    def _open(self, event: ReplicaEvent, role: str, leader: int | None) -> ReplicaTenure:
        before = self._current
        if leader is None and event.leader_epoch is not None:
            leader = self._leaders.get(event.leader_epoch)
        end_offset, high_watermark = event.offset, event.high_watermark
        if end_offset is None and self._end is not None:
            end_offset = self._end[1]
        if high_watermark is None and self._high_watermark is not None:
            high_watermark = self._high_watermark[1]
        tenure = ReplicaTenure(
            event.broker_id,
            role,
            event.time_us,
            event.leader_epoch,
            leader,
            end_offset,
            high_watermark,
            from_checkpoint=high_watermark is None and self._begins_life,
            previous=before,
            previous_leader_epoch=event.previous_leader_epoch,
        )
        self._current, self._begins_life = tenure, False
        self.tenures.append(tenure)
        return tenure

    def _start_leading(self, event: ReplicaEvent) -> None:
        """Begin a leader epoch. If a request began it already, add the start offset."""
        current = self._current
        if current is not None and current.role == LEADING and current.leader_epoch == event.leader_epoch:
            if event.offset is not None:
                current.end_offset = event.offset
            return
        self._open(event, LEADING, event.broker_id)

    def _take_state(self, event: ReplicaEvent) -> None:
        if event.leader is None or event.leader_epoch is None:
            return
        self._leaders[event.leader_epoch] = event.leader
        current = self._current
        # An epoch without a leader is not taken up (``ReplicaManager.makeFollowers``).
        if event.leader < 0 or event.leader_epoch in self._begun:
            return
        if current is None or current.leader_epoch is None or event.leader_epoch > current.leader_epoch:
            self._open(event, LEADING if event.leader == event.broker_id else FOLLOWING, event.leader)

    def _note_fetcher(self, event: ReplicaEvent) -> None:
        current = self._current
        if current is None or current.role != FOLLOWING or current.added_us is not None:
            return
        if event.leader_epoch is None or event.leader_epoch == current.leader_epoch:
            current.added_us, current.added_offset = event.time_us, event.offset
            if current.leader is None:
                current.leader = event.leader

    def _lower_high_watermark(self, event: ReplicaEvent) -> None:
        """Record a decrease of the high watermark: by a truncation to that offset, or from a new leader that lagged."""
        current, after = self._current, event.high_watermark
        if current is None or after is None:
            return
        self._high_watermark = (event.time_us, after)
        last = current.actions[-1] if current.actions else None
        if last is not None and last.effective and last.offset == after and last.high_watermark is None:
            last.high_watermark = event.previous_high_watermark
        elif current.high_watermark_after is None or after < current.high_watermark_after:
            current.high_watermark_after = after

    def _add_contact(self, event: ReplicaEvent) -> None:
        """Add a follower's fetch or epoch question to the leader epoch that it names.

        Requests of old versions name no epoch. They are added to the latest epoch of this leader.
        """
        epoch = event.leader_epoch if event.kind == r.FETCHED else None
        for tenure in reversed(self.tenures):
            if tenure.role == LEADING and (epoch is None or tenure.leader_epoch == epoch):
                break
        else:
            return
        if event.replica_id is None:
            return
        question = event.kind == r.ANSWERED
        tenure.contacts.setdefault(event.replica_id, []).append(
            Contact(
                event.time_us,
                question,
                event.offset,
                event.leader_epoch if question else event.last_fetched_epoch,
                event.diverging_epoch,
                event.diverging_end_offset,
            )
        )

    def _add_truncation(self, event: ReplicaEvent) -> None:
        current = self._current
        if current is None:
            current = self._open(event._replace(leader_epoch=None, offset=None), IDLE, None)
            self._current, self._begins_life = None, True
        action = current.actions[-1] if current.actions else None
        if action is None or _is_another(action, event):
            action = Action(event.time_us)
            if event.traced_high_watermark_us is not None and event.traced_high_watermark_us >= self._life_us:
                action.traced_high_watermark = event.traced_high_watermark
            current.actions.append(action)
        action.reason = action.reason or event.reason
        match event.kind:
            case r.DECIDED | r.REPLIED:
                action.decided_offset = event.offset
            case r.OUT_OF_RANGE:
                action.refused_offset, action.reset_offset = event.previous_end_offset, event.offset
            case r.BELOW:
                action.high_watermark = event.high_watermark
                action.decided_offset = event.offset
            case _:
                action.logged_offset, action.logged_us = event.offset, event.time_us
                action.effective = event.kind == r.TRUNCATED
                action.previous_end_offset = event.previous_end_offset
                if action.effective and event.offset is not None:
                    self._cut(event.time_us, event.offset)

    def _cut(self, time_us: int, offset: int) -> None:
        if self._end is None or offset <= self._end[1]:
            self._end = (time_us, offset)
        if self._high_watermark is not None and offset < self._high_watermark[1]:
            self._high_watermark = (time_us, offset)


def _is_another(action: Action, event: ReplicaEvent) -> bool:
    """Return True if the line belongs to a different truncation than `action`."""
    done = action.logged_offset is not None
    match event.kind:
        case r.TRUNCATED | r.NO_EFFECT:
            return done
        case r.BELOW:  # comes after the truncation up to 4.0, before it since
            return done and (action.offset != event.offset or action.high_watermark is not None)
        case r.OUT_OF_RANGE:  # a line before the truncation, and one after it
            return action.reset_offset != event.offset if action.reset_offset is not None else done
        case _:
            return done


def by_broker(events: Iterable[ReplicaEvent]) -> Iterator[tuple[int, list[ReplicaEvent]]]:
    """Yield (broker id, events) of a partition, events in the order of the broker's clock."""
    brokers: dict[int, list[ReplicaEvent]] = {}
    for event in events:
        brokers.setdefault(event.broker_id, []).append(event)
    for broker_id in sorted(brokers):
        yield broker_id, sorted(brokers[broker_id], key=event_order)


def event_order(event: ReplicaEvent) -> tuple[object, ...]:
    """Return a total sort key of a broker's events: independent of the order of files."""
    rest = tuple((value is None, "" if value is None else value) for value in event[3:])
    return (event.time_us, r.RANK[event.kind], rest)
