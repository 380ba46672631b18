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
    states.TWO_LEADERS_RULE,
    states.LEADER_RULE,
    states.ISR_RULE,
    states.UNCLEAN_RULE,
    # State machines need rows that are no facts of a partition: `pipelines.controllers`, which replays them in a
    # pass of its own, finds their cases.
    Rule(FAILOVER_NOT_COMPLETED),
    Rule(ILLEGAL_STATE_TRANSITION),
    isr.JOIN_RULE,
    isr.SHRINK_RULE,
    truncation_below_hw.RULE,
    replica_files.EPOCH_RULE,
    replica_files.CHECKPOINT_RULE,
    replica_files.BYTES_RULE,
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
