"""Classes of Kafka's brokers that have a logger, and of what runs in one process with them, by their packages.

Made from the sources of 17 releases from 0.9.0 to 4.0 (classes that use a logger), from the texts compiled into 31 of
0.9.0 to 4.4.0, and from the loggers of the corpora; outer classes only. ZooKeeper's are those of its client and server
that log when one starts. What is not here is not resolved: a class of a later release costs coverage, nothing else.
"""

from __future__ import annotations

PACKAGES = {
    "kafka": "Kafka",
    "kafka.admin": (
        "AclCommand AdminClient AdminUtils BrokerApiVersionsCommand ConfigCommand ConsumerGroupCommand "
        "DelegationTokenCommand LeaderElectionCommand PreferredReplicaLeaderElectionCommand "
        "ReassignPartitionsCommand TopicCommand ZkSecurityMigrator"
    ),
    "kafka.api": (
        "ControlledShutdownRequest OffsetCommitRequest OffsetCommitResponse OffsetFetchRequest OffsetFetchResponse "
        "RequestOrResponse StopReplicaRequest TopicMetadata TopicMetadataRequest"
    ),
    "kafka.client": "ClientUtils",
    "kafka.cluster": "Partition Replica",
    "kafka.common": "Config InterBrokerSendThread ZkNodeChangeNotificationListener",
    "kafka.consumer": (
        "ConsumerConnector ConsumerIterator ConsumerTopicStats PartitionAssignor PartitionTopicInfo SimpleConsumer "
        "TopicCount TopicFilter ZookeeperConsumerConnector ZookeeperTopicEventWatcher"
    ),
    "kafka.controller": (
        "AbstractControllerBrokerRequestBatch ControlledShutdownLeaderSelector ControllerBrokerRequestBatch "
        "ControllerChannelManager ControllerEventManager ControllerZkListener IsrChangeNotificationListener "
        "KafkaController NoOpLeaderSelector OfflinePartitionLeaderSelector PartitionLeaderSelector "
        "PartitionStateMachine PartitionsReassignedListener PreferredReplicaElectionListener "
        "PreferredReplicaPartitionLeaderSelector ReassignedPartitionsIsrChangeListener ReplicaStateMachine "
        "RequestSendThread StateChangeLogger TopicDeletionManager ZkPartitionStateMachine ZkReplicaStateMachine "
        "ZookeeperClient"
    ),
    "kafka.coordinator": "GroupCoordinator GroupMetadataManager",
    "kafka.coordinator.group": "CoordinatorLoaderImpl GroupCoordinator GroupMetadata GroupMetadataManager",
    "kafka.coordinator.transaction": (
        "ProducerIdManager TransactionCoordinator TransactionMarkerChannelManager "
        "TransactionMarkerRequestCompletionHandler TransactionMetadata TransactionStateManager TxnMarkerQueue"
    ),
    "kafka.docker": "KafkaDockerWrapper",
    "kafka.javaapi": "Implicits",
    "kafka.log": (
        "AbstractIndex Cleaner FileMessageSet LocalLog Log LogCleaner LogCleanerManager LogConfig LogDeletion "
        "LogLoader LogManager LogRecovery LogRoll LogSegment LogTruncation LogValidator OffsetIndex "
        "ProducerAppendInfo ProducerStateManager ProducerStateManagerConfig RetentionMsBreach RetentionSizeBreach "
        "SnapshotFile StartOffsetBreach TimeIndex TransactionIndex UnifiedLog"
    ),
    "kafka.log.remote": "RemoteIndexCache RemoteLogManager RemoteLogOffsetReader RemoteLogReader",
    "kafka.log.remote.quota": "RLMQuotaManager",
    "kafka.message": "ByteBufferMessageSet",
    "kafka.metrics": "KafkaCSVMetricsReporter KafkaMetricsGroup",
    "kafka.migration": "MigrationPropagator MigrationPropagatorBatch",
    "kafka.network": (
        "Acceptor BlockingChannel ConnectionQuotas DataPlaneAcceptor Processor RequestChannel "
        "RequestOrResponseSend SocketServer"
    ),
    "kafka.producer": "BrokerPartitionInfo Producer ProducerPool SyncProducer",
    "kafka.producer.async": "DefaultEventHandler ProducerSendThread",
    "kafka.raft": (
        "KafkaMetadataLog KafkaNetworkChannel KafkaRaftManager RaftManager RaftSendThread TimingWheelExpirationService"
    ),
    "kafka.security.auth": "SimpleAclAuthorizer",
    "kafka.security.authorizer": "AclAuthorizer",
    "kafka.server": (
        "AbstractFetcherManager AbstractFetcherThread AclApis ActionQueue AddPartitionsToTxnManager AdminManager "
        "AlterIsrManager AlterIsrManagerImpl AlterPartitionManager AutoTopicCreationManager BrokerBlockingSender "
        "BrokerFeatures BrokerLifecycleManager BrokerMetadataCheckpoint BrokerServer "
        "BrokerToControllerChannelManager BrokerToControllerChannelManagerImpl BrokerToControllerRequestThread "
        "BrokerTopicStats ClientQuotaManager ConfigAdminManager ConfigHandler ConfigHelper ControllerApis "
        "ControllerMutationQuotaManager ControllerRegistrationManager ControllerServer DefaultAlterIsrManager "
        "DefaultAlterPartitionManager DefaultAutoTopicCreationManager DelayedCreatePartitions DelayedCreateTopics "
        "DelayedDeleteRecords DelayedDeleteTopics DelayedElectLeader DelayedElectPreferredLeader DelayedFetch "
        "DelayedFuture DelayedOperation DelayedOperationPurgatory DelayedProduce DelayedRemoteFetch "
        "DelayedRemoteListOffsets DelegationTokenManager DelegationTokenManagerZk DynamicBrokerConfig "
        "DynamicConfigManager DynamicProducerStateManagerConfig FetchManager FetchSession FetchSessionCache "
        "FetchSessionCacheShard FinalizedFeatureCache FinalizedFeatureChangeListener ForwardingManager "
        "ForwardingManagerImpl FullFetchContext IncrementalFetchContext KafkaApis KafkaBroker KafkaConfig "
        "KafkaHealthcheck KafkaRaftServer KafkaRequestHandler KafkaRequestHandlerPool KafkaServer "
        "KafkaServerStartable LeaderElector LinuxIoMetricsCollector LocalLeaderEndPoint LogDirFailureChannel "
        "MetadataCache NetworkUtils NodeToControllerChannelManager NodeToControllerChannelManagerImpl "
        "NodeToControllerRequestThread OffsetCheckpoint PartitionMetadataFile QuotaFactory "
        "RaftReplicaChangeDelegate RaftReplicaManager RemoteLeaderEndPoint ReplicaAlterLogDirsManager "
        "ReplicaAlterLogDirsThread ReplicaFetcherBlockingSend ReplicaFetcherManager ReplicaFetcherThread "
        "ReplicaFetcherTierStateMachine ReplicaManager ReplicationQuotaManager RequestHandlerHelper "
        "SessionErrorContext SessionlessFetchContext SharedServer ThrottledChannel TierStateMachine "
        "TopicConfigHandler ZkAdminManager ZkAlterPartitionManager ZkConfigManager ZkIsrManager ZkMetadataCache "
        "ZookeeperLeaderElector"
    ),
    "kafka.server.checkpoints": "CheckpointFile",
    "kafka.server.epoch": "LeaderEpochFileCache",
    "kafka.server.logger": "RuntimeLoggerManager",
    "kafka.server.metadata": (
        "AclPublisher BrokerMetadataListener BrokerMetadataPublisher BrokerMetadataSnapshotter "
        "ClientQuotaMetadataManager DelegationTokenPublisher DynamicClientQuotaPublisher DynamicConfigPublisher "
        "KRaftMetadataCache MetadataBrokers RaftMetadataCache ScramPublisher ZkMetadataCache"
    ),
    "kafka.server.share": "DelayedShareFetch ShareFetchUtils SharePartition SharePartitionManager",
    "kafka.tools": (
        "ClusterTool ConsoleConsumer ConsoleProducer ConsumerOffsetChecker ExportZkOffsets ImportZkOffsets JmxTool "
        "MirrorMaker ProducerPerformance ReplayLogProducer ReplicaVerificationTool SimpleConsumerShell "
        "StateChangeLogMerger StorageTool TestRaftRequestHandler TestRaftServer UpdateOffsetsInZK "
        "VerifyConsumerRebalance"
    ),
    "kafka.utils": (
        "CommandLineUtils CoreUtils DelayedItem FileLock Json KafkaScheduler Log4jController "
        "Log4jControllerRegistration LogDirUtils Logging Mx4jLoader PasswordEncoder ReplicationUtils "
        "ShutdownableThread Throttler TopicFilter VerifiableProperties ZKCheckedEphemeral ZkUtils"
    ),
    "kafka.zk": "AdminZkClient KafkaZkClient ZkMigrationClient",
    "kafka.zk.migration": (
        "ZkAclMigrationClient ZkConfigMigrationClient ZkDelegationTokenMigrationClient ZkTopicMigrationClient"
    ),
    "kafka.zookeeper": "ZooKeeperClient",
    "org.apache.kafka.clients": (
        "ClientUtils ClusterConnectionStates CommonClientConfigs FetchSessionHandler ManualMetadataUpdater "
        "Metadata NetworkClient"
    ),
    "org.apache.kafka.clients.admin": "AdminClientConfig KafkaAdminClient",
    "org.apache.kafka.clients.admin.internals": (
        "AbortTransactionHandler AdminApiDriver AdminMetadataManager AllBrokersStrategy "
        "AlterConsumerGroupOffsetsHandler CoordinatorStrategy DeleteConsumerGroupOffsetsHandler "
        "DeleteConsumerGroupsHandler DeleteRecordsHandler DescribeConsumerGroupsHandler DescribeProducersHandler "
        "DescribeShareGroupsHandler DescribeTransactionsHandler FenceProducersHandler "
        "ListConsumerGroupOffsetsHandler ListOffsetsHandler ListTransactionsHandler PartitionLeaderStrategy "
        "RemoveMembersFromConsumerGroupHandler"
    ),
    "org.apache.kafka.clients.consumer": (
        "ConsumerConfig KafkaConsumer KafkaShareConsumer MockConsumer MockShareConsumer StickyAssignor"
    ),
    "org.apache.kafka.clients.consumer.internals": (
        "AbstractCoordinator AbstractFetch AbstractHeartbeatRequestManager AbstractPartitionAssignor "
        "AbstractStickyAssignor AcknowledgementCommitCallbackHandler AsyncClient AsyncKafkaConsumer "
        "ClassicKafkaConsumer CommitRequestManager CompletedFetch ConsumerCoordinator ConsumerDelegateCreator "
        "ConsumerHeartbeatRequestManager ConsumerInterceptors ConsumerMembershipManager ConsumerMetadata "
        "ConsumerNetworkClient ConsumerNetworkThread ConsumerRebalanceListenerInvoker ConsumerUtils "
        "CoordinatorRequestManager DefaultBackgroundThread DefaultEventHandler FetchBuffer FetchCollector "
        "FetchRequestManager Fetcher Heartbeat HeartbeatRequestManager LegacyKafkaConsumer MembershipManagerImpl "
        "NetworkClientDelegate OffsetFetcher OffsetFetcherUtils OffsetsForLeaderEpochClient "
        "OffsetsForLeaderEpochUtils OffsetsRequestManager PartitionAssignorAdapter PrototypeAsyncConsumer "
        "RequestManagers RequestState ShareCompletedFetch ShareConsumeRequestManager ShareConsumerDelegateCreator "
        "ShareConsumerImpl ShareFetchBuffer ShareFetchCollector ShareHeartbeatRequestManager "
        "ShareMembershipManager ShareSessionHandler SubscriptionState TimedRequestState TopicMetadataFetcher "
        "TopicMetadataRequestManager"
    ),
    "org.apache.kafka.clients.consumer.internals.events": (
        "ApplicationEventHandler ApplicationEventProcessor BackgroundEventHandler CompletableEventReaper EventProcessor"
    ),
    "org.apache.kafka.clients.producer": "KafkaProducer ProducerConfig",
    "org.apache.kafka.clients.producer.internals": (
        "BuiltInPartitioner ErrorLoggingCallback ProducerBatch ProducerInterceptors ProducerMetadata "
        "RecordAccumulator RecordBatch Sender TransactionManager TxnPartitionMap"
    ),
    "org.apache.kafka.common.config": "AbstractConfig",
    "org.apache.kafka.common.config.provider": "DirectoryConfigProvider EnvVarConfigProvider FileConfigProvider",
    "org.apache.kafka.common.internals": "CompositeStrategy",
    "org.apache.kafka.common.memory": "SimpleMemoryPool",
    "org.apache.kafka.common.metrics": "JmxReporter Metrics",
    "org.apache.kafka.common.metrics.stats": "Percentiles",
    "org.apache.kafka.common.network": (
        "ChannelBuilders MultiSend NetworkReceive PlaintextChannelBuilder PlaintextTransportLayer "
        "SaslChannelBuilder Selector SslChannelBuilder SslTransportLayer"
    ),
    "org.apache.kafka.common.protocol": "Errors",
    "org.apache.kafka.common.record": (
        "ControlRecordType EndTransactionMarker LazyDownConversionRecordsSend MemoryRecords MultiRecordsSend"
    ),
    "org.apache.kafka.common.requests": ("DeleteAclsResponse FetchMetadata OffsetFetchRequest TxnOffsetCommitRequest"),
    "org.apache.kafka.common.security": "JaasContext JaasUtils",
    "org.apache.kafka.common.security.authenticator": (
        "AbstractLogin LoginManager SaslClientAuthenticator SaslServerAuthenticator SaslServerCallbackHandler"
    ),
    "org.apache.kafka.common.security.kerberos": "KerberosError KerberosLogin Login",
    "org.apache.kafka.common.security.oauthbearer": (
        "OAuthBearerLoginCallbackHandler OAuthBearerLoginModule OAuthBearerValidatorCallbackHandler"
    ),
    "org.apache.kafka.common.security.oauthbearer.internals": (
        "OAuthBearerRefreshingLogin OAuthBearerSaslClient OAuthBearerSaslClientCallbackHandler OAuthBearerSaslServer"
    ),
    "org.apache.kafka.common.security.oauthbearer.internals.expiring": "ExpiringCredentialRefreshingLogin",
    "org.apache.kafka.common.security.oauthbearer.internals.secured": (
        "HttpAccessTokenRetriever JaasOptionsUtils JwksFileVerificationKeyResolver LoginAccessTokenValidator "
        "RefreshingHttpsJwks RefreshingHttpsJwksVerificationKeyResolver Retry ValidatorAccessTokenValidator"
    ),
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured": (
        "OAuthBearerUnsecuredLoginCallbackHandler OAuthBearerUnsecuredValidatorCallbackHandler"
    ),
    "org.apache.kafka.common.security.oauthbearer.secured": (
        "HttpAccessTokenRetriever JaasOptionsUtils JwksFileVerificationKeyResolver LoginAccessTokenValidator "
        "OAuthBearerLoginCallbackHandler OAuthBearerValidatorCallbackHandler RefreshingHttpsJwks "
        "RefreshingHttpsJwksVerificationKeyResolver Retry ValidatorAccessTokenValidator"
    ),
    "org.apache.kafka.common.security.scram": "ScramSaslClient ScramSaslServer",
    "org.apache.kafka.common.security.scram.internals": "ScramSaslClient ScramSaslServer",
    "org.apache.kafka.common.security.ssl": (
        "CommonNameLoggingTrustManagerFactoryWrapper DefaultSslEngineFactory SslEngineBuilder SslFactory"
    ),
    "org.apache.kafka.common.serialization": "ListDeserializer ListSerializer",
    "org.apache.kafka.common.telemetry.internals": (
        "ClientTelemetryReporter ClientTelemetryUtils KafkaMetricsCollector"
    ),
    "org.apache.kafka.common.utils": (
        "AppInfoParser ConfigUtils KafkaThread LogContext LoggingSignalHandler MappedByteBuffers SecurityUtils "
        "Shell ThreadUtils Utils"
    ),
    "org.apache.kafka.common.utils.internals": "AppInfoParser LoggingSignalHandler",
    "org.apache.kafka.connect.cli": "AbstractConnectCli ConnectDistributed ConnectStandalone",
    "org.apache.kafka.connect.connector.policy": (
        "AllConnectorClientConfigOverridePolicy NoneConnectorClientConfigOverridePolicy "
        "PrincipalConnectorClientConfigOverridePolicy"
    ),
    "org.apache.kafka.connect.mirror": (
        "CheckpointStore MirrorCheckpointConnector MirrorCheckpointTask MirrorHerder MirrorMaker "
        "MirrorSourceConnector MirrorSourceTask MirrorUtils OffsetSyncStore OffsetSyncWriter Scheduler"
    ),
    "org.apache.kafka.connect.mirror.rest.resources": "InternalMirrorResource",
    "org.apache.kafka.connect.runtime": (
        "AbstractHerder AbstractWorkerSourceTask Connect ConnectMetrics ConnectorConfig "
        "ExactlyOnceWorkerSourceTask HerderConnectorContext Loggers SourceConnectorConfig "
        "SourceTaskOffsetCommitter SubmittedRecords TransformationChain Worker WorkerConfig "
        "WorkerConfigTransformer WorkerConnector WorkerInfo WorkerSinkTask WorkerSinkTaskContext "
        "WorkerSinkTaskThread WorkerSourceTask WorkerTask WorkerTransactionContext"
    ),
    "org.apache.kafka.connect.runtime.distributed": (
        "DistributedConfig DistributedHerder EagerAssignor IncrementalCooperativeAssignor WorkerCoordinator "
        "WorkerGroupMember"
    ),
    "org.apache.kafka.connect.runtime.errors": (
        "DeadLetterQueueReporter ErrorHandlingMetrics LogReporter RetryWithToleranceOperator WorkerErrantRecordReporter"
    ),
    "org.apache.kafka.connect.runtime.isolation": (
        "DelegatingClassLoader PluginClassLoader PluginScanner PluginUtils Plugins ReflectionScanner"
    ),
    "org.apache.kafka.connect.runtime.rest": "ConnectRestConfigurable HerderRequestHandler RestClient RestServer",
    "org.apache.kafka.connect.runtime.rest.errors": "ConnectExceptionMapper",
    "org.apache.kafka.connect.runtime.rest.resources": "ConnectorsResource LoggingResource",
    "org.apache.kafka.connect.runtime.standalone": "HealthCheckThread StandaloneHerder",
    "org.apache.kafka.connect.storage": (
        "ConnectorOffsetBackingStore FileOffsetBackingStore KafkaConfigBackingStore KafkaConfigStorage "
        "KafkaOffsetBackingStore KafkaStatusBackingStore KafkaTopicBasedBackingStore MemoryConfigBackingStore "
        "MemoryOffsetBackingStore OffsetStorageReaderImpl OffsetStorageWriter OffsetUtils"
    ),
    "org.apache.kafka.connect.tools": (
        "MockConnector MockSinkTask MockSourceTask SchemaSourceTask VerifiableSourceTask"
    ),
    "org.apache.kafka.connect.util": (
        "ConnectUtils KafkaBasedLog LoggingContext RetryUtil ShutdownableThread Stage TopicAdmin TopicCreation"
    ),
    "org.apache.kafka.controller": (
        "AclControlManager BrokerHeartbeatManager ClientQuotaControlManager ClusterControlManager "
        "ConfigurationControlManager ControllerPurgatory DelegationTokenControlManager EventPerformanceMonitor "
        "FeatureControlManager LogReplayTracker OffsetControlManager PartitionChangeBuilder "
        "PeriodicTaskControlManager ProducerIdControlManager QuorumController QuorumFeatures "
        "ReplicationControlManager ScramControlManager SnapshotGenerator"
    ),
    "org.apache.kafka.coordinator.common.runtime": (
        "CoordinatorRuntime CoordinatorShardBuilder MultiThreadedEventProcessor SnapshottableCoordinator"
    ),
    "org.apache.kafka.coordinator.group": (
        "GroupCoordinatorService GroupCoordinatorShard GroupMetadataManager OffsetMetadataManager"
    ),
    "org.apache.kafka.coordinator.group.assignor": (
        "GeneralUniformAssignmentBuilder OptimizedUniformAssignmentBuilder UniformAssignor "
        "UniformHeterogeneousAssignmentBuilder"
    ),
    "org.apache.kafka.coordinator.group.classic": "ClassicGroup",
    "org.apache.kafka.coordinator.group.metrics": "GroupCoordinatorMetricsShard",
    "org.apache.kafka.coordinator.group.runtime": (
        "CoordinatorRuntime CoordinatorShardBuilder MultiThreadedEventProcessor SnapshottableCoordinator"
    ),
    "org.apache.kafka.coordinator.share": "ShareCoordinatorService ShareCoordinatorShard",
    "org.apache.kafka.coordinator.transaction": "TxnMarkerQueue",
    "org.apache.kafka.deferred": "DeferredEventQueue",
    "org.apache.kafka.image.loader": "MetadataBatchLoader MetadataLoader",
    "org.apache.kafka.image.publisher": "BrokerRegistrationTracker SnapshotEmitter SnapshotGenerator",
    "org.apache.kafka.metadata": "ConfigSynonym KRaftMetadataCache ListenerInfo PartitionRegistration",
    "org.apache.kafka.metadata.authorizer": "StandardAuthorizer StandardAuthorizerData",
    "org.apache.kafka.metadata.migration": "KRaftMigrationDriver",
    "org.apache.kafka.metadata.properties": "MetaPropertiesEnsemble",
    "org.apache.kafka.metadata.publisher": "AclPublisher FeaturesPublisher",
    "org.apache.kafka.metadata.util": "BatchFileReader SnapshotFileReader",
    "org.apache.kafka.metalog": "LocalLogManager",
    "org.apache.kafka.queue": "KafkaEventQueue",
    "org.apache.kafka.raft": (
        "CandidateState FileBasedStateStore FileQuorumStateStore FollowerState KafkaNetworkChannel KafkaRaftClient "
        "KafkaRaftClientDriver LeaderState QuorumState ReplicatedCounter ResignedState "
        "TimingWheelExpirationService UnattachedState VotedState"
    ),
    "org.apache.kafka.raft.internals": (
        "AddVoterHandler DefaultRequestSender KRaftControlRecordStateMachine KafkaRaftLog RecordsIterator "
        "RemoveVoterHandler UpdateVoterHandler VoterSetHistory"
    ),
    "org.apache.kafka.server": (
        "AssignmentsManager BrokerFeatures BrokerLifecycleManager ClientMetricsManager "
        "DefaultAutoTopicCreationManager DelayedActionQueue FetchContext FetchManager FetchSessionCacheShard "
        "ForwardingManagerImpl NodeToControllerChannelManagerImpl NodeToControllerRequestThread"
    ),
    "org.apache.kafka.server.config": "ConfigSynonym",
    "org.apache.kafka.server.controller": "ControllerRegistrationManager",
    "org.apache.kafka.server.fault": ("LoggingFaultHandler ProcessExitingFaultHandler ProcessTerminatingFaultHandler"),
    "org.apache.kafka.server.log.remote.metadata.storage": (
        "ConsumerManager ConsumerTask FileBasedRemoteLogMetadataCache ProducerManager RemoteLogMetadataCache "
        "RemoteLogMetadataSnapshotFile RemoteLogMetadataTopicPartitioner RemotePartitionMetadataStore "
        "TopicBasedRemoteLogMetadataManager TopicBasedRemoteLogMetadataManagerConfig"
    ),
    "org.apache.kafka.server.log.remote.quota": "RLMQuotaManager",
    "org.apache.kafka.server.log.remote.storage": (
        "LocalTieredStorage RemoteLogManager RemoteLogManagerConfig RemoteLogOffsetReader RemoteLogReader "
        "RemoteTopicPartitionDirectory"
    ),
    "org.apache.kafka.server.logger": "Log4jControllerRegistration LoggingController RuntimeLoggerManager",
    "org.apache.kafka.server.metrics": "LinuxIoMetricsCollector",
    "org.apache.kafka.server.network": "EndpointReadyFutures",
    "org.apache.kafka.server.partition": "DefaultAlterPartitionManager",
    "org.apache.kafka.server.purgatory": (
        "DelayedDeleteRecords DelayedFuture DelayedOperationPurgatory DelayedProduce DelayedRemoteFetch "
        "DelayedRemoteListOffsets"
    ),
    "org.apache.kafka.server.quota": (
        "ClientQuotaManager ControllerMutationQuotaManager ReplicationQuotaManager ThrottledChannel"
    ),
    "org.apache.kafka.server.replica": "Replica",
    "org.apache.kafka.server.share.context": "FinalContext ShareSessionContext",
    "org.apache.kafka.server.share.dlq": "ShareGroupDLQStateManager",
    "org.apache.kafka.server.share.persister": "PersisterStateManager",
    "org.apache.kafka.server.transaction": "AddPartitionsToTxnManager",
    "org.apache.kafka.server.util": (
        "FileLock FutureUtils InterBrokerSendThread KafkaScheduler NetworkPartitionMetadataClient "
        "ShutdownableThread TopicFilter"
    ),
    "org.apache.kafka.server.util.timer": "SystemTimerReaper",
    "org.apache.kafka.snapshot": "Snapshots",
    "org.apache.kafka.storage.internals.checkpoint": "CheckpointFileWithFailureHandler CleanShutdownFileHandler",
    "org.apache.kafka.storage.internals.epoch": "LeaderEpochFileCache",
    "org.apache.kafka.storage.internals.log": (
        "AbstractIndex Cleaner LocalLog LogCleaner LogCleanerManager LogDirFailureChannel LogLoader LogManager "
        "LogSegment LogTruncation OffsetIndex ProducerAppendInfo ProducerStateManager RemoteIndexCache "
        "RemoteStorageThreadPool SnapshotFile TimeIndex UnifiedLog"
    ),
    "org.apache.kafka.storage.internals.utils": "Throttler",
    "org.apache.kafka.storage.log.metrics": "BrokerTopicStats",
    "org.apache.kafka.timeline": "SnapshotRegistry",
    "org.apache.zookeeper": "ClientCnxn ClientCnxnSocket Login ZooKeeper",
    "org.apache.zookeeper.client": "ZooKeeperSaslClient",
    "org.apache.zookeeper.common": "X509Util",
    "org.apache.zookeeper.server": "NIOServerCnxn NIOServerCnxnFactory PrepRequestProcessor ZooKeeperServer",
    "org.apache.zookeeper.server.quorum": "QuorumPeer",
}
