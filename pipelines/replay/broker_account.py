"""A fold of what one broker logs about its partitions, line by line, into events of the leader's fold. Pure.

A line about a partition depends on earlier lines of the broker. They name the assigned replicas and the last state
received, and they show when the broker starts or begins to stop replicas. So the control plane lines of a broker, a few
per leader epoch, are folded in time order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from highwater.pipelines.kafka.errors import NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION
from highwater.schemas import events as e
from highwater.schemas.broker_lines import BEGUN, FETCHER, ISR_CHANGE, LEADERSHIP, LIFE, BrokerLine

# When a new follower has answered the requests that waited at it, as the lines of its fetchers show. Pure.
#
# What waits is completed partition by partition once all partitions of the change have become followers: under
# ZooKeeper between the lines that fetchers are removed and added (``ReplicaManager.makeFollowers``), under KRaft after
# the fetchers of all of them were added, or, while the broker shuts down, removed
# (``ReplicaManager.applyLocalFollowersDelta``).

#: Topic and partition.
Place = tuple[str, int]
#: A fetcher that starts later than this after its partition became a follower has other reasons.
STEP_DOWN_MAX_US: Final = 5_000_000


class Move(NamedTuple):
    """A partition was added to a fetcher, or removed from its fetcher (`action`)."""

    time_us: int
    place: Place
    action: str


def stepped_down_us(
    followers: Sequence[tuple[int, Place]], moves: Iterable[Move], starts_us: Sequence[int]
) -> list[int | None]:
    """Return for each new follower the latest time by which it had stopped leading, us. None if no line shows it.

    Args:
        followers: (time, partition) of each change of a partition to follower, in time order.
        moves: additions to and removals from fetcher threads of the broker, in time order.
        starts_us: start times of the broker, ascending. Lines after a start belong to another process.
    """
    instants: dict[tuple[Place, str], list[int]] = defaultdict(list)
    for move in moves:
        instants[move.place, move.action].append(move.time_us)
    moved = [_find_move_us(time_us, place, instants, starts_us) for time_us, place in followers]
    # A change begins with a follower that comes after all fetchers of the change before it.
    changes: list[int] = []
    last_us: int | None = None
    for (time_us, _), moved_us in zip(followers, moved, strict=True):
        begins = last_us is None or time_us > last_us
        changes.append(time_us if begins or not changes else changes[-1])
        if moved_us is not None:
            last_us = moved_us if last_us is None else max(last_us, moved_us)
    by_change: dict[int, int] = {}
    for change, moved_us in zip(changes, moved, strict=True):
        if moved_us is not None:
            by_change[change] = max(by_change.get(change, moved_us), moved_us)
    return [None if moved_us is None else by_change[change] for change, moved_us in zip(changes, moved, strict=True)]


def _find_move_us(
    time_us: int, place: Place, instants: dict[tuple[Place, str], list[int]], starts_us: Sequence[int]
) -> int | None:
    """Return when a fetcher was added for a new follower, else when one was removed. None if unknown.

    Args:
        instants: times by (partition, action), ascending.
        starts_us: start times of the broker. Moves after the next start are ignored.
    """
    at = bisect_left(starts_us, time_us)
    until_us = starts_us[at] if at < len(starts_us) else None
    for action in ("added", "removed"):
        of_partition = instants.get((place, action), [])
        at = bisect_left(of_partition, time_us)
        if at < len(of_partition):
            moved_us = of_partition[at]
            if moved_us - time_us <= STEP_DOWN_MAX_US and (until_us is None or moved_us < until_us):
                return moved_us
    return None


#: Roles under which a broker's own lines show the state of a partition that it hosts.
_OWN_ROLES: Final = ("leader_start", "leader_update", "metadata", "request")
_STARTS: Final = ("leader_start", "follower_start")
#: ZooKeeper answers a change of the ISR within this time, if at all (zookeeper.session.timeout.ms is 18 s at most).
_ANSWERED_US: Final = 18_000_000

#: Topic and partition, and an event there.
Placed = tuple[Place, e.Event]


class _Assigned(NamedTuple):
    """Replicas of a partition, from the last line that names all of them."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass
class _Ending:
    """A replica that a broker stops hosting. Up to 2.5 two lines show it, one for the directory."""

    earliest_us: int
    time_us: int
    moved: bool


