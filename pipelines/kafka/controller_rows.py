"""Input rows of the controllers' modules.

Every row has the location of its line, so that its proof has evidence. Times are on the
clock of the broker that logged the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from highwater.schemas.fields import Int, Long

ILLEGAL_STATE_TRANSITION: Final = "illegal-state-transition"
FAILOVER_NOT_COMPLETED: Final = "failover-not-completed"

#: A leader that is none: `LeaderAndIsr.NoLeader`, `PartitionRegistration` without leader.
NO_LEADER: Final = -1
#: `LeaderAndIsr.LeaderDuringDelete`: the topic is being deleted.
LEADER_DURING_DELETE: Final = -2

# States of a ZooKeeper controller's `PartitionStateMachine`.
NON_EXISTENT: Final = "NonExistentPartition"
NEW: Final = "NewPartition"
ONLINE: Final = "OnlinePartition"
OFFLINE: Final = "OfflinePartition"

#: Two lines of one controller, no further apart, speak of one incarnation of a topic. To delete a topic and
#: create it again takes two requests of clients, two rounds of StopReplica and several writes to ZooKeeper in between.
ONE_INCARNATION_US: Final = 10_000


class LineRef(NamedTuple):
    """Location of a line: columns of the same names in every silver table."""

    file_id: str
    byte_offset: Long
    line_no: Long


#: Place of what is on no line of its own.
NOWHERE: Final = LineRef("", 0, 0)


class StateRow(NamedTuple):
    """A row of `silver.partition_states`, or with `replica_id` of `silver.replica_states`."""

    time_us: Long
    broker_id: Int
    ref: LineRef
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


#: Roles of rows of `silver.isr_changes`: the leader committed an ISR, asked for a larger or a smaller one, or was
#: refused.
COMMITTED: Final = "isr"
ASKED: Final = "isr_asked"
SHRINK_ASKED: Final = "isr_shrink_asked"
REFUSED: Final = "isr_refused"


class LeadershipRow(NamedTuple):
    """A row of `silver.leader_and_isr`; of `silver.isr_changes` too, whose leader is the broker itself."""

    time_us: Long
    broker_id: Int
    ref: LineRef
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
    start_offset: Long | None = None  #: of the epoch, as who starts it says
    previous_isr: tuple[Int, ...] | None = None  #: in-sync replicas that a proposal of the leader changes


class EventRow(NamedTuple):
    """A row of `silver.controller_events`; of `silver.broker_lifecycle` too, whose subject is the broker itself."""

    time_us: Long
    broker_id: Int
    ref: LineRef
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
    """A partition's state after one record of `__cluster_metadata`, as one node's copy of that log holds it."""

    time_us: Long
    broker_id: Int  #: node whose copy it is
    ref: LineRef
    topic: str
    partition: Int
    offset: Long  #: of the record; the order of rows
    topic_id: str
    leader: Int
    leader_epoch: Int
    partition_epoch: Int
    isr: tuple[Int, ...]
    replicas: tuple[Int, ...]
    adding_replicas: tuple[Int, ...] = ()
    removing_replicas: tuple[Int, ...] = ()
    #: eligible leader replicas (KIP-966), `last_known_elr` the last leader known; None where not known
    elr: tuple[Int, ...] | None = None
    last_known_elr: tuple[Int, ...] | None = None
    recovering: bool | None = None  #: leader recovery state (KIP-704) is RECOVERING; None where the records do not show
    #: active controller that wrote it, whose clock `time_us` is of; None where not known
    controller_id: Int | None = None
    #: the record is known to be committed, so that no other node can hold another one at its offset
    committed: bool = False


class RegistrationRow(NamedTuple):
    """One step of a broker's registration: a record of `__cluster_metadata` (with `offset`) or a controller's line.

    `change` is registered, unfenced, fenced, controlled_shutdown or unregistered. `controller_id` is the active
    controller that wrote the record; None where not known.
    """

    time_us: Long
    broker_id: Int
    ref: LineRef
    subject_broker_id: Int
    change: str
    broker_epoch: Int | None = None
    offset: Long | None = None
    controller_id: Int | None = None


PartitionRow = StateRow | LeadershipRow | RecordRow
AnyRow = PartitionRow | EventRow | RegistrationRow


def sort_rows(rows: Iterable[StateRow]) -> list[StateRow]:
    """Return rows in time order. Lines with equal times keep the order of their file."""
    return sorted(rows, key=lambda row: (row.time_us, row.broker_id, row.ref))


_DELETED: Final = re.compile(r"deleted brokers: ([-\d,]*)", re.ASCII)
_ADDED: Final = re.compile(r"[Nn]ewly added brokers: ([-\d,]*)", re.ASCII)
_BOUNCED: Final = re.compile(r"bounced brokers: ([-\d,]*)", re.ASCII)
_BROKER_EPOCH: Final = re.compile(r"(?:brokerEpoch=|at epoch )(\d+)", re.ASCII)


def _parse_brokers(pattern: re.Pattern[str], detail: str | None) -> tuple[int, ...]:
    match = pattern.search(detail or "")
    return tuple(int(text) for text in match[1].split(",") if text) if match else ()


def list_deleted_brokers(row: EventRow) -> tuple[int, ...]:
    """Return the brokers that left, by `KafkaController.processBrokerChange`. A bounced broker left and came back."""
    return (*_parse_brokers(_DELETED, row.detail), *_parse_brokers(_BOUNCED, row.detail))


def list_added_brokers(row: EventRow) -> tuple[int, ...]:
    """Return the brokers that joined. A bounced broker left and came back."""
    return (*_parse_brokers(_ADDED, row.detail), *_parse_brokers(_BOUNCED, row.detail))


def broker_epoch(row: EventRow) -> int | None:
    """Return the broker epoch in a line of KRaft's `ClusterControlManager` or `ReplicationControlManager`, or None."""
    match = _BROKER_EPOCH.search(row.detail or "")
    return int(match[1]) if match else None


def list_subjects(row: EventRow) -> tuple[int, ...]:
    """Return the ids of the brokers that an event is about."""
    if row.event == "brokers_changed":
        return list_deleted_brokers(row)
    return row.brokers or (() if row.subject_broker_id is None else (row.subject_broker_id,))
