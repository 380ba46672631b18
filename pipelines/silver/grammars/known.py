"""Lines that carry nothing for the audit: threads that start and stop, and loggers about something else by nature.

A logger is listed as a whole only where no line of it, but for those with a template, can say anything about
replication; each with the reason. The loggers that matter have every template spelled out in the other modules.
"""

from __future__ import annotations

from typing import NamedTuple

from pipelines.silver.grammar import Template

#: Any logger may write these: `ShutdownableThread` logs under the class of the thread.
SHARED = (
    Template("known.thread_started", (), r"Starting", "ShutdownableThread.run"),
    Template("known.thread_stopping", (), r"Shutting down", "ShutdownableThread.initiateShutdown"),
    Template("known.thread_stopped", (), r"Stopped", "ShutdownableThread.run"),
    Template("known.thread_shut_down", (), r"Shutdown completed", "ShutdownableThread.awaitShutdown"),
    Template("known.thread_error", (), r"Error due to.*", "ShutdownableThread.run: the thread dies"),
    Template(
        "known.thread_shutdown_called",
        (),
        r"shutdownInitiated latch count reached zero\. Shutdown called\.",
        "ShutdownableThread.pause; TRACE",
    ),
)


class KnownLogger(NamedTuple):
    """Loggers of which no line matters.

    Attributes:
        prefix: start of the full logger name.
        id: template id that their lines are counted by.
        why: why none of them can matter.
    """

    prefix: str
    id: str
    why: str


_CONNECTIONS = (
    "connections between brokers: what came over them is in the request log, what failed in the fetcher's lines"
)
_COORDINATION = "groups and transactions: what they append is audited as records of their topics"
_METADATA_LOG = "the metadata quorum's own log: read from its segments, not from its log lines"
_REQUESTS = "handling of requests: the request log has them with their results"
_ADMIN = "administration: what it changes is logged by who applies it, and the templates of these loggers come first"
_METADATA = "caches of metadata: what they take over is logged by the replica manager"
_PLUMBING = "queues, timers and threads without content of their own"

