"""What a fact is on its way to a fold: its columns, their order, and how rows of a table become facts. Pure."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.arrow_rows import Value, arrow_schema, micros, shaped
from schemas import audit_facts as a
from schemas.fields import spark_types
from schemas.topics import METADATA_TOPIC

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
BY_OFFSET = (a.OPERATION, a.ANSWER, a.BATCH)
BY_CONNECTION = (a.FETCH, a.READ)
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
#: All columns: `KEY`, what else orders facts, `FACT_TYPES`.
TYPES = {"cluster_id": "string", "topic": "string", "partition": "int", **_ORDER_TYPES, **FACT_TYPES}
_SCHEMA = arrow_schema(TYPES)


def valid(*names: str) -> pc.Expression:
    """Rows that have values in some columns."""
    return reduce(and_, (pc.field(name).is_valid() for name in names))


def fact(rows: pa.RecordBatch, kind: str, same: str, **values: Value) -> pa.RecordBatch:
    """Facts of a kind, in `TYPES`; columns not given are null. The metadata log is no topic that rules are about.

    Args:
        rows: with the columns of `KEY`.
        same: columns of `rows` with blanks between them; ``a=b`` is what a fact calls a and the rows b.
        values: by column of a fact, a column or the value of all.
    """
    names = [name.partition("=")[::2] for name in same.split()]
    given: dict[str, Any] = {"kind": kind, **{name: rows.column(other or name) for name, other in names}, **values}
    order: dict[str, Any] = {"rank": a.RANK[kind]}
    if kind in BY_OFFSET:
        order["order_offset"] = given.get("offset")
    if kind in BY_CONNECTION:
        order |= {place: given.get(name) for place, name in _CONNECTION_ORDER.items()}
    # What is stored at an offset comes before what was answered of it.
    order["order_kind"] = 0 if kind == a.BATCH else 1
    facts = shaped(_SCHEMA, len(rows), {**{name: rows.column(name) for name in KEY}, **order, **given})
    return facts.filter(pc.not_equal(facts.column("topic"), METADATA_TOPIC))


def line_fact(rows: pa.RecordBatch, kind: str, same: str, **values: Value) -> pa.RecordBatch:
    """Facts of silver rows: with their lines."""
    time_us = micros(rows.column("time"))
    return fact(rows, kind, f"broker_id file_id byte_offset line_no {same}", time_us=time_us, **values)
