"""What changed in what the leader of a partition does: its ISR, its high watermark, its followers' positions."""

from __future__ import annotations

from functools import cached_property

from highwater.pipelines.kafka.releases import Versioned


class LeaderRules(Versioned):
    """Rules of ``kafka.cluster.Partition`` and ``kafka.cluster.Replica``."""

    @cached_property
    def waits_for_caught_up_replicas(self) -> bool:
        """Return whether a caught-up replica outside the ISR holds the high watermark back, so that it can join.

        Since 0.10.2 (KAFKA-4453 line of changes; ``Partition.maybeIncrementLeaderHW``).
        """
        return self.version >= (0, 10, 2)

    @cached_property
    def epoch_starts_are_fetches(self) -> bool:
        """Return whether the start of an epoch sets the time of each replica's last fetch, also outside the ISR.

        So a replica that had all there was, and fetches once more as it is stopped, counts as caught up then. Up to 3.2
        (``Replica.resetLastCaughtUpTime``; commit a5f7c82a867 resets only those in the ISR).
        """
        return self.version < (3, 3, 0)

    @cached_property
    def knows_retries(self) -> bool:
        """Return whether a batch that an idempotent producer sends again is recognised, and not appended again.

        Since 0.11 (KIP-98; ``ProducerStateManager``).
        """
        return self.version >= (0, 11, 0)

    @cached_property
    def maximal_isr(self) -> bool:
        """Return whether a replica that the leader has proposed for the ISR counts before the controller commits it.

        Since 2.7 (KIP-497, KAFKA-8836; ``PendingExpandIsr.maximalIsr``). Before, the leader writes its ISR to
        ZooKeeper itself, and a change is committed at once.
        """
        return self.version >= (2, 7, 0)

    @cached_property
    def caught_up_must_be_eligible(self) -> bool:
        """Return whether a fenced or shutting-down replica outside the ISR no longer holds the high watermark back.

        Since 3.6 (KAFKA-15021; ``Partition.isReplicaIsrEligible``).
        """
        return self.version >= (3, 6, 0)

    @cached_property
    def high_watermark_needs_min_isr(self) -> bool:
        """Return whether the high watermark does not move while the committed ISR is smaller than min.insync.replicas.

        Since 3.7 (KIP-966, KAFKA-15583; ``Partition.maybeIncrementLeaderHW``).
        """
        return self.version >= (3, 7, 0)

    @cached_property
    def caps_min_isr_at_replicas(self) -> bool:
        """Return whether min.insync.replicas counts as no more than there are replicas.

        Since 3.7 (KIP-966, KAFKA-15583; ``Partition.effectiveMinIsr``).
        """
        return self.version >= (3, 7, 0)

    @cached_property
    def epoch_start_gates_expansion(self) -> bool:
        """Return whether a replica joins the ISR only at or past the start offset of the leader's epoch.

        Since 2.0.1 (KAFKA-7128; ``Partition.isFollowerInSync``).
        """
        return self.version >= (2, 0, 1)

    @cached_property
    def expansion_needs_eligibility(self) -> bool:
        """Return whether a fenced or shutting-down replica is not proposed for the ISR.

        Since 3.3 (KIP-841, KAFKA-13916; ``Partition.canAddReplicaToIsr``).
        """
        return self.version >= (3, 3, 0)

    @cached_property
    def shrink_spares_replicas_at_the_end(self) -> bool:
        """Return whether a replica that has the whole log stays in the ISR however long ago it fetched.

        Since 2.1 (KAFKA-7152; ``Partition.isFollowerOutOfSync``).
        """
        return self.version >= (2, 1, 0)

    @cached_property
    def loses_wake_up_on_isr_commit(self) -> bool:
        """Return whether the release has a known bug: a committed ISR change does not move the high watermark.

        2.7.0 to 3.0.x (KAFKA-13091). The replay predicts by the rule, not by the bug: what the bug held up is late.
        """
        return (2, 7, 0) <= self.version < (3, 1, 0)

    @cached_property
    def logs_isr_commits(self) -> bool:
        """Return whether a leader says at INFO that a change of its ISR was made.

        Since 2.4 (``Partition.updateIsr``); before at TRACE, and at INFO only what it is about to do.
        """
        return self.version >= (2, 4, 0)

    @cached_property
    def partition_epoch_gates_state(self) -> bool:
        """Return whether a leader takes newer state within its epoch, and resets its followers' positions with a new
        epoch only.

        Since 3.3 (KAFKA-13790; ``Partition.makeLeader``, ``Replica.resetReplicaState``). Before, every state that was
        let through reset them, and only a newer leader epoch was (``ReplicaManager.becomeLeaderOrFollower``).
        """
        return self.version >= (3, 3, 0)

    @cached_property
    def epochs_start_once(self) -> bool:
        """Return whether a leader says once that an epoch starts: state that is sent again within the epoch starts
        nothing.

        But for 3.0 to 3.2 in KRaft mode (KAFKA-13790; ``Partition.makeLeader``).
        """
        return self.version < (3, 0, 0) or self.partition_epoch_gates_state

    @cached_property
    def logs_follower_starts(self) -> bool:
        """Return whether a follower logs at INFO from which offset, and with which high watermark, it starts.

        Since 2.6 (``Partition.makeFollower``).
        """
        return self.version >= (2, 6, 0)

    @cached_property
    def fences_leader_epochs(self) -> bool:
        """Return whether a fetch names the leader epoch it believes in: an older one is fenced, a newer one unknown.

        Since 2.1 (KIP-320, KAFKA-7395; ``Partition.checkCurrentLeaderEpoch``).
        """
        return self.version >= (2, 1, 0)

    @cached_property
    def sessions_keep_leader_epochs(self) -> bool:
        """Return whether a fetch session keeps the leader epoch that its requests name, so all its fetches are fenced.

        Since 2.5 (KAFKA-9338, which no release of 2.4 has; ``CachedPartition.leaderEpoch``).
        """
        return self.version >= (2, 5, 0)

    @cached_property
    def failed_reads_reset_followers(self) -> bool:
        """Return whether a follower whose fetch fails loses its position: its log end offset becomes unknown.

        Until 2.4 (KAFKA-8400; ``ReplicaManager.updateFollowerFetchState``).
        """
        return self.version < (2, 4, 0)

    @cached_property
    def counts_diverging_fetches(self) -> bool:
        """Return whether the release has a known bug: the leader takes the offset of a diverging fetch for the
        follower's position.

        2.7.0, 2.7.1 and 2.8.0 (KAFKA-13141; ``Partition.updateFollowerFetchState``).
        """
        return (2, 7, 0) <= self.version < (2, 7, 2) or self.version == (2, 8, 0)

    @cached_property
    def lag_time_max_ms(self) -> int:
        """Return the default of replica.lag.time.max.ms: 30 s since 2.5 (KIP-537), 10 s before."""
        return 30_000 if self.version >= (2, 5, 0) else 10_000
