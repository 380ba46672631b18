"""Alphabets: which values the grammars and readers can write into a column. Pure.

A value that is not here was not written by this version, or was written into the wrong column.
"""

from __future__ import annotations

_LOG_KINDS = ("server", "state-change", "controller", "kafka-request", "log-cleaner", "other")
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_PARTITION_STATES = ("NonExistentPartition", "NewPartition", "OnlinePartition", "OfflinePartition")
_REPLICA_STATES = (
    "NonExistentReplica",
    "NewReplica",
    "OnlineReplica",
    "OfflineReplica",
    "ReplicaDeletionStarted",
    "ReplicaDeletionSuccessful",
    "ReplicaDeletionIneligible",
)
_FOLDER_STATES = ("current", "delete", "future", "stray")
_CONTROLLER_EVENTS = (
    "controller_elected controller_resigned brokers_changed broker_failed log_dir_failed broker_registered "
    "broker_fenced broker_unfenced controlled_shutdown partition_created topic_created topic_deleted election "
    "unclean_election config_changed reassignment other"
)
_LIFECYCLE_EVENTS = (
    "starting version started shutting_down controlled_shutdown shut_down registered fenced unfenced "
    "zookeeper_connected zookeeper_expired log_dir_failure state_change fatal signal log_loading "
    "high_watermarks_loaded stopping_replicas stepped_down fetcher_stopping "
    "clock_set_back"
)

#: Values by table and column.
KNOWN: dict[str, dict[str, tuple[str | int, ...]]] = {
    "bronze.log_files": {"kind": _LOG_KINDS, "mode": ("zookeeper", "kraft")},
    "bronze.log_lines": {"kind": _LOG_KINDS, "level": _LEVELS},
    "bronze.data_files": {"replica_state": _FOLDER_STATES},
    "silver.leader_and_isr": {
        "role": ("leader_start", "follower_start", "leader_update", "request", "controller", "metadata", "stopped")
    },
    "silver.isr_changes": {
        "change": ("shrink", "expand", "pending_shrink", "pending_expand", "committed", "refused"),
    },
    "silver.replica_fetches": {"source": ("request", "recorded")},
    "silver.high_watermarks": {
        "source": ("updated", "skipped", "set", "follower", "loaded", "non_monotonic", "under_min_isr"),
    },
    "silver.appends": {"source": ("log", "replica_manager", "follower")},
    "silver.produce_requests": {"api": ("PRODUCE",)},
    "silver.fetch_requests": {"api": ("FETCH",)},
    "silver.delayed_operation_checks": {
        "operation": ("produce", "fetch"),
        "step": ("initial", "check", "progress", "expired", "unblocked", "satisfied"),
    },
    "silver.truncations": {
        "source": ("log", "fetcher", "no_effect", "below_high_watermark", "out_of_range", "epoch_reply"),
    },
    "silver.future_logs": {"event": ("created", "loaded", "copying", "promoted")},
    "silver.leader_epochs": {"action": ("assigned", "truncated")},
    "silver.fetcher_events": {"action": ("added", "removed", "failed", "delayed", "error", "fenced")},
    "silver.controller_events": {"event": tuple(_CONTROLLER_EVENTS.split())},
    "silver.partition_states": {"from_state": _PARTITION_STATES, "to_state": _PARTITION_STATES},
    "silver.replica_states": {"from_state": _REPLICA_STATES, "to_state": _REPLICA_STATES},
    "silver.broker_lifecycle": {
        "event": tuple(_LIFECYCLE_EVENTS.split()),
        "mode": ("zookeeper", "kraft"),
    },
    "silver.broker_configs": {
        "scope": ("broker", "topic", "broker_dynamic", "log", "log_all", "topic_record", "broker_record"),
    },
    "silver.line_counts": {"kind": _LOG_KINDS, "outcome": ("typed", "known", "unparsed")},
    "silver.checkpoints": {"replica_state": _FOLDER_STATES},
    "silver.log_batches": {"replica_state": _FOLDER_STATES},
    "silver.metadata_records": {"source": ("log", "snapshot", "bootstrap")},
}
