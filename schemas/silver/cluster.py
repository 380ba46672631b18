"""Controllers and brokers."""

from __future__ import annotations

from highwater.schemas.silver.source import silver_table

_PARTITION_STATES = "NonExistentPartition NewPartition OnlinePartition OfflinePartition"

CONTROLLER_EVENTS = silver_table("controller_events")
PARTITION_STATES = silver_table("partition_states")
REPLICA_STATES = silver_table("replica_states")
BROKER_LIFECYCLE = silver_table("broker_lifecycle")
BROKER_CONFIGS = silver_table("broker_configs")
