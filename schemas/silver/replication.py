"""What replicas did and what leaders saw of them."""

from __future__ import annotations

from highwater.schemas.silver.source import silver_table

LEADER_AND_ISR = silver_table("leader_and_isr")
ISR_CHANGES = silver_table("isr_changes")
TOPICS = silver_table("topics")
REPLICA_FETCHES = silver_table("replica_fetches")
HIGH_WATERMARKS = silver_table("high_watermarks")
APPENDS = silver_table("appends")
DELAYED_OPERATION_CHECKS = silver_table("delayed_operation_checks")
TRUNCATIONS = silver_table("truncations")
LEADER_EPOCHS = silver_table("leader_epochs")
FETCHER_EVENTS = silver_table("fetcher_events")
TIER_EVENTS = silver_table("tier_events")
SEGMENT_ROLLS = silver_table("segment_rolls")
FUTURE_LOGS = silver_table("future_logs")
