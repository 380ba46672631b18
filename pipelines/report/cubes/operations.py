"""Operations per interval, from batches of ``gold.delayed_operations``. Pure.

What is what stands in `pipelines.report.queries.operations`; a test holds both against each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.values import UNKNOWN_BROKER
from pipelines.report.cubes.buckets import buckets_of
from pipelines.report.cubes.fold import Cells, Fold, cells_of
from pipelines.report.cubes.intervals import Intervals
from pipelines.report.figures import COORDINATOR, FETCH, PRODUCE, SPLIT, WITHIN_MS
from schemas.gold import CLASSES

COLUMNS = (
    *("cluster_id", "broker_id", "arrival_time", "line_time", "operation", "api", "client_id", "operation_id"),
    *("succeeded", "error_codes", "residual_ms", "class", "closing_topic", "closing_partition", "closing_replica"),
    *("closing_role", "wait_ms", "wait_without_closing_ms", *SPLIT.values()),
)
#: Rows of each list on the page.
SLOW_MAX = 4000
ERRORS_MAX = 2000
#: Operations that have a story of their own on the page: the worst, and the worst of each interval.
STORIES_MAX = 50

_CELL = ("interval", "kind", "cluster_id", "broker_id", "replica", "succeeded")
_TOTAL = ("interval", "kind", "cluster_id", "replica", "succeeded")
_TOTALS = ("total_bucket", "without_bucket")
_PARTS = tuple(f"{name}_us" for name in SPLIT)
SUMS = (
    *("operations", "slow", "wait_us", "slow_wait_us", *CLASSES, *(f"within_{n}" for n in WITHIN_MS), "split", *_PARTS),
)
_SLOW_KEYS = (*_CELL, "closing_topic", "closing_partition", "client_id")
_ERROR_KEYS = ("interval", "cluster_id", "broker_id", "api", "client_id", "code")
_WORST = ("kind", "operation_id", "arrival_time", "interval", "rank", "size")


@dataclass
class OperationFold:
    """Takes in batches of operations."""

    intervals: Intervals
    slow_ms: int  #: a wait is slow beyond it
    _cells: Fold = field(default_factory=lambda: Fold((*_CELL, "wait_bucket"), SUMS))
    _totals: Fold = field(default_factory=lambda: Fold((*_TOTAL, *_TOTALS), ("operations",)))
    _slow: Fold = field(
        default_factory=lambda: Fold(_SLOW_KEYS, ("slow_wait_us", "operations"), ("wait_us",), SLOW_MAX)
    )
    _errors: Fold = field(default_factory=lambda: Fold(_ERROR_KEYS, ("operations",), (), ERRORS_MAX))
    _worst: list[pa.Table] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        """Take in a batch."""
        if not rows.num_rows:
            return
        seen = _derived(rows, self.intervals, self.slow_ms)
        self._cells.add(seen)
        appends = seen.filter(pc.not_equal(seen["kind"], FETCH))
        self._totals.add(appends)
        slow = appends.filter(pc.equal(appends["slow"], 1))
        if slow.num_rows:
            self._slow.add(slow)
        failed = _by_code(appends)
        if failed.num_rows:
            self._errors.add(failed)
        self._worst = [_worst_of(pa.concat_tables([*self._worst, _ranked(appends)]))]

    def cells(self) -> Cells:
        """A row per cell, and the histogram of its waits."""
        rows, histograms = cells_of(self._cells.result(), _CELL, SUMS, ("wait_bucket",), "operations")
        return rows, histograms["wait_bucket"]

    def totals(self) -> tuple[list[dict[str, Any]], list[Counter[int]], list[Counter[int]]]:
        """A row per closing replica; histograms of arrival to response sent, and of the same without the replica."""
        rows, histograms = cells_of(self._totals.result(), _TOTAL, ("operations",), _TOTALS, "operations")
        return rows, histograms["total_bucket"], histograms["without_bucket"]

    def slow(self) -> list[dict[str, Any]]:
        """Slow operations by partition and client, the worst first."""
        return _largest(self._slow.result(), "slow_wait_us")

    def errors(self) -> list[dict[str, Any]]:
        """Answers with an error, the most frequent first."""
        return _largest(self._errors.result(), "operations")

    def worst(self) -> dict[str, int]:
        """Ids of the operations whose story is told, the worst first, and when they arrived, microseconds."""
        if not self._worst:
            return {}
        ids, arrivals = self._worst[0]["operation_id"], self._worst[0]["arrival_time"].cast(pa.int64())
        return dict(zip(ids.to_pylist(), arrivals.to_pylist(), strict=True))


def _largest(table: pa.Table | None, by: str) -> list[dict[str, Any]]:
    if table is None:
        return []
    # Ties in an order of their own: equal lakes are equal pages.
    keys = [name for name in table.column_names if name != by]
    return list(table.sort_by([(by, "descending"), *((name, "ascending") for name in keys)]).to_pylist())


def _derived(rows: pa.Table, intervals: Intervals, slow_ms: int) -> pa.Table:
    """The columns that are added up, one number each."""
    arrival = rows["arrival_time"].cast(pa.int64())
    is_fetch = pc.equal(rows["operation"], "fetch")
    appended = pc.if_else(pc.equal(rows["api"], "PRODUCE"), PRODUCE, COORDINATOR)
    wait = rows["wait_ms"]
    total = pc.divide(pc.cast(pc.subtract(rows["line_time"].cast(pa.int64()), arrival), pa.float64()), 1000.0)
    shorter = pc.min_element_wise(
        total, pc.add(pc.subtract(total, wait), rows["wait_without_closing_ms"]), skip_nulls=False
    )
    leader_closed = pc.if_else(pc.equal(rows["closing_role"], "leader"), rows["broker_id"], UNKNOWN_BROKER)
    blamed = pc.coalesce(rows["closing_replica"], pc.cast(leader_closed, pa.int32()), pa.scalar(UNKNOWN_BROKER))
    slow_wait = pc.max_element_wise(pc.subtract(wait, float(slow_ms)), pa.scalar(0.0))
    replayed = pc.not_equal(rows["class"], "unobservable")
    near = pc.and_(pc.or_(is_fetch, rows["succeeded"]), replayed)
    distance = pc.abs(rows["residual_ms"])
    parts = [rows[name] for name in SPLIT.values()]
    is_split = _any([pc.is_valid(part) for part in parts])
    nothing = pa.scalar(None, pa.int32())
    columns: dict[str, Any] = {
        "interval": pc.cast(
            pc.divide(pc.subtract(arrival, intervals.start_s * 1_000_000), intervals.length_s * 10**6), pa.int32()
        ),
        "kind": pc.if_else(is_fetch, FETCH, appended),
        "replica": pc.if_else(is_fetch, UNKNOWN_BROKER, blamed).cast(pa.int32()),
        "wait_bucket": pc.if_else(is_fetch, nothing, buckets_of(wait)),
        "total_bucket": pc.if_else(is_fetch, nothing, buckets_of(total)),
        "without_bucket": pc.if_else(is_fetch, nothing, buckets_of(pc.coalesce(shorter, total))),
        "operations": pa.array([1] * rows.num_rows, pa.int64()),
        "slow": _as_count(pc.greater(wait, float(slow_ms))),
        "wait_us": _us(wait),
        "slow_wait_us": _us(slow_wait),
        **{name: _as_count(pc.equal(rows["class"], name)) for name in CLASSES},
        **{f"within_{n}": _as_count(pc.and_(near, pc.less_equal(distance, float(n)))) for n in WITHIN_MS},
        "split": _as_count(is_split),
        **{name: _us(pc.coalesce(part, pa.scalar(0.0))) for name, part in zip(_PARTS, parts, strict=True)},
        "rank": pc.case_when(
            pc.make_struct(pc.equal(rows["class"], "contradicted"), pc.equal(rows["class"], "late")),
            pa.scalar(0),
            pa.scalar(1),
            pa.scalar(2),
        ),
        "distance": pc.coalesce(distance, pa.scalar(0.0)),
    }
    same = ("cluster_id", "broker_id", "succeeded", "closing_topic", "closing_partition", "client_id")
    named = {name: rows[name] for name in (*same, "api", "operation_id", "arrival_time", "error_codes", "wait_ms")}
    return pa.table({**named, **columns})


def _as_count(condition: Any) -> Any:
    return pc.cast(pc.fill_null(condition, False), pa.int64())


def _us(durations_ms: Any) -> Any:
    return pc.cast(pc.round(pc.multiply(durations_ms, 1000.0)), pa.int64())


def _any(conditions: Sequence[Any]) -> Any:
    first, *others = conditions
    for other in others:
        first = pc.or_(first, other)
    return first


def _by_code(appends: pa.Table) -> pa.Table:
    """A row per operation and error code of it."""
    codes = appends["error_codes"].combine_chunks()
    those = appends.select([name for name in _ERROR_KEYS if name != "code"] + ["operations"])
    spread = those.take(pc.list_parent_indices(codes)).append_column("code", pc.list_flatten(codes))
    return spread.filter(pc.not_equal(spread["code"], 0))


def _ranked(appends: pa.Table) -> pa.Table:
    """Contradicted, then late (largest distance first), then the longest waits: as in ``report.json``."""
    size = pc.if_else(pc.less(appends["rank"], 2), appends["distance"], appends["wait_ms"])
    return appends.append_column("size", size).select(list(_WORST))


def _worst_of(ranked: pa.Table) -> pa.Table:
    """At most `STORIES_MAX`, of them half the worst of all, and half the worst of their interval."""
    ordered = ranked.sort_by([("rank", "ascending"), ("size", "descending"), ("operation_id", "ascending")])
    half = STORIES_MAX // 2
    first, rest = ordered.slice(0, half), ordered.slice(half)
    if not rest.num_rows:
        return first
    seen: set[int] = set(first["interval"].to_pylist())
    chosen = []
    for place, interval in enumerate(rest["interval"].to_pylist()):
        if interval not in seen:
            seen.add(interval)
            chosen.append(place)
            if len(chosen) == STORIES_MAX - half:
                break
    return pa.concat_tables([first, rest.take(pa.array(chosen, pa.int64()))])