@dataclass
class _Partition:
    """State of one partition on one broker, from the lines read so far."""

    assigned: _Assigned | None = None
    #: epoch and ISR of the last state received from the controller
    received: tuple[int | None, tuple[int, ...] | None] | None = None
    newest_epoch: int = -1  #: the greatest leader epoch received
    #: leader epochs in the broker's own lines, from the newest received one on
    begun_epochs: set[int] = field(default_factory=set)
    is_led: bool = False
    topic_id: str | None = None  #: the last one that a leader's line names
    removing: tuple[int, ...] | None = None  #: replicas being removed as of the last line that names them
    ending: _Ending | None = None
    change: BrokerLine | None = None  #: ISR change without a known result


class BrokerAccount:
    """Converts the control-plane lines of one broker to leader events of its partitions.

    Args:
        silent: (start, end) times in which the broker's version logs no committed ISR changes (up to 2.3).
    """

    def __init__(self, broker_id: int, silent: Iterable[tuple[int, int]]) -> None:
        self._broker_id = broker_id
        self._silent = tuple(silent)
        self._partitions: dict[Place, _Partition] = {}
        self._stopping_us: int | None = None
        self._followers: list[tuple[Place, e.Event]] = []
        self._moves: list[Move] = []
        self._starts_us: list[int] = []

    def fold(self, lines: Iterable[BrokerLine]) -> Iterator[Placed]:
        """Yield (partition, event) for all partitions, unordered.

        Args:
            lines: in time order. Lines of kind `BEGUN` come first.
        """
        for time_us, of_instant in groupby(lines, key=attrgetter("time_us")):
            yield from self._fold_instant(time_us, list(of_instant))
        yield from self._release_followers()
        for place, partition in self._partitions.items():
            yield from self._end(place, partition)
            yield from self._assume_commit(place, partition.change, None)

    def _fold_instant(self, time_us: int, lines: list[BrokerLine]) -> Iterator[Placed]:
        """Yield the events of lines with equal timestamps. Only ISR changes keep their order."""
        if self._followers and time_us > self._followers[-1][1].time_us + STEP_DOWN_MAX_US:
            yield from self._release_followers()
        by_source: dict[str, list[BrokerLine]] = {}
        # A line in two files counts once: a change must not seem to be followed by itself.
        for line in dict.fromkeys(lines):
            by_source.setdefault(line.source, []).append(line)
        for line in by_source.get(BEGUN, ()):
            if line.leader_epoch is not None:
                self._get_partition(line).begun_epochs.add(line.leader_epoch)
        lives = {line.what for line in by_source.get(LIFE, ())}
        if "stopping_replicas" in lives:
            self._stopping_us = time_us
        yield from self._fold_leaderships(by_source.get(LEADERSHIP, []))
        if self._followers:
            self._moves += [_move(line) for line in by_source.get(FETCHER, ())]
        if "starting" in lives:
            if self._followers:
                self._starts_us.append(time_us)
            yield from self._restart(time_us)
        for line in by_source.get(ISR_CHANGE, ()):
            yield from self._change(line)

    def _fold_leaderships(self, lines: list[BrokerLine]) -> Iterator[Placed]:
        by_place: dict[Place, list[BrokerLine]] = {}
        for line in lines:
            by_place.setdefault(_place(line), []).append(line)
        for place, of_partition in by_place.items():
            partition = self._partitions.setdefault(place, _Partition())
            of_partition.sort(key=_epochs)
            for line in of_partition:
                if line.what == "request":
                    partition.received = line.leader_epoch, line.isr
                if line.replicas is not None:
                    partition.assigned = _Assigned(line.replicas, line.adding or (), line.removing or ())
            for line in of_partition:
                for own_line in self._yield_own_lines(partition, line):
                    yield from self._state(place, partition, own_line)
                yield from self._end_namesake(place, partition, line)
                if line.what in _OWN_ROLES and line.removing is not None:
                    partition.removing = line.removing
            for line in of_partition:
                if line.what == "stopped":
                    yield from self._stop_replica(place, partition, line.time_us)

    def _yield_own_lines(self, partition: _Partition, line: BrokerLine) -> Iterator[BrokerLine]:
        """Yield the line, completed from the LeaderAndIsr requests that the broker received.

        Up to 2.5 a broker logs each LeaderAndIsr request with the whole state at its default level
        (``state.change.logger``, KAFKA-8470). Since 0.11 its own lines show that it became leader, without the ISR, and
        never that it became follower. So a leader's line without an ISR gets the ISR of the last request of its epoch.
        If the broker's own line of an epoch is missing, the first request of the epoch replaces it
        (``ReplicaManager.becomeLeaderOrFollower`` applies any newer state).
        """
        if line.what == "request":
            epoch = line.leader_epoch
            if epoch is not None:
                if epoch > partition.newest_epoch and epoch not in partition.begun_epochs:
                    leads = line.leader == self._broker_id
                    yield line._replace(what="leader_start" if leads else "follower_start")
                partition.newest_epoch = max(partition.newest_epoch, epoch)
                gone = {begun for begun in partition.begun_epochs if begun < partition.newest_epoch}
                partition.begun_epochs -= gone
        elif line.what in ("leader_start", "leader_update") and line.isr is None and partition.received is not None:
            epoch, isr = partition.received
            same_epoch = epoch is not None and line.leader_epoch in (None, epoch)
            yield line._replace(isr=isr) if same_epoch else line
        elif line.what in (*_STARTS, "leader_update"):
            yield line

    def _state(self, place: Place, partition: _Partition, line: BrokerLine) -> Iterator[Placed]:
        if line.what == "leader_start":
            kind = e.LEADER_START
            partition.is_led = True
        else:
            kind = e.LEADER_END if line.what == "follower_start" else e.ISR_UPDATE
        event = e.Event(
            line.time_us,
            kind,
            line.time_us,
            leader_epoch=line.leader_epoch,
            offset=line.start_offset,
            high_watermark=line.high_watermark,
            isr=line.isr,
            controller=True,
            replicas=len(_derive_replicas(partition.assigned, line)) or None,
        )
        if kind == e.LEADER_END:
            self._followers.append((place, event))
        else:
            yield place, event

    def _release_followers(self) -> Iterator[Placed]:
        """Yield held-back follower events, with the time at which the broker stopped leading."""
        followers = [(event.time_us, place) for place, event in self._followers]
        instants = stepped_down_us(followers, self._moves, self._starts_us)
        for (place, event), time_us in zip(self._followers, instants, strict=True):
            yield place, event._replace(completed_us=time_us)
        self._followers, self._moves, self._starts_us = [], [], []

    def _restart(self, time_us: int) -> Iterator[Placed]:
        """Yield the end of each leadership of a broker that starts again. The broker logs no line for these ends.

        A start before a partition's first leadership has no effect: later lines never change earlier events.
        """
        for place, partition in self._partitions.items():
            if partition.is_led:
                yield place, e.Event(time_us, e.LEADER_END, time_us)

    def _end_namesake(self, place: Place, partition: _Partition, line: BrokerLine) -> Iterator[Placed]:
        """Yield the unlogged end of a replica whose broker leads a topic with the same name and a new id (KIP-516)."""
        if line.topic_id is None or line.what not in ("leader_start", "leader_update"):
            return
        if partition.topic_id not in (None, line.topic_id):
            yield place, _make_end(line.time_us, line.time_us, moved=False)
        partition.topic_id = line.topic_id

    def _stop_replica(self, place: Place, partition: _Partition, time_us: int) -> Iterator[Placed]:
        """Record that a replica leaves the broker, because its topic is deleted or a reassignment moves it away.

        The broker does not become a follower first. It removes the partition, answers waiting requests, and renames the
        log directory (``ReplicaManager.stopPartitions``; up to 2.7 ``stopReplica``, which answers after the renaming).
        At its default level the log names the directory. An earlier line shows that the broker begins to stop replicas.
        A topic created again with the same name is another topic, whose leader starts at offset 0.
        """
        moved = self._broker_id in (partition.removing or ())
        earliest_us = time_us if self._stopping_us is None else self._stopping_us
        ending = partition.ending
        if ending is not None and ending.earliest_us == earliest_us:
            ending.time_us, ending.moved = time_us, ending.moved or moved
            return
        yield from self._end(place, partition)
        partition.ending = _Ending(earliest_us, time_us, moved)

    def _end(self, place: Place, partition: _Partition) -> Iterator[Placed]:
        if partition.ending is not None:
            ending = partition.ending
            yield place, _make_end(ending.earliest_us, ending.time_us, ending.moved)

    def _change(self, line: BrokerLine) -> Iterator[Placed]:
        """Yield events for a line about an ISR change that the leader proposed or committed."""
        place = _place(line)
        partition = self._partitions.setdefault(place, _Partition())
        yield from self._assume_commit(place, partition.change, line)
        partition.change = line
        if line.what == "committed":
            yield place, _make_isr_event(line, e.ISR_UPDATE, line.isr)
        elif line.what == "shrink":
            yield place, _make_isr_event(line, e.ISR_PROPOSAL, line.previous_isr)

    def _assume_commit(self, place: Place, change: BrokerLine | None, answer: BrokerLine | None) -> Iterator[Placed]:
        """Yield the commit of a proposed ISR change, unless the next ISR line (`answer`) refuses or commits it.

        Up to 2.3 a leader logs the proposal and a refusal by ZooKeeper, but not the commit (``Partition.updateIsr``,
        INFO since 2.4).
        """
        if change is None or change.what not in ("shrink", "expand"):
            return
        if not any(since_us <= change.time_us < until_us for since_us, until_us in self._silent):
            return
        is_answer = answer is not None and answer.what in ("refused", "committed")
        if answer is None or not is_answer or answer.time_us - change.time_us > _ANSWERED_US:
            yield place, _make_isr_event(change, e.ISR_UPDATE, change.isr)

    def _get_partition(self, line: BrokerLine) -> _Partition:
        return self._partitions.setdefault(_place(line), _Partition())


