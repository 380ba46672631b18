"""Requests per interval, from batches of ``gold.request_phases``. Pure.

Kinds are those of `pipelines.report.queries.latency`; a test holds both against each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.report.cubes.buckets import buckets_of
from pipelines.report.cubes.fold import Cells, Fold, cells_of
from pipelines.report.cubes.intervals import Intervals
from pipelines.report.figures import COORDINATOR_APIS, PHASES

COLUMNS = (
    *("arrival_time", "api", "client_id", "acks", "replica_id", "total_time_ms"),
    *PHASES.values(),
)
CLIENTS_MAX = 4000
#: APIs that are only counted.
OTHER = "other"

_CELL = ("interval", "kind")
_PHASES = tuple(f"{name}_us" for name in PHASES)
SUMS = ("requests", "within_1", "total_us", *_PHASES)


@dataclass
class RequestFold:
    """Takes in batches of requests."""

    intervals: Intervals
    _cells: Fold = field(default_factory=lambda: Fold((*_CELL, "bucket"), SUMS))
    _clients: Fold = field(
        default_factory=lambda: Fold(
            ("interval", "client_id", "api"), ("requests", "total_us"), ("total_us_max",), CLIENTS_MAX
        )
    )

    def add(self, rows: pa.Table) -> None:
        """Take in a batch."""
        if rows.num_rows:
            seen = _derived(rows, self.intervals)
            self._cells.add(seen)
            self._clients.add(seen)

    def cells(self) -> Cells:
        """A row per interval and kind, and the histogram of its totals."""
        rows, histograms = cells_of(self._cells.result(), _CELL, SUMS, ("bucket",), "requests")
        return rows, histograms["bucket"]

    def clients(self) -> list[dict[str, Any]]:
        """Requests by client and API, the most frequent first."""
        table = self._clients.result()
        if table is None:
            return []
        order = [
            ("requests", "descending"),
            ("interval", "ascending"),
            ("client_id", "ascending"),
            ("api", "ascending"),
        ]
        return list(table.sort_by(order).to_pylist())


def _derived(rows: pa.Table, intervals: Intervals) -> pa.Table:
    since_start = pc.subtract(rows["arrival_time"].cast(pa.int64()), intervals.start_s * 1_000_000)
    total = rows["total_time_ms"]
    columns: dict[str, Any] = {
        "interval": pc.cast(pc.divide(since_start, intervals.length_s * 1_000_000), pa.int32()),
        "kind": _kind(rows),
        "bucket": buckets_of(total),
        "requests": pa.array([1] * rows.num_rows, pa.int64()),
        "within_1": pc.cast(pc.less_equal(pc.abs(rows["unaccounted_ms"]), 1.0005), pa.int64()),
        "total_us": _us(total),
        "total_us_max": _us(total),
        **{f"{name}_us": _us(rows[column]) for name, column in PHASES.items()},
    }
    named = {name: rows[name] for name in ("client_id", "api")}
    return pa.table({**named, **columns})


def _kind(rows: pa.Table) -> Any:
    api = rows["api"]
    produce, fetch = pc.equal(api, "PRODUCE"), pc.equal(api, "FETCH")
    of_all = pc.and_(produce, pc.fill_null(pc.equal(rows["acks"], -1), False))
    of_follower = pc.and_(fetch, pc.fill_null(pc.greater_equal(rows["replica_id"], 0), False))
    coordinators = pc.is_in(api, pa.array(COORDINATOR_APIS))
    return pc.case_when(
        pc.make_struct(of_all, produce, of_follower, fetch, coordinators),
        *("produce_acks_all", "produce_acks_1", "fetch_follower", "fetch_consumer"),
        pc.utf8_lower(api),
        OTHER,
    )


def _us(durations_ms: Any) -> Any:
    return pc.cast(pc.round(pc.multiply(durations_ms, 1000.0)), pa.int64())
