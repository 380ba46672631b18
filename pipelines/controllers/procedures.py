"""Procedures of a ZooKeeper controller, step by step, and what the logs show of each step.

`KafkaController` (0.10.2 to 3.9): processBrokerChange, onBrokerFailure, onBrokerStartup, doControlledShutdown;
`TopicDeletionManager`. A step that no line shows was not logged, or had nothing to do: neither is held against it.
Procedures of KRaft are in `kraft_procedures`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.controllers import replica_machine as r
from highwater.pipelines.controllers.procedure_steps import (
    BROKER_CHANGE,
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    TOPIC_DELETION,
    ProcedureStep,
    SeenStep,
    procedure,
    step_of,
)
from highwater.pipelines.controllers.rules import controller_rules
from highwater.pipelines.kafka.controller_rows import (
    NEW,
    NON_EXISTENT,
    OFFLINE,
    ONLINE,
    EventRow,
    LeadershipRow,
    StateRow,
    added_brokers,
    deleted_brokers,
    in_order,
    subjects,
)
from highwater.pipelines.kafka.partition_history import moment_of

#: Events that a controller's thread begins with; what it logs until the next one belongs to it.
_THREAD: Final = frozenset(
    (
        "brokers_changed",
        "broker_failed",
        "broker_registered",
        "controlled_shutdown",
        "controller_resigned",
        "topic_created",
        "partition_created",
        "topic_deleted",
        "reassignment",
    )
)
#: A controller takes a topic offline this long before it begins to delete its replicas, at most.
_TAKEN_OFFLINE_US: Final = 5_000_000
_DELETED: Final = frozenset((r.DELETION_STARTED, r.DELETION_SUCCESSFUL, r.DELETION_INELIGIBLE))
#: Requests and answers of other brokers are looked for this long.
_WITHIN_US: Final = 60_000_000
Row = TypeVar("Row", EventRow, StateRow, LeadershipRow)


class _Log(Generic[Row]):
    """Rows of each broker in the order of time."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[int, list[Row]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: (row.time_us, row.ref)):
            self.rows[row.broker_id].append(row)
        self.times = {broker_id: [row.time_us for row in mine] for broker_id, mine in self.rows.items()}

    def between(self, broker_id: int, from_us: int, until_us: int) -> Sequence[Row]:
        """From (inclusive) until (exclusive)."""
        times = self.times.get(broker_id, [])
        return self.rows.get(broker_id, [])[bisect_left(times, from_us) : bisect_left(times, until_us)]

    def next_us(self, broker_id: int, after_us: int) -> int:
        """The next instant of that broker."""
        times = self.times.get(broker_id, [])
        at = bisect_right(times, after_us)
        return times[at] if at < len(times) else NEVER_US


class _Cluster:
    """All that the procedures are looked up in."""

    def __init__(
        self,
        events: Sequence[EventRow],
        partition_states: Sequence[StateRow],
        replica_states: Sequence[StateRow],
        leadership: Sequence[LeadershipRow],
        lifecycle: Sequence[EventRow],
    ) -> None:
        self.events = _Log(events)
        self.thread = _Log([row for row in events if row.event in _THREAD])
        self.partitions = _Log(partition_states)
        self.replicas = _Log(replica_states)
        self.requests = _Log([row for row in leadership if row.role == "request"])
        self.lifecycle = _Log(lifecycle)
        self.starts: dict[tuple[str, int, int, int], LeadershipRow] = {}
        for row in sorted(leadership, key=lambda row: (row.time_us, row.ref)):
            if row.role == "leader_start" and row.leader_epoch is not None:
                self.starts.setdefault((row.topic, row.partition, row.broker_id, row.leader_epoch), row)

    def until(self, event: EventRow) -> int:
        """When the controller's thread turns to the next event."""
        return self.thread.next_us(event.broker_id, event.time_us)

    def moved(self, event: EventRow, from_states: Iterable[str], to_state: str) -> list[StateRow]:
        """Partitions that the controller moved while it handled the event."""
        allowed = frozenset(from_states)
        rows = self.partitions.between(event.broker_id, event.time_us, self.until(event))
        return [row for row in rows if row.succeeded and row.from_state in allowed and row.to_state == to_state]

    def replicas_moved(self, event: EventRow, broker_id: int, to_state: str) -> list[StateRow]:
        """Replicas of a broker that the controller moved while it handled the event."""
        rows = self.replicas.between(event.broker_id, event.time_us, self.until(event))
        return [row for row in rows if row.succeeded and row.replica_id == broker_id and row.to_state == to_state]

    def taken_up(self, elected: Iterable[StateRow]) -> list[LeadershipRow]:
        """The elected leaders' own lines, on their clocks; up to 1.0 the election's line names no epoch."""
        keys = [
            (row.topic, row.partition, row.leader, row.leader_epoch)
            for row in elected
            if row.leader is not None and row.leader_epoch is not None
        ]
        return [self.starts[key] for key in keys if key in self.starts]

    def noticed(self, event: EventRow, broker_id: int, came: bool) -> SeenStep:
        """The change of the live brokers that led to the event."""
        which = added_brokers if came else deleted_brokers
        rows = self.events.between(event.broker_id, event.time_us - _WITHIN_US, event.time_us + 1)
        changes = [row for row in rows if row.event == "brokers_changed" and broker_id in which(row)]
        return SeenStep("change_noticed", moment_of(changes[-1]) if changes else None)

    def requested(self, event: EventRow, broker_id: int) -> list[LeadershipRow]:
        """States that the broker got from this controller after the event."""
        rows = self.requests.between(broker_id, event.time_us, min(self.until(event), event.time_us + _WITHIN_US))
        return [row for row in rows if row.controller_id == event.broker_id]

    def lived(self, broker_id: int, event: str, from_us: int, until_us: int) -> SeenStep:
        """A line of the broker's own life."""
        rows = self.lifecycle.between(broker_id, from_us, until_us)
        return step_of(event, [row for row in rows if row.event == event][:1], counted=False, answer=True)


