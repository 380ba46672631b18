"""Metrics of requests: read from where a run makes intervals anew, range by range, each added up batch by batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.blobs import BLOBS, pack, shape
from pipelines.base.values import instant
from pipelines.cluster.premises import Premises
from pipelines.kafka.releases import release_of
from pipelines.lake.batches import batches_of, small_rows
from pipelines.lake.lake import Lake
from pipelines.lake.readings import Reading, RowsOf, by_batch, few_rows
from pipelines.metrics import requests as of_requests
from pipelines.metrics.fold import Sums
from pipelines.metrics.requests import RequestCounts
from pipelines.metrics.rows import Node, Row, lag_row, purgatory_rows
from schemas import gold, silver
from schemas.table import TableSpec
from schemas.topics import METADATA_TOPIC

#: Levels at which every request is logged; at INFO only those of deprecated versions are (KAFKA-18272).
_ALL_REQUESTS: Final = ("DEBUG", "TRACE")
#: An operation that arrived longer before an instant is not taken to wait still.
_LONGEST_WAIT_US: Final = 3_600_000_000
#: The driver holds cells of so many intervals at a time.
_RANGE_INTERVALS: Final = 360
#: Of so many ranges each is read, whether it has requests or not.
_RANGES_MAX: Final = 100
_PURGATORIES: Final = {"produce": "Produce", "fetch": "Fetch"}
_OF_OPERATIONS = ("cluster_id", "broker_id", "operation", "arrival_time", "handled_time", "completed_time", "wait_ms")
_OF_FETCHES = (
    *("cluster_id", "replica_id", "topic", "source", "handled_time", "fetch_offset"),
    *("response_high_watermark", "response_error_code"),
)

Take = Callable[[RequestCounts, pa.Table], None]
_REQUESTS: Final[tuple[tuple[TableSpec, tuple[str, ...], Take], ...]] = (
    (silver.PRODUCE_REQUESTS, of_requests.PRODUCE_COLUMNS, RequestCounts.produces),
    (silver.FETCH_REQUESTS, of_requests.FETCH_COLUMNS, RequestCounts.fetches),
    (silver.REQUESTS, of_requests.OTHER_COLUMNS, RequestCounts.others),
)


def request_rows(lake: Lake, premises: Premises, length_us: int, since_us: int) -> Iterator[Row]:
    """Rows of brokers whose log has all requests, of intervals from an instant on.

    Args:
        since_us: a multiple of the length.
    """
    logged = _request_loggers(lake)
    releases = {node: release_of(text) for node, text in premises.contexts.versions.items()}
    versions = {node: release.likely for node, release in releases.items() if release is not None}
    for times in _ranges(lake, premises, length_us, since_us):
        with_requests: dict[Node, set[int]] = defaultdict(set)
        for row in _requests(lake, premises, length_us, times).rows(versions):
            node = (row["cluster_id"], row["broker_id"])
            if node in logged:
                with_requests[node].add(row["interval_start"])
                yield row
        yield from _purgatories(lake, length_us, times, with_requests)
        yield from _lags(lake, length_us, times)


class TimeRange(NamedTuple):
    """Instants, the end exclusive; None: all that follow."""

    since_us: int
    until_us: int | None

    def where(self, time: str) -> pc.Expression:
        """Rows of which an instant lies in it."""
        begun = pc.field(time) >= instant(self.since_us)
        return begun if self.until_us is None else begun & (pc.field(time) < instant(self.until_us))


def _ranges(lake: Lake, premises: Premises, length_us: int, since_us: int) -> Iterator[TimeRange]:
    """Ranges of some intervals each: the driver holds what there is to say of one.

    Of a time that is long those only in which there are requests: else a few lines would make ranges of years.
    """
    times_us = [time_us for file in premises.files for time_us in (file.first_us, file.last_us) if time_us is not None]
    step_us = _RANGE_INTERVALS * length_us
    begin_us, last_us = since_us, max(times_us, default=0)
    first_us = max(since_us, min(times_us, default=0) // length_us * length_us)
    # The first and the last have what lies beyond: a log's first line may not be its earliest.
    ends_us = range(first_us + step_us, last_us, step_us)
    for until_us in ends_us if len(ends_us) <= _RANGES_MAX else _ends_with_requests(lake, ends_us):
        yield TimeRange(begin_us, until_us)
        begin_us = until_us
    yield TimeRange(begin_us, None)


def _ends_with_requests(lake: Lake, ends_us: range) -> list[int]:
    """Those of the ends before which, and behind the one before, any request was logged."""
    step_us = ends_us.step
    where = pc.field("time") >= instant(ends_us.start - step_us)
    numbers: set[int] = set()
    for spec, _, _ in _REQUESTS:
        rows_of = by_batch(_steps, ends_us.start - step_us, step_us)
        rows = few_rows(lake, Reading(spec, ("time",), rows_of, where), shape({"step": "long"}))
        numbers.update(rows["step"].to_pylist())
    return [ends_us[number] for number in sorted(numbers) if number < len(ends_us)]


def _steps(rows: pa.RecordBatch, first_us: int, step_us: int) -> pa.RecordBatch:
    """Which steps of time rows lie in, each once."""
    step = pc.divide(pc.subtract(rows.column("time").cast(pa.int64()), first_us), step_us)
    return pa.record_batch([pc.unique(step)], names=["step"])


def _request_loggers(lake: Lake) -> set[Node]:
    """Brokers whose log has all requests."""
    where = pc.field("level").isin(_ALL_REQUESTS)
    rows = small_rows(lake, silver.LINE_COUNTS, "cluster_id", "broker_id", "template", "outcome", where=where)
    typed = (row for row in rows if row["outcome"] == "typed" and row["template"].startswith("request."))
    return {(row["cluster_id"], row["broker_id"]) for row in typed if row["broker_id"] is not None}


def _requests(lake: Lake, premises: Premises, length_us: int, times: TimeRange) -> RequestCounts:
    """Of a large table added up by tasks first; where lines stand in two files, by the driver alone."""
    counts = RequestCounts(length_us)
    where = times.where("time") & pc.field("broker_id").is_valid()
    if premises.has_overlapping_request_logs:
        for spec, columns, take in _REQUESTS:
            for batch in _each_once(batches_of(lake, spec, columns, where)):
                take(counts, pa.Table.from_batches([batch]))
        return counts
    for spec, columns, take in _REQUESTS:
        blobs = few_rows(lake, Reading(spec, columns, _counted(length_us, take), where), BLOBS)
        for blob in blobs.to_pylist():
            with pa.ipc.open_stream(blob["rows"]) as stream:
                counts.join(blob["table"], stream.read_all())
    return counts


def _counted(length_us: int, take: Take) -> RowsOf:
    """A function for `Reading`: what a batch of requests adds up to."""

    def rows_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        counts = RequestCounts(length_us)
        take(counts, pa.Table.from_batches([batch]))
        for name, part in counts.parts():
            yield pack(name, part.combine_chunks().to_batches()[0])

    return rows_of


def _each_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Requests whose line stands in two files, once."""
    seen: set[tuple[Any, ...]] = set()
    for batch in batches:
        keys = list(zip(*(batch.column(name).to_pylist() for name in of_requests.IDENTITY), strict=True))
        # Of those within the batch the first, too.
        first = {key: number for number, key in reversed(list(enumerate(keys)))}
        new = [number for key, number in sorted(first.items(), key=lambda item: item[1]) if key not in seen]
        yield batch.take(pa.array(new, pa.int64()))
        seen.update(keys)


