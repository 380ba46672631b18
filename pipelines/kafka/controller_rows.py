"""Rows that the controllers' modules take in, and the findings that they give.

Every row carries the place of its line, so that a finding has evidence. Times are those of the log line, on the clock
of the broker whose log it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from schemas.fields import Int, Long

ILLEGAL_STATE_TRANSITION: Final = "illegal-state-transition"
FAILOVER_NOT_COMPLETED: Final = "failover-not-completed"

#: A leader that is none: `LeaderAndIsr.NoLeader`, `PartitionRegistration` without leader.
NO_LEADER: Final = -1
#: `LeaderAndIsr.LeaderDuringDelete`: the topic is being deleted.
LEADER_DURING_DELETE: Final = -2

#: Two lines of one controller, no further apart, speak of one incarnation of a topic. To delete a topic and make it
#: anew takes two requests of clients, two rounds of StopReplica and several writes to ZooKeeper in between.
ONE_INCARNATION_US: Final = 10_000


class Ref(NamedTuple):
    """Place of a line: columns of the same names of every silver table."""

    file_id: str
    byte_offset: Long
    line_no: Long


#: Place of what is on no line of its own.
NOWHERE: Final = Ref("", 0, 0)


class StateRow(NamedTuple):
    """A row of `silver.partition_states`, or with `replica_id` of `silver.replica_states`."""

    time_us: Long
    broker_id: Int
    ref: Ref
    topic: str
    partition: Int
    from_state: str
    to_state: str
    succeeded: bool
    controller_epoch: Int | None = None
    replica_id: Int | None = None
    leader: Int | None = None
    leader_epoch: Int | None = None
    isr: tuple[Int, ...] | None = None
    partition_epoch: Int | None = None


#: Roles of rows of `silver.isr_changes`: the leader committed an ISR, or asked for a larger one.
COMMITTED: Final = "isr"
ASKED: Final = "isr_asked"


class LeadershipRow(NamedTuple):
    """A row of `silver.leader_and_isr`; of `silver.isr_changes` too, whose leader is the broker itself."""

    time_us: Long
    broker_id: Int
    ref: Ref
    topic: str
    partition: Int
    role: str
    topic_id: str | None = None
    leader: Int | None = None
    leader_epoch: Int | None = None
    partition_epoch: Int | None = None
    isr: tuple[Int, ...] | None = None
    replicas: tuple[Int, ...] | None = None
    adding_replicas: tuple[Int, ...] | None = None
    removing_replicas: tuple[Int, ...] | None = None
    controller_id: Int | None = None
    controller_epoch: Int | None = None
    previous_leader: Int | None = None


class EventRow(NamedTuple):
    """A row of `silver.controller_events`; of `silver.broker_lifecycle` too, whose subject is the broker itself."""

    time_us: Long
    broker_id: Int
    ref: Ref
    event: str
    controller_epoch: Int | None = None
    subject_broker_id: Int | None = None
    brokers: tuple[Int, ...] | None = None
    topic: str | None = None
    partition: Int | None = None
    topic_id: str | None = None
    leader: Int | None = None
    detail: str | None = None


class RecordRow(NamedTuple):
    """A partition's state after one record of `__cluster_metadata`, as one node's copy of that log holds it.

    Attributes:
        offset: of the record; the order of rows.
        broker_id: node whose copy it is.
        elr: eligible leader replicas (KIP-966), `last_known_elr` the last leader known; None where not known.
        recovering: leader recovery state (KIP-704) is RECOVERING; None where the records do not tell.
        controller_id: active controller that wrote it, whose clock `time_us` is of; None where not known.
        committed: the record is known to be committed, so that no other node can hold another one at its offset.
    """

    time_us: Long
    broker_id: Int
    ref: Ref
    topic: str
    partition: Int
    offset: Long
    topic_id: str
    leader: Int
    leader_epoch: Int
    partition_epoch: Int
    isr: tuple[Int, ...]
    replicas: tuple[Int, ...]
    adding_replicas: tuple[Int, ...] = ()
    removing_replicas: tuple[Int, ...] = ()
    elr: tuple[Int, ...] | None = None
    last_known_elr: tuple[Int, ...] | None = None
    recovering: bool | None = None
    controller_id: Int | None = None
    committed: bool = False


class RegistrationRow(NamedTuple):
    """One step of a broker's registration: a record of `__cluster_metadata` (with `offset`) or a controller's line.

    `change` is registered, unfenced, fenced, controlled_shutdown or unregistered. `controller_id` is the active
    controller that wrote the record; None where not known.
    """

    time_us: Long
    broker_id: Int
    ref: Ref
    subject_broker_id: Int
    change: str
    broker_epoch: Int | None = None
    offset: Long | None = None
    controller_id: Int | None = None


@dataclass(frozen=True)
class Finding:
    """A broken promise, with the lines that prove it; topic is empty and partition -1 where it is about a broker."""

    rule_id: str
    topic: str
    partition: int
    leader_epoch: int | None
    time_us: int
    brokers: tuple[int, ...]
    message: str
    refs: tuple[Ref, ...]


class Transition(NamedTuple):
    """A row of gold `controller_transitions`; the shell adds the cluster.

    Attributes:
        why: allowed, first_of_controller (nothing to compare with), after_gap (lines between are missing), refused
            (the controller itself refused the pair), failed, repeated, never_allowed, contradicts.
    """

    topic: str
    partition: int
    machine: str
    controller: int
    time_us: int
    from_state: str
    to_state: str
    legal: bool | None
    why: str
    ref: Ref
    replica_id: int | None = None
    controller_epoch: int | None = None
    succeeded: bool = True
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None


class Replayed(NamedTuple):
    """What a replay gives."""

    transitions: tuple[Transition, ...]
    findings: tuple[Finding, ...]


PartitionRow = StateRow | LeadershipRow | RecordRow


def illegal(message: str, *rows: PartitionRow, about: PartitionRow | None = None) -> Finding:
    """The finding that rows of a partition show together.

    Args:
        about: the row that gives its leader epoch and instant; the last one by default.
    """
    last = rows[-1] if about is None else about
    return Finding(
        rule_id=ILLEGAL_STATE_TRANSITION,
        topic=last.topic,
        partition=last.partition,
        leader_epoch=last.leader_epoch,
        time_us=last.time_us,
        brokers=tuple(sorted({row.broker_id for row in rows})),
        message=message,
        refs=tuple(row.ref for row in rows),
    )


def transition(
    row: PartitionRow, machine: str, from_state: str, to_state: str, legal: bool | None, why: str, **more: Any
) -> Transition:
    """The transition of a partition, or with `more` of a replica, that a row shows."""
    return Transition(
        topic=row.topic,
        partition=row.partition,
        machine=machine,
        controller=row.broker_id,
        time_us=row.time_us,
        from_state=from_state,
        to_state=to_state,
        legal=legal,
        why=why,
        ref=row.ref,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
        isr=row.isr,
        **more,
    )


def in_order(rows: Iterable[StateRow]) -> list[StateRow]:
    """By time; lines of one millisecond in the order of their file."""
    return sorted(rows, key=lambda row: (row.time_us, row.broker_id, row.ref))


_DELETED: Final = re.compile(r"deleted brokers: ([-\d,]*)", re.ASCII)
_ADDED: Final = re.compile(r"[Nn]ewly added brokers: ([-\d,]*)", re.ASCII)
_BOUNCED: Final = re.compile(r"bounced brokers: ([-\d,]*)", re.ASCII)
_BROKER_EPOCH: Final = re.compile(r"(?:brokerEpoch=|at epoch )(\d+)", re.ASCII)


def _brokers(pattern: re.Pattern[str], detail: str | None) -> tuple[int, ...]:
    match = pattern.search(detail or "")
    return tuple(int(text) for text in match[1].split(",") if text) if match else ()


def deleted_brokers(row: EventRow) -> tuple[int, ...]:
    """Brokers that left, by `KafkaController.processBrokerChange`; a bounced one left and came back."""
    return (*_brokers(_DELETED, row.detail), *_brokers(_BOUNCED, row.detail))


def added_brokers(row: EventRow) -> tuple[int, ...]:
    """Brokers that came."""
    return (*_brokers(_ADDED, row.detail), *_brokers(_BOUNCED, row.detail))


def broker_epoch(row: EventRow) -> int | None:
    """Broker epoch that a line of KRaft's `ClusterControlManager` or `ReplicationControlManager` names."""
    match = _BROKER_EPOCH.search(row.detail or "")
    return int(match[1]) if match else None


def subjects(row: EventRow) -> tuple[int, ...]:
    """Brokers that an event is about."""
    if row.event == "brokers_changed":
        return deleted_brokers(row)
    return row.brokers or (() if row.subject_broker_id is None else (row.subject_broker_id,))
