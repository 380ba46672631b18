"""Grammar of the ZooKeeper controller's lines in the state change log: elections, partition and replica states."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.states import COLON_STATE, equals_state
from pipelines.grammars.typed import TP, controller_event, epoch, node, typed
from pipelines.grammars.values import INT_LIST, ints, partition_of

_transition = partial(typed, "partition_states", controller_epoch=epoch)
_moved_to = _transition(succeeded=True)
_failed = _transition(succeeded=False)
_replica_transition = typed(
    "replica_states", succeeded=lambda match, _: not match[0].endswith("failed"), controller_epoch=epoch
)


def _changed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The controller decided on a leader and an ISR, and wrote them to ZooKeeper."""
    topic, partition = partition_of(match["tp"])
    state = equals_state(match["state"])
    written = {"topic": topic, "partition": partition, "controller_epoch": context.epoch}
    written |= {key: state[key] for key in ("leader", "leader_epoch", "isr", "partition_epoch")}
    states = {"from_state": match["from_state"], "to_state": match["to_state"], "succeeded": True}
    return (
        Fact("partition_states", {**written, **states}),
        Fact("leader_and_isr", {**written, "role": "controller", "controller_id": context.node}),
    )


def _moved(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    facts = _moved_to(match, context, record)
    if match[4] is None:
        return facts
    topic, partition = partition_of(match["tp"])
    row = {"event": "partition_created", "topic": topic, "partition": partition, "replicas": ints(match[4])}
    return *facts, Fact("controller_events", {**row, "controller_epoch": context.epoch})


#: What the controller holds for true: it sends that to brokers.
_held = typed("leader_and_isr", role="controller", controller_id=node, controller_epoch=epoch)

#: ``Controller 1 epoch 2``, printed once more inside the text by some lines.
_SELF = r"(?:Controller -?\d+ epoch -?\d+ )?"
_FROM_TO = r"from (?P<from_state>\w+) to (?P<to_state>\w+)"
_state_change = partial(Template, loggers=("state.change.logger",))

TEMPLATES = (
    _state_change(
        "state_machines.partition_changed",
        rf"Changed partition {TP} {_FROM_TO} with state (?P<state>LeaderAndIsr\(.*\))",
        "ZkPartitionStateMachine.doHandleStateChanges, 1.1 and later; TRACE up to 2.5",
        _changed,
    ),
    _state_change(
        "state_machines.partition_moved",
        rf"[Cc]hanged partition {TP} (?:state )?{_FROM_TO}(?: with assigned replicas ({INT_LIST})| with leader "
        r"(?P<leader>-?\d+))?",
        "ZkPartitionStateMachine.doHandleStateChanges",
        _moved,
    ),
    _state_change(
        "state_machines.partition_failed",
        rf"{_SELF}failed to change state for partition {TP} {_FROM_TO}",
        "PartitionStateMachine.logFailedStateChange, 1.1 and later",
        _failed,
    ),
    _state_change(
        "state_machines.partition_failed",
        rf"{_SELF}[Ii]nitiated state change for partition {TP} {_FROM_TO} failed",
        "PartitionStateMachine.handleStateChange, up to 1.0",
        _failed,
    ),
    _state_change(
        "state_machines.replica_changed",
        rf"[Cc]hanged state of replica (?P<replica_id>-?\d+) for partition {TP} {_FROM_TO}",
        "ReplicaStateMachine.logSuccessfulTransition; TRACE",
        _replica_transition,
    ),
    _state_change(
        "state_machines.replica_failed",
        rf"{_SELF}[Ii]nitiated state change of replica (?P<replica_id>-?\d+) for partition {TP} {_FROM_TO} failed",
        "ReplicaStateMachine.logFailedStateChange",
        _replica_transition,
    ),
    _state_change(
        "state_machines.replica_removed",
        rf"Partition {TP} state changed to (?P<state>{COLON_STATE}) after removing replica -?\d+ from the ISR as part "
        r"of transition to OfflineReplica",
        "ZkReplicaStateMachine.doHandleStateChanges, 2.6 and later",
        _held,
    ),
    _state_change(
        "state_machines.sent_state",
        r"[Ss]ending become-(?:leader|follower) LeaderAndIsr request (?P<state>\w*\(.*\)) to broker -?\d+ for "
        rf"partition {TP}",
        "AbstractControllerBrokerRequestBatch.sendLeaderAndIsrRequest; TRACE",
        _held,
    ),
    _state_change(
        "state_machines.sent_metadata",
        rf"[Ss]ending UpdateMetadata request (?P<state>\w*\(.*\)) to brokers? {INT_LIST} for partition {TP}",
        "ControllerBrokerRequestBatch.sendRequestsToBrokers, up to 2.5",
        _held,
    ),
    _state_change(
        "state_machines.replicas_offline",
        r"Mark replicas .* on broker (?P<subject_broker_id>-?\d+) as offline",
        "KafkaController.processLeaderAndIsrResponseReceived: a log directory of that broker failed",
        controller_event("log_dir_failed", controller_epoch=epoch),
    ),
    _state_change(
        "state_machines.elected",
        rf"[Ee]lected leader (?P<leader>-?\d+) for Offline partition {TP}",
        "PartitionStateMachine.electLeaderForPartition, up to 1.0",
        controller_event("election", controller_epoch=epoch),
    ),
    _state_change(
        "state_machines.election_failed",
        rf"[Ee]ncountered error while electing leader for partition {TP} due to: .*",
        "PartitionStateMachine.electLeaderForPartition, up to 1.0",
        controller_event("election", controller_epoch=epoch),
    ),
)
