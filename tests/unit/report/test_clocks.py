"""Pairs of clocks as the page shows them."""

from __future__ import annotations

from typing import Any

from highwater.pipelines.report.cluster import clocks as of_page
from highwater.pipelines.report.cluster.clocks import PAIRS_MAX, make_clocks
from highwater.pipelines.timing.clocks.bounds import compute_clock_bounds
from highwater.pipelines.timing.clocks.links import FOLLOWER, Link
from highwater.pipelines.timing.clocks.stage import make_clock_row

MINUTE_US = 60_000_000


def rows(links: list[Link], window_us: int = 10 * MINUTE_US) -> list[dict[str, Any]]:
    """Rows of the table, as their stage makes them of bounds."""
    return [make_clock_row("c", bounds) for bounds in compute_clock_bounds(links, window_us)]


def link(earlier: int, earlier_us: int, later: int, later_us: int) -> Link:
    return Link(FOLLOWER, earlier, earlier_us, later, later_us)


def test_the_window_that_tells_most_stands_for_a_pair() -> None:
    wide = [link(1, 1_000_000, 2, 1_040_000), link(2, 2_000_000, 1, 2_030_000)]
    narrow = [link(1, 11 * MINUTE_US, 2, 11 * MINUTE_US + 7_000), link(2, 12 * MINUTE_US, 1, 12 * MINUTE_US + 2_000)]
    ((pair,), left_out) = make_clocks(rows(wide + narrow))
    assert (pair.lowest_ms, pair.highest_ms, pair.windows, pair.links, left_out) == (-2.0, 7.0, 2, 4, 0)
    assert (pair.changes, pair.changed_ms, pair.drift_ppm) == (0, None, None)


def test_one_bound_is_told_as_one() -> None:
    ((pair,), _) = make_clocks(rows([link(2, 1_000_000, 1, 1_005_000)]))
    assert (pair.lowest_ms, pair.highest_ms, pair.time) == (-5.0, None, "1970-01-01T00:00:01.005Z")


def test_a_step_is_told_with_its_instants_and_as_a_drift() -> None:
    """The difference is below 5 ms, and 20 minutes later above 605 ms: 600 ms at least, or 500 ppm."""
    later = 20 * MINUTE_US
    ((pair,), _) = make_clocks(rows([link(1, 0, 2, 5_000), link(2, later + 605_000, 1, later)]))
    assert (pair.changes, pair.changed_ms, pair.drift_ppm) == (1, 600.0, 500.0)
    assert (pair.changed_since, pair.changed_until) == ("1970-01-01T00:00:00.000Z", "1970-01-01T00:20:00.000Z")


def test_pairs_that_changed_come_first_and_the_rest_is_counted(monkeypatch: Any) -> None:
    apart = [link(1, 0, 3, 900_000), link(3, 1_000_000, 1, 1_000_000)]
    changed = [link(1, 0, 2, 5_000), link(2, 20 * MINUTE_US + 50_000, 1, 20 * MINUTE_US)]
    pairs, left_out = make_clocks(rows(apart + changed))
    assert ([pair.broker_b for pair in pairs], left_out) == ([2, 3], 0)
    monkeypatch.setattr(of_page, "PAIRS_MAX", 1)
    pairs, left_out = make_clocks(rows(apart + changed))
    assert ([pair.broker_b for pair in pairs], left_out) == ([2], 1)
    assert PAIRS_MAX == 200
