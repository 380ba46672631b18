"""Bounds on clocks of a real cluster whose clocks are one machine's, and then are shifted as the test says."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.timing.clocks.stage import Causes, collect_causes
from highwater.schemas.clocks import CLOCK_BOUNDS
from tests.bench.clocks import figures


@pytest.fixture(scope="session")
def causes(slice_lake: Lake) -> Causes:
    """Lines of the slice that may be linked."""
    (of_cluster,) = collect_causes(slice_lake).values()
    return of_cluster


def test_clocks_of_one_machine_differ_by_nothing(slice_lake: Lake) -> None:
    rows = slice_lake.rows(CLOCK_BOUNDS, *CLOCK_BOUNDS.column_names).to_pylist()
    assert {(row["broker_a"], row["broker_b"]) for row in rows} == {(1, 2), (1, 3), (2, 3)}
    for row in rows:
        assert row["lowest_ms"] is None or row["lowest_ms"] < 0
        assert row["highest_ms"] is None or row["highest_ms"] > 0
        assert row["changed_ms"] == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    off_us=st.integers(-3_600_000_000, 3_600_000_000),
    step_us=st.integers(0, 30_000_000),
    step_at_s=st.floats(0, 70),
    drift_ppm=st.integers(0, 500),
)
def test_every_bound_holds_for_a_clock_that_is_shifted(
    causes: Causes, off_us: int, step_us: int, step_at_s: float, drift_ppm: int
) -> None:
    def shift(at_s: float) -> float:
        return off_us + (step_us if at_s >= step_at_s else 0) + drift_ppm * at_s

    found = figures(causes, shift)
    assert found["links"] == found["held"] > 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(off_us=st.integers(-3_600_000_000, 3_600_000_000))
def test_a_constant_shift_leaves_the_width_and_tells_no_change(causes: Causes, off_us: int) -> None:
    plain, shifted = figures(causes, lambda at_s: 0), figures(causes, lambda at_s: off_us)
    assert not shifted["changes"]
    assert (shifted["links"], shifted["width_ms"]) == (plain["links"], pytest.approx(plain["width_ms"]))
