"""Lines that carry nothing for the audit: threads that start and stop, and loggers about something else by nature.

A logger is listed as a whole only where no line of it, but for those with a template, can say anything about
replication; each with the reason. The loggers that matter have every template spelled out in the other modules.
"""

from __future__ import annotations

from pipelines.grammars.grammar import Template

#: Any logger may write these: `ShutdownableThread` logs under the class of the thread.
SHARED = (
    Template("known.thread_started", r"Starting", "ShutdownableThread.run"),
    Template("known.thread_stopping", r"Shutting down", "ShutdownableThread.initiateShutdown"),
    Template("known.thread_stopped", r"Stopped", "ShutdownableThread.run"),
    Template("known.thread_shut_down", r"Shutdown completed", "ShutdownableThread.awaitShutdown"),
    Template("known.thread_error", r"Error due to.*", "ShutdownableThread.run: the thread dies"),
    Template(
        "known.thread_shutdown_called",
        r"shutdownInitiated latch count reached zero\. Shutdown called\.",
        "ShutdownableThread.pause; TRACE",
    ),
)


_CONNECTIONS = (
    "connections between brokers: what came over them is in the request log, what failed in the fetcher's lines"
)
_COORDINATION = "groups and transactions: what they append is audited as records of their topics"
_METADATA_LOG = "the metadata quorum's own log: read from its segments, not from its log lines"
_REQUESTS = "handling of requests: the request log has them with their results"
_ADMIN = "administration: what it changes is logged by who applies it, and the templates of these loggers come first"
_METADATA = "caches of metadata: what they take over is logged by the replica manager"
_PLUMBING = "queues, timers and threads without content of their own"

