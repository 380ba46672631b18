"""Grammar of the ZooKeeper controller's log: steps on the way, whose outcome stands elsewhere."""

from __future__ import annotations

from functools import partial

from pipelines.grammars.grammar import Template
from pipelines.grammars.values import PARTITION

_BROKER_LISTENER = ("ReplicaStateMachine$BrokerChangeListener",)
_TOPIC_LISTENER = ("PartitionStateMachine$TopicChangeListener",)
_controller = partial(Template, loggers=("KafkaController",))
_partition_machine = partial(Template, loggers=("PartitionStateMachine", "ZkPartitionStateMachine"))
_replica_machine = partial(Template, loggers=("ReplicaStateMachine", "ZkReplicaStateMachine"))

TEMPLATES = (
    _controller(
        "controller_zk.leader_epoch",
        rf"(?:Updating leader epoch for partition {PARTITION}\.?|Updated leader epoch for partition {PARTITION} to .*)",
        "KafkaController.updateLeaderEpoch",
    ),
    _controller(
        "controller_zk.isr_updates",
        r"Updating ISRs for partitions: .*",
        "KafkaController.processAlterIsr, 2.7 and later; DEBUG",
    ),
    _controller(
        "controller_zk.isr_removal",
        rf"(?:Removing replica -?\d+ from ISR [-\d,]* for partition {PARTITION}\.|Cannot remove replica -?\d+ from "
        rf"ISR of partition {PARTITION} since it is not in the ISR\. .*)",
        "KafkaController.removeReplicaFromIsr, up to 1.0; DEBUG",
    ),
    _controller(
        "controller_zk.starting_elections",
        r"(?:Starting (?:replica|preferred replica) leader election .*|Partitions undergoing preferred replica "
        r"election: .*|Partitions that completed preferred replica election: .*|Skipping preferred replica (?:leader "
        r")?election for partitions? .*|Resuming preferred replica election for partitions: .*|Skipping replica "
        r"leader election .*|Waiting for any successful result for election type .*)",
        "KafkaController.onReplicaElection: the outcome follows for each partition",
    ),
    _controller(
        "controller_zk.balancing",
        r"(?:[Cc]hecking need to trigger (?:auto leader balancing|partition rebalance)|[Tt]opics not in preferred "
        r"replica .*|[Ll]eader imbalance ratio for broker .*|[Pp]referred replicas by broker .*|Processing automatic "
        r"preferred replica leader election)",
        "KafkaController.checkAndTriggerAutoLeaderRebalance; TRACE and DEBUG",
    ),
    _controller(
        "controller_zk.context",
        r"(?:Registering handlers|Deleting log dir event notifications|Deleting isr change notifications|Initializing "
        r"controller context|Fetching topic deletions in progress|Initializing topic deletion manager|Sending update "
        r"metadata request|Ready to serve as the new controller with epoch \d+|Starting the controller "
        r"scheduler|starting the token expiry check scheduler|Resigning|Initialized broker epochs cache: .*|Updated "
        r"broker epochs cache: .*|Currently (?:active|shutting) brokers in the cluster: .*|Current list of topics in "
        r"the cluster: .*|List of topics (?:to be deleted|ineligible for deletion): .*|Live brokers: .*|All shutting "
        r"down brokers: .*|All leaders = .*|(?:Register|Unregister) BrokerModifications handler for "
        r".*|(?:Reading|Incrementing) controller epoch (?:from|in) ZooKeeper|Updated broker: .*|Removed .* from list "
        r"of shutting down brokers\.|Broker info update callback for .*|Updated broker metadata: .*)",
        "KafkaController.onControllerFailover and the state it holds",
    ),
    _controller(
        "controller_zk.context_old",
        r"(?:Controller starting up|Controller startup complete|Controller resigning, broker id "
        r"-?\d+|(?:Registering|De-registering) IsrChangeNotificationListener|Broker -?\d+ starting become controller "
        r"state transition|Initialized controller epoch to \d+ and zk version \d+|Broker -?\d+ is ready to serve as "
        r"the new controller with epoch \d+|starting the partition rebalance scheduler|starting the controller "
        r"scheduler|Starting become controller state transition|(?:Registering|De-registering) "
        r"logDirEventNotificationListener|Controller has been shut down, aborting startup/failover|Failed to parse "
        r"the controller info as json\. .*|Probably this controller is still using the old format .*|Invalid topic "
        r"and partition JSON.*|ZK expired, but the current controller id .*|New topic creation callback for "
        r".*|Controller .* state change .*)",
        "KafkaController, up to 1.0",
    ),
    _controller(
        "controller_zk.features",
        r"(?:(?:Creating|Updating) FeatureZNode at path: .*|FeatureZNode at path: .*|Ignoring registration of "
        r"(?:new|bounced) brokers due to incompatibilities .*|Processing of feature updates: .*)",
        "KafkaController.setupFeatureVersioning, 2.7 and later",
    ),
    _controller(
        "controller_zk.topics_step",
        r"(?:There is no producerId block yet .*|(?:Acquired new|Read current) producerId block .*|Exhausted all "
        r"producerIds .*|PreferredReplicaLeaderElection waiting: .*|Updated path .* for replica assignment|Some "
        r"replicas .* for topics scheduled for deletion .*|Delete topics listener fired .*|Ignoring request to "
        r"delete non-existing topics .*|Removing .* since delete topic is disabled|Delete topic callback invoked "
        r".*|Restoring the partition replica assignment .*|Skipping adding partitions .*|Ignoring partition change "
        r"during topic deletion .*|New partitions to be added .*|Adding partitions .*|Sending MetadataRequest to "
        r"Brokers.*)",
        "KafkaController",
    ),
    _partition_machine(
        "controller_zk.partition_machine",
        r"(?:Initializing partition state|Triggering online partition state changes|St(?:arted|opped) partition state "
        r"machine.*|Invoking state change to \w+ for partitions .*|After leader election, leader cache is updated to "
        r".*|After leader election, leader cache for .* is updated to .*|Live assigned replicas for partition "
        r".*|Initializing leader and isr for partition .*|Controller moved to another broker when .*|Error while "
        r"moving some .*|Retrying leader election with strategy .*|Controller failed to elect leader for partition .*)",
        "ZkPartitionStateMachine: what changes stands in the state change log",
    ),
    _replica_machine(
        "controller_zk.replica_machine",
        r"(?:Initializing replica state|Triggering (?:online|offline) replica state changes|St(?:arted|opped) replica "
        r"state machine.*|Invoking state change to \w+ for replicas .*|Controller moved to another broker when .*|Are "
        r"all replicas for topic .* deleted .*|Error while moving some .*|Adding replica .*|Controller failed to "
        r"remove replica .*)",
        "ZkReplicaStateMachine: what changes stands in the state change log",
    ),
    Template(
        "controller_zk.listener",
        r"(?:Broker change listener fired for path .*|Topic change listener fired for path .*|ISR change notification "
        r"listener fired|Fired!!!|\[IsrChangeNotificationListener\] Fired!!!|Invalid topic and partition JSON: "
        r".*|Sending MetadataRequest to Brokers.*)",
        "Listeners of KafkaController, up to 1.0",
        loggers=(*_BROKER_LISTENER, *_TOPIC_LISTENER, "IsrChangeNotificationListener"),
    ),
    Template(
        "controller_zk.channel",
        r"(?:Controller -?\d+ trying to connect to broker -?\d+|Not sending request .* to broker -?\d+, since it is "
        r"offline\.|Error while removing broker by the controller|The stop replica request \(delete = \w+\) sent to "
        r"broker .*|Leader not yet assigned for partition .*|Haven't been able to send .*)",
        "ControllerChannelManager, ControllerBrokerRequestBatch",
        loggers=("ControllerChannelManager", "ControllerBrokerRequestBatch"),
    ),
    Template(
        "controller_zk.sender",
        r"Controller -?\d+(?:'s connection to broker .* was unsuccessful| connected to .* for sending state change "
        r"requests|(?: epoch -?\d+)? fails to send (?:a )?request .*)",
        "RequestSendThread.doWork / brokerReady",
        loggers=("RequestSendThread",),
    ),
    Template(
        "controller_zk.event_error",
        r"(?:Uncaught error processing event .*|Error processing event .*)",
        "ControllerEventThread.doWork",
        loggers=("ControllerEventManager$ControllerEventThread",),
    ),
)
