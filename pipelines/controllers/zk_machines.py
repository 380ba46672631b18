"""The ZooKeeper controller's state machines (`PartitionStateMachine`, `ReplicaStateMachine`, 0.10.2 to 3.9).

Both check a transition against the valid previous states of its target before they log it, up to 1.0 in
handleStateChange, since 1.1 in doHandleStateChanges. A refused transition is logged as failed. So a pair that is not in
the table and was logged as done is illegal by itself. If the state before a line differs from the state after the line
before it, lines are missing; this is not illegal. A new controller initializes all states from ZooKeeper without
logging it, so its first line of a partition has nothing to be compared with. It sets every replica on a dead broker to
ReplicaDeletionIneligible, with or without a topic deletion (`initializeReplicaState`). A transition from that state to
OfflineReplica is an ordinary start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from highwater.pipelines.controllers.rules import make_controller_rules
from highwater.pipelines.controllers.transitions import ReplayedStates, Transition, make_illegal_case, make_transition
from highwater.pipelines.kafka import controller_rows as k
from highwater.pipelines.kafka.controller_rows import StateRow, sort_rows
from highwater.pipelines.rules.rule import Case

#: Valid previous states by target state.
Table = Mapping[str, frozenset[str]]

PARTITION, REPLICA = "partition", "replica"
#: `PartitionState.validPreviousStates`, the same in every version from 0.10.2 to 3.9.
PARTITION_TABLE: Final[Table] = {
    k.NEW: frozenset((k.NON_EXISTENT,)),
    k.ONLINE: frozenset((k.NEW, k.ONLINE, k.OFFLINE)),
    k.OFFLINE: frozenset((k.NEW, k.ONLINE, k.OFFLINE)),
    k.NON_EXISTENT: frozenset((k.OFFLINE,)),
}

# States of a replica.
NON_EXISTENT: Final = "NonExistentReplica"
NEW: Final = "NewReplica"
ONLINE: Final = "OnlineReplica"
OFFLINE: Final = "OfflineReplica"
DELETION_STARTED: Final = "ReplicaDeletionStarted"
DELETION_SUCCESSFUL: Final = "ReplicaDeletionSuccessful"
DELETION_INELIGIBLE: Final = "ReplicaDeletionIneligible"

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


def build_replica_table(version: str | None) -> Table:
    """Return `ReplicaState.validPreviousStates` of a version: by state, the legal states before it.

    An unknown version gets the wider table.
    """
    return _SINCE_2_3 if make_controller_rules(version).offline_replica_may_be_ineligible else _TO_2_2


def is_legal(table: Table, from_state: str, to_state: str) -> bool | None:
    """Return True if a state may follow another. None if the table does not know a state."""
    if to_state not in table or from_state not in table:
        return None
    return from_state in table[to_state]


def _make_case(machine: str, row: StateRow) -> Case:
    what = f"{row.topic}-{row.partition}"
    if row.replica_id is not None:
        what = f"replica {row.replica_id} of {what}"
    moved = f"controller {row.broker_id} moved {what} from {row.from_state} to {row.to_state}"
    return make_illegal_case(f"{moved}, which its {machine} state machine never allows", row)


def replay_states(machine: str, table: Table, rows: Iterable[StateRow]) -> ReplayedStates:
    """Return the transitions of one partition and the illegal ones.

    Args:
        machine: name of the state machine.
        table: legal previous states by state.
        rows: in any order.
    """
    known: dict[tuple[int, int | None, int | None], str] = {}
    transitions: list[Transition] = []
    cases: list[Case] = []
    for row in sort_rows(rows):
        key = (row.broker_id, row.controller_epoch, row.replica_id)
        before = known.get(key)
        legal = is_legal(table, row.from_state, row.to_state)
        jumped = before is not None and before != row.from_state
        if not row.succeeded:
            why = "refused" if legal is False else "failed"
        elif legal is False:
            why = "never_allowed"
            cases.append(_make_case(machine, row))
        elif legal is None:
            why = "unknown_state"
        elif before is None:
            why = "first_of_controller"
        else:
            why = "after_gap" if jumped else "allowed"
        known[key] = row.to_state if row.succeeded else row.from_state
        more = {"replica_id": row.replica_id, "controller_epoch": row.controller_epoch, "succeeded": row.succeeded}
        transitions.append(make_transition(row, machine, row.from_state, row.to_state, legal, why, **more))
    return ReplayedStates(tuple(transitions), tuple(cases))
