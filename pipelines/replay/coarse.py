"""What the replay still says where a broker's times are whole seconds. Pure.

A rule's instant and an answer's are compared in milliseconds. Of two lines of one second neither is known to be the
first, so what closed an operation, and whether it was answered in time, cannot be shown: the fold goes on, since
offsets and epochs tell what they tell, and its predictions are left out. What an operation's own line says stays: its
parts, its wait, its errors, the offset that it was answered.
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
#: What a partition's outcome has from the order of lines.
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
    """Whether a broker's times are whole seconds at some instant of a stretch, both ends inclusive."""
    return any(begun_us <= until_us and since_us < ended_us for begun_us, ended_us in spans.get(broker, ()))


def blurred(outcome: dict[str, Any]) -> dict[str, Any]:
    """A row of `pipelines.replay.partition_worker.OUTCOME_TYPES` without what the order of lines told.

    An offset that no answer told was found by a line of about that time.
    """
    if outcome["error_code"] is not None:
        return {**outcome, **_FROM_ORDER, "predicted_error_code": None}
    return {**outcome, **_FROM_ORDER, "base_offset": None}


def blurred_fetch(outcome: FetchOutcome) -> FetchOutcome:
    """A fetch without what the order of lines told."""
    cause = outcome.cause if outcome.cause in _SHOWN else o.UNKNOWN
    return replace(outcome, lowest_us=None, highest_us=None, cause=cause, closing=None, missing=o.COARSE_TIMES)


def blurred_change(outcome: IsrOutcome) -> IsrOutcome | None:
    """A change of an ISR without what was predicted; None where it was no more than predicted."""
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
    """A follower's event without what TRACE lines of its very second showed: they may have come after it."""
    second = event.time_us // SECOND_US
    if (event.traced_high_watermark_us or 0) // SECOND_US == second:
        event = event._replace(traced_high_watermark=None, traced_high_watermark_us=None)
    if (event.traced_end_offset_us or 0) // SECOND_US == second:
        event = event._replace(traced_end_offset=None, traced_end_offset_us=None)
    return event


def blurred_truncation(row: dict[str, Any]) -> dict[str, Any]:
    """A row of ``gold.replica_truncations`` that is not judged: where it was due rests on other lines of about then."""
    return {**row, "class": UNOBSERVABLE, "reason": o.COARSE_TIMES}