def _purgatories(
    lake: Lake, length_us: int, times: TimeRange, with_requests: Mapping[Node, Iterable[int]]
) -> Iterator[Row]:
    ends = {
        name: Sums(("cluster_id", "broker_id", "operation", "interval"), ("operations",)) for name in ("from", "to")
    }
    where = times._replace(since_us=max(0, times.since_us - _LONGEST_WAIT_US)).where("arrival_time")
    for batch in batches_of(lake, gold.DELAYED_OPERATIONS, _OF_OPERATIONS, where):
        waited = pa.Table.from_batches([batch.filter(pc.greater(batch.column("wait_ms"), 0.0))])
        for sums, column in ((ends["from"], "handled_time"), (ends["to"], "completed_time")):
            interval = pc.multiply(pc.divide(waited[column].cast(pa.int64()), length_us), length_us)
            ones = pa.array([1] * waited.num_rows, pa.int64())
            key = waited.select(["cluster_id", "broker_id", "operation"])
            sums.add(key.append_column("interval", interval).append_column("operations", ones))
    started, ended = (_by_interval(sums) for sums in ends.values())
    for node, wanted in with_requests.items():
        for operation, purgatory in _PURGATORIES.items():
            key = (*node, operation)
            yield from purgatory_rows(node, purgatory, started.get(key, {}), ended.get(key, {}), wanted)


def _by_interval(sums: Sums) -> dict[tuple[Any, ...], dict[int, int]]:
    operations: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)
    table = sums.result()
    for row in [] if table is None else table.to_pylist():
        operations[row["cluster_id"], row["broker_id"], row["operation"]][row["interval"]] = row["operations"]
    return operations


def _lags(lake: Lake, length_us: int, times: TimeRange) -> Iterator[Row]:
    """Followers' lags as their leaders' answers show them."""
    largest = Sums(("cluster_id", "replica_id", "interval"), (), ("lag",))
    answered = (
        (pc.field("source") == "request")
        & (pc.field("topic") != METADATA_TOPIC)
        & (pc.field("response_error_code") == 0)
        & (pc.field("fetch_offset") >= 0)
        & (pc.field("response_high_watermark") >= 0)
        & times.where("handled_time")
    )
    for batch in batches_of(lake, silver.REPLICA_FETCHES, _OF_FETCHES, answered):
        rows = pa.Table.from_batches([batch])
        behind = pc.subtract(rows["response_high_watermark"], rows["fetch_offset"])
        interval = pc.multiply(pc.divide(rows["handled_time"].cast(pa.int64()), length_us), length_us)
        lags = {"interval": interval, "lag": pc.max_element_wise(behind, pa.scalar(0, pa.int64()))}
        largest.add(pa.table({**{name: rows[name] for name in ("cluster_id", "replica_id")}, **lags}))
    table = largest.result()
    for row in [] if table is None else table.to_pylist():
        yield lag_row((row["cluster_id"], row["replica_id"]), row["interval"], row["lag"])
