"""Where the time of requests went, as decimal arithmetic has it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.timing.latency.stage import list_columns, make_phases
from highwater.schemas import silver

PARTS = [name for name in list_columns(silver.REQUESTS) if name.endswith("_ms") and name != "total_time_ms"]
MICROS = st.integers(0, 100_000_000)


@given(total_us=MICROS, parts_us=st.lists(MICROS, min_size=len(PARTS), max_size=len(PARTS)))
def test_what_no_phase_accounts_for_is_exact(total_us: int, parts_us: list[int]):
    row = {
        "cluster_id": "c",
        "api": "METADATA",
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "total_time_ms": total_us / 1000,
    }
    row |= {name: us / 1000 for name, us in zip(PARTS, parts_us, strict=True)}
    schema = pa.schema(
        [silver.REQUESTS.arrow_schema.field(name).with_nullable(True) for name in list_columns(silver.REQUESTS)]
    )
    (got,) = make_phases(pa.RecordBatch.from_pylist([row], schema)).to_pylist()
    assert got["broker_id"] == -1
    assert got["unaccounted_ms"] == float(Decimal(total_us - sum(parts_us)) / 1000)
    assert str(got["unaccounted_ms"]) != "-0.0"
