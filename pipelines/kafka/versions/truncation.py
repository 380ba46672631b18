"""What changed in how followers throw away what their leader does not have."""

from __future__ import annotations

from functools import cached_property

from highwater.pipelines.kafka.releases import Versioned


class TruncationRules(Versioned):
    """Rules of ``AbstractFetcherThread``, ``ReplicaFetcherThread`` and ``LeaderEpochFileCache``."""

    @cached_property
    def truncates_to_high_watermark(self) -> bool:
        """Return whether a new follower throws away everything past its own high watermark.

        Until 0.11 (KIP-101, KAFKA-1211; ``ReplicaManager.makeFollowers``).
        """
        return self.version < (0, 11, 0)

    @cached_property
    def epoch_replies_name_the_epoch(self) -> bool:
        """Return whether a leader that is asked for the end of an epoch also says which epoch it answers for.

        Since 2.0 (KIP-279, KAFKA-6361; ``LeaderEpochFileCache.endOffsetFor``). Without it, a follower whose epoch the
        leader never had is told a later epoch's start and keeps records that the leader does not have.
        """
        return self.version >= (2, 0, 0)

    @cached_property
    def answers_for_epochs_before_the_first(self) -> bool:
        """Return whether an epoch older than the oldest one known ends where the oldest known one starts; before:
        unknown.

        Since 2.0.1 and 2.1 (KAFKA-7415; ``LeaderEpochFileCache.endOffsetFor``).
        """
        return self.version >= (2, 0, 1)

    @cached_property
    def truncates_on_fetch(self) -> bool:
        """Return whether a follower fetches at once; the leader's answer shows that its log diverges.

        Since 2.8, with an inter-broker protocol of 2.7 (KIP-595, KAFKA-10322; ``AbstractFetcherThread``).
        """
        return self.version >= (2, 8, 0)

    @cached_property
    def processes_diverging_responses(self) -> bool:
        """Return whether the release has a known bug: a follower takes the high watermark of an answer that asks it to
        truncate.

        2.8.0 to 3.4.0 (KAFKA-14704; ``AbstractFetcherThread.processFetchRequest``).
        """
        return (2, 8, 0) <= self.version < (3, 4, 1)

    @cached_property
    def exits_rather_than_truncates(self) -> bool:
        """Return whether a follower that is ahead of its leader halts the broker unless unclean election is on.

        Until 2.0.1 and 2.1 (KAFKA-3410, KAFKA-7414; ``ReplicaFetcherThread.handleOffsetOutOfRange``).
        """
        return self.version < (2, 0, 1)

    @cached_property
    def fetcher_restart(self) -> str:
        """Return what makes a follower stop and truncate again when its leadership state changes
        (``Partition.makeFollower``).

        ``leader_changed`` until 2.0.0; ``epoch_missed``: or more than one epoch went by, in 2.0.1 (KAFKA-7164);
        ``leader_or_epoch_changed`` from 2.1 (KIP-320, KAFKA-7395); ``epoch_grew`` since 3.3 (KAFKA-13790).
        """
        if self.version < (2, 0, 1):
            return "leader_changed"
        if self.version < (2, 1, 0):
            return "epoch_missed"
        return "leader_or_epoch_changed" if self.version < (3, 3, 0) else "epoch_grew"
