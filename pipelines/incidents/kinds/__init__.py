"""Kinds of incidents, a module each: what it is, its source, how it is detected, worded and advised.

A new kind is a module with a `Kind` called ``KIND`` (see `broker_died` for one that takes rows of silver,
`slow_replica` for one that takes sums), named here, with a test in `tests/unit/incidents`.
"""

from __future__ import annotations

from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds import (
    broker_died,
    broker_halted,
    broker_stalled,
    broker_stopped,
    isr_shrunk,
    partitions_under_min_isr,
    partitions_without_leader,
    slow_replica,
)

#: In the order in which they are documented.
KINDS: tuple[Kind, ...] = (
    broker_halted.KIND,
    broker_died.KIND,
    broker_stalled.KIND,
    broker_stopped.KIND,
    partitions_without_leader.KIND,
    partitions_under_min_isr.KIND,
    isr_shrunk.KIND,
    slow_replica.KIND,
)
BY_NAME = {kind.name: kind for kind in KINDS}
