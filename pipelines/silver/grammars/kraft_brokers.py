"""Grammar of the KRaft controller: brokers that register, are fenced, unfenced, or shut down."""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.printed import BROKER_CHANGE, fields
from pipelines.silver.record import Fact, Record
from pipelines.silver.values import i32, optional_i32

_REPLICATION = ("ReplicationControlManager", "PartitionChangeBuilder", "PartitionRegistration")
_CLUSTER = ("ClusterControlManager",)
_HEARTBEATS = ("BrokerHeartbeatManager",)
_MAX_DETAIL = 500


def _event(match: re.Match[str], event: str, **columns: object) -> Fact:
    return Fact("controller_events", {"event": event, **columns, "detail": match[0][:_MAX_DETAIL]})


def _broker(match: re.Match[str], event: str) -> tuple[Fact, ...]:
    return (_event(match, event, subject_broker_id=i32(match["broker"])),)


def _fenced(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _broker(match, "broker_fenced")


def _unfenced(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _broker(match, "broker_unfenced")


def _registered(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _broker(match, "broker_registered")


def _unregistered(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _broker(match, "broker_failed")


def _shutdown(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _broker(match, "controlled_shutdown")


def _registration_changed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """``fenced``: 1 fence, -1 unfence, 0 no change; ``inControlledShutdown``: 1 entered."""
    values = fields(match["record"], BROKER_CHANGE)
    if i32(values["brokerId"]) != i32(match["broker"]):
        raise ValueError(f"not broker {match['broker']}: {match['record'][:80]}")
    fenced = i32(values["fenced"])
    shutting_down = i32(values.get("inControlledShutdown", "0"))
    if fenced not in (-1, 0, 1) or shutting_down not in (0, 1):
        raise ValueError(f"no change of a broker: {match['record'][:80]}")
    if fenced:
        return _broker(match, "broker_fenced" if fenced == 1 else "broker_unfenced")
    if shutting_down:
        return _broker(match, "controlled_shutdown")
    return _broker(match, "other")


def _partitions_changing(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (_event(match, "other", subject_broker_id=optional_i32(match["broker"])),)


def _fence_replayed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _broker(match, "broker_unfenced" if "Unfence" in match[0] else "broker_fenced")


TEMPLATES = (
    Template(
        "controller_kraft.broker_fenced",
        _REPLICATION,
        r"Fencing broker (?P<broker>-?\d+)(?: at epoch -?\d+)? because its session has timed out\.",
        "ReplicationControlManager.maybeFenceOneStaleBroker",
        _fenced,
    ),
    Template(
        "controller_kraft.partitions_changing",
        _REPLICATION,
        r"(?P<context>\w+)(?:\[(?P<broker>-?\d+)(?::[\w-]{22})?\])?: changing \d+ partition\(s\)",
        "ReplicationControlManager.generateLeaderAndIsrUpdates: a count only",
        _partitions_changing,
    ),
    Template(
        "controller_kraft.partitions_listed",
        _REPLICATION,
        r"\w+(?:\[-?\d+(?::[\w-]{22})?\])?: changing partition\(s\): .*",
        "ReplicationControlManager.generateLeaderAndIsrUpdates; DEBUG",
    ),
    Template(
        "controller_kraft.heartbeats_forgotten",
        _REPLICATION,
        r"Removing heartbeat tracker entry for (?:broker -?\d+ at previous epoch -?\d+\. Current epoch is "
        r"-?\d+|unknown broker -?\d+ at epoch -?\d+\.)",
        "ReplicationControlManager, 4.0 and later: a broker that is back, or gone for good",
    ),
    Template(
        "controller_kraft.broker_registered",
        _CLUSTER,
        r"(?:Replayed initial RegisterBrokerRecord for broker|Replayed RegisterBrokerRecord (?:modifying the "
        r"registration for|establishing a new incarnation of) broker) (?P<broker>-?\d+): .*",
        "ClusterControlManager.replay(RegisterBrokerRecord), 3.6 and later",
        _registered,
    ),
    Template(
        "controller_kraft.broker_registered",
        _CLUSTER,
        r"(?:Registered new broker: |Re-registered broker incarnation: |Re-registered broker id -?\d+: "
        r")\w+\(brokerId=(?P<broker>-?\d+).*",
        "ClusterControlManager.replay(RegisterBrokerRecord), 2.8 to 3.5",
        _registered,
    ),
    Template(
        "controller_kraft.registration_changed",
        _CLUSTER,
        r"Replayed BrokerRegistrationChangeRecord modifying the registration for broker (?P<broker>-?\d+): "
        r"(?P<record>BrokerRegistrationChangeRecord\(.*\))",
        "ClusterControlManager.replayRegistrationChange, 3.6 and later",
        _registration_changed,
    ),
    Template(
        "controller_kraft.broker_unregistered",
        _CLUSTER,
        r"(?:Replayed UnregisterBrokerRecord|Unregistered broker: \w+)\(brokerId=(?P<broker>-?\d+).*",
        "ClusterControlManager.replay(UnregisterBrokerRecord)",
        _unregistered,
    ),
    Template(
        "controller_kraft.broker_fence_replayed",
        _CLUSTER,
        r"(?:Fenced broker: |Replayed )\w*FenceBrokerRecord\((?:id|brokerId)=(?P<broker>-?\d+).*",
        "ClusterControlManager.replay(FenceBrokerRecord)",
        _fence_replayed,
    ),
    Template(
        "controller_kraft.broker_fence_replayed",
        _CLUSTER,
        r"Unfenced broker: \w+\((?:id|brokerId)=(?P<broker>-?\d+).*",
        "ClusterControlManager.replay(UnfenceBrokerRecord), 2.8 to 3.2",
        _unfenced,
    ),
    Template(
        "controller_kraft.registration",
        _CLUSTER,
        r"(?:No previous registration found for broker|Registering a new incarnation of broker|Amending registration "
        r"of broker) .*",
        "ClusterControlManager.registerBroker, 3.7 and later: the replayed record follows",
    ),
    Template(
        "controller_kraft.controller_registered",
        _CLUSTER,
        r"Replayed RegisterControllerRecord conta(?:in|n)ing .*",
        "ClusterControlManager.replay(RegisterControllerRecord), 3.7 and later",
    ),
    Template(
        "controller_kraft.registration_unchanged",
        _CLUSTER,
        r"(?:Ignoring no-op registration change for .*|Broker -?\d+ registered with .*|Received an unclean shutdown "
        r"request)",
        "ClusterControlManager",
    ),
    Template(
        "controller_kraft.unfence_granted",
        _HEARTBEATS,
        r"The request from broker (?P<broker>-?\d+) to unfence has been granted because it has caught up with the .*",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _unfenced,
    ),
    Template(
        "controller_kraft.fencing_granted",
        _HEARTBEATS,
        r"Unfenced broker (?P<broker>-?\d+) has requested and been granted fencing",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _fenced,
    ),
    Template(
        "controller_kraft.shutdown_granted",
        _HEARTBEATS,
        r"(?:Unfenced|Fenced) broker (?P<broker>-?\d+) has requested and been granted an? (?:immediate|controlled) "
        r"shutdown\.",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _shutdown,
    ),
    Template(
        "controller_kraft.shutdown_completed",
        _HEARTBEATS,
        r"The request from broker (?P<broker>-?\d+) to shut down has been granted since the lowest active offset .*",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _shutdown,
    ),
    Template(
        "controller_kraft.heartbeat",
        _HEARTBEATS,
        r"(?:Updated the controlled shutdown offset for broker .*|The request from broker -?\d+ to (?:unfence|shut "
        r"down) can ?not yet be granted .*|Broker -?\d+ is in controlled shutdown state, but can not shut down "
        r"because .*|Registered .*|Broker -?\d+ .*)",
        "BrokerHeartbeatManager; DEBUG",
    ),
)
