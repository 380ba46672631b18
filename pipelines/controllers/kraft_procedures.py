"""Procedures of the active KRaft controller, step by step, and what the logs show of each step.

`ReplicationControlManager`: handleBrokerFenced, handleBrokerUnfenced, handleBrokerInControlledShutdown, deleteTopic;
they write their records at once. So the steps on the controller are its decision, the count of partitions that change,
and its replay of the record; what brokers then do is on their own clocks. A controller that was deposed and does not
know it yet decides and replays, too, and takes it back: its decisions are shown, and no leader takes them up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from highwater.pipelines.controllers.procedure_steps import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    TOPIC_DELETION,
    ProcedureStep,
    SeenStep,
    procedure,
    step_of,
)
from highwater.pipelines.kafka.controller_rows import EventRow, LeadershipRow
from highwater.pipelines.kafka.partition_history import moment_of

#: Steps of one decision are looked for this long, and this long before it on other brokers' clocks.
_WITHIN_US: Final = 30_000_000
_CLOCKS_US: Final = 1_000_000

_FENCING: Final = re.compile(r"Fencing broker (\d+)")
_UNFENCE: Final = re.compile(r"The request from broker (\d+) to unfence has been granted")
_SHUTDOWN: Final = re.compile(r"(?:Unf|F)enced broker (\d+) has requested and been granted an? \w+ shutdown")
_SHUT_DOWN: Final = re.compile(r"The request from broker (\d+) to shut down has been granted")
_CHANGING: Final = re.compile(r"(\w+)(?:\[\d+\])?: changing (\d+) partition\(s\)")


@dataclass
class _Scope:
    """What was logged from one decision about a broker until the next one about it."""

    decision: EventRow
    broker_id: int
    until_us: int
    events: Sequence[EventRow]
    leadership: Sequence[LeadershipRow]
    lifecycle: Sequence[EventRow]

    @property
    def from_us(self) -> int:
        return self.decision.time_us

    @cached_property
    def mine(self) -> list[EventRow]:
        """The controller's own events."""
        within = (row for row in self.events if self.from_us - _CLOCKS_US <= row.time_us < self.until_us)
        return [row for row in within if row.broker_id == self.decision.broker_id]

    def changing(self, handler: str, tagged: bool) -> SeenStep:
        """The count of partitions that the decision changes; some handlers tag the broker."""
        for row in self.mine:
            match = _CHANGING.match(row.detail or "")
            ours = match is not None and match[1] == handler and (not tagged or row.subject_broker_id == self.broker_id)
            if match is not None and ours and self.from_us <= row.time_us <= self.from_us + _CLOCKS_US:
                return SeenStep("partitions_changed", moment_of(row), int(match[2]))
        return SeenStep("partitions_changed", None)

    def replayed(self, name: str, event: str) -> SeenStep:
        """The controller's own replay of the record that it wrote."""
        rows = [
            row
            for row in self.mine
            if row.event == event
            and row.subject_broker_id == self.broker_id
            and (row.detail or "").startswith("Replayed")
            and row.time_us >= self.from_us
        ]
        return step_of(name, rows[:1], counted=False)

    def taken_up(self) -> SeenStep:
        """Leaders that say (3.6 and later) that they follow upon this broker."""
        rows = [
            row
            for row in self.leadership
            if row.role == "leader_start"
            and row.previous_leader == self.broker_id != row.broker_id
            and self.from_us - _CLOCKS_US <= row.time_us < min(self.until_us, self.from_us + _WITHIN_US)
        ]
        return step_of("leaders_taken_up", rows, answer=True)

    def lived(self, name: str, event: str, from_us: int) -> SeenStep:
        """A line of the broker's own life."""
        rows = [
            row
            for row in self.lifecycle
            if row.broker_id == self.broker_id
            and row.event == event
            and from_us <= row.time_us < min(self.until_us, self.from_us + _WITHIN_US)
        ]
        return step_of(name, rows[:1], counted=False, answer=True)


def _fencing(scope: _Scope) -> list[ProcedureStep]:
    steps = (
        SeenStep("session_timed_out", moment_of(scope.decision)),
        scope.changing("handleBrokerFenced", tagged=False),
        scope.replayed("fence_replayed", "broker_fenced"),
        scope.taken_up(),
    )
    return procedure(BROKER_FAILURE, scope.decision.broker_id, steps, scope.broker_id)


