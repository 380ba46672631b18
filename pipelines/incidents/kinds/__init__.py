"""Kinds of incidents, a module each: what it is, its source, how it is detected, worded and advised.

A new kind is a module with a `Kind` called ``KIND`` (see `broker_died` for one that takes rows of silver, `slow_replica`
for one that takes sums), named here, with a test beside `tests/unit/incidents/test_kinds.py`.
"""

from __future__ import annotations

from pipelines.incidents.kind import Kind
from pipelines.incidents.kinds import (
    broker_died,
    broker_stalled,
    partitions_without_leader,
    slow_replica,
)

#: In the order in which they are documented.
KINDS: tuple[Kind, ...] = (
    broker_died.KIND,
    broker_stalled.KIND,
    partitions_without_leader.KIND,
    slow_replica.KIND,
)
BY_NAME = {kind.name: kind for kind in KINDS}
