"""The ZooKeeper controller's states of a replica (`kafka.controller.ReplicaStateMachine`, 0.10.2 to 3.9).

A controller that has just been elected takes every replica on a dead broker for ReplicaDeletionIneligible, topic
deletion or not (`initializeReplicaState`): from there to OfflineReplica is an ordinary start.
"""

from __future__ import annotations

from typing import Final

from highwater.pipelines.controllers.rules import controller_rules
from highwater.pipelines.controllers.state_replay import Table

NON_EXISTENT: Final = "NonExistentReplica"
NEW: Final = "NewReplica"
ONLINE: Final = "OnlineReplica"
OFFLINE: Final = "OfflineReplica"
DELETION_STARTED: Final = "ReplicaDeletionStarted"
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
DELETION_INELIGIBLE: Final = "ReplicaDeletionIneligible"

MACHINE: Final = "replica"
_TO_2_2: Final[Table] = {
    NEW: frozenset((NON_EXISTENT,)),
    ONLINE: frozenset((NEW, ONLINE, OFFLINE, DELETION_INELIGIBLE)),
    OFFLINE: frozenset((NEW, ONLINE, OFFLINE, DELETION_INELIGIBLE)),
    DELETION_STARTED: frozenset((OFFLINE,)),
    DELETION_SUCCESSFUL: frozenset((DELETION_STARTED,)),
    DELETION_INELIGIBLE: frozenset((DELETION_STARTED,)),
    NON_EXISTENT: frozenset((DELETION_SUCCESSFUL,)),
}
_SINCE_2_3: Final[Table] = {**_TO_2_2, DELETION_INELIGIBLE: frozenset((OFFLINE, DELETION_STARTED))}


def replica_table(version: str | None) -> Table:
    """Return `ReplicaState.validPreviousStates` of a version; the wider table where the version is not known."""
    return _SINCE_2_3 if controller_rules(version).offline_replica_may_be_ineligible else _TO_2_2
