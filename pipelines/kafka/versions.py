"""Kafka's replication rules by version: the release and the issue of each change.

A rule that differs between versions is an attribute of `Rules`, with its source. Other code asks for the rule and never
compares versions. A broker is assumed to use the inter-broker protocol of its version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeVar

from highwater.pipelines.kafka.releases import Version, Versioned, evaluate_rule, release_of

__all__ = ["ASSUMED", "Rules", "Version", "rule_of", "rules_for"]

#: Version whose rules predict if the logs do not show the release.
ASSUMED: Version = (3, 9, 0)

T = TypeVar("T")


def _since(*first: int) -> cached_property[bool]:
    """Return a rule of the versions from `first` on."""
    return cached_property(lambda rules: rules.version >= first)


def _before(*end: int) -> cached_property[bool]:
    """Return a rule of the versions before `end`."""
    return cached_property(lambda rules: rules.version < end)


def _between(first: Version, end: Version) -> cached_property[bool]:
    """Return a rule of the versions from `first` on and before `end`."""
    return cached_property(lambda rules: first <= rules.version < end)


@dataclass(frozen=True)
class Rules(Versioned):
    """Behaviour of one Kafka version."""

    # Leaders: ``kafka.cluster.Partition`` and ``kafka.cluster.Replica``.

    #: A caught-up replica outside the ISR holds the high watermark back, so that it can join (KAFKA-4453 line of
    #: changes; ``Partition.maybeIncrementLeaderHW``).
    waits_for_caught_up_replicas = _since(0, 10, 2)
    #: The start of an epoch sets the time of each replica's last fetch, also outside the ISR. So a replica that had the
    #: whole log, and fetches once more as it is stopped, counts as caught up then (``Replica.resetLastCaughtUpTime``;
    #: commit a5f7c82a867 resets only those in the ISR).
    epoch_starts_are_fetches = _before(3, 3, 0)
    #: A batch that an idempotent producer sends again is recognised, and not appended again (KIP-98;
    #: ``ProducerStateManager``).
    knows_retries = _since(0, 11, 0)
    #: A replica that the leader has proposed for the ISR counts before the controller commits it (KIP-497, KAFKA-8836;
    #: ``PendingExpandIsr.maximalIsr``). Before, the leader writes its ISR to ZooKeeper itself, and a change is
    #: committed at once.
    maximal_isr = _since(2, 7, 0)
    #: A fenced or shutting-down replica outside the ISR no longer holds the high watermark back (KAFKA-15021;
    #: ``Partition.isReplicaIsrEligible``).
    caught_up_must_be_eligible = _since(3, 6, 0)
    #: The high watermark does not move while the committed ISR is smaller than min.insync.replicas (KIP-966,
    #: KAFKA-15583; ``Partition.maybeIncrementLeaderHW``).
    high_watermark_needs_min_isr = _since(3, 7, 0)
    #: min.insync.replicas counts as no more than the number of replicas (KIP-966, KAFKA-15583;
    #: ``Partition.effectiveMinIsr``).
    caps_min_isr_at_replicas = _since(3, 7, 0)
    #: A replica joins the ISR only at or past the start offset of the leader's epoch (KAFKA-7128;
    #: ``Partition.isFollowerInSync``).
    epoch_start_gates_expansion = _since(2, 0, 1)
    #: A fenced or shutting-down replica is not proposed for the ISR (KIP-841, KAFKA-13916;
    #: ``Partition.canAddReplicaToIsr``).
    expansion_needs_eligibility = _since(3, 3, 0)
    #: A replica that has the whole log stays in the ISR however long ago it fetched (KAFKA-7152;
    #: ``Partition.isFollowerOutOfSync``).
    shrink_spares_replicas_at_the_end = _since(2, 1, 0)
    #: Known bug: a committed ISR change does not move the high watermark (KAFKA-13091). The replay predicts by the
    #: rule, not by the bug: an answer that the bug delayed is late.
    loses_wake_up_on_isr_commit = _between((2, 7, 0), (3, 1, 0))
    #: A leader logs at INFO that a change of its ISR was made (``Partition.updateIsr``). Before at TRACE, and at INFO
    #: only the change to come.
    logs_isr_commits = _since(2, 4, 0)
    #: A leader takes newer state within its epoch, and resets its followers' positions with a new epoch only
    #: (KAFKA-13790; ``Partition.makeLeader``, ``Replica.resetReplicaState``). Before, only a newer leader epoch was
    #: accepted, and every accepted state reset them (``ReplicaManager.becomeLeaderOrFollower``).
    partition_epoch_gates_state = _since(3, 3, 0)

    @cached_property
    def epochs_start_once(self) -> bool:
        """Return True if a leader logs once that an epoch starts, even if it receives state of that epoch again.

        Not in 3.0 to 3.2 in KRaft mode (KAFKA-13790; ``Partition.makeLeader``).
        """
        return self.version < (3, 0, 0) or self.partition_epoch_gates_state

    #: A follower logs at INFO the offset and the high watermark at which it starts (``Partition.makeFollower``).
    logs_follower_starts = _since(2, 6, 0)
    #: A fetch names the leader epoch that the follower knows: an older one is fenced, a newer one unknown (KIP-320,
    #: KAFKA-7395; ``Partition.checkCurrentLeaderEpoch``).
    fences_leader_epochs = _since(2, 1, 0)
    #: A fetch session keeps the leader epoch that its requests name, so all its fetches are fenced (KAFKA-9338, which
    #: no release of 2.4 has; ``CachedPartition.leaderEpoch``).
    sessions_keep_leader_epochs = _since(2, 5, 0)
    #: A follower whose fetch fails loses its position: its log end offset becomes unknown (KAFKA-8400;
    #: ``ReplicaManager.updateFollowerFetchState``).
    failed_reads_reset_followers = _before(2, 4, 0)

    @cached_property
    def counts_diverging_fetches(self) -> bool:
        """Return True for a known bug: the leader takes the offset of a diverging fetch as the follower's position.

        2.7.0, 2.7.1 and 2.8.0 (KAFKA-13141; ``Partition.updateFollowerFetchState``).
        """
        return (2, 7, 0) <= self.version < (2, 7, 2) or self.version == (2, 8, 0)

    @cached_property
    def lag_time_max_ms(self) -> int:
        """Return the default of replica.lag.time.max.ms: 30 s since 2.5 (KIP-537), 10 s before."""
        return 30_000 if self.version >= (2, 5, 0) else 10_000

    # Waiting requests: ``DelayedOperation``, ``DelayedProduce``, ``DelayedFetch`` and ``ReplicaManager``.

    #: The group coordinator appends on threads of its own, in batches, after the request was handled (KIP-848,
    #: KAFKA-16770; ``CoordinatorRuntime``). Before, only with the new protocol switched on.
    group_coordinator_has_threads = _since(4, 0, 0)

    @cached_property
    def append_linger_ms(self) -> int:
        """Return the default of group.coordinator.append.linger.ms. Negative: until no other operation is queued.

        10 up to 3.9 (KAFKA-16770), 5 in 4.0 and 4.1 (KIP-848), -1 since 4.2 (KAFKA-19826).
        """
        return 10 if self.version < (4, 0, 0) else 5 if self.version < (4, 2, 0) else -1

    #: The first produce of a transaction to a partition is appended once the coordinator has confirmed it (KIP-890,
    #: KAFKA-14561; ``ReplicaManager.appendRecords``, later ``handleProduceAppend``): the request was handled before,
    #: and a callback appends.
    verifies_transactions = _since(3, 6, 0)
    #: The request log prints responses, and with them errors, base offsets and high watermarks
    #: (``RequestChannel.Request.updateRequestMetrics``).
    logs_responses = _since(1, 0, 0)
    #: The request log prints the transactional id of a produce (KAFKA-10525, the JSON form). The text form before
    #: leaves it out (``ProduceRequest.toString``).
    logs_transactional_ids = _since(2, 8, 0)

    @cached_property
    def throttles_in_sync_replicas(self) -> bool:
        """Return True if bytes of a throttled partition do not count for min.bytes, even if the follower is in sync.

        Until 2.0, and until 1.0.2 and 1.1.1 of their lines (KAFKA-6937; ``DelayedFetch.tryComplete``).
        """
        return self.version < (1, 0, 2) or self.version == (1, 1, 0)

    #: A follower's fetch is answered as soon as the high watermark is beyond the one last sent to it (KIP-392,
    #: KAFKA-8443; removed by KAFKA-9952; ``DelayedFetch.tryComplete``, then case H).
    answers_fetches_for_high_watermark = _between((2, 4, 0), (2, 6, 0))
    #: A fetch from beyond its visible end is answered, and an end without a position counts as no bytes (KAFKA-16452;
    #: ``DelayedFetch.tryComplete`` case F). Before, only an end on an older segment answered it, and an end without a
    #: position failed the check.
    fetches_beyond_the_end_complete = _since(3, 8, 0)
    #: A high watermark at the end of the log moves to the new segment when the log is rolled (KAFKA-9196;
    #: ``Log.updateLogEndOffset``). Before, it pointed into the old one until it next moved.
    roll_moves_high_watermark = _since(2, 4, 0)
    #: A follower whose high watermark rises answers the consumers that wait at it (KAFKA-14334;
    #: ``ReplicaFetcherThread.doWork``). Before, they waited until their timeout.
    follower_checks_fetches = _since(3, 3, 2)
    #: A fetch waits for the remote tier for remote.fetch.max.wait.ms (KIP-1018, KAFKA-15776;
    #: ``ReplicaManager.processRemoteFetch``). Before, for its own fetch.max.wait.ms.
    bounds_remote_reads = _since(3, 8, 0)

    # Truncation: ``AbstractFetcherThread``, ``ReplicaFetcherThread`` and ``LeaderEpochFileCache``.

    #: A new follower truncates its log to its own high watermark (KIP-101, KAFKA-1211;
    #: ``ReplicaManager.makeFollowers``).
    truncates_to_high_watermark = _before(0, 11, 0)
    #: A leader that is asked for the end of an epoch also returns the epoch of its answer (KIP-279, KAFKA-6361;
    #: ``LeaderEpochFileCache.endOffsetFor``). Without it, a follower whose epoch the leader never had receives the
    #: start of a later epoch, and keeps records that the leader does not have.
    epoch_replies_name_the_epoch = _since(2, 0, 0)
    #: An epoch older than the oldest known one ends where the oldest known one starts; before: unknown (KAFKA-7415;
    #: ``LeaderEpochFileCache.endOffsetFor``).
    answers_for_epochs_before_the_first = _since(2, 0, 1)
    #: A follower fetches at once; the leader's answer shows that its log diverges. With an inter-broker protocol of 2.7
    #: (KIP-595, KAFKA-10322; ``AbstractFetcherThread``).
    truncates_on_fetch = _since(2, 8, 0)
    #: Known bug: a follower takes the high watermark of an answer that asks it to truncate (KAFKA-14704;
    #: ``AbstractFetcherThread.processFetchRequest``).
    processes_diverging_responses = _between((2, 8, 0), (3, 4, 1))
    #: A follower that is ahead of its leader halts the broker unless unclean election is on (KAFKA-3410, KAFKA-7414;
    #: ``ReplicaFetcherThread.handleOffsetOutOfRange``).
    exits_rather_than_truncates = _before(2, 0, 1)

    @cached_property
    def fetcher_restart(self) -> str:
        """Return which metadata change makes a follower truncate and refetch (``Partition.makeFollower``).

        ``leader_changed`` until 2.0.0; ``epoch_missed``: also if more than one epoch passed, in 2.0.1 (KAFKA-7164);
        ``leader_or_epoch_changed`` from 2.1 (KIP-320, KAFKA-7395); ``epoch_grew`` since 3.3 (KAFKA-13790).
        """
        if self.version < (2, 0, 1):
            return "leader_changed"
        if self.version < (2, 1, 0):
            return "epoch_missed"
        return "leader_or_epoch_changed" if self.version < (3, 3, 0) else "epoch_grew"


_make_rules = lru_cache(maxsize=256)(Rules)


def rules_for(version: str | None) -> Rules:
    """Return the rules to predict with, for a logged version. An unknown release gets the rules of `ASSUMED`."""
    release = release_of(version)
    return _make_rules(release.likely if release is not None else ASSUMED)


def rule_of(version: str | None, rule: Callable[[Rules], T]) -> T | None:
    """Return a rule of a logged version, as a basis for findings.

    None for an unknown release, or if its possible patch releases differ in the rule.
    """
    return evaluate_rule(version, lambda number: rule(_make_rules(number)))
