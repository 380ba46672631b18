"""Who was waited for, interval by interval, beside sums over lists."""

import statistics
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.base.blobs import read_blobs
from highwater.pipelines.timing.latency.blame import (
    OPERATION_COLUMNS,
    ORDER,
    ROW_TYPES,
    SHAPES,
    BlameWorker,
    compute_percentile,
    select_appends,
)
from highwater.schemas.gold import DELAYED_OPERATIONS, REPLICA_BLAME

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
INTERVAL_S, SLOW_MS = 60, 20.0
SCHEMA = pa.schema([DELAYED_OPERATIONS.arrow_schema.field(name).with_nullable(True) for name in OPERATION_COLUMNS])


def operation(second: float, wait_ms: float, closing: int | None = 2, role: str | None = "isr_member", **more: Any):
    values = {
        "cluster_id": "c",
        "broker_id": 1,
        "arrival_time": BEGUN + timedelta(seconds=second),
        "operation": "produce",
        "api": "PRODUCE",
        "succeeded": True,
        "wait_ms": wait_ms,
        "closing_replica": closing,
        "closing_role": role,
    }
    return values | more


def blame(operations: list[dict[str, Any]], cuts: int = 1) -> list[dict[str, Any]]:
    batches = pa.Table.from_pylist(operations, SCHEMA).to_batches(max_chunksize=-(-len(operations) // cuts) or 1)
    rows = pa.Table.from_batches([select_appends(batch, INTERVAL_S) for batch in batches], _row_schema())
    ordered = rows.sort_by([(name, "ascending") for name in (*list(ROW_TYPES)[:3], *ORDER)])
    blobs = BlameWorker(INTERVAL_S, SLOW_MS)(iter(ordered.to_batches(max_chunksize=3)))
    unpacked = [(row["table"], row["rows"]) for blob in blobs for row in blob.to_pylist()]
    return read_blobs(unpacked)[REPLICA_BLAME.name]


def _row_schema() -> pa.Schema:
    return select_appends(pa.RecordBatch.from_pylist([], SCHEMA), INTERVAL_S).schema


OPERATIONS = st.lists(
    st.builds(
        operation,
        st.sampled_from((0, 1, 59.9, 60, 130)),
        st.sampled_from((0.0, 1.5, 20.0, 20.001, 400.0, 9000.0)),
        st.sampled_from((None, 1, 2, 3)),
        st.sampled_from((None, "leader", "isr_member", "left_isr")),
        api=st.sampled_from(("PRODUCE", "OFFSET_COMMIT")),
        operation=st.sampled_from(("produce", "fetch")),
        succeeded=st.booleans(),
    ),
    max_size=25,
)


@given(OPERATIONS)
def test_measures_are_sums_over_lists(operations: list[dict[str, Any]]) -> None:
    waits: dict[Any, list[float]] = defaultdict(list)
    for row in operations:
        if row["operation"] == "produce" and row["succeeded"]:
            kind = "produce" if row["api"] == "PRODUCE" else "coordinator"
            minute = BEGUN + timedelta(minutes=(row["arrival_time"] - BEGUN) // timedelta(minutes=1))
            role = row["closing_role"]
            leader = row["broker_id"] if role == "leader" else -1
            replica_id = leader if row["closing_replica"] is None else row["closing_replica"]
            waits[kind, minute, replica_id, role or "unknown"].append(row["wait_ms"])
    rows = {(row["kind"], row["interval_start"], row["replica_id"], row["role"]): row for row in blame(operations, 3)}
    assert rows.keys() == waits.keys()
    for key, row in rows.items():
        beyond = {other: [max(wait - SLOW_MS, 0) for wait in some] for other, some in waits.items()}
        of_interval = [other for other in waits if other[:2] == key[:2]]
        assert (row["operations"], row["slow_operations"]) == (len(waits[key]), sum(b > 0 for b in beyond[key]))
        assert row["wait_ms_total"] == pytest.approx(sum(waits[key]))
        assert row["slow_wait_ms_total"] == pytest.approx(sum(beyond[key]))
        assert row["wait_ms_p50"] == pytest.approx(statistics.median(waits[key]))
        slow = {other: sum(beyond[other]) for other in of_interval}
        share = slow[key] / sum(slow.values()) if sum(slow.values()) else 0
        assert row["share_slow_wait"] == pytest.approx(share)
        assert row["interval_s"] == INTERVAL_S


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from((0.5, 0.99, 0, 1)))
def test_a_percentile_lies_between_its_neighbours(values: list[float], share: float) -> None:
    assert compute_percentile(sorted(values), share) == pytest.approx(float(np.percentile(values, share * 100)))


def test_a_replica_stands_out_whatever_its_roles() -> None:
    slow = [operation(1, 2000.0, 3), operation(2, 2000.0, 3, "left_isr")]
    rows = blame([*slow, *(operation(3, 1.0, replica_id) for replica_id in (1, 2, 2, 1))])
    assert {(row["replica_id"], row["role"]): row["singled_out"] for row in rows} == {
        (1, "isr_member"): False,
        (2, "isr_member"): False,
        (3, "isr_member"): True,
        (3, "left_isr"): True,
    }


@pytest.mark.parametrize(
    "operations",
    [
        [operation(1, 2000.0, 3), operation(1, 2000.0, 2)],  # each waited half of it
        [operation(1, 3000.0, 3) for _ in range(9)],  # it closed all operations, so all the waiting is its own
        [operation(1, 500.0, 3), *(operation(1, 1.0, 2) for _ in range(9))],  # a few slow answers name nobody
        [operation(1, 9000.0, None, None), *(operation(1, 1.0, 2) for _ in range(9))],  # nobody is known
    ],
)
def test_nobody_stands_out(operations: list[dict[str, Any]]) -> None:
    assert not any(row["singled_out"] for row in blame(operations))


def test_rows_are_those_of_the_table() -> None:
    assert set(blame([operation(1, 2.0)])[0]) == set(SHAPES[REPLICA_BLAME.name].names)
