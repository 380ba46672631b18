"""Rows for tests of the controllers' modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from highwater.pipelines.controllers.failover import FailoverRow, collect_failovers
from highwater.pipelines.kafka.controller_rows import (
    EventRow,
    LeadershipRow,
    LineRef,
    RecordRow,
    RegistrationRow,
    StateRow,
)
from highwater.pipelines.kafka.partition_history import build_history
from highwater.pipelines.rules.rule import Case

SECOND = 1_000_000


def ref(at: int, file_id: str = "f") -> LineRef:
    return LineRef(file_id, at, at)


def state(time_us: int, from_state: str, to_state: str, **values: Any) -> StateRow:
    base: dict[str, Any] = {"broker_id": 1, "ref": ref(time_us), "topic": "t", "partition": 0, "succeeded": True}
    return StateRow(time_us, from_state=from_state, to_state=to_state, **{**base, "controller_epoch": 1, **values})


def line(time_us: int, role: str, broker_id: int = 1, **values: Any) -> LeadershipRow:
    base: dict[str, Any] = {"ref": ref(time_us, f"{role}{broker_id}"), "topic": "t", "partition": 0}
    return LeadershipRow(time_us, broker_id, role=role, **{**base, **values})


def event(time_us: int, kind: str, broker_id: int = 1, **values: Any) -> EventRow:
    return EventRow(time_us, broker_id, ref(time_us, "events"), kind, **values)


def record(offset: int, leader: int, leader_epoch: int, partition_epoch: int, **values: Any) -> RecordRow:
    base: dict[str, Any] = {
        "time_us": offset * SECOND,
        "broker_id": 1,
        "ref": ref(offset, "log"),
        "topic": "t",
        "partition": 0,
        "topic_id": "id",
        "isr": (1, 2, 3) if leader >= 0 else (1,),
        "replicas": (1, 2, 3),
    }
    epochs = {"leader_epoch": leader_epoch, "partition_epoch": partition_epoch}
    return RecordRow(offset=offset, leader=leader, **epochs, **{**base, **values})


def registration(offset: int, broker_id: int, change: str, broker_epoch: int | None = None) -> RegistrationRow:
    return RegistrationRow(offset * SECOND, 1, ref(offset, "log"), broker_id, change, broker_epoch, offset)


def handovers(
    rows: Sequence[LeadershipRow],
    states: Sequence[StateRow] = (),
    events: Sequence[EventRow] = (),
    records: Sequence[RecordRow] = (),
    serving: Mapping[tuple[int, int], int] | None = None,
    changes: Sequence[LeadershipRow] = (),
) -> list[FailoverRow]:
    """Fail-overs of the history that rows tell."""
    return collect_failovers(build_history(states, rows, records, changes), states, events, serving)


def refs(case: Case) -> list[LineRef]:
    """Places of a case's lines, which are numbered by their offsets here."""
    return [ref(line.byte_offset or 0, line.file_id or "") for line in case.evidence]


def only(rows: Sequence[Any]) -> Any:
    assert len(rows) == 1, rows
    return rows[0]
