"""What changed in how waiting requests are answered: delayed produces, delayed fetches, and the checks of both."""

from __future__ import annotations

from functools import cached_property

from highwater.pipelines.kafka.releases import Versioned


class PurgatoryRules(Versioned):
    """Rules of ``DelayedOperation``, ``DelayedProduce``, ``DelayedFetch`` and of ``ReplicaManager`` around them."""

    @cached_property
    def group_coordinator_has_threads(self) -> bool:
        """Return whether the group coordinator appends on threads of its own, in batches, after the request was
        handled.

        Always since 4.0 (KIP-848, KAFKA-16770; ``CoordinatorRuntime``); before, where the new protocol is switched on.
        """
        return self.version >= (4, 0, 0)

    @cached_property
    def append_linger_ms(self) -> int:
        """Return the default of group.coordinator.append.linger.ms; below 0: until no other operation is queued.

        10 up to 3.9 (KAFKA-16770), 5 in 4.0 and 4.1 (KIP-848), -1 since 4.2 (KAFKA-19826).
        """
        return 10 if self.version < (4, 0, 0) else 5 if self.version < (4, 2, 0) else -1

    @cached_property
    def verifies_transactions(self) -> bool:
        """Return whether the first produce of a transaction to a partition is appended once the coordinator has
        confirmed it.

        Since 3.6 (KIP-890, KAFKA-14561; ``ReplicaManager.appendRecords``, later ``handleProduceAppend``): the request
        was handled before, and a callback appends.
        """
        return self.version >= (3, 6, 0)

    @cached_property
    def logs_responses(self) -> bool:
        """Return whether the request log prints responses, and with them errors, base offsets and high watermarks.

        Since 1.0 (``RequestChannel.Request.updateRequestMetrics``).
        """
        return self.version >= (1, 0, 0)

    @cached_property
    def logs_transactional_ids(self) -> bool:
        """Return whether the request log prints the transactional id of a produce.

        Since 2.8 (KAFKA-10525, the JSON form); before, the text form leaves it out (``ProduceRequest.toString``).
        """
        return self.version >= (2, 8, 0)

    @cached_property
    def throttles_in_sync_replicas(self) -> bool:
        """Return whether bytes for a throttled partition are counted apart, even if the follower is in sync.

        Until 2.0, and until 1.0.2 and 1.1.1 of their lines (KAFKA-6937; ``DelayedFetch.tryComplete``).
        """
        return self.version < (1, 0, 2) or self.version == (1, 1, 0)

    @cached_property
    def answers_fetches_for_high_watermark(self) -> bool:
        """Return whether a follower's fetch is answered as soon as the high watermark is beyond the one last sent to
        it.

        2.4 and 2.5 (KIP-392, KAFKA-8443; removed by KAFKA-9952; ``DelayedFetch.tryComplete``, then case H).
        """
        return (2, 4, 0) <= self.version < (2, 6, 0)

    @cached_property
    def fetches_beyond_the_end_complete(self) -> bool:
        """Return whether a fetch from beyond what it may see is answered, and an end without a position counts as no
        bytes.

        Since 3.8 (KAFKA-16452; ``DelayedFetch.tryComplete`` case F). Before, only an end on an older segment answered
        it, and an end without a position failed the check.
        """
        return self.version >= (3, 8, 0)

    @cached_property
    def roll_moves_high_watermark(self) -> bool:
        """Return whether a high watermark at the end of the log moves to the new segment when the log is rolled.

        Since 2.4 (KAFKA-9196; ``Log.updateLogEndOffset``). Before, it pointed into the old one until it next moved.
        """
        return self.version >= (2, 4, 0)

    @cached_property
    def follower_checks_fetches(self) -> bool:
        """Return whether a follower whose high watermark rises answers the consumers that wait at it.

        Since 3.3.2 and 3.4 (KAFKA-14334; ``ReplicaFetcherThread.doWork``); before, they waited their time out.
        """
        return self.version >= (3, 3, 2)

    @cached_property
    def bounds_remote_reads(self) -> bool:
        """Return whether a fetch waits for the remote tier for remote.fetch.max.wait.ms, before for its own
        fetch.max.wait.ms.

        Since 3.8 (KIP-1018, KAFKA-15776; ``ReplicaManager.processRemoteFetch``).
        """
        return self.version >= (3, 8, 0)
