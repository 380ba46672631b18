"""Rows of silver and bronze as what the fold of connections takes, on Arrow's columns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import (
    Value,
    arrow_schema,
    both,
    explode,
    fill_topic_names,
    first_of,
    micros,
    shaped,
    when,
)
from highwater.pipelines.base.blobs import Batches
from highwater.pipelines.grammars.facts import REQUEST_LOGGER
from highwater.pipelines.lake.bounds import Bounds
from highwater.pipelines.replay.connections import KEY_TYPES, SILENCE_US
from highwater.schemas import connection_rows as c
from highwater.schemas.connection_rows import ConnectionRow
from highwater.schemas.fields import map_spark_types
from highwater.schemas.topics import METADATA_TOPIC, METADATA_TOPIC_ID

ROW_TYPES = {**KEY_TYPES, "rank": "int", **map_spark_types(ConnectionRow)}
SCHEMA = arrow_schema(ROW_TYPES)
#: Sort key of the rows of a connection: a fetch before its partitions. The last columns make it total.
ORDER = ("rank", "correlation_id", "kind", "topic", "partition", "arrival_us", "offset", "until_us")

_NO_CONNECTION = ""


@dataclass(frozen=True)
class ConnectionReader:
    """Converts rows of silver and bronze to rows by connection. Sent to the Spark tasks that read the rows.

    Args:
        sealed: by broker, the time from which partition events are wanted.
        sessions: by broker, the time from which fetches are wanted.
        topic_names: topic name by (cluster, topic id).
    """

    sealed: Bounds
    sessions: Bounds
    topic_names: Mapping[tuple[str, str], str]

    def lines(self, rows: pa.RecordBatch) -> Batches:
        """Yield per broker and second of ``bronze.log_lines`` its first and last line and request."""
        rows = rows.filter(both(pc.is_valid(rows.column("broker_id")), pc.is_valid(rows.column("time"))))
        rows = self.sealed.filter_rows(rows, micros(rows.column("time")))
        if not rows.num_rows:
            return
        at = micros(rows.column("time"))
        table = pa.table(
            {
                "cluster_id": rows.column("cluster_id"),
                "broker_id": rows.column("broker_id"),
                "second_us": pc.multiply(pc.divide(at, SILENCE_US), SILENCE_US),
                "line_us": at,
                "request_us": when(pc.equal(rows.column("logger"), REQUEST_LOGGER), at, pa.scalar(None, pa.int64())),
            }
        )
        both_ends = [(name, which) for name in ("line_us", "request_us") for which in ("min", "max")]
        seconds = table.group_by(["cluster_id", "broker_id", "second_us"]).aggregate(both_ends)
        yield _make_rows(
            seconds,
            c.SECOND,
            _NO_CONNECTION,
            arrival_us=seconds.column("second_us"),
            from_us=seconds.column("line_us_min"),
            until_us=seconds.column("line_us_max"),
            first_request_us=seconds.column("request_us_min"),
            last_request_us=seconds.column("request_us_max"),
        )

    def fetches(self, rows: pa.RecordBatch) -> Batches:
        """Yield rows of followers' fetches, of partitions read by each connection, and of the logged time."""
        rows = rows.filter(pc.is_valid(rows.column("broker_id")))
        yield from self._merge_watches(rows)
        rows = self.sealed.filter_rows(rows, micros(rows.column("handled_time")))
        if not rows.num_rows:
            return
        table = pa.table({name: rows.column(name) for name in ("cluster_id", "broker_id", "arrival_time", "time")})
        logged = table.group_by(["cluster_id", "broker_id"]).aggregate([("arrival_time", "min"), ("time", "max")])
        span = {"from_us": micros(logged.column("arrival_time_min")), "until_us": micros(logged.column("time_max"))}
        yield _make_rows(logged, c.LOGGED, _NO_CONNECTION, **span)
        rows = rows.filter(pc.greater_equal(rows.column("replica_id"), 0))
        lists = [pc.greater(pc.list_value_length(rows.column(name)), 0) for name in ("partitions", "responses")]
        arrival = micros(rows.column("arrival_time"))
        sending_us = pc.round(
            pc.multiply(_sum(rows, "throttle_time_ms", "response_queue_time_ms", "send_time_ms"), 1000)
        )
        sent = pc.add(micros(rows.column("completed_time")), sending_us.cast(pa.int64()))
        yield _make_rows(
            rows,
            c.FETCH,
            rows.column("connection"),
            **_read_instants(rows),
            replica_id=rows.column("replica_id"),
            correlation_id=rows.column("correlation_id"),
            sent_us=when(pc.or_(*lists), sent, arrival),
        )

    def listed(self, rows: pa.RecordBatch) -> Batches:
        """Yield the partitions that followers' fetches list, from ``silver.replica_fetches``."""
        rows = rows.filter(both(pc.is_valid(rows.column("broker_id")), pc.equal(rows.column("source"), "request")))
        rows = fill_topic_names(self.topic_names, self.sealed.filter_rows(rows, micros(rows.column("handled_time"))))
        rows = rows.filter(pc.not_equal(rows.column("topic"), METADATA_TOPIC))
        same = ("replica_id", "correlation_id", "topic", "partition", "leader_epoch")
        yield _make_rows(
            rows,
            c.LISTED,
            rows.column("connection"),
            **{name: rows.column(name) for name in same},
            **_read_instants(rows),
            sent_us=micros(rows.column("sent_time")),
            offset=rows.column("fetch_offset"),
            high_watermark=rows.column("response_high_watermark"),
            error_code=rows.column("response_error_code"),
            diverging=pc.is_valid(rows.column("diverging_end_offset")),
            stable_offset=rows.column("response_last_stable_offset"),
            size_bytes=rows.column("response_bytes"),
        )

    def _merge_watches(self, rows: pa.RecordBatch) -> Batches:
        """Yield one row per connection and partition of a batch, with first and last fetch time. Thousands of fetches
        shrink.
        """
        rows = data_fetches(self.sessions.filter_rows(rows, micros(rows.column("dequeued_time"))))
        if not rows.num_rows:
            return
        names = ("cluster_id", "broker_id", "connection", "replica_id", "isolation_level", "arrival_time", "time")
        parts = explode(rows.select([*names, "partitions"]), "partitions", "part")
        keys = ["cluster_id", "broker_id", "connection"]
        ends = [("arrival_time", "min"), ("time", "max")]
        asked = pa.table(rows.select(names).columns, names=names).group_by(keys).aggregate(ends)
        span = {"from_us": micros(asked.column("arrival_time_min")), "until_us": micros(asked.column("time_max"))}
        yield _make_rows(asked, c.WATCH, asked.column("connection"), **span)
        columns = {name: parts.column(name) for name in names}
        columns |= {name: parts.column(f"part.{name}") for name in ("topic", "topic_id", "partition")}
        columns["session_topic"] = first_of(columns["topic_id"], columns["topic"])
        by_partition = [*keys, "session_topic", "topic", "topic_id", "partition"]
        seen = pa.table(columns).group_by(by_partition)
        watches = seen.aggregate([("replica_id", "max"), ("isolation_level", "max"), *ends])
        yield _make_rows(
            watches,
            c.WATCH,
            watches.column("connection"),
            **{name: watches.column(name) for name in by_partition[len(keys) :]},
            replica_id=watches.column("replica_id_max"),
            isolation_level=watches.column("isolation_level_max"),
            from_us=micros(watches.column("arrival_time_min")),
            until_us=micros(watches.column("time_max")),
        )


