"""Results of a replay of states: transitions as rows of gold, and proven cases. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from highwater.pipelines.kafka.controller_rows import ILLEGAL_STATE_TRANSITION, AnyRow, LineRef, PartitionRow
from highwater.pipelines.rules.rule import VIOLATION, Case
from highwater.pipelines.rules.rule import Ref as Evidence


class Transition(NamedTuple):
    """A row of gold `controller_transitions`, without cluster and partition."""

    machine: str
    controller: int
    time_us: int
    from_state: str
    to_state: str
    legal: bool | None
    #: allowed, first_of_controller (nothing to compare with), after_gap (lines between are missing), refused (the
    #: controller itself refused the pair), failed, repeated, never_allowed, contradicts
    why: str
    ref: LineRef
    replica_id: int | None = None
    controller_epoch: int | None = None
    succeeded: bool = True
    leader: int | None = None
    leader_epoch: int | None = None
    isr: tuple[int, ...] | None = None


class ReplayedStates(NamedTuple):
    """State transitions, and proven violations."""

    transitions: tuple[Transition, ...]
    cases: tuple[Case, ...]


def make_broken_case(
    rule_id: str,
    message: str,
    rows: Sequence[AnyRow],
    *,
    time_us: int,
    brokers: Sequence[int],
    leader_epoch: int | None = None,
) -> Case:
    """Return the violation of a rule, with the rows whose lines prove it.

    Args:
        message: sentence in lower case, without a full stop.
        brokers: ids of the brokers that it is about.
    """
    evidence = (Evidence(row.time_us, row.broker_id, *row.ref[:2], None, None, row.ref.file_id) for row in rows)
    return Case(
        VIOLATION,
        message,
        tuple(evidence),
        leader_epoch=leader_epoch,
        time_us=time_us,
        brokers=tuple(sorted(set(brokers))),
        rule_id=rule_id,
    )


def make_illegal_case(message: str, *rows: PartitionRow, about: PartitionRow | None = None) -> Case:
    """Return the violation shown by an illegal transition of a partition.

    Args:
        rows: rows that show it together.
        about: row with leader epoch and time. None for the last of `rows`.
    """
    last = rows[-1] if about is None else about
    brokers = [row.broker_id for row in rows]
    epoch = last.leader_epoch
    return make_broken_case(
        ILLEGAL_STATE_TRANSITION, message, rows, time_us=last.time_us, brokers=brokers, leader_epoch=epoch
    )


def make_transition(
    row: PartitionRow, machine: str, from_state: str, to_state: str, legal: bool | None, why: str, **more: Any
) -> Transition:
    """Return the transition of a partition's state machine that a row shows. `more` has columns of a replica's.

    Args:
        legal: None if Kafka's tables do not decide it.
        why: reason for `legal`.
    """
    return Transition(
        machine=machine,
        controller=row.broker_id,
        time_us=row.time_us,
        from_state=from_state,
        to_state=to_state,
        legal=legal,
        why=why,
        ref=row.ref,
        leader=row.leader,
        leader_epoch=row.leader_epoch,
        isr=row.isr,
        **more,
    )
