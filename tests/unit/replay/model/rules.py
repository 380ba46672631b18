"""Rules that the model of a broker asks beside those of the replay."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from highwater.pipelines.kafka import versions


@dataclass(frozen=True)
class Rules(versions.Rules):
    """The rules of one Kafka version, as far as the model goes."""

    @cached_property
    def expansion_needs_broker_epoch(self) -> bool:
        """A replica is not proposed for the ISR if its fetch came from an earlier life of its broker.

        Since 3.5 (KIP-903, KAFKA-14617; ``Partition.isBrokerEpochIsrEligible``).
        """
        return self.version >= (3, 5, 0)

    @cached_property
    def rejects_stale_broker_epochs(self) -> bool:
        """A fetch from an earlier life of a follower's broker is answered with NOT_LEADER_OR_FOLLOWER.

        Since 3.7 (KAFKA-15221; ``Replica.updateFetchStateOrThrow``).
        """
        return self.version >= (3, 7, 0)

    @cached_property
    def undoes_refused_isr_changes(self) -> bool:
        """OPERATION_NOT_ATTEMPTED and INELIGIBLE_REPLICA bring the leader back to its committed ISR.

        Since 3.1 (KAFKA-13254), INELIGIBLE_REPLICA since 3.3 (KIP-841); ``Partition.handleAlterPartitionError``.
        """
        return self.version >= (3, 1, 0)

    @cached_property
    def assigns_epoch_on_election(self) -> bool:
        """A new leader notes the start of its epoch at once; before, the first append did.

        Since 2.0.1 and 2.1 (KAFKA-7415; ``Partition.makeLeader``).
        """
        return self.version >= (2, 0, 1)

    @cached_property
    def every_fetch_moves_high_watermark(self) -> bool:
        """Every follower fetch recomputes the high watermark, not only one that moved the follower's position.

        Until 2.4 (KAFKA-8841; ``Partition.updateFollowerFetchState``).
        """
        return self.version < (2, 4, 0)

    @cached_property
    def unassigned_followers_are_errors(self) -> bool:
        """A fetch from a broker that is no replica is answered with an error; before, with nothing in it.

        Since 3.3 (KAFKA-13837; ``Partition.followerReplicaOrThrow``).
        """
        return self.version >= (3, 3, 0)

    @cached_property
    def loses_contended_checks(self) -> bool:
        """Known bug: a check that finds another thread checking the same operation gives up, and is lost.

        0.11.0 to 1.0.x (KAFKA-6653; ``DelayedOperation.maybeTryComplete``). Before, and since 2.7 (KAFKA-8334), it
        waits for the lock; for what lies between see `repeats_contended_checks`.
        """
        return (0, 11, 0) <= self.version < (1, 1, 0)

    @cached_property
    def has_action_queue(self) -> bool:
        """What an append wakes is checked when its request has been handled, not within the append.

        Since 2.7 (KAFKA-8334; ``ActionQueue``, ``KafkaApis.handle``).
        """
        return self.version >= (2, 7, 0)

    @cached_property
    def append_checks_fetches_first(self) -> bool:
        """An append checks the fetches before it moves the high watermark; afterwards all, if that moved.

        Until 2.1.1 (KAFKA-7697; ``Partition.appendRecordsToLeader``).
        """
        return self.version < (2, 1, 1)

    @cached_property
    def stop_replica_checks_operations(self) -> bool:
        """A replica that is stopped answers what waited for it.

        Since 2.4 (KAFKA-9198; ``ReplicaManager.stopReplica``).
        """
        return self.version >= (2, 4, 0)

    @cached_property
    def names_known_topics(self) -> bool:
        """A produce whose partition this broker no longer has ends with NOT_LEADER if the cluster still has it.

        Since 2.4 (KAFKA-9198; ``ReplicaManager.getPartitionOrError``); before, with UNKNOWN_TOPIC_OR_PARTITION.
        """
        return self.version >= (2, 4, 0)

    @cached_property
    def reads_committed(self) -> bool:
        """Consumers can ask for committed transactions only: they see what lies before the last stable offset.

        Since 0.11 (KIP-98; ``FetchTxnCommitted``).
        """
        return self.version >= (0, 11, 0)

    @cached_property
    def tells_diverging_epochs(self) -> bool:
        """A fetch that names the last epoch fetched is told at once if it diverges from the leader's log.

        Since 2.7 (KIP-595; ``Partition.readRecords``, ``DelayedFetch.tryComplete`` case H).
        """
        return self.version >= (2, 7, 0)

    @cached_property
    def followers_serve_consumers(self) -> bool:
        """A consumer that tells its rack can fetch from a follower.

        Since 2.4 (KIP-392, KAFKA-8443).
        """
        return self.version >= (2, 4, 0)

    @cached_property
    def preferred_replica_answers_at_once(self) -> bool:
        """A consumer that is referred to another replica is told so at once.

        Since 3.2 (KAFKA-13767; ``ReplicaManager.fetchMessages``).
        """
        return self.version >= (3, 2, 0)

    @cached_property
    def repeats_contended_checks(self) -> bool:
        """A check that finds another thread checking the same operation leaves word, and the other checks once more.

        1.1 to 2.6 (KAFKA-6653, KAFKA-8334; ``DelayedOperation.maybeTryComplete``).
        """
        return (1, 1, 0) <= self.version < (2, 7, 0)

    @cached_property
    def every_fetch_checks_produces(self) -> bool:
        """Every follower fetch checks the produces of its partitions, whether the high watermark moved or not.

        Until 1.0 (KAFKA-5758; ``ReplicaManager.updateFollowerLogReadResults``).
        """
        return self.version < (1, 0, 0)

    @cached_property
    def logs_expired_produces(self) -> bool:
        """An expired produce logs the partitions that were still pending, at DEBUG.

        Since 2.0 (``DelayedProduce.onExpiration``).
        """
        return self.version >= (2, 0, 0)

    @cached_property
    def logs_progress(self) -> bool:
        """At TRACE, every check that finds a leader logs who has the required offset and who is awaited.

        Since 2.0 (``Partition.checkEnoughReplicasReachOffset``); before, a line per replica that has it.
        """
        return self.version >= (2, 0, 0)


def rules_for(version: str | None) -> Rules:
    """The rules of a version as logged."""
    return Rules(versions.rules_for(version).version)
