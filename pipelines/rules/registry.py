"""All rules, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from highwater.pipelines.base.errors import ConfigError
from highwater.pipelines.kafka.controller_rows import FAILOVER_NOT_COMPLETED, ILLEGAL_STATE_TRANSITION
from highwater.pipelines.rules.guarantees import (
    ack_under_min_isr,
    acked_as_duplicate,
    acked_by_leader_only,
    acks,
    committed_data_lost,
    error_yet_committed,
    follower_hw_above_leader,
    hw_above_isr,
    hw_regression,
    isr,
    read_above_isolation,
    replica_files,
    stale_epoch_accepted,
    states,
    tier_segment_lost,
    truncation_below_hw,
)
from highwater.pipelines.rules.rule import Rule, of_history
from highwater.schemas import audit_facts as a

RULES: tuple[Rule, ...] = (
    Rule("committed-data-lost", committed_data_lost.CommittedDataLost, (a.OPERATION, a.BATCH, a.FETCH)),
    Rule("tier-segment-lost", tier_segment_lost.TierSegmentLost, (a.TIER_READ,), suspects_only=True),
    Rule("acked-by-leader-only-lost", acked_by_leader_only.AckedByLeaderOnly, (a.ANSWER,)),
    Rule("ack-before-commit", acks.AckBeforeCommit, (a.OPERATION,), compares_times=True),
    Rule("acked-as-duplicate-of-another-batch", acked_as_duplicate.AckedAsDuplicate, (a.ANSWER,), compares_times=True),
    Rule("ack-under-min-isr", ack_under_min_isr.AckUnderMinIsr, (a.ANSWER, a.HIGH_WATERMARK)),
    Rule("late-completion", acks.LateCompletion, (a.OPERATION,), compares_times=True),
    Rule("hw-regression", hw_regression.HighWatermarkRegression, (a.FETCH, a.HIGH_WATERMARK)),
    Rule("hw-above-isr", hw_above_isr.HighWatermarkAboveIsr, (a.FETCH, a.HIGH_WATERMARK)),
    Rule("follower-hw-above-leader", follower_hw_above_leader.FollowerHighWatermarkAboveLeader, (a.HIGH_WATERMARK,)),
    Rule("read-above-isolation", read_above_isolation.ReadAboveIsolation, (a.READ,), suspects_only=True),
    Rule("stale-epoch-accepted", stale_epoch_accepted.StaleEpochAccepted, (a.FETCH,)),
    Rule("two-leaders-one-epoch", of_history(states.two_leaders)),
    Rule("leader-outside-isr", of_history(states.leaders_in_isr)),
    Rule("isr-outside-replicas", of_history(states.isr_in_replicas)),
    Rule("unclean-election", of_history(states.unclean_elections)),
    # State machines need rows that are no facts of a partition: `pipelines.controllers`, which replays them in a
    # pass of its own, finds their cases.
    Rule(FAILOVER_NOT_COMPLETED),
    Rule(ILLEGAL_STATE_TRANSITION),
    Rule("isr-join-behind-hw", isr.IsrJoins, (a.FETCH,)),
    Rule("isr-shrink-late", of_history(isr.isr_shrinks), compares_times=True),
    Rule("truncation-below-hw", of_history(truncation_below_hw.truncations_below_hw)),
    Rule("epoch-history-diverged", of_history(replica_files.epoch_histories)),
    Rule("checkpoint-ahead-of-log", replica_files.Checkpoints, (a.BATCH,)),
    Rule("replica-bytes-diverged", replica_files.ReplicaBytes, (a.BATCH,)),
    Rule("error-yet-committed", error_yet_committed.ErrorYetCommitted, (a.ANSWER,), suspects_only=True),
)
BY_ID = {rule.rule_id: rule for rule in RULES}


def require_rules(rule_ids: Iterable[str], file: str | PathLike[str]) -> None:
    """Check rule ids from a configuration file.

    Raises:
        ConfigError: a rule id is unknown.
    """
    for rule_id in rule_ids:
        if rule_id not in BY_ID:
            raise ConfigError(file, f"audit.severity.{rule_id}", "is not a rule", BY_ID)
