"""What changed in Kafka's replication rules, from which version and by which issue: one place per rule.

A rule that differs between versions is a property here, with the version of the change and its source; the kernel
asks, it never compares versions itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

Version = tuple[int, int, int]

#: Rules are those of this version where the log does not say which one ran.
ASSUMED: Version = (3, 9, 0)


def parse_version(text: str | None) -> Version | None:
    """``"3.9.1"`` or ``"2.8.2-SNAPSHOT"`` as numbers; None where it is no version."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text or "")
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


@dataclass(frozen=True)
class Rules:
    """The rules of one Kafka version."""

    version: Version

    @cached_property
    def waits_for_caught_up_replicas(self) -> bool:
        """A caught-up replica outside the ISR holds the high watermark back, so that it can join.

        Since 0.10.2 (KAFKA-4453 line of changes; ``Partition.maybeIncrementLeaderHW``).
        """
        return self.version >= (0, 10, 2)

    @cached_property
    def maximal_isr(self) -> bool:
        """A replica that the leader has proposed for the ISR counts before the controller commits it.

        Since 2.7 (KIP-497, KAFKA-8836; ``PendingExpandIsr.maximalIsr``).
        """
        return self.version >= (2, 7, 0)

    @cached_property
    def caught_up_must_be_eligible(self) -> bool:
        """A fenced or shutting-down replica outside the ISR no longer holds the high watermark back.

        Since 3.6 (KAFKA-15021; ``Partition.isReplicaIsrEligible``).
        """
        return self.version >= (3, 6, 0)

    @cached_property
    def high_watermark_needs_min_isr(self) -> bool:
        """The high watermark stands still while the committed ISR is smaller than min.insync.replicas.

        Since 3.7 (KIP-966, KAFKA-15583; ``Partition.maybeIncrementLeaderHW``).
        """
        return self.version >= (3, 7, 0)

    @cached_property
    def epoch_start_gates_expansion(self) -> bool:
        """A replica joins the ISR only at or past the start offset of the leader's epoch.

        Since 2.0.1 (KAFKA-7128; ``Partition.isFollowerInSync``).
        """
        return self.version >= (2, 0, 1)

    @cached_property
    def counts_diverging_fetches(self) -> bool:
        """Known bug: the leader takes the offset of a diverging fetch for the follower's position.

        2.7.0, 2.7.1 and 2.8.0 (KAFKA-13141; ``Partition.updateFollowerFetchState``).
        """
        return (2, 7, 0) <= self.version < (2, 7, 2) or self.version == (2, 8, 0)

    @cached_property
    def lag_time_max_ms(self) -> int:
        """Default of replica.lag.time.max.ms: 30 s since 2.5 (KIP-537), 10 s before."""
        return 30_000 if self.version >= (2, 5, 0) else 10_000

    @cached_property
    def loses_wake_up_on_isr_commit(self) -> bool:
        """Known bug: a committed ISR change does not move the high watermark.

        2.7.0 to 3.0.x (KAFKA-13091). The replay predicts by the rule, not by the bug: what the bug held up is late.
        """
        return (2, 7, 0) <= self.version < (3, 1, 0)


@lru_cache(maxsize=64)
def rules_for(version: str | None) -> Rules:
    """The rules of a version as logged; of `ASSUMED` where it is unknown."""
    return Rules(parse_version(version) or ASSUMED)
