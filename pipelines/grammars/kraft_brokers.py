"""Grammar of the KRaft controller: brokers that register, are fenced, unfenced, or shut down."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.kraft_partitions import replication
from pipelines.grammars.printed import BROKER_CHANGE, fields
from pipelines.grammars.typed import controller_event as _event
from pipelines.grammars.values import i32


def _change(match: re.Match[str], context: Context) -> str:
    """``fenced``: 1 fence, -1 unfence, 0 no change; ``inControlledShutdown``: 1 entered."""
    values = fields(match[2], BROKER_CHANGE)
    if i32(values["brokerId"]) != i32(match[1]):
        raise ValueError(f"not broker {match[1]}: {match[2][:80]}")
    fenced = i32(values["fenced"])
    shutting_down = i32(values.get("inControlledShutdown", "0"))
    if fenced not in (-1, 0, 1) or shutting_down not in (0, 1):
        raise ValueError(f"no change of a broker: {match[2][:80]}")
    if fenced:
        return "broker_fenced" if fenced == 1 else "broker_unfenced"
    return "controlled_shutdown" if shutting_down else "other"


def _fence(match: re.Match[str], context: Context) -> str:
    return "broker_unfenced" if "Unfence" in match[0] else "broker_fenced"


_cluster = partial(Template, loggers=("ClusterControlManager",))
_heartbeats = partial(Template, loggers=("BrokerHeartbeatManager",))

TEMPLATES = (
    replication(
        "controller_kraft.broker_fenced",
        r"Fencing broker (?P<subject_broker_id>-?\d+)(?: at epoch -?\d+)? because its session has timed out\.",
        "ReplicationControlManager.maybeFenceOneStaleBroker",
        _event("broker_fenced"),
    ),
    replication(
        "controller_kraft.partitions_changing",
        r"\w+(?:\[(?P<subject_broker_id>-?\d+)(?::[\w-]{22})?\])?: changing \d+ partition\(s\)",
        "ReplicationControlManager.generateLeaderAndIsrUpdates: a count only",
        _event("other"),
    ),
    _cluster(
        "controller_kraft.broker_registered",
        r"(?:Replayed initial RegisterBrokerRecord for broker|Replayed RegisterBrokerRecord (?:modifying the "
        r"registration for|establishing a new incarnation of) broker) (?P<subject_broker_id>-?\d+): .*",
        "ClusterControlManager.replay(RegisterBrokerRecord), 3.6 and later",
        _event("broker_registered"),
    ),
    _cluster(
        "controller_kraft.broker_registered",
        r"(?:Registered new broker: |Re-registered broker incarnation: |Re-registered broker id -?\d+: "
        r")\w+\(brokerId=(?P<subject_broker_id>-?\d+).*",
        "ClusterControlManager.replay(RegisterBrokerRecord), 2.8 to 3.5",
        _event("broker_registered"),
    ),
    _cluster(
        "controller_kraft.registration_changed",
        r"Replayed BrokerRegistrationChangeRecord modifying the registration for broker (?P<subject_broker_id>-?\d+): "
        r"(BrokerRegistrationChangeRecord\(.*\))",
        "ClusterControlManager.replayRegistrationChange, 3.6 and later",
        _event(_change),
    ),
    _cluster(
        "controller_kraft.broker_unregistered",
        r"(?:Replayed UnregisterBrokerRecord|Unregistered broker: \w+)\(brokerId=(?P<subject_broker_id>-?\d+).*",
        "ClusterControlManager.replay(UnregisterBrokerRecord)",
        _event("broker_failed"),
    ),
    _cluster(
        "controller_kraft.broker_fence_replayed",
        r"(?:Fenced broker: |Replayed )\w*FenceBrokerRecord\((?:id|brokerId)=(?P<subject_broker_id>-?\d+).*",
        "ClusterControlManager.replay(FenceBrokerRecord)",
        _event(_fence),
    ),
    _cluster(
        "controller_kraft.broker_fence_replayed",
        r"Unfenced broker: \w+\((?:id|brokerId)=(?P<subject_broker_id>-?\d+).*",
        "ClusterControlManager.replay(UnfenceBrokerRecord), 2.8 to 3.2",
        _event("broker_unfenced"),
    ),
    _heartbeats(
        "controller_kraft.unfence_granted",
        r"The request from broker (?P<subject_broker_id>-?\d+) to unfence has been granted because it has caught up "
        r"with the .*",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _event("broker_unfenced"),
    ),
    _heartbeats(
        "controller_kraft.fencing_granted",
        r"Unfenced broker (?P<subject_broker_id>-?\d+) has requested and been granted fencing",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _event("broker_fenced"),
    ),
    _heartbeats(
        "controller_kraft.shutdown_granted",
        r"(?:Unfenced|Fenced) broker (?P<subject_broker_id>-?\d+) has requested and been granted an? "
        r"(?:immediate|controlled) shutdown\.",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _event("controlled_shutdown"),
    ),
    _heartbeats(
        "controller_kraft.shutdown_completed",
        r"The request from broker (?P<subject_broker_id>-?\d+) to shut down has been granted since the lowest active "
        r"offset .*",
        "BrokerHeartbeatManager.calculateNextBrokerState",
        _event("controlled_shutdown"),
    ),
)
