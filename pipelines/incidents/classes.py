"""Classes of harm of incidents, the worst first: what they mean for records and clients. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

IncidentClass = Literal[
    "data_lost", "guarantee_broken", "unavailable", "writes_rejected", "redundancy_lost", "slow", "remark"
]
#: Classes of incidents, the worst first.
INCIDENT_CLASSES: Final[tuple[IncidentClass, ...]] = get_args(IncidentClass)
_KINDS: Final[Mapping[IncidentClass, tuple[str, ...]]] = {
    "data_lost": ("data_lost",),
    "guarantee_broken": ("guarantee_broken",),
    "unavailable": (
        *("partitions_without_leader", "leader_not_fenced", "quorum_lost", "metadata_lost"),
        *("coordinator_loading", "coordinator_slow", "quorum_without_leader"),
        *("remote_read_failed", "high_watermark_below_start"),
    ),
    "writes_rejected": ("partitions_under_min_isr", "produces_refused", "produces_timed_out", "producers_fenced"),
    "redundancy_lost": (
        *("unclean_election", "isr_shrunk", "isr_flapping", "zombie_leader", "broker_halted", "broker_died"),
        *("broker_fenced", "logs_end_early", "broker_out_of_memory", "broker_out_of_files", "log_directory_failed"),
        *("session_expired", "controlled_shutdown_failed", "fetcher_died", "leader_unreachable", "fetch_errors"),
        *("partitions_not_fetched", "start_failed", "reassignment_unfinished", "quorum_unreachable"),
        "registration_refused",
        *(
            "brokers_rejected",
            "heartbeats_not_sent",
            "isr_join_rejected",
            "controller_slow",
            "controller_renounced",
            "metadata_stale",
            "elections_failed",
            "remote_copy_failed",
            "share_state_failed",
        ),
        *("log_cleaner_died", "migration_waits", "migration"),
    ),
    "slow": (
        *("broker_stalled", "slow_replica", "clients_throttled", "group_rebalances", "share_locks_expired"),
        "transactions_timed_out",
    ),
    "remark": (
        *(
            "broker_stopped",
            "controller_changed",
            "clock_set_back",
            "clock_skewed",
            "indexes_rebuilt",
            "authentication_failed",
        ),
        *("authorization_denied", "topics_deleted", "config_rejected", "clients_disconnected", "also_logged"),
        *(
            "topics_created_again",
            "reassignment_ended",
            "voters_changed",
            "connections_refused",
            "topic_deletion_waits",
        ),
    ),
}
CLASS_BY_KIND: Final[Mapping[str, IncidentClass]] = {kind: name for name, kinds in _KINDS.items() for kind in kinds}
#: Class of an incident whose kind has none, or is a remark, by severity.
_BY_SEVERITY: Final[Mapping[str, IncidentClass]] = {"critical": "unavailable", "major": "redundancy_lost"}


def class_of(kind: str, severity: str, figures: Mapping[str, float]) -> IncidentClass:
    """Return the class of harm of an incident, such as ``remark`` for severity info. Figures are numbers by name.

    A time under min.insync.replicas without a rejected produce, and a freeze that cost a broker its session, count as
    lost redundancy.
    """
    if severity == "info":
        return "remark"
    if figures.get("produces_refused") == 0 or figures.get("sessions_lost"):
        return "redundancy_lost"
    by_kind = CLASS_BY_KIND.get(kind, "remark")
    return _BY_SEVERITY.get(severity, "remark") if by_kind == "remark" else by_kind