#: The first prefix that fits counts, so a longer one stands before a shorter one.
LOGGERS = (
    KnownLogger(
        "org.apache.zookeeper.",
        "known.zookeeper_client",
        "the ZooKeeper client; sessions are logged by ZooKeeperClient",
    ),
    KnownLogger("org.I0Itec.", "known.zookeeper_client", "the ZooKeeper client up to 1.0"),
    KnownLogger("kafka.network.", "known.network", _CONNECTIONS),
    KnownLogger("org.apache.kafka.network.", "known.network", _CONNECTIONS),
    KnownLogger("org.apache.kafka.server.network.", "known.network", _CONNECTIONS),
    KnownLogger("org.apache.kafka.clients.", "known.client", _CONNECTIONS),
    KnownLogger("org.apache.kafka.common.network.", "known.network", _CONNECTIONS),
    KnownLogger("kafka.coordinator.", "known.coordinator", _COORDINATION),
    KnownLogger("org.apache.kafka.coordinator.", "known.coordinator", _COORDINATION),
    KnownLogger("org.apache.kafka.server.share.", "known.coordinator", "share groups (KIP-932)"),
    KnownLogger("kafka.server.share.", "known.coordinator", "share groups (KIP-932)"),
    KnownLogger("kafka.server.AddPartitionsToTxnManager", "known.coordinator", _COORDINATION),
    KnownLogger("org.apache.kafka.server.transaction.", "known.coordinator", _COORDINATION),
    KnownLogger("kafka.raft.", "known.raft", _METADATA_LOG),
    KnownLogger("org.apache.kafka.raft.", "known.raft", _METADATA_LOG),
    KnownLogger("org.apache.kafka.snapshot.", "known.raft", _METADATA_LOG),
    KnownLogger(
        "org.apache.kafka.image.",
        "known.metadata_image",
        "loading of the metadata image; what it changes is logged by who applies it",
    ),
    KnownLogger("org.apache.kafka.metadata.", "known.metadata_image", "publishers of the metadata image"),
    KnownLogger("kafka.migration.", "known.migration", "migration from ZooKeeper: metadata, no records"),
    KnownLogger("org.apache.kafka.queue.", "known.plumbing", _PLUMBING),
    KnownLogger(
        "org.apache.kafka.deferred.",
        "known.plumbing",
        "events of a controller or coordinator that lost its role",
    ),
    KnownLogger("org.apache.kafka.timeline.", "known.plumbing", _PLUMBING),
    KnownLogger("org.apache.kafka.server.util.", "known.plumbing", _PLUMBING),
    KnownLogger("kafka.utils.", "known.plumbing", _PLUMBING),
    KnownLogger("org.apache.kafka.server.logger.", "known.plumbing", _PLUMBING),
    KnownLogger("kafka.common.", "known.plumbing", "watchers of ZooKeeper nodes"),
    KnownLogger("org.apache.kafka.common.metrics.", "known.metrics", "metrics reporters"),
    KnownLogger("kafka.metrics.", "known.metrics", "metrics reporters"),
    KnownLogger("org.apache.kafka.server.metrics.", "known.metrics", "metrics reporters"),
    KnownLogger("kafka.server.BrokerTopicStats", "known.metrics", "metrics"),
    KnownLogger("kafka.server.BrokerTopicMetrics", "known.metrics", "metrics"),
    KnownLogger("org.apache.kafka.storage.log.metrics.", "known.metrics", "metrics"),
    KnownLogger("kafka.server.ClientQuotaManager", "known.quota", "quotas of clients"),
    KnownLogger("kafka.server.ClientRequestQuotaManager", "known.quota", "quotas of clients"),
    KnownLogger("kafka.server.ControllerMutationQuotaManager", "known.quota", "quotas of clients"),
    KnownLogger(
        "kafka.server.ReplicationQuotaManager",
        "known.quota",
        "reaper of throttled replication; throttling shows in the fetches",
    ),
    KnownLogger("org.apache.kafka.server.quota.", "known.quota", "quotas of clients"),
    KnownLogger("kafka.server.metadata.ClientQuota", "known.quota", "quotas of clients"),
    KnownLogger("kafka.server.metadata.DynamicClientQuotaPublisher", "known.quota", "quotas of clients"),
    KnownLogger("kafka.server.metadata.DynamicTopicClusterQuotaPublisher", "known.quota", "quotas of clients"),
    KnownLogger("kafka.server.metadata.ScramPublisher", "known.security", "credentials"),
    KnownLogger("kafka.server.metadata.DelegationTokenPublisher", "known.security", "delegation tokens"),
    KnownLogger("kafka.server.metadata.AclPublisher", "known.security", "access control"),
    KnownLogger("kafka.server.DelegationTokenManager", "known.security", "delegation tokens"),
    KnownLogger("kafka.security.", "known.security", "access control"),
    KnownLogger("kafka.authorizer.", "known.security", "access control"),
    KnownLogger("org.apache.kafka.common.security.", "known.security", "authentication"),
    KnownLogger("org.apache.kafka.server.authorizer.", "known.security", "access control"),
    KnownLogger("org.apache.kafka.security.", "known.security", "credentials"),
    KnownLogger("kafka.server.BrokerToController", "known.controller_channel", _CONNECTIONS),
    KnownLogger("kafka.server.NodeToController", "known.controller_channel", _CONNECTIONS),
    KnownLogger("kafka.server.ZkAlterPartitionManager", "known.controller_channel", _CONNECTIONS),
    KnownLogger("org.apache.kafka.server.NodeToController", "known.controller_channel", _CONNECTIONS),
    KnownLogger("kafka.server.ForwardingManager", "known.controller_channel", "requests passed on to the controller"),
    KnownLogger(
        "kafka.server.ControllerRegistrationManager",
        "known.controller_channel",
        "registration of a controller node",
    ),
    KnownLogger(
        "org.apache.kafka.server.controller.ControllerRegistrationManager",
        "known.controller_channel",
        "registration of a controller node",
    ),
    KnownLogger("kafka.server.AssignmentsManager", "known.assignments", "log directories of replicas (KIP-858)"),
    KnownLogger(
        "org.apache.kafka.server.AssignmentsManager",
        "known.assignments",
        "log directories of replicas (KIP-858)",
    ),
    KnownLogger(
        "kafka.server.ReplicaAlterLogDirs",
        "known.log_dirs",
        "copies within one broker prove nothing about replication",
    ),
    KnownLogger("kafka.server.KafkaApis", "known.request_handler", _REQUESTS),
    KnownLogger("kafka.server.ControllerApis", "known.request_handler", _REQUESTS),
    KnownLogger("kafka.server.RequestHandlerHelper", "known.request_handler", _REQUESTS),
    KnownLogger("kafka.server.KafkaRequestHandler", "known.request_handler", _REQUESTS),
    KnownLogger("kafka.server.AuthHelper", "known.request_handler", _REQUESTS),
    KnownLogger("kafka.server.AclApis", "known.request_handler", _REQUESTS),
    KnownLogger("kafka.server.ConfigAdminManager", "known.admin", _ADMIN),
    KnownLogger("kafka.server.AdminManager", "known.admin", _ADMIN),
    KnownLogger("kafka.server.ZkAdminManager", "known.admin", _ADMIN),
    KnownLogger("kafka.server.MetadataCache", "known.metadata_image", _METADATA),
    KnownLogger("kafka.server.metadata.ZkMetadataCache", "known.metadata_image", _METADATA),
    KnownLogger("kafka.server.metadata.KRaftMetadataCache", "known.metadata_image", _METADATA),
    KnownLogger("kafka.server.metadata.BrokerMetadata", "known.metadata_image", _METADATA),
    KnownLogger("kafka.server.metadata.ZkConfigRepository", "known.metadata_image", _METADATA),
    KnownLogger("kafka.server.metadata.OffsetTrackingListener", "known.metadata_image", _METADATA),
    KnownLogger("kafka.server.BrokerFeatures", "known.features", "feature versions of brokers"),
    KnownLogger("kafka.server.FinalizedFeature", "known.features", "feature versions of the cluster"),
    KnownLogger("org.apache.kafka.server.BrokerFeatures", "known.features", "feature versions of brokers"),
    KnownLogger("kafka.server.DefaultAutoTopicCreationManager", "known.admin", _ADMIN),
    KnownLogger("org.apache.kafka.server.DefaultAutoTopicCreationManager", "known.admin", _ADMIN),
    KnownLogger("kafka.server.BrokerBlockingSender", "known.network", _CONNECTIONS),
    KnownLogger("kafka.server.ReplicaFetcherBlockingSend", "known.network", _CONNECTIONS),
    KnownLogger("kafka.server.FetchSession", "known.fetch_session", "sessions are followed in the request log"),
    KnownLogger(
        "kafka.server.IncrementalFetchContext",
        "known.fetch_session",
        "sessions are followed in the request log",
    ),
    KnownLogger("kafka.server.FullFetchContext", "known.fetch_session", "sessions are followed in the request log"),
    KnownLogger(
        "kafka.server.SessionlessFetchContext",
        "known.fetch_session",
        "sessions are followed in the request log",
    ),
    KnownLogger(
        "org.apache.kafka.server.FetchSession",
        "known.fetch_session",
        "sessions are followed in the request log",
    ),
    KnownLogger(
        "org.apache.kafka.storage.internals.log.RemoteIndexCache",
        "known.tiered_storage",
        "tiered storage is not audited",
    ),
    KnownLogger("kafka.log.remote.", "known.tiered_storage", "tiered storage is not audited"),
    KnownLogger("org.apache.kafka.server.log.remote.", "known.tiered_storage", "tiered storage is not audited"),
    KnownLogger("org.apache.kafka.common.utils.", "known.plumbing", _PLUMBING),
    KnownLogger("org.apache.kafka.common.telemetry.", "known.metrics", "metrics of clients"),
    KnownLogger("org.apache.kafka.common.record.", "known.plumbing", "codecs and record batches"),
    KnownLogger("com.", "known.library", "a library, not Kafka"),
    KnownLogger("org.eclipse.", "known.library", "a library, not Kafka"),
    KnownLogger("io.netty.", "known.library", "a library, not Kafka"),
    KnownLogger("org.reflections.", "known.library", "a library, not Kafka"),
    KnownLogger("org.apache.directory.", "known.library", "a library, not Kafka"),
)


def known_logger(logger: str) -> str | None:
    """Template id of a logger that is known as a whole."""
    for known in LOGGERS:
        if logger.startswith(known.prefix):
            return known.id
    return None