#: Ids of templates, why no line of these loggers can matter, and the beginnings of their full names.
_LOGGERS = (
    ("known.zookeeper_client", "the ZooKeeper client; sessions are logged by ZooKeeperClient", "org.apache.zookeeper."),
    ("known.zookeeper_client", "the ZooKeeper client up to 1.0", "org.I0Itec."),
    (
        "known.network",
        _CONNECTIONS,
        "kafka.network. org.apache.kafka.network. org.apache.kafka.server.network. org.apache.kafka.common.network. "
        "kafka.server.BrokerBlockingSender kafka.server.ReplicaFetcherBlockingSend",
    ),
    ("known.client", _CONNECTIONS, "org.apache.kafka.clients."),
    (
        "known.coordinator",
        _COORDINATION,
        "kafka.coordinator. org.apache.kafka.coordinator. kafka.server.AddPartitionsToTxnManager "
        "org.apache.kafka.server.transaction.",
    ),
    ("known.coordinator", "share groups (KIP-932)", "org.apache.kafka.server.share. kafka.server.share."),
    ("known.raft", _METADATA_LOG, "kafka.raft. org.apache.kafka.raft. org.apache.kafka.snapshot."),
    (
        "known.metadata_image",
        "loading of the metadata image; what it changes is logged by who applies it",
        "org.apache.kafka.image.",
    ),
    ("known.metadata_image", "publishers of the metadata image", "org.apache.kafka.metadata."),
    ("known.migration", "migration from ZooKeeper: metadata, no records", "kafka.migration."),
    (
        "known.plumbing",
        _PLUMBING,
        "org.apache.kafka.queue. org.apache.kafka.timeline. org.apache.kafka.server.util. kafka.utils. "
        "org.apache.kafka.server.logger. org.apache.kafka.common.utils.",
    ),
    ("known.plumbing", "events of a controller or coordinator that lost its role", "org.apache.kafka.deferred."),
    ("known.plumbing", "watchers of ZooKeeper nodes", "kafka.common."),
    (
        "known.metrics",
        "metrics reporters",
        "org.apache.kafka.common.metrics. kafka.metrics. org.apache.kafka.server.metrics.",
    ),
    (
        "known.metrics",
        "metrics",
        "kafka.server.BrokerTopicStats kafka.server.BrokerTopicMetrics org.apache.kafka.storage.log.metrics.",
    ),
    (
        "known.quota",
        "quotas of clients",
        "kafka.server.ClientQuotaManager kafka.server.ClientRequestQuotaManager "
        "kafka.server.ControllerMutationQuotaManager org.apache.kafka.server.quota. "
        "kafka.server.metadata.ClientQuota kafka.server.metadata.DynamicClientQuotaPublisher "
        "kafka.server.metadata.DynamicTopicClusterQuotaPublisher",
    ),
    (
        "known.quota",
        "reaper of throttled replication; throttling shows in the fetches",
        "kafka.server.ReplicationQuotaManager",
    ),
    ("known.security", "credentials", "kafka.server.metadata.ScramPublisher org.apache.kafka.security."),
    (
        "known.security",
        "delegation tokens",
        "kafka.server.metadata.DelegationTokenPublisher kafka.server.DelegationTokenManager",
    ),
    (
        "known.security",
        "access control",
        "kafka.server.metadata.AclPublisher kafka.security. kafka.authorizer. org.apache.kafka.server.authorizer.",
    ),
    ("known.security", "authentication", "org.apache.kafka.common.security."),
    (
        "known.controller_channel",
        _CONNECTIONS,
        "kafka.server.BrokerToController kafka.server.NodeToController kafka.server.ZkAlterPartitionManager "
        "org.apache.kafka.server.NodeToController",
    ),
    ("known.controller_channel", "requests passed on to the controller", "kafka.server.ForwardingManager"),
    (
        "known.controller_channel",
        "registration of a controller node",
        "kafka.server.ControllerRegistrationManager org.apache.kafka.server.controller.ControllerRegistrationManager",
    ),
    (
        "known.assignments",
        "log directories of replicas (KIP-858)",
        "kafka.server.AssignmentsManager org.apache.kafka.server.AssignmentsManager",
    ),
    ("known.log_dirs", "copies within one broker prove nothing about replication", "kafka.server.ReplicaAlterLogDirs"),
    (
        "known.request_handler",
        _REQUESTS,
        "kafka.server.KafkaApis kafka.server.ControllerApis kafka.server.RequestHandlerHelper "
        "kafka.server.KafkaRequestHandler kafka.server.AuthHelper kafka.server.AclApis",
    ),
    (
        "known.admin",
        _ADMIN,
        "kafka.server.ConfigAdminManager kafka.server.AdminManager kafka.server.ZkAdminManager "
        "kafka.server.DefaultAutoTopicCreationManager org.apache.kafka.server.DefaultAutoTopicCreationManager",
    ),
    (
        "known.metadata_image",
        _METADATA,
        "kafka.server.MetadataCache kafka.server.metadata.ZkMetadataCache kafka.server.metadata.KRaftMetadataCache "
        "kafka.server.metadata.BrokerMetadata kafka.server.metadata.ZkConfigRepository "
        "kafka.server.metadata.OffsetTrackingListener",
    ),
    (
        "known.features",
        "feature versions of brokers",
        "kafka.server.BrokerFeatures org.apache.kafka.server.BrokerFeatures",
    ),
    ("known.features", "feature versions of the cluster", "kafka.server.FinalizedFeature"),
    (
        "known.fetch_session",
        "sessions are followed in the request log",
        "kafka.server.FetchSession kafka.server.IncrementalFetchContext kafka.server.FullFetchContext "
        "kafka.server.SessionlessFetchContext org.apache.kafka.server.FetchSession",
    ),
    (
        "known.tiered_storage",
        "tiered storage is not audited",
        "org.apache.kafka.storage.internals.log.RemoteIndexCache kafka.log.remote. org.apache.kafka.server.log.remote.",
    ),
    ("known.metrics", "metrics of clients", "org.apache.kafka.common.telemetry."),
    ("known.plumbing", "codecs and record batches", "org.apache.kafka.common.record."),
    ("known.library", "a library, not Kafka", "com. org.eclipse. io.netty. org.reflections. org.apache.directory."),
)
_BY_PREFIX = {prefix: template for template, _, prefixes in _LOGGERS for prefix in prefixes.split()}


def known_logger(logger: str) -> str | None:
    """Template id of a logger that is known as a whole."""
    return next((template for prefix, template in _BY_PREFIX.items() if logger.startswith(prefix)), None)