def _change(log: _Cluster, event: EventRow) -> list[ProcedureStep]:
    until = min(
        (
            row.time_us
            for row in log.events.between(event.broker_id, event.time_us + 1, NEVER_US)
            if row.event == event.event
        ),
        default=NEVER_US,
    )
    after = log.events.between(event.broker_id, event.time_us, until)
    steps = [SeenStep("change_noticed", moment_of(event))]
    for name, kind, brokers in (
        ("failures_handled", "broker_failed", deleted_brokers(event)),
        ("startups_handled", "broker_registered", added_brokers(event)),
    ):
        if brokers:
            rows = [row for row in after if row.event == kind and set(subjects(row)) & set(brokers)]
            steps.append(step_of(name, rows, counted=False))
    return procedure(BROKER_CHANGE, event.broker_id, steps)


def _failure(log: _Cluster, event: EventRow, broker_id: int) -> list[ProcedureStep]:
    elected = log.moved(event, (OFFLINE, NEW), ONLINE)
    steps = (
        log.noticed(event, broker_id, came=False),
        SeenStep("failure_handled", moment_of(event)),
        step_of("partitions_offline", log.moved(event, (ONLINE, NEW), OFFLINE)),
        step_of("leaders_elected", elected),
        step_of("replicas_offline", log.replicas_moved(event, broker_id, r.OFFLINE)),
        step_of("leaders_taken_up", log.taken_up(elected), answer=True),
    )
    return procedure(BROKER_FAILURE, event.broker_id, steps, broker_id)


def _startup(log: _Cluster, event: EventRow, broker_id: int) -> list[ProcedureStep]:
    elected = log.moved(event, (OFFLINE, NEW), ONLINE)
    steps = (
        log.noticed(event, broker_id, came=True),
        SeenStep("startup_handled", moment_of(event)),
        step_of("replicas_online", log.replicas_moved(event, broker_id, r.ONLINE)),
        step_of("offline_partitions_elected", elected),
        step_of("states_received", log.requested(event, broker_id), answer=True),
        step_of("leaders_taken_up", log.taken_up(elected), answer=True),
    )
    return procedure(BROKER_STARTUP, event.broker_id, steps, broker_id)


def _shutdown(log: _Cluster, event: EventRow, broker_id: int) -> list[ProcedureStep]:
    moved = [
        row
        for row in log.moved(event, (ONLINE,), ONLINE)
        if row.leader != broker_id and (row.isr is None or broker_id not in row.isr)
    ]
    gone = [
        row
        for row in log.events.between(event.broker_id, event.time_us, event.time_us + _WITHIN_US)
        if row.event == "brokers_changed" and broker_id in deleted_brokers(row)
    ]
    steps = (
        log.lived(broker_id, "shutting_down", event.time_us - _WITHIN_US, event.time_us + _WITHIN_US),
        SeenStep("shutdown_handled", moment_of(event)),
        step_of("leaders_moved", moved),
        step_of("replicas_offline", log.replicas_moved(event, broker_id, r.OFFLINE)),
        step_of("leaders_taken_up", log.taken_up(moved), answer=True),
        log.lived(broker_id, "shut_down", event.time_us, event.time_us + _WITHIN_US),
        step_of("broker_left", gone[:1], counted=False),
    )
    return procedure(CONTROLLED_SHUTDOWN, event.broker_id, steps, broker_id)


