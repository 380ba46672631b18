"""Results of the replay where a broker's timestamps are whole seconds. Pure.

Predicted times and answers are compared in milliseconds. Two lines of one second have no known order, so the logs
cannot show what closed an operation or whether the answer was in time. The fold continues, since offsets and epochs
keep their meaning, but its predictions are dropped. Values from an operation's own line are kept: its parts, its wait,
its errors and the answered offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.kafka.context import Spans
from highwater.pipelines.replay import isr_outcome as i
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.fetch_rules import FetchOutcome
from highwater.pipelines.replay.follower_rows import UNOBSERVABLE
from highwater.pipelines.replay.isr_outcome import IsrOutcome
from highwater.schemas.replicas import ReplicaEvent

#: Causes that a fetch's response itself shows.
_SHOWN: Final = frozenset(
    {o.ERROR, o.SESSION_ERROR, o.NO_PARTITIONS, o.NO_WAIT, o.DIVERGING_EPOCH, o.PREFERRED_REPLICA}
)
#: Values of a partition's outcome that depend on the order of lines.
_FROM_ORDER: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("leader_epoch", "lowest_us", "highest_us", "closing_replica", "without_closing_us")),
    **dict.fromkeys(("closing_arrival_us", "closing_handled_us", "carrier_arrival_us", "carrier_sent_us")),
    "awaiting_logged": None,
    "cause": o.UNKNOWN,
    "isr": [],
    "isr_inferred": True,
    "missing": o.COARSE_TIMES,
    "proven_early": False,
}


def is_coarse(spans: Spans, broker: tuple[str, int], since_us: int, until_us: int) -> bool:
    """Return True if a broker logged whole seconds at some time between two times, both inclusive.

    Args:
        spans: by (cluster, broker), (start, end) in which timestamps are whole seconds. Times in us since the epoch.
    """
    return any(begun_us <= until_us and since_us < ended_us for begun_us, ended_us in spans.get(broker, ()))


def blurred(outcome: dict[str, Any]) -> dict[str, Any]:
    """Remove from a produce result all values that depend on the order of lines within a second.

    Without a logged answer the offset is removed too, because a line of about that time gave it.
    """
    if outcome["error_code"] is not None:
        return {**outcome, **_FROM_ORDER, "predicted_error_code": None}
    return {**outcome, **_FROM_ORDER, "base_offset": None}


def blurred_fetch(outcome: FetchOutcome) -> FetchOutcome:
    """Remove from a fetch result all values that depend on the order of lines within a second."""
    cause = outcome.cause if outcome.cause in _SHOWN else o.UNKNOWN
    return replace(outcome, lowest_us=None, highest_us=None, cause=cause, closing=None, missing=o.COARSE_TIMES)


def blurred_change(outcome: IsrOutcome) -> IsrOutcome | None:
    """Remove the prediction from an ISR change. None if the change was only predicted, never observed."""
    if outcome.observed_us is None:
        return None
    class_, reason = i.UNOBSERVABLE, o.COARSE_TIMES
    if outcome.class_ == i.OUTSIDE_RULE:
        class_, reason = outcome.class_, outcome.reason or reason
    return replace(
        outcome,
        lowest_us=None,
        highest_us=None,
        class_=class_,
        reason=reason,
        end_offset_predicted=None,
        caught_up_lowest_us=None,
        caught_up_highest_us=None,
    )


def untraced(event: ReplicaEvent) -> ReplicaEvent:
    """Remove from a follower's event what TRACE lines of the same second show. They may have come after the event."""
    second = event.time_us // SECOND_US
    if (event.traced_high_watermark_us or 0) // SECOND_US == second:
        event = event._replace(traced_high_watermark=None, traced_high_watermark_us=None)
    if (event.traced_end_offset_us or 0) // SECOND_US == second:
        event = event._replace(traced_end_offset=None, traced_end_offset_us=None)
    return event


def blurred_truncation(row: dict[str, Any]) -> dict[str, Any]:
    """Mark a row of ``gold.replica_truncations`` as unobservable: its prediction depends on lines of the same time."""
    return {**row, "class": UNOBSERVABLE, "reason": o.COARSE_TIMES}
