"""Requests per interval, from batches of silver's tables of requests: Kafka's RequestMetrics. Pure.

Kafka updates these metrics in the method that writes the request's line, so an interval has the lines that were written
within it, whenever their requests arrived.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.kafka.errors import error_name
from pipelines.metrics import mbeans
from pipelines.metrics.fold import Sums, cells_of
from pipelines.metrics.mbeans import REQUEST_TIMES
from pipelines.report.cubes.buckets import SHORTEST_MS, buckets_of, middle_of
from schemas.metrics import AT_LEAST, EXACT, PERCENTILES

#: What tells one request from another.
IDENTITY: Final = ("cluster_id", "broker_id", "connection", "correlation_id", "time", "api")
#: Columns that all tables of requests have.
COLUMNS: Final = (*IDENTITY, "api_version", *REQUEST_TIMES)
PRODUCE_COLUMNS: Final = (*COLUMNS, "partitions")
FETCH_COLUMNS: Final = (*COLUMNS, "replica_id", "error_code", "responses")
OTHER_COLUMNS: Final = (*COLUMNS, "error_codes", "verify_only")

FETCH: Final = "Fetch"
_FOLLOWERS: Final = "FetchFollower"
_CONSUMERS: Final = "FetchConsumer"
_VERIFIED = "AddPartitionsToTxnVerification"
_NODE = ("cluster_id", "broker_id", "interval")
_TIMED = (*_NODE, "metric", "request")
_SUMS = ("requests", "sum_us", "hundredths", "sum_of_squares")
#: The shortest is negated, so that of both the greatest counts.
_EXTREMES = ("longest_ms", "shortest_ms")
_COUNTED = (*_NODE, "request", "version")
_FAILED = (*_NODE, "request", "code")
_FOLDS: Final = ("_times", "_requests", "_errors")
#: By version since KIP-272.
_BY_VERSION = (2, 0)

Row = dict[str, Any]


@dataclass
class RequestCounts:
    """Takes in batches of requests, each request once."""

    length_us: int  #: of intervals
    _times: Sums = field(default_factory=lambda: Sums((*_TIMED, "bucket"), _SUMS, _EXTREMES))
    _requests: Sums = field(default_factory=lambda: Sums(_COUNTED, ("requests",)))
    _errors: Sums = field(default_factory=lambda: Sums(_FAILED, ("errors",)))

    def produces(self, rows: pa.Table) -> None:
        """Take in rows of ``silver.produce_requests``."""
        seen = self._add(rows, request_names(rows["api"]))
        parents, parts = _items(seen["partitions"])
        self._failed(seen.take(parents), parts.field("error_code"))

    def fetches(self, rows: pa.Table) -> None:
        """Take in rows of ``silver.fetch_requests``: each counts as Fetch, and as its reader's."""
        followers = pc.fill_null(pc.greater_equal(rows["replica_id"], 0), False)
        seen = _of(self._add(rows, pc.if_else(followers, _FOLLOWERS, _CONSUMERS)), FETCH)
        self._failed(seen, seen["error_code"])
        parents, parts = _items(seen["responses"])
        self._failed(seen.take(parents), parts.field("error_code"))

    def others(self, rows: pa.Table) -> None:
        """Take in rows of ``silver.requests``."""
        names = pc.if_else(pc.fill_null(rows["verify_only"], False), _VERIFIED, request_names(rows["api"]))
        seen = self._add(rows, names)
        # Errors are counted by API alone.
        seen = _of(seen, request_names(rows["api"]))
        parents, codes = _items(seen["error_codes"])
        self._failed(seen.take(parents), codes)

    def _add(self, rows: pa.Table, names: Any) -> pa.Table:
        interval = pc.multiply(pc.divide(rows["time"].cast(pa.int64()), self.length_us), self.length_us)
        seen = rows.append_column("interval", interval).append_column("request", names)
        if not seen.num_rows:
            return seen
        version = pc.coalesce(seen["api_version"], pa.scalar(-1, pa.int32()))
        ones = pa.array([1] * seen.num_rows, pa.int64())
        key = seen.select([*_NODE, "request"])
        self._requests.add(key.append_column("version", version).append_column("requests", ones))
        self._times.add(pa.concat_tables([_timed(key, name, seen[name], ones) for name in REQUEST_TIMES]))
        return seen

    def _failed(self, seen: pa.Table, codes: Any) -> None:
        ones = pa.array([1] * seen.num_rows, pa.int64())
        key = seen.select([*_NODE, "request"])
        failed = key.append_column("code", codes).append_column("errors", ones).filter(pc.is_valid(codes))
        if failed.num_rows:
            self._errors.add(failed)

    def parts(self) -> Iterator[tuple[str, pa.Table]]:
        """What was taken in, added up, by name: for another one to `join`."""
        for name in _FOLDS:
            table = getattr(self, name).result()
            if table is not None:
                yield name, table

    def join(self, name: str, part: pa.Table) -> None:
        """Take in what another one has taken in."""
        getattr(self, name).add(part)

    def rows(self, versions: Mapping[tuple[str, int], tuple[int, ...]]) -> Iterator[Row]:
        """Rows of ``gold.broker_metrics`` without those columns that all have; null where a metric has no such value.

        Args:
            versions: Kafka version by (cluster, broker); one that is not known is taken for a recent one.
        """
        yield from self._of_times()
        counts, _ = cells_of(_with_fetch(self._requests.result()), _COUNTED, ("requests",), (), "requests")
        by_name: dict[tuple[Any, ...], int] = {}
        for row in counts:
            known = versions.get((row["cluster_id"], row["broker_id"]), _BY_VERSION)
            version = row["version"] if known >= _BY_VERSION and row["version"] >= 0 else None
            key = (*_place(row), row["request"], version)
            by_name[key] = by_name.get(key, 0) + row["requests"]
        for (node, start_us, request, version), count in by_name.items():
            yield mbeans.REQUESTS.row(node, start_us, EXACT, None, event_count=count, request=request, version=version)
        errors, _ = cells_of(self._errors.result(), _FAILED, ("errors",), (), "errors")
        for row in errors:
            is_counted = row["request"] in ("Produce", FETCH)
            yield mbeans.ERRORS.row(
                *_place(row),
                EXACT if is_counted else AT_LEAST,
                None if is_counted else "each_error_once",
                event_count=row["errors"],
                request=row["request"],
                error=error_name(row["code"]),
            )

    def _of_times(self) -> Iterator[Row]:
        table = _with_fetch(self._times.result())
        cells, histograms = cells_of(table, _TIMED, _SUMS, ("bucket",), "requests", _EXTREMES)
        metrics = list(REQUEST_TIMES.values())
        for row, histogram in zip(cells, histograms["bucket"], strict=True):
            most, least = row["longest_ms"], -row["shortest_ms"]
            values = {
                "event_count": row["requests"],
                "mean_ms": round(row["sum_us"] / row["requests"] / 1000, 6),
                "min_ms": least,
                "max_ms": most,
                "stddev_ms": _deviation(row["requests"], row["hundredths"], row["sum_of_squares"]) / 100,
                **{name: min(max(value, least), most) for name, value in _percentiles(histogram).items()},
            }
            yield metrics[row["metric"]].row(*_place(row), EXACT, None, request=row["request"], **values)


