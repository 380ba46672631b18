"""All rules, in the order in which they are reported."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from pipelines.base.errors import ConfigError
from pipelines.kafka.controller_rows import FAILOVER_NOT_COMPLETED, ILLEGAL_STATE_TRANSITION
from pipelines.rules.guarantees import (
    ack_under_min_isr,
    acked_as_duplicate,
    acked_by_leader_only,
    acks,
    checkpoints,
    committed_data_lost,
    epoch_history,
    error_yet_committed,
    follower_hw_above_leader,
    hw_above_isr,
    hw_regression,
    isr_join_behind_hw,
    isr_shrink_late,
    membership,
    read_above_isolation,
    replica_bytes,
    stale_epoch_accepted,
    tier_segment_lost,
    truncation_below_hw,
    two_leaders,
    unclean_election,
)
from pipelines.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    committed_data_lost.RULE,
    tier_segment_lost.RULE,
    acked_by_leader_only.RULE,
    acks.EARLY_RULE,
    acked_as_duplicate.RULE,
    ack_under_min_isr.RULE,
    acks.LATE_RULE,
    hw_regression.RULE,
    hw_above_isr.RULE,
    follower_hw_above_leader.RULE,
    read_above_isolation.RULE,
    stale_epoch_accepted.RULE,
    two_leaders.RULE,
    membership.LEADER_RULE,
    membership.ISR_RULE,
    unclean_election.RULE,
    # State machines need rows that are no facts of a partition: `pipelines.controllers`, which replays them in a
    # pass of its own, finds their cases.
    Rule(FAILOVER_NOT_COMPLETED),
    Rule(ILLEGAL_STATE_TRANSITION),
    isr_join_behind_hw.RULE,
    isr_shrink_late.RULE,
    truncation_below_hw.RULE,
    epoch_history.RULE,
    checkpoints.RULE,
    replica_bytes.RULE,
    error_yet_committed.RULE,
)
BY_ID = {rule.rule_id: rule for rule in RULES}


def require_rules(rule_ids: Iterable[str], file: str | PathLike[str]) -> None:
    """Refuse a configuration that names a rule that there is not.

    Raises:
        ConfigError: it does.
    """
    for rule_id in rule_ids:
        if rule_id not in BY_ID:
            raise ConfigError(file, f"audit.severity.{rule_id}", "is no rule", BY_ID)
