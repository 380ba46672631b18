"""What a fact is in Spark: its columns, their order, and how a row of a table becomes one."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.lake import Lake
from schemas import audit_facts as a
from schemas.table import TableSpec

KEY = ("cluster_id", "topic", "partition")

#: Columns of a fact in Spark, in the order of `schemas.audit_facts.Fact`.
FACT_TYPES = {
    "kind": "string",
    "time_us": "long",
    "broker_id": "int",
    "name": "string",
    "leader": "int",
    "leader_epoch": "int",
    "partition_epoch": "int",
    "offset": "long",
    "end_offset": "long",
    "high_watermark": "long",
    "previous": "long",
    "replica_id": "int",
    "isr": "array<int>",
    "replicas": "array<int>",
    "error_code": "int",
    "size_bytes": "long",
    "checksum": "long",
    "earliest_us": "long",
    "latest_us": "long",
    "log_append_time_us": "long",
    "topic_id": "string",
    "client": "string",
    "detail": "string",
    "connection": "string",
    "correlation_id": "int",
    "controller_epoch": "int",
    "derived": "string",
    "file_id": "string",
    "byte_offset": "long",
    "line_no": "long",
}
#: Order of the facts of a partition. By offset or by a connection's order where that is a kind's order; the last
#: columns only make it total, whatever the order of the files.
ORDER = (
    "rank",
    "order_offset",
    "order_broker",
    "order_connection",
    "order_correlation",
    "order_kind",
    "time_us",
    "broker_id",
    "byte_offset",
    "offset",
    "kind",
    "name",
    "replica_id",
    "file_id",
)
_BY_OFFSET = (a.OPERATION, a.ANSWER, a.BATCH)
_BY_CONNECTION = (a.FETCH, a.READ)
_SOURCE = ("file_id", "byte_offset", "line_no")


def rows_of(lake: Lake, spec: TableSpec) -> DataFrame | None:
    """Rows of a table; None where the lake has none."""
    return lake.read(spec) if lake.has_rows(spec) else None


def micros(name: str) -> Column:
    """A timestamp in microseconds since the epoch."""
    return F.unix_micros(F.col(name))


def fact(rows: DataFrame, kind: str, **values: Column | str) -> DataFrame:
    """Select `KEY`, the order and a fact's columns; those not given are null."""
    given: dict[str, Column] = {"kind": F.lit(kind)}
    for name, value in values.items():
        given[name] = F.col(value) if isinstance(value, str) else value
    columns = {name: given.get(name, F.lit(None)).cast(type_) for name, type_ in FACT_TYPES.items()}
    none_long, none_int, none_string = (F.lit(None).cast(type_) for type_ in ("long", "int", "string"))
    order = {
        "rank": F.lit(a.RANK[kind]),
        "order_offset": columns["offset"] if kind in _BY_OFFSET else none_long,
        "order_broker": columns["broker_id"] if kind in _BY_CONNECTION else none_int,
        "order_connection": columns["connection"] if kind in _BY_CONNECTION else none_string,
        "order_correlation": columns["correlation_id"] if kind in _BY_CONNECTION else none_int,
        # What is stored at an offset comes before what was answered of it.
        "order_kind": F.lit(0 if kind == a.BATCH else 1),
    }
    return rows.select(
        *KEY,
        *[value.alias(name) for name, value in order.items()],
        *[value.alias(name) for name, value in columns.items()],
    )


def line_fact(rows: DataFrame, kind: str, **values: Column | str) -> DataFrame:
    """A fact of a silver row: with its line."""
    source = {name: name for name in _SOURCE}
    return fact(rows, kind, time_us=micros("time"), broker_id="broker_id", **source, **values)
