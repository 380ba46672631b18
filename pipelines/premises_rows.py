"""Rows of tables as rows of the premises (`pipelines.premises`), each of its kind, as few as a batch allows. Pure."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines import premises as p
from pipelines.arrow_rows import arrow_schema, both, is_in, micros, shaped
from pipelines.bronze.strays import END_US, FIRST_US
from pipelines.replay.coordinators import remote_hosts

#: Columns of all kinds but for configuration.
SHAPE: Final = {
    "kind": "string",
    "cluster_id": "string",
    "broker_id": "int",
    "file_id": "string",
    "byte_offset": "long",
    "line_no": "long",
    "time_us": "long",
    "event": "string",
    "mode": "string",
    "kafka_version": "string",
    "detail": "string",
    "controller_epoch": "int",
    "subject_broker_id": "int",
    "brokers": "array<int>",
    "topic": "string",
    "topic_id": "string",
    "leader": "int",
    "source": "string",
    "offset": "long",
    "record": "string",
    "record_no": "long",
    "node_id": "int",
    "node_epoch": "long",
    "fenced": "boolean",
    "in_controlled_shutdown": "boolean",
    "path": "string",
    "file_kind": "string",
    "first_us": "long",
    "last_us": "long",
    "resolution_us": "long",
    "connection": "string",
    "fetcher_id": "int",
    "transactional_id": "string",
    "producer_id": "long",
    "client_id": "string",
    "remote_host": "string",
    "begins": "boolean",
}
TRANSACTIONAL_COLUMNS: Final = ("cluster_id", "api", "transactional_id", "producer_id", "client_id", "connection")
_SCHEMA: Final = arrow_schema(SHAPE)


def of_kind(rows: pa.RecordBatch | pa.Table, kind: str, **values: Any) -> pa.RecordBatch:
    """Rows of a kind with the columns that they have.

    Args:
        values: columns beside them.
    """
    given = {name: rows.column(name) for name in SHAPE if name in rows.schema.names}
    if "time" in rows.schema.names:
        given["time_us"] = micros(rows.column("time"))
    return shaped(_SCHEMA, len(rows), {**given, **values, "kind": kind})


def files(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `bronze.log_files`."""
    times = {f"{name}_us": _possible(micros(rows.column(f"{name}_time"))) for name in ("first", "last")}
    return of_kind(rows, p.FILE, file_kind=rows.column("kind"), brokers=rows.column("broker_ids"), **times)


def _possible(times_us: pa.Array) -> pa.Array:
    """Instants, but for those that an older version of highwater took from a line of a dead clock."""
    is_possible = both(pc.greater_equal(times_us, FIRST_US), pc.less(times_us, END_US))
    return pc.if_else(is_possible, times_us, pa.scalar(None, pa.int64()))


def distinct(rows: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    """Rows of a kind, each once."""
    return of_kind(pa.table(rows).group_by(rows.schema.names).aggregate([]), kind)


def snapshots(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `silver.metadata_records` of snapshots: the newest of each node."""
    newest = pa.table(rows).group_by(["cluster_id", "broker_id"]).aggregate([("offset", "max")])
    return of_kind(newest, p.SNAPSHOT, offset=newest.column("offset_max"))


def threads(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `silver.fetch_requests`: the thread that each connection of a follower belongs to, by its client id."""
    names = ["cluster_id", "broker_id", "connection", "client_id"]
    each = pa.table(rows).group_by(names).aggregate([])
    each = each.filter(pc.match_substring_regex(each.column("client_id"), p.FETCHER_CLIENT))
    thread = pc.replace_substring_regex(each.column("client_id"), p.FETCHER_CLIENT, r"\2")
    return of_kind(each, p.THREAD, fetcher_id=thread)


def transactional(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of `silver.requests` that name a transactional id: who uses it, with which producer id.

    ``begins``: a transaction, or the life of a producer.
    """
    begins = is_in(rows.column("api"), ("ADD_PARTITIONS_TO_TXN", "INIT_PRODUCER_ID"))
    hosts = remote_hosts(rows.column("connection"))
    same = {name: rows.column(name) for name in ("cluster_id", "transactional_id", "producer_id", "client_id")}
    users = pa.table({**same, "remote_host": hosts, "begins": begins})
    return of_kind(users.group_by(users.schema.names).aggregate([]), p.TRANSACTIONAL)
