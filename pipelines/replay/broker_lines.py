"""Lines of a broker's control plane for `pipelines.replay.broker_account`, and the worker that folds them. Pure."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import Value, arrow_schema, is_in, micros, shaped
from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import each, groups
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay.broker_account import BrokerAccount
from highwater.pipelines.replay.partition_events import ROW_TYPES as EVENT_ROW_TYPES
from highwater.schemas import events as e
from highwater.schemas.broker_lines import BEGUN, FETCHER, ISR_CHANGE, LEADERSHIP, LIFE, BrokerLine
from highwater.schemas.fields import map_spark_types

KEY_TYPES: Final = {"cluster_id": "string", "broker_id": "int"}
LINE_TYPES: Final = map_spark_types(BrokerLine)
ROW_TYPES: Final = {**KEY_TYPES, "file_id": "string", "byte_offset": "long", **LINE_TYPES}
SCHEMA: Final = arrow_schema(ROW_TYPES)
#: Sort key of a broker's lines. The last columns order lines of one instant.
ORDER: Final = ("time_us", "source", "file_id", "byte_offset", "topic", "partition", "what")

LEADERSHIP_COLUMNS: Final = (
    "cluster_id",
    "broker_id",
    "file_id",
    "byte_offset",
    "time",
    "role",
    "topic",
    "partition",
    "topic_id",
    "leader",
    "leader_epoch",
    "partition_epoch",
    "start_offset",
    "high_watermark",
    "isr",
    "replicas",
    "adding_replicas",
    "removing_replicas",
)
_PLACE = LEADERSHIP_COLUMNS[:5]
CHANGE_COLUMNS: Final = (
    *_PLACE,
    *("change", "topic", "partition", "leader_epoch", "partition_epoch", "high_watermark", "isr", "previous_isr"),
)
FETCHER_COLUMNS: Final = (*_PLACE, "action", "topic", "partition")
LIFE_COLUMNS: Final = (*_PLACE, "event")

EVENTS = "events"
SHAPES = {EVENTS: shape(EVENT_ROW_TYPES)}
#: Values of the columns after an event.
_NO_MORE = (None,) * (len(EVENT_ROW_TYPES) - len(e.Event._fields) - 5)


def leaderships(rows: pa.RecordBatch) -> Batches:
    """Convert rows of ``silver.leader_and_isr`` to `BrokerLine` rows. Starts of an epoch are yielded twice, once as
    `BEGUN`.
    """
    names = LEADERSHIP_COLUMNS[6:16]
    adding = {"adding": rows.column("adding_replicas"), "removing": rows.column("removing_replicas")}
    yield _make_lines(rows, LEADERSHIP, rows.column("role"), **{name: rows.column(name) for name in names}, **adding)
    starts = rows.filter(is_in(rows.column("role"), ("leader_start", "follower_start")))
    epochs = {name: starts.column(name) for name in ("topic", "partition", "leader_epoch")}
    yield _make_lines(starts, BEGUN, starts.column("role"), **epochs, time_us=-1)


def isr_changes(rows: pa.RecordBatch) -> Batches:
    """Convert rows of ``silver.isr_changes`` to `BrokerLine` rows."""
    yield _make_lines(
        rows, ISR_CHANGE, rows.column("change"), **{name: rows.column(name) for name in CHANGE_COLUMNS[6:]}
    )


def fetcher_moves(rows: pa.RecordBatch) -> Batches:
    """Convert rows of ``silver.fetcher_events`` that add or remove a partition to `BrokerLine` rows."""
    rows = rows.filter(is_in(rows.column("action"), ("added", "removed")))
    yield _make_lines(
        rows, FETCHER, rows.column("action"), topic=rows.column("topic"), partition=rows.column("partition")
    )


def lives(rows: pa.RecordBatch) -> Batches:
    """Convert starts and replica stops in ``silver.broker_lifecycle`` to `BrokerLine` rows."""
    rows = rows.filter(is_in(rows.column("event"), ("starting", "stopping_replicas")))
    yield _make_lines(rows, LIFE, rows.column("event"))


def _make_lines(rows: pa.RecordBatch, source: str, what: pa.Array, **values: Value) -> pa.RecordBatch:
    place = {name: rows.column(name) for name in ("cluster_id", "broker_id", "file_id", "byte_offset")}
    given = {"time_us": micros(rows.column("time")), "source": source, "what": what, **values}
    lines = shaped(SCHEMA, rows.num_rows, {**place, **given})
    return lines.filter(pc.is_valid(lines.column("broker_id")))


class BrokerWorker:
    """Worker that converts the control-plane lines of each broker to events.

    Args:
        contexts: versions and configuration of the brokers.
        bounds: by (cluster, broker), the time from which events are written.
    """

    def __init__(self, contexts: Contexts, bounds: Bounds) -> None:
        self._silent = contexts.spans(lambda rules: not rules.logs_isr_commits)
        self._bounds = bounds

    def __call__(self, batches: Batches) -> Batches:
        """Convert batches of `KEY_TYPES` and `BrokerLine` fields, sorted by broker, to events. Signature of
        ``mapInArrow``.
        """
        tables = Tables(SHAPES)
        for broker, lines in groups(batches, len(KEY_TYPES), each(BrokerLine._make)):
            cluster_id, broker_id = broker
            since_us = self._bounds.instants.get((cluster_id, broker_id), 0)
            account = BrokerAccount(broker_id, self._silent.get((cluster_id, broker_id), ()))
            for (topic, partition), event in account.fold(lines):
                # Leadership lines depend on earlier lines, so their table is read whole.
                if event.time_us >= since_us:
                    row = (cluster_id, topic, partition, broker_id, e.RANK[event.kind], *event, *_NO_MORE)
                    tables.add(EVENTS, row)
                    if tables.full:
                        yield from tables.take()
        yield from tables.rest()
