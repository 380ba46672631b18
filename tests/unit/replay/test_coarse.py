"""What whole seconds leave of the replay: nothing late, nothing contradicted, no accuracy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay import isr_outcome as i
from highwater.pipelines.replay import outcome as o
from highwater.pipelines.replay.coarse import (
    blurred,
    blurred_change,
    blurred_fetch,
    blurred_truncation,
    is_coarse,
    untraced,
)
from highwater.pipelines.replay.fetch_rules import FetchOutcome
from highwater.pipelines.replay.isr_outcome import IsrOutcome
from highwater.pipelines.replay.judge import UNOBSERVABLE
from highwater.pipelines.replay.produce_worker import produce_operation
from highwater.pipelines.replay.session_worker import fetch_operation
from highwater.schemas.replicas import ReplicaEvent
from highwater.schemas.session_events import FETCH, Origin, SessionEvent
from tests.unit.replay.test_operations import LIMITS, outcome, request

SPANS = {("c", 1): [(10, 20)]}


@pytest.mark.parametrize(
    ("since", "until", "broker_id", "coarse"),
    [(0, 9, 1, False), (0, 10, 1, True), (19, 30, 1, True), (20, 30, 1, False), (5, 25, 1, True), (12, 13, 2, False)],
)
def test_a_stretch_is_coarse_if_an_instant_of_it_is(since: int, until: int, broker_id: int, coarse: bool) -> None:
    assert is_coarse(SPANS, ("c", broker_id), since, until) is coarse


@given(st.integers(0, 10_000_000), st.booleans(), st.sampled_from((0, 6, 7, None)), st.sampled_from((0, 7, None)))
def test_no_produce_is_more_than_unobservable(
    completed_us: int, proven_early: bool, error_code: int | None, predicted: int | None
) -> None:
    changed: dict[str, Any] = {"error_code": error_code, "predicted_error_code": predicted}
    row = blurred(outcome(proven_early=proven_early, **changed))
    made = produce_operation(request(completed_us=completed_us), [row], LIMITS, "2.8.2")
    assert (made["class"], made["class_reason"]) == (UNOBSERVABLE, o.COARSE_TIMES)
    assert (made["cause"], made["closing_replica"], made["residual_ms"]) == (o.UNKNOWN, None, None)
    assert "wait_completion_ms" not in made
    (part,) = made["partitions"]
    assert (part["leader_epoch"], part["isr_inferred"]) == (None, True)
    # What its own answer tells stays; what a line of about then tells does not.
    assert part["base_offset"] == (None if error_code is None else 7)


@pytest.mark.parametrize("cause", [o.BYTES, o.TIMER, o.ERROR, o.NO_WAIT])
def test_a_fetch_keeps_the_cause_that_its_response_shows(cause: str) -> None:
    event = SessionEvent(1, FETCH, latest_us=2, completed_us=900_000, origin=Origin(0, 900_000, "c", 1, 899.0))
    made = FetchOutcome(event, 5, 6, cause, ("t", 0), parked=True)
    row = fetch_operation(blurred_fetch(made), LIMITS)
    assert (row["class"], row["class_reason"], row["residual_ms"]) == (UNOBSERVABLE, o.COARSE_TIMES, None)
    assert row["cause"] == (cause if cause in (o.ERROR, o.NO_WAIT) else o.UNKNOWN)
    assert (row["lowest_time"], row["closing_topic"], row["parked"]) == (None, None, True)


@pytest.mark.parametrize("class_", [i.PREDICTED, i.EARLY, i.LATE, i.NOT_PREDICTED, i.OUTSIDE_RULE])
def test_a_change_of_an_isr_stays_and_its_prediction_goes(class_: str) -> None:
    change = IsrOutcome(i.SHRINK, 2, (1, 2), (1,), 10, lowest_us=3, highest_us=4, proposed_us=9, class_=class_)
    made = blurred_change(change)
    assert made is not None
    assert made.class_ == (class_ if class_ == i.OUTSIDE_RULE else i.UNOBSERVABLE)
    assert (made.reason, made.residual_us, made.observed_us) == (o.COARSE_TIMES, None, 9)
    assert blurred_change(replace(change, proposed_us=None, class_=i.NOT_OBSERVED)) is None


@pytest.mark.parametrize("class_", ["differs", "agrees", "none_needed"])
def test_a_truncation_is_judged_by_no_line_of_about_then(class_: str) -> None:
    made = blurred_truncation({"class": class_, "reason": None, "logged_offset": 163, "below_high_watermark": True})
    assert made == {
        "class": "unobservable",
        "reason": o.COARSE_TIMES,
        "logged_offset": 163,
        "below_high_watermark": True,
    }


@pytest.mark.parametrize(("traced_us", "known"), [(4_000_000, True), (5_000_000, False)])
def test_a_trace_line_of_the_very_second_shows_nothing_before_it(traced_us: int, known: bool) -> None:
    event = ReplicaEvent(1, 5_000_000, "truncated", traced_high_watermark=177, traced_high_watermark_us=traced_us)
    assert untraced(event) == (event if known else ReplicaEvent(1, 5_000_000, "truncated"))
