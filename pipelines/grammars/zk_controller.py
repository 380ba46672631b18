"""Grammar of the ZooKeeper controller's own log (``kafka.controller.*``): elections, brokers, ISR changes.

Its default level is TRACE. Up to 1.0 leader selection had classes of its own.
"""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import TP, node, typed
from pipelines.grammars.typed import controller_event as _event
from pipelines.grammars.values import INT_LIST, i32, ints, partition_of

_CONTROLLER = ("KafkaController",)
_BROKER_LISTENER = ("ReplicaStateMachine$BrokerChangeListener",)

_SELECTORS = (
    "OfflinePartitionLeaderSelector",
    "ReassignedPartitionLeaderSelector",
    "PreferredReplicaPartitionLeaderSelector",
    "ControlledShutdownLeaderSelector",
    "NoOpLeaderSelector",
)

_JSON_STATE = re.compile(r'\{"leader":(-?\d+),"leader_epoch":(-?\d+),"isr":(\[[\d,]*\])\}', re.ASCII)


def _several(match: re.Match[str], context: Context) -> list[int]:
    brokers = ints(match["brokers"])
    if not brokers:
        raise ValueError("no broker")
    return brokers


def _single(match: re.Match[str], context: Context) -> int | None:
    brokers = ints(match["brokers"])
    return brokers[0] if len(brokers) == 1 else None


_about_brokers = partial(_event, brokers=_several, subject_broker_id=_single)


