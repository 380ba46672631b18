"""Aggregates per interval against an oracle of plain Python over the same rows."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import queries
from highwater.pipelines.report.cubes import buckets
from highwater.pipelines.report.cubes import queries as of_cubes
from highwater.pipelines.report.cubes.assemble import make_cubes, read_cell_rows
from highwater.pipelines.report.cubes.intervals import (
    CELLS_MAX,
    INTERVALS_FEW,
    INTERVALS_MAX,
    Intervals,
    choose_intervals,
)
from highwater.pipelines.report.cubes.parts import Cubes
from highwater.pipelines.report.cubes.queries import STORIES_MAX
from highwater.pipelines.report.figures import SPLIT
from highwater.schemas.gold import CLASSES, DELAYED_OPERATIONS, REQUEST_PHASES
from tests.unit.report import ranges
from tests.unit.report.rows import (
    START,
    Row,
    quantile,
    random_appends,
    random_fetches,
    random_operations,
    random_requests,
)

SLOW_MS = 20
INTERVALS = Intervals(int(START.timestamp()), 1, 60)
PRODUCES = random_operations(seed=7, size=600)
OTHERS = random_fetches(seed=9, size=300) + random_appends(seed=8, size=200)
REQUESTS = random_requests(seed=3, size=500)


def reader_over(operations: list[Row], requests: list[Row]) -> LakeReader:
    reader = LakeReader(Path("lake"), {})
    for spec, rows in ((DELAYED_OPERATIONS, operations), (REQUEST_PHASES, requests)):
        reader.show(spec.full_name, pa.Table.from_pylist(rows, spec.arrow_schema))
    return reader


def made_of(operations: list[Row], requests: list[Row]) -> Cubes:
    ask = reader_over(operations, requests).rows
    rows = read_cell_rows(ask, queries.select_operations("true", SLOW_MS), queries.select_requests("true"), INTERVALS)
    return make_cubes(rows, INTERVALS)


def stories_of(operations: list[Row]) -> dict[str, int]:
    statement = of_cubes.select_stories(queries.select_operations("true", SLOW_MS), INTERVALS)
    return {row["operation_id"]: row["arrival_us"] for row in reader_over(operations, []).rows(statement)}


@pytest.fixture(scope="module")
def made() -> Cubes:
    return made_of(PRODUCES + OTHERS, REQUESTS)


def second_of(row: Row) -> int:
    return int((row["arrival_time"] - START) // timedelta(seconds=1))


def total_of(row: Row) -> float:
    return float((row["line_time"] - row["arrival_time"]) / timedelta(milliseconds=1))


def blamed_of(row: Row) -> int:
    return int(row["closing_replica"] or (row["broker_id"] if row["closing_role"] == "leader" else -1))


def near(exact: float | None, accuracy: float) -> Any:
    return None if exact is None else pytest.approx(exact, rel=accuracy + 0.001, abs=0.01)


@pytest.mark.parametrize(("first", "last"), [(0, 60), (15, 45), (7, 8), (59, 60)])
def test_a_ranges_figures_are_those_of_its_rows(made: Cubes, first: int, last: int) -> None:
    rows = [row for row in PRODUCES if first <= second_of(row) < last]
    good = [row for row in rows if row["succeeded"]]
    found = ranges.operations(made, "produce", first, last)
    counts = found[None].counts
    assert counts["observed"] == len(rows)
    assert counts["with_error"] == len(rows) - len(good)
    assert {name: counts[name] for name in CLASSES} == {
        name: sum(row["class"] == name for row in rows) for name in CLASSES
    }
    for n in (1, 5, 20):
        near_enough = [row for row in good if row["residual_ms"] is not None and abs(row["residual_ms"]) <= n]
        assert counts[f"within_{n}"] == len(near_enough)
    split = [row for row in rows if row["wait_completion_ms"] is not None]
    assert counts["split"] == len(split)
    for place, column in enumerate(SPLIT.values()):
        whole = sum(round((row.get(column) or 0.0) * 1000) for row in split)
        assert counts[f"part {place}"] == pytest.approx(whole, abs=len(split))
    assert set(found) - {None} == {blamed_of(row) for row in good}
    for broker_id, sums in found.items():
        own = good if broker_id is None else [row for row in good if blamed_of(row) == broker_id]
        assert sums.counts["slow"] == sum(row["wait_ms"] > SLOW_MS for row in own)
        assert sums.counts["wait_us"] == sum(round(row["wait_ms"] * 1000) for row in own)
        slow = sum(round(max(row["wait_ms"] - SLOW_MS, 0) * 1000) for row in own)
        assert sums.counts["slow_wait_us"] == pytest.approx(slow, abs=len(own))
        for share in (0.5, 0.95, 0.99):
            read = ranges.quantile(sums.wait, share, made.growth)
            assert read == near(quantile([row["wait_ms"] for row in own], share), made.accuracy)
    for broker_id in found.keys() - {None, -1}:
        spared = [
            total_of(row) - row["wait_ms"] + row["wait_without_closing_ms"]
            if blamed_of(row) == broker_id and row["wait_without_closing_ms"] is not None
            else total_of(row)
            for row in good
        ]
        read = ranges.quantile(ranges.without(made, found, broker_id), 0.99, made.growth)
        assert read == near(quantile(spared, 0.99), made.accuracy)


def test_requests_by_kind(made: Cubes) -> None:
    kinds: Counter[str] = Counter()
    for at, kind in enumerate(made.requests.kind):
        kinds[kind] += made.requests.requests[at]
    expected = Counter(kind_of(row) for row in REQUESTS)
    assert kinds == expected
    of_all = [row for row in REQUESTS if kind_of(row) == "produce_acks_all"]
    histogram: Counter[int] = Counter()
    remote = 0
    for at, kind in enumerate(made.requests.kind):
        if kind == "produce_acks_all":
            histogram.update(ranges.unpacked(made.requests.total[at]))
            remote += made.requests.phases_us[at][2]
    assert remote == sum(round(row["remote_time_ms"] * 1000) for row in of_all)
    exact = quantile([row["total_time_ms"] for row in of_all], 0.99)
    assert ranges.quantile(histogram, 0.99, made.growth) == near(exact, made.accuracy)
    assert sum(made.clients.requests) == len(REQUESTS)


def kind_of(row: Row) -> str:
    if row["api"] == "PRODUCE":
        return "produce_acks_all" if row["acks"] == -1 else "produce_acks_1"
    if row["api"] == "FETCH":
        return "fetch_follower" if row["replica_id"] >= 0 else "fetch_consumer"
    return "end_txn" if row["api"] == "END_TXN" else "other"


def test_slow_operations_and_errors(made: Cubes) -> None:
    appends = PRODUCES + [row for row in OTHERS if row["operation"] == "produce"]
    assert sum(made.slow.operations) == sum(row["wait_ms"] > SLOW_MS for row in appends)
    assert made.slow.slow_wait_us == sorted(made.slow.slow_wait_us, reverse=True)
    assert made.slow.left_out.rows == 0
    assert sum(made.errors.operations) == sum(not row["succeeded"] for row in appends)
    assert set(made.errors.code) == {19}


def test_rows_beyond_a_limit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_cubes, "SLOW_MAX", 5)
    limited = made_of(PRODUCES, [])
    whole = sum(row["wait_ms"] > SLOW_MS for row in PRODUCES)
    assert len(limited.slow.interval) == 5
    assert 0 < limited.slow.left_out.rows <= whole
    slow = sum(round(max(row["wait_ms"] - SLOW_MS, 0) * 1000) for row in PRODUCES)
    assert sum(limited.slow.slow_wait_us) + limited.slow.left_out.amount == pytest.approx(slow, abs=len(PRODUCES))


def test_stories_are_of_the_worst_and_of_the_worst_of_each_interval() -> None:
    appends = PRODUCES + [row for row in OTHERS if row["operation"] == "produce"]

    def badness(row: Row) -> tuple[int, float, str]:
        rank = {"contradicted": 0, "late": 1}.get(row["class"], 2)
        size = abs(row["residual_ms"] or 0.0) if rank < 2 else row["wait_ms"]
        return rank, -size, row["operation_id"]

    stories = stories_of(PRODUCES + OTHERS)
    chosen = list(stories)
    ordered = [row["operation_id"] for row in sorted(appends, key=badness)]
    assert len(chosen) == STORIES_MAX
    assert chosen[: STORIES_MAX // 2] == ordered[: STORIES_MAX // 2]
    assert set(chosen) <= set(ordered)
    arrivals = {row["operation_id"]: row["arrival_time"].timestamp() for row in appends}
    assert stories == {name: pytest.approx(arrivals[name] * 1e6, abs=1) for name in chosen}


def test_nothing_at_all() -> None:
    empty = made_of([], [])
    assert empty.nodes == []
    assert empty.operations.interval == []
    assert stories_of([]) == {}


# -------------------------------------------------------------------- histograms


@given(
    st.lists(st.floats(0, 600_000), min_size=1, max_size=60), st.integers(0, 3), st.sampled_from([0.0, 0.5, 0.99, 1.0])
)
def test_a_quantile_is_as_near_as_is_said(durations: list[float], merges: int, share: float) -> None:
    histogram = Counter(map(ranges.bucket_of, durations))
    rows = ", ".join(f"({duration!r}::DOUBLE)" for duration in durations)
    asked = duckdb.sql(f"SELECT {buckets.compute_bucket('ms')} FROM (VALUES {rows}) AS durations(ms)").fetchall()
    assert histogram == Counter(number for (number,) in asked)
    shrunk = Counter(ranges.unpacked(buckets.pack_buckets(histogram, merges)))
    ratio = buckets.growth(buckets.FINEST) ** (2**merges)
    read = ranges.quantile(shrunk, share, ratio)
    assert read == pytest.approx(quantile(durations, share), rel=buckets.compute_accuracy(ratio) + 1e-9, abs=0.01)


def test_histograms_are_merged_until_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = Counter(dict.fromkeys(range(1, 401), 1))
    assert buckets.count_merges([histogram]) == 0
    monkeypatch.setattr(buckets, "ENTRIES_MAX", 110)
    assert buckets.count_merges([histogram]) == 2
    monkeypatch.setattr(buckets, "ENTRIES_MAX", 1)
    assert buckets.count_merges([histogram]) == buckets.MERGES_MAX


# --------------------------------------------------------------------- intervals


@given(st.integers(0, 2**31), st.integers(0, 400 * 86400), st.integers(0, 200))
def test_intervals_hold_the_span_and_are_few(first_s: int, length_s: int, brokers: int) -> None:
    found = choose_intervals(first_s * 1_000_000, (first_s + length_s) * 1_000_000, brokers)
    assert found.start_s <= first_s
    assert found.end_s > first_s + length_s
    assert found.start_s % found.length_s == 0
    assert found.number <= INTERVALS_MAX
    assert found.number * brokers * min(brokers, 10) <= max(CELLS_MAX, INTERVALS_FEW * brokers * 10)


def test_a_length_is_chosen_at_once_however_long_the_span_is() -> None:
    for years in (1, 100, 8_000):
        for brokers in (1, 100):
            found = choose_intervals(0, years * 365 * 86_400 * 1_000_000, brokers)
            assert found.number <= INTERVALS_MAX
            assert found.number >= INTERVALS_FEW - 2
