"""A broker's registration in KRaft (`org.apache.kafka.controller.ClusterControlManager`): legal steps.

A broker registers and is fenced. It is unfenced once it has caught up. It is fenced again when its session times out,
or at the end of a controlled shutdown. From any state it may register again, as another incarnation. The broker epoch
of an incarnation is the offset at which the registration was written (`QuorumController.registerBroker`), and so larger
than any before.

Every controller replays records again after a start, and snapshot states look like first registrations. So lines alone
never contradict each other. Records of one copy of the metadata log can.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from highwater.pipelines.controllers.transitions import ReplayedStates, Transition, make_broken_case
from highwater.pipelines.kafka.controller_rows import ILLEGAL_STATE_TRANSITION, EventRow, RegistrationRow, broker_epoch
from highwater.pipelines.rules.rule import Case

MACHINE: Final = "broker_registration"
UNREGISTERED: Final = "Unregistered"
FENCED: Final = "Fenced"
ACTIVE: Final = "Active"
SHUTTING_DOWN: Final = "ControlledShutdown"

#: State after a change.
AFTER: Final[Mapping[str, str]] = {
    "registered": FENCED,
    "unfenced": ACTIVE,
    "fenced": FENCED,
    "controlled_shutdown": SHUTTING_DOWN,
    "unregistered": UNREGISTERED,
}
#: States before a change, of the same incarnation. A broker may ask for its shutdown before it was ever unfenced.
BEFORE: Final[Mapping[str, frozenset[str]]] = {
    "registered": frozenset((UNREGISTERED, FENCED, ACTIVE, SHUTTING_DOWN)),
    "unfenced": frozenset((FENCED,)),
    "fenced": frozenset((ACTIVE, SHUTTING_DOWN)),
    "controlled_shutdown": frozenset((ACTIVE, FENCED)),
    "unregistered": frozenset((FENCED, ACTIVE, SHUTTING_DOWN)),
}
_CHANGES: Final[Mapping[str, str]] = {
    "broker_registered": "registered",
    "broker_unfenced": "unfenced",
    "broker_fenced": "fenced",
    "controlled_shutdown": "controlled_shutdown",
    "broker_failed": "unregistered",
}


def collect_registrations(events: Iterable[EventRow]) -> list[RegistrationRow]:
    """Return broker registrations that controllers replayed, from rows of `silver.controller_events`.

    Decisions of the active controller are skipped, because each one follows as a record.
    """
    rows: list[RegistrationRow] = []
    for event in events:
        change = _CHANGES.get(event.event)
        replayed = (event.detail or "").startswith(("Replayed ", "Registered new broker", "Re-registered"))
        if change is not None and event.subject_broker_id is not None and replayed:
            place = (event.time_us, event.broker_id, event.ref)
            rows.append(RegistrationRow(*place, event.subject_broker_id, change, broker_epoch(event)))
    return rows


def _order(row: RegistrationRow) -> tuple[object, ...]:
    return (row.offset is None, row.offset or 0, row.time_us, row.ref)


def _find_step_back(before: RegistrationRow, row: RegistrationRow) -> Case | None:
    if before.offset is None or row.offset is None or before.offset >= row.offset:
        return None
    if before.broker_epoch is None or row.broker_epoch is None or row.broker_epoch >= before.broker_epoch:
        return None
    went_back = f"broker epoch of broker {row.subject_broker_id} went back from {before.broker_epoch}"
    message = f"{went_back} to {row.broker_epoch} at offset {row.offset}"
    brokers = [row.subject_broker_id]
    return make_broken_case(ILLEGAL_STATE_TRANSITION, message, (before, row), time_us=row.time_us, brokers=brokers)


def replay_registrations(rows: Iterable[RegistrationRow]) -> ReplayedStates:
    """Replay the registrations of all brokers, as each controller node saw them."""
    histories: dict[tuple[int, int, bool], list[RegistrationRow]] = defaultdict(list)
    for row in rows:
        histories[row.broker_id, row.subject_broker_id, row.offset is None].append(row)
    transitions: list[Transition] = []
    cases: list[Case] = []
    for history in histories.values():
        history.sort(key=_order)
        before: RegistrationRow | None = None
        for row in history:
            state = UNREGISTERED if before is None else AFTER[before.change]
            fits = before is None or state in BEFORE[row.change]
            case = None if before is None else _find_step_back(before, row)
            if case is not None:
                cases.append(case)
            repeated = before is not None and not fits and state == AFTER[row.change]
            why = "first_of_controller" if before is None else "allowed" if fits else "after_gap"
            why = "contradicts" if case is not None else "repeated" if repeated else why
            transitions.append(_make_transition(row, state, case is None, why))
            before = row
    transitions.sort(key=lambda transition: (transition.time_us, transition.ref))
    return ReplayedStates(tuple(transitions), tuple(cases))


def _make_transition(row: RegistrationRow, state: str, legal: bool, why: str) -> Transition:
    return Transition(
        replica_id=row.subject_broker_id,
        machine=MACHINE,
        controller=row.broker_id if row.controller_id is None else row.controller_id,
        time_us=row.time_us,
        from_state=state,
        to_state=AFTER[row.change],
        legal=legal,
        why=why,
        ref=row.ref,
    )
