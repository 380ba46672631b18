"""An instant per broker: which rows are read, and which spans of time, so that files can be skipped."""

from __future__ import annotations

import pytest

from pipelines.delta_table import table_properties
from pipelines.replay.bounds import _DISORDER_US, Bounds
from schemas import bronze, silver
from schemas.table import TableSpec

HOUR_US = 3_600_000_000
ALIVE, OTHER, RETIRED = ("c", 1), ("c", 3), ("c", 2)


def spans(instants: dict[tuple[str, int], float], last: dict[tuple[str, int], float]) -> list[tuple[float, float]]:
    in_us = ({broker: int(hours * HOUR_US) for broker, hours in told.items()} for told in (instants, last))
    return [(since / HOUR_US, (until - _DISORDER_US) / HOUR_US) for since, until in Bounds(*in_us).spans()]


def test_brokers_that_write_at_the_same_time_have_one_span():
    assert spans({ALIVE: 10, OTHER: 9.5}, {ALIVE: 11, OTHER: 11.25}) == [(9.5, 11.25)]


def test_a_retired_broker_is_no_reason_to_read_what_the_others_wrote_since():
    assert spans({ALIVE: 100, RETIRED: 5, OTHER: 99}, {ALIVE: 101, RETIRED: 6, OTHER: 101}) == [(5, 6), (99, 101)]


def test_a_log_that_ended_before_the_others_began_to_be_read_is_joined_to_them():
    assert spans({ALIVE: 6.5, RETIRED: 5}, {ALIVE: 8, RETIRED: 6}) == [(5, 8)]


def test_a_broker_without_an_instant_is_read_whole():
    assert spans({ALIVE: 100}, {ALIVE: 101, OTHER: 101}) == []
    assert spans({}, {}) == []


@pytest.mark.parametrize(
    ("spec", "times"),
    [
        (bronze.LOG_LINES, {"time"}),
        (silver.FETCH_REQUESTS, {"time", "handled_time", "dequeued_time"}),
        (silver.PRODUCE_REQUESTS, {"time", "handled_time"}),
        (silver.REQUESTS, {"time", "handled_time"}),
        (silver.REPLICA_FETCHES, {"handled_time"}),
    ],
)
def test_delta_keeps_the_bounds_of_the_times_that_are_asked_for(spec: TableSpec, times: set[str]):
    kept = table_properties(spec)["delta.dataSkippingStatsColumns"]
    assert {f"`{time}`" for time in times} <= set(kept.split(","))