def _selected(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A state as JSON: ``{"leader":2,"leader_epoch":1,"isr":[2,3]}``."""
    topic, partition = partition_of(match["tp"])
    state = _JSON_STATE.fullmatch(match["state"])
    if state is None:
        raise ValueError(f"no leader and ISR: {match['state'][:80]}")
    row = {"topic": topic, "partition": partition, "role": "controller", "controller_id": context.node}
    written = {"leader": i32(state[1]), "leader_epoch": i32(state[2]), "isr": ints(state[3])}
    return (Fact("leader_and_isr", {**row, **written}),)


_isr_written = typed("leader_and_isr", role="controller", controller_id=node)
_controller = partial(Template, loggers=_CONTROLLER)
_selectors = partial(Template, loggers=_SELECTORS)

TEMPLATES = (
    _controller(
        "controller_zk.elected",
        r"(?P<subject_broker_id>-?\d+) successfully elected as the controller\. Epoch incremented to "
        r"(?P<controller_epoch>\d+) and epoch zk version is now \d+",
        "KafkaController.elect, 1.1 and later",
        _event("controller_elected"),
    ),
    _controller(
        "controller_zk.elected",
        r"Controller (?P<subject_broker_id>-?\d+) incremented epoch to (?P<controller_epoch>\d+)",
        "KafkaController.incrementControllerEpoch, up to 0.11",
        _event("controller_elected"),
    ),
    _controller(
        "controller_zk.epoch_incremented",
        r"(?:Incremented epoch|Epoch incremented) to (?P<controller_epoch>\d+)",
        "KafkaController.incrementControllerEpoch, 1.0 to 2.0: the broker's own",
        _event("controller_elected", subject_broker_id=node),
    ),
    _controller(
        "controller_zk.elected_without_epoch",
        r"(?P<subject_broker_id>-?\d+) successfully elected as the controller",
        "KafkaController.elect, 0.11 to 2.0",
        _event("controller_elected"),
    ),
    _controller(
        "controller_zk.other_elected",
        r"Broker (?P<subject_broker_id>-?\d+) (?:has been elected as the controller, so stopping the election "
        r"process\.|was elected as controller instead of broker -?\d+)",
        "KafkaController.elect; DEBUG",
        _event("controller_elected"),
    ),
    _controller(
        "controller_zk.resigned",
        r"(?:Resigned|Broker -?\d+ resigned as the controller)",
        "KafkaController.onControllerResignation",
        _event("controller_resigned", subject_broker_id=node),
    ),
    Template(
        "controller_zk.brokers_changed",
        r"Newly added brokers: [-\d,]*, deleted brokers: [-\d,]*,(?: bounced brokers: [-\d,]*,)? all live brokers: "
        r"(?P<brokers>[-\d,]*)",
        "KafkaController.processBrokerChange",
        _event("brokers_changed"),
        loggers=(*_CONTROLLER, *_BROKER_LISTENER),
    ),
    _controller(
        "controller_zk.broker_failed",
        rf"Broker failure callback for (?P<brokers>{INT_LIST})",
        "KafkaController.onBrokerFailure",
        _about_brokers("broker_failed"),
    ),
    _controller(
        "controller_zk.broker_started",
        rf"New broker startup callback for (?P<brokers>{INT_LIST})",
        "KafkaController.onBrokerStartup",
        _about_brokers("broker_registered"),
    ),
    _controller(
        "controller_zk.broker_log_dir_failed",
        rf"Handling log directory failure for brokers (?P<brokers>{INT_LIST})",
        "KafkaController.onBrokerLogDirFailure",
        _about_brokers("log_dir_failed"),
    ),
    _controller(
        "controller_zk.controlled_shutdown",
        r"Shutting down broker (?P<subject_broker_id>-?\d+)",
        "KafkaController.doControlledShutdown",
        _event("controlled_shutdown"),
    ),
    _controller(
        "controller_zk.preferred_elected",
        rf"Partition {TP} completed preferred replica leader election\. New leader is (?P<leader>-?\d+)",
        "KafkaController.removePartitionsFromPreferredReplicaElection",
        _event("election"),
    ),
    _controller(
        "controller_zk.preferred_failed",
        rf"Partition {TP} failed to (?:be elected|complete preferred replica leader election)\b.*",
        "KafkaController.removePartitionsFromPreferredReplicaElection",
        _event("election"),
    ),
    _controller(
        "controller_zk.election_error",
        rf"Error completing (?:replica|preferred replica) leader election (?:\(\w+\) )?for partition {TP}(?: because "
        r"controller has moved to another broker\.)?",
        "KafkaController.onReplicaElection",
        _event("election"),
    ),
    _selectors(
        "controller_zk.unclean_elected",
        rf"No broker in ISR is alive for {TP}\. Elect leader (?P<leader>-?\d+) from live brokers [-\d,]*\. There's "
        r"potential data loss\.",
        "OfflinePartitionLeaderSelector.selectLeader, up to 1.0; later versions do not say it",
        _event("unclean_election"),
    ),
    _selectors(
        "controller_zk.selected",
        rf"Selected new leader and ISR (?P<state>\{{.*\}}) for offline partition {TP}",
        "OfflinePartitionLeaderSelector.selectLeader, up to 1.0",
        _selected,
    ),
    _controller(
        "controller_zk.new_leader_and_isr",
        rf"New leader and ISR for partition {TP} is (?P<state>\{{.*\}})",
        "KafkaController.removeReplicaFromIsr, up to 1.0",
        _selected,
    ),
    _controller(
        "controller_zk.isr_written",
        rf"ISR for partition {TP} updated to \[(?P<isr>[-\d,]*)\] and zkVersion updated to "
        r"\[(?P<partition_epoch>-?\d+)\]",
        "KafkaController.processAlterIsr, 2.7 to 3.2; DEBUG",
        _isr_written,
    ),
    _controller(
        "controller_zk.isr_written",
        rf"ISR for partition {TP} updated to (?P<state>LeaderAndIsr\(.*\))\.",
        "KafkaController.processAlterPartition, 3.3 and later; DEBUG",
        _isr_written,
    ),
    _controller(
        "controller_zk.isr_failed",
        rf"Failed to update ISR (?:to .* )?for partition {TP}(?:, bad ZK version\.?)?",
        "KafkaController.processAlterIsr / processAlterPartition",
        _event("other"),
    ),
    _controller(
        "controller_zk.isr_rejected",
        r"(?:Ignoring (?:AlterIsr|AlterPartition|AllocateProducerIds) due to .*|Rejecting AlterPartition (?:request "
        r")?from node .*|Error when processing (?:AlterIsr|AlterPartition).*)",
        "KafkaController.alterIsrs / alterPartitions, 2.7 and later",
        _event("other"),
    ),
    _controller(
        "controller_zk.unclean_enabled",
        r"Unclean leader election has been enabled (?:by default|for topic (?P<topic>[\w.-]+))",
        "KafkaController.processUncleanLeaderElectionEnable / processTopicUncleanLeaderElectionEnable",
        _event("config_changed"),
    ),
    _controller(
        "controller_zk.moved",
        r"(?:Received error in LeaderAndIsr response .* from broker -?\d+|Forcing the controller to resign|Controller "
        r"has already moved .*|A controller has been elected but just resigned.*|Error while electing or becoming "
        r"controller .*|Controller moved to another broker when processing .*|Error processing event .*|Received a "
        r"ShutdownEventThread event\. .*)",
        "KafkaController",
        _event("other"),
    ),
    Template(
        "controller_zk.session_expired",
        r"ZK expired; shut down all controller components and try to re-elect",
        "SessionExpirationListener.handleNewSession, up to 1.0",
        _event("controller_resigned", subject_broker_id=node),
        loggers=("KafkaController$SessionExpirationListener",),
    ),
    Template(
        "controller_zk.elector",
        r"(?P<subject_broker_id>-?\d+) successfully elected as leader",
        "ZookeeperLeaderElector.elect, up to 1.0",
        _event("controller_elected"),
        loggers=("ZookeeperLeaderElector",),
    ),
    Template(
        "controller_zk.elector",
        r"New leader is (?P<subject_broker_id>-?\d+)",
        "ZookeeperLeaderElector.LeaderChangeListener, up to 1.0",
        _event("controller_elected"),
        loggers=("ZookeeperLeaderElector$LeaderChangeListener",),
    ),
)
