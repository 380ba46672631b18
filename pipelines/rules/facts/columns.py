"""What a fact is in Spark: its columns, their order, and how a row of a table becomes one."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.shapes import Value, shaped
from schemas import audit_facts as a
from schemas.fields import spark_types

KEY = ("cluster_id", "topic", "partition")

#: Columns of a fact in Spark.
FACT_TYPES = spark_types(a.Fact)
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
_ORDER_TYPES = {
    "rank": "int",
    "order_offset": "long",
    "order_broker": "int",
    "order_connection": "string",
    "order_correlation": "int",
    "order_kind": "int",
}
_CONNECTION_ORDER = {
    "order_broker": "broker_id",
    "order_connection": "connection",
    "order_correlation": "correlation_id",
}


def micros(name: str) -> Column:
    """A timestamp in microseconds since the epoch."""
    return F.unix_micros(F.col(name))


def fact(rows: DataFrame, kind: str, same: str, **values: Value) -> DataFrame:
    """Select `KEY`, the order and a fact's columns; those not given are null.

    Args:
        same: columns that have the fact's names in `rows`, with blanks between them.
    """
    given: dict[str, Value] = {"kind": F.lit(kind), **{name: name for name in same.split()}, **values}
    order: dict[str, Value] = {"rank": a.RANK[kind]}
    if kind in _BY_OFFSET and "offset" in given:
        order["order_offset"] = given["offset"]
    if kind in _BY_CONNECTION:
        order |= {place: given[name] for place, name in _CONNECTION_ORDER.items() if name in given}
    # What is stored at an offset comes before what was answered of it.
    order["order_kind"] = 0 if kind == a.BATCH else 1
    return rows.select(*KEY, *shaped(_ORDER_TYPES, order), *shaped(FACT_TYPES, given))


def line_fact(rows: DataFrame, kind: str, same: str, **values: Value) -> DataFrame:
    """A fact of a silver row: with its line."""
    return fact(rows, kind, f"broker_id file_id byte_offset line_no {same}", time_us=micros("time"), **values)