def _unfencing(scope: _Scope) -> list[ProcedureStep]:
    steps = (
        scope.lived("registered", "registered", scope.from_us - _WITHIN_US),
        SeenStep("unfence_granted", moment_of(scope.decision)),
        scope.changing("handleBrokerUnfenced", tagged=False),
        scope.replayed("unfence_replayed", "broker_unfenced"),
        scope.lived("running", "unfenced", scope.from_us - _CLOCKS_US),
    )
    return procedure(BROKER_STARTUP, scope.decision.broker_id, steps, scope.broker_id)


def _shutting_down(scope: _Scope) -> list[ProcedureStep]:
    done = [
        row
        for row in scope.mine
        if (match := _SHUT_DOWN.match(row.detail or "")) is not None and int(match[1]) == scope.broker_id
    ]
    steps = (
        scope.lived("shutting_down", "shutting_down", scope.from_us - _WITHIN_US),
        SeenStep("shutdown_granted", moment_of(scope.decision)),
        scope.changing("enterControlledShutdown", tagged=True),
        scope.replayed("shutdown_replayed", "controlled_shutdown"),
        scope.taken_up(),
        step_of("shutdown_completed", done[:1], counted=False),
        scope.lived("shut_down", "shut_down", scope.from_us),
    )
    return procedure(CONTROLLED_SHUTDOWN, scope.decision.broker_id, steps, scope.broker_id)


_PROCEDURES: Final[tuple[tuple[re.Pattern[str], Callable[[_Scope], list[ProcedureStep]]], ...]] = (
    (_FENCING, _fencing),
    (_UNFENCE, _unfencing),
    (_SHUTDOWN, _shutting_down),
)


def kraft_procedures(
    events: Sequence[EventRow], leadership: Sequence[LeadershipRow], lifecycle: Sequence[EventRow] = ()
) -> list[ProcedureStep]:
    """Procedures of a cluster's active controllers, from rows of all its partitions.

    Args:
        events: `silver.controller_events`.
        leadership: `silver.leader_and_isr`, roles ``leader_start`` and ``stopped``.
        lifecycle: `silver.broker_lifecycle`, events ``registered``, ``unfenced``, ``shutting_down``, ``shut_down``.
    """
    events = sorted(events, key=lambda row: (row.time_us, row.ref))
    lifecycle = sorted(lifecycle, key=lambda row: (row.time_us, row.ref))
    decisions: list[tuple[EventRow, int, Callable[[_Scope], list[ProcedureStep]]]] = []
    for row in events:
        for pattern, steps in _PROCEDURES:
            match = pattern.match(row.detail or "")
            if match is not None:
                decisions.append((row, int(match[1]), steps))
    rows: list[ProcedureStep] = []
    for at, (row, broker_id, steps) in enumerate(decisions):
        again = (later.time_us for later, other, _ in decisions[at + 1 :] if other == broker_id)
        until_us = next((time_us for time_us in again if time_us > row.time_us), row.time_us + _WITHIN_US)
        rows += steps(_Scope(row, broker_id, until_us, events, leadership, lifecycle))
    return rows + _topic_deletions(events, leadership)


def _topic_deletions(events: Iterable[EventRow], leadership: Iterable[LeadershipRow]) -> list[ProcedureStep]:
    """A topic id is removed once; other controllers replay it, and all of them again after a start."""
    first: dict[str, EventRow] = {}
    decided: dict[str, EventRow] = {}
    for row in events:
        if row.event == "topic_deleted" and row.topic_id is not None:
            (first if (row.detail or "").startswith("Replayed") else decided).setdefault(row.topic_id, row)
    stopped = [row for row in leadership if row.role == "stopped"]
    rows: list[ProcedureStep] = []
    for topic_id in sorted(first.keys() | decided.keys()):
        decision = decided.get(topic_id, first.get(topic_id))
        assert decision is not None
        steps = (
            step_of("deletion_decided", [decided[topic_id]] if topic_id in decided else [], counted=False),
            step_of("deletion_replayed", [first[topic_id]] if topic_id in first else [], counted=False),
            step_of(
                "replicas_stopped",
                [
                    row
                    for row in stopped
                    if row.topic == decision.topic and row.time_us >= decision.time_us - _CLOCKS_US
                ],
            ),
        )
        rows += procedure(TOPIC_DELETION, decision.broker_id, steps, topic=decision.topic)
    return rows
