"""Grammar of a broker's life: start, version, mode, registration, sessions, fencing, shutdown, signals, death."""

from __future__ import annotations

import re

from pipelines.silver.grammar import Context, Template
from pipelines.silver.typed import lifecycle_event as _event

_ZK_SERVER = ("KafkaServer",)
_KRAFT_SERVER = ("BrokerServer",)
_LIFECYCLE = ("BrokerLifecycleManager",)


def _state(match: re.Match[str], context: Context) -> str:
    return "unfenced" if match["event"] == "RUNNING" else "state_change"


TEMPLATES = (
    Template(
        "lifecycle.version",
        ("AppInfoParser",),
        r"Kafka version ?: (?P<kafka_version>\S+)",
        "AppInfoParser.AppInfo",
        _event("version"),
    ),
    Template(
        "lifecycle.version_details",
        ("AppInfoParser",),
        r"(?:Kafka commitId ?: .*|Kafka startTimeMs: -?\d+|App info .* unregistered|Error (?:while "
        r"loading|registering|unregistering) .*)",
        "AppInfoParser",
    ),
    Template("lifecycle.starting", _ZK_SERVER, r"starting", "KafkaServer.startup", _event("starting", "zookeeper")),
    Template(
        "lifecycle.starting",
        _KRAFT_SERVER,
        r"Starting broker",
        "BrokerServer.startup",
        _event("starting", "kraft"),
    ),
    Template("lifecycle.started", _ZK_SERVER, r"started", "KafkaServer.startup", _event("started", "zookeeper")),
    Template(
        "lifecycle.started",
        ("KafkaRaftServer",),
        r"Kafka Server started",
        "KafkaRaftServer.startup",
        _event("started", "kraft"),
    ),
    Template(
        "lifecycle.raft_server",
        ("KafkaRaftServer",),
        r".*Rewriting .*meta\.properties",
        "KafkaRaftServer.initializeLogDirs, 3.7 and later",
    ),
    Template(
        "lifecycle.shutting_down",
        _ZK_SERVER,
        r"shutting down",
        "KafkaServer.shutdown",
        _event("shutting_down", "zookeeper"),
    ),
    Template(
        "lifecycle.shutting_down",
        _KRAFT_SERVER,
        r"shutting down",
        "BrokerServer.shutdown",
        _event("shutting_down", "kraft"),
    ),
    Template(
        "lifecycle.shut_down",
        _ZK_SERVER,
        r"shut down completed",
        "KafkaServer.shutdown",
        _event("shut_down", "zookeeper"),
    ),
    Template(
        "lifecycle.shut_down",
        _KRAFT_SERVER,
        r"shut down completed",
        "BrokerServer.shutdown",
        _event("shut_down", "kraft"),
    ),
    Template(
        "lifecycle.transition",
        _KRAFT_SERVER,
        r"Transition from \w+ to \w+",
        "BrokerServer.maybeChangeStatus, 3.2 and later",
        _event("state_change", "kraft"),
    ),
    Template(
        "lifecycle.controlled_shutdown",
        _ZK_SERVER,
        r"(?:Starting controlled shutdown|Controlled shutdown succeeded|Controlled shutdown request returned "
        r".*|Proceeding to do an unclean shutdown .*|Notifying KRaft of controlled shutdown)",
        "KafkaServer.controlledShutdown",
        _event("controlled_shutdown", "zookeeper"),
    ),
    Template(
        "lifecycle.controlled_shutdown_step",
        _ZK_SERVER,
        r"(?:Retrying controlled shutdown.*|Remaining partitions to move.*|Error (?:code )?from controller: .*|Error "
        r"during controlled shutdown, .*|Broker registration for controller .*|No (?:zk )?controller .*|ZkBroker "
        r"currently has a KRaft controller\. .*|Timed out waiting for the controller .*|Got unexpected exception "
        r"waiting for .*)",
        "KafkaServer.controlledShutdown",
    ),
    Template(
        "lifecycle.connecting",
        _ZK_SERVER,
        r"(?:Connecting to zookeeper on .*|Created zookeeper path .*)",
        "KafkaServer.initZkClient",
    ),
    Template("lifecycle.cluster", _ZK_SERVER, r"Cluster ID = ?.*", "KafkaServer.startup"),
    Template(
        "lifecycle.migration",
        _ZK_SERVER,
        r"(?:Starting up additional components for ZooKeeper migration|Start RaftManager|Finished catching up on "
        r"KRaft metadata log, .*|Rewriting .*|Deleting local metadata log from .*|Successfully deleted local metadata "
        r"log\. .*|(?:Start|End) processing .*|Caution! .*|Fail to read .*|Failed to generate broker\.id due to.*)",
        "KafkaServer.startup",
    ),
    Template(
        "lifecycle.fatal",
        (*_ZK_SERVER, *_KRAFT_SERVER, "ControllerServer"),
        r"(?:Fatal error during .*|Encountered an exception when waiting .*|Exhausted all demo/temporary producerIds "
        r".*)",
        "KafkaServer, BrokerServer, ControllerServer; FATAL",
        _event("fatal"),
    ),
    Template(
        "lifecycle.signal_handlers_failed",
        ("Kafka",),
        r"Failed to register optional signal handler .*",
        "kafka.Kafka.main",
    ),
    Template(
        "lifecycle.fatal",
        ("Kafka",),
        r"(?:Exiting Kafka.*|Halting Kafka\.|.*[Ff]atal exception.*)",
        "kafka.Kafka.main; FATAL",
        _event("fatal"),
    ),
    Template(
        "lifecycle.fault",
        ("ProcessTerminatingFaultHandler",),
        r"Encountered fatal fault: .*",
        "ProcessTerminatingFaultHandler.handleFault, 3.3 and later",
        _event("fatal"),
    ),
    Template(
        "lifecycle.fault_nonfatal",
        ("LoggingFaultHandler", "ProcessTerminatingFaultHandler"),
        r"(?:Encountered .* fault: .*|Failed to run .* action\.)",
        "LoggingFaultHandler.handleFault, 3.3 and later",
        _event("state_change"),
    ),
    Template(
        "lifecycle.persister",
        _KRAFT_SERVER,
        r"(?:Using no.op .*|Unknown (?:persister|share group DLQ manager) .*)",
        "BrokerServer, share groups (KIP-932)",
    ),
    Template(
        "lifecycle.waiting",
        (*_KRAFT_SERVER, "ControllerServer"),
        r"(?:Waiting for .*|Finished waiting for .*|Received a fatal error while waiting for .*)",
        "FutureUtils.waitWithLogging, 3.4 and later",
    ),
    Template(
        "lifecycle.controller_server",
        ("ControllerServer",),
        r"(?:Starting controller|shutting down|shut down completed)",
        "ControllerServer",
    ),
    Template(
        "lifecycle.shared_server",
        ("SharedServer",),
        r"(?:Starting SharedServer|Stopping SharedServer|SharedServer .*|Completed SharedServer startup\.|Unable to "
        r"install metadata publishers|Got exception while starting SharedServer)",
        "SharedServer, 3.4 and later",
    ),
    Template(
        "lifecycle.controlled_shutdown_wait",
        _KRAFT_SERVER,
        r"(?:Timed out waiting for the controller to approve controlled shutdown|Got unexpected exception waiting for "
        r"controlled shutdown future)",
        "BrokerServer.shutdown",
        _event("controlled_shutdown", "kraft"),
    ),
    Template(
        "lifecycle.registered",
        _LIFECYCLE,
        r"Successfully registered broker -?\d+ with broker epoch -?\d+",
        "BrokerLifecycleManager.BrokerRegistrationResponseHandler",
        _event("registered", "kraft"),
    ),
    Template(
        "lifecycle.registered",
        ("KafkaZkClient", "ZkUtils"),
        r"Registered broker -?\d+ at path .*",
        "KafkaZkClient.registerBroker",
        _event("registered", "zookeeper"),
    ),
    Template(
        "lifecycle.incarnation",
        _LIFECYCLE,
        r"Incarnation \S+ of broker -?\d+ in cluster \S+ is now STARTING\.",
        "BrokerLifecycleManager.StartupEvent",
        _event("state_change", "kraft"),
    ),
    Template(
        "lifecycle.lifecycle_state",
        _LIFECYCLE,
        r"(?:The broker has .*\. )?Transitioning from \w+ to (?P<event>\w+)\.",
        "BrokerLifecycleManager.BrokerHeartbeatResponseHandler",
        _event(_state, "kraft"),
    ),
    Template(
        "lifecycle.controlled_shutdown",
        _LIFECYCLE,
        r"(?:Beginning controlled shutdown\.|The controlle[rd] has asked us to exit controlled shutdown\.|Skipping "
        r"controlled shutdown because we are in state .*|Attempted to enter pending controlled shutdown state, .*)",
        "BrokerLifecycleManager.BeginControlledShutdownEvent",
        _event("controlled_shutdown", "kraft"),
    ),
    Template(
        "lifecycle.recovery",
        _LIFECYCLE,
        r"The broker is (?:in RECOVERY|STARTING|RUNNING|in PENDING_CONTROLLED_SHUTDOWN state, still waiting for the "
        r"active controller|SHUTTING_DOWN)\..*",
        "BrokerLifecycleManager.BrokerHeartbeatResponseHandler: no change of state",
    ),
    Template(
        "lifecycle.recovery",
        _LIFECYCLE,
        r"The broker is in PENDING_CONTROLLED_SHUTDOWN state, still waiting for the active controller\.",
        "BrokerLifecycleManager.BrokerHeartbeatResponseHandler: no change of state",
    ),
    Template(
        "lifecycle.heartbeat",
        _LIFECYCLE,
        r"(?:Unable to (?:register|send) .*|Broker -?\d+ sent a heartbeat request but received error .*|Sending "
        r"broker .*|Scheduling next communication .*|Delaying communication .*|Unexpected broker state .*|The next .*)",
        "BrokerLifecycleManager",
    ),
    Template(
        "lifecycle.heartbeat_fatal",
        _LIFECYCLE,
        r"Shutting down because .*",
        "BrokerLifecycleManager.RegistrationTimeoutEvent / OfflineDirBrokerFailureEvent",
        _event("fatal", "kraft"),
    ),
    Template(
        "lifecycle.zookeeper_connected",
        ("ZooKeeperClient",),
        r"Connected\.",
        "ZooKeeperClient.waitUntilConnected",
        _event("zookeeper_connected", "zookeeper"),
    ),
    Template(
        "lifecycle.zookeeper_expired",
        ("ZooKeeperClient",),
        r"Session expired\.?",
        "ZooKeeperClient.ZooKeeperClientWatcher",
        _event("zookeeper_expired", "zookeeper"),
    ),
    Template(
        "lifecycle.zookeeper_client",
        ("ZooKeeperClient",),
        r"(?:Initializing a new session to .*|Waiting until connected\.|Closing\.|Closed\.|Error when recreating "
        r"ZooKeeper, .*|Uncaught error in handler .*|Received event: .*|Auth failed.*|Session (?:re)?established.*)",
        "ZooKeeperClient",
    ),
    Template(
        "lifecycle.zookeeper_connected",
        ("ZkClient",),
        r"zookeeper state changed \(SyncConnected\)",
        "org.I0Itec.zkclient.ZkClient.processStateChanged, up to 1.0",
        _event("zookeeper_connected", "zookeeper"),
    ),
    Template(
        "lifecycle.zookeeper_expired",
        ("ZkClient",),
        r"zookeeper state changed \(Expired\)",
        "org.I0Itec.zkclient.ZkClient.processStateChanged, up to 1.0",
        _event("zookeeper_expired", "zookeeper"),
    ),
    Template(
        "lifecycle.zookeeper_state",
        ("ZkClient", "ZkEventThread"),
        r"(?:zookeeper state changed "
        r"\((?:Disconnected|NoSyncConnected|AuthFailed|ConnectedReadOnly|SaslAuthenticated|Closed)\)|Waiting for "
        r"keeper state \w+|(?:Starting|Terminate) ZkClient event thread\.)",
        "org.I0Itec.zkclient, up to 1.0",
    ),
    Template(
        "lifecycle.zookeeper_reregistration",
        ("KafkaHealthcheck$SessionExpireListener", "KafkaHealthcheck"),
        r"(?:re-registering broker info in ZK for broker -?\d+|done re-registering broker|Subscribing to "
        r"/brokers/topics path to watch for new topics)",
        "KafkaHealthcheck.SessionExpireListener, up to 1.0",
    ),
    Template(
        "lifecycle.znodes",
        ("KafkaZkClient", "ZKCheckedEphemeral", "ZkUtils", "KafkaZkClient$CheckedEphemeral"),
        r"(?:Creating /.*|Stat of the created znode at .*|Result of znode .*|Successfully created /controller_epoch "
        r".*|Updated broker \d+ at path .*|Error while (?:creating|deleting) ephemeral .*|Was not possible to create "
        r"the ephemeral .*|The ephemeral node at .*|Conditional update of path .*|Checker method .*|Try to create "
        r".*|Added .*|Ignoring partition reassignment .*|KRaft controller .*|Successfully registered KRaft controller "
        r".*|The ZK controller epoch changed .*|ZooKeeper had an error .*|Performing .* migration update.*|Setting "
        r"entity configs .*|I wrote this conflicted ephemeral node .*)",
        "KafkaZkClient, ZkUtils",
    ),
    Template(
        "lifecycle.signal",
        ("LoggingSignalHandler", "Kafka"),
        r"Terminating process due to signal \S+",
        "LoggingSignalHandler.register",
        _event("signal"),
    ),
    Template(
        "lifecycle.signal_handlers",
        ("LoggingSignalHandler",),
        r"Registered signal handlers for .*",
        "LoggingSignalHandler.register",
    ),
    Template(
        "lifecycle.log_dir_failure",
        ("LogDirFailureChannel",),
        r".+",
        "LogDirFailureChannel.maybeAddOfflineLogDir: the text is the failing caller's; its being logged is the fact",
        _event("log_dir_failure"),
    ),
    Template(
        "lifecycle.quorum_state",
        ("QuorumState",),
        r"Completed transition to .*",
        "QuorumState.durableTransitionTo / memoryTransitionTo, KRaft",
        _event("state_change", "kraft"),
    ),
    Template(
        "lifecycle.quorum_state_attempt",
        ("QuorumState",),
        r"(?:Attempting durable transition to .*|Cannot (?:transition|become) .*|Not transitioning .*)",
        "QuorumState, KRaft",
    ),
    Template(
        "lifecycle.meta_properties",
        ("BrokerMetadataCheckpoint",),
        r"(?:No meta\.properties file under dir .*|Failed to (?:create|write|read) meta\.properties .*)",
        "BrokerMetadataCheckpoint.read",
    ),
    Template(
        "lifecycle.metadata_published",
        ("BrokerMetadataPublisher",),
        r"(?:The topicId does not exist in .*|Publishing (?:initial )?metadata at offset .*|Publishing delta "
        r".*|Updating metadata\.version to .*|Feature .* has been updated to version .*|Error "
        r"(?:publishing|updating|starting|initializing|handling|with|loading|deleting) .*|Found stray log dir .*)",
        "BrokerMetadataPublisher, KRaft",
    ),
)
