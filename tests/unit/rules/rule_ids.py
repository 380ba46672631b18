"""The public names of the rules."""

RULE_IDS = frozenset(
    {
        "committed-data-lost",
        "tier-segment-lost",
        "hw-regression",
        "hw-above-isr",
        "ack-before-commit",
        "late-completion",
        "two-leaders-one-epoch",
        "leader-outside-isr",
        "unclean-election",
        "isr-outside-replicas",
        "isr-join-behind-hw",
        "isr-shrink-late",
        "truncation-below-hw",
        "follower-hw-above-leader",
        "read-above-isolation",
        "stale-epoch-accepted",
        "epoch-history-diverged",
        "ack-under-min-isr",
        "failover-not-completed",
        "checkpoint-ahead-of-log",
        "replica-bytes-diverged",
        "illegal-state-transition",
        "acked-as-duplicate-of-another-batch",
        "error-yet-committed",
        "acked-by-leader-only-lost",
    }
)
