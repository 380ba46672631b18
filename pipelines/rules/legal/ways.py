"""Legal ways: what Kafka does of itself, or is told to do, that looks like a fault. Each with its source."""

from __future__ import annotations

from typing import Final, NamedTuple


class LegalWay(NamedTuple):
    """One way.

    Attributes:
        way_id: its short name.
        what: what Kafka does.
        source: class and method, KIP, JIRA or documentation.
    """

    way_id: str
    what: str
    source: str


COMPACTION: Final = LegalWay(
    "compaction",
    "The cleaner takes records out of a log and rewrites batches, on each replica by itself and at its own time; "
    "what is left keeps its offsets, and a tombstone's batch gets another header",
    "Kafka documentation, Log Compaction; Cleaner.cleanInto; KIP-534",
)
LOG_START: Final = LegalWay(
    "log start moves",
    "Retention and DeleteRecords remove the beginning of a log, on each replica by itself; the first leader epoch "
    "of its file moves with it",
    "UnifiedLog.deleteOldSegments, maybeIncrementLogStartOffset; KIP-107; LeaderEpochFileCache.truncateFromStart",
)
OUT_OF_RANGE: Final = LegalWay(
    "follower out of range",
    "A follower whose position its leader no longer has empties its log and begins at the leader's log start",
    "AbstractFetcherThread.fetchOffsetAndTruncate; Partition.truncateFullyAndStartAt",
)
REASSIGNMENT_ZK: Final = LegalWay(
    "reassignment, ZooKeeper",
    "The controller writes the new assignment, moves the leader if it has to, and only then takes the removed "
    "replicas out of the ISR: for one or two zkVersions the ISR names replicas that the assignment has not",
    "KafkaController.onPartitionReassignment; KIP-455",
)
REASSIGNMENT_KRAFT: Final = LegalWay(
    "reassignment, KRaft",
    "One record may complete a reassignment: replicas, ISR and leader change at once, and a replica that was just "
    "added may lead",
    "PartitionChangeBuilder, PartitionReassignmentReplicas; KIP-455",
)
PREFERRED: Final = LegalWay(
    "preferred election",
    "A tool, or the balancer every few minutes, elects the first replica while all others are well; the former "
    "leader cuts off what nobody had fetched",
    "PreferredReplicaPartitionLeaderElectionStrategy; ReplicationControlManager.electLeader; KIP-460",
)
UNCLEAN: Final = LegalWay(
    "unclean election",
    "By configuration, by a tool (ELECT_LEADERS) or as the last known leader a replica leads that was not in sync: "
    "the others cut off what it has not, committed or not",
    "unclean.leader.election.enable; KIP-460; KIP-704 (leader recovery state); KIP-966 (last known leader)",
)
CREATED_ANEW: Final = LegalWay(
    "topic created anew",
    "A topic is deleted and created again: epochs, zkVersions and offsets begin again at 0",
    "KIP-516 (topic ids); TopicDeletionManager; ReplicationControlManager.createTopic",
)
LOG_DIRS: Final = LegalWay(
    "log directories",
    "A log directory fails, is emptied, or gives a partition to another one: its replica is offline or begins "
    "anew, and the files of the other directory may be left",
    "KIP-112; KIP-113; KIP-858; ReplicaManager.handleLogDirFailure, alterReplicaLogDirs",
)
TIERED: Final = LegalWay(
    "tiered storage",
    "Segments move to remote storage: the local log begins later than the partition's, and a new follower begins "
    "where the remote part ends",
    "KIP-405; RemoteLogManager; TierStateMachine.start",
)
ELR: Final = LegalWay(
    "eligible leader replicas",
    "The ISR may be empty and a leader come from the eligible leader replicas; below min.insync.replicas the high "
    "watermark stands still, for acks=1 too, and what is above it may go",
    "KIP-966; PartitionChangeBuilder; Partition.maybeIncrementLeaderHW",
)
MIXED_RELEASES: Final = LegalWay(
    "several releases",
    "During an upgrade each broker keeps the rules of its own release, and speaks the protocol that "
    "inter.broker.protocol.version or metadata.version allows",
    "Kafka documentation, Upgrading; ApiKeys; MetadataVersion",
)
RESENT: Final = LegalWay(
    "controllers resend",
    "A controller sends, and a broker logs, one state several times: after a failover, a reconnection, a restart",
    "ControllerBrokerRequestBatch; ReplicaManager.becomeLeaderOrFollower; ReplicaManager.applyDelta",
)
ZOMBIES: Final = LegalWay(
    "zombies",
    "A broker that was paused or cut off goes on as the leader of its old epoch until it learns of the new one: it "
    "answers acks=1 and tries to shrink the ISR, which is refused",
    "KIP-320; Partition.checkCurrentLeaderEpoch; AlterPartition (KIP-497), zkVersion before",
)
FOLLOWER_FETCHING: Final = LegalWay(
    "follower fetching",
    "Consumers read from a follower, up to the high watermark that it knows",
    "KIP-392; Partition.fetchRecords; ReplicaSelector",
)
RETRIES: Final = LegalWay(
    "retries",
    "An idempotent producer's retry is answered with the offset of its first attempt; without idempotence it is "
    "appended again",
    "KIP-98; ProducerStateEntry.findDuplicateBatch",
)
UNCLEAN_SHUTDOWN: Final = LegalWay(
    "unclean shutdown",
    "A broker that died recovers its log: a torn tail is cut off, the high watermark is the checkpointed one, "
    "epochs are read from the segments again",
    "LogLoader.recoverLog; ReplicaManager.checkpointHighWatermarks; KIP-966 (unclean shutdown)",
)
LATE_LINES: Final = LegalWay(
    "late lines",
    "A line is written after what it tells, by a paused or busy broker much later; clocks of two brokers differ",
    "RequestChannel.updateRequestMetrics; log4j appenders",
)

WAYS: Final = (
    COMPACTION,
    LOG_START,
    OUT_OF_RANGE,
    REASSIGNMENT_ZK,
    REASSIGNMENT_KRAFT,
    PREFERRED,
    UNCLEAN,
    CREATED_ANEW,
    LOG_DIRS,
    TIERED,
    ELR,
    MIXED_RELEASES,
    RESENT,
    ZOMBIES,
    FOLLOWER_FETCHING,
    RETRIES,
    UNCLEAN_SHUTDOWN,
    LATE_LINES,
)
