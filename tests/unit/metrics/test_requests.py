"""RequestMetrics, against an obvious version of the same."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from math import ceil
from statistics import mean, stdev
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.kafka.errors import error_name
from pipelines.lake.parquet import columns_schema
from pipelines.metrics import requests as r
from pipelines.metrics.mbeans import REQUEST_TIMES, object_name
from pipelines.metrics.requests import RequestCounts
from schemas import silver
from schemas.metrics import PERCENTILES

MINUTE_US = 60_000_000
BEGIN = datetime(2026, 11, 20, tzinfo=UTC)
NODE = {"cluster_id": "c", "broker_id": 1}


def _request(second: int, total_ms: float = 1.0, **more: Any) -> dict[str, Any]:
    times = dict.fromkeys(REQUEST_TIMES, 0.0) | {"total_time_ms": total_ms}
    return {**NODE, "time": BEGIN + timedelta(seconds=second), "api_version": 9, **times, **more}


def _table(spec: Any, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=columns_schema(spec, columns))


def _produces(rows: list[dict[str, Any]]) -> pa.Table:
    made = [{"api": "PRODUCE", "partitions": [{"topic": "t", "partition": 0, "error_code": 0}], **row} for row in rows]
    return _table(silver.PRODUCE_REQUESTS, r.PRODUCE_COLUMNS, made)


def _rows(counts: RequestCounts, **versions: tuple[int, ...]) -> dict[tuple[int, str], dict[str, Any]]:
    found = {}
    for row in counts.rows({("c", 1): versions.get("version", (3, 9, 1))}):
        second = row["interval_start"] // 1_000_000 - int(BEGIN.timestamp())
        assert (second, row["mbean"]) not in found
        found[second, row["mbean"]] = row
    return found


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 200), st.floats(0, 40_000).map(lambda n: round(n, 3))), min_size=1))
def test_durations_are_those_of_the_lines_of_an_interval(requests: list[tuple[int, float]]) -> None:
    counts = RequestCounts(MINUTE_US)
    half = len(requests) // 2
    for some in (requests[:half], requests[half:]):
        counts.produces(_produces([_request(*request) for request in some]))
    expected = defaultdict(list)
    for second, total_ms in requests:
        expected[second // 60 * 60].append(total_ms)
    rows = _rows(counts)
    mbean = "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce"
    assert {second for second, name in rows if name == mbean} == expected.keys()
    for second, durations in expected.items():
        row = rows[second, mbean]
        assert (row["event_count"], row["min_ms"], row["max_ms"]) == (len(durations), min(durations), max(durations))
        assert row["mean_ms"] == pytest.approx(mean(durations), abs=1e-5)
        deviation = stdev(durations) if len(durations) > 1 else 0.0
        assert row["stddev_ms"] == pytest.approx(deviation, abs=0.02)
        for name, share in PERCENTILES.items():
            exact = sorted(durations)[ceil(share * len(durations)) - 1]
            assert row[name] == pytest.approx(exact, rel=0.0201, abs=0.011)


def test_a_fetch_counts_as_such_and_as_its_readers() -> None:
    counts = RequestCounts(MINUTE_US)
    answers = [{"topic": "t", "partition": 0, "error_code": code} for code in (0, 0, 6)]
    rows = [
        _request(1, api="FETCH", replica_id=2, error_code=0, responses=answers),
        _request(2, api="FETCH", replica_id=-1, error_code=0, responses=[]),
    ]
    counts.fetches(_table(silver.FETCH_REQUESTS, r.FETCH_COLUMNS, rows))
    found = {name: row["event_count"] for (_, name), row in _rows(counts).items() if "PerSec" in name}
    prefix = "kafka.network:type=RequestMetrics,name="
    assert found == {
        f"{prefix}RequestsPerSec,request=Fetch,version=9": 2,
        f"{prefix}RequestsPerSec,request=FetchFollower,version=9": 1,
        f"{prefix}RequestsPerSec,request=FetchConsumer,version=9": 1,
        f"{prefix}ErrorsPerSec,request=Fetch,error=NONE": 4,
        f"{prefix}ErrorsPerSec,request=Fetch,error=NOT_LEADER_OR_FOLLOWER": 1,
    }


def test_other_requests_tell_each_error_at_least_once() -> None:
    counts = RequestCounts(MINUTE_US)
    rows = [
        _request(1, api="ADD_PARTITIONS_TO_TXN", error_codes=[51], verify_only=True),
        _request(1, api="VOTE", error_codes=None),
    ]
    counts.others(_table(silver.REQUESTS, r.OTHER_COLUMNS, rows))
    rows_of = _rows(counts)
    errors = {name: row for (_, name), row in rows_of.items() if row["name"] == "ErrorsPerSec"}
    ((name, row),) = errors.items()
    assert object_name(name).tags == {"request": "AddPartitionsToTxn", "error": "CONCURRENT_TRANSACTIONS"}
    assert (row["measured"], row["measured_reason"]) == ("at_least", "each_error_once")
    requests = {object_name(name).tags["request"] for _, name in rows_of if "TotalTimeMs" in name}
    assert requests == {"AddPartitionsToTxnVerification", "Vote"}


def test_a_release_before_2_0_has_no_versions_of_requests() -> None:
    counts = RequestCounts(MINUTE_US)
    counts.produces(_produces([_request(1), _request(2, api_version=3)]))
    found = {n: row["event_count"] for (_, n), row in _rows(counts, version=(1, 1, 1)).items() if "RequestsPer" in n}
    assert found == {"kafka.network:type=RequestMetrics,name=RequestsPerSec,request=Produce": 2}


def test_what_was_not_logged_has_no_row() -> None:
    assert not _rows(RequestCounts(MINUTE_US))


@pytest.mark.parametrize(("code", "name"), [(-1, "UNKNOWN_SERVER_ERROR"), (0, "NONE"), (74, "FENCED_LEADER_EPOCH")])
def test_errors_have_their_names(code: int, name: str) -> None:
    assert error_name(code) == name
    assert error_name(999) == "ERROR_999"