def _place(line: BrokerLine) -> Place:
    assert line.topic is not None
    assert line.partition is not None
    return line.topic, line.partition


def _epochs(line: BrokerLine) -> tuple[int, int]:
    """Return the sort key of equal timestamps: (leader epoch, partition epoch). Missing epochs sort first."""
    return _epoch(line.leader_epoch), _epoch(line.partition_epoch)


def _epoch(epoch: int | None) -> int:
    return -2 if epoch is None else epoch


def _move(line: BrokerLine) -> Move:
    return Move(line.time_us, _place(line), line.what or "")


def _make_isr_event(line: BrokerLine, kind: str, isr: tuple[int, ...] | None) -> e.Event:
    return e.Event(
        line.time_us,
        kind,
        line.time_us,
        leader_epoch=line.leader_epoch,
        high_watermark=line.high_watermark,
        isr=isr,
        controller=False,
    )


def _make_end(earliest_us: int, time_us: int, moved: bool) -> e.Event:
    """Return the event that ends a replica, with the error code that waiting requests get.

    Args:
        moved: a reassignment moved the replica. Otherwise its topic was deleted.

    Source: ``ReplicaManager.getPartitionOrError``, KAFKA-9198; ``DelayedProduce.tryComplete`` case A.
    """
    error = NOT_LEADER_OR_FOLLOWER if moved else UNKNOWN_TOPIC_OR_PARTITION
    return e.Event(time_us, e.LEADER_END, earliest_us, error_code=error)


def _derive_replicas(assigned: _Assigned | None, line: BrokerLine) -> tuple[int, ...]:
    """Return the assigned replicas after a line. Empty if unknown.

    Lines that start an epoch name only added and removed replicas. So the assignment comes from the last line that
    names all replicas. When its reassignment is over, the removed replicas are dropped if it completed, and the added
    ones if it was cancelled. A cancelled reassignment leaves no added replica in the ISR (KIP-455,
    ``PartitionReassignmentReplicas``, ``PartitionReassignmentRevert``).
    """
    if line.replicas is not None:
        return line.replicas
    if assigned is None:
        return ()
    is_over = not line.adding and not line.removing
    was_under_way = assigned.adding or assigned.removing
    if line.what != "leader_start" or not is_over or not was_under_way:
        return assigned.replicas
    isr = set(line.isr or ())
    completed = line.isr is not None and (isr & set(assigned.adding) or not isr & set(assigned.removing))
    gone = set(assigned.removing if completed else assigned.adding)
    return tuple(replica for replica in assigned.replicas if replica not in gone)
