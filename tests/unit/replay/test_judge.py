from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.replay.judge import Tolerances, judge, residual_us

LIMITS = Tolerances(5_000, 100_000)


def classed(completed: int, **changed: object) -> tuple[str, str | None]:
    given = {"errors_agree": True, "missing": None, "proven_early": False, "limits": LIMITS, **changed}
    made = judge(100_000, 110_000, completed, **given)  # type: ignore[arg-type]
    return made.operation_class, made.reason


@pytest.mark.parametrize(
    ("completed", "expected"),
    [
        (105_000, ("explained", None)),
        (99_000, ("explained", None)),
        (111_000 + 5_000, ("explained", None)),
        (111_000 + 5_001, ("jitter", None)),
        (111_000 + 100_000, ("late", None)),
        (99_000 - 5_001, ("unobservable", "late_log_line")),
    ],
)
def test_classes_by_distance(completed, expected):
    assert classed(completed) == expected


def test_time_alone_never_contradicts():
    assert classed(0)[0] == "unobservable"
    assert classed(0, proven_early=True) == ("contradicted", "never_committed")
    assert classed(105_000, proven_early=True)[0] == "explained"


def test_what_lacks_evidence_is_not_called_late():
    assert classed(10**9, missing="fetch_not_logged") == ("unobservable", "fetch_not_logged")


def test_another_error_than_predicted_is_not_explained():
    assert classed(105_000, errors_agree=False) == ("unobservable", "error_differs")


def test_without_a_prediction_there_is_no_residual():
    made = judge(None, None, 5, errors_agree=True, missing="end_of_log", proven_early=False, limits=LIMITS)
    assert made == ("unobservable", "end_of_log", None)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 3 * 10**6))
def test_the_residual_is_the_distance_to_the_interval_widened_by_a_tick(lowest, width, completed):
    highest = lowest + width
    inside = lowest - 1_000 <= completed <= highest + 1_000
    residual = residual_us(lowest, highest, completed)
    assert (residual == 0) == inside
    assert lowest - 1_000 <= completed - residual <= highest + 1_000
