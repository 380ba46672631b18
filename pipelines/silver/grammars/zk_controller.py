"""Grammar of the ZooKeeper controller's own log (``kafka.controller.*``): elections, brokers, ISR changes.

Its default level is TRACE. Up to 1.0 leader selection had classes of its own.
"""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.record import Fact, Record
from pipelines.silver.states import equals_state
from pipelines.silver.values import INT_LIST, PARTITION, i32, ints, optional_i32, partition_of

_CONTROLLER = ("KafkaController",)
_BROKER_LISTENER = ("ReplicaStateMachine$BrokerChangeListener",)

_SELECTORS = (
    "OfflinePartitionLeaderSelector",
    "ReassignedPartitionLeaderSelector",
    "PreferredReplicaPartitionLeaderSelector",
    "ControlledShutdownLeaderSelector",
    "NoOpLeaderSelector",
)

_MAX_DETAIL = 500
_JSON_STATE = re.compile(r'\{"leader":(-?\d+),"leader_epoch":(-?\d+),"isr":(\[[\d,]*\])\}', re.ASCII)


def _event(match: re.Match[str], event: str, **columns: object) -> Fact:
    return Fact("controller_events", {"event": event, **columns, "detail": match[0][:_MAX_DETAIL]})


def _elected(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (
        _event(
            match, "controller_elected", subject_broker_id=i32(match["broker"]), controller_epoch=i32(match["epoch"])
        ),
    )


def _own_epoch(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    epoch = i32(match["epoch"])
    return (_event(match, "controller_elected", subject_broker_id=context.node, controller_epoch=epoch),)


def _other_elected(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (_event(match, "controller_elected", subject_broker_id=i32(match["broker"])),)


def _resigned(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (_event(match, "controller_resigned", subject_broker_id=context.node),)


def _brokers_changed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (_event(match, "brokers_changed", brokers=ints(match["live"])),)


def _several(match: re.Match[str], event: str, text: str) -> tuple[Fact, ...]:
    brokers = ints(text)
    if not brokers:
        raise ValueError("no broker")
    return (_event(match, event, brokers=brokers, subject_broker_id=brokers[0] if len(brokers) == 1 else None),)


def _failed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _several(match, "broker_failed", match[1])


def _log_dirs_failed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _several(match, "log_dir_failed", match[1])


def _registered(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _several(match, "broker_registered", match[1])


def _shutdown(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (_event(match, "controlled_shutdown", subject_broker_id=i32(match[1])),)


def _other(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (_event(match, "other"),)


def _about_partition(match: re.Match[str], event: str, **columns: object) -> tuple[Fact, ...]:
    topic, partition = partition_of(match["tp"])
    return (_event(match, event, topic=topic, partition=partition, **columns),)


def _election(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _about_partition(match, "election", leader=optional_i32(match.groupdict().get("leader")))


def _unclean(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _about_partition(match, "unclean_election", leader=i32(match["leader"]))


def _selected(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """A state as JSON: ``{"leader":2,"leader_epoch":1,"isr":[2,3]}``."""
    topic, partition = partition_of(match["tp"])
    state = _JSON_STATE.fullmatch(match["state"])
    if state is None:
        raise ValueError(f"no leader and ISR: {match['state'][:80]}")
    row = {
        "topic": topic,
        "partition": partition,
        "role": "controller",
        "leader": i32(state[1]),
        "leader_epoch": i32(state[2]),
        "isr": ints(state[3]),
        "controller_id": context.node,
    }
    return (Fact("leader_and_isr", row),)


def _isr_failed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return _about_partition(match, "other")


def _isr_written(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The controller wrote the ISR that a leader asked for."""
    topic, partition = partition_of(match["tp"])
    row: dict[str, object] = {
        "topic": topic,
        "partition": partition,
        "role": "controller",
        "controller_id": context.node,
    }
    state = match.groupdict().get("state")
    if state is None:
        row.update(isr=ints(match["isr"]), partition_epoch=i32(match["version"]))
    else:
        written = equals_state(state)
        row.update({key: written[key] for key in ("leader", "leader_epoch", "isr", "partition_epoch")})
    return (Fact("leader_and_isr", row),)


def _config_changed(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    return (_event(match, "config_changed", topic=match.groupdict().get("topic")),)


_TP = rf"(?P<tp>{PARTITION})"

TEMPLATES = (
    Template(
        "controller_zk.elected",
        _CONTROLLER,
        r"(?P<broker>-?\d+) successfully elected as the controller\. Epoch incremented to (?P<epoch>\d+) and epoch zk "
        r"version is now \d+",
        "KafkaController.elect, 1.1 and later",
        _elected,
    ),
    Template(
        "controller_zk.elected",
        _CONTROLLER,
        r"Controller (?P<broker>-?\d+) incremented epoch to (?P<epoch>\d+)",
        "KafkaController.incrementControllerEpoch, up to 0.11",
        _elected,
    ),
    Template(
        "controller_zk.epoch_incremented",
        _CONTROLLER,
        r"(?:Incremented epoch|Epoch incremented) to (?P<epoch>\d+)",
        "KafkaController.incrementControllerEpoch, 1.0 to 2.0: the broker's own",
        _own_epoch,
    ),
    Template(
        "controller_zk.elected_without_epoch",
        _CONTROLLER,
        r"(?P<broker>-?\d+) successfully elected as the controller",
        "KafkaController.elect, 0.11 to 2.0",
        _other_elected,
    ),
    Template(
        "controller_zk.other_elected",
        _CONTROLLER,
        r"Broker (?P<broker>-?\d+) (?:has been elected as the controller, so stopping the election process\.|was "
        r"elected as controller instead of broker -?\d+)",
        "KafkaController.elect; DEBUG",
        _other_elected,
    ),
    Template(
        "controller_zk.resigned",
        _CONTROLLER,
        r"(?:Resigned|Broker -?\d+ resigned as the controller)",
        "KafkaController.onControllerResignation",
        _resigned,
    ),
    Template(
        "controller_zk.brokers_changed",
        (*_CONTROLLER, *_BROKER_LISTENER),
        r"Newly added brokers: [-\d,]*, deleted brokers: [-\d,]*,(?: bounced brokers: [-\d,]*,)? all live brokers: "
        r"(?P<live>[-\d,]*)",
        "KafkaController.processBrokerChange",
        _brokers_changed,
    ),
    Template(
        "controller_zk.broker_failed",
        _CONTROLLER,
        rf"Broker failure callback for ({INT_LIST})",
        "KafkaController.onBrokerFailure",
        _failed,
    ),
    Template(
        "controller_zk.broker_started",
        _CONTROLLER,
        rf"New broker startup callback for ({INT_LIST})",
        "KafkaController.onBrokerStartup",
        _registered,
    ),
    Template(
        "controller_zk.broker_log_dir_failed",
        _CONTROLLER,
        rf"Handling log directory failure for brokers ({INT_LIST})",
        "KafkaController.onBrokerLogDirFailure",
        _log_dirs_failed,
    ),
    Template(
        "controller_zk.controlled_shutdown",
        _CONTROLLER,
        r"Shutting down broker (-?\d+)",
        "KafkaController.doControlledShutdown",
        _shutdown,
    ),
    Template(
        "controller_zk.preferred_elected",
        _CONTROLLER,
        rf"Partition {_TP} completed preferred replica leader election\. New leader is (?P<leader>-?\d+)",
        "KafkaController.removePartitionsFromPreferredReplicaElection",
        _election,
    ),
    Template(
        "controller_zk.preferred_failed",
        _CONTROLLER,
        rf"Partition {_TP} failed to (?:be elected|complete preferred replica leader election)\b.*",
        "KafkaController.removePartitionsFromPreferredReplicaElection",
        _election,
    ),
    Template(
        "controller_zk.election_error",
        _CONTROLLER,
        rf"Error completing (?:replica|preferred replica) leader election (?:\(\w+\) )?for partition {_TP}(?: because "
        r"controller has moved to another broker\.)?",
        "KafkaController.onReplicaElection",
        _election,
    ),
    Template(
        "controller_zk.unclean_elected",
        _SELECTORS,
        rf"No broker in ISR is alive for {_TP}\. Elect leader (?P<leader>-?\d+) from live brokers [-\d,]*\. There's "
        r"potential data loss\.",
        "OfflinePartitionLeaderSelector.selectLeader, up to 1.0; later versions do not say it",
        _unclean,
    ),
    Template(
        "controller_zk.selected",
        _SELECTORS,
        rf"Selected new leader and ISR (?P<state>\{{.*\}}) for offline partition {_TP}",
        "OfflinePartitionLeaderSelector.selectLeader, up to 1.0",
        _selected,
    ),
    Template(
        "controller_zk.selecting",
        _SELECTORS,
        rf"(?:Some broker in ISR is alive for {PARTITION}\. Select -?\d+ from ISR [-\d,]* to be the leader\.|No "
        rf"broker in ISR is alive for {PARTITION}\. Pick the leader from .*|Partition {PARTITION} : current leader = "
        rf"-?\d+, new leader = -?\d+|Current leader -?\d+ for partition {PARTITION} is not the preferred replica\. "
        r".*|I should never have been asked .*)",
        "PartitionLeaderSelector, up to 1.0",
    ),
    Template(
        "controller_zk.new_leader_and_isr",
        _CONTROLLER,
        rf"New leader and ISR for partition {_TP} is (?P<state>\{{.*\}})",
        "KafkaController.removeReplicaFromIsr, up to 1.0",
        _selected,
    ),
    Template(
        "controller_zk.isr_written",
        _CONTROLLER,
        rf"ISR for partition {_TP} updated to \[(?P<isr>[-\d,]*)\] and zkVersion updated to \[(?P<version>-?\d+)\]",
        "KafkaController.processAlterIsr, 2.7 to 3.2; DEBUG",
        _isr_written,
    ),
    Template(
        "controller_zk.isr_written",
        _CONTROLLER,
        rf"ISR for partition {_TP} updated to (?P<state>LeaderAndIsr\(.*\))\.",
        "KafkaController.processAlterPartition, 3.3 and later; DEBUG",
        _isr_written,
    ),
    Template(
        "controller_zk.isr_failed",
        _CONTROLLER,
        rf"Failed to update ISR (?:to .* )?for partition {_TP}(?:, bad ZK version\.?)?",
        "KafkaController.processAlterIsr / processAlterPartition",
        _isr_failed,
    ),
    Template(
        "controller_zk.isr_retained",
        _CONTROLLER,
        rf"Retaining last ISR -?\d+ of partition {PARTITION} since unclean leader election is disabled",
        "KafkaController.removeReplicaFromIsr, up to 1.0: the ISR that follows says it",
    ),
    Template(
        "controller_zk.isr_rejected",
        _CONTROLLER,
        r"(?:Ignoring (?:AlterIsr|AlterPartition|AllocateProducerIds) due to .*|Rejecting AlterPartition (?:request "
        r")?from node .*|Error when processing (?:AlterIsr|AlterPartition).*)",
        "KafkaController.alterIsrs / alterPartitions, 2.7 and later",
        _other,
    ),
    Template(
        "controller_zk.unclean_enabled",
        _CONTROLLER,
        r"Unclean leader election has been enabled (?:by default|for topic (?P<topic>[\w.-]+))",
        "KafkaController.processUncleanLeaderElectionEnable / processTopicUncleanLeaderElectionEnable",
        _config_changed,
    ),
    Template(
        "controller_zk.moved",
        _CONTROLLER,
        r"(?:Received error in LeaderAndIsr response .* from broker -?\d+|Forcing the controller to resign|Controller "
        r"has already moved .*|A controller has been elected but just resigned.*|Error while electing or becoming "
        r"controller .*|Controller moved to another broker when processing .*|Error processing event .*|Received a "
        r"ShutdownEventThread event\. .*)",
        "KafkaController",
        _other,
    ),
    Template(
        "controller_zk.session_expired",
        ("KafkaController$SessionExpirationListener",),
        r"ZK expired; shut down all controller components and try to re-elect",
        "SessionExpirationListener.handleNewSession, up to 1.0",
        _resigned,
    ),
    Template(
        "controller_zk.elector",
        ("ZookeeperLeaderElector",),
        r"(?P<broker>-?\d+) successfully elected as leader",
        "ZookeeperLeaderElector.elect, up to 1.0",
        _other_elected,
    ),
    Template(
        "controller_zk.elector_step",
        ("ZookeeperLeaderElector", "ZookeeperLeaderElector$LeaderChangeListener"),
        r"(?:A leader has been elected but just resigned.*|Broker -?\d+ (?:has been|was) elected as leader.*|Error "
        r"while electing or becoming leader on broker -?\d+)",
        "ZookeeperLeaderElector.elect, up to 0.10: the winner says it itself",
    ),
    Template(
        "controller_zk.elector",
        ("ZookeeperLeaderElector$LeaderChangeListener",),
        r"New leader is (?P<broker>-?\d+)",
        "ZookeeperLeaderElector.LeaderChangeListener, up to 1.0",
        _other_elected,
    ),
)
