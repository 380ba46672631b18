"""Grammar of a broker's life: start, version, mode, registration, sessions, fencing, shutdown, signals, death."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.typed import lifecycle_event as _event

_ZK_SERVER = ("KafkaServer",)
_KRAFT_SERVER = ("BrokerServer",)


def _state(match: re.Match[str], context: Context) -> str:
    return "unfenced" if match["event"] == "RUNNING" else "state_change"


_zk_server = partial(Template, loggers=_ZK_SERVER)
_kraft_server = partial(Template, loggers=_KRAFT_SERVER)
_lifecycle = partial(Template, loggers=("BrokerLifecycleManager",))
_zookeeper_client = partial(Template, loggers=("ZooKeeperClient",))

TEMPLATES = (
    Template(
        "lifecycle.version",
        r"Kafka version ?: (?P<kafka_version>\S+)",
        "AppInfoParser.AppInfo",
        _event("version"),
        loggers=("AppInfoParser",),
    ),
    _zk_server("lifecycle.starting", r"starting", "KafkaServer.startup", _event("starting", "zookeeper")),
    _kraft_server("lifecycle.starting", r"Starting broker", "BrokerServer.startup", _event("starting", "kraft")),
    _zk_server("lifecycle.started", r"started", "KafkaServer.startup", _event("started", "zookeeper")),
    Template(
        "lifecycle.started",
        r"Kafka Server started",
        "KafkaRaftServer.startup",
        _event("started", "kraft"),
        loggers=("KafkaRaftServer",),
    ),
    _zk_server(
        "lifecycle.shutting_down",
        r"shutting down",
        "KafkaServer.shutdown",
        _event("shutting_down", "zookeeper"),
    ),
    _kraft_server(
        "lifecycle.shutting_down",
        r"shutting down",
        "BrokerServer.shutdown",
        _event("shutting_down", "kraft"),
    ),
    _zk_server("lifecycle.shut_down", r"shut down completed", "KafkaServer.shutdown", _event("shut_down", "zookeeper")),
    _kraft_server("lifecycle.shut_down", r"shut down completed", "BrokerServer.shutdown", _event("shut_down", "kraft")),
    _kraft_server(
        "lifecycle.transition",
        r"Transition from \w+ to \w+",
        "BrokerServer.maybeChangeStatus, 3.2 and later",
        _event("state_change", "kraft"),
    ),
    _zk_server(
        "lifecycle.controlled_shutdown",
        r"(?:Starting controlled shutdown|Controlled shutdown succeeded|Controlled shutdown request returned "
        r".*|Proceeding to do an unclean shutdown .*|Notifying KRaft of controlled shutdown)",
        "KafkaServer.controlledShutdown",
        _event("controlled_shutdown", "zookeeper"),
    ),
    Template(
        "lifecycle.fatal",
        r"(?:Fatal error during .*|Encountered an exception when waiting .*|Exhausted all demo/temporary producerIds "
        r".*)",
        "KafkaServer, BrokerServer, ControllerServer; FATAL",
        _event("fatal"),
        loggers=(*_ZK_SERVER, *_KRAFT_SERVER, "ControllerServer"),
    ),
    Template(
        "lifecycle.signal_handlers_failed",
        r"Failed to register optional signal handler .*",
        "kafka.Kafka.main",
        loggers=("Kafka",),
    ),
    Template(
        "lifecycle.fatal",
        r"(?:Exiting Kafka.*|Halting Kafka\.|.*[Ff]atal exception.*)",
        "kafka.Kafka.main; FATAL",
        _event("fatal"),
        loggers=("Kafka",),
    ),
    Template(
        "lifecycle.fault",
        r"Encountered fatal fault: .*",
        "ProcessTerminatingFaultHandler.handleFault, 3.3 and later",
        _event("fatal"),
        loggers=("ProcessTerminatingFaultHandler",),
    ),
    Template(
        "lifecycle.fault_nonfatal",
        r"(?:Encountered .* fault: .*|Failed to run .* action\.)",
        "LoggingFaultHandler.handleFault, 3.3 and later",
        _event("state_change"),
        loggers=("LoggingFaultHandler", "ProcessTerminatingFaultHandler"),
    ),
    _kraft_server(
        "lifecycle.controlled_shutdown_wait",
        r"(?:Timed out waiting for the controller to approve controlled shutdown|Got unexpected exception waiting for "
        r"controlled shutdown future)",
        "BrokerServer.shutdown",
        _event("controlled_shutdown", "kraft"),
    ),
    _lifecycle(
        "lifecycle.registered",
        r"Successfully registered broker -?\d+ with broker epoch -?\d+",
        "BrokerLifecycleManager.BrokerRegistrationResponseHandler",
        _event("registered", "kraft"),
    ),
    Template(
        "lifecycle.registered",
        r"Registered broker -?\d+ at path .*",
        "KafkaZkClient.registerBroker",
        _event("registered", "zookeeper"),
        loggers=("KafkaZkClient", "ZkUtils"),
    ),
    _lifecycle(
        "lifecycle.incarnation",
        r"Incarnation \S+ of broker -?\d+ in cluster \S+ is now STARTING\.",
        "BrokerLifecycleManager.StartupEvent",
        _event("state_change", "kraft"),
    ),
    _lifecycle(
        "lifecycle.lifecycle_state",
        r"(?:The broker has .*\. )?Transitioning from \w+ to (?P<event>\w+)\.",
        "BrokerLifecycleManager.BrokerHeartbeatResponseHandler",
        _event(_state, "kraft"),
    ),
    _lifecycle(
        "lifecycle.controlled_shutdown",
        r"(?:Beginning controlled shutdown\.|The controlle[rd] has asked us to exit controlled shutdown\.|Skipping "
        r"controlled shutdown because we are in state .*|Attempted to enter pending controlled shutdown state, .*)",
        "BrokerLifecycleManager.BeginControlledShutdownEvent",
        _event("controlled_shutdown", "kraft"),
    ),
    _lifecycle(
        "lifecycle.heartbeat_fatal",
        r"Shutting down because .*",
        "BrokerLifecycleManager.RegistrationTimeoutEvent / OfflineDirBrokerFailureEvent",
        _event("fatal", "kraft"),
    ),
    _zookeeper_client(
        "lifecycle.zookeeper_connected",
        r"Connected\.",
        "ZooKeeperClient.waitUntilConnected",
        _event("zookeeper_connected", "zookeeper"),
    ),
    _zookeeper_client(
        "lifecycle.zookeeper_expired",
        r"Session expired\.?",
        "ZooKeeperClient.ZooKeeperClientWatcher",
        _event("zookeeper_expired", "zookeeper"),
    ),
    Template(
        "lifecycle.zookeeper_connected",
        r"zookeeper state changed \(SyncConnected\)",
        "org.I0Itec.zkclient.ZkClient.processStateChanged, up to 1.0",
        _event("zookeeper_connected", "zookeeper"),
        loggers=("ZkClient",),
    ),
    Template(
        "lifecycle.zookeeper_expired",
        r"zookeeper state changed \(Expired\)",
        "org.I0Itec.zkclient.ZkClient.processStateChanged, up to 1.0",
        _event("zookeeper_expired", "zookeeper"),
        loggers=("ZkClient",),
    ),
    Template(
        "lifecycle.signal",
        r"Terminating process due to signal \S+",
        "LoggingSignalHandler.register",
        _event("signal"),
        loggers=("LoggingSignalHandler", "Kafka"),
    ),
    Template(
        "lifecycle.log_dir_failure",
        r".+",
        "LogDirFailureChannel.maybeAddOfflineLogDir: the text is the failing caller's; its being logged is the fact",
        _event("log_dir_failure"),
        loggers=("LogDirFailureChannel",),
    ),
    Template(
        "lifecycle.quorum_state",
        r"Completed transition to .*",
        "QuorumState.durableTransitionTo / memoryTransitionTo, KRaft",
        _event("state_change", "kraft"),
        loggers=("QuorumState",),
    ),
)