def zk_procedures(
    events: Sequence[EventRow],
    partition_states: Sequence[StateRow],
    replica_states: Sequence[StateRow],
    leadership: Sequence[LeadershipRow],
    lifecycle: Sequence[EventRow] = (),
    version: str | None = None,
) -> list[ProcedureStep]:
    """Procedures of a cluster's controllers, from rows of all its partitions.

    Args:
        events: `silver.controller_events`.
        partition_states: `silver.partition_states`.
        replica_states: `silver.replica_states`.
        leadership: `silver.leader_and_isr`, roles ``request`` and ``leader_start``.
        lifecycle: `silver.broker_lifecycle`, events ``shutting_down`` and ``shut_down``.
        version: of the controllers.
    """
    log = _Cluster(events, partition_states, replica_states, leadership, lifecycle)
    rows: list[ProcedureStep] = []
    for event in sorted(events, key=lambda row: (row.time_us, row.ref)):
        if event.event == "brokers_changed":
            rows += _change(log, event)
        for broker_id in subjects(event):
            if event.event == "broker_failed":
                rows += _failure(log, event, broker_id)
            elif event.event == "broker_registered":
                rows += _startup(log, event, broker_id)
            elif event.event == "controlled_shutdown":
                rows += _shutdown(log, event, broker_id)
    return rows + topic_deletions(partition_states, replica_states, version)


def topic_deletions(
    partition_states: Iterable[StateRow], replica_states: Iterable[StateRow], version: str | None
) -> list[ProcedureStep]:
    """`TopicDeletionManager`: one procedure per controller and topic that had a partition deleted."""
    replicas, partitions = _by_topic(replica_states), _by_topic(partition_states)
    rows: list[ProcedureStep] = []
    for key in sorted(replicas.keys() | partitions.keys()):
        deleted_us = [row.time_us for row in partitions[key] if row.to_state == NON_EXISTENT]
        deleted_us += _whole_deletions(replicas[key])
        if not deleted_us:
            continue
        from_us = min(deleted_us) - _TAKEN_OFFLINE_US
        mine = [row for row in replicas[key] if row.time_us >= from_us]
        theirs = [row for row in partitions[key] if row.time_us >= from_us]
        of_partitions = [
            step_of("partitions_offline", [row for row in theirs if row.to_state == OFFLINE]),
            step_of("partitions_removed", [row for row in theirs if row.to_state == NON_EXISTENT]),
        ]
        of_replicas = [
            step_of("replicas_offline", [row for row in mine if row.to_state == r.OFFLINE]),
            step_of("deletion_started", [row for row in mine if row.to_state == r.DELETION_STARTED]),
            step_of("deletion_successful", [row for row in mine if row.to_state == r.DELETION_SUCCESSFUL]),
            step_of("replicas_removed", [row for row in mine if row.to_state == r.NON_EXISTENT]),
        ]
        first = controller_rules(version).deletes_partitions_first
        steps = [*of_partitions, *of_replicas] if first else [*of_replicas, *of_partitions]
        rows += procedure(TOPIC_DELETION, key[0], steps, topic=key[1])
    return rows


def _by_topic(rows: Iterable[StateRow]) -> dict[tuple[int, str], list[StateRow]]:
    """Transitions that were made, by controller and topic."""
    by_topic: dict[tuple[int, str], list[StateRow]] = defaultdict(list)
    for row in rows:
        if row.succeeded:
            by_topic[row.broker_id, row.topic].append(row)
    return by_topic


def _whole_deletions(rows: Iterable[StateRow]) -> list[int]:
    """When the last of a partition's replicas began to be deleted.

    One replica is deleted, too, as a reassignment takes it away (`stopOldReplicasOfReassignedPartition`): others stay.
    """
    begun_us: list[int] = []
    states: dict[int, dict[int | None, str]] = defaultdict(dict)
    for row in in_order(rows):
        known = states[row.partition]
        known[row.replica_id] = row.to_state
        if row.to_state == r.NON_EXISTENT:
            del known[row.replica_id]
        elif row.to_state == r.DELETION_STARTED and set(known.values()) <= _DELETED:
            begun_us.append(row.time_us)
    return begun_us
