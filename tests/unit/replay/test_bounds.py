"""An instant per broker: which rows are read, and which spans of time, so that files can be skipped."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.lake.bounds import _DISORDER_US, Bounds
from highwater.pipelines.lake.delta_table import build_properties
from highwater.schemas import bronze, silver
from highwater.schemas.table import TableSpec

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


def test_a_broker_without_an_instant_does_not_unbound_the_others():
    assert spans({ALIVE: 100}, {ALIVE: 101, OTHER: 101}) == [(100, 101)]
    assert spans({}, {OTHER: 101}) == []
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
    kept = build_properties(spec)["delta.dataSkippingStatsColumns"]
    assert {f"`{time}`" for time in times} <= set(kept.split(","))


brokers = st.tuples(st.sampled_from(["c", "d"]), st.sampled_from([-1, 1, 2]))
rows = st.tuples(st.sampled_from(["c", "d"]), st.sampled_from([None, 1, 2]), st.none() | st.integers(0, 9))


@given(st.dictionaries(brokers, st.integers(0, 9)), st.lists(rows, max_size=8), st.integers(0, 8))
def test_rows_at_or_after_the_instant_of_their_broker(
    instants: dict[tuple[str, int], int], given_rows: list[tuple[str, int | None, int | None]], begin: int
):
    names = {"cluster_id": pa.string(), "broker_id": pa.int32(), "time_us": pa.int64()}
    columns = [pa.array([row[at] for row in given_rows], type_) for at, type_ in enumerate(names.values())]
    batch = pa.RecordBatch.from_arrays(columns, names=list(names)).slice(begin)
    expected: list[Any] = []
    for cluster_id, broker_id, time_us in given_rows[begin:]:
        # A broker that is not known is -1; of one without an instant, and without a time, all is read.
        bound = instants.get((cluster_id, -1 if broker_id is None else broker_id))
        if bound is None or time_us is None or time_us >= bound:
            expected.append((cluster_id, broker_id, time_us))
    found = Bounds(instants).filter_rows(batch, batch.column("time_us"))
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


def test_files_are_skipped_by_time():
    assert Bounds({}, {}).where("time") is None
    assert Bounds({}, {ALIVE: HOUR_US}).where("time") is None
    where = Bounds({ALIVE: 9 * HOUR_US, RETIRED: HOUR_US}, {ALIVE: 9 * HOUR_US, RETIRED: 2 * HOUR_US}).where("time")
    assert where is not None
    hours = [0, 1, 3, 3.5, 8, 9, 20]
    times = pa.array([int(hour * HOUR_US) for hour in hours], pa.timestamp("us", "UTC"))
    read = pa.table({"hour": hours, "time": times}).filter(where)
    assert read.column("hour").to_pylist() == [1, 3, 9, 20]


last = st.dictionaries(st.tuples(st.sampled_from(["c", "d"]), st.sampled_from([1, 2])), st.integers(0, 40), min_size=1)


@given(last, st.data())
def test_no_row_is_skipped_that_is_read_and_of_sealed_brokers_none_is_read_that_no_seal_asks_for(
    ends: dict[tuple[str, int], int], draw: st.DataObject
):
    sealed = draw.draw(st.sets(st.sampled_from(sorted(ends))))
    instants = {broker: draw.draw(st.integers(0, ends[broker])) * HOUR_US for broker in sealed}
    bounds = Bounds(instants, {broker: hours * HOUR_US for broker, hours in ends.items()})
    rows = [(*broker, hour) for broker, hours in ends.items() for hour in range(hours + 1)]
    table = pa.table(
        {
            "cluster_id": pa.array([row[0] for row in rows]),
            "broker_id": pa.array([row[1] for row in rows], pa.int32()),
            "time": pa.array([row[2] * HOUR_US for row in rows], pa.timestamp("us", "UTC")),
        }
    )
    where = bounds.where("time")
    read = rows if where is None else [row for row in rows if row in _rows_of(table.filter(where))]
    wanted = [row for row in rows if row[2] * HOUR_US >= instants.get((row[0], row[1]), 0)]
    assert set(wanted) <= set(read)
    # The obvious version: an hour of a sealed broker is read only if some sealed broker still wrote, or had to be read.
    asked = {
        hour for broker, since_us in instants.items() for hour in range(since_us // HOUR_US, ends[broker] + 2)
    } | set(range(max((end_of(bounds), 0)), 42))
    assert all((row[0], row[1]) not in sealed or row[2] in asked for row in read)


def end_of(bounds: Bounds) -> int:
    """The hour from which on nothing is skipped: where the last span begins."""
    return bounds.spans()[-1][0] // HOUR_US if bounds.spans() else 0


def _rows_of(table: pa.Table) -> set[tuple[str, int, int]]:
    return {(row["cluster_id"], row["broker_id"], int(row["time"].timestamp()) // 3600) for row in table.to_pylist()}
