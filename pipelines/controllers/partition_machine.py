"""The ZooKeeper controller's states of a partition (`kafka.controller.PartitionStateMachine`, 0.10.2 to 3.9).

The table is the same in all of these versions.
"""

from __future__ import annotations

from typing import Final

from highwater.pipelines.controllers.state_replay import Table
from highwater.pipelines.kafka.controller_rows import NEW, NON_EXISTENT, OFFLINE, ONLINE

MACHINE: Final = "partition"
#: `PartitionState.validPreviousStates`.
TABLE: Final[Table] = {
    NEW: frozenset((NON_EXISTENT,)),
    ONLINE: frozenset((NEW, ONLINE, OFFLINE)),
    OFFLINE: frozenset((NEW, ONLINE, OFFLINE)),
    NON_EXISTENT: frozenset((OFFLINE,)),
}
