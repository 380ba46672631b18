"""The latency stage: where every request's time went, and whom acks=all appends waited for."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pipelines.base.blobs import shape
from pipelines.base.chunks import Keyed
from pipelines.base.config import LatencyConfig
from pipelines.base.instants import SECOND_US
from pipelines.base.values import instant
from pipelines.lake.folds import Fold
from pipelines.lake.lake import Lake
from pipelines.lake.readings import Reading, by_batch
from pipelines.lake.staged import Beside, Staged
from pipelines.timing.latency import blame
from pipelines.timing.latency.phases import TABLES, columns_of, phases
from schemas import flow, gold


def request_phases() -> list[Reading]:
    """What makes the rows of ``gold.request_phases``, for every completed request in silver."""
    return [Reading(spec, columns_of(spec), by_batch(phases)) for spec in TABLES]


def once(rows: DataFrame) -> DataFrame:
    """Rows of ``gold.request_phases``, of which a line that stands in two files gives two that are equal."""
    return rows.dropDuplicates(list(gold.REQUEST_PHASES.keys))


def has_requests(lake: Lake) -> bool:
    """Whether any request log was parsed."""
    return any(lake.has_rows(spec) for spec in TABLES)


def replica_blame(lake: Lake, config: LatencyConfig, since: datetime | None, run_id: str) -> Beside:
    """Makes rows of ``gold.replica_blame`` anew, of intervals that operations since an instant fall into; None: all."""
    first = None
    if since is not None:
        length_us = config.interval_s * SECOND_US
        since_us = int(since.timestamp() * SECOND_US)
        first = pa.scalar(instant(since_us // length_us * length_us), pa.timestamp("us", "UTC"))
    where = None if first is None else pc.field("arrival_time") >= first
    rows_of = by_batch(blame.blamed, config.interval_s)
    reading = Reading(gold.DELAYED_OPERATIONS, blame.OPERATION_COLUMNS, rows_of, where)
    rows = Keyed(shape(blame.ROW_TYPES), flow.BLAME.key, blame.ORDER, blame.ORDER)
    spec = gold.REPLICA_BLAME

    def commit(made: Staged) -> None:
        files = made.files(spec.name)
        if first is None:
            lake.replace_files(spec, files, run_id)
        else:
            lake.replace_part(spec, files, pc.field("interval_start") >= first, run_id)

    return Beside(Fold([reading], rows, blame.BlameWorker(config.interval_s, config.slow_ms)), [spec], commit)
