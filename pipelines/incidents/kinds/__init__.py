"""Kinds of incidents, by what they are about: each with its meaning, its source, what detects it, words and advice.

A new kind is a function with `pipelines.incidents.kind.kind` above it (see `brokers.broker_died` for one that takes
rows of silver, `slow_replica` for one that takes sums, `controllers.migration_waits` for one that takes lines), named
here, with a test in `tests/unit/incidents`.
"""

from __future__ import annotations

from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds import (
    access,
    brokers,
    clients,
    clocks,
    controllers,
    failures,
    fetchers,
    findings,
    groups,
    isr,
    logged,
    partitions,
    quorum,
    reassignments,
    slow_replica,
    topics,
)

#: In the order in which they are documented.
KINDS: tuple[Kind, ...] = (
    findings.data_lost,
    findings.guarantee_broken,
    findings.unclean_election,
    partitions.partitions_without_leader,
    partitions.leader_not_fenced,
    partitions.partitions_under_min_isr,
    isr.isr_shrunk,
    isr.isr_flapping,
    reassignments.reassignment_unfinished,
    reassignments.reassignment_ended,
    isr.zombie_leader,
    fetchers.high_watermark_below_start,
    access.brokers_rejected,
    failures.broker_halted,
    brokers.broker_died,
    brokers.broker_stalled,
    brokers.broker_fenced,
    brokers.logs_end_early,
    brokers.clock_set_back,
    clocks.clock_skewed,
    brokers.broker_stopped,
    failures.broker_out_of_memory,
    failures.broker_out_of_files,
    failures.log_directory_failed,
    failures.indexes_rebuilt,
    controllers.controlled_shutdown_failed,
    brokers.session_expired,
    controllers.quorum_lost,
    controllers.controller_changed,
    controllers.controller_renounced,
    controllers.controller_slow,
    controllers.quorum_unreachable,
    quorum.quorum_without_leader,
    quorum.registration_refused,
    partitions.elections_failed,
    controllers.migration_waits,
    fetchers.fetcher_died,
    fetchers.leader_unreachable,
    fetchers.fetch_errors,
    fetchers.partitions_not_fetched,
    slow_replica.slow_replica,
    clients.produces_refused,
    clients.produces_timed_out,
    clients.producers_fenced,
    clients.transactions_timed_out,
    access.authentication_failed,
    access.authorization_denied,
    access.connections_refused,
    clients.clients_throttled,
    clients.share_locks_expired,
    groups.group_rebalances,
    groups.coordinator_slow,
    topics.topics_deleted,
    topics.topics_created_again,
    *logged.KINDS_OF_MESSAGES,
    logged.also_logged,
)
BY_NAME = {kind.name: kind for kind in KINDS}
