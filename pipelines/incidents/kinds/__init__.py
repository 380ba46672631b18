"""Kinds of incidents, a module each: what it is, its source, how it is detected, worded and advised.

A new kind is a module with a `Kind` called ``KIND`` (see `broker_died` for one that takes rows of silver,
`slow_replica` for one that takes sums, `migration_waits` for one that takes lines), named here, with a test in
`tests/unit/incidents`.
"""

from __future__ import annotations

from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds import (
    also_logged,
    broker_died,
    broker_halted,
    broker_out_of_files,
    broker_out_of_memory,
    broker_stalled,
    broker_stopped,
    controlled_shutdown_failed,
    controller_changed,
    controller_renounced,
    data_lost,
    fetcher_died,
    guarantee_broken,
    high_watermark_below_start,
    isr_shrunk,
    leader_unreachable,
    log_directory_failed,
    migration_waits,
    partitions_under_min_isr,
    partitions_without_leader,
    produces_refused,
    produces_timed_out,
    session_expired,
    slow_replica,
    unclean_election,
)

#: In the order in which they are documented.
KINDS: tuple[Kind, ...] = (
    data_lost.KIND,
    guarantee_broken.KIND,
    unclean_election.KIND,
    partitions_without_leader.KIND,
    partitions_under_min_isr.KIND,
    isr_shrunk.KIND,
    high_watermark_below_start.KIND,
    broker_halted.KIND,
    broker_died.KIND,
    broker_stalled.KIND,
    broker_stopped.KIND,
    broker_out_of_memory.KIND,
    broker_out_of_files.KIND,
    log_directory_failed.KIND,
    controlled_shutdown_failed.KIND,
    session_expired.KIND,
    controller_changed.KIND,
    controller_renounced.KIND,
    migration_waits.KIND,
    fetcher_died.KIND,
    leader_unreachable.KIND,
    slow_replica.KIND,
    produces_refused.KIND,
    produces_timed_out.KIND,
    also_logged.KIND,
)
BY_NAME = {kind.name: kind for kind in KINDS}
