"""Consumers that read from followers (KIP-392), as rows and events, on Arrow's columns. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import (
    arrow_schema,
    both,
    explode,
    fill_topic_names,
    first_of,
    micros,
    one_batch,
    shaped,
    when,
)
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.base.instants import TICK_US
from highwater.pipelines.kafka.seals import Broker
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay.follower_clocks import KEY_TYPES, TOLD_TYPES, Apart, apart_at
from highwater.pipelines.replay.partition_events import SCHEMA as EVENTS
from highwater.schemas import events as e

RACK_COLUMNS: Final = ("cluster_id", "broker_id", "replica_id", "rack_id")
RACK_TYPES: Final = {"cluster_id": "string", "broker_id": "int"}
SHOWN_COLUMNS: Final = (
    *("cluster_id", "broker_id", "replica_id", "remote_time_ms", "dequeued_time", "completed_time", "handled_time"),
    "responses",
)
TOLD_ROW_TYPES: Final = KEY_TYPES | TOLD_TYPES
_TOLD: Final = arrow_schema(TOLD_ROW_TYPES)


def racks(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the distinct (cluster, broker) that consumers with a rack fetch from, in ``silver.fetch_requests``."""
    rows = rows.filter(both(pc.is_valid(rows.column("rack_id")), pc.less(rows.column("replica_id"), 0)))
    rows = rows.filter(pc.is_valid(rows.column("broker_id")))
    brokers = pa.table({name: rows.column(name) for name in RACK_TYPES})
    return one_batch(brokers.group_by(list(RACK_TYPES)).aggregate([]))


def told_high_watermarks(rows: pa.RecordBatch) -> Batches:
    """Convert leaders' answers to followers (`pipelines.replay.connections.ANSWERS`) to `ToldHighWatermark` rows."""
    same = ("cluster_id", "topic", "partition", "broker_id", "leader_id", "high_watermark")
    values = {name: rows.column(name) for name in same}
    instants = {"first_us": rows.column("completed_us"), "last_us": rows.column("next_us")}
    yield shaped(_TOLD, rows.num_rows, values | instants)


@dataclass(frozen=True)
class Shown:
    """Reads the high watermarks that brokers sent to consumers. Sent to the Spark tasks that read the rows.

    Args:
        serving: (cluster, broker) that consumers with a rack fetch from.
        bounds: by broker, the time from which fetches are read.
        topic_names: topic name by (cluster, topic id).
    """

    serving: Collection[Broker]
    bounds: Bounds
    topic_names: Mapping[tuple[str, str], str]

    def __call__(self, rows: pa.RecordBatch) -> Batches:
        """Yield the high watermarks sent to consumers, from rows of ``silver.fetch_requests``."""
        brokers = zip(rows.column("cluster_id").to_pylist(), rows.column("broker_id").to_pylist(), strict=True)
        serves = pa.array([broker in self.serving for broker in brokers], pa.bool_())
        rows = rows.filter(both(serves, pc.less(rows.column("replica_id"), 0)))
        rows = self.bounds.filter_rows(rows, micros(rows.column("handled_time")))
        parts = explode(rows, "responses", "part")
        by_id = pc.binary_join_element_wise("id:", parts.column("part.topic_id"), "")
        parts = parts.append_column("topic", first_of(parts.column("part.topic"), by_id))
        for name in ("partition", "high_watermark", "error_code"):
            parts = parts.append_column(name, parts.column(f"part.{name}"))
        parts = parts.filter(
            both(pc.equal(parts.column("error_code"), 0), pc.greater_equal(parts.column("high_watermark"), 0))
        )
        parts = fill_topic_names(self.topic_names, parts)
        completed_us = micros(parts.column("completed_time"))
        waited = pc.greater(parts.column("remote_time_ms"), TICK_US / 1_000)
        read_us = when(waited, pc.subtract(completed_us, TICK_US), micros(parts.column("dequeued_time")))
        same = ("cluster_id", "topic", "partition", "broker_id", "high_watermark")
        values = {name: parts.column(name) for name in same}
        yield shaped(_TOLD, parts.num_rows, values | {"first_us": read_us, "last_us": completed_us})


def replicated(apart: Apart, bounds: Bounds, rows: pa.RecordBatch) -> Batches:
    """Convert leaders' answers to events on the follower's clock. Pairs with unknown clock offset are dropped.

    Args:
        apart: clock offset bounds by (cluster, leader, follower).
        bounds: by broker, the time from which events are wanted.
    """
    pairs = zip(*[rows.column(name).to_pylist() for name in ("cluster_id", "leader_id", "broker_id")], strict=True)
    instants = rows.column("completed_us").to_pylist()
    bounded = [apart_at(apart, pair, leader_us) for pair, leader_us in zip(pairs, instants, strict=True)]
    rows = rows.filter(pa.array([bound is not None for bound in bounded], pa.bool_()))
    if not rows.num_rows:
        return
    least, most = np.array([bound for bound in bounded if bound is not None], dtype=np.int64).T
    earliest_us = pc.subtract(pc.add(rows.column("completed_us"), pa.array(least)), TICK_US)
    latest_us = pc.add(rows.column("next_us"), pa.array(most))
    same = ("cluster_id", "topic", "partition", "broker_id", "leader_epoch", "offset", "end_offset")
    values = {name: rows.column(name) for name in (*same, "high_watermark", "stable_offset", "size_bytes")}
    values |= {"earliest_us": pc.min_element_wise(earliest_us, latest_us), "time_us": latest_us}
    values |= {"kind": e.REPLICATED, "rank": e.RANK[e.REPLICATED], "replica_id": rows.column("leader_id")}
    yield bounds.filter_rows(shaped(EVENTS, rows.num_rows, values), latest_us)
