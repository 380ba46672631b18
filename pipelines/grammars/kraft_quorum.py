"""Grammar of the KRaft controller: which node is active, and what its event queue says."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.typed import controller_event as _event
from pipelines.grammars.typed import node
from pipelines.grammars.values import i32

#: An epoch may begin without a leader.
_NONE = "(none)"


def _new_leader(match: re.Match[str], context: Context) -> str:
    return "other" if match["subject_broker_id"] == _NONE else "controller_elected"


def _leader(match: re.Match[str], context: Context) -> int | None:
    return None if match["subject_broker_id"] == _NONE else i32(match["subject_broker_id"])


_quorum = partial(Template, loggers=("QuorumController",))

TEMPLATES = (
    _quorum(
        "controller_kraft.elected",
        r"Becoming (?:the active controller|active) at (?:controller )?epoch (?P<controller_epoch>\d+)[,.].*",
        "QuorumController.claim",
        _event("controller_elected", subject_broker_id=node),
    ),
    _quorum(
        "controller_kraft.new_leader",
        r"In the new epoch (?P<controller_epoch>\d+), the leader is (?P<subject_broker_id>-?\d+|\(none\))\.",
        "QuorumController.handleLeaderChange, 3.3 and later",
        _event(_new_leader, subject_broker_id=_leader),
    ),
    _quorum(
        "controller_kraft.resigned",
        r"Renouncing the leadership (?:at oldEpoch (?P<controller_epoch>\d+) )?due to a metadata log event\. .*",
        "QuorumController.handleLeaderChange",
        _event("controller_resigned", subject_broker_id=node),
    ),
    _quorum(
        "controller_kraft.still_leader",
        r"We were the leader in epoch \d+, and are still the leader in the new epoch \d+\.",
        "QuorumController.handleLeaderChange, 3.3 and later",
        _event("other"),
    ),
    _quorum(
        "controller_kraft.event_failed",
        r"\w+(?:[(\[]-?\d+[)\]])?: (?:event failed with|event unable to start processing because of|failed "
        r"with|unable to start processing because of) .*",
        "QuorumController.handleEventException",
        _event("other"),
    ),
    _quorum(
        "controller_kraft.event_failed",
        r"unable to start processing \w+ because of .*",
        "QuorumController.handleEventException, 2.8 to 3.1",
        _event("other"),
    ),
    Template(
        "controller_kraft.slow_event",
        r"Exceptionally slow controller event .* took -?\d+ ms\.",
        "EventPerformanceMonitor.observeEvent, 4.0 and later: a stalled controller",
        _event("other"),
        loggers=("EventPerformanceMonitor",),
    ),
)
