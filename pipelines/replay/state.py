"""The kernel's state of one partition on one broker between two events. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from highwater.pipelines.kafka.context import Context
from highwater.pipelines.replay.batches import BatchLog
from highwater.pipelines.replay.leadership import Leadership
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.pending_operations import PendingOperations
from highwater.pipelines.replay.replica_log import ReplicaLog
from highwater.pipelines.replay.required import RequiredOffsets
from highwater.pipelines.replay.wakes import Wake
from highwater.schemas.events import Event


@dataclass
class State:
    """State of the replay of one partition on one broker, between two events."""

    context: Context
    leadership: Leadership | None = None  #: the current one; None while the broker does not lead
    leads: bool | None = None
    waiting: list[PartitionOutcome] = field(default_factory=list)  #: operations not yet satisfied, by base offset
    #: operations that are done but whose required offset may still become known
    decided: PendingOperations = field(default_factory=PendingOperations)
    required: RequiredOffsets = field(default_factory=RequiredOffsets)
    log: BatchLog = field(default_factory=BatchLog)  #: the batches of the current leadership
    replica: ReplicaLog = field(default_factory=ReplicaLog)  #: the log while the broker follows
    wakes: list[Wake] = field(default_factory=list)  #: what may have completed fetches since the last event
    #: base offsets from TRACE lines, of appends whose requests are not logged yet: (time, base offset); only
    #: where the request log has no responses
    logged_appends: deque[tuple[int, int]] = field(default_factory=deque)
    gathering_us: int = 0  #: until when, at the latest, the coordinator gathers the records of its last batch
    last: Event | None = None
    replicas_seen: int = 1
    assigned: int | None = None  #: number of assigned replicas, if a line shows it

    @property
    def replicas(self) -> int:
        """Return the number of replicas of the partition: the assigned ones, else the most ever seen."""
        return self.assigned if self.assigned is not None else self.replicas_seen

    def take_wakes(self, now_us: int) -> list[Wake]:
        """Return and clear the events that may complete waiting fetches, if certain at `now_us`."""
        wakes = self.wakes
        wakes += self.log.settle(now_us)
        if wakes:
            self.wakes = []
        return wakes


def new_leadership(state: State) -> Leadership:
    return Leadership(state.context.broker_id, state.context.rules, state.context.lag_time_max_us)


def current_leadership(state: State) -> Leadership:
    """Return the current leadership. If its start is not logged, it is created by the first event that needs it."""
    if state.leadership is None:
        state.leadership = new_leadership(state)
    return state.leadership


def note_replicas(state: State) -> None:
    leadership = state.leadership
    if leadership is not None:
        seen = len(set(leadership.followers) | set(leadership.isr or ()) | {leadership.broker_id})
        state.replicas_seen = max(state.replicas_seen, seen)
