"""The follower side on Spark: silver becomes ``gold.replica_truncations`` and ``gold.fetcher_timeline``.

One group per partition of the cluster, with the lines of all its brokers: a follower's prediction needs its leader's
epochs. Logs at default level contain a few such lines per leader epoch. The request log contains many. From it a group
gets the first fetch of each connection and epoch, and the fetches that were answered with a truncation.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

import pyarrow.compute as pc

from highwater.pipelines.base.blobs import shape
from highwater.pipelines.base.chunks import Keyed
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.replicas import skip_future_logs
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.lake.folds import Fold
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.readings import Reading, RowsOf
from highwater.pipelines.replay import follower_events as e
from highwater.pipelines.replay.follower_worker import follower_worker
from highwater.schemas import flow, silver
from highwater.schemas.table import TableSpec
from highwater.schemas.topics import METADATA_TOPIC

_OURS = pc.field("broker_id").is_valid() & (pc.field("topic") != METADATA_TOPIC)


def follower_fold(lake: Lake, premises: Premises) -> Fold:
    """Return the stage that makes `pipelines.replay.follower_worker.SPECS`. It reads nothing without leaderships."""
    readings = _list_readings(premises.contexts) if lake.has_rows(silver.LEADER_AND_ISR) else []
    readings = [skip_future_logs(reading, premises.future_logs) for reading in readings]
    return Fold(
        readings, Keyed(shape(e.SHAPE), flow.key("followers"), e.ORDER, tuple(e.ROW_TYPES)), follower_worker(premises)
    )


def _list_readings(contexts: Contexts) -> list[Reading]:
    epochs = ("leader", "leader_epoch", "start_offset", "high_watermark", "previous_leader_epoch")
    cuts = ("offset", "high_watermark", "previous_end_offset", "reason")
    marks = ("high_watermark", "previous_high_watermark", "log_end_offset")
    threads = ("leader", "leader_epoch", "offset", "error", "fetcher_id")
    readings = [
        _make_reading(silver.LEADER_AND_ISR, e.leadership, "time", "role", *epochs),
        _make_reading(silver.TRUNCATIONS, e.truncations, "time", "source", *cuts),
        _make_reading(
            silver.HIGH_WATERMARKS,
            e.watermarks,
            "time",
            "source",
            *marks,
            where=_select_sources("loaded", "non_monotonic"),
        )._replace(digest="loaded high watermarks"),
        _make_reading(silver.FETCHER_EVENTS, e.fetchers, "time", "action", *threads),
        _read_fetches(),
        Reading(
            silver.REQUESTS,
            ("cluster_id", "broker_id", "api", "client_id", "arrival_time", "partitions"),
            e.answers,
            pc.field("broker_id").is_valid() & (pc.field("api") == "OFFSET_FOR_LEADER_EPOCH"),
            digest="asked epochs",
        ),
    ]
    old = _select_old_brokers(contexts)
    if old is None:
        return readings
    shown = old & _select_sources("follower", "updated", "set")
    return [
        *readings,
        _make_reading(silver.HIGH_WATERMARKS, e.shown_watermarks, "time", "source", *marks, where=shown),
        _make_reading(silver.APPENDS, e.shown_ends, "time", "last_offset", where=old),
    ]


def _make_reading(spec: TableSpec, rows_of: RowsOf, *columns: str, where: pc.Expression | None = None) -> Reading:
    where = _OURS if where is None else _OURS & where
    return Reading(spec, (*e.KEY, "broker_id", *columns), rows_of, where)


def _read_fetches() -> Reading:
    asked = pc.field("fetch_offset").is_valid() & pc.field("leader_epoch").is_valid()
    names = ("fetch_offset", "last_fetched_epoch", "response_error_code", "diverging_epoch", "diverging_end_offset")
    request = ("source", "replica_id", "leader_epoch", "connection", "correlation_id", "arrival_time")
    fetches = _make_reading(
        silver.REPLICA_FETCHES, e.fetches, *request, *names, where=_select_sources("request") & asked
    )
    return fetches._replace(digest="first fetches")


def _select_sources(*sources: str) -> pc.Expression:
    return pc.field("source").isin(sources)


def _select_old_brokers(contexts: Contexts) -> pc.Expression | None:
    """Return a row filter for brokers up to 2.5, whose TRACE lines are needed: no other line shows offsets. None if
    none.
    """
    logged = {node: rule_of(text, lambda rules: rules.logs_follower_starts) for node, text in contexts.versions.items()}
    old = [node for node, starts in logged.items() if starts is False]
    parts = [(pc.field("cluster_id") == cluster) & (pc.field("broker_id") == broker) for cluster, broker in sorted(old)]
    return reduce(or_, parts) if parts else None
