"""The shape of facts on their way to a fold: their columns, their order, and how rows become facts. Pure.

Facts of brokers with times in whole seconds are cut to seconds: all compared times are as coarse as the coarsest one. A
time that is computed from a line's time is up to a second later. Cut to seconds it is one of two, ``earliest_us`` and
``latest_us``. So one time surely comes before another if its latest second is below the other's earliest second. Rules
compare exactly that: facts of one time have no order.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import Value, arrow_schema, both, micros, shaped, when
from highwater.pipelines.base.instants import SECOND_US
from highwater.pipelines.kafka.context import Spans
from highwater.schemas import audit_facts as a
from highwater.schemas.fields import map_spark_types
from highwater.schemas.topics import METADATA_TOPIC

KEY = ("cluster_id", "topic", "partition")

#: Columns of a fact in Spark.
FACT_TYPES = map_spark_types(a.Fact)
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
#: All columns: `KEY`, other sort columns, `FACT_TYPES`.
TYPES = {"cluster_id": "string", "topic": "string", "partition": "int", **_ORDER_TYPES, **FACT_TYPES}
_SCHEMA = arrow_schema(TYPES)


def valid(*names: str) -> pc.Expression:
    """Return a filter for rows without null in these columns."""
    return reduce(and_, (pc.field(name).is_valid() for name in names))


def fact(rows: pa.RecordBatch, kind: str, same: str, **values: Value) -> pa.RecordBatch:
    """Make facts (rule input rows, columns `TYPES`) of one kind. Columns without a value are null.

    The KRaft metadata log's own partition is dropped.

    Args:
        rows: with the columns of `KEY`.
        same: columns copied from `rows`, separated by blanks. ``a=b`` copies column b to column a.
        values: further columns: an array, or one value for all rows.
    """
    names = [name.partition("=")[::2] for name in same.split()]
    given: dict[str, Any] = {"kind": kind, **{name: rows.column(other or name) for name, other in names}, **values}
    order: dict[str, Any] = {"rank": a.RANK[kind]}
    if kind in BY_OFFSET:
        order["order_offset"] = given.get("offset")
    if kind in BY_CONNECTION:
        order |= {place: given.get(name) for place, name in _CONNECTION_ORDER.items()}
    # Sort stored batches before answers at the same offset.
    order["order_kind"] = 0 if kind == a.BATCH else 1
    facts = shaped(_SCHEMA, len(rows), {**{name: rows.column(name) for name in KEY}, **order, **given})
    return facts.filter(pc.not_equal(facts.column("topic"), METADATA_TOPIC))


def line_fact(rows: pa.RecordBatch, kind: str, same: str, **values: Value) -> pa.RecordBatch:
    """Make facts (rule input rows) of silver rows, with broker, file, offset, line and time copied."""
    time_us = micros(rows.column("time"))
    return fact(rows, kind, f"broker_id file_id byte_offset line_no {same}", time_us=time_us, **values)


#: Kinds of fact without times from a log.
_OF_FILES: Final = pa.array([a.FROZEN, a.METADATA, a.CHECKPOINT, a.EPOCH_ENTRY, a.BATCH])


def in_seconds(facts: pa.RecordBatch, spans: Spans) -> pa.RecordBatch:
    """Truncate the times of facts to seconds for brokers that log whole seconds.

    Args:
        facts: columns `pipelines.rules.facts.columns.TYPES`.
        spans: by (cluster, broker), (start, end) in which timestamps are whole seconds.
    """
    is_coarse = pa.array([False] * len(facts), pa.bool_())
    # A request that ends after the last line of whole seconds may have begun before it.
    begun_us = pc.min_element_wise(facts["earliest_us"], facts["time_us"])
    for (cluster_id, broker_id), of_broker in spans.items():
        of_it = both(pc.equal(facts["cluster_id"], cluster_id), pc.equal(facts["broker_id"], broker_id))
        for since_us, until_us in of_broker:
            within = both(pc.greater_equal(facts["time_us"], since_us), pc.less(begun_us, until_us))
            is_coarse = pc.or_(is_coarse, pc.fill_null(both(of_it, within), False))
    is_coarse = both(is_coarse, pc.invert(pc.is_in(facts["kind"], value_set=_OF_FILES)))
    is_operation = pc.equal(facts["kind"], a.OPERATION)
    no_instant = pa.nulls(len(facts), pa.int64())
    latest = {name: _cut_to_seconds(pc.add(facts[name], SECOND_US - 1)) for name in ("latest_us", "log_append_time_us")}
    cut = {
        # A request of gold is found again by the time of its line.
        "time_us": when(is_operation, facts["time_us"], _cut_to_seconds(facts["time_us"])),
        "earliest_us": _cut_to_seconds(facts["earliest_us"]),
        "latest_us": latest["latest_us"],
        # The append time in an answer has no line. It is dropped: no request time is as exact to compare with.
        "log_append_time_us": when(pc.equal(facts["kind"], a.ANSWER), no_instant, latest["log_append_time_us"]),
    }
    for name, values in cut.items():
        at = facts.schema.get_field_index(name)
        facts = facts.set_column(at, facts.schema.field(at), when(is_coarse, values, facts[name]))
    return facts


def _cut_to_seconds(instants: pa.Array) -> pa.Array:
    return pc.multiply(pc.divide(instants, SECOND_US), SECOND_US)