def data_fetches(requests: pa.RecordBatch) -> pa.RecordBatch:
    """Select fetch requests with a known connection. Fetches of the KRaft metadata log are dropped."""
    requests = requests.filter(
        both(pc.is_valid(requests.column("broker_id")), pc.is_valid(requests.column("connection")))
    )
    partitions = requests.column("partitions")
    items = pc.list_flatten(partitions)
    topics = first_of(pc.struct_field(items, "topic_id"), pc.struct_field(items, "topic"))
    is_raft = pc.is_in(topics, value_set=pa.array([METADATA_TOPIC, METADATA_TOPIC_ID]))
    raft = np.zeros(requests.num_rows, dtype=bool)
    raft[pc.list_parent_indices(partitions).filter(is_raft).to_numpy(zero_copy_only=False)] = True
    return requests.filter(pa.array(~raft))


def _read_instants(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    return {
        f"{name}_us": micros(rows.column(f"{name}_time")) for name in ("arrival", "dequeued", "handled", "completed")
    }


def _sum(rows: pa.RecordBatch, *names: str) -> pa.Array:
    total = rows.column(names[0])
    for name in names[1:]:
        total = pc.add(total, rows.column(name))
    return total


def _make_rows(rows: pa.RecordBatch | pa.Table, kind: str, connection: Value, **values: Value) -> pa.RecordBatch:
    given = {"cluster_id": rows.column("cluster_id"), "broker_id": rows.column("broker_id"), "connection": connection}
    return shaped(SCHEMA, rows.num_rows, {**given, "rank": c.RANK[kind], "kind": kind, **values})