def _of(rows: pa.Table, request: Any) -> pa.Table:
    """The rows, as of another request or requests."""
    names = pa.repeat(request, rows.num_rows) if isinstance(request, str) else request
    return rows.set_column(rows.schema.get_field_index("request"), "request", names)


def _with_fetch(cells: pa.Table | None) -> pa.Table | None:
    """Cells, and those of all fetches, whoever sent them."""
    if cells is None:
        return None
    fetches = cells.filter(pc.is_in(cells["request"], pa.array([_FOLLOWERS, _CONSUMERS])))
    return pa.concat_tables([cells, _of(fetches, FETCH)])


def request_names(apis: pa.ChunkedArray) -> pa.ChunkedArray:
    """APIs as Kafka's metrics name them (``ApiKeys.name``): LIST_OFFSETS is ListOffsets."""
    names = {api: "".join(word.capitalize() for word in api.split("_")) for api in pc.unique(apis).to_pylist()}
    values = pa.array(list(names.values()), pa.string())
    return values.take(pc.index_in(apis, value_set=pa.array(list(names), pa.string())).combine_chunks())


def _timed(key: pa.Table, name: str, durations_ms: Any, ones: pa.Array) -> pa.Table:
    number = list(REQUEST_TIMES).index(name)
    hundredths = pc.cast(pc.round(pc.multiply(durations_ms, 100.0)), pa.int64())
    return pa.table(
        {
            **dict(zip(key.column_names, key.columns, strict=True)),
            "metric": pa.array([number] * len(ones), pa.int8()),
            # Zero is what most phases take: it has a bucket of its own, which a shortest duration would hide.
            "bucket": pc.if_else(pc.equal(durations_ms, 0.0), -1, buckets_of(durations_ms)).cast(pa.int32()),
            "requests": ones,
            # Whole numbers: sums of fractions depend on the order of the rows.
            "sum_us": pc.cast(pc.round(pc.multiply(durations_ms, 1000.0)), pa.int64()),
            "hundredths": hundredths,
            "sum_of_squares": pc.multiply(hundredths, hundredths),
            "longest_ms": durations_ms,
            "shortest_ms": pc.negate(durations_ms),
        }
    )


def _items(lists: Any) -> tuple[pa.Array, Any]:
    whole = lists.combine_chunks()
    items = pc.list_flatten(whole)
    return pc.list_parent_indices(whole), items


def _place(row: Mapping[str, Any]) -> tuple[tuple[str, int], int]:
    return (row["cluster_id"], row["broker_id"]), row["interval"]


def _deviation(count: int, total: int, squares: int) -> float:
    """Of a sample, as Yammer has it: 0 for one value."""
    if count < 2:
        return 0.0
    return round(math.sqrt(max(0, squares * count - total * total) / (count * (count - 1))), 4)


def _percentiles(histogram: Mapping[int, int]) -> dict[str, float]:
    """Each percentile's duration: the middle of the bucket that holds it."""
    total, wanted = sum(histogram.values()), list(PERCENTILES.items())
    values: dict[str, float] = {}
    passed = 0
    for bucket, count in sorted(histogram.items()):
        passed += count
        while wanted and passed >= wanted[0][1] * total:
            name, _ = wanted.pop(0)
            values[name] = 0.0 if bucket < 0 else round(middle_of(bucket), 6) if bucket else SHORTEST_MS
    return values
